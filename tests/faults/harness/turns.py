"""Turns that do harm, among others that do not."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Engine, text

from harness.load import Call
from memory_app.records.records import NewTurn, Role


def with_harm(calls: Sequence[Sequence[Call]], harms: Sequence[str]) -> list[list[Call]]:
    """One deadly turn in the middle of one session each."""
    harmed = [list(session) for session in calls]
    for number, harm in enumerate(harms, start=90_001):
        session = harmed[number % len(harmed)]
        said = f"I bought kettle number {number} in Lima. harm={harm}"
        turn = NewTurn(Role.USER, said, idempotency_key=f"harm-{number}")
        place = len(session) // 2
        session.insert(place, Call(session[place].scope, (number,), (turn,)))
    return harmed


def failed_texts(owner: Engine) -> list[str]:
    """What the turns say that were set aside."""
    with owner.connect() as connection:
        return list(connection.execute(text("SELECT text FROM turns WHERE failed_at IS NOT NULL")).scalars())
