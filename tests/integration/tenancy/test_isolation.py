"""The isolation matrix: every route, listing, export and figure, asked by a tenant who guesses another's ids and names.

Cells are generated from the API's own description and from the commands, so a new door is in the matrix by itself. The
tenant's cells are gone through a second time without the application's own filters: row-level security stands alone. So
are they by keys for one person, who guesses the ids and names of another of the same tenant.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from commands import Memory
from fastapi import FastAPI
from page_visitor import Visitor
from sqlalchemy import Engine, event, text
from starlette.testclient import TestClient

from memory_app.db.backlog import Backlog
from memory_app.db.db import transaction
from memory_app.db.tables import metadata
from memory_app.dispatch import finder
from memory_app.errors import RateLimited
from memory_app.main.commands import COMMANDS, load
from memory_app.main.http import create_app
from memory_app.page.views import VIEWS
from memory_app.runtime import Runtime
from memory_app.tenancy.rows import keys

WORD = "quokka"
"""Stands in all that the other tenant stored, and in nothing else."""

SCOPE = "/v1/agents/ada/users/mira"

TRUSTED = f"{WORD}-keeper"
"""An agent that may recall what ada knows of mira."""


@dataclass(slots=True)
class Matrix:
    """What was asked, and what came of it."""

    cells: int = 0
    statuses: Counter[int] = field(default_factory=Counter)
    leaks: list[str] = field(default_factory=list)

    def note(self, door: str, answer: str, *, status: int = 0) -> None:
        self.cells += 1
        self.statuses[status] += 1
        if WORD in answer.lower():
            self.leaks.append(door)


@pytest.fixture
def app(runtime: Runtime) -> FastAPI:
    return create_app(runtime)


def client(app: FastAPI, owner: Engine, tenant: str) -> TestClient:
    with owner.begin() as connection:
        _, key = keys.create(connection, tenant, rights=keys.RIGHTS, label=f"of {tenant}")
    return TestClient(app, headers={"Authorization": f"Bearer {key}"})


@pytest.fixture
def guesses(app: FastAPI, runtime: Runtime, owner: Engine, tenant: int) -> dict[str, str]:
    """Ids of everything that acme has stored, by what they are of."""
    acme = client(app, owner, "acme")
    texts = (f"My {WORD} is called Rex.", f"I live in {WORD.title()}ville.", f"My {WORD} likes jazz.")
    tickets = [
        acme.post(f"{SCOPE}/sessions/chat/turns", json={"role": "user", "content": said}).json()["tickets"][0]
        for said in texts
    ]
    memory = acme.post(f"{SCOPE}/memories", json={"text": f"Mira keeps a {WORD}.", "kind": "fact"}).json()
    acme.put(
        "/v1/agents/ada", json={"persona": {"name": f"Ada the {WORD}"}, "policy": {"core_by_tool": True}}
    )
    finder.drain(runtime)
    acme.post(
        f"{SCOPE}/feedback",
        json={"target": memory["id"], "label": "up", "note": f"The {WORD} says thanks."},
    )
    other = acme.post(
        f"{SCOPE}/memories", json={"text": f"The {WORD} sleeps in a box.", "kind": "fact"}
    ).json()
    link = acme.post(f"{SCOPE}/links", json={"source": memory["id"], "target": other["id"]}).json()
    for to in (TRUSTED, "coach"):
        acme.put(f"/v1/agents/{to}", json={})
        acme.put(f"/v1/users/mira/grants/ada?to={to}", json={"kinds": ["fact"]})
    point = acme.post(f"{SCOPE}/checkpoints", json={}).json()
    run = acme.post(f"{SCOPE}/sleep", json={}).json()
    finder.drain(runtime)
    erased = acme.delete(f"/v1/turns/{tickets[2]['id']}").json()
    key = acme.get("/v1/keys").json()["keys"][0]
    return {
        "turn": tickets[0]["id"],
        "memory": memory["id"],
        "link": link["id"],
        "checkpoint": point["id"],
        "run": run["id"],
        "erasure": erased["report"]["erasure"],
        "key": str(key["id"]),
    }


BODIES: Mapping[str, dict[str, Any]] = {
    "/correct": {"text": "Mira keeps nothing."},
    "/turns": {"role": "user", "content": "Hello there, anybody?"},
    "/memories": {"text": "Somebody likes pears."},
    "/facts": {"subject": "mira", "relation": "likes", "object": "pears"},
    "/recall": {"query": "what animal does Mira keep, and where does she live", "limit": 50},
    "/context": {"query": "what animal does Mira keep, and where does she live"},
    "/ask": {"question": "What animal does Mira keep?"},
    "/chat/completions": {"user": "mira", "model": "m", "messages": [{"role": "user", "content": "What?"}]},
    "/search": {"text": "what animal"},
    "/keys": {"rights": ["read"]},
    "/rotate": {"overlap_seconds": 60},
    "/limits": {"requests_per_minute": 1},
    "/merge": {"into": "thing:other"},
    "/grants/{agent}": {"kinds": ["fact"]},
    "{agent}": {"persona": {"name": "Ada of globex"}},
}
TOOL = {"query": "what animal does Mira keep", "user_message": "Which?"}


def requests(app: FastAPI, guesses: Mapping[str, str]) -> Iterator[tuple[str, str, Any]]:
    """Method, path and body of each cell: every operation, with the other tenant's ids and names in its address."""
    for template, methods in app.openapi()["paths"].items():
        parts = re.findall(r"\{(\w+)\}", template)
        for method in methods:
            body = next((body for end, body in BODIES.items() if template.endswith(end)), {})
            for id in ids_for(template, guesses) if "id" in parts else ("",):
                path = template.replace("{agent}", "ada").replace("{user}", "mira")
                path = path.replace("{session}", "chat").replace("{id}", id)
                # A key of the API, or of an entity.
                path = path.replace("/keys/{key}", f"/keys/{guesses['key']}").replace(
                    "{key}", f"thing:{WORD}"
                )
                if "/grants/" in path and method != "get":
                    path += "?to=coach"
                if "{name}" in path:
                    for tool in ("search_memory", "list_facts", "get_context"):
                        yield method.upper(), path.replace("{name}", tool), TOOL
                    yield (
                        method.upper(),
                        path.replace("{name}", "forget_memory"),
                        {"memory_id": guesses["memory"]},
                    )
                    continue
                yield method.upper(), path, body if method in ("post", "put", "patch") else None


