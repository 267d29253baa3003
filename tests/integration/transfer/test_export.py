"""Exports as JSON Lines: everything about a person, an agent or a tenant, read as one state and never held."""

from __future__ import annotations

import gc
import json
import re
import socket
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from api_server import serving
from commands import Memory
from own_servers import wait_until
from sqlalchemy import Engine, text
from starlette.testclient import TestClient

from memory_app.db.db import steady, transaction
from memory_app.dispatch import finder
from memory_app.errors import Conflict, InvalidInput, NotFound
from memory_app.main.http import create_app
from memory_app.memories.feedback import give_feedback
from memory_app.memories.remember import remember
from memory_app.recall.recall import RecallQuery, recall
from memory_app.records.records import Label, Mention, NewTurn, Role, Statement
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.tenancy.rows import keys, user_details
from memory_app.transfer import export_routes as routes
from memory_app.transfer import snapshots
from memory_app.transfer.export import export_lines, import_lines
from memory_app.transfer.rows import exports
from memory_app.turns.record import record

Json = dict[str, Any]

BOB, CHAT = Scope("ada", "bob"), Scope("ada", "bob", "chat")
QUESTIONS = ("Where does Bob live?", "With whom does Bob go sailing?", "What is Rex?")


def lines_of(runtime: Runtime, tenant: int, **options: Any) -> list[str]:
    with closing(export_lines(runtime, tenant, **options)) as lines:
        return list(lines)


def rows_of(lines: list[str]) -> dict[str, list[Json]]:
    """The rows of an export by type."""
    rows: dict[str, list[Json]] = {}
    for line in lines:
        row = json.loads(line)
        rows.setdefault(row["type"], []).append(row)
    return rows


@pytest.fixture
def lived(runtime: Runtime, tenant: int, owner: Engine) -> None:
    """Bob with two agents, and Eve with one."""
    turns = [
        NewTurn(Role.USER, "I live in Paris these days."),
        NewTurn(Role.USER, "I have a dog named Rex. Where did I leave his lead?"),
        NewTurn(Role.ASSISTANT, "You left it on the hook beside the door."),
    ]
    tickets = record(runtime, tenant, CHAT, turns)
    record(
        runtime, tenant, Scope("zoe", "bob", "work"), [NewTurn(Role.USER, "I work as a florist in Paris.")]
    )
    record(runtime, tenant, Scope("ada", "eve", "chat"), [NewTurn(Role.USER, "I keep a secret tarantula.")])
    finder.drain(runtime)
    sailing = Statement(
        "fact", "Bob goes sailing on the lake with his cousin.", mentions=(Mention("concept", "Sailing"),)
    )
    kept = remember(runtime, tenant, BOB, statement=sailing)
    give_feedback(runtime, tenant, BOB, target=tickets[2].id, label=Label.UP, note="Most helpful.")
    give_feedback(runtime, tenant, BOB, target=kept.id, label=Label.DOWN)
    snapshots.make_checkpoint(runtime, tenant, BOB)
    with transaction(runtime.engine, tenant) as connection:
        user_details.set_time_zone(connection, tenant, user="bob", zone="Europe/Paris")


def answers(runtime: Runtime, tenant: int, scope: Scope = BOB) -> list[list[tuple[Any, str]]]:
    found = [recall(runtime, tenant, scope, query=RecallQuery(question)) for question in QUESTIONS]
    return [[(hit.id, f"{hit.score:.5f}") for hit in each.memories] for each in found]


def counts(owner: Engine, tenant: int, user: str) -> dict[str, int]:
    tables = (
        "memories",
        "links",
        "entities",
        "mentions",
        "evidence",
        "sessions",
        "turns",
        "terms",
        "speakers",
    )
    with owner.connect() as connection:
        return {
            table: connection.execute(
                text(
                    f"""SELECT count(*) FROM {table} t JOIN scopes c ON c.id = t.scope_id
                    JOIN users u ON u.id = c.user_id WHERE c.tenant_id = :tenant AND u.name = :user"""
                ),
                {"tenant": tenant, "user": user},
            ).scalar_one()
            for table in tables
        }


