"""Sharing by consent: what a grant shows, what it never shows or changes, and that it ends at once."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from threading import Event
from typing import Any

import pytest
from commands import Memory
from sqlalchemy import Connection, Engine, event, text
from sqlalchemy.exc import IntegrityError
from starlette.testclient import TestClient

from memory_app.agents import grants
from memory_app.app import MemoryApp
from memory_app.db import directory
from memory_app.db.db import transaction
from memory_app.db.shards import bound_to_grant
from memory_app.db.tables import metadata
from memory_app.dispatch import finder
from memory_app.errors import Conflict, MemoryAppError, NotFound
from memory_app.main.http import create_app
from memory_app.recall import counts
from memory_app.recall import recall as recall_module
from memory_app.records.audit import Action
from memory_app.records.kinds import shareable_kinds
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.settings import Settings
from memory_app.tenancy import audit, schema
from memory_app.tenancy.rows import keys
from memory_app.transfer import shards
from memory_app.transfer.person import as_text

ADA, COACH = Scope("ada", "mira"), Scope("coach", "mira")
NUTS = "Mira is allergic to peanuts."
QUESTION = "What is Mira allergic to?"
OF_ADA = "/v1/users/mira/grants/ada"

ClientOf = Callable[[str], TestClient]


@pytest.fixture
def app(runtime: Runtime, tenant: int) -> MemoryApp:
    """Ada knows Mira, and Bob; the coach knows nobody yet."""
    app = MemoryApp(runtime, tenant)
    app.remember(ADA, NUTS, kind="fact")
    app.remember(ADA, "Mira and Ada often laugh about the peanut incident.", kind="anchor")
    app.remember(Scope("ada", "bob"), "Bob is allergic to cats.", kind="fact")
    app.remember(Scope("ada"), "Ada knows all about allergies.", kind="capability")
    app.change_agent("coach", policy={})
    return app


@pytest.fixture
def client_of(runtime: Runtime) -> ClientOf:
    application = create_app(runtime)
    return lambda key: TestClient(application, headers={"Authorization": f"Bearer {key}"})


def texts(app: MemoryApp, scope: Scope = COACH, query: str | None = QUESTION, **options: Any) -> set[str]:
    return {hit.text for hit in app.recall(scope, query, **options).memories}


def rows_of_ada(owner: Engine) -> dict[str, list[str]]:
    """Every row of Ada's scopes, but for the grants."""
    found = {}
    with owner.connect() as connection:
        for table in metadata.sorted_tables:
            if "scope_id" not in table.c or table.name == "grants":
                continue
            rows = connection.execute(
                text(
                    f"""SELECT t::text FROM {table.name} t WHERE scope_id IN (
                    SELECT c.id FROM scopes c JOIN agents a ON a.id = c.agent_id WHERE a.name = 'ada') ORDER BY 1"""
                )
            )
            found[table.name] = list(rows.scalars())
    return found


# --- what it shows --------------------------------------------------------------------------------------------


def test_without_a_grant_nothing_is_shared(app: MemoryApp) -> None:
    app.remember(COACH, "Mira runs every day.")
    assert texts(app) == {"Mira runs every day."}
    assert app.grants("mira") == ()


def test_an_agent_recalls_what_it_was_granted_and_names_the_other(app: MemoryApp) -> None:
    app.set_grant("mira", "ada", to="coach", kinds=["fact"])

    hits = app.recall(COACH, QUESTION).memories

    assert [(hit.text, hit.agent) for hit in hits] == [(NUTS, "ada")]
    # Only in that direction, and only of that person.
    app.remember(COACH, "Mira hurt her knee.")
    assert "Mira hurt her knee." not in texts(app, ADA, "knee")
    app.remember(Scope("coach", "bob"), "Bob lifts weights.")
    assert texts(app, Scope("coach", "bob"), "What is Bob allergic to?") == {"Bob lifts weights."}