OF_ROUTES = {
    "/turns/": "turn",
    "/failed/": "turn",
    "/memories/": "memory",
    "/runs/": "run",
    "/erasures/": "erasure",
    "/links/": "link",
    "/checkpoints/": "checkpoint",
}


def ids_for(template: str, guesses: Mapping[str, str]) -> list[str]:
    """The id that an address is about; for one that takes several sorts of them, and for a new one, all."""
    sort = next((sort for part, sort in OF_ROUTES.items() if part in template), None)
    return [guesses[sort]] if sort else [id for name, id in guesses.items() if name not in ("key", "link")]


def ask_everything(app: FastAPI, globex: TestClient, guesses: Mapping[str, str]) -> Matrix:
    matrix = Matrix()
    for method, path, body in requests(app, guesses):
        answer = globex.request(method, path, json=body)
        # What the caller wrote into the address comes back in a message; only what else is there counts.
        shown = answer.text.replace(f"thing:{WORD}", "")
        matrix.note(f"{method} {path}", shown, status=answer.status_code)
        assert answer.status_code < 500 or path == "/health/ready", (method, path, answer.text)
        if any(f"/{id}" in path for name, id in guesses.items() if name != "key"):
            assert answer.status_code == 404, (method, path, answer.status_code)
    return matrix


def rows_of(owner: Engine, tenant: int) -> dict[str, list[str]]:
    """Every row of a tenant, but for the log of calls and the use of keys."""
    found = {}
    with owner.connect() as connection:
        for table in metadata.sorted_tables:
            if table.name in ("audit", "api_keys") or "tenant_id" not in table.c:
                continue
            rows = connection.execute(
                text(f"SELECT t::text FROM {table.name} t WHERE tenant_id = :tenant ORDER BY 1"),
                {"tenant": tenant},
            )
            found[table.name] = list(rows.scalars())
    return found


