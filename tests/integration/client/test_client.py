"""Both clients against a real server: the words and results of the facade, over HTTP."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from threading import Event, Thread
from typing import Any
from uuid import uuid4

import httpx2
import pytest
from api_server import serving
from free_ports import free_port
from queries import rows
from sqlalchemy import Engine

from memory_app import MemoryApp
from memory_app.client import AsyncMemoryClient, MemoryClient, Retries, Scope
from memory_app.errors import Conflict, Forbidden, InvalidInput, NotFound, NotSent, Unauthorized
from memory_app.runtime import Runtime
from memory_app.tenancy.rows import keys

MIRA = Scope("ada", "mira/of lisbon")
CHAT = Scope("ada", "mira/of lisbon", "chat ..")
PATIENT = Retries(attempts=8, first_seconds=0.2)

Use = Callable[..., Any]


class _LosesFirstAnswer(httpx2.BaseTransport):
    """Reaches the server, and drops the first answer that comes."""

    def __init__(self) -> None:
        self.inner = httpx2.HTTPTransport()
        self.failed = Event()
        self.answers = 0

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        try:
            response = self.inner.handle_request(request)
        except httpx2.ConnectError:
            self.failed.set()
            raise
        self.answers += 1
        if self.answers > 1:
            return response
        response.read()
        raise httpx2.ReadError("the answer is lost", request=request)

    def close(self) -> None:
        self.inner.close()


@pytest.fixture
def url(runtime: Runtime) -> Iterator[str]:
    with serving(runtime) as port:
        yield f"http://127.0.0.1:{port}"


@pytest.fixture(params=["sync", "async"])
def use(request: pytest.FixtureRequest, url: str, api_key: str) -> Iterator[Use]:
    """Calls a method of one of the clients; the loop of the asynchronous one lives as long as it does."""
    if request.param == "sync":
        with MemoryClient(url, api_key) as client:
            yield lambda method, /, *args, **kwargs: getattr(client, method)(*args, **kwargs)
        return
    with asyncio.Runner() as runner:
        slow = AsyncMemoryClient(url, api_key)

        async def call(method: str, /, *args: Any, **kwargs: Any) -> Any:
            answer = getattr(slow, method)(*args, **kwargs)
            if hasattr(answer, "__aiter__"):
                return [line async for line in answer]
            return await answer

        yield lambda *args, **kwargs: runner.run(call(*args, **kwargs))
        runner.run(slow.close())


def test_what_is_recorded_and_remembered_is_read_back(use: Use) -> None:
    ticket = use("record", CHAT, "I live in Porto.", name="Mira", metadata={"app": "test"})
    use("record_all", CHAT, [{"role": "assistant", "content": "Noted."}, {"role": "user", "content": "Yes."}])
    assert use("ticket", ticket.id).stage in ("accepted", "indexed")
    turns = use("turns", CHAT).turns
    assert [(turn.name, turn.content) for turn in turns] == [
        ("Mira", "I live in Porto."),
        ("ada", "Noted."),
        ("mira/of lisbon", "Yes."),
    ]
    assert turns[0].metadata == {"app": "test"}
    assert [session.session for session in use("sessions", MIRA, active=True).sessions] == ["chat .."]

    stored = use("remember", CHAT, "Mira keeps bees.", importance=8, tags=["animals"])
    assert stored.outcome == "inserted"
    assert use("memory", stored.id).session == "chat .."
    (hit, *_) = use("recall", CHAT, "bees", tiers=["facts"]).memories
    assert (hit.id, hit.text, hit.importance) == (stored.id, "Mira keeps bees.", 8)
    window = use("context", CHAT, "What about the bees?", budget_tokens=500)
    assert "Mira keeps bees." in window.text
    assert window.messages is not None and window.messages[0].role == "system"
    assert use("pin", stored.id).pinned is True
    assert use("unpin", stored.id).pinned is False
    assert use("why", stored.id).memory.id == stored.id
    assert use("correct", stored.id, "Mira keeps three hives of bees.").outcome == "superseded"
    assert len(use("versions", stored.id).memories) == 2
    assert use("feedback", MIRA, use("memories", MIRA).memories[0].id, "up").label == "up"
    assert use("stats", MIRA).turns == 3


def test_facts_in_time_and_entities(use: Use) -> None:
    use("add_fact", MIRA, "Mira", "lives_in", "Porto", subject_type="person")
    use("add_fact", MIRA, "Mira", "lives_in", "Lisbon")
    assert [fact.object for fact in use("facts", MIRA, relation="lives_in").facts] == ["Lisbon"]
    assert len(use("facts", MIRA, subject="Mira", history=True).facts) == 2
    assert [fact.object for fact in use("facts", MIRA, query="lisbon", match="keyword").facts] == ["Lisbon"]
    keys_ = [entity.key for entity in use("entities", MIRA).entities]
    assert "person:mira" in keys_
    assert use("entity", MIRA, "person:mira").label == "Mira"


def test_a_run_is_asked_for_and_followed(use: Use) -> None:
    use("remember", MIRA, "Mira keeps bees.")
    run = use("sleep", MIRA, dry_run=True)
    assert use("run", run.id, wait_seconds=0.1).state == "queued"
    assert use("trace", run.id).origin == "run"


def test_agents_users_tools_and_keys(use: Use) -> None:
    assert use("change_agent", "ada", policy={"extraction": "off"}).policy["extraction"] == "off"
    assert use("amend_agent", "ada", persona={"name": "Ada L."}).persona["name"] == "Ada L."
    assert use("change_agent", "ada", policy=None).policy["extraction"] == "rules"
    assert use("agent", "ada").persona["name"] == "Ada L."
    assert use("change_user", "mira/of lisbon", time_zone="Europe/Lisbon").zone_is_set
    assert use("user", "mira/of lisbon").time_zone == "Europe/Lisbon"
    assert use("tools").tools[0]["type"] == "function"
    use("remember", MIRA, "Mira keeps bees.")
    for arguments in ({"query": "bees"}, json.dumps({"query": "bees"})):
        assert "bees" in use("call_tool", MIRA, "search_memory", arguments).text
    assert use("call_tool", MIRA, "search_memory", {"question": 1}).is_error
    new = use("make_key", rights=["read"], user="mira/of lisbon", days=1)
    assert new.expires_at is not None
    use("revoke_key", new.id)
    assert [key.revoked_at is not None for key in use("keys").keys if key.id == new.id] == [True]
    assert "agent.change" in [entry.action for entry in use("audit").entries]
    assert use("verify_audit").broken_at is None


def test_a_scope_goes_out_is_forgotten_and_comes_back(use: Use) -> None:
    use("record", CHAT, "I keep bees, and a line\u2028break\x85s.")
    use("remember", MIRA, "Mira keeps bees.")
    kept = use("checkpoint", MIRA)
    assert use("checkpoints", MIRA).checkpoints[0].id == kept.id
    assert use("read_checkpoint", MIRA, kept.id)["format"] == "memory-snapshot"
    snapshot = use("export", MIRA)
    lines = [json.loads(line) for line in use("export_lines", user=MIRA.user)]
    assert "counts" in lines[-1]
    assert use("report_user", MIRA.user).agents[0].counts["turns"] == 1
    run = use("forget", MIRA.user)
    assert use("erasure", run.report["erasure"]).counts["turns"] == 1
    with pytest.raises(Conflict):
        use("load", MIRA, snapshot)
    assert use("load", MIRA, snapshot, new_consent=True).counts["turns"] == 1
    assert "line" in use("turns", CHAT).turns[0].content


def test_errors_are_those_of_the_facade(use: Use, runtime: Runtime, tenant: int) -> None:
    facade = MemoryApp(runtime, tenant)
    use("remember", MIRA, "Mira keeps bees.")
    wrong: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
        ("recall", (MIRA, "Where?"), {"kinds": ["nonsense"]}),
        ("recall", (MIRA, "Where?"), {"tiers": ["nonsense"]}),
        ("recall", (Scope("ada", "nobody"), "Where?"), {}),
        ("facts", (MIRA,), {"query": "bees", "match": "guess"}),
        ("remember", (MIRA, ""), {}),
        ("memory", (uuid4(),), {}),
        ("feedback", (MIRA, uuid4(), "up"), {}),
        ("feedback", (MIRA, uuid4(), "sideways"), {}),
        ("feedback", (MIRA, "not-a-uuid", "up"), {}),
        ("tools", ("pigeon",), {}),
        ("audit", (), {"action": "dance"}),
        ("make_key", (), {"days": 0}),
    ]
    for method, args, kwargs in wrong:
        errors = []
        for call in (use, lambda method, *args, **kwargs: getattr(facade, method)(*args, **kwargs)):
            with pytest.raises((InvalidInput, NotFound)) as caught:
                call(method, *args, **kwargs)
            errors.append((type(caught.value).__name__, caught.value.field))
        over_http, in_process = errors
        assert over_http[0] == in_process[0], method
        # A list is told with the place in it where a request is checked as a whole.
        assert (over_http[1] or "").partition("[")[0] == (in_process[1] or ""), (method, errors)


def test_a_key_that_is_wrong_or_lacks_a_right(url: str, owner: Engine, tenant: int) -> None:
    with owner.begin() as connection:
        _, key = keys.create(connection, "acme", rights=["read"])
    with MemoryClient(url, "mem_wrong") as client, pytest.raises(Unauthorized):
        client.recall(MIRA, "Where?")
    with MemoryClient(url, key) as client, pytest.raises(Forbidden, match="record") as caught:
        client.record(CHAT, "Hello.")
    assert caught.value.request_id is not None


def test_a_turn_is_there_once_although_an_answer_was_lost(
    runtime: Runtime, api_key: str, owner: Engine
) -> None:
    """The first attempt meets no server; the answer of the second is lost on the way."""
    port = free_port()
    losing = _LosesFirstAnswer()
    client = MemoryClient(f"http://127.0.0.1:{port}", api_key, retries=PATIENT, transport=losing)
    with client:
        tickets: list[Any] = []
        thread = Thread(target=lambda: tickets.append(client.record(CHAT, "I keep bees.")))
        thread.start()
        losing.failed.wait(30)
        with serving(runtime, port=port):
            thread.join(60)
    assert len(tickets) == 1
    assert losing.answers >= 2
    assert rows(owner, "SELECT count(*) AS turns FROM turns")[0].turns == 1


def test_without_a_server_the_error_says_so() -> None:
    client = MemoryClient(f"http://127.0.0.1:{free_port()}", "key", retries=Retries(attempts=1))
    with client, pytest.raises(NotSent):
        client.stats(MIRA)
