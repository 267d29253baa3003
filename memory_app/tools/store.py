"""``store_memory`` and ``forget_memory``: what an agent writes on purpose, and what it takes back."""

from __future__ import annotations

from memory_app.agents import agents
from memory_app.errors import Forbidden, NotFound
from memory_app.extraction.declared import read_text
from memory_app.extraction.llm.flags import flagged
from memory_app.forget import forget
from memory_app.memories.lookup import need_own
from memory_app.memories.remember import remember
from memory_app.records.kinds import kind_of
from memory_app.records.records import EmotionalState, Outcome, Statement
from memory_app.records.run import OPEN
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.tenancy.policy import Policy
from memory_app.tools.answers import ToolAnswer
from memory_app.tools.arguments import ForgetMemory, StoreMemory

EXPLICIT_STORE = "explicit-store"
"""The tag of memories that an agent stored by a tool."""

_SENTENCES = {
    Outcome.INSERTED: "Stored.",
    Outcome.LINKED: "Stored, and linked with what is like it.",
    Outcome.MERGED: "Stored: it became one with what said nearly the same.",
    Outcome.REINFORCED: "This was known already; it counts for more now.",
    Outcome.SUPERSEDED: "Stored: it took the place of what was true before.",
}

MERGED = frozenset({Outcome.MERGED, Outcome.REINFORCED})


def store_memory(runtime: Runtime, tenant_id: int, scope: Scope, arguments: StoreMemory) -> ToolAnswer:
    """Remember one statement of the person, beyond the session.

    Raises `Forbidden` for a directive, unless the agent's policy lets its tool store them.
    """
    if kind_of(arguments.kind).is_directive and not _may_store_core(runtime, tenant_id, scope):
        raise Forbidden(
            "kind: this agent's tool may not store directives (core); use another kind, or switch `core_by_tool` on in "
            "its policy",
            field="kind",
        )
    statement = Statement(
        arguments.kind,
        arguments.text,
        importance=arguments.importance,
        tags=tuple(dict.fromkeys([*arguments.tags, EXPLICIT_STORE])),
        emotional_state=None if arguments.valence is None else EmotionalState(arguments.valence),
    )
    person = Scope(scope.agent, scope.user)
    # The agent may write down what somebody slipped to it, in a page that it read or an answer of another tool.
    remembered = remember(runtime, tenant_id, person, statement=flagged(statement), read=read_text)
    return ToolAnswer(
        {
            "id": str(remembered.id),
            "merged": remembered.outcome in MERGED,
            "merged_count": remembered.merged_count,
            "outcome": remembered.outcome.value,
            "notes": list(remembered.notes),
            "display_text": " ".join([_SENTENCES[remembered.outcome], *remembered.notes]),
        }
    )


def _may_store_core(runtime: Runtime, tenant_id: int, scope: Scope) -> bool:
    try:
        return agents.agent(runtime, tenant_id, Scope(scope.agent)).policy.core_by_tool
    except NotFound:
        # Nothing was ever stored for the agent, so it has the policy that all begin with.
        return Policy().core_by_tool


def forget_memory(runtime: Runtime, tenant_id: int, scope: Scope, arguments: ForgetMemory) -> ToolAnswer:
    """Delete one memory of this person for good, with what was made of it alone."""
    need_own(runtime, tenant_id, Scope(scope.agent, scope.user), arguments.memory_id)
    run = forget.forget_memory(runtime, tenant_id, arguments.memory_id)
    is_done = run.state not in OPEN
    words = "Forgotten for good." if is_done else "It will be forgotten in a moment."
    return ToolAnswer({"id": str(arguments.memory_id), "forgotten": is_done, "display_text": words})
