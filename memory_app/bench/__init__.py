"""Measurements: retrieval quality on labelled conversations, latency, throughput.

Everything goes through the product's own services, on servers of its own in a temporary folder. What is measured is
what a user gets, not a shortcut.
"""
