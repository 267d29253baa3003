"""Long-term memory for chat apps and AI agents.

Five verbs: **record** a turn, **remember** a statement, **recall**, **sleep**, **forget**. An accepted turn is never
lost, never doubled, and takes effect in order per session; every memory says why it is there.
"""

from memory_app.app import MemoryApp
from memory_app.domain.records import NewTurn, Role, Statement
from memory_app.domain.scope import Scope

__all__ = ["MemoryApp", "NewTurn", "Role", "Scope", "Statement"]
