"""Turns: accept them once and in order, make them searchable, and extract memories from them."""
