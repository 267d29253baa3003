"""A chat-completions endpoint: it adds what is remembered, has a language model answer, and records both sides."""
