"""F36: callers that send, read or wait slowly, or ask too much, keep nobody else from being served."""

from __future__ import annotations

import contextlib
import json
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from free_ports import free_port
from harness.api import call, is_live
from harness.fleet import Fleet, Member
from harness.raw import Raw, connections, dripping, head, request
from harness.waiting import wait_until
from sqlalchemy import Engine, text

from memory_app.records.records import NewTurn, Role
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.tenancy.rows import keys
from memory_app.transfer import snapshots
from memory_app.turns.record import record

pytestmark = pytest.mark.faults

USER = "/v1/agents/ada/users/bob"
TURNS = f"{USER}/sessions/s/turns"
IMPORT = "/v1/agents/ada/users/new/import"
LARGE = "Content-Length: 200000000"
PATIENT = {
    "MEMORY_HTTP__HEADER_SECONDS": "600",
    "MEMORY_HTTP__BODY_SECONDS": "600",
    "MEMORY_HTTP__IMPORT_WAIT_SECONDS": "600",
    "MEMORY_HTTP__WAIT_SECONDS": "600",
    "MEMORY_DATABASE__STATEMENT_TIMEOUT_MS": "600000",
}
"""No deadline ends the attack before the others were served."""

HASTY = {"MEMORY_HTTP__HEADER_SECONDS": "1", "MEMORY_HTTP__BODY_SECONDS": "1"}
BODY_LIMIT = 20_000
SMALL_BODIES = {"MEMORY_HTTP__BODY_LIMIT_BYTES": str(BODY_LIMIT)}
"""So that an ordinary snapshot is a large one."""


@dataclass(frozen=True, slots=True)
class Api:
    """A served API, a neighbour who behaves, and keys of the tenant that does not."""

    port: int
    member: Member
    key: str
    reader_key: str
    neighbour_key: str
    snapshot: dict[str, Any]
    opened: contextlib.ExitStack

    def connect(self, *, receive_buffer: int | None = None) -> Raw:
        """A connection that is closed at the end of the test."""
        raw = Raw(self.port, receive_buffer)
        self.opened.callback(raw.close)
        return raw

    def assert_neighbour_is_served(self) -> None:
        """Health, a large import and a turn of the neighbour; whatever else goes on."""
        assert call(self.port, "GET", "/health/live")[0] == 200
        assert "database" in call(self.port, "GET", "/health/ready")[1]["parts"]
        status, body = call(self.port, "POST", IMPORT, key=self.neighbour_key, body=self.snapshot)
        assert status in (200, 409), body  # 409: it was imported before.
        turn = {"role": "user", "content": "I feed the hen."}
        assert call(self.port, "POST", TURNS, key=self.neighbour_key, body=turn)[0] == 202


Start = Callable[..., Api]


@pytest.fixture
def start(
    fleet: Fleet, runtime: Runtime, owner: Engine, api_key: str, tenant: int, other_tenant: int
) -> Iterator[Start]:
    """Start the API with further settings."""
    with owner.begin() as connection:
        _, reader_key = keys.create(connection, "acme", rights=["read"])
        _, neighbour_key = keys.create(connection, "globex", rights=keys.RIGHTS)
    scope = Scope("ada", "bob", "s")
    record(runtime, tenant, scope, [NewTurn(Role.USER, "I feed the cat." * 2_000)])
    snapshot = json.loads(json.dumps(snapshots.export(runtime, tenant, Scope("ada", "bob"))))
    assert len(json.dumps(snapshot)) > BODY_LIMIT
    # The ids of a snapshot are free in another tenant only.
    record(runtime, other_tenant, scope, [NewTurn(Role.USER, "I feed the hen.")])

    def start(**settings: str) -> Api:
        port = free_port()
        member = fleet.api(port, **SMALL_BODIES, **settings)
        wait_until(lambda: is_live(port), "the API answers", seconds=90)
        return Api(port, member, api_key, reader_key, neighbour_key, snapshot, opened)

    with contextlib.ExitStack() as opened:
        yield start


def test_F36_a_body_is_read_only_when_the_right_and_the_size_are_known(start: Start) -> None:
    api = start(**PATIENT)
    cases = [
        (api.reader_key, IMPORT, (LARGE,), 403),
        (api.reader_key, IMPORT, ("Transfer-Encoding: chunked",), 403),
        (api.reader_key, IMPORT, (LARGE, "Expect: 100-continue"), 403),
        (api.reader_key, TURNS, ("Content-Length: 10",), 403),
        (None, IMPORT, (LARGE,), 401),
        ("mem_unknown", IMPORT, (LARGE,), 401),
        (api.key, IMPORT, ("Content-Length: 300000000",), 413),
        (api.key, TURNS, (LARGE,), 413),
        (api.key, f"{TURNS}?unknown=1", (LARGE,), 422),
        (api.key, "/v1/nowhere", (LARGE,), 404),
    ]
    for key, path, headers, status in cases:
        raw = api.connect().send(head("POST", path, *headers, key=key))

        answered = raw.answer()

        assert answered.status == status, (path, headers, answered)
        assert answered.error()["message"]

    # but one who may is asked for the body
    turn = json.dumps({"role": "user", "content": "I feed the cat."}).encode()
    raw = api.connect()
    raw.send(head("POST", TURNS, f"Content-Length: {len(turn)}", "Expect: 100-continue", key=api.key))
    assert raw.answer().status == 100
    assert raw.send(turn).answer().status == 202


