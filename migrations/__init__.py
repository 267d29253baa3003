"""Schema migrations. Until release 1.0 there is one initial version, edited in place."""
