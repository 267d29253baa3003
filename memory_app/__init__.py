"""Long-term memory for chat apps and AI agents."""
