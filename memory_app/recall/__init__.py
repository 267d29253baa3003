"""Recall: search, ranking, and the context window for the next reply."""
