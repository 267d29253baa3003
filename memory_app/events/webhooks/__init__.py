"""Webhooks: events posted to an address of the tenant's, signed, in their order and at least once."""
