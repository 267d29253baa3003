"""One way out to a provider, for language models and embedders alike: an address, a key, limits and named errors."""

from memory_app.models.provider.connection import Connection, Timeouts
from memory_app.models.provider.gate import Gate, Passage, Rates, open_gate

__all__ = ["Connection", "Gate", "Passage", "Rates", "Timeouts", "open_gate"]
