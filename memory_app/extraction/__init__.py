"""Extraction: turns to statements, by rules or by a language model."""
