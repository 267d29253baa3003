"""Long-term memory for chat apps and AI agents.

Five verbs: **record** a turn, **remember** a statement, **recall**, **sleep**, **forget**. An accepted turn is never
lost, never doubled, and takes effect in order per session; every memory says why it is there.

The names below are loaded at their first use: commands and light checks import the package without all that stands
behind `MemoryApp`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memory_app.app import MemoryApp
    from memory_app.records.records import NewTurn, Role, Statement
    from memory_app.records.scope import Scope

__all__ = ["MemoryApp", "NewTurn", "Role", "Scope", "Statement"]

_HOME = {
    "MemoryApp": "memory_app.app",
    "NewTurn": "memory_app.records.records",
    "Role": "memory_app.records.records",
    "Scope": "memory_app.records.scope",
    "Statement": "memory_app.records.records",
}
"""The module in which each name is defined."""


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        value = getattr(import_module(_HOME[name]), name)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("memory_app"):
            raise
        # The base install has the clients alone.
        raise ImportError(
            f"{name} needs {error.name}: pip install 'memory-app[server]'. Over HTTP, "
            "memory_app.client.MemoryClient does the same without it."
        ) from error
    # Found directly from now on, without another call of this function.
    globals()[name] = value
    return value
