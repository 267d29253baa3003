"""Forget: delete a turn, a session, a memory or a person for good, and keep receipts."""
