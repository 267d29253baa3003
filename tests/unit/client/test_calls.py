"""What a client sends, when it tries again, and what errors it raises: against a transport that is scripted."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import httpx2
import pytest

from memory_app import NewTurn, Role, errors
from memory_app.client import AsyncMemoryClient, MemoryClient, Retries, Scope
from memory_app.client.call import Call, nothing
from memory_app.client.wire import Lines
from memory_app.errors import InvalidInput, MemoryAppError, NotSent, RateLimited, ServerUnavailable

CHAT = Scope("ada", "mira", "chat-1")
URL = "http://memory.test/prefix"
AT_ONCE = Retries(attempts=4, first_seconds=0, longest_seconds=0)
TICKET = {
    "id": str(uuid4()),
    "seq": 1,
    "stage": "accepted",
    "duplicate": False,
    "cleaned": False,
    "redacted": {},
}
RUN = {
    "id": str(uuid4()),
    "name": "sleep",
    "state": "queued",
    "report": None,
    "reason": None,
    "attempts": 0,
    "created_at": "2026-01-31T09:00:00Z",
    "finished_at": None,
}

Step = tuple[int, Any] | type[httpx2.TransportError]


@dataclass
class Server:
    """Answers with the steps in order; the last one again and again. An error is raised as if on the way."""

    steps: list[Step]
    headers: dict[str, str] = field(default_factory=dict)
    requests: list[httpx2.Request] = field(default_factory=list)

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        self.requests.append(request)
        step = self.steps.pop(0) if len(self.steps) > 1 else self.steps[0]
        if isinstance(step, type):
            raise step("on the way", request=request)
        status, body = step
        return httpx2.Response(status, json=body, headers=self.headers)

    @property
    def bodies(self) -> list[Any]:
        return [json.loads(request.content) for request in self.requests]


Use = Callable[..., Any]


def with_thread(server: Server, retries: Retries = AT_ONCE) -> Use:
    client = MemoryClient(URL, "key", retries=retries, transport=httpx2.MockTransport(server))
    return lambda method, /, *args, **kwargs: getattr(client, method)(*args, **kwargs)


def with_loop(server: Server, retries: Retries = AT_ONCE) -> Use:
    async def use(method: str, /, *args: Any, **kwargs: Any) -> Any:
        async with AsyncMemoryClient(
            URL, "key", retries=retries, transport=httpx2.MockTransport(server)
        ) as client:
            answer = getattr(client, method)(*args, **kwargs)
            if inspect.isasyncgen(answer):
                return [line async for line in answer]
            assert isinstance(answer, Awaitable)
            return await answer

    return lambda *args, **kwargs: asyncio.run(use(*args, **kwargs))


@pytest.fixture(params=[with_thread, with_loop], ids=["sync", "async"])
def client_of(request: pytest.FixtureRequest) -> Callable[..., Use]:
    maker: Callable[..., Use] = request.param
    return maker


def error(kind: str, **more: Any) -> dict[str, Any]:
    return {"error": {"type": kind, "message": f"{kind} happened", **more}}


# --- what is sent ---------------------------------------------------------------------------------------------


def test_a_turn_goes_out_with_key_name_and_the_key_of_the_api(client_of: Callable[..., Use]) -> None:
    server = Server([(202, {"tickets": [TICKET]})])
    at = datetime(2026, 1, 31, 9, tzinfo=UTC)
    ticket = client_of(server)("record", CHAT, "Hello.", name="Mira", at=at, metadata={"a": 1})
    assert str(ticket.id) == TICKET["id"]
    (request,), (body,) = server.requests, server.bodies
    assert (request.method, request.url.path) == (
        "POST",
        "/prefix/v1/agents/ada/users/mira/sessions/chat-1/turns",
    )
    assert request.headers["authorization"] == "Bearer key"
    assert len(body.pop("idempotency_key")) == 32
    assert body == {
        "role": "user",
        "content": "Hello.",
        "name": "Mira",
        "at": "2026-01-31T09:00:00+00:00",
        "metadata": {"a": 1},
    }


@pytest.mark.parametrize("name", ["..", ".", "a/b", "ä ö", "%2e%2e", "a?b#c", "日本"])
def test_any_name_stays_one_segment_of_the_address(name: str) -> None:
    server = Server([(200, {"turns": []})])
    with_thread(server)("turns", Scope(name, name, name))
    raw = server.requests[0].url.raw_path.decode().partition("?")[0]
    assert (
        raw.count("/") == len(["", "prefix", "v1", "agents", "A", "users", "U", "sessions", "S", "turns"]) - 1
    )
    assert "/../" not in raw and "/./" not in raw


def test_what_is_missing_of_a_scope_is_named_before_anything_is_sent() -> None:
    server = Server([(200, {})])
    use = with_thread(server)
    for scope, name, missing in (
        (Scope("ada"), "recall", "user"),
        (Scope("ada", "mira"), "turns", "session"),
    ):
        with pytest.raises(InvalidInput) as caught:
            use(name, scope)
        assert caught.value.field == missing
    for name, field_name in (("memory", "memory_id"), ("ticket", "turn_id"), ("run", "run_id")):
        with pytest.raises(ValueError, match=f"{field_name}: not a UUID"):
            use(name, "not-a-uuid")
    with pytest.raises(ValueError, match="target: not a UUID"):
        use("feedback", CHAT, "not-a-uuid", "up")
    assert server.requests == []


def test_what_json_cannot_hold_is_refused() -> None:
    use = with_thread(Server([(200, {})]))
    with pytest.raises(InvalidInput, match="JSON"):
        use("record", CHAT, "Hello.", metadata={"a": object()})
    with pytest.raises(InvalidInput, match="JSON"):
        use("recall", CHAT, "Hello?", min_score=float("nan"))


@pytest.mark.parametrize("url", ["memory.test", "ftp://memory.test", "http://", "http://me:it@memory.test"])
def test_an_address_that_cannot_be_used_is_refused(url: str) -> None:
    with pytest.raises(InvalidInput, match="url"):
        MemoryClient(url, "key")


def test_the_key_is_shown_nowhere_and_must_fit_a_header() -> None:
    assert "secret" not in repr(MemoryClient(URL, "secret"))
    with pytest.raises(InvalidInput, match="key"):
        MemoryClient(URL, "two\nlines")


# --- trying again ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [httpx2.ConnectError, httpx2.ReadTimeout, httpx2.RemoteProtocolError])
def test_a_turn_that_is_tried_again_has_the_same_key(client_of: Callable[..., Use], kind: Any) -> None:
    server = Server([kind, (503, error("store_unavailable")), (202, {"tickets": [TICKET, TICKET]})])
    turns = [{"role": "user", "content": "One."}, NewTurn(Role.USER, "Two.", idempotency_key="mine")]
    assert len(client_of(server)("record_all", CHAT, turns)) == 2
    first, second, third = server.bodies
    assert first == second == third
    keys = [turn["idempotency_key"] for turn in first["turns"]]
    assert keys[1] == "mine"
    assert len(keys[0]) == 32


def test_each_call_has_a_key_of_its_own() -> None:
    server = Server([(202, {"tickets": [TICKET]})])
    use = with_thread(server)
    use("record", CHAT, "One.")
    use("record", CHAT, "One.")
    assert len({body["idempotency_key"] for body in server.bodies}) == 2


def test_what_would_be_done_twice_is_not_tried_again(client_of: Callable[..., Use]) -> None:
    for step in (httpx2.ReadTimeout, (503, error("store_unavailable"))):
        server = Server([step])
        with pytest.raises(errors.Transient):
            client_of(server)("feedback", CHAT, uuid4(), "up")
        assert len(server.requests) == 1


def test_what_was_not_sent_or_refused_at_once_is_tried_again(client_of: Callable[..., Use]) -> None:
    server = Server([httpx2.ConnectError, (429, error("rate_limited")), (202, RUN)])
    assert client_of(server)("sleep", CHAT).state == "queued"
    assert len(server.requests) == 3


def test_attempts_come_to_an_end(client_of: Callable[..., Use]) -> None:
    server = Server([httpx2.ConnectError])
    with pytest.raises(NotSent, match="ConnectError"):
        client_of(server)("recall", CHAT, "Where?")
    assert len(server.requests) == AT_ONCE.attempts


def test_an_error_that_stays_is_raised_at_once(client_of: Callable[..., Use]) -> None:
    for status, kind in (
        (422, "invalid_input"),
        (404, "not_found"),
        (401, "unauthorized"),
        (500, "permanent"),
    ):
        server = Server([(status, error(kind))])
        with pytest.raises(MemoryAppError) as caught:
            client_of(server)("recall", CHAT, "Where?")
        assert (caught.value.kind, len(server.requests)) == (kind, 1)


def test_pauses_grow_by_chance_up_to_the_longest_and_follow_retry_after() -> None:
    call: Call[None] = Call("GET", "/", nothing)
    retries = Retries(attempts=10, first_seconds=1, longest_seconds=4, patience_seconds=30)
    pauses = [retries.pause(ServerUnavailable("away"), call, attempt=attempt) for attempt in range(1, 11)]
    assert pauses[9] is None
    for pause, longest in zip(pauses[:9], [1, 2, 4, 4, 4, 4, 4, 4, 4], strict=True):
        assert pause is not None and longest / 2 <= pause <= longest
    asked = retries.pause(RateLimited("slowly", retry_after=7), call, attempt=1)
    assert asked is not None and 7.5 <= asked <= 8
    assert retries.pause(RateLimited("tomorrow", retry_after=3600), call, attempt=1) is None
    assert Retries(attempts=1).pause(NotSent("away"), call, attempt=1) is None


def test_an_answer_that_waits_longer_than_its_patience_carries_the_time() -> None:
    server = Server([(429, {})], headers={"Retry-After": "86400"})
    with pytest.raises(RateLimited) as caught:
        with_thread(server)("recall", CHAT, "Where?")
    assert (caught.value.retry_after, len(server.requests)) == (86400, 1)


# --- errors and answers ---------------------------------------------------------------------------------------


def test_errors_are_those_of_the_product_with_all_their_parts(client_of: Callable[..., Use]) -> None:
    body = error("too_large", field="content", retry_after=2.5, request_id="r-1")
    with pytest.raises(errors.TooLarge) as caught:
        client_of(Server([(413, body)]))("record", CHAT, "Hello.")
    seen = caught.value
    assert (seen.message, seen.field, seen.retry_after, seen.request_id) == (
        "too_large happened",
        "content",
        2.5,
        "r-1",
    )


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("erased", errors.Erased),
        ("moved", errors.Moved),
        ("store_unavailable", errors.StoreUnavailable),
        ("store_refused", errors.StoreRefused),
        ("hot_unavailable", errors.Transient),
        ("of_a_later_release", errors.Transient),
    ],
)
def test_a_kind_of_error_is_known_by_its_name(kind: str, expected: type[MemoryAppError]) -> None:
    with pytest.raises(expected) as caught:
        with_thread(Server([(503, error(kind))]))("sleep", CHAT)
    assert caught.value.kind == kind


def test_an_answer_of_a_proxy_is_told_by_its_status() -> None:
    for status, expected in ((502, ServerUnavailable), (504, ServerUnavailable), (413, errors.TooLarge)):
        with pytest.raises(expected, match=str(status)):
            with_thread(Server([(status, ["no error of ours"])]))("feedback", CHAT, uuid4(), "up")


def test_an_answer_that_does_not_fit_is_an_error_without_its_text(client_of: Callable[..., Use]) -> None:
    with pytest.raises(errors.UnknownAnswer, match="memories") as caught:
        client_of(Server([(200, {"memories": "a secret", "degraded": [], "cut": []})]))("recall", CHAT)
    assert "secret" not in str(caught.value)


def test_a_field_of_a_later_release_is_left_out(client_of: Callable[..., Use]) -> None:
    answer = client_of(Server([(202, RUN | {"colour": "blue"})]))("decay", CHAT)
    assert not hasattr(answer, "colour")


def test_no_text_and_no_key_stand_in_what_a_failure_leaves_behind() -> None:
    with pytest.raises(NotSent) as caught:
        with_thread(Server([httpx2.ConnectError]))("record", CHAT, "A secret.")
    assert caught.value.__suppress_context__
    assert "secret" not in str(caught.value) and "key" not in str(caught.value)


# --- lines ----------------------------------------------------------------------------------------------------


def test_lines_are_cut_at_line_feeds_alone() -> None:
    whole = '{"a": "x\u2028y\x85z"}\n{"b": 1}\n'.encode()
    for size in (1, 2, 7, len(whole)):
        lines = Lines()
        pieces = [whole[start : start + size] for start in range(0, len(whole), size)]
        read = [line for piece in pieces for line in lines.of(piece)] + list(lines.rest())
        assert read == ['{"a": "x\u2028y\x85z"}', '{"b": 1}']
    lines = Lines()
    assert list(lines.of(b"cut")) == []
    assert list(lines.rest()) == ["cut"]


def test_an_export_chooses_its_address_by_what_is_named(client_of: Callable[..., Use]) -> None:
    for names, path in (
        ({}, "/v1/export"),
        ({"agent": "ada"}, "/v1/agents/ada/export"),
        ({"user": "mira", "agent": "ada"}, "/v1/users/mira/export"),
    ):
        server = Server([(200, {"a": 1})])
        assert len(list(client_of(server)("export_lines", **names))) == 1
        assert server.requests[0].url.path == f"/prefix{path}"


def test_an_export_that_is_refused_is_an_error_and_not_a_line(client_of: Callable[..., Use]) -> None:
    with pytest.raises(errors.Forbidden):
        list(client_of(Server([(403, error("forbidden"))]))("export_lines"))
