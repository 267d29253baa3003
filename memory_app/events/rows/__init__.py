"""The SQL of events and webhooks."""
