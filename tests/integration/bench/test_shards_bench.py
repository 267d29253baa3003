"""The measurements of shards at tiny sizes: too many big scopes for one shard, and users who move while they chat."""

from __future__ import annotations

from dataclasses import replace
from uuid import uuid4

import pytest

from memory_app import MemoryApp
from memory_app.bench import big_scopes, moves
from memory_app.bench.moves import Spoken
from memory_app.bench.rows.stored import StoredTurn
from memory_app.db import directory
from memory_app.db.shards import HOME
from memory_app.records.records import Stage, Ticket
from memory_app.runtime import Runtime
from memory_app.settings import Settings


@pytest.fixture
def roomy(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a process knows of the list of shards is looked up anew each time, so that no test has to wait."""
    monkeypatch.setattr(directory, "KNOWN_SECONDS", 0.0)


@pytest.mark.usefixtures("roomy")
def test_further_big_scopes_get_a_shard_of_their_own(
    settings: Settings, runtime: Runtime, tenant: int
) -> None:
    recall = settings.recall.model_copy(update={"scan_rows": 100, "big_scopes_max": 2})
    narrow = replace(runtime, settings=settings.model_copy(update={"recall": recall}))

    figures = big_scopes.measure(
        MemoryApp(narrow.at(HOME), tenant), scopes=3, rows=100, callers=3, calls=2, say=lambda _: None
    )

    assert figures["faults"] == dict.fromkeys(figures["faults"], 0)
    assert sum(cost["indexed"] for cost in figures["planning"]) == 3
    assert figures["rates"]["shards after"] - figures["rates"]["shards without a big scope"] == 2
    assert figures["times"]["recall, 3 at once"]["count"] == 6


@pytest.mark.usefixtures("roomy")
def test_moves_under_way_lose_and_change_nothing(runtime: Runtime, tenant: int) -> None:
    figures = moves.measure(MemoryApp(runtime.at(HOME), tenant), users=4, memories=20, say=lambda _: None)

    assert figures["faults"] == dict.fromkeys(figures["faults"], 0)
    assert figures["times"]["move of a user"]["count"] == 4
    assert figures["rows"]["memories"] >= 80
    assert figures["rates"]["recalls compared"] > 0


def test_what_is_lost_or_out_of_order_is_counted() -> None:
    def spoken(seq: int) -> Spoken:
        return Spoken(
            "bob", "chat", f"word {seq}", f"key {seq}", Ticket(uuid4(), seq, Stage.ACCEPTED), 0.0, 0.0
        )

    def kept(item: Spoken, seq: int) -> StoredTurn:
        return StoredTurn(item.ticket.id, item.user, item.session, seq, item.text, is_extracted=True)

    first, second, third = spoken(1), spoken(2), spoken(3)
    said = [first, second, third]
    assert not any(moves.turn_faults([kept(item, item.ticket.seq) for item in said], said).values())
    swapped = moves.turn_faults([kept(second, 1), kept(first, 2), kept(third, 3)], said)
    assert swapped["sessions out of order"] == 1
    lost = moves.turn_faults([kept(first, 1), kept(third, 2)], said)
    assert (lost["turns lost"], lost["sessions out of order"]) == (1, 1)
    doubled = moves.turn_faults([kept(first, 1), kept(first, 1), kept(second, 2), kept(third, 3)], said)
    assert doubled["turns doubled"] == 2
