"""One way out to a provider, for language models and embedders alike: an address, a key, limits and named errors."""

from memory_app.providers.provider.gate import Gate, Passage, Rates, open_gate
from memory_app.providers.provider.wire import USUAL, Refused, Timeouts, Wire, connect

__all__ = ["USUAL", "Gate", "Passage", "Rates", "Refused", "Timeouts", "Wire", "connect", "open_gate"]
