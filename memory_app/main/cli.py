"""The command line ``memory``. Commands translate and call; what they do is done by services and by the stack.

Exit status 0, 1 (it failed: one line says why), 2 (wrong usage). A file per group of commands, imported only when one
of its commands runs: `memory health` and `memory --help` must not load a database driver and a language model's client.
"""

from __future__ import annotations

import sys
from importlib import import_module

__all__ = ["main"]

SERVER = "pip install 'memory-app[server]'"
"""Brings what is not in the base install."""


def main() -> None:
    """Run the command of this process's arguments and exit with its status."""
    try:
        if sys.argv[1:2] == ["health"]:
            import_module("memory_app.ops.health_command").check(sys.argv[2:])
        else:
            import_module("memory_app.main.commands").app()
    except Exception as error:
        # The base install has the clients alone.
        if isinstance(error, ModuleNotFoundError) and not is_ours(error.name or ""):
            sys.exit(f"memory: {error.name} is not installed; the commands and the server need {SERVER}")
        # The edge of the program. Python would print what the error quotes.
        import_module("memory_app.console.failure").tell(error)
        sys.exit(1)
    finally:
        if "structlog" in sys.modules:
            sys.modules["structlog"].reset_defaults()


def is_ours(module: str) -> bool:
    """A module of ours that is missing is a fault, and no extra brings it."""
    return module.partition(".")[0] in ("memory_app", "workers", "migrations")