def has_everything(owner: Engine, tenant: int) -> None:
    """The matrix says something only if there is something to see."""
    rows = rows_of(owner, tenant)
    for table in (
        "turns",
        "memories",
        "entities",
        "feedback",
        "checkpoints",
        "runs",
        "erasures",
        "agents",
        "grants",
    ):
        assert rows[table], table


@pytest.mark.timeout(1_200)
def test_no_route_shows_or_changes_anything_of_another_tenant(
    app: FastAPI,
    owner: Engine,
    tenant: int,
    other_tenant: int,
    guesses: dict[str, str],
    record_property: Any,
) -> None:
    has_everything(owner, tenant)
    before = rows_of(owner, tenant)
    globex = client(app, owner, "globex")

    matrix = ask_everything(app, globex, guesses)

    assert matrix.leaks == []
    assert rows_of(owner, tenant) == before
    operations = sum(len(methods) for methods in app.openapi()["paths"].values())
    assert matrix.cells >= operations > 60
    record_property("cells", matrix.cells)
    print(f"isolation matrix: {matrix.cells} cells over {operations} operations, {dict(matrix.statuses)}")


# --- the page ------------------------------------------------------------------------------------------------


def ask_page(app: FastAPI, key: str, guesses: Mapping[str, str]) -> Matrix:
    """Every view and act of the page, with somebody else's ids and names in its address."""
    matrix = Matrix()
    visitor = Visitor(app)
    visitor.log_in(key)
    visitor.get("/people")
    tokens = visitor.html
    names = {"agent": "ada", "user": "mira", "session": "chat", "key": f"thing:{WORD}"}
    for route in [route for view in VIEWS for route in view.router.routes]:
        template = route.path
        if template in PAGE_OPEN:
            continue
        for id in guesses.values() if "{id}" in template else ("",):
            path = template.removeprefix("/ui").format_map(names | {"id": id, "rest": "x", "name": "x"})
            if "GET" in route.methods:
                answer = visitor.get(path)
            else:
                visitor.html = tokens
                send = partial(visitor.send_file, content=b"[]") if route.takes_file else visitor.send
                answer = send(path, query="what animal", text="None.", label="up")
            # What the caller wrote into the address comes back in a message; only what else is there counts.
            shown = answer.text.replace(f"thing:{WORD}", "").replace(f"thing%3A{WORD}", "")
            matrix.note(f"page {path}", shown, status=answer.status_code)
            assert answer.status_code < 500, (path, answer.text)
    return matrix


PAGE_OPEN = ("/ui/login", "/ui/logout", "/ui/assets/{name}")


@pytest.mark.timeout(1_200)
def test_no_view_of_the_page_shows_anything_of_another_tenant(
    app: FastAPI, owner: Engine, tenant: int, other_tenant: int, guesses: dict[str, str]
) -> None:
    has_everything(owner, tenant)
    before = rows_of(owner, tenant)
    with owner.begin() as connection:
        _, key = keys.create(connection, "globex", rights=keys.RIGHTS)

    matrix = ask_page(app, key, guesses)

    assert matrix.leaks == [] and matrix.cells > 50
    assert rows_of(owner, tenant) == before
    print(f"isolation matrix of the page: {matrix.cells} cells, {dict(matrix.statuses)}")


@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("binding", [{"user": "bob"}, {"agent": "max"}, {"agent": "ada", "user": "bob"}])
def test_no_view_of_the_page_shows_a_bound_key_another_person(
    app: FastAPI, owner: Engine, tenant: int, guesses: dict[str, str], binding: dict[str, str]
) -> None:
    before = rows_of_person(owner, "mira")
    with owner.begin() as connection:
        _, key = keys.create(connection, "acme", rights=keys.RIGHTS, **binding)  # type: ignore[arg-type]

    matrix = ask_page(app, key, guesses)

    assert matrix.leaks == [] and matrix.cells > 50
    assert rows_of_person(owner, "mira") == before


# --- row-level security alone ---------------------------------------------------------------------------------

