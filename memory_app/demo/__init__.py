"""The demo: a conversation played through the HTTP API of a real stack, as an app of somebody else would do it."""