def test_F36_others_are_served_while_callers_are_slow(start: Start) -> None:
    api = start(**PATIENT)
    large = head("POST", IMPORT, LARGE, key=api.key) + b'{"format": "'
    chunked = head("POST", TURNS, "Transfer-Encoding: chunked", key=api.key)
    refused: list[Raw] = []
    with contextlib.ExitStack() as attack:
        half_open = attack.enter_context(connections(api.port, 300, b"POST / HTTP/1.1\r\nHost: a"))
        imports = attack.enter_context(connections(api.port, 3, large))
        bodies = attack.enter_context(
            connections(api.port, 20, head("POST", TURNS, "Content-Length: 9", key=api.key))
        )
        endless = attack.enter_context(connections(api.port, 5, chunked))
        readers = attack.enter_context(connections(api.port, 20, request("GET", "/openapi.json") * 30))
        attack.enter_context(dripping(half_open[0], b"a"))
        attack.enter_context(dripping(endless[0], b"1\r\n \r\n"))
        # a tenant gets no third large import, whichever of them came last, and everybody else gets his
        wait_until(lambda: answered(imports, refused), "one import is refused", seconds=60)
        (third,) = [raw.answer() for raw in refused]
        assert (third.status, third.headers["retry-after"]) == (429, "1")
        imports = [raw for raw in imports if raw not in refused]
        attack.enter_context(dripping(imports[0], b"a"))

        api.assert_neighbour_is_served()

        for raw in (*half_open, *imports, *bodies, *endless):
            assert raw.is_open(), "the attack is still in place"
        assert len(readers) == 20


def test_F36_what_comes_or_is_read_too_slowly_ends(start: Start) -> None:
    api = start(**HASTY)
    post = ("POST", TURNS)
    slow = {
        "headers": (b"GET /health/live HTTP/1.1\r\nX-A: ", b"a"),
        "a body": (head(*post, "Content-Length: 1000", key=api.key), b" "),
        "a body without end": (head(*post, "Transfer-Encoding: chunked", key=api.key), b"1\r\n \r\n"),
        "a large import": (head("POST", IMPORT, LARGE, key=api.key) + b" " * 30_000, b" "),
    }
    for name, (begin, drop) in slow.items():
        raw = api.connect().send(begin)
        with dripping(raw, drop):
            answered = raw.answer()
        assert answered.status == 408, name
        assert answered.error()["type"] == "request_too_slow", name
        assert raw.answer().status == 0, "the connection is closed"

    # who sends nothing, or goes on with a body that was answered already, or reads nothing, is cut off
    assert api.connect().answer().status == 0
    refused = api.connect().send(head("POST", IMPORT, LARGE, key=api.reader_key))
    with dripping(refused, b" "):
        assert refused.answer().status == 403
        assert refused.answer().status == 0
    deaf = api.connect(receive_buffer=2_000).send(request("GET", "/openapi.json") * 100)
    wait_until(lambda: has_ended(deaf), "who does not read is cut off", seconds=60)
    api.assert_neighbour_is_served()


def test_F36_at_the_limit_of_connections_who_keeps_us_waiting_makes_room(start: Start) -> None:
    api = start(**PATIENT, MEMORY_HTTP__CONNECTIONS="30")
    with connections(api.port, 100, b"GET / HTTP/1.1\r\n") as half_open:
        api.assert_neighbour_is_served()
        assert not half_open[0].is_open()
        assert half_open[-1].is_open()


def test_F36_a_client_address_may_have_a_limit(start: Start) -> None:
    api = start(**PATIENT, MEMORY_HTTP__CONNECTIONS_PER_ADDRESS="3")
    with connections(api.port, 3, b"GET / HTTP/1.1\r\n"):
        refused = api.connect().answer()
    assert (refused.status, refused.headers["retry-after"]) == (503, "1")
    wait_until(lambda: is_live(api.port), "there is room again", seconds=30)