_FILTER = re.compile(
    r"(?:\b\w+\.)?\btenant_id = (%\(\w+\)s(?:::BIGINT)?|CAST\(%\(\w+\)s AS bigint\))", re.IGNORECASE
)
_JOIN = re.compile(r"(?:\b\w+\.)?\btenant_id = (?:\b\w+\.)tenant_id", re.IGNORECASE)


@contextmanager
def without_filters(runtime: Runtime) -> Iterator[Counter[str]]:
    """The application names no tenant in its statements; how often it had, in all and by kind of statement."""
    removed: Counter[str] = Counter()

    def strip(_: Any, __: Any, statement: str, parameters: Any, ___: Any, ____: Any) -> tuple[str, Any]:
        # Whatever the parameter is, the condition holds. In a SET clause or a list of columns nothing looks like it.
        stripped, count = _FILTER.subn(r"\1 IS NOT NULL", statement)
        stripped, joins = _JOIN.subn("true", stripped)
        if count + joins:
            removed["conditions"] += count + joins
            removed[statement.split(None, 1)[0].upper()] += 1
        return stripped, parameters

    event.listen(runtime.engine, "before_cursor_execute", strip, retval=True)
    try:
        yield removed
    finally:
        event.remove(runtime.engine, "before_cursor_execute", strip)


@pytest.mark.timeout(1_200)
@pytest.mark.one_shard
def test_row_level_security_alone_keeps_tenants_apart(
    app: FastAPI,
    runtime: Runtime,
    owner: Engine,
    tenant: int,
    other_tenant: int,
    guesses: dict[str, str],
    record_property: Any,
) -> None:
    has_everything(owner, tenant)
    before = rows_of(owner, tenant)
    globex = client(app, owner, "globex")
    # A person of the same name, or no statement would come as far as to read rows.
    globex.post(f"{SCOPE}/memories", json={"text": "Mira of globex likes pears."})

    with without_filters(runtime) as removed:
        matrix = ask_everything(app, globex, guesses)

    assert matrix.leaks == []
    assert rows_of(owner, tenant) == before
    assert removed["conditions"] > 100, "filters were there, and were taken out"
    assert {"SELECT", "UPDATE", "DELETE"} <= removed.keys()
    record_property("cells", matrix.cells)
    print(
        f"row-level security alone: {matrix.cells} cells, {dict(matrix.statuses)}, taken out: {dict(removed)}"
    )


@pytest.mark.one_shard
def test_without_row_level_security_the_same_cells_leak(
    app: FastAPI, runtime: Runtime, owner: Engine, tenant: int, other_tenant: int, guesses: dict[str, str]
) -> None:
    """That the filters are really out: with the policies gone, too, the other tenant is seen."""
    globex = client(app, owner, "globex")
    with owner.begin() as connection:
        for table in metadata.sorted_tables:
            connection.execute(text(f"ALTER TABLE {table.name} DISABLE ROW LEVEL SECURITY"))

    matrix = Matrix()
    with without_filters(runtime):
        for path in (f"/v1/memories/{guesses['memory']}", f"{SCOPE}/memories", "/v1/agents/ada"):
            matrix.note(path, globex.get(path).text)

    assert len(matrix.leaks) == matrix.cells


# --- the rows of one person alone -----------------------------------------------------------------------------


@pytest.fixture
def without_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """The application does not compare the names of a call with those that its key is for."""
    monkeypatch.setattr(keys.Caller, "check_bound", lambda *_, **__: None)


BINDINGS = ({"user": "bob"}, {"agent": "max"}, {"agent": "ada", "user": "bob"})


def bound_client(app: FastAPI, owner: Engine, **binding: str) -> TestClient:
    with owner.begin() as connection:
        _, key = keys.create(connection, "acme", rights=keys.RIGHTS, **binding)  # type: ignore[arg-type]
    return TestClient(app, headers={"Authorization": f"Bearer {key}"})


def rows_of_person(owner: Engine, user: str) -> dict[str, list[str]]:
    """Every row of a person, in every shard's table that has a scope."""
    rows = {}
    with owner.connect() as connection:
        for table in metadata.sorted_tables:
            if "scope_id" in table.c:
                statement = f"""SELECT t::text FROM {table.name} t JOIN scopes c ON c.id = t.scope_id
                    JOIN users u ON u.id = c.user_id WHERE u.name = :user ORDER BY 1"""
                rows[table.name] = list(connection.execute(text(statement), {"user": user}).scalars())
    return rows


