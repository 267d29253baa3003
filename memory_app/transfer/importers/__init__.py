"""Read what other programs export: chats become turns, memories become statements. One module a format; no database."""
