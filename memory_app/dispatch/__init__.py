"""Dispatch: find due work of all features and have it done."""
