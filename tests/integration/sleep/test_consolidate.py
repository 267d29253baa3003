"""Consolidation of what is stored: what is united, what is left alone, and taking it back."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from embedders import at_angles
from queries import whole_rows
from sqlalchemy import Engine, text
from starlette.testclient import TestClient

from memory_app.db.db import transaction
from memory_app.dispatch.job_table import JOBS
from memory_app.errors import Conflict, InvalidInput, NotFound
from memory_app.jobs import jobs
from memory_app.jobs.rows import runs
from memory_app.jobs.rows.runs import Run
from memory_app.main.http import create_app
from memory_app.memories.lookup import invalidate, pin
from memory_app.memories.remember import remember
from memory_app.records.records import NewTurn, Role, Statement
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.sleep import consolidate
from memory_app.sleep.plan import CyclePlan
from memory_app.sleep.undo import undo_merge, undo_run
from memory_app.turns.record import record

SCOPE = Scope("ada", "bob")
WORDINGS = [
    f"Bob {word} likes strong black tea with a slice of lemon in it." for word in ("", "really", "truly")
]


def tell(runtime: Runtime, tenant: int, *texts: str, **fields: Any) -> list[UUID]:
    """Stored as they are, whatever they are like."""
    return [
        remember(runtime, tenant, SCOPE, statement=Statement("fact", said, **fields), deduplicate=False).id
        for said in texts
    ]


def run(runtime: Runtime, tenant: int, **options: Any) -> Run:
    asked = consolidate.ask(runtime, tenant, SCOPE, **options)
    jobs.perform(runtime, asked.id, JOBS)
    return jobs.read(runtime, tenant, asked.id)


def rows_as_text(
    owner: Engine, statement: str = "SELECT * FROM memories ORDER BY id", **values: object
) -> list[Any]:
    with owner.connect() as connection:
        return [tuple(map(str, row)) for row in connection.execute(text(statement), values).all()]


def everything(owner: Engine) -> list[Any]:
    tables = ("memories", "links", "evidence", "mentions", "entities", "terms")
    return [whole_rows(owner, table) for table in tables]


def current(owner: Engine) -> list[str]:
    return [
        row[0]
        for row in rows_as_text(owner, "SELECT text FROM memories WHERE retired_at IS NULL ORDER BY text")
    ]


def test_what_says_the_same_becomes_one_row_with_all_parts_behind_it(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    ids = tell(runtime, tenant, *WORDINGS, tags=("drinks",))
    tell(runtime, tenant, "Bob plays the cello.")
    done = run(runtime, tenant)
    assert done.state == "done"
    assert current(owner) == ["Bob plays the cello.", WORDINGS[1]]
    assert (done.report["inspected"], done.report["merged"], done.report["freed"]) == (4, 3, 2)
    (cluster,) = done.report["clusters"]
    assert cluster["members"] == [str(id) for id in ids]
    assert cluster["text_of"] == str(ids[1])
    assert cluster["similarity"] >= 0.85


def test_more_than_five_of_one_kind_become_one_in_several_steps_of_five(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    texts = [f"Bob {'very ' * n}much likes tea." for n in range(12)]
    placed = replace(runtime, embedder=at_angles({said: n * 0.5 for n, said in enumerate(texts)}))
    tell(placed, tenant, *texts)
    done = run(placed, tenant)
    assert current(owner) == [texts[-1]]
    assert (done.report["merged"], done.report["freed"]) == (12, 11)
    parts = rows_as_text(
        owner, "SELECT count(*) FROM memories WHERE retired_reason = 'merged' GROUP BY successor"
    )
    assert max(int(n) for (n,) in parts) <= 5
    assert rows_as_text(owner, "SELECT repeat_count FROM memories WHERE retired_at IS NULL") == [("12",)]


def test_numbers_dates_names_and_negations_are_never_blended(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    apart = [
        "Bob paid 20 euros for the tickets to the show.",
        "Bob paid 25 euros for the tickets to the show.",
        "Bob did not pay 20 euros for the tickets to the show.",
        "Bob met Ana at the station on 3 May 2024.",
        "Bob met Ana at the station on 4 May 2024.",
        "Bob met Eva at the station on 3 May 2024.",
    ]
    placed = replace(runtime, embedder=at_angles(dict.fromkeys(apart, 0.0)))
    tell(placed, tenant, *apart)
    assert run(placed, tenant).report["clusters"] == []
    assert current(owner) == sorted(apart)


def test_a_chain_of_likenesses_is_not_united(runtime: Runtime, tenant: int, owner: Engine) -> None:
    chain = ["Bob plays padel.", "Bob bakes bread.", "Bob walks dogs.", "Bob sleeps late."]
    placed = replace(runtime, embedder=at_angles({said: 25.0 * n for n, said in enumerate(chain)}))
    tell(placed, tenant, *chain)
    for _ in range(4):
        run(placed, tenant)
    behind = rows_as_text(
        owner,
        """WITH RECURSIVE b AS (
            SELECT id AS top, id, text FROM memories WHERE retired_at IS NULL
            UNION ALL SELECT b.top, m.id, m.text FROM b JOIN memories m ON m.successor = b.id)
        SELECT count(DISTINCT text) FROM b GROUP BY top""",
    )
    assert len(behind) >= 2


def test_a_dry_run_reports_the_very_same_and_changes_nothing(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    tell(runtime, tenant, *WORDINGS)
    before = everything(owner)
    dry = run(runtime, tenant, dry_run=True)
    assert everything(owner) == before
    assert run(runtime, tenant).report == dry.report
    with pytest.raises(Conflict, match="dry run"):
        undo_run(runtime, tenant, dry.id)


def test_one_kind_alone_is_looked_through_when_one_is_named(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    tell(runtime, tenant, *WORDINGS)
    for said in WORDINGS:
        remember(runtime, tenant, SCOPE, statement=Statement("value", said), deduplicate=False)
    assert run(runtime, tenant, kind="value").report["inspected"] == 3
    assert len(rows_as_text(owner, "SELECT FROM memories WHERE retired_at IS NULL AND kind = 'fact'")) == 3
    assert len(rows_as_text(owner, "SELECT FROM memories WHERE retired_at IS NULL AND kind = 'value'")) == 1


def test_undoing_a_run_restores_every_row_bit_for_bit(runtime: Runtime, tenant: int, owner: Engine) -> None:
    texts = [f"Bob {'very ' * n}much likes tea." for n in range(9)]
    placed = replace(runtime, embedder=at_angles({said: n * 0.5 for n, said in enumerate(texts)}))
    tell(placed, tenant, *texts, tags=("a",), importance=7)
    before = everything(owner)
    done = run(placed, tenant)
    assert everything(owner) != before
    undone = undo_run(placed, tenant, done.id)
    assert undone.report["undone_at"]
    assert everything(owner) == before
    with pytest.raises(Conflict, match="already"):
        undo_run(placed, tenant, done.id)


@pytest.mark.parametrize("since", ["said again", "pinned", "invalidated", "merged"])
def test_undo_of_a_run_whose_result_changed_is_refused_as_a_whole(
    runtime: Runtime, tenant: int, owner: Engine, since: str
) -> None:
    others = ["Eve bakes rye bread on Sundays.", "Eve really bakes rye bread on Sundays."]
    angles = dict.fromkeys(others, 90.0) | {said: n * 0.5 for n, said in enumerate(WORDINGS)}
    longer = "Bob really and truly likes strong black tea with a slice of lemon in it at any hour."
    placed = replace(runtime, embedder=at_angles({**angles, longer: 20.0}))
    tell(placed, tenant, *WORDINGS, *others)
    done = run(placed, tenant)
    (changed,) = rows_as_text(owner, "SELECT id FROM memories WHERE text LIKE 'Bob%' AND retired_at IS NULL")
    if since == "said again":
        remember(placed, tenant, SCOPE, statement=Statement("fact", WORDINGS[1]))
    elif since == "pinned":
        pin(placed, tenant, UUID(changed[0]), pinned=True)
    elif since == "invalidated":
        invalidate(placed, tenant, UUID(changed[0]))
    else:
        remember(placed, tenant, SCOPE, statement=Statement("fact", longer))
    before = everything(owner)
    with pytest.raises(Conflict, match=f"{changed[0]} was {since}"):
        undo_run(placed, tenant, done.id)
    assert everything(owner) == before


def test_a_part_that_was_stored_again_blocks_the_undo(runtime: Runtime, tenant: int, owner: Engine) -> None:
    ids = tell(runtime, tenant, *WORDINGS)
    done = run(runtime, tenant)
    (again,) = tell(runtime, tenant, WORDINGS[0])
    assert again not in ids
    before = everything(owner)
    with pytest.raises(Conflict, match=str(again)):
        undo_run(runtime, tenant, done.id)
    assert everything(owner) == before


def test_a_merge_of_the_write_path_is_undone_with_its_statement(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    short, long = "Bob enjoys walking.", "Bob really enjoys walking a lot."
    placed = replace(runtime, embedder=at_angles({short: 0.0, long: 25.0}))
    (turn,) = record(placed, tenant, Scope("ada", "bob", "s"), [NewTurn(Role.USER, long)])
    (old,) = tell(placed, tenant, short)
    merged = remember(placed, tenant, SCOPE, statement=Statement("fact", long, evidence=(turn.id,)))
    parts = undo_merge(placed, tenant, merged.id)
    assert {part.text for part in parts} == {short, long}
    assert current(owner) == [short, long]
    new = next(part.id for part in parts if part.text == long)
    assert rows_as_text(owner, "SELECT memory_id FROM evidence") == [(str(new),)]
    with pytest.raises(NotFound):
        undo_merge(placed, tenant, merged.id)
    with pytest.raises(Conflict, match="not made by merging"):
        undo_merge(placed, tenant, old)


def test_a_memory_that_changed_or_was_added_meanwhile_survives(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    ids = tell(runtime, tenant, *WORDINGS)
    (other,) = tell(runtime, tenant, "Eve bakes bread.")
    asked = consolidate.ask(runtime, tenant, SCOPE)
    with transaction(runtime.engine, None) as connection:
        claimed = runs.claim(connection, asked.id, timedelta(minutes=1))
    assert claimed is not None and claimed.scope_id is not None
    added = []

    def change(plan: CyclePlan) -> CyclePlan:
        invalidate(runtime, tenant, ids[0])
        added.extend(tell(runtime, tenant, "Bob owns a boat."))
        return plan

    consolidate.consolidate(runtime, claimed, revise=change)
    report = jobs.read(runtime, tenant, asked.id).report
    assert (report["clusters"], len(report["left_alone"])) == ([], 1)
    alive = rows_as_text(owner, "SELECT id FROM memories WHERE retired_at IS NULL ORDER BY id")
    assert [UUID(id) for (id,) in alive] == [*ids[1:], other, *added]


def test_a_worker_that_was_overtaken_changes_nothing(runtime: Runtime, tenant: int, owner: Engine) -> None:
    tell(runtime, tenant, *WORDINGS)
    asked = consolidate.ask(runtime, tenant, SCOPE)
    with transaction(runtime.engine, None) as connection:
        slow = runs.claim(connection, asked.id, timedelta(0))
        fast = runs.claim(connection, asked.id, timedelta(minutes=1))
    assert slow is not None and fast is not None
    before = everything(owner)
    with pytest.raises(jobs.Fenced):
        consolidate.consolidate(runtime, slow)
    assert everything(owner) == before
    consolidate.consolidate(runtime, fast)
    assert current(owner) == [WORDINGS[1]]


def test_nothing_unknown_is_consolidated_or_undone(runtime: Runtime, tenant: int, other_tenant: int) -> None:
    tell(runtime, tenant, *WORDINGS)
    with pytest.raises(InvalidInput) as refused:
        consolidate.ask(runtime, tenant, SCOPE, kind="mood")
    assert refused.value.field == "kind"
    with pytest.raises(NotFound):
        consolidate.ask(runtime, tenant, Scope("ada", "nobody"))
    done = run(runtime, tenant)
    for tenant_id, run_id in ((other_tenant, done.id), (tenant, uuid4())):
        with pytest.raises(NotFound):
            undo_run(runtime, tenant_id, run_id)
    asked = consolidate.ask(runtime, tenant, SCOPE)
    with pytest.raises(Conflict, match="queued"):
        undo_run(runtime, tenant, asked.id)


def test_over_http_consolidation_is_a_run_that_can_be_followed_and_undone(
    runtime: Runtime, tenant: int, api_key: str
) -> None:
    client = TestClient(create_app(runtime), headers={"Authorization": f"Bearer {api_key}"})
    tell(runtime, tenant, *WORDINGS)
    asked = client.post("/v1/agents/ada/users/bob/consolidate", json={"kind": "fact"})
    assert (asked.status_code, asked.json()["state"]) == (202, "queued")
    jobs.perform(runtime, UUID(asked.json()["id"]), JOBS)
    done = client.get(f"/v1/runs/{asked.json()['id']}", params={"wait_seconds": 1}).json()
    assert (done["state"], done["report"]["freed"]) == ("done", 2)
    assert client.post(f"/v1/runs/{done['id']}/undo").status_code == 200
    assert client.post(f"/v1/runs/{done['id']}/undo").status_code == 409
    wrong = client.post("/v1/agents/ada/users/bob/consolidate", json={"dryrun": True})
    assert (wrong.status_code, wrong.json()["error"]["field"]) == (422, "dryrun")
