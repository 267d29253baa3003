"""Everything wrong that a caller can send: the status, the kind of error and the field, and never a 500."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import pytest
from pydantic import SecretStr
from sqlalchemy import create_engine
from sqlalchemy.pool import NullPool
from starlette.testclient import TestClient

from memory_app.local import embedded
from memory_app.local.embedded import Servers
from memory_app.main.http import create_app
from memory_app.runtime import build
from memory_app.settings import Database, Embedding, Http, Redis, Settings
from memory_app.tenancy.rows import keys

BODY_LIMIT_BYTES = 300_000
SCOPE = "/v1/agents/ada/users/mira"
TURNS = f"{SCOPE}/sessions/chat/turns"
UNKNOWN = "019af0c2-7d1e-7cc3-98c4-dc0c0c07398f"
SECRET = "a word that nobody may repeat"


@pytest.fixture(scope="module")
def client(servers: Servers, template: Servers) -> Iterator[TestClient]:
    """One application for the whole file: what is refused leaves nothing behind."""
    name = f"test_{uuid4().hex[:12]}"
    database = embedded.create_database(servers, name, template="template_migrated")
    owner = create_engine(database.owner_url, poolclass=NullPool)
    with owner.begin() as connection:
        _, key = keys.create(connection, "acme", rights=keys.RIGHTS)
    owner.dispose()
    runtime = build(
        Settings(
            _env_file=None,
            database=Database(url=SecretStr(database.app_url)),
            redis=Redis(url=SecretStr(database.redis_url), prefix=f"{name}:"),
            embedding=Embedding(provider="hash"),
            http=Http(body_limit_bytes=BODY_LIMIT_BYTES),
        )
    )
    client = TestClient(create_app(runtime), headers={"Authorization": f"Bearer {key}"})
    assert client.post(TURNS, json=turn()).status_code == 202
    yield client
    runtime.close()
    embedded.drop_database(servers, name)


def turn(**fields: object) -> dict[str, object]:
    return {"role": "user", "content": "I water the plants on Mondays.", **fields}


def nested(depth: int) -> dict[str, object]:
    return {"a": nested(depth - 1) if depth > 1 else 1}


@dataclass(frozen=True)
class Bad:
    """A request, and the field and status with which it must be refused."""

    said: str
    path: str
    body: Any
    field: str | None
    status: int = 422
    kind: str = "invalid_input"


MEMORIES, RECALL, CONTEXT = f"{SCOPE}/memories", f"{SCOPE}/recall", f"{SCOPE}/context"
ADA = "/v1/agents/ada"

BODIES = [
    Bad("no body", TURNS, None, "body"),
    Bad("an empty turn", TURNS, {}, "content"),
    Bad("an empty batch", TURNS, {"turns": []}, "turns"),
    Bad("a list", TURNS, [turn()], "body"),
    Bad("only characters that cannot be stored", TURNS, turn(content="\x00\ud800"), "content"),
    Bad("text that is a number", TURNS, turn(content=7), "content"),
    Bad("text that is null", TURNS, turn(content=None), "content"),
    Bad("long text", TURNS, turn(content="a" * 100_001), "content", 413, "too_large"),
    Bad("an unknown field", TURNS, turn(mood="fine"), "mood"),
    Bad("an unknown field with a strange name", TURNS, turn(**{SECRET: 1}), "?"),
    Bad("an unknown role", TURNS, turn(role="narrator"), "role"),
    Bad("no role", TURNS, {"content": "hello there"}, "role"),
    Bad("an empty name", TURNS, turn(name=""), "name"),
    Bad("a long name", TURNS, turn(name="n" * 201), "name"),
    Bad("a name with a line end", TURNS, turn(name="a\nb"), "name"),
    Bad("a time without zone", TURNS, turn(at="2026-01-31T09:00:00"), "at"),
    Bad("a time that does not exist", TURNS, turn(at="2026-02-30T09:00:00Z"), "at"),
    Bad("a time that is true", TURNS, turn(at=True), "at"),
    Bad("a time beyond all years", TURNS, turn(at=1e300), "at"),
    Bad("a year out of range", TURNS, turn(at="0001-01-01T00:00:00Z"), "at"),
    Bad("an empty key", TURNS, turn(idempotency_key=""), "idempotency_key"),
    Bad("a long key", TURNS, turn(idempotency_key="k" * 201), "idempotency_key"),
    Bad("a long tone", TURNS, turn(emotional_tone="t" * 101), "emotional_tone"),
    Bad("too many tools", TURNS, turn(tools_used=["t"] * 65), "tools_used"),
    Bad("a tool that is a number", TURNS, turn(tools_used=[1]), "tools_used[0]"),
    Bad("large metadata", TURNS, turn(metadata={"a": "b" * 9000}), "metadata", 413, "too_large"),
    Bad("deep metadata", TURNS, turn(metadata=nested(9)), "metadata"),
    Bad("metadata that is a list", TURNS, turn(metadata=[1]), "metadata"),
    Bad("a wrong turn in a batch", TURNS, {"turns": [turn(), turn(role="x")]}, "turns[1].role"),
    Bad("an empty turn in a batch", TURNS, {"turns": [turn(), turn(content="\x00")]}, "turns[1].content"),
    Bad("an empty turn alone in a batch", TURNS, {"turns": [turn(content="\x00")]}, "turns[0].content"),
    Bad("a message of no role", TURNS, {"messages": [{"content": "hello there"}]}, "messages[0].role"),
    Bad("too many messages", TURNS, {"messages": [turn(content="x")] * 501}, "messages", 413, "too_large"),
    Bad("too many turns", TURNS, {"turns": [turn(content="x")] * 501}, "turns", 413, "too_large"),
    Bad("a batch with other fields", TURNS, {"turns": [turn()], "role": "user"}, "role"),
    Bad("no query and no fields", RECALL, {"query": ""}, "query"),
    Bad("a long query", RECALL, {"query": "q" * 8_001}, "query"),
    Bad("a limit of zero", RECALL, {"query": "q", "limit": 0}, "limit"),
    Bad("a huge limit", RECALL, {"query": "q", "limit": 10**12}, "limit"),
    Bad("a limit in words", RECALL, {"query": "q", "limit": "5"}, "limit"),
    Bad("a limit that is true", RECALL, {"query": "q", "limit": True}, "limit"),
    Bad("no kinds", RECALL, {"query": "q", "kinds": []}, "kinds"),
    Bad("an unknown kind", RECALL, {"query": "q", "kinds": ["fakt"]}, "kinds"),
    Bad("an unknown tier", RECALL, {"query": "q", "tiers": ["fact"]}, "tiers[0]"),
    Bad("no tags", RECALL, {"query": "q", "tags": []}, "tags"),
    Bad("a misspelt filter", RECALL, {"query": "q", "kindz": ["fact"]}, "kindz"),
    Bad("an empty session", RECALL, {"query": "q", "session": ""}, "session"),
    Bad("an unknown session", RECALL, {"query": "q", "session": "nowhere"}, "session", 404, "not_found"),
    Bad("an unknown preset", RECALL, {"query": "q", "preset": "best"}, "preset"),
    Bad("an importance off the scale", RECALL, {"query": "q", "min_importance": 11}, "min_importance"),
    Bad("a time without zone", RECALL, {"query": "q", "as_of": "2026-01-31"}, "as_of"),
    Bad("an unknown user", "/v1/agents/ada/users/nobody/recall", {"query": "q"}, "agent", 404, "not_found"),
    Bad("an unknown agent", "/v1/agents/nobody/users/mira/recall", {"query": "q"}, "agent", 404, "not_found"),
    Bad("no budget", CONTEXT, {"budget_tokens": 0}, "budget_tokens"),
    Bad("a huge budget", CONTEXT, {"budget_tokens": 10**9}, "budget_tokens"),
    Bad("less than no turns", CONTEXT, {"turns": -1}, "turns"),
    Bad("an unknown format", CONTEXT, {"format": "yaml"}, "format"),
    Bad("an unknown preset", CONTEXT, {"query": "q", "preset": "best"}, "preset"),
    Bad("no text", MEMORIES, {}, "text"),
    Bad("empty text", MEMORIES, {"text": " "}, "text"),
    Bad("long text", MEMORIES, {"text": "a" * 8_001}, "text", 413, "too_large"),
    Bad("an unknown kind", MEMORIES, {"text": "a", "kind": "fakt"}, "kind"),
    Bad("a subtype of another kind", MEMORIES, {"text": "a", "kind": "core", "subtype": "habit"}, "subtype"),
    Bad("an empty tag", MEMORIES, {"text": "a", "tags": [""]}, "tags"),
    Bad("too many tags", MEMORIES, {"text": "a", "tags": [str(n) for n in range(33)]}, "tags", 413, "too_large"),
    Bad("a relation without subject", MEMORIES, {"text": "a", "relation": "likes"}, "subject"),
    Bad("a subject of signs", MEMORIES, {"text": "a", "subject": "!", "relation": "likes"}, "subject"),
    Bad("an end before the beginning", MEMORIES, {
        "text": "a", "valid_from": "2026-02-01T00:00:00Z", "valid_until": "2026-01-01T00:00:00Z"
    }, "valid_until"),
    Bad("an unknown feeling", MEMORIES, {
        "text": "a", "emotional_state": {"valence": "meh"}
    }, "emotional_state.valence"),
    Bad("a bond that is a word", MEMORIES, {
        "text": "a", "relational_context": {"bond_strength": "strong"}
    }, "relational_context.bond_strength"),
    Bad("pinned in words", MEMORIES, {"text": "a", "pinned": "yes"}, "pinned"),
    Bad("importance in words", MEMORIES, {"text": "a", "importance": "high"}, "importance"),
    Bad("an unknown part", ADA, {"model": "x"}, "model"),
    Bad("an unknown switch", ADA, {"policy": {"extractoin": "off"}}, "policy.extractoin"),
    Bad("an unknown mode", ADA, {"policy": {"extraction": "always"}}, "policy.extraction"),
    Bad("a persona without name", ADA, {"persona": {}}, "persona.name"),
    Bad("a trait off the scale", ADA, {
        "persona": {"name": "Ada", "traits": [{"name": "kind", "intensity": 1}, {"name": "odd", "intensity": 11}]}
    }, "persona.traits[1].intensity"),
    Bad("an empty default", ADA, {"default_memories": [{"text": "a"}, {"text": ""}]}, "default_memories[1].text"),
    Bad("a default of no kind", ADA, {"default_memories": [{"text": "a", "kind": "x"}]}, "default_memories[0].kind"),
]  # fmt: skip


@pytest.mark.parametrize("bad", BODIES, ids=lambda bad: f"{bad.path.split('/')[-1]}: {bad.said}")
def test_a_wrong_body_is_refused_with_the_field_and_without_its_value(client: TestClient, bad: Bad) -> None:
    method = "PUT" if bad.path == ADA else "POST"
    content = None if bad.body is None else json.dumps(bad.body)  # keeps lone surrogates as escapes
    answer = client.request(method, bad.path, content=content, headers={"Content-Type": "application/json"})

    assert_refused(answer, status=bad.status, kind=bad.kind, field=bad.field)
    assert SECRET not in answer.text


def assert_refused(answer: Any, *, status: int, kind: str, field: str | None) -> None:
    assert (answer.status_code, answer.json()["error"]["type"]) == (status, kind), answer.text
    assert answer.json()["error"].get("field") == field, answer.text
    assert answer.json()["error"]["message"]
    assert set(answer.json()["error"]) <= {"type", "message", "field", "retry_after", "request_id"}


@pytest.mark.parametrize(
    "content",
    [
        b"{",
        b"not json",
        b'{"role": "user", "content": "\xff\xfe"}',
        b'{"role": "user", "content": "hi", "metadata": {"n": NaN}}',
        b'{"role": "user", "content": "hi", "metadata": {"n": -Infinity}}',
        b'{"role": "user", "content": "hi", "metadata": {"n": 1e999}}',
        b'{"role": "user", "content": "hi", "metadata": {"n": ' + b"9" * 5000 + b"}}",
        b'{"role": "user", "content": "hi", "metadata": {"n": 9223372036854775808}}',
        b"[" * 100_000 + b"]" * 100_000,
        b'{"a":' * 20_000 + b"1" + b"}" * 20_000,
        b'{"role": "user", "content": "hi"',
        b"\x00",
        "{}".encode("utf-16"),
    ],
    ids=lambda content: repr(content[-40:]),
)
def test_what_is_not_json_is_refused_with_400(client: TestClient, content: bytes) -> None:
    answer = client.post(TURNS, content=content, headers={"Content-Type": "application/json"})

    assert_refused(answer, status=400, kind="invalid_input", field="body")


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""]
)
def test_a_body_that_does_not_say_it_is_json_is_refused(client: TestClient, kind: str) -> None:
    answer = client.post(TURNS, content=json.dumps(turn()), headers={"Content-Type": kind} if kind else {})

    assert_refused(answer, status=422, kind="invalid_input", field="body")


def test_a_body_above_the_limit_is_refused_before_it_is_parsed(client: TestClient) -> None:
    answer = client.post(
        TURNS, content=b"{" * (BODY_LIMIT_BYTES + 1), headers={"Content-Type": "application/json"}
    )

    assert_refused(answer, status=413, kind="too_large", field="body")


def test_a_body_that_does_not_announce_its_size_is_cut_off_at_the_limit(client: TestClient) -> None:
    def chunks() -> Iterator[bytes]:
        for _ in range(100):
            yield b"[" * 10_000

    answer = client.post(TURNS, content=chunks(), headers={"Content-Type": "application/json"})

    assert_refused(answer, status=413, kind="too_large", field="body")


@pytest.mark.parametrize(
    ("path", "field"),
    [
        (f"{TURNS}?limit=0", "limit"),
        (f"{TURNS}?limit=501", "limit"),
        (f"{TURNS}?limit=many", "limit"),
        (f"{TURNS}?limit=", "limit"),
        (f"{TURNS}?limit=5&limit=6", "limit"),
        (f"{TURNS}?lmit=5", "lmit"),
        (f"{TURNS}?{SECRET.replace(' ', '%20')}=5", "?"),
        (f"{SCOPE}/sessions?active=perhaps", "active"),
        (f"{SCOPE}/memories?kind=fakt", "kind"),
        (f"{SCOPE}/memories?kind=", "kind"),
        (f"{SCOPE}/memories?tag=", "tag"),
        (f"{SCOPE}/memories?tags=home", "tags"),
        (f"{SCOPE}/memories?cursor=next", "cursor"),
        (f"{SCOPE}/stats?kind=fact", "kind"),
        (f"{SCOPE}/entities?limit=-1", "limit"),
        ("/v1/turns/7", "id"),
        (f"/v1/turns/{UNKNOWN}?wait_seconds=31", "wait_seconds"),
        (f"/v1/turns/{UNKNOWN}?wait_seconds=nan", "wait_seconds"),
        ("/v1/memories/%7B7%7D", "id"),
        ("/v1/memories/none/why", "id"),
        ("/v1/failed?limit=1000", "limit"),
        ("/v1/failed?tenant=acme", "tenant"),
        ("/v1/agents/%20", "agent"),
        ("/v1/agents/a%00b", "agent"),
        ("/v1/agents/a%1Fb", "agent"),
        (f"/v1/agents/{'a' * 201}", "agent"),
        ("/v1/agents/a%FFb", "path"),
        ("/v1/agents/ada/users/%0A/stats", "user"),
    ],
)
def test_a_wrong_parameter_is_refused(client: TestClient, path: str, field: str) -> None:
    answer = client.get(path)

    assert_refused(answer, status=422, kind="invalid_input", field=field)
    assert SECRET not in answer.text


@pytest.mark.parametrize(
    ("path", "field"),
    [
        (f"{SCOPE}/sessions/nowhere/turns", "session"),
        ("/v1/agents/nobody/users/mira/sessions/chat/turns", "agent"),
        ("/v1/agents/ada/users/nobody/sessions", "agent"),
        ("/v1/agents/ada/users/nobody/memories", "agent"),
        ("/v1/agents/ada/users/nobody/entities", "agent"),
        ("/v1/agents/ada/users/nobody/stats", "agent"),
        ("/v1/agents/nobody", "agent"),
        (f"/v1/turns/{UNKNOWN}", "id"),
        (f"/v1/memories/{UNKNOWN}", "id"),
        (f"/v1/memories/{UNKNOWN}/why", "id"),
    ],
)
def test_what_is_unknown_is_not_found(client: TestClient, path: str, field: str) -> None:
    assert_refused(client.get(path), status=404, kind="not_found", field=field)


def test_clearing_an_unknown_session_is_not_found(client: TestClient) -> None:
    answer = client.delete(f"{SCOPE}/sessions/nowhere/hot")

    assert_refused(answer, status=404, kind="not_found", field="session")


@pytest.mark.parametrize(
    "path", ["/v1", "/v1/nothing", "/v2/agents", f"{SCOPE}/", "//v1/failed", "/v1//failed"]
)
def test_an_unknown_address_answers_in_the_same_shape(client: TestClient, path: str) -> None:
    assert_refused(client.get(path), status=404, kind="not_found", field=None)


def test_an_unknown_method_answers_in_the_same_shape(client: TestClient) -> None:
    answer = client.patch(f"{SCOPE}/stats")

    assert_refused(answer, status=405, kind="method_not_allowed", field=None)
    assert answer.headers["Allow"] == "GET"


def test_one_key_cannot_stand_for_two_turns(client: TestClient) -> None:
    key = uuid4().hex
    assert client.post(TURNS, json=turn(idempotency_key=key)).status_code == 202

    answer = client.post(TURNS, json=turn(idempotency_key=key, content="Something else entirely."))

    assert_refused(answer, status=422, kind="conflict", field="idempotency_key")


def test_a_key_that_differs_from_the_header_is_refused(client: TestClient) -> None:
    answer = client.post(TURNS, json=turn(idempotency_key="one"), headers={"Idempotency-Key": "other"})

    assert_refused(answer, status=422, kind="invalid_input", field="idempotency_key")


def test_the_key_header_is_for_a_single_turn(client: TestClient) -> None:
    answer = client.post(TURNS, json={"turns": [turn()]}, headers={"Idempotency-Key": "one"})

    assert_refused(answer, status=422, kind="invalid_input", field="Idempotency-Key")


@pytest.mark.parametrize("content", ["a\x00b", "a\ud800b", "\udfff a", "a\x00\ud83d"])
def test_unstorable_characters_are_removed_and_the_ticket_says_so(client: TestClient, content: str) -> None:
    session = f"{SCOPE}/sessions/{uuid4()}/turns"

    answer = client.post(
        session, content=json.dumps(turn(content=content)), headers={"Content-Type": "application/json"}
    )

    assert answer.status_code == 202
    assert answer.json()["tickets"][0]["cleaned"] is True
    stored = client.get(session).json()["turns"][0]["content"]
    assert stored == "".join(c for c in content if c in "ab ")


@pytest.mark.parametrize("content", ["👩‍👩‍👧", "\u202eabc\u202c", "日本語", "a\tb\nc", "e\u0301"])
def test_any_writing_is_kept(client: TestClient, content: str) -> None:
    session = f"{SCOPE}/sessions/{uuid4()}/turns"

    assert client.post(session, json=turn(content=content)).status_code == 202
    assert client.get(session).json()["turns"][0]["content"] in (content, "\u00e9")


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (RECALL, {"query": "plants \x00\ud800"}),
        (RECALL, {"query": "plants", "tags": ["\ud800x"]}),
        (CONTEXT, {"query": "plants \ud800"}),
        (MEMORIES, {"text": "Mira \ud800", "tags": ["\ud800home"], "subject": "M\x00", "relation": "h\ud800as"}),
        (TURNS, turn(metadata={"\ud800a": "\ud800", "b": {"\ud800c": ["\x00"]}}, emotional_tone="\ud800calm")),
    ],
)  # fmt: skip
def test_characters_that_cannot_be_stored_break_nothing_elsewhere(
    client: TestClient, path: str, body: dict[str, object]
) -> None:
    answer = client.post(path, content=json.dumps(body), headers={"Content-Type": "application/json"})

    assert answer.status_code in (200, 201, 202), answer.text
