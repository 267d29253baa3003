"""Files of other programs in a scope: as they were, once however often, by this process and by a worker."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from commands import Done, Memory
from exports import CHATGPT, EXPORTS, MEM0, WHATSAPP, WHATSAPP_TEXT, Export, Said, chatgpt_conversation
from sqlalchemy import Engine, text
from starlette.testclient import TestClient

from memory_app import MemoryApp
from memory_app.db.db import transaction
from memory_app.dispatch import finder
from memory_app.errors import Conflict, InvalidInput, NotFound, RateLimited
from memory_app.jobs.rows import runs
from memory_app.main.http import create_app
from memory_app.records.run import RunState
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.transfer import import_storage, imports
from memory_app.turns import record as record_module

MIRA = Scope("ada", "mira")
IMPORTS = "/v1/agents/ada/users/mira/imports"


@pytest.fixture
def app(runtime: Runtime, tenant: int) -> MemoryApp:
    return MemoryApp(runtime, tenant)


@pytest.fixture
def client(runtime: Runtime, api_key: str) -> Iterator[TestClient]:
    with TestClient(create_app(runtime), headers={"Authorization": f"Bearer {api_key}"}) as client:
        yield client


def stored(app: MemoryApp, user: str = "mira") -> dict[str, tuple[Said, ...]]:
    """Every session with its turns, in their order."""
    sessions = app.sessions(Scope("ada", user))
    return {
        session.name: tuple(
            Said(turn.role.value, turn.text, turn.at, turn.speaker)
            for turn in app.turns(Scope("ada", user, session.name), limit=100)
        )
        for session in sessions
    }


def statements(app: MemoryApp, user: str = "mira") -> list[str]:
    page = app.memories(Scope("ada", user), limit=100)
    return sorted(memory.text for memory in page if memory.origin == "imported")


def count(owner: Engine, table: str) -> int:
    with owner.connect() as connection:
        return int(connection.execute(text(f"SELECT count(*) FROM {table}")).scalar_one())


def import_all(app: MemoryApp, export: Export, *, user: str = "mira", **options: Any) -> dict[str, Any]:
    run = app.import_file(Scope("ada", user), export.content, speakers=export.speakers, **options)
    assert run.state is RunState.DONE
    report: dict[str, Any] = run.report
    return report


@pytest.mark.parametrize("export", EXPORTS.values(), ids=EXPORTS.keys())
def test_what_is_stored_is_what_the_file_held(app: MemoryApp, export: Export) -> None:
    report = import_all(app, export)
    talks = {name if name in export.sessions else None: turns for name, turns in stored(app).items()}
    usual = {"user": "mira", "assistant": "ada"}
    for name, messages in export.sessions.items():
        turns = talks.pop(name)
        assert [(turn.role, turn.text) for turn in turns] == [(said.role, said.text) for said in messages]
        assert [turn.speaker for turn in turns] == [
            said.speaker or usual.get(said.role, said.role) for said in messages
        ]
        for turn, said in zip(turns, messages, strict=True):
            assert said.at in (None, turn.at)
    assert talks == {}
    assert statements(app) == sorted(export.statements)
    assert report["progress"]["recorded"] == sum(map(len, export.sessions.values()))
    assert report["progress"]["remembered"] == len(export.statements)
    assert report["survey"]["left_out"] == export.left_out


@pytest.mark.parametrize("export", EXPORTS.values(), ids=EXPORTS.keys())
def test_a_second_import_stores_nothing(app: MemoryApp, owner: Engine, export: Export) -> None:
    first = import_all(app, export)["progress"]
    before = {table: count(owner, table) for table in ("turns", "sessions", "memories", "evidence", "links")}
    second = import_all(app, export)["progress"]
    assert {table: count(owner, table) for table in before} == before
    assert (second["recorded"], second["remembered"], second["refused"]) == (0, 0, {})
    assert second["known"] == first["recorded"] + first["remembered"] > 0


@pytest.mark.parametrize("export", (CHATGPT, MEM0), ids=("turns", "statements"))
def test_an_export_of_what_was_imported_brings_it_back_equal(app: MemoryApp, export: Export) -> None:
    import_all(app, export)
    finder.drain(app.runtime)
    lines = list(app.export_lines(user="mira"))
    before = (stored(app), statements(app))
    app.forget("mira")
    with pytest.raises(NotFound):
        stored(app)
    app.import_lines(lines, new_consent=True)
    assert (stored(app), statements(app)) == before


def test_a_dry_run_reports_and_stores_nothing(app: MemoryApp, owner: Engine) -> None:
    run = app.import_file(MIRA, WHATSAPP.content, dry_run=True)
    assert run.report["dry_run"] is True
    (talk,) = run.report["survey"]["conversations"]
    assert {speaker["name"]: speaker["turns"] for speaker in talk["speakers"]} == {"Anna": 2, "Ben": 2}
    assert talk["first_at"] == "2024-12-31T21:41:00+00:00"
    # What the real import would ask for.
    assert run.report["survey"]["missing"][0].startswith("speakers: ")
    assert {table: count(owner, table) for table in ("turns", "memories", "sessions")} == dict.fromkeys(
        ("turns", "memories", "sessions"), 0
    )
    with pytest.raises(InvalidInput, match="is the user"):
        app.import_file(MIRA, WHATSAPP.content)


def test_people_of_a_room_stay_apart(app: MemoryApp) -> None:
    app.change_agent("ada", policy={"group": True})
    app.import_file(Scope("ada", "cooks"), WHATSAPP.content)
    ((_, turns),) = stored(app, "cooks").items()
    assert {(turn.speaker, turn.role) for turn in turns} == {("Anna", "user"), ("Ben", "user")}


def test_statements_say_where_they_are_from_and_when_they_held(app: MemoryApp) -> None:
    import_all(app, MEM0)
    (walnuts,) = [row for row in app.memories(MIRA, limit=10) if row.text == "Allergic to walnuts"]
    assert (walnuts.origin, walnuts.tags) == ("imported", ("health",))
    assert walnuts.valid_from.isoformat().startswith("2025-02-03T")
    assert [row.origin for row in app.memories(MIRA)] == ["imported", "imported"]


def test_what_was_forgotten_stays_forgotten(app: MemoryApp) -> None:
    import_all(app, CHATGPT)
    (turn, _) = app.turns(Scope("ada", "mira", "chatgpt-c-1"))
    app.forget_turn(turn.id)
    progress = import_all(app, CHATGPT)["progress"]
    assert (progress["recorded"], progress["known"], progress["refused"]) == (0, 3, {"erased": 1})


def test_speakers_told_otherwise_are_refused_and_nothing_doubles(app: MemoryApp) -> None:
    import_all(app, WHATSAPP)
    progress = app.import_file(MIRA, WHATSAPP.content, speakers={"Ben": "user"}).report["progress"]
    assert (progress["recorded"], progress["refused"]) == (0, {"conflict": 4})


def test_a_message_that_is_too_long_costs_no_other(app: MemoryApp) -> None:
    limit = app.runtime.settings.record.text_limit_chars
    messages = [{"role": "user", "content": words} for words in ("I sail.", "x" * (limit + 1), "I ski.")]
    progress = app.import_file(MIRA, json.dumps(messages).encode()).report["progress"]
    assert (progress["recorded"], progress["refused"]) == (2, {"too_large": 1})


def test_a_cut_file_brings_nothing(app: MemoryApp, owner: Engine) -> None:
    with pytest.raises(InvalidInput, match=r"\[1\]: ends in the middle"):
        app.import_file(MIRA, CHATGPT.content[:-200])
    assert count(owner, "turns") == 0


def test_an_agent_without_memory_takes_no_file(app: MemoryApp) -> None:
    app.change_agent("ada", policy={"memory": False})
    with pytest.raises(Conflict, match="its memory is off"):
        app.import_file(MIRA, CHATGPT.content)


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"format": "icq"}, "format"),
        ({"time_zone": "Nowhere/City"}, "time_zone"),
        ({"date_order": "ymd"}, "date_order"),
        ({"speakers": {"Anna": "boss"}}, "speakers"),
        ({"speakers": {"": "user"}}, "speakers"),
    ],
)
def test_what_is_wrong_with_an_import_is_named(app: MemoryApp, options: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        app.import_file(MIRA, CHATGPT.content, **options)
    assert raised.value.field == field


def test_a_file_sent_over_http_is_imported_by_a_worker(
    client: TestClient, app: MemoryApp, runtime: Runtime, owner: Engine
) -> None:
    answer = client.post(IMPORTS, content=WHATSAPP.content, params={"speakers": '{"Anna": "user"}'})
    assert (answer.status_code, answer.json()["state"]) == (202, "queued")
    assert count(owner, "import_parts") == 1
    finder.drain(runtime)
    run = client.get(f"/v1/runs/{answer.json()['id']}").json()
    assert run["state"] == "done", run
    assert run["report"]["progress"]["recorded"] == 4
    assert run["report"]["survey"]["conversations"][0]["turns"] == 4
    assert [len(turns) for turns in stored(app).values()] == [4]
    # Neither the file nor who was named for it is kept.
    assert count(owner, "import_parts") == 0
    with owner.connect() as connection:
        options = connection.execute(text("SELECT options FROM runs WHERE name = 'import_file'")).scalar_one()
    assert "Anna" not in json.dumps(options)


def test_a_large_file_is_spooled_and_kept_in_parts(
    client: TestClient, app: MemoryApp, runtime: Runtime, owner: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(imports, "PART_BYTES", 1_000)
    run = client.post(IMPORTS, content=CHATGPT.content).json()
    assert count(owner, "import_parts") == -(-len(CHATGPT.content) // 1_000) > 3
    finder.drain(runtime)
    assert client.get(f"/v1/runs/{run['id']}").json()["state"] == "done"
    assert len(stored(app)) == 2


def test_a_file_that_cannot_be_read_fails_its_run_and_goes(
    client: TestClient, runtime: Runtime, owner: Engine
) -> None:
    run = client.post(IMPORTS, content=CHATGPT.content[:-200]).json()
    finder.drain(runtime)
    state = client.get(f"/v1/runs/{run['id']}").json()
    assert (state["state"], "ends in the middle" in state["reason"]) == ("failed", True)
    assert count(owner, "import_parts") == 0


def test_a_worker_goes_on_where_the_last_one_stopped(
    client: TestClient, app: MemoryApp, runtime: Runtime, tenant: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With turns of no length it gives the run back after each conversation, and none is done twice."""
    monkeypatch.setattr(imports, "SLICE_SECONDS", 0.0)
    talks = [chatgpt_conversation(f"c-{number}") for number in range(5)]
    run = client.post(IMPORTS, content=json.dumps(talks).encode()).json()
    calls = []

    def counted(*args: Any, **kwargs: Any) -> Any:
        calls.append(args)
        return record_module.record(*args, **kwargs)

    monkeypatch.setattr(import_storage, "record", counted)
    while finder.drain(runtime).runs:
        pass
    report = client.get(f"/v1/runs/{run['id']}").json()["report"]
    assert report["progress"] == {
        "items": 30,
        "recorded": 10,
        "remembered": 0,
        "known": 0,
        "refused": {},
    }
    assert len(calls) == 5
    assert len(stored(app)) == 5


