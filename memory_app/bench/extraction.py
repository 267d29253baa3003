"""Measure extraction on case files. Turns go the product's own way to memories, each chat as a user of its own.

For each language: the share of facts that were kept (coverage), the share of memories that are right (precision),
memories made of turns that give nothing (inventions), and how many states after corrections and endings, and how many
dates, are right. The agent has the policy that agents have by default.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from memory_app import MemoryApp, NewTurn, Scope
from memory_app.bench import stage
from memory_app.bench.cases import CaseChat, CaseFile
from memory_app.bench.judgement import Kept, Verdict, judge
from memory_app.bench.stage import Say
from memory_app.memories import lookup
from memory_app.memories.lookup import MemoryFilter
from memory_app.records.records import Memory, Origin

AGENT = "assistant"
SESSION = "chat"

MEMORIES_LIMIT = 500
"""Most memories read of one chat."""


def measure(memory: MemoryApp, files: Sequence[CaseFile], *, say: Say) -> Mapping[str, Any]:
    """Figures by language, each with a table by relation and by group, and everything that is not as it should be."""
    figures: dict[str, Any] = {}
    for file in files:
        say(f"{file.language}: {len(file.chats)} chats")
        verdicts = _verdicts(memory, file, say=say)
        figures[file.language] = {
            **_totals(verdicts),
            "by_relation": _by_relation(verdicts),
            "by_group": _by_group(verdicts),
            "faults": [fault for verdict in verdicts for fault in faults_of(verdict)],
        }
    return figures


def faults_of(verdict: Verdict) -> Iterable[dict[str, str]]:
    """Facts that are missing, memories that are wrong, and states that are wrong, with the words of the turn."""
    turns = verdict.chat.turns
    for expected in verdict.expected:
        if not expected.is_kept:
            turn = turns[expected.turn].text
            yield _fault(verdict, "missing", turn=turn, what=str(expected.fact))
        elif expected.has_right_date is False:
            what = f"{expected.fact}: {expected.fact.since}"
            yield _fault(verdict, "date", turn=turns[expected.turn].text, what=what)
    for judged in verdict.judged:
        if not judged.is_right:
            kind = "invention" if judged.is_invention else "wrong"
            turn = " · ".join(turns[place].text for place in judged.memory.turns)
            yield _fault(verdict, kind, turn=turn, what=str(judged.memory))
    for state in verdict.states:
        if not state.is_right:
            kind = "not held" if state.must_hold else "still held"
            # Any turn of the chat may have made it so.
            turn = " · ".join(turn.text for turn in turns)
            yield _fault(verdict, kind, turn=turn, what=str(state.fact))


def _fault(verdict: Verdict, kind: str, *, turn: str, what: str) -> dict[str, str]:
    return {"group": verdict.chat.group, "fault": kind, "turn": turn, "what": what}


def _verdicts(memory: MemoryApp, file: CaseFile, *, say: Say) -> list[Verdict]:
    users = [f"{file.language}-{place:03}" for place in range(1, len(file.chats) + 1)]
    places = {user: _record(memory, user, chat) for user, chat in zip(users, file.chats, strict=True)}
    say(f"{file.language}: extracting")
    stage.drain(memory)
    return [
        judge(chat, _kept(memory, user, places[user]), user=user)
        for user, chat in zip(users, file.chats, strict=True)
    ]


def _record(memory: MemoryApp, user: str, chat: CaseChat) -> dict[Any, int]:
    """Hand over the turns of a chat; their places by id."""
    turns = [NewTurn(turn.role, turn.text, speaker=turn.name, at=turn.at) for turn in chat.turns]
    tickets = memory.record_all(Scope(AGENT, user, SESSION), turns)
    return {ticket.id: place for place, ticket in enumerate(tickets)}


def _kept(memory: MemoryApp, user: str, places: Mapping[Any, int]) -> list[Kept]:
    filters = MemoryFilter(limit=MEMORIES_LIMIT, history=True)
    rows = lookup.list_memories(memory.runtime, memory.tenant_id, Scope(AGENT, user), filters=filters)
    # Questions of the user are stored, too, and are no facts.
    return [
        _as_kept(memory, row, places)
        for row in rows
        if row.origin is Origin.EXTRACTED and row.kind != "query"
    ]


def _as_kept(memory: MemoryApp, row: Memory, places: Mapping[Any, int]) -> Kept:
    evidence = lookup.why(memory.runtime, memory.tenant_id, row.id).evidence
    return Kept(
        text=row.text,
        subject=row.subject,
        relation=row.relation,
        object=row.object,
        is_current=row.retired_at is None and row.valid_until is None,
        turns=tuple(sorted(places[turn.id] for turn in evidence if turn.id in places)),
        valid_from=row.valid_from,
    )


def _totals(verdicts: Sequence[Verdict]) -> dict[str, Any]:
    expected = [fact for verdict in verdicts for fact in verdict.expected]
    judged = [memory for verdict in verdicts for memory in verdict.judged]
    states = [state for verdict in verdicts for state in verdict.states]
    dated = [fact for fact in expected if fact.has_right_date is not None]
    kept, right = sum(fact.is_kept for fact in expected), sum(memory.is_right for memory in judged)
    return {
        "turns": sum(len(verdict.chat.turns) for verdict in verdicts),
        "facts": len(expected),
        "kept": kept,
        "coverage": _share(kept, len(expected)),
        "memories": len(judged),
        "right": right,
        "precision": _share(right, len(judged)),
        "inventions": sum(memory.is_invention and not memory.is_right for memory in judged),
        "states": len(states),
        "states_right": sum(state.is_right for state in states),
        "dates": len(dated),
        "dates_right": sum(bool(fact.has_right_date) for fact in dated),
    }


def _by_relation(verdicts: Sequence[Verdict]) -> dict[str, dict[str, int]]:
    """Facts asked for and kept by the relation of the case; memories and right ones by the relation stored."""
    counts = {name: Counter[str]() for name in ("facts", "kept", "memories", "right")}
    for verdict in verdicts:
        for expected in verdict.expected:
            name = expected.fact.relation or "(words)"
            counts["facts"][name] += 1
            counts["kept"][name] += expected.is_kept
        for judged in verdict.judged:
            name = judged.memory.relation or "(words)"
            counts["memories"][name] += 1
            counts["right"][name] += judged.is_right
    names = sorted({name for counter in counts.values() for name in counter})
    return {name: {what: counter[name] for what, counter in counts.items()} for name in names}


def _by_group(verdicts: Sequence[Verdict]) -> dict[str, dict[str, Any]]:
    groups: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        groups.setdefault(verdict.chat.group, []).append(verdict)
    return {name: _totals(of_group) for name, of_group in groups.items()}


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, 4) if whole else None
