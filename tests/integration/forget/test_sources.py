"""What memories rest on: nothing that was derived stays without a source, whoever deletes the row it came from."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from queries import rows, whole_rows
from sqlalchemy import Engine, text

from memory_app.dispatch import finder
from memory_app.dispatch.job_table import JOBS
from memory_app.errors import Conflict
from memory_app.forget.forget import forget_memory
from memory_app.jobs import jobs
from memory_app.jobs.rows.runs import Run
from memory_app.memories import lookup
from memory_app.memories.remember import remember
from memory_app.records.records import NewTurn, Origin, Role, Statement
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.sleep import cycle, decay, undo
from memory_app.turns.record import record

SCOPE = Scope("ada", "bob")

SAILING = (
    "Bob goes sailing on the lake with his cousin in the summer.",
    "Bob goes sailing on the lake with his cousin in summer.",
    "Bob goes out sailing on the lake with his cousin in the summer.",
)
PATTERN = "Being on the water keeps coming up."


def keep(runtime: Runtime, tenant: int, words: str, **fields: Any) -> UUID:
    """Stored as it is, as if before anybody looked for repeats."""
    statement = Statement(fields.pop("kind", "fact"), words, **fields)
    return remember(runtime, tenant, SCOPE, statement=statement, deduplicate=False).id


def derive(runtime: Runtime, tenant: int, words: str, *parents: UUID, **fields: Any) -> UUID:
    fields = {"kind": "artifact", "origin": Origin.SYNTHESIZED, **fields}
    return keep(runtime, tenant, words, parents=parents, **fields)


def everything(owner: Engine) -> dict[str, list[str]]:
    """Every row of the scope, bit for bit."""
    return {table: whole_rows(owner, table) for table in ("memories", "links", "mentions", "evidence")}


def groundless(owner: Engine) -> list[UUID]:
    """Current memories that need a source and have none."""
    found = rows(
        owner,
        """SELECT id FROM memories m WHERE retired_at IS NULL AND origin IN ('extracted', 'synthesized')
        AND NOT EXISTS (SELECT FROM evidence e WHERE e.memory_id = m.id)
        AND NOT EXISTS (SELECT FROM links l WHERE l.source_id = m.id AND l.type = 'derived_from')""",
    )
    return [row.id for row in found]


def parents(runtime: Runtime, tenant: int, memory_id: UUID) -> set[UUID]:
    return {parent.memory.id for parent in lookup.why(runtime, tenant, memory_id).parents}


def pass_time(owner: Engine, days: float) -> None:
    """As if so many days had gone by since everything that happened."""
    columns = ("created_at", "last_seen", "last_recalled", "retired_at")
    earlier = ", ".join(f"{column} = {column} - CAST(:past AS interval)" for column in columns)
    with owner.begin() as connection:
        connection.execute(text(f"UPDATE memories SET {earlier}"), {"past": f"{days} days"})


def performed(runtime: Runtime, tenant: int, run: Run) -> Run:
    jobs.perform(runtime, run.id, JOBS)
    done = jobs.read(runtime, tenant, run.id)
    assert done.state == "done", done.reason
    return done


def decayed(runtime: Runtime, tenant: int) -> dict[str, Any]:
    return performed(runtime, tenant, decay.ask(runtime, tenant, SCOPE)).report  # type: ignore[no-any-return]


def slept(runtime: Runtime, tenant: int) -> Run:
    return performed(runtime, tenant, cycle.ask(runtime, tenant, SCOPE, options={"force": True}))


def united(runtime: Runtime, tenant: int, part: UUID) -> UUID:
    found = lookup.read_memory(runtime, tenant, part).successor
    assert found is not None
    return found


# --- the purge ------------------------------------------------------------------------------------------------


def test_what_loses_its_last_source_to_the_purge_is_retired(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    (turn,) = record(
        runtime, tenant, Scope("ada", "bob", "chat"), [NewTurn(Role.USER, "We went sailing again.")]
    )
    finder.drain(runtime)
    fades = keep(runtime, tenant, "Bob likes tea.", kind="episode")
    stays = keep(runtime, tenant, "Bob is allergic to nuts.", pinned=True)
    pass_time(owner, 800)
    alone = derive(runtime, tenant, PATTERN, fades)
    derive(runtime, tenant, "Food and drink keep coming up.", fades, stays)
    derive(runtime, tenant, "The lake keeps coming up.", fades, evidence=(turn.id,))
    derive(runtime, tenant, "Bob said that he drinks a lot.", fades, origin=Origin.DECLARED)
    assert decayed(runtime, tenant)["expired"] == [str(fades)]
    assert lookup.read_memory(runtime, tenant, alone).retired_at is None, "its source can still be revived"

    pass_time(owner, 31)
    report = decayed(runtime, tenant)

    assert (report["purged"], report["unsupported"], report["retired"]) == (1, [str(alone)], 1)
    assert lookup.read_memory(runtime, tenant, alone).retired_reason == "expired"
    ((current,),) = rows(
        owner, "SELECT count(*) FROM memories WHERE retired_at IS NULL AND kind IN ('fact', 'artifact')"
    )
    assert current == 4
    assert groundless(owner) == []


def test_what_was_derived_from_purged_parts_rests_on_their_merged_row(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    parts = [keep(runtime, tenant, words) for words in SAILING]
    pattern = derive(runtime, tenant, PATTERN, *parts)
    slept(runtime, tenant)
    whole = united(runtime, tenant, parts[0])

    pass_time(owner, 181)
    report = decayed(runtime, tenant)

    assert (report["purged"], report["unsupported"]) == (3, [])
    assert lookup.read_memory(runtime, tenant, pattern).retired_at is None
    assert parents(runtime, tenant, pattern) == {whole}


def test_a_whole_rests_on_the_sources_of_its_parts_when_they_are_purged(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    source = keep(runtime, tenant, "Bob's cousin owns a boat.", pinned=True)
    parts = [derive(runtime, tenant, words, source, kind="fact") for words in SAILING]
    slept(runtime, tenant)
    whole = united(runtime, tenant, parts[0])

    pass_time(owner, 181)
    report = decayed(runtime, tenant)

    assert (report["purged"], report["unsupported"]) == (3, [])
    assert parents(runtime, tenant, whole) == {source}
    assert groundless(owner) == []


# --- undo -----------------------------------------------------------------------------------------------------


def test_undo_of_a_cycle_is_refused_and_names_what_was_derived_since(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    parts = [keep(runtime, tenant, words) for words in SAILING]
    untouched = everything(owner)
    run = slept(runtime, tenant)
    whole = united(runtime, tenant, parts[0])
    pattern = derive(runtime, tenant, PATTERN, whole)
    before = everything(owner)

    with pytest.raises(Conflict, match=f"{pattern} was derived from {whole} since"):
        undo.undo_run(runtime, tenant, run.id)
    assert everything(owner) == before

    forget_memory(runtime, tenant, pattern)
    undo.undo_run(runtime, tenant, run.id)
    assert everything(owner) == untouched


def test_undo_of_a_cycle_names_the_merged_row_of_what_was_derived(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    base = "Bob plays the cello in the town orchestra every Thursday evening after work"
    parts = [keep(runtime, tenant, words) for words in SAILING]
    run = slept(runtime, tenant)
    whole = united(runtime, tenant, parts[0])
    derived = [
        derive(runtime, tenant, words, whole, kind="fact") for words in (f"{base}.", f"{base} really.")
    ]
    slept(runtime, tenant)
    before = everything(owner)

    with pytest.raises(
        Conflict, match=f"{united(runtime, tenant, derived[0])} was derived from {whole} since"
    ):
        undo.undo_run(runtime, tenant, run.id)
    assert everything(owner) == before


def test_what_was_derived_from_a_merge_rests_on_its_parts_after_undo(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    parts = [keep(runtime, tenant, words) for words in SAILING]
    slept(runtime, tenant)
    whole = united(runtime, tenant, parts[0])
    pattern = derive(runtime, tenant, PATTERN, whole)

    undo.undo_merge(runtime, tenant, whole)

    assert parents(runtime, tenant, pattern) == set(parts)
    assert groundless(owner) == []


# --- why ------------------------------------------------------------------------------------------------------


def with_hubs(runtime: Runtime, *, degree: int) -> Runtime:
    changed = runtime.settings.decay.model_copy(update={"hub_degree": degree})
    return replace(runtime, settings=runtime.settings.model_copy(update={"decay": changed}))


def test_why_tells_a_hub_that_it_stays_and_decay_does_not_wait_for_it(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    runtime = with_hubs(runtime, degree=3)
    hub = keep(runtime, tenant, "Bob has a boat.", kind="episode")
    pass_time(owner, 800)
    around = [
        derive(runtime, tenant, words, hub, pinned=True)
        for words in ("Water keeps coming up.", "Wood keeps coming up.", "Family keeps coming up.")
    ]

    report = decayed(runtime, tenant)

    assert (report["expired"], report["next_fades_at"]) == ([], None)
    told = lookup.why(runtime, tenant, hub)
    assert "it is a hub" in told.fate
    assert "expires on" not in told.fate
    assert told.fades_at is None

    forget_memory(runtime, tenant, around[0])
    told = lookup.why(runtime, tenant, hub)
    assert told.fades_at is not None
    assert f"expires on {told.fades_at:%Y-%m-%d}" in told.fate
    assert decayed(runtime, tenant)["expired"] == [str(hub)]


def test_decay_comes_again_for_a_hub_that_it_made_an_ordinary_memory(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    runtime = with_hubs(runtime, degree=1)
    hub = keep(runtime, tenant, "Bob has a boat.", kind="episode")
    pass_time(owner, 800)
    around = derive(runtime, tenant, "Water keeps coming up.", hub, pinned=True)
    assert decayed(runtime, tenant)["next_fades_at"] is None
    lookup.pin(runtime, tenant, around, pinned=False)
    with owner.begin() as connection:
        connection.execute(
            text(
                """UPDATE memories SET retired_at = now() - interval '31 days', retired_reason = 'evicted'
                WHERE id = :id"""
            ),
            {"id": around},
        )
    assert decayed(runtime, tenant)["next_fades_at"] is not None


def test_why_says_that_the_recoverable_stage_may_end_early(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    meant = keep(runtime, tenant, "Bob likes tea.", kind="episode")
    early = "or less long where more are retired after it than the scope may hold"
    assert early in lookup.why(runtime, tenant, meant).fate
    pass_time(owner, 800)
    decayed(runtime, tenant)
    told = lookup.why(runtime, tenant, meant).fate
    assert "can be revived until" in told
    assert early in told
