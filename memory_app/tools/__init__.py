"""Tools by which an agent uses its own memory, for the APIs of chat completions and over MCP."""
