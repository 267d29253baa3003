"""Providers: everything that talks to a model. The only importer of their SDKs."""