# --- what is in it --------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("lived")
def test_an_export_of_a_person_has_all_about_them_and_nothing_of_others(
    runtime: Runtime, tenant: int
) -> None:
    lines = lines_of(runtime, tenant, user="bob")
    rows = rows_of(lines)

    (header,) = rows["header"]
    assert lines[0].startswith('{"type": "header"')
    assert (header["extent"], header["tenant"], header["user"]) == ("user", "acme", "bob")
    assert {row["text"] for row in rows["turn"]} >= {
        "I live in Paris these days.",
        "I work as a florist in Paris.",
    }
    assert {(row["agent"], row["user"]) for row in rows["session"]} == {("ada", "bob"), ("zoe", "bob")}
    assert rows["user"][0]["time_zone"] == "Europe/Paris"
    assert {row["note"] for row in rows["feedback"]} == {"Most helpful.", None}
    assert rows["entity"] and rows["mention"] and rows["evidence"]
    assert [row["session"] for row in rows["run"] if row["name"] == "extract"]
    assert not any("answer" in row for row in rows["run"])
    assert rows["checkpoint"][0]["content"]["nodes"][0]["text"]
    assert not any(name in line for line in lines for name in ('"embedding"', '"keywords"', "tarantula"))
    assert lines[-1].startswith('{"type": "end"')
    assert rows["end"][0]["counts"] == {
        type: len(found) for type, found in rows.items() if type not in ("header", "end")
    }


@pytest.mark.usefixtures("lived")
def test_an_export_of_an_agent_or_a_tenant_holds_all_their_users(
    runtime: Runtime, tenant: int, other_tenant: int
) -> None:
    record(runtime, other_tenant, CHAT, [NewTurn(Role.USER, "I keep bees.")])

    agent, whole = (rows_of(lines_of(runtime, tenant, **of)) for of in ({"agent": "ada"}, {}))

    assert {row["user"] for row in agent["scope"]} == {"bob", "eve"}
    assert [row["name"] for row in agent["agent"]] == ["ada"]
    assert {(row["agent"], row["user"]) for row in whole["scope"]} == {
        ("ada", "bob"),
        ("zoe", "bob"),
        ("ada", "eve"),
    }
    assert len(whole["turn"]) == 5
    assert "bees" not in json.dumps(whole)


def test_who_is_not_known_is_not_found(runtime: Runtime, tenant: int, other_tenant: int) -> None:
    record(runtime, other_tenant, CHAT, [NewTurn(Role.USER, "I keep bees.")])
    for of in ({"user": "bob"}, {"agent": "ada"}, {"agent": "ada", "user": "bob"}):
        with pytest.raises(NotFound, match="nothing is stored"):
            lines_of(runtime, tenant, **of)
    assert [json.loads(line)["type"] for line in lines_of(runtime, tenant)] == ["header", "end"]


def test_an_export_is_one_state_although_others_go_on_writing(runtime: Runtime, tenant: int) -> None:
    record(runtime, tenant, CHAT, [NewTurn(Role.USER, "I keep bees.")])
    with closing(export_lines(runtime, tenant, user="bob")) as lines:
        next(lines)
        record(runtime, tenant, CHAT, [NewTurn(Role.USER, "I keep wasps.")])
        rest = list(lines)
    assert "wasps" not in "".join(rest)
    assert json.loads(rest[-1])["counts"]["turn"] == 1


@pytest.mark.slow
def test_memory_does_not_grow_with_what_is_exported(runtime: Runtime, tenant: int, owner: Engine) -> None:
    remember(runtime, tenant, BOB, statement=Statement("fact", "Bob keeps bees."))
    with owner.begin() as connection:
        connection.execute(
            text(
                """
                INSERT INTO memories (tenant_id, scope_id, kind, text, canonical_key, importance, confidence, origin,
                    valid_from, last_seen, confirmed_at)
                SELECT m.tenant_id, m.scope_id, 'fact', n || repeat(' bees', 100), 'bees ' || n, 5, 0.8, 'declared',
                    now(), now(), now()
                FROM memories m, generate_series(1, 30000) n
                """
            )
        )
    size = rows = 0
    tracemalloc.start()
    try:
        with closing(export_lines(runtime, tenant, user="bob")) as lines:
            for line in lines:
                size += len(line)
                rows += 1
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert rows > 30_000
    assert peak < 4_000_000 < size / 5


