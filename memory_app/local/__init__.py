"""Everything on one machine: embedded servers and ``memory up``."""