def test_F36_a_tenant_whose_calls_are_slow_waits_for_itself(start: Start, owner: Engine) -> None:
    # The server has deadlines of its own, which connections take over when they begin.
    with owner.begin() as connection:
        database = connection.execute(text("SELECT current_database()")).scalar_one()
        for name in ("lock_timeout", "statement_timeout"):
            connection.execute(text(f"ALTER ROLE memory_app IN DATABASE {database} SET {name} = 0"))
    api = start(**PATIENT, MEMORY_HTTP__TENANT_REQUESTS="80")
    recall = request("POST", f"{USER}/recall", key=api.key, body={"query": "What do I feed?"})
    # so that the neighbour needs nothing of what is locked
    api.assert_neighbour_is_served()
    with owner.begin() as connection:
        connection.execute(text("LOCK TABLE memories IN ACCESS EXCLUSIVE MODE"))
        with connections(api.port, 100, recall) as slow:
            refused = []
            wait_until(lambda: len(answered(slow, refused)) >= 20, "what is too much is refused", seconds=60)

            assert call(api.port, "GET", "/health/live")[0] == 200
            assert "database" in call(api.port, "GET", "/health/ready")[1]["parts"]
            turn = {"role": "user", "content": "I feed the hen again."}
            for _ in range(5):
                assert call(api.port, "POST", TURNS, key=api.neighbour_key, body=turn)[0] == 202
            assert sum(raw.is_open() for raw in slow) == 80, "the attack is still in place"

            statuses = [raw.answer() for raw in refused]
            assert {(one.status, one.headers["retry-after"]) for one in statuses} == {(429, "1")}
            connection.rollback()
            waiting = [raw for raw in slow if raw not in refused]
            assert {raw.answer().status for raw in waiting} == {200}


def test_F36_who_waits_for_a_ticket_takes_nobodys_place(start: Start) -> None:
    api = start(**PATIENT)
    turn = {"role": "user", "content": "I feed the dog."}
    _, body = call(api.port, "POST", TURNS, key=api.key, body=turn)
    ticket = f"/v1/turns/{body['tickets'][0]['id']}?wait_seconds=30"
    with connections(api.port, 40, request("GET", ticket, key=api.key)) as waiting:
        # At once: those who may wait get an answer as well when their half minute is over.
        refused: list[Raw] = []
        wait_until(lambda: len(answered(waiting, refused)) >= 24, "too many are refused", seconds=60)
        assert [raw.answer().status for raw in refused] == [429] * 24

        assert call(api.port, "POST", TURNS, key=api.key, body=turn)[0] == 202
        api.assert_neighbour_is_served()


def test_F36_a_slow_reader_of_exports_blocks_no_other_tenants_export(
    start: Start, runtime: Runtime, tenant: int
) -> None:
    for _ in range(60):  # More than what sockets hold.
        record(runtime, tenant, Scope("ada", "bob", "s"), [NewTurn(Role.USER, "I feed the cow." * 6_000)])
    api = start(**PATIENT)
    slow = [
        api.connect(receive_buffer=2_000).send(request("GET", path, key=api.key))
        for path in ("/v1/export", f"{USER}/export")
        for _ in range(20)
    ]
    refused: list[Raw] = []
    wait_until(lambda: len(answered(slow, refused)) >= 9, "the tenant's places are taken", seconds=60)

    api.assert_neighbour_is_served()
    for path in ("/v1/export", f"{USER}/export"):
        whole = api.connect().send(request("GET", path, "Connection: close", key=api.neighbour_key)).rest()
        assert whole.startswith(b"HTTP/1.1 200") and b"I feed the hen." in whole


def test_F36_pipelined_requests_are_answered_in_order(start: Start) -> None:
    api = start(**PATIENT)
    paths = ["/health/live", "/v1/nowhere", f"{USER}/sessions", "/health/live"]
    raw = api.connect().send(b"".join(request("GET", path, key=api.key) for path in paths) * 5)
    assert [raw.answer().status for _ in range(20)] == [200, 404, 200, 200] * 5
    assert raw.send(b"no http at all\r\n\r\n").answer().error()["type"] == "invalid_input"


def test_F36_an_api_that_is_told_to_stop_ends_in_spite_of_slow_callers(start: Start) -> None:
    api = start(**PATIENT)
    expects = "Expect: 100-continue"
    with (
        connections(api.port, 50, b"GET / HTTP/1.1\r\n") as half_open,
        connections(api.port, 3, head("POST", TURNS, "Content-Length: 9", expects, key=api.key)) as bodies,
        connections(api.port, 1, head("POST", IMPORT, LARGE, expects, key=api.key)) as large,
    ):
        # Whoever is told to go on is waited for. A request that nobody has read yet ends without an answer.
        assert {raw.answer().status for raw in (*bodies, *large)} == {100}
        api.member.signal_main(signal.SIGTERM)

        assert {raw.answer().status for raw in half_open} <= {0, 503}  # 503: accepted in this moment
        assert {raw.answer().status for raw in bodies} == {503}
        wait_until(lambda: not api.member.is_alive(), "the API has ended", seconds=60)
    assert "Cancel" not in api.member.said()


def has_ended(raw: Raw) -> bool:
    """Whether the other side has cut the connection, however much of it is unread."""
    try:
        raw.send(b"GET / HTTP/1.1\r\n")
    except OSError:
        return True
    return False


def answered(slow: list[Raw], found: list[Raw]) -> list[Raw]:
    found[:] = [raw for raw in slow if not raw.is_open()]
    return found
