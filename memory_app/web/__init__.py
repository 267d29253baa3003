"""What the routes of all features share: authentication, errors, strictness, limits."""
