"""Events: what changed, told in the order in which it became visible, by ids only."""
