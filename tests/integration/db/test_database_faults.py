"""Every fault of PostgreSQL, provoked on a real server: the sentence that comes, and whether waiting is of use.

``pytest -s`` prints the rows of the table in ``docs/troubleshooting.md``.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Thread

import pytest
from free_ports import free_port
from own_servers import HOST, PostgresServer, open_folder, postgres_server
from pooler import pgbouncer
from pydantic import SecretStr
from redis_servers import Authority, make_authority

from memory_app import MemoryApp
from memory_app.db import revision
from memory_app.errors import Misconfigured, NotFound, StoreRefused, StoreUnavailable
from memory_app.local.embedded import place
from memory_app.ops import startup
from memory_app.ops.doctor import State, diagnose
from memory_app.runtime import app_engine
from memory_app.settings import Database, Redis, Settings
from memory_app.tenancy import schema

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


def settings_of(
    server: PostgresServer, url: str | None = None, *, connect_timeout_seconds: int = 30
) -> Settings:
    return Settings(
        _env_file=None,
        database=Database(
            url=SecretStr(url or app_url(server)),
            owner_url=SecretStr(server.url("memory")),
            connect_timeout_seconds=connect_timeout_seconds,
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
    connect_timeout_seconds: int = 30


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


def hba(*lines: str, query: str = "") -> Callable[[PostgresServer], AbstractContextManager[str]]:
    """A server whose pg_hba.conf has only these lines, and one for the superuser."""

    @contextmanager
    def make(server: PostgresServer) -> Iterator[str]:
        file = server.folder / "pg_hba.conf"
        usual = file.read_text()
        file.write_text("\n".join([*lines, "host all postgres all scram-sha-256", ""]))
        reload(server)
        try:
            yield app_url(server) + query
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


@contextmanager
def pooler_that_wants_tls(server: PostgresServer) -> Iterator[str]:
    with open_folder() as folder, pgbouncer(app_url(server), authority=make_authority(folder)) as pooler:
        yield f"{pooler.url(app_url(server))}?sslmode=disable"


@contextmanager
def wrong_password_behind_pooler(server: PostgresServer) -> Iterator[str]:
    with pgbouncer(app_url(server)) as pooler:
        yield pooler.url(app_url(server, password=WRONG_PASSWORD))


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
    Case(
        "no answer",
        silent,
        r"PostgreSQL does not answer in time .* firewall",
        connect_timeout_seconds=3,
    ),
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
        "TLS required",
        pooler_that_wants_tls,
        r"the server wants TLS; add sslmode=verify-full",
        is_lasting=True,
    ),
    Case(
        "password wrong, behind a pooler",
        wrong_password_behind_pooler,
        r"does not accept the password of role memory_app",
        is_lasting=True,
    ),
]


def ids(case: Case) -> str:
    return case.name


def assert_told(case: Case, server: PostgresServer, show: Callable[[str, str], None]) -> None:
    with case.make(server) as url:
        settings = settings_of(server, url, connect_timeout_seconds=case.connect_timeout_seconds)
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
    assert_told(case, server, show)


@pytest.mark.system
@pytest.mark.parametrize("case", BEHIND_POOLERS, ids=ids)
def test_each_fault_of_a_pooler_has_its_sentence(
    case: Case, server: PostgresServer, show: Callable[[str, str], None]
) -> None:
    assert_told(case, server, show)


# --- a server with TLS, which is too old as well -----------------------------------------------------------------


@pytest.fixture(scope="module")
def authority() -> Iterator[Authority]:
    with open_folder() as folder:
        yield make_authority(folder / "right")


@pytest.fixture(scope="module")
def old_server(authority: Authority) -> Iterator[PostgresServer]:
    """Debian's PostgreSQL 15 with a certificate for localhost."""
    with postgres_server(version="15") as server:
        server.create_database("memory")
        certificate, key = authority.certify("server")
        files = {"ssl_cert_file": certificate, "ssl_key_file": key, "ssl_ca_file": authority.file}
        with server.connect() as connection:
            connection.execute(f"CREATE ROLE memory_app LOGIN PASSWORD '{APP_PASSWORD}'")
            for setting, file in files.items():
                copy = server.folder / file.name
                copy.write_bytes(file.read_bytes())
                copy.chmod(0o600)
                place.give(copy, place.system_user())
                connection.execute(f"ALTER SYSTEM SET {setting} = '{copy}'")
            connection.execute("ALTER SYSTEM SET ssl = on")
        reload(server)
        yield server


