"""Every fault of PostgreSQL, provoked on a real server: the sentence that comes, and whether waiting is of use."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from threading import Thread

import pytest
from own_servers import HOST, PostgresServer, free_port, postgres_server
from pooler import pgbouncer
from pydantic import SecretStr

from memory_app import MemoryApp
from memory_app.errors import StoreRefused, StoreUnavailable
from memory_app.runtime import app_engine
from memory_app.services import schema, startup
from memory_app.services.doctor import State, diagnose
from memory_app.settings import Database, Redis, Settings

APP_PASSWORD = "unmistakable"
WRONG_PASSWORD = "mistaken"


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """A migrated database ``memory``. Each fault is mended by whoever made it."""
    with postgres_server() as server:
        server.create_database("memory")
        schema.upgrade(settings_of(server))
        yield server


def app_url(server: PostgresServer, **changes: str) -> str:
    return server.url(**{"database": "memory", "user": "memory_app", "password": APP_PASSWORD, **changes})


def settings_of(server: PostgresServer, url: str | None = None) -> Settings:
    return Settings(
        _env_file=None,
        database=Database(
            url=SecretStr(url or app_url(server)),
            owner_url=SecretStr(server.url("memory")),
            connect_timeout_seconds=3,
        ),
        redis=Redis(url=SecretStr("redis://127.0.0.1:1/0")),
    )


@dataclass(frozen=True, slots=True)
class Case:
    """How a fault is made (for as long as a block runs; it gives the address to use), and what is said about it."""

    name: str
    make: Callable[[PostgresServer], AbstractContextManager[str]]
    sentence: str
    is_lasting: bool = False


def at(make_url: Callable[[PostgresServer], str]) -> Callable[[PostgresServer], AbstractContextManager[str]]:
    """A fault of the address alone."""

    @contextmanager
    def make(server: PostgresServer) -> Iterator[str]:
        yield make_url(server)

    return make


def under(make: str, mend: str, **changes: str) -> Callable[[PostgresServer], AbstractContextManager[str]]:
    """A fault that one statement of the superuser makes, and another mends."""

    @contextmanager
    def made(server: PostgresServer) -> Iterator[str]:
        with server.connect("memory") as connection:
            connection.execute(make)
        try:
            yield app_url(server, **changes)
        finally:
            with server.connect("memory") as connection:
                connection.execute(mend)

    return made


@contextmanager
def listening(answer: bytes | None) -> Iterator[int]:
    """A port on which somebody listens who answers with these bytes, or never."""
    with socket.create_server((HOST, 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                    with connection:
                        if answer is not None:
                            connection.recv(100)
                            connection.sendall(answer)
                        else:
                            connection.settimeout(30)
                            connection.recv(100)
                            connection.recv(100)
                except OSError:
                    return

        Thread(target=serve, daemon=True).start()
        yield int(listener.getsockname()[1])
        listener.shutdown(socket.SHUT_RDWR)


@contextmanager
def silent(server: PostgresServer) -> Iterator[str]:
    with listening(None) as port:
        yield f"postgresql+psycopg://memory_app:{APP_PASSWORD}@{HOST}:{port}/memory"


@contextmanager
def web_server(server: PostgresServer) -> Iterator[str]:
    with listening(b"HTTP/1.1 400 Bad Request\r\n\r\n") as port:
        yield f"postgresql+psycopg://memory_app:{APP_PASSWORD}@{HOST}:{port}/memory"


def hba(*lines: str) -> Callable[[PostgresServer], AbstractContextManager[str]]:
    """A server whose pg_hba.conf has only these lines, and one for the superuser."""

    @contextmanager
    def make(server: PostgresServer) -> Iterator[str]:
        file = server.folder / "pg_hba.conf"
        usual = file.read_text()
        file.write_text("\n".join([*lines, "host all postgres all scram-sha-256", ""]))
        reload(server)
        try:
            yield app_url(server)
        finally:
            file.write_text(usual)
            reload(server)

    return make


def reload(server: PostgresServer) -> None:
    """Let the server read its files, and return once new connections obey them."""
    with server.connect() as connection:
        connection.execute("SELECT pg_reload_conf()")
        connection.execute("SELECT pg_sleep(0.2)")


@contextmanager
def stopping(server: PostgresServer) -> Iterator[str]:
    """A server that waits for its last client to go."""
    held = server.connect()
    assert server.process is not None
    process = server.process
    process.terminate()
    try:
        yield app_url(server)
    finally:
        held.close()
        process.wait(60)
        server.start()


def through(
    *lines: str, mode: str = "transaction", query: str = ""
) -> Callable[[PostgresServer], AbstractContextManager[str]]:
    """A PgBouncer with these lines in its configuration."""

    @contextmanager
    def make(server: PostgresServer) -> Iterator[str]:
        with pgbouncer(app_url(server), mode=mode, lines=lines) as pooler:
            yield pooler.url(app_url(server)) + query

    return make


@contextmanager
def pooler_without_server(server: PostgresServer) -> Iterator[str]:
    with pgbouncer(app_url(server), lines=["query_wait_timeout = 1"]) as pooler:
        server.stop()
        try:
            yield pooler.url(app_url(server))
        finally:
            server.start()


CASES = [
    Case(
        "away",
        at(lambda server: f"postgresql+psycopg://memory_app:{APP_PASSWORD}@{HOST}:{free_port()}/memory"),
        r"PostgreSQL is away: nobody answers at the address in MEMORY_DATABASE__URL; start it",
    ),
    Case(
        "away, on a socket",
        at(lambda server: f"postgresql+psycopg://memory_app:{APP_PASSWORD}@/memory?host=/nowhere"),
        r"PostgreSQL is away",
    ),
    Case(
        "name not resolved",
        at(lambda server: f"postgresql+psycopg://memory_app:{APP_PASSWORD}@no-such-host.invalid/memory"),
        r"the host name in MEMORY_DATABASE__URL is not known; mend it",
    ),
    Case("no answer", silent, r"PostgreSQL does not answer in time .* firewall"),
    Case("no PostgreSQL", web_server, r"is no PostgreSQL; mend the host or the port", is_lasting=True),
    Case(
        "TLS not offered",
        at(lambda server: f"{app_url(server)}?sslmode=require"),
        r"MEMORY_DATABASE__URL asks for TLS and the server speaks none; turn it on",
        is_lasting=True,
    ),
    Case(
        "password wrong",
        at(lambda server: app_url(server, password=WRONG_PASSWORD)),
        r"does not accept the password of role memory_app in MEMORY_DATABASE__URL, or has no such role; mend .*"
        r"`memory migrate`",
        is_lasting=True,
    ),
    Case(
        "password missing",
        at(lambda server: app_url(server).replace(f":{APP_PASSWORD}@", "@")),
        r"asks role memory_app for a password and MEMORY_DATABASE__URL carries none; add it",
        is_lasting=True,
    ),
    Case(
        "role missing",
        at(lambda server: app_url(server, user="nobody_here")),
        r"does not accept the password of role nobody_here .* or has no such role",
        is_lasting=True,
    ),
    Case(
        "role may not log in",
        under("ALTER ROLE memory_app NOLOGIN", "ALTER ROLE memory_app LOGIN"),
        r"the server has no role memory_app that may log in; mend .*`memory migrate`",
        is_lasting=True,
    ),
    Case(
        "password expired",
        under(
            "ALTER ROLE memory_app VALID UNTIL '2001-01-01'", "ALTER ROLE memory_app VALID UNTIL 'infinity'"
        ),
        r"does not accept the password of role memory_app",
        is_lasting=True,
    ),
    Case(
        "not let in, without TLS",
        hba("hostssl all memory_app all scram-sha-256"),
        r"pg_hba.conf of the server lets role memory_app into database memory from here by no line, not without TLS",
        is_lasting=True,
    ),
    Case(
        "database missing",
        at(lambda server: app_url(server, database="elsewhere")),
        r"the server has no database elsewhere; create it",
        is_lasting=True,
    ),
    Case(
        "right to connect missing",
        under("REVOKE CONNECT ON DATABASE memory FROM PUBLIC", "GRANT CONNECT ON DATABASE memory TO PUBLIC"),
        r"role memory_app may not connect to database memory; .*GRANT CONNECT ON DATABASE memory TO memory_app",
        is_lasting=True,
    ),
    Case(
        "right missing",
        under(
            "REVOKE USAGE ON SCHEMA public FROM PUBLIC, memory_app",
            "GRANT USAGE ON SCHEMA public TO PUBLIC, memory_app",
        ),
        r"role memory_app lacks a right \(permission denied for schema public\); .*`memory migrate`, which gives it",
        is_lasting=True,
    ),
    Case(
        "too many connections",
        under("ALTER ROLE memory_app CONNECTION LIMIT 0", "ALTER ROLE memory_app CONNECTION LIMIT -1"),
        r"PostgreSQL has no connection left; lower MEMORY_DATABASE__POOL_SIZE",
    ),
    Case("stopping", stopping, r"PostgreSQL is starting, stopping or recovering; try again"),
    Case(
        "no address: parameter",
        at(lambda server: f"{app_url(server)}?sslmode=banana"),
        r"MEMORY_DATABASE__URL is no address that the driver understands; check its port, sslmode",
        is_lasting=True,
    ),
    Case(
        "no address: unknown option",
        at(lambda server: f"{app_url(server)}?bananas=1"),
        r"MEMORY_DATABASE__URL is no address that the driver understands",
        is_lasting=True,
    ),
]

BEHIND_POOLERS = [
    Case(
        "pooler without a server",
        pooler_without_server,
        r"the pooler at the address in .* gets no connection",
    ),
    Case(
        "options behind a pooler",
        through(query="?options=-c%20lock_timeout%3D1s"),
        r"the pooler .* refuses what the address asks for; take options out of it",
        is_lasting=True,
    ),
    Case(
        "pooler in statement mode",
        through(mode="statement"),
        r"allows no transactions; set its pool_mode to transaction",
        is_lasting=True,
    ),
    Case(
        "password wrong, behind a pooler",
        lambda server: wrong_password_behind_pooler(server),
        r"does not accept the password of role memory_app",
        is_lasting=True,
    ),
]


@contextmanager
def wrong_password_behind_pooler(server: PostgresServer) -> Iterator[str]:
    with pgbouncer(app_url(server)) as pooler:
        yield pooler.url(app_url(server, password=WRONG_PASSWORD))


def ids(case: Case) -> str:
    return case.name


def check(case: Case, server: PostgresServer, show: Callable[[str, str], None]) -> None:
    with case.make(server) as url:
        settings = settings_of(server, url)
        with pytest.raises(StoreUnavailable) as raised:
            MemoryApp.connect(settings)
        engine = app_engine(settings)
        try:
            refusal = None
            startup.check_database(engine)
        except StoreRefused as error:
            refusal = error.message
        finally:
            engine.dispose()
        found = next(check for check in diagnose(settings) if check.name == "postgres")

    message = raised.value.message
    show(case.name, message)
    assert re.search(case.sentence, message), message
    assert isinstance(raised.value, StoreRefused) is case.is_lasting
    assert refusal == (message if case.is_lasting else None), (
        "parts refuse to start on what waiting cannot mend"
    )
    assert found.state is State.FAIL
    assert f"{found.found}; {found.to_do}" == message, "doctor says the same"
    for secret in (APP_PASSWORD, WRONG_PASSWORD, server.password):
        assert secret not in message
    assert "\n" not in message


@pytest.fixture
def show(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """For ``pytest -s``: the table of `docs/troubleshooting.md`."""
    return lambda name, message: print(f"\n| {name} | {message} |")


@pytest.mark.parametrize("case", CASES, ids=ids)
def test_each_fault_has_its_sentence(
    case: Case, server: PostgresServer, show: Callable[[str, str], None]
) -> None:
    check(case, server, show)


@pytest.mark.system
@pytest.mark.parametrize("case", BEHIND_POOLERS, ids=ids)
def test_each_fault_of_a_pooler_has_its_sentence(
    case: Case, server: PostgresServer, show: Callable[[str, str], None]
) -> None:
    check(case, server, show)
