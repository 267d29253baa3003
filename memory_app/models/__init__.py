"""Models: embedders, extractors and language models. The only importer of provider SDKs and weights.

Nothing here knows the database or Redis; texts go in, vectors and records come out.
"""
