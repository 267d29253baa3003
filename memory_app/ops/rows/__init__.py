"""Queries of operators."""