def ask_bound(app: FastAPI, bound: TestClient, guesses: Mapping[str, str], *, shown: Sequence[str]) -> Matrix:
    """Every cell, by a key for somebody else of the same tenant. ``shown`` is what belongs to agents that the key may
    use, but for what is said of them where somebody's grants are asked for."""
    matrix = Matrix()
    for method, path, body in requests(app, guesses):
        answer = bound.request(method, path, json=body)
        words = answer.text.replace(f"thing:{WORD}", "")
        for name in shown if "/grants" not in path else ():
            words = words.replace(name, "")
        matrix.note(f"{method} {path}", words, status=answer.status_code)
        assert answer.status_code < 500 or path == "/health/ready", (method, path, answer.text)
        if any(f"/{guesses[sort]}" in path for sort in ("turn", "memory", "run", "checkpoint")):
            assert answer.status_code in (403, 404), (method, path, answer.status_code)
    return matrix


@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("binding", BINDINGS, ids=str)
def test_row_level_security_alone_keeps_people_apart(
    app: FastAPI,
    owner: Engine,
    guesses: dict[str, str],
    without_names: None,
    binding: dict[str, str],
    record_property: Any,
) -> None:
    bound = bound_client(app, owner, **binding)
    before = rows_of_person(owner, "mira")
    assert all(before[table] for table in ("turns", "memories", "entities", "feedback", "checkpoints"))

    # A key for a person may use every agent, and export what agents the tenant has.
    agents = {"ada": (f"Ada the {WORD}",), "max": (), None: (f"Ada the {WORD}", TRUSTED)}
    matrix = ask_bound(app, bound, guesses, shown=agents[binding.get("agent")])

    assert matrix.leaks == []
    assert rows_of_person(owner, "mira") == before
    record_property("cells", matrix.cells)
    print(f"people apart, key for {binding}: {matrix.cells} cells, {dict(matrix.statuses)}")


@pytest.mark.one_shard
def test_without_its_policies_the_cells_of_people_leak(
    app: FastAPI, owner: Engine, guesses: dict[str, str], without_names: None
) -> None:
    bound = bound_client(app, owner, user="bob")
    with owner.begin() as connection:
        for table in metadata.sorted_tables:
            for policy in ("bound", "bound_update", "bound_delete"):
                connection.execute(text(f"DROP POLICY IF EXISTS {policy} ON {table.name}"))

    matrix = Matrix()
    for path in (f"/v1/memories/{guesses['memory']}", f"{SCOPE}/memories", f"{SCOPE}/export"):
        matrix.note(path, bound.get(path).text)

    assert len(matrix.leaks) == matrix.cells


@pytest.mark.timeout(1_200)
def test_a_bound_key_can_do_for_its_person_what_any_key_can(
    app: FastAPI, runtime: Runtime, owner: Engine, guesses: dict[str, str]
) -> None:
    """Mira's cells by a key for Mira alone, and the same of another person by a key for all: one answer each."""
    statuses: dict[str, list[tuple[str, int]]] = {}
    for user, key in (("mira", {"user": "mira"}), ("nora", {})):
        caller = bound_client(app, owner, **key)
        if user == "nora":
            texts = (f"My {WORD} is called Rex.", f"I live in {WORD.title()}ville.")
            for words in texts:
                caller.post(
                    "/v1/agents/ada/users/nora/sessions/chat/turns", json={"role": "user", "content": words}
                )
            caller.post(
                "/v1/agents/ada/users/nora/memories", json={"text": f"Nora keeps a {WORD}.", "kind": "fact"}
            )
            finder.drain(runtime)
        cells = [cell for cell in requests(app, guesses) if "/users/mira" in cell[1]]
        # What ends a part of the person comes after the rest, and what ends the person, and their key, last of all.
        last = ("DELETE", "/v1/users/mira")
        for method, path, body in sorted(
            cells, key=lambda cell: (cell[:2] == last, cell[0] == "DELETE", cell[1])
        ):
            # Ids are of Mira alone.
            if any(id in f"{path} {body}" for sort, id in guesses.items() if sort != "key"):
                continue
            answer = caller.request(method, path.replace("mira", user), json=body)
            statuses.setdefault(user, []).append((f"{method} {path}", answer.status_code))
    assert statuses["mira"] == statuses["nora"]
    assert len(statuses["mira"]) > 30
    assert {status for _, status in statuses["mira"]} >= {200, 201, 202}
    print(f"a bound key: {len(statuses['mira'])} cells like those of a key for all")


