"""Reports keep their keys, and are read whichever version stored them."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

import pytest

from memory_app.records.reports import DecayReport, EntityMergeReport, ForgetReport

ID = UUID("019af0c2-7d1e-7cc3-98c4-dc0c0c07398f")
NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
MERGE = EntityMergeReport(
    entity=1,
    into=2,
    moved=(ID,),
    shared=(),
    followers=(3,),
    aliases_added=1,
    first_seen=NOON,
    last_seen=NOON,
)
DECAY = DecayReport(
    expired=(ID,),
    evicted=(),
    unsupported=(),
    retired=1,
    purged=0,
    links_trimmed=0,
    turns_lapsed=0,
    current=7,
    next_purge_at=NOON,
    next_fades_at=None,
    next_lapse_at=None,
    deleted={"turns": 2},
    next_deletion_at=NOON,
)


def test_a_report_is_stored_with_ids_and_instants_as_texts() -> None:
    assert json.loads(DECAY.as_json()) == {
        "version": 1,
        "expired": [str(ID)],
        "evicted": [],
        "unsupported": [],
        "retired": 1,
        "purged": 0,
        "links_trimmed": 0,
        "turns_lapsed": 0,
        "current": 7,
        "next_purge_at": "2026-05-01T12:00:00+00:00",
        "next_fades_at": None,
        "next_lapse_at": None,
        "deleted": {"turns": 2},
        "next_deletion_at": "2026-05-01T12:00:00+00:00",
    }


def test_a_merge_is_read_as_it_was_stored() -> None:
    assert EntityMergeReport.read(json.loads(MERGE.as_json())) == MERGE


def test_a_merge_of_another_version_is_read() -> None:
    stored = json.loads(MERGE.as_json())
    del stored["version"]
    assert EntityMergeReport.read(stored | {"of_a_version_to_come": 1, "undone_at": None}) == MERGE


@pytest.mark.parametrize("digests", [(), ("ab", "cd")])
def test_digests_are_a_key_only_where_there_are_some(digests: tuple[str, ...]) -> None:
    stored = json.loads(ForgetReport(erasure=None, counts={}, digests=digests).as_json())
    assert stored.get("digests", []) == list(digests)
    assert ("digests" in stored) is bool(digests)
    assert (stored["erasure"], stored["counts"]) == (None, {})


def test_a_report_with_anything_else_is_refused() -> None:
    with pytest.raises(TypeError, match="ids and figures"):
        replace(DECAY, current=object()).as_json()  # type: ignore[arg-type]