def test_a_grant_is_as_wide_as_its_kinds(app: MemoryApp) -> None:
    app.set_grant("mira", "ada", to="coach", kinds=["anchor"])
    assert texts(app) == {"Mira and Ada often laugh about the peanut incident."}
    # The new one takes the place of the old one.
    app.set_grant("mira", "ada", to="coach", kinds=shareable_kinds())
    assert texts(app) == {NUTS, "Mira and Ada often laugh about the peanut incident."}
    # A filter of the query narrows further, and a query for turns or one session finds nothing of it.
    assert texts(app, kinds=("fact",)) == {NUTS}
    assert texts(app, kinds=("capability",)) == set()
    assert texts(app, tiers=("daily-logs",)) == set()


def test_turns_entities_and_what_an_agent_is_are_never_shared(app: MemoryApp, runtime: Runtime) -> None:
    app.record(Scope("ada", "mira", "chat"), "My quokka is allergic to peanuts, too.")
    finder.drain(runtime)
    app.set_grant("mira", "ada", to="coach", kinds=shareable_kinds())
    hits = app.recall(COACH, "quokka allergies Ada knows").memories
    assert {hit.tier.value for hit in hits} == {"facts"}
    assert {hit.kind for hit in hits} <= set(shareable_kinds())


def test_the_window_and_the_tools_show_what_is_granted(app: MemoryApp) -> None:
    app.set_grant("mira", "ada", to="coach", kinds=["fact"])

    window = app.context(COACH, query=QUESTION).text
    found = app.call_tool(COACH, "search_memory", {"query": QUESTION})

    assert 'agent="ada"' in window
    assert NUTS in window
    (row,) = found.data["memories"]
    assert (row["text"], row["agent"]) == (NUTS, "ada")
    assert "known by ada" in found.text
    why = app.call_tool(COACH, "why", {"memory_id": row["id"]})
    assert (why.data["agent"], why.data["evidence"]) == ("ada", [])
    app.revoke_grant("mira", "ada", to="coach")
    assert app.call_tool(COACH, "why", {"memory_id": row["id"]}).is_error
    assert NUTS not in app.context(COACH, query=QUESTION).text


# --- what it never changes ------------------------------------------------------------------------------------


def test_the_other_agent_changes_nothing_of_what_it_may_recall(
    app: MemoryApp, runtime: Runtime, owner: Engine
) -> None:
    app.set_grant("mira", "ada", to="coach", kinds=shareable_kinds())
    (memory_id,) = [hit.id for hit in app.recall(COACH, QUESTION, kinds=("fact",)).memories]
    before = rows_of_ada(owner)

    chat = Scope("coach", "mira", "chat")
    app.record(chat, "What am I allergic to?")
    app.context(chat, query=QUESTION)
    reply = app.record(chat, "Peanuts.", role="assistant")
    finder.drain(runtime)
    app.feedback(COACH, target=reply.id, label="up")
    for _ in range(3):
        texts(app)
        # The same words are the coach's own, and become no one with Ada's.
        app.remember(COACH, NUTS, kind="fact")
    with pytest.raises(NotFound):
        app.feedback(COACH, target=memory_id, label="down")
    assert app.call_tool(COACH, "forget_memory", {"memory_id": str(memory_id)}).is_error
    app.sleep(COACH)
    finder.drain(runtime)
    counts.note_recalls(runtime)

    assert rows_of_ada(owner) == before


# --- when it ends ---------------------------------------------------------------------------------------------


def test_a_revoked_grant_ends_with_the_next_call(app: MemoryApp) -> None:
    app.set_grant("mira", "ada", to="coach", kinds=["fact"])
    app.set_grant("mira", "ada", to="coach", kinds=["fact"])
    assert texts(app) == {NUTS}
    assert app.revoke_grant("mira", "ada", to="coach") == 1
    assert texts(app) == set()
    with pytest.raises(NotFound, match="recall nothing of agent 'ada'"):
        app.revoke_grant("mira", "ada", to="coach")


def test_a_grant_that_has_run_out_does_nothing(app: MemoryApp, owner: Engine) -> None:
    app.set_grant("mira", "ada", to="coach", kinds=["fact"], until=datetime.now(UTC) + timedelta(days=1))
    assert texts(app) == {NUTS}
    with owner.begin() as connection:
        connection.execute(text("UPDATE grants SET until = now()"))
    assert texts(app) == set()
    (row,) = app.grants("mira")
    assert not row.is_active


