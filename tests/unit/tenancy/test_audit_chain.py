"""The chain of the audit log: whatever is done to an entry, the walk along it stops there."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from memory_app.records.audit import Entry, digest_of, follow

NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)


def chain(length: int) -> list[Entry]:
    entries: list[Entry] = []
    previous = b""
    for number in range(1, length + 1):
        entry = Entry(
            number,
            NOW + timedelta(seconds=number),
            7,
            "erase.user",
            "ada",
            b"x",
            None,
            "done",
            None,
            previous,
            b"",
        )
        entry = replace(entry, digest=digest_of(entry))
        entries.append(entry)
        previous = entry.digest
    return entries


def test_an_unchanged_chain_is_followed_to_its_end() -> None:
    entries = chain(5)
    walked = follow(entries)
    assert (walked.entries, walked.head, walked.broken_at) == (5, entries[-1].digest, None)
    assert follow([]).broken_at is None


@pytest.mark.parametrize(
    "change",
    [
        {"at": NOW},
        {"key_id": None},
        {"action": "erase.turn"},
        {"agent": "max"},
        {"subject": None},
        {"target": "17"},
        {"outcome": "begun"},
        {"request_id": UUID(int=1)},
        {"previous": b"y"},
        {"digest": b"z"},
        {"seq": 9},
    ],
)
def test_a_changed_field_breaks_the_chain_there(change: dict[str, object]) -> None:
    entries = chain(5)
    entries[2] = replace(entries[2], **change)  # type: ignore[arg-type]
    assert follow(entries).broken_at == 3


def test_an_entry_taken_out_put_in_or_moved_breaks_the_chain() -> None:
    entries = chain(5)
    assert follow(entries[:2] + entries[3:]).broken_at == 3
    assert follow([*entries[:2], entries[1], *entries[2:]]).broken_at == 3
    assert follow([entries[1], entries[0], *entries[2:]]).broken_at == 1
    assert follow(entries[1:]).broken_at == 1


def test_an_entry_that_is_digested_anew_breaks_the_chain_behind_it() -> None:
    entries = chain(5)
    forged = replace(entries[2], outcome="not_found")
    entries[2] = replace(forged, digest=digest_of(forged))
    assert follow(entries).broken_at == 4
