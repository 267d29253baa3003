"""Name the speaker of a statement as its source, and the user by one id whatever name they signed with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from memory_app.memories.people import about_user
from memory_app.records.records import Statement, Turn


def sourced(statement: Statement, turns: Sequence[Turn], *, user: str, names: Iterable[str]) -> Statement:
    """The statement with the speaker and role of its turn as its source. ``names`` are display names of ``user``."""
    # With the role: what an assistant said must never pass for what the user said.
    source_turn = next((turn for turn in turns if turn.id in statement.evidence), None)
    if source_turn is None:
        return statement
    with_source = replace(statement, source=f"{source_turn.role.value}:{source_turn.speaker}")
    return about_user(with_source, user=user, names=names)
