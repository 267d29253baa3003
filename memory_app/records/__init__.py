"""Records that features hand each other, and what they must hold."""
