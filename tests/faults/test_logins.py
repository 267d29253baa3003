"""The login of the application changes under load: said precisely, and everything goes on when it is mended."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Lock

import pytest
from free_ports import free_port
from harness.api import call, is_live
from harness.fleet import ROOT
from harness.load import Receipt
from harness.stage import Stage, seen_through
from harness.waiting import wait_until
from own_servers import PostgresServer, postgres_server
from pooler import pgbouncer
from pydantic import SecretStr
from redis_servers import Authority, make_authority
from sqlalchemy import create_engine
from sqlalchemy.pool import NullPool

from memory_app.errors import ProviderUnavailable
from memory_app.records.records import NewTurn
from memory_app.records.scope import Scope
from memory_app.settings import Database, Settings
from memory_app.tenancy import schema
from memory_app.tenancy.rows import keys

pytestmark = [pytest.mark.faults, pytest.mark.slow]

PASSWORD = "unmistakable"
ROLE = "memory_app"
CLIENTS = 4
"""Which send at the same time."""


@dataclass(slots=True)
class Answers:
    """Sends to an API; counts what is answered, by status and type of error."""

    port: int
    key: str
    kinds: Counter[str] = field(default_factory=Counter)
    messages: set[str] = field(default_factory=set)
    _lock: Lock = field(default_factory=Lock)

    def send(self, scope: Scope, turns: Sequence[NewTurn]) -> Sequence[Receipt]:
        path = f"/v1/agents/{scope.agent}/users/{scope.user}/sessions/{scope.session}/turns"
        sent = [
            {"role": turn.role.value, "content": turn.text, "idempotency_key": turn.idempotency_key}
            for turn in turns
        ]
        status, body = call(self.port, "POST", path, key=self.key, body={"turns": sent})
        error = body.get("error", {})
        with self._lock:
            self.kinds[f"{status} {error.get('type', '')}".strip()] += 1
            if error:
                self.messages.add(error["message"])
        if status != 202:
            raise ProviderUnavailable(f"the API answered {status}")
        return [(ticket["id"], ticket["seq"]) for ticket in body["tickets"]]


@dataclass(frozen=True, slots=True)
class Place:
    """A stage on a server of its own: logins belong to a whole server."""

    stage: Stage
    server: PostgresServer
    settings: Settings
    answers: Answers

    def run(self, *statements: str) -> None:
        """As the superuser, in the database of the stage."""
        with self.server.connect("memory") as connection:
            for statement in statements:
                connection.execute(statement)

    def new_key(self) -> tuple[int, str]:
        """Its id, and the key."""
        with self.stage.owner.begin() as connection:
            return keys.create(connection, "acme", rights=keys.RIGHTS)

    def end_sessions(self) -> None:
        """Those that logged in before: a change of the login ends none."""
        self.run(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{ROLE}'")


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    """A server of the test alone: logins belong to a whole server."""
    with postgres_server() as server:
        server.create_database("memory")
        yield server


@pytest.fixture
def place(stage: Stage, server: PostgresServer) -> Iterator[Place]:
    with everything_on(stage, server, server.url("memory", user=ROLE, password=PASSWORD)) as place:
        yield place


@contextmanager
def everything_on(stage: Stage, server: PostgresServer, url: str) -> Iterator[Place]:
    """An API, a worker and a finder that log in with a password at ``url``, which leads to the server."""
    owner_url = server.url("memory")
    settings = Settings(_env_file=None, database=Database(url=SecretStr(url), owner_url=SecretStr(owner_url)))
    schema.upgrade(settings)
    owner = create_engine(owner_url, poolclass=NullPool)
    with owner.begin() as connection:
        tenant = keys.ensure_tenant(connection, "acme")
        _, key = keys.create(connection, "acme", rights=keys.RIGHTS)
    port = free_port()
    with seen_through(stage, database_url=url) as through:
        through.fleet.api(port)
        through.fleet.finder()
        through.worker()
        wait_until(lambda: is_live(port), "the API answers", seconds=60)
        own = replace(through, owner=owner, tenant=tenant)
        yield Place(own, server, settings, Answers(port, key))
        own.fleet.kill_all()


def rotate_password(place: Place) -> None:
    place.run(f"ALTER ROLE {ROLE} PASSWORD 'another'")
    place.end_sessions()


def rotate_back(place: Place) -> None:
    schema.upgrade(place.settings)


def drop_role(place: Place) -> None:
    """Its sessions stay, and never get back their rights when it is made again."""
    place.run(f"DROP OWNED BY {ROLE}", f"DROP ROLE {ROLE}")


def forbid_login(place: Place) -> None:
    place.run(f"ALTER ROLE {ROLE} NOLOGIN")
    place.end_sessions()


def allow_login(place: Place) -> None:
    place.run(f"ALTER ROLE {ROLE} LOGIN")


FAULTS = {
    "password rotated": (rotate_password, rotate_back, "does not accept the password of role memory_app"),
    "role dropped": (drop_role, rotate_back, "does not accept the password of role memory_app"),
    "role may not log in": (forbid_login, allow_login, "has no role memory_app that may log in"),
}


@pytest.mark.timeout(400)
@pytest.mark.parametrize("fault", FAULTS)
def test_F38_login_changes_under_load(place: Place, fault: str) -> None:
    make, mend, sentence = FAULTS[fault]
    play(place, fault, make, mend, sentence)


@pytest.mark.system
@pytest.mark.timeout(400)
def test_F38_certificate_of_an_unknown_authority(
    stage: Stage, server: PostgresServer, tmp_path: Path
) -> None:
    right, wrong = (make_authority(tmp_path / name) for name in ("right", "wrong"))
    direct = server.url("memory", user=ROLE, password=PASSWORD)
    with pgbouncer(direct, authority=right) as pooler:

        def replace_certificate(authority: Authority) -> Callable[[Place], None]:
            def act(_: Place) -> None:
                pooler.stop()
                pooler.authority = authority
                pooler.start()

            return act

        url = f"{pooler.url(direct)}?sslmode=verify-full&sslrootcert={right.file}"
        with everything_on(stage, server, url) as place:
            play(
                place,
                "certificate of an unknown CA",
                replace_certificate(wrong),
                replace_certificate(right),
                "is not signed by a CA that sslrootcert in MEMORY_DATABASE__URL names",
            )


@pytest.mark.timeout(400)
def test_F38_key_revoked_under_load(place: Place) -> None:
    """Refused within seconds and from then on. Callers with another key notice nothing, and these go on with a new
    one."""
    stage, answers = place.stage, place.answers
    others = Answers(answers.port, place.new_key()[1])
    victim, answers.key = place.new_key()
    revoked_key = answers.key
    under_way = stage.clients(turns=400, seconds=20, send=answers.send, clients=CLIENTS)
    beside = stage.clients(turns=100, seconds=20, send=others.send, seed=2, run="other")
    wait_until(lambda: answers.kinds["202"] >= 20, "turns are accepted", seconds=60)

    revoked = memory_command(place, "keys", "revoke", str(victim))
    assert revoked.returncode == 0, revoked.stderr
    wait_until(lambda: answers.kinds["401 unauthorized"], "the API refuses", seconds=30)
    accepted = answers.kinds["202"]
    wait_until(lambda: answers.kinds["401 unauthorized"] > 20, "the API goes on refusing", seconds=60)

    # Besides those that had been let in when the first one was refused.
    assert answers.kinds["202"] <= accepted + CLIENTS
    assert answers.messages == {"the key is unknown, revoked or expired"}
    answers.key = place.new_key()[1]
    for clients in (under_way, beside):
        clients.retries()
    stage.settle(under_way, fault="F38 key revoked")
    assert set(answers.kinds) == {"202", "401 unauthorized"}
    assert set(others.kinds) == {"202"}
    assert all(member.is_alive() for member in stage.fleet.members), "nothing had to be started again"
    assert all(revoked_key not in log for _, log in stage.fleet.logs())


def memory_command(place: Place, *arguments: str) -> subprocess.CompletedProcess[str]:
    """`memory`, as an operator calls it."""
    database = place.settings.database
    assert database.owner_url is not None
    environment = {
        **place.stage.fleet.environment,
        "MEMORY_DATABASE__OWNER_URL": database.owner_url.get_secret_value(),
    }
    return subprocess.run(
        [sys.executable, "-m", "memory_app", *arguments],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        encoding="utf-8",
        timeout=60,
    )


def play(
    place: Place, fault: str, make: Callable[[Place], None], mend: Callable[[Place], None], sentence: str
) -> None:
    """Make the fault under load, wait until it is said, mend it; nothing is lost and nothing is started again."""
    stage, answers = place.stage, place.answers
    under_way = stage.clients(turns=500, seconds=20, send=answers.send)
    wait_until(lambda: answers.kinds["202"] >= 20, "turns are accepted", seconds=60)

    make(place)
    wait_until(
        lambda: any(sentence in message for message in answers.messages), "the API says why", seconds=60
    )
    refused = answers.kinds["503 store_refused"]
    wait_until(lambda: answers.kinds["503 store_refused"] > refused + 10, "the API refuses", seconds=60)
    status, ready = call(answers.port, "GET", "/health/ready")
    mend(place)
    under_way.retries()
    stage.settle(under_way, fault=f"F38 {fault}")

    assert status == 503
    assert sentence in ready["parts"]["database"]["reason"]
    assert set(answers.kinds) <= {"202", "503 store_refused", "503 store_unavailable"}
    assert all(member.is_alive() for member in stage.fleet.members), "nothing had to be started again"
    assert all(PASSWORD not in log for _, log in stage.fleet.logs())