def test_what_is_revoked_while_another_model_is_asked_is_not_shown(
    app: MemoryApp, runtime: Runtime, owner: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    app.set_grant("mira", "ada", to="coach", kinds=["fact"])
    with owner.begin() as connection:
        # As after a change of the embedder: the query has to be embedded once more, with no transaction open.
        connection.execute(text("UPDATE scope_models SET model = 'hash-v0'"))
        connection.execute(text("UPDATE memories SET embedding_model = 'hash-v0'"))
    embed_missing = recall_module.embed_missing

    def revoke_meanwhile(*arguments: Any) -> Any:
        if app.grants("mira"):
            app.revoke_grant("mira", "ada")
        return embed_missing(*arguments)

    monkeypatch.setattr(recall_module, "embed_missing", revoke_meanwhile)
    assert texts(app) == set()
    assert app.grants("mira") == ()


def test_grants_and_recalls_at_the_same_time_leave_one_grant(app: MemoryApp) -> None:
    stop = Event()

    def recall_on() -> int:
        calls = 0
        while not stop.is_set():
            assert texts(app) <= {NUTS}
            calls += 1
        return calls

    def set_and_revoke(number: int) -> None:
        app.set_grant("mira", "ada", to="coach", kinds=["fact"])
        if number % 2:
            with contextlib.suppress(NotFound):
                app.revoke_grant("mira", "ada", to="coach")

    # The coach has a scope of Mira from here on.
    app.set_grant("mira", "ada", to="coach", kinds=["fact"])
    with ThreadPoolExecutor(5) as pool:
        reader = pool.submit(recall_on)
        list(pool.map(set_and_revoke, range(12)))
        app.set_grant("mira", "ada", to="coach", kinds=["fact"])
        stop.set()
        assert reader.result() > 0
    assert [(row.agent, row.to) for row in app.grants("mira")] == [("ada", "coach")]


# --- erasure, export, report ----------------------------------------------------------------------------------


def test_erasing_the_person_takes_the_grants_and_counts_them(app: MemoryApp, owner: Engine) -> None:
    app.set_grant("mira", "ada", to="coach", kinds=["fact"])
    app.set_grant("mira", "coach", to="ada", kinds=["fact"])
    run = app.forget("mira")
    assert run.report is not None
    assert run.report["counts"]["grants"] == 2
    with owner.connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM grants")).scalar_one() == 0


@pytest.mark.one_shard
@pytest.mark.parametrize("agent", ["ada", "coach"])
def test_an_agent_that_goes_takes_its_grants_along(app: MemoryApp, owner: Engine, agent: str) -> None:
    app.set_grant("mira", "ada", to="coach", kinds=["fact"])
    with owner.begin() as connection:
        connection.execute(text("DELETE FROM agents WHERE name = :agent"), {"agent": agent})
        assert connection.execute(text("SELECT count(*) FROM grants")).scalar_one() == 0


def test_an_erasure_and_a_grant_at_the_same_time_end_without_rows(app: MemoryApp, owner: Engine) -> None:
    def grant() -> None:
        try:
            app.set_grant("mira", "ada", to="coach", kinds=["fact"])
        except MemoryAppError as error:
            assert error.kind in ("not_found", "conflict", "store_unavailable"), error

    with ThreadPoolExecutor(4) as pool:
        granted = [pool.submit(grant) for _ in range(3)]
        pool.submit(app.forget, "mira").result()
        for future in granted:
            future.result()
    finder.drain(app.runtime)
    with owner.connect() as connection:
        # A grant that came after the erasure found nothing that could be granted.
        assert connection.execute(text("SELECT count(*) FROM grants")).scalar_one() == 0


def test_a_report_and_an_export_have_the_grants(app: MemoryApp) -> None:
    app.set_grant("mira", "ada", to="coach", kinds=["fact", "anchor"])
    report = app.report_user("mira")
    assert [(row.to, row.kinds) for agent in report.agents for row in agent.grants] == [
        ("coach", ("anchor", "fact"))
    ]
    assert "may be recalled by coach until it is revoked: anchor, fact" in as_text(report)
    lines = [json.loads(line) for line in app.export_lines(user="mira")]
    (line,) = [line for line in lines if line["type"] == "grant"]
    assert (line["agent"], line["to"], line["kinds"]) == ("ada", "coach", ["anchor", "fact"])


def test_an_import_makes_no_grant(app: MemoryApp, runtime: Runtime, other_tenant: int) -> None:
    app.set_grant("mira", "ada", to="coach", kinds=["fact"])
    lines = list(app.export_lines(user="mira", with_vectors=True))
    target = MemoryApp(runtime, other_tenant)
    target.import_lines(lines, user="mira")
    assert target.grants("mira") == ()
    assert texts(target, ADA) >= {NUTS}
    assert texts(target) == set()


@pytest.mark.one_shard
def test_a_grant_moves_with_its_person(
    app: MemoryApp, settings: Settings, runtime: Runtime, tenant: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(directory, "KNOWN_SECONDS", 0.0)
    schema.add_shards(settings, 1)
    app.set_grant("mira", "ada", to="coach", kinds=["fact"])
    before = app.grants("mira")

    shards.move_user(runtime, tenant, "mira", to=1)

    assert app.grants("mira") == before
    assert texts(app) == {NUTS}
    app.revoke_grant("mira", "ada")
    assert texts(app) == set()
    # Of an agent that this shard has no copy of yet.
    app.change_agent("tutor", policy={})
    app.set_grant("mira", "ada", to="tutor", kinds=["fact"])
    assert texts(app, Scope("tutor", "mira")) == {NUTS}


# --- doors and rights -----------------------------------------------------------------------------------------


def test_grants_over_http_are_set_listed_revoked_and_written_down(
    app: MemoryApp, client_of: ClientOf, api_key: str, runtime: Runtime, tenant: int
) -> None:
    client = client_of(api_key)
    until = (datetime.now(UTC) + timedelta(days=3)).isoformat()
    made = client.put(OF_ADA, params={"to": "coach"}, json={"kinds": ["fact"], "until": until})
    assert made.status_code == 200
    assert (made.json()["agent"], made.json()["to"], made.json()["is_active"]) == ("ada", "coach", True)
    for path in ("/v1/users/mira/grants", OF_ADA, "/v1/users/mira/grants/coach"):
        assert client.get(path).json()["grants"] == [made.json()]
    recalled = client.post("/v1/agents/coach/users/mira/recall", json={"query": QUESTION}).json()
    assert [row["agent"] for row in recalled["memories"]] == ["ada"]
    why = client.get(f"/v1/memories/{recalled['memories'][0]['id']}/why").json()
    assert (why["agent"], why["user"]) == ("ada", "mira")
    assert client.delete(OF_ADA, params={"to": "coach"}).status_code == 204
    assert client.delete(OF_ADA, params={"to": "coach"}).status_code == 404
    assert client.get(OF_ADA).json() == {"grants": []}
    log = [
        (entry.action, entry.agent, entry.target, entry.outcome)
        for entry in audit.all_entries(runtime, tenant)
        if entry.action in (Action.GRANT_SET, Action.GRANT_REVOKE)
    ]
    assert log == [
        ("grant.set", "ada", "coach", "begun"),
        ("grant.set", "ada", "coach", "done"),
        ("grant.revoke", "ada", "coach", "begun"),
        ("grant.revoke", "ada", "coach", "done"),
        ("grant.revoke", "ada", "coach", "begun"),
        ("grant.revoke", "ada", "coach", "not_found"),
    ]


@pytest.mark.parametrize(
    ("to", "body", "field"),
    [
        ("coach", {"kinds": ["core"]}, "kinds"),
        ("coach", {"kinds": ["identity", "fact"]}, "kinds"),
        ("coach", {"kinds": ["query"]}, "kinds"),
        ("coach", {"kinds": ["noise"]}, "kinds"),
        ("coach", {"kinds": []}, "kinds"),
        ("coach", {}, "kinds"),
        ("coach", {"kinds": ["fact"], "until": "2020-01-01T00:00:00Z"}, "until"),
        ("coach", {"kinds": ["fact"], "until": "2199-01-01T00:00:00"}, "until"),
        ("coach", {"kinds": ["fact"], "for": "ever"}, "for"),
        ("ada", {"kinds": ["fact"]}, "to"),
        ("a\x01b", {"kinds": ["fact"]}, "to"),
    ],
)
def test_what_is_no_grant_is_refused_with_its_field(
    app: MemoryApp, client_of: ClientOf, api_key: str, to: str, body: dict[str, Any], field: str
) -> None:
    answer = client_of(api_key).put(OF_ADA, params={"to": to}, json=body)
    assert answer.status_code == 422
    assert field in answer.json()["error"]["field"]
    assert app.grants("mira") == ()


def test_unknown_people_and_agents_are_named(app: MemoryApp, owner: Engine) -> None:
    for call, name in (
        (lambda: app.set_grant("eve", "ada", to="coach", kinds=["fact"]), "eve"),
        (lambda: app.set_grant("mira", "zoe", to="coach", kinds=["fact"]), "zoe"),
        (lambda: app.set_grant("mira", "ada", to="nobody", kinds=["fact"]), "nobody"),
        (lambda: app.grants("eve"), "eve"),
        (lambda: app.grants("mira", agent="nobody"), "nobody"),
        (lambda: app.revoke_grant("eve", "ada"), "eve"),
    ):
        with pytest.raises(NotFound, match=name):
            call()
    with owner.connect() as connection:
        known = connection.execute(text("SELECT name FROM agents ORDER BY 1")).scalars().all()
    assert known == ["ada", "coach"], "a name that is unknown is not made"


def test_a_bound_key_gives_away_only_its_own(app: MemoryApp, client_of: ClientOf, owner: Engine) -> None:
    def bound(**names: str) -> TestClient:
        with owner.begin() as connection:
            return client_of(keys.create(connection, "acme", **names)[1])

    body = {"kinds": ["fact"]}
    of_coach = bound(agent="coach")
    assert of_coach.put(OF_ADA, params={"to": "coach"}, json=body).status_code == 403
    assert of_coach.delete(OF_ADA).status_code == 403
    assert of_coach.get(OF_ADA).status_code == 403
    assert of_coach.get("/v1/users/mira/grants").status_code == 403
    assert bound(agent="ada").put(OF_ADA, params={"to": "coach"}, json=body).status_code == 200
    # What it was granted, the other agent may see.
    assert len(of_coach.get("/v1/users/mira/grants/coach").json()["grants"]) == 1
    of_mira, of_bob = bound(user="mira"), bound(user="bob")
    assert of_bob.delete(OF_ADA).status_code == 403
    assert of_mira.delete(OF_ADA).status_code == 204
    assert of_mira.put(OF_ADA, params={"to": "coach"}, json=body).status_code == 200


@pytest.mark.parametrize("names", [{"agent": "coach"}, {"agent": "coach", "user": "mira"}], ids=str)
def test_a_key_for_one_agent_recalls_what_its_agent_was_granted(
    app: MemoryApp, runtime: Runtime, tenant: int, names: dict[str, str]
) -> None:
    app.set_grant("mira", "ada", to="coach", kinds=["fact"])
    app.set_grant("bob", "ada", to="coach", kinds=["fact"])
    bound = MemoryApp(runtime.bound(names["agent"], names.get("user")), tenant)

    (hit,) = bound.recall(COACH, QUESTION).memories

    assert (hit.text, hit.agent) == (NUTS, "ada")
    assert 'agent="ada"' in bound.context(COACH, query=QUESTION).text
    why = bound.call_tool(COACH, "why", {"memory_id": str(hit.id)})
    assert (why.data["agent"], why.data["evidence"]) == ("ada", [])
    assert [row.agent for row in bound.grants("mira")] == ["ada"]
    # By its id a memory is read from the agent that has it.
    with pytest.raises(NotFound):
        bound.memory(hit.id)
    app.set_grant("mira", "ada", to="coach", kinds=["anchor"])
    assert texts(bound) == {"Mira and Ada often laugh about the peanut incident."}
    app.revoke_grant("mira", "ada")
    assert texts(bound) == set()


@pytest.mark.one_shard
def test_the_database_shows_a_bound_call_the_granted_kinds_alone(
    app: MemoryApp, runtime: Runtime, tenant: int
) -> None:
    def seen(connection: Connection) -> set[str]:
        return set(connection.execute(text("SELECT text FROM memories")).scalars())

    app.remember(COACH, "Mira runs every day.")
    with transaction(runtime.bound("coach", None).engine, tenant) as connection:
        with bound_to_grant(connection, "mira", agent="ada", kinds=("fact", "artifact")):
            assert seen(connection) == {NUTS}
        assert seen(connection) == {"Mira runs every day."}
    # Nothing of it outlives the transaction.
    with transaction(runtime.bound("ada", "mira").engine, tenant) as connection:
        assert len(seen(connection)) == 3


def test_an_agent_recalls_of_twenty_others_at_most(app: MemoryApp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grants, "AGENTS_LIMIT", 2)
    for agent in ("ada", "zoe"):
        app.remember(Scope(agent, "mira"), f"Mira told {agent} of her peanuts.")
        app.set_grant("mira", agent, to="coach", kinds=["fact"])
    app.remember(Scope("max", "mira"), "Mira told max of her peanuts.")
    with pytest.raises(Conflict) as refused:
        app.set_grant("mira", "max", to="coach", kinds=["fact"])
    assert refused.value.field == "to"
    # One that is there may be changed.
    app.set_grant("mira", "zoe", to="coach", kinds=["fact", "anchor"])
    assert {hit.agent for hit in app.recall(COACH, "peanuts").memories} == {"ada", "zoe"}


def test_grants_on_the_command_line(app: MemoryApp, memory: Memory) -> None:
    done = memory(
        "grants", "set", "mira", "ada", "coach", "--kind", "fact", "--days", "2", "--tenant", "acme"
    )
    assert done.status == 0, done.err
    assert "coach may recall fact of what ada knows of mira" in done.out
    (row,) = memory("grants", "list", "mira", "--tenant", "acme", "--json").json
    assert (row["agent"], row["to"], row["kinds"]) == ("ada", "coach", ["fact"])
    assert memory("grants", "revoke", "mira", "ada", "--tenant", "acme").out == "revoked: 1\n"
    assert memory("grants", "revoke", "mira", "ada", "--tenant", "acme").status == 1
    wrong = memory("grants", "set", "mira", "ada", "coach", "--kind", "core", "--tenant", "acme")
    assert (wrong.status, "kinds" in wrong.err) == (1, True)


# --- the database ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kinds", ["{core}", "{fact,identity}", "{}"])
def test_the_database_refuses_other_kinds(app: MemoryApp, owner: Engine, kinds: str) -> None:
    app.set_grant("mira", "ada", to="coach", kinds=["fact"])
    with pytest.raises(IntegrityError), owner.begin() as connection:
        connection.execute(text("UPDATE grants SET kinds = CAST(:kinds AS text[])"), {"kinds": kinds})


def test_another_tenant_sees_no_grant(app: MemoryApp, runtime: Runtime, other_tenant: int) -> None:
    app.set_grant("mira", "ada", to="coach", kinds=["fact"])
    with transaction(runtime.engine, other_tenant) as connection:
        assert connection.execute(text("SELECT count(*) FROM grants")).scalar_one() == 0
    other = MemoryApp(runtime, other_tenant)
    with pytest.raises(NotFound):
        other.grants("mira")
    with pytest.raises(NotFound):
        other.revoke_grant("mira", "ada")


def test_a_recall_without_grants_costs_one_short_read(app: MemoryApp, runtime: Runtime) -> None:
    app.remember(COACH, "Mira runs every day.")
    statements: list[str] = []

    def note(_: Any, __: Any, statement: str, *___: Any) -> None:
        statements.append(statement)

    def recorded(call: Callable[[], object]) -> list[str]:
        statements.clear()
        event.listen(runtime.engine, "before_cursor_execute", note)
        try:
            call()
        finally:
            event.remove(runtime.engine, "before_cursor_execute", note)
        return list(statements)

    for call in (lambda: texts(app), lambda: app.context(COACH, query=QUESTION)):
        call()
        before = recorded(call)
        assert sum("FROM grants" in statement for statement in before) == 1
        app.set_grant("mira", "ada", to="coach", kinds=["fact"])
        after = recorded(call)
        # For a grant: the scope, what it knows of the query, and the search.
        assert len(after) - len(before) <= 5
        app.revoke_grant("mira", "ada")
        assert len(recorded(call)) == len(before)
