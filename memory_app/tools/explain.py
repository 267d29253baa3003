"""``list_facts`` and ``why``: what holds, what held, and why a memory is there."""

from __future__ import annotations

from collections.abc import Sequence

from memory_app.agents import grants
from memory_app.agents.grants import GrantedMemory
from memory_app.errors import NotFound
from memory_app.memories import lookup
from memory_app.memories.facts import FactQuery, find_facts
from memory_app.records.records import Memory, Turn
from memory_app.records.retention import deletion_note
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.tools.answers import Json, ToolAnswer, day, instant, short
from memory_app.tools.arguments import ListFacts, Why

EVIDENCE_LIMIT = 10


def list_facts(runtime: Runtime, tenant_id: int, scope: Scope, arguments: ListFacts) -> ToolAnswer:
    """Facts that hold now or held at a time, or the history of a subject."""
    query = FactQuery(
        subject=arguments.subject,
        relation=arguments.relation,
        as_of=arguments.as_of,
        history=arguments.history,
        limit=arguments.limit,
    )
    try:
        hits = find_facts(runtime, tenant_id, Scope(scope.agent, scope.user), query=query)
    except NotFound:
        # Nobody has spoken yet. That is no mistake of the model.
        hits = ()
    facts = [hit.memory for hit in hits]
    lines = [f"- {' '.join(short(fact.text).split())} ({_interval(fact)})" for fact in facts]
    return ToolAnswer(
        {
            "facts": list(map(_fact, facts)),
            "display_text": "\n".join(lines) or "No such fact is remembered.",
        }
    )


def _words(turn: Turn) -> str:
    return short(turn.text) if turn.words_deleted_at is None else f"({deletion_note(turn.words_deleted_at)})"


def why(runtime: Runtime, tenant_id: int, scope: Scope, arguments: Why) -> ToolAnswer:
    """The turns behind a memory, what it was made of, and what becomes of it."""
    person = Scope(scope.agent, scope.user)
    try:
        lookup.need_visible(runtime, tenant_id, person, arguments.memory_id)
    except NotFound:
        return _why_granted(grants.need_granted(runtime, tenant_id, person, arguments.memory_id))
    reasons = lookup.why(runtime, tenant_id, arguments.memory_id)
    evidence = [
        {
            "session": turn.session,
            "name": turn.speaker,
            "role": turn.role.value,
            "at": instant(turn.at),
            "content": _words(turn),
        }
        for turn in reasons.evidence[:EVIDENCE_LIMIT]
    ]
    return ToolAnswer(
        {
            "memory": _fact(reasons.memory),
            "evidence": evidence,
            "parents": [
                {"how": parent.how, "text": short(parent.memory.text)}
                for parent in reasons.parents[:EVIDENCE_LIMIT]
            ],
            "origin": reasons.memory.origin.value,
            "strength": round(reasons.strength, 3),
            "fate": reasons.fate,
            "display_text": _reason(reasons.memory, evidence, fate=reasons.fate),
        }
    )


def _why_granted(granted: GrantedMemory) -> ToolAnswer:
    """Of another agent's memory only that it is known, and by whom: the turns behind it are not shared."""
    memory = granted.memory
    return ToolAnswer(
        {
            "memory": _fact(memory),
            "agent": granted.agent,
            "evidence": [],
            "parents": [],
            "origin": memory.origin.value,
            "display_text": f"{short(memory.text)} (known by {granted.agent}, {memory.origin}, {_interval(memory)})\n"
            "The person lets this agent recall it; what was said is not shared.",
        }
    )


def _fact(memory: Memory) -> Json:
    return {
        "id": str(memory.id),
        "kind": memory.kind,
        "text": short(memory.text),
        "subject": memory.subject,
        "relation": memory.relation,
        "object": memory.object,
        "importance": memory.importance,
        "valid_from": instant(memory.valid_from),
        "valid_until": instant(memory.valid_until),
    }


def _interval(memory: Memory) -> str:
    since = f"since {day(memory.valid_from)}"
    return since if memory.valid_until is None else f"{since}, until {day(memory.valid_until)}"


def _reason(memory: Memory, evidence: Sequence[Json], *, fate: str) -> str:
    lines = [f"{short(memory.text)} ({memory.origin}, {_interval(memory)})"]
    lines += [f'- {turn["name"]}, {(turn["at"] or "")[:10]}: "{turn["content"]}"' for turn in evidence]
    return "\n".join([*lines, fate])