def test_the_backlog_is_that_of_the_tenant_whoever_calls(
    app: FastAPI, runtime: Runtime, owner: Engine, tenant: int
) -> None:
    turn = {"role": "user", "content": "Hello there."}
    everybody = bound_client(app, owner)
    for number in range(2):
        everybody.post(f"/v1/agents/ada/users/mira/sessions/s{number}/turns", json=turn)

    with pytest.raises(RateLimited):
        Backlog(limit=2).admit(runtime.bound(None, "bob").engine, tenant)


@pytest.mark.one_shard
def test_a_key_for_all_pays_nothing_for_keys_for_one(runtime: Runtime, owner: Engine, tenant: int) -> None:
    """It sends nothing beside its own statement, and there is no trace of the policies of the other in its plan."""
    sent: list[str] = []
    event.listen(runtime.engine, "before_cursor_execute", lambda *arguments: sent.append(arguments[2]))
    plans, statements = {}, {}
    for name, here in (("all", runtime), ("one", runtime.bound(None, "bob"))):
        with transaction(here.engine, tenant) as connection:
            statement = text("EXPLAIN SELECT * FROM turns WHERE scope_id = 1 AND seq = 1")
            plans[name] = "\n".join(connection.execute(statement).scalars())
        statements[name], sent[:] = len(sent), []
    assert statements == {"all": 1, "one": 2}
    assert "scopes" in plans["one"]
    assert "scopes" not in plans["all"]


# --- commands, exports, metrics -------------------------------------------------------------------------------

NAMES = {"user": "mira", "agent": "ada", "session": "chat"}
WITH_ARGUMENTS: Mapping[tuple[str, ...], tuple[str, ...]] = {
    ("report", "user"): ("mira",),
    ("receipt", "show"): ("{erasure}",),
    ("grants", "list"): ("mira",),
    ("grants", "set"): ("mira", "ada", "coach", "--kind", "fact"),
    ("grants", "revoke"): ("mira", "ada"),
    ("limits", "set"): ("user_turns=1000000",),
    ("trace",): ("{turn}",),
    ("undo",): ("{run}",),
    ("replay",): ("{turn}",),
    ("discard",): ("{turn}",),
    ("forget",): ("mira", "--dry-run"),
    ("sleep",): ("--agent", "ada", "--user", "mira"),
    ("synthesize",): ("deep",),
    ("user",): ("mira",),
    ("link",): ("{memory}", "{run}"),
    ("unlink",): ("{link}",),
    ("links",): ("{memory}",),
    ("turns",): ("chat",),
    ("remember",): ("Somebody likes pears.",),
    ("record",): ("Hello there.",),
    ("agent",): ("ada",),
    ("ask",): ("What animal does Mira keep?",),
    ("correct",): ("{memory}", "Mira keeps nothing."),
    ("feedback",): ("{memory}", "up"),
    ("fact",): ("mira", "likes", "pears"),
    ("queries",): ("what animal",),
    ("entity",): (f"thing:{WORD}",),
    ("session", "end"): ("chat",),
    ("session", "clear"): ("chat",),
    ("checkpoints", "export"): ("{checkpoint}", "{file}"),
    **{(name,): ("{memory}",) for name in ("show", "why", "pin", "unpin", "invalidate", "revive", "unmerge")},
}
"""What the commands get that need more than the name of a tenant."""

