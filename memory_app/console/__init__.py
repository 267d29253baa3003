"""What the commands of all features share: settings, output, failures."""
