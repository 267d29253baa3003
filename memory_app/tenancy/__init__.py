"""Tenancy: tenants and their keys, users, scopes by name, agents' policy, and usage."""