def verified(server: PostgresServer, authority: Authority) -> str:
    return f"{app_url(server)}?sslmode=verify-full&sslrootcert={authority.file}"


@pytest.fixture
def tls_cases(authority: Authority, tmp_path: Path) -> dict[str, Case]:
    unknown = make_authority(tmp_path / "unknown")
    cases = [
        Case(
            "certificate not trusted",
            at(lambda server: verified(server, unknown)),
            r"certificate of the server is not signed by a CA that sslrootcert in MEMORY_DATABASE__URL names",
            is_lasting=True,
        ),
        Case(
            "certificate of another host",
            # The same server under a name of which its certificate says nothing.
            at(lambda server: f"{verified(server, authority).replace(HOST, 'other')}&hostaddr={HOST}"),
            r"certificate of the server is for another host name than the one in MEMORY_DATABASE__URL",
            is_lasting=True,
        ),
        Case(
            "no file of CAs",
            at(lambda server: f"{app_url(server)}?sslmode=verify-full&sslrootcert={tmp_path}/none.pem"),
            r"there is no file of CAs; name it with sslrootcert",
            is_lasting=True,
        ),
        Case(
            "client certificate required",
            hba("hostssl all memory_app all scram-sha-256 clientcert=verify-ca"),
            r"the server wants a certificate of the client; name its files with sslcert and sslkey",
            is_lasting=True,
        ),
        Case(
            "not let in",
            hba("host all memory_app 192.0.2.1/32 scram-sha-256", query="?sslmode=require"),
            r"pg_hba.conf of the server lets role memory_app into database memory from here by no line; add one",
            is_lasting=True,
        ),
        Case(
            "server too old",
            at(lambda server: verified(server, authority)),
            r"PostgreSQL 15\.\d+ .*is too old; move the database to version 16 or newer",
            is_lasting=True,
        ),
    ]
    return {case.name: case for case in cases}


@pytest.mark.system
@pytest.mark.parametrize(
    "name",
    [
        "certificate not trusted",
        "certificate of another host",
        "no file of CAs",
        "client certificate required",
        "not let in",
        "server too old",
    ],
)
def test_each_fault_of_tls_has_its_sentence(
    name: str, tls_cases: dict[str, Case], old_server: PostgresServer, show: Callable[[str, str], None]
) -> None:
    assert_told(tls_cases[name], old_server, show)


@pytest.mark.system
def test_migrate_refuses_a_server_that_is_too_old(old_server: PostgresServer) -> None:
    with pytest.raises(StoreRefused, match="is too old; move the database to version 16"):
        schema.upgrade(settings_of(old_server))


# --- the schema --------------------------------------------------------------------------------------------------


@contextmanager
def unmigrated(server: PostgresServer) -> Iterator[str]:
    server.create_database("empty")
    try:
        yield app_url(server, database="empty")
    finally:
        with server.connect() as connection:
            connection.execute("DROP DATABASE empty WITH (FORCE)")


SCHEMA_CASES = [
    Case("not migrated", unmigrated, r"the database has not been migrated yet; run `memory migrate`"),
    Case(
        "schema ahead",
        under(
            "UPDATE alembic_version SET version_num = '9999'; ALTER FUNCTION tenant_named RENAME TO tenant_called",
            f"UPDATE alembic_version SET version_num = '{revision.newest()}';"
            "ALTER FUNCTION tenant_called RENAME TO tenant_named",
        ),
        r"the schema is at revision 9999, ahead of \d{4} of this code; run the release that migrated it",
    ),
    Case(
        "something of the schema missing",
        under("ALTER FUNCTION tenant_named RENAME TO lost", "ALTER FUNCTION lost RENAME TO tenant_named"),
        r"something of the schema is missing \(42883\); `memory doctor` names it",
    ),
]