def test_an_import_waits_while_the_workers_have_too_much_to_do(
    client: TestClient, runtime: Runtime, tenant: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = client.post(IMPORTS, content=CHATGPT.content).json()

    def full(*_: Any, **__: Any) -> None:
        raise RateLimited("too much", retry_after=40)

    with monkeypatch.context() as patched:
        patched.setattr(import_storage, "record", full)
        finder.drain(runtime)
    with transaction(runtime.engine, tenant) as connection:
        row = runs.read(connection, UUID(run["id"]))
    assert row is not None
    # Nothing failed, and no start is held against it.
    assert (row.state, row.attempts, row.report["progress"]["recorded"]) == (RunState.RUNNING, 0, 0)


def test_a_quota_ends_an_import_and_says_so(
    client: TestClient, runtime: Runtime, owner: Engine, tenant: int
) -> None:
    with owner.begin() as connection:
        connection.execute(
            text("""UPDATE tenants SET limits = '{"user_turns": 3}' WHERE id = :id"""), {"id": tenant}
        )
    run = client.post(IMPORTS, content=CHATGPT.content).json()
    finder.drain(runtime)
    state = client.get(f"/v1/runs/{run['id']}").json()
    assert (state["state"], "user_turns" in state["reason"]) == ("failed", True)
    assert state["report"]["progress"]["recorded"] == 2
    assert count(owner, "import_parts") == 0


def test_a_person_who_was_erased_does_not_come_back(
    client: TestClient, app: MemoryApp, runtime: Runtime, owner: Engine
) -> None:
    run = client.post(IMPORTS, content=CHATGPT.content).json()
    report = app.forget("mira").report
    assert report["counts"]["import_parts"] == 1
    finder.drain(runtime)
    assert client.get(f"/v1/runs/{run['id']}").status_code == 404
    assert {table: count(owner, table) for table in ("turns", "import_parts")} == {
        "turns": 0,
        "import_parts": 0,
    }


def test_an_import_under_way_stops_at_an_erasure(
    app: MemoryApp, runtime: Runtime, owner: Engine, client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The person is erased between two conversations: what comes after would bring them back."""
    client.post(IMPORTS, content=CHATGPT.content)
    real = record_module.record
    done = 0

    def erased_after_the_first(*args: Any, **kwargs: Any) -> Any:
        nonlocal done
        done += 1
        if done == 2:
            app.forget("mira")
        return real(*args, **kwargs)

    monkeypatch.setattr(import_storage, "record", erased_after_the_first)
    finder.drain(runtime)
    assert done >= 2
    assert {table: count(owner, table) for table in ("turns", "users")} == {"turns": 0, "users": 0}


def test_the_report_forgets_with_a_session_who_spoke_in_it(app: MemoryApp, tenant: int) -> None:
    run = app.import_file(MIRA, CHATGPT.content)
    app.forget_session(Scope("ada", "mira", "chatgpt-c-1"))
    report = app.run(run.id).report
    assert "survey" not in report
    assert report["progress"]["recorded"] == 4


def test_too_many_files_that_wait_are_refused(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(imports, "WAITING_LIMIT", 2)
    for _ in range(2):
        assert client.post(IMPORTS, content=CHATGPT.content).status_code == 202
    refused = client.post(IMPORTS, content=CHATGPT.content)
    assert (refused.status_code, "Retry-After" in refused.headers) == (429, True)


@pytest.mark.parametrize(
    ("params", "content", "field"),
    [
        ({"format": "icq"}, b"[]", "format"),
        ({"speakers": "Anna"}, b"[]", "speakers"),
        ({"speakers": '{"Anna": "boss"}'}, b"[]", "speakers"),
        ({"session": "a\nb"}, b"[]", "session"),
        ({"colour": "red"}, b"[]", "colour"),
        ({}, b"", "file"),
    ],
)
def test_bad_requests_name_the_field(
    client: TestClient, owner: Engine, params: dict[str, str], content: bytes, field: str
) -> None:
    answer = client.post(IMPORTS, content=content, params=params)
    assert (answer.status_code, answer.json()["error"].get("field")) == (422, field)
    assert count(owner, "import_parts") == 0


def test_the_command_imports_a_file_with_its_speakers(memory: Memory, tenant: int, tmp_path: Path) -> None:
    file = tmp_path / "chat.txt"
    file.write_text(WHATSAPP_TEXT, encoding="utf-8")

    def run(*options: str) -> Done:
        return memory("import", str(file), "--user", "anna", "--tenant", "acme", *options)

    done = run("--dry-run")
    # The cells of a table are folded where the terminal is narrow.
    assert (done.status, "Ben" in done.out, "nothing was stored" in done.out) == (0, True, True)
    (talk,) = run("--dry-run", "--json").json["survey"]["conversations"]
    assert {speaker["name"]: speaker["role"] for speaker in talk["speakers"]}["Ben"] == "assistant"
    done = run()
    assert (done.status, "is the user" in done.err) == (1, True)
    done = run("--speaker", "Anna=user", "--json")
    assert (done.status, done.json["progress"]["recorded"]) == (0, 4)
    done = run("--speaker", "Anna=user")
    assert (done.status, "known 4" in done.out) == (0, True)
    done = run("--speaker", "Anna")
    assert (done.status, "NAME=user" in done.err) == (1, True)


def test_turns_of_a_file_can_be_searched_like_any(app: MemoryApp) -> None:
    import_all(app, WHATSAPP)
    finder.drain(app.runtime)
    hits = app.recall(MIRA, "where did I move?").memories
    assert "Graz" in " ".join(hit.text for hit in hits)


def test_what_is_said_after_an_import_goes_on_in_the_session(app: MemoryApp) -> None:
    import_all(app, CHATGPT)
    session = Scope("ada", "mira", "chatgpt-c-1")
    app.record(session, "And on Sundays?")
    assert [turn.seq for turn in app.turns(session)] == [1, 2, 3]