@pytest.mark.usefixtures("lived")
@pytest.mark.parametrize("type", ["turn", "memory", "link", "evidence"])
def test_rows_come_at_once_and_not_after_a_sort(
    runtime: Runtime, tenant: int, owner: Engine, type: str
) -> None:
    with owner.begin() as connection:
        # As after a bulk import: nobody has looked at the tables yet, and they are taken for large.
        connection.execute(
            text("UPDATE pg_class SET reltuples = 1e6, relpages = 1e5 WHERE relname = 'memories'")
        )
        scope_id = connection.execute(text("SELECT min(scope_id) FROM memories")).scalar_one()
    query = exports.LISTS[type].replace(":scope", str(scope_id)).replace(":ids", "NULL")
    with steady(runtime.engine, tenant) as connection:
        plan = "\n".join(connection.execute(text(f"EXPLAIN {query}")).scalars())
    # A sort of those that are sorted by their first column already begins with its first rows.
    assert re.search(r"(^|->  )Sort ", plan, re.MULTILINE) is None, plan


# --- and back -------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("lived")
@pytest.mark.parametrize("with_vectors", [True, False])
def test_an_import_gives_equal_ids_counts_and_results(
    runtime: Runtime, tenant: int, other_tenant: int, owner: Engine, with_vectors: bool
) -> None:
    lines = lines_of(runtime, tenant, user="bob", with_vectors=with_vectors)

    imported = import_lines(runtime, other_tenant, lines)
    finder.drain(runtime)

    again = rows_of(lines_of(runtime, other_tenant, user="bob", with_vectors=True))
    rows = rows_of(lines_of(runtime, tenant, user="bob", with_vectors=True))
    for type in ("session", "memory", "turn", "link", "entity", "mention", "evidence"):
        assert ids(again.get(type, [])) == ids(rows.get(type, [])), type
    if with_vectors:
        assert again["memory"] == rows["memory"]
        assert again["turn"] == rows["turn"]
    assert imported.counts["turns"] == 4
    assert counts(owner, other_tenant, "bob") == counts(owner, tenant, "bob")
    assert again["user"][0]["time_zone"] == "Europe/Paris"
    assert answers(runtime, other_tenant) == answers(runtime, tenant)


def ids(rows: list[Json]) -> list[tuple[Any, ...]]:
    names = ("id", "name", "key", "source_id", "target_id", "memory_id", "entity", "turn_id", "agent")
    return sorted(tuple(str(row.get(name)) for name in names) for row in rows)


@pytest.mark.usefixtures("lived")
def test_an_import_may_give_another_name(runtime: Runtime, tenant: int, other_tenant: int) -> None:
    import_lines(runtime, other_tenant, lines_of(runtime, tenant, user="bob"), user="robert")
    finder.drain(runtime)
    found = recall(runtime, other_tenant, Scope("zoe", "robert"), query=RecallQuery("What is Bob's work?"))
    assert any("florist" in hit.text for hit in found.memories)


def cut(lines: list[str]) -> list[str]:
    return lines[:-1]


def cut_within_a_line(lines: list[str]) -> list[str]:
    return [*lines[:-2], lines[-2][: len(lines[-2]) // 2]]


def one_lost(lines: list[str]) -> list[str]:
    return [*lines[:4], *lines[5:]]


def of_another_version(lines: list[str]) -> list[str]:
    return [lines[0].replace('"version": 1', '"version": 9'), *lines[1:]]


@pytest.mark.usefixtures("lived")
@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (cut, "was cut"),
        (cut_within_a_line, "is not JSON"),
        (one_lost, "counts differ"),
        (of_another_version, "version 9"),
        (lambda lines: lines[1:], "no header"),
        (lambda lines: [], "is empty"),
        (lambda lines: [*lines, lines[5]], "behind the end"),
    ],
)
def test_a_file_that_is_not_whole_is_refused_and_nothing_is_stored(
    runtime: Runtime,
    tenant: int,
    other_tenant: int,
    change: Callable[[list[str]], list[str]],
    reason: str,
) -> None:
    lines = lines_of(runtime, tenant, user="bob")
    with pytest.raises(InvalidInput, match=reason):
        import_lines(runtime, other_tenant, change(lines))
    assert len(lines_of(runtime, other_tenant)) == 2


@pytest.mark.usefixtures("lived")
def test_all_agents_of_a_user_are_imported_or_none(runtime: Runtime, tenant: int, other_tenant: int) -> None:
    lines = lines_of(runtime, tenant, user="bob")
    remember(runtime, other_tenant, Scope("zoe", "bob"), statement=Statement("fact", "Bob keeps bees."))
    before = lines_of(runtime, other_tenant, user="bob")[1:]

    with pytest.raises(Conflict, match="not empty"):
        import_lines(runtime, other_tenant, lines)

    assert lines_of(runtime, other_tenant, user="bob")[1:] == before