@pytest.mark.parametrize("case", SCHEMA_CASES, ids=ids)
def test_each_fault_of_the_schema_has_its_sentence(
    case: Case, server: PostgresServer, show: Callable[[str, str], None]
) -> None:
    with case.make(server) as url:
        settings = settings_of(server, url)
        with pytest.raises(StoreUnavailable) as raised:
            MemoryApp.connect(settings)
        check = next(check for check in diagnose(settings) if check.name == "schema")
        engine = app_engine(settings)
        startup.check_database(engine)  # is waited for
        engine.dispose()

    message = raised.value.message
    show(case.name, message)
    assert re.search(case.sentence, message), message
    assert not isinstance(raised.value, StoreRefused)
    assert check.state is (State.WARN if case.name == "schema ahead" else State.FAIL)


def test_migrate_leaves_a_schema_alone_that_is_ahead(server: PostgresServer) -> None:
    with (
        under(
            "UPDATE alembic_version SET version_num = '9999'",
            f"UPDATE alembic_version SET version_num = '{revision.newest()}'",
        )(server),
        pytest.raises(Misconfigured, match="revision 9999, ahead of"),
    ):
        schema.upgrade(settings_of(server))


def test_pgvector_that_the_server_lacks_is_named_by_migrate(server: PostgresServer) -> None:
    server.create_database("without")
    try:
        with server.connect() as connection:
            connection.execute("ALTER DATABASE without SET extension_control_path = '/nowhere'")
        settings = settings_of(server)
        owner_url = SecretStr(server.url("without"))
        database = settings.database.model_copy(update={"owner_url": owner_url})
        with pytest.raises(Misconfigured, match="has no pgvector; install pgvector"):
            schema.upgrade(settings.model_copy(update={"database": database}))
    finally:
        with server.connect() as connection:
            connection.execute("DROP DATABASE without WITH (FORCE)")


# --- the owner, addresses, other languages -----------------------------------------------------------------------


def test_the_owners_address_is_called_by_its_own_name(server: PostgresServer) -> None:
    wrong = SecretStr(server.url("memory", password=WRONG_PASSWORD))
    database = settings_of(server).database.model_copy(update={"owner_url": wrong})

    with pytest.raises(StoreRefused) as raised:
        schema.upgrade(settings_of(server).model_copy(update={"database": database}))

    assert raised.value.message == (
        "the server does not accept the password of role postgres in MEMORY_DATABASE__OWNER_URL, or has no such role; "
        "mend MEMORY_DATABASE__OWNER_URL"
    )


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql+psycopg://memory_app:{APP_PASSWORD}@{WRONG_PASSWORD}@host/memory",
        f"postgresql+psycopg://memory_app:p@{WRONG_PASSWORD}:{APP_PASSWORD}/memory",
        f"mysql://memory_app:{APP_PASSWORD}@host/memory",
        f"memory_app:{APP_PASSWORD}@host",
    ],
)
def test_what_is_no_address_is_refused_without_quoting_it(url: str, server: PostgresServer) -> None:
    with pytest.raises(Misconfigured) as raised:
        MemoryApp.connect(settings_of(server, url))

    assert "MEMORY_DATABASE__URL is no address; write postgresql+psycopg://" in raised.value.message
    assert APP_PASSWORD not in raised.value.message
    assert WRONG_PASSWORD not in raised.value.message


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+psycopg"])
def test_an_address_as_hosting_services_write_it_is_taken(scheme: str, server: PostgresServer) -> None:
    url = app_url(server).replace("postgresql+psycopg", scheme)

    with pytest.raises(NotFound, match="memory keys create"):
        MemoryApp.connect(settings_of(server, url))


def test_a_refusal_that_is_not_in_the_table_is_quoted(server: PostgresServer) -> None:
    with (
        under(
            "CREATE FUNCTION refuse() RETURNS event_trigger LANGUAGE plpgsql AS"
            " $$BEGIN IF session_user = 'memory_app' THEN RAISE 'Feierabend'; END IF; END$$;"
            "CREATE EVENT TRIGGER refuse ON login EXECUTE FUNCTION refuse()",
            "DROP EVENT TRIGGER refuse; DROP FUNCTION refuse()",
        )(server) as url,
        pytest.raises(StoreUnavailable, match=r"refuses the connection .*: Feierabend"),
    ):
        MemoryApp.connect(settings_of(server, url))
