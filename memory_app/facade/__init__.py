"""The operations of `MemoryApp`, cut as those of the clients are."""
