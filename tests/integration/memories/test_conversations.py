"""Whole conversations go the product's own way, and leave what `conversations.toml` says, no more and no less."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from memory_app.app import MemoryApp
from memory_app.dispatch import finder
from memory_app.memories import lookup
from memory_app.memories.lookup import MemoryFilter
from memory_app.records.records import Memory
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime

CONVERSATIONS: dict[str, list[dict[str, Any]]] = tomllib.loads(
    (Path(__file__).parent / "conversations.toml").read_text(encoding="utf-8")
)
START = datetime(2026, 1, 8, 9, tzinfo=UTC)


@pytest.mark.parametrize("group", CONVERSATIONS)
def test_a_conversation_leaves_what_was_said(runtime: Runtime, tenant: int, group: str) -> None:
    memory = MemoryApp(runtime, tenant_id=tenant)
    chats = {f"u-{number}": chat for number, chat in enumerate(CONVERSATIONS[group])}
    for user, chat in chats.items():
        record(memory, Scope("ada", user, "chat"), chat["turns"])
    finder.drain(runtime)

    for user, chat in chats.items():
        rows = kept(memory, user)
        names = {user, *(turn["name"] for turn in chat["turns"] if isinstance(turn, dict) and "name" in turn)}
        current = [row for row in rows if is_current(row)]
        never = [row for row in rows if row.valid_until == row.valid_from]
        ended = [row for row in rows if row not in current and row not in never]
        label = chat["name"]
        assert triples(current, names) == expected(chat["current"]), label
        assert triples(never, names) == expected(chat.get("never", [])), label
        assert expected(chat.get("ended", [])) <= triples(ended, names), label
        if "until" in chat:
            assert [row.valid_until.date() for row in current if row.valid_until] == [chat["until"]], label


def record(memory: MemoryApp, chat: Scope, turns: Iterable[str | dict[str, Any]]) -> None:
    for place, turn in enumerate(turns):
        turn = {"text": turn} if isinstance(turn, str) else turn
        at = START + timedelta(days=turn.get("days", 0), minutes=place)
        signed = {"name": turn["name"]} if "name" in turn else {}
        memory.record(chat, turn["text"], at=at.isoformat(), **signed)


def kept(memory: MemoryApp, user: str) -> Sequence[Memory]:
    """All memories of the user but questions, also those that are over."""
    filters = MemoryFilter(limit=200, history=True)
    rows = lookup.list_memories(memory.runtime, memory.tenant_id, Scope("ada", user), filters=filters)
    return [row for row in rows if row.kind != "query"]


def is_current(row: Memory) -> bool:
    """Whether it holds a month after the conversation began, which is long after its last turn."""
    return row.valid_until is None or row.valid_until > START + timedelta(days=30)


def triples(rows: Iterable[Memory], names: set[str]) -> set[tuple[str, str, str]]:
    """Subject, relation and object; the user is empty, and "Mira's wife" is "wife"."""
    return {(subject_of(row, names), str(row.relation), str(row.object)) for row in rows}


def subject_of(row: Memory, names: set[str]) -> str:
    subject = str(row.subject)
    if subject in names:
        return ""
    return subject.rpartition("'s ")[2]


def expected(facts: list[list[str]]) -> set[tuple[str, str, str]]:
    return {(subject, relation, value) for subject, relation, value in facts}
