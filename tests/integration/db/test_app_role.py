"""The role of the application: its password is stored, and its sessions behave as the settings say without options."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote

import psycopg
import pytest
from own_servers import PostgresServer, postgres_server
from pydantic import SecretStr
from sqlalchemy import Engine, text

from memory_app.db import app_role, db
from memory_app.errors import StoreUnavailable
from memory_app.ops.check import Check, State
from memory_app.ops.doctor import diagnose
from memory_app.settings import Database, Settings
from memory_app.tenancy import schema


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    """A server of this test alone: passwords of roles are the whole server's."""
    with postgres_server() as server:
        server.create_database("memory")
        yield server


def on(server: PostgresServer, app_password: str) -> Settings:
    return Settings(
        _env_file=None,
        database=Database(
            url=SecretStr(server.url("memory", user="memory_app", password=app_password)),
            owner_url=SecretStr(server.url("memory")),
        ),
    )


def with_database(settings: Settings, **values: object) -> Settings:
    return settings.model_copy(update={"database": settings.database.model_copy(update=values)})


def session_check(settings: Settings) -> Check:
    return next(check for check in diagnose(settings) if check.name == "session")


def test_the_application_logs_in_with_the_password_of_its_address(server: PostgresServer) -> None:
    for password in ("first", "it's the second one"):
        settings = on(server, quote(password))
        schema.upgrade(settings)

        engine = db.connect(settings.database.url.get_secret_value())
        with db.transaction(engine, None) as connection:
            assert connection.execute(text("SELECT current_user")).scalar_one() == "memory_app"
        engine.dispose()

    engine = db.connect(on(server, "first").database.url.get_secret_value())
    with pytest.raises(StoreUnavailable), db.transaction(engine, None):
        pass
    engine.dispose()


def test_the_password_is_sent_as_a_digest(server: PostgresServer) -> None:
    with server.connect() as connection:
        connection.execute("ALTER SYSTEM SET log_statement = 'all'")
        connection.execute("SELECT pg_reload_conf()")

    schema.upgrade(on(server, "unmistakable"))

    logged = (server.folder / "server.log").read_text()
    assert "ALTER ROLE" in logged
    assert "SCRAM-SHA-256$" in logged
    assert "unmistakable" not in logged


def test_a_connection_has_the_settings_without_asking_for_them(settings: Settings) -> None:
    engine = db.connect(settings.database.url.get_secret_value())
    with db.transaction(engine, None) as connection:
        assert app_role.deviations(connection, schema.session_defaults(settings)) == ()
        shown = connection.execute(text("SHOW hnsw.iterative_scan")).scalar_one()
    engine.dispose()
    assert shown == "relaxed_order"


def test_other_settings_reach_sessions_when_one_migrates(settings: Settings) -> None:
    hasty = with_database(settings, statement_timeout_ms=1_234)
    before = session_check(hasty)
    assert (before.state, before.found) == (State.FAIL, "statement_timeout is 20000, not 1234")
    assert "memory migrate" in before.to_do

    schema.upgrade(hasty)

    assert session_check(hasty).state is State.OK
    assert session_check(settings).found == "statement_timeout is 1234, not 20000"


def test_a_session_that_lost_its_defaults_is_named_by_doctor(settings: Settings, owner: Engine) -> None:
    with owner.begin() as connection:
        name = connection.execute(text("SELECT current_database()")).scalar_one()
        connection.execute(text(f"ALTER ROLE memory_app IN DATABASE {name} RESET ALL"))

    check = session_check(settings)

    assert check.state is State.FAIL
    assert "hnsw.iterative_scan is off, not relaxed_order" in check.found
    assert "lock_timeout is 0, not 5000" in check.found


def test_the_statement_time_out_is_in_force(settings: Settings) -> None:
    schema.upgrade(with_database(settings, statement_timeout_ms=50))
    engine = db.connect(settings.database.url.get_secret_value())
    with pytest.raises(psycopg.errors.QueryCanceled), engine.connect() as connection:
        connection.connection.driver_connection.execute("SELECT pg_sleep(60)")  # type: ignore[union-attr]
    engine.dispose()