OTHER_FORMS: Mapping[tuple[str, ...], Sequence[tuple[str, ...]]] = {
    ("forget",): (
        ("--session", "chat", "--agent", "ada", "--user", "mira", "--yes"),
        ("--turn", "{turn}", "--yes"),
        ("--memory", "{memory}", "--yes"),
        ("--memory", "{memory}"),
    ),
    ("remember",): (("Somebody likes pears.", "--for-all"),),
    ("list",): (("--for-all",),),
    ("agent",): (("ada", "--replace", "--policy", "{{}}"),),
    ("entity",): ((f"thing:{WORD}", "--merge-into", "thing:other"),),
}
"""Further calls of commands that do several things."""


def tenant_commands() -> dict[tuple[str, ...], set[str]]:
    """Every command that works for one tenant, with its options."""
    found = {}
    for name in COMMANDS:
        # Of measurements, trials on invented data, and a check that no framework parses: none is of a tenant.
        if name in ("bench", "trial", "health"):
            continue
        command = load(name)
        inner = getattr(command, "commands", None) or {"": command}
        for part, one in inner.items():
            options = {option for parameter in one.params for option in parameter.opts}
            if "--tenant" in options:
                found[(name, part) if part else (name,)] = options
    return found


def test_no_command_shows_anything_of_another_tenant(
    app: FastAPI,
    owner: Engine,
    tenant: int,
    other_tenant: int,
    guesses: dict[str, str],
    memory: Memory,
    tmp_path: Path,
    record_property: Any,
) -> None:
    before = rows_of(owner, tenant)
    matrix = Matrix()
    document = tmp_path / "document.json"
    names = guesses | {"file": str(document)}
    commands = tenant_commands()
    for command, options in commands.items():
        if command[0] in ("serve", "mcp", "import"):
            # They wait for callers, whose cells are those of the routes; or only write.
            continue
        if command[0] == "export":
            for number, whose in enumerate(
                ((), ("--user", "mira"), ("--agent", "ada"), ("--agent", "ada", "--user", "mira"))
            ):
                file = tmp_path / f"{number}.jsonl"
                done = memory("export", str(file), "--format", "jsonl", "--tenant", "globex", *whose)
                shown = file.read_text() if file.exists() else ""
                matrix.note(f"export {whose}", done.out + done.err + shown, status=done.status)
            continue
        for form in (WITH_ARGUMENTS.get(command, ()), *OTHER_FORMS.get(command, ())):
            extra = [part.format(**names) for part in form]
            # What is forgotten names itself.
            if command != ("forget",) and "--agent" in options and "--agent" not in extra:
                extra += ["--agent", "ada"]
            is_for_one = command != ("forget",) and "--for-all" not in extra
            if is_for_one and "--user" in options and "--user" not in extra:
                extra += ["--user", "mira"]
            done = memory(*command, *extra, "--tenant", "globex")
            # What the caller wrote comes back in a message; only what else is there counts.
            shown = (done.out + done.err).replace(f"thing:{WORD}", "")
            matrix.note(" ".join(command), shown, status=done.status)

    assert matrix.leaks == []
    assert not document.exists()
    assert rows_of(owner, tenant) == before
    # Not those that were called with too little to ask anything.
    assert matrix.cells - matrix.statuses[2] >= 70
    record_property("cells", matrix.cells)
    print(f"commands: {matrix.cells} cells, {dict(matrix.statuses)}")


def test_metrics_health_and_descriptions_name_no_tenant_and_nobody(
    app: FastAPI, owner: Engine, tenant: int, guesses: dict[str, str]
) -> None:
    matrix = Matrix()
    for path in ("/metrics", "/health/live", "/health/ready", "/openapi.json"):
        answer = TestClient(app).get(path)
        matrix.note(path, answer.text, status=answer.status_code)
        if path != "/openapi.json":
            assert not re.search(r"\b(acme|mira|ada)\b", answer.text), path
    assert matrix.leaks == []


def test_each_export_holds_all_of_ones_own(app: FastAPI, owner: Engine, guesses: dict[str, str]) -> None:
    """That the exports of the matrix would have shown it."""
    acme = client(app, owner, "acme")
    for path in ("/v1/export", "/v1/users/mira/export", "/v1/agents/ada/export", f"{SCOPE}/export"):
        assert WORD in json.dumps(acme.get(path).text), path