@pytest.mark.usefixtures("lived")
def test_an_export_of_an_agent_is_no_import(runtime: Runtime, tenant: int, other_tenant: int) -> None:
    with pytest.raises(InvalidInput, match="for reading"):
        import_lines(runtime, other_tenant, lines_of(runtime, tenant, agent="ada"))


# --- over HTTP ------------------------------------------------------------------------------------------------


def client_with(runtime: Runtime, owner: Engine, *rights: str) -> TestClient:
    with owner.begin() as connection:
        _, key = keys.create(connection, "acme", rights=rights)
    return TestClient(create_app(runtime), headers={"Authorization": f"Bearer {key}"})


@pytest.mark.usefixtures("lived")
def test_over_http_a_user_needs_the_right_to_read_and_more_needs_admin(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    reader, admin = client_with(runtime, owner, "read"), client_with(runtime, owner, "admin")

    of_user = reader.get("/v1/users/bob/export")
    assert of_user.headers["content-type"].startswith("application/x-ndjson")
    assert of_user.text.splitlines()[1:] == "".join(lines_of(runtime, tenant, user="bob")).splitlines()[1:]
    of_one = reader.get("/v1/users/bob/export", params={"agent": "zoe", "with_vectors": "true"})
    assert Counter(json.loads(line)["type"] for line in of_one.text.splitlines())["turn"] == 1
    assert '"embedding"' in of_one.text
    assert [reader.get(path).status_code for path in ("/v1/agents/ada/export", "/v1/export")] == [403, 403]
    assert '"extent": "agent"' in admin.get("/v1/agents/ada/export").text
    assert "tarantula" in admin.get("/v1/export").text
    assert reader.get("/v1/users/nobody/export").status_code == 404
    assert reader.get("/v1/users/bob/export", params={"agents": "zoe"}).status_code == 422


@pytest.mark.usefixtures("lived")
def test_over_http_exports_that_nobody_reads_to_the_end_do_not_pile_up(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    reader = client_with(runtime, owner, "read")
    held = [
        routes._chunks(tenant, export_lines(runtime, tenant, user="bob")) for _ in range(routes.MOST_AT_ONCE)
    ]
    assert [next(chunks)[:18] for chunks in held] == ['{"type": "header",'] * routes.MOST_AT_ONCE
    busy = reader.get("/v1/users/bob/export")
    assert (busy.status_code, busy.headers["retry-after"]) == (429, "1")

    held.clear()  # as when the client hangs up
    assert reader.get("/v1/users/bob/export").status_code == 200
    assert runtime.engine.pool.checkedout() == 0  # type: ignore[attr-defined]


@pytest.mark.usefixtures("lived")
def test_over_http_an_export_ends_when_its_reader_hangs_up(
    runtime: Runtime, tenant: int, owner: Engine, api_key: str
) -> None:
    with owner.begin() as connection:
        connection.execute(
            text("UPDATE turns SET text = repeat('bees ', 1000000) WHERE text LIKE '%florist%'")
        )  # more than sockets hold
    with serving(runtime) as port, collecting_no_garbage():
        with socket.create_connection(("127.0.0.1", port)) as reader:
            reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2_000)
            head = f"GET /v1/users/bob/export HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {api_key}\r\n\r\n"
            reader.sendall(head.encode())
            assert b" 200 " in reader.recv(100)
            assert runtime.engine.pool.checkedout() == 1  # type: ignore[attr-defined]
        wait_until(lambda: runtime.engine.pool.checkedout() == 0, "the transaction has ended")  # type: ignore[attr-defined]


@contextmanager
def collecting_no_garbage() -> Iterator[None]:
    """What ends here ends because somebody ended it."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


# --- the command line -----------------------------------------------------------------------------------------


@pytest.mark.usefixtures("lived")
def test_the_commands_write_and_read_a_file(
    runtime: Runtime, tenant: int, other_tenant: int, memory: Memory, tmp_path: Path
) -> None:
    path = tmp_path / "bob.jsonl"
    done = memory("export", str(path), "--user", "bob", "--format", "jsonl", "--tenant", "acme", "--json")
    assert done.json["turn"] == 4
    assert path.stat().st_mode & 0o777 == 0o600
    assert [each.name for each in tmp_path.iterdir()] == ["bob.jsonl"]

    read = memory("import", str(path), "--tenant", "globex", "--json")
    assert read.json["turns"] == 4
    again = memory("import", str(path), "--tenant", "globex")
    assert (again.status, "not empty" in again.err) == (1, True)
