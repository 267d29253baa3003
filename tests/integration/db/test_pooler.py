"""Through PgBouncer: what a connection really has, what it may not be used for, and what it does without."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from pooler import PgBouncer, pgbouncer
from pydantic import SecretStr
from sqlalchemy import Engine

from memory_app.errors import StoreRefused
from memory_app.ops.check import Check, State
from memory_app.ops.doctor import diagnose
from memory_app.recall.rows import scope_index
from memory_app.runtime import app_engine, build
from memory_app.settings import Database, Settings
from memory_app.tenancy import schema
from memory_app.tenancy.access import owner_connection
from memory_app.tenancy.rows import keys

pytestmark = pytest.mark.system


@pytest.fixture
def pooler(settings: Settings) -> Iterator[PgBouncer]:
    with pgbouncer(app_url(settings), owner_url(settings), pool_size=3) as pooler:
        yield pooler


def app_url(settings: Settings) -> str:
    return settings.database.url.get_secret_value()


def owner_url(settings: Settings) -> str:
    assert settings.database.owner_url is not None
    return settings.database.owner_url.get_secret_value()


def through(pooler: PgBouncer, settings: Settings, **values: object) -> Settings:
    """The application through the pooler, the owner directly."""
    url = SecretStr(pooler.url(app_url(settings)))
    return settings.model_copy(
        update={"database": Database(url=url, owner_url=settings.database.owner_url, **values)}
    )


def owner_through(pooler: PgBouncer, settings: Settings) -> Settings:
    url = SecretStr(pooler.url(owner_url(settings)))
    return settings.model_copy(update={"database": Database(url=settings.database.url, owner_url=url)})


def prepare_threshold(engine: Engine) -> int | None:
    """After how many uses the driver has a statement prepared."""
    with engine.connect() as connection:
        driver = connection.connection.driver_connection
        assert driver is not None
        threshold: int | None = driver.prepare_threshold
    engine.dispose()
    return threshold


def test_doctor_finds_the_settings_of_the_role_behind_the_pooler(
    pooler: PgBouncer, settings: Settings
) -> None:
    checks = {check.name: check for check in diagnose(through(pooler, settings))}

    assert checks["session"].state is State.OK, checks["session"]
    assert checks["postgres"].found.endswith("through a pooler")
    assert checks["owner"].found == "connects directly"


def test_settings_changed_by_migrate_reach_the_pooler_when_it_reconnects(
    pooler: PgBouncer, settings: Settings
) -> None:
    patient = through(pooler, settings, statement_timeout_ms=7_000)
    assert "statement_timeout is 20000, not 7000" in named(patient, "session").found

    schema.upgrade(patient)
    assert "pooler reconnect" in named(patient, "session").to_do
    with pooler.console() as console:
        console.execute("RECONNECT")

    assert named(patient, "session").state is State.OK


def named(settings: Settings, name: str) -> Check:
    return next(check for check in diagnose(settings) if check.name == name)


def test_nothing_is_prepared_behind_a_pooler(pooler: PgBouncer, settings: Settings) -> None:
    assert prepare_threshold(app_engine(settings)) is not None
    assert prepare_threshold(app_engine(through(pooler, settings))) is None


def test_the_setting_overrules_what_is_told_by_itself(pooler: PgBouncer, settings: Settings) -> None:
    assert prepare_threshold(app_engine(through(pooler, settings, prepared_statements="on"))) is not None
    off = settings.database.model_copy(update={"prepared_statements": "off"})
    assert prepare_threshold(app_engine(settings.model_copy(update={"database": off}))) is None


def make_key(settings: Settings) -> None:
    with owner_connection(settings) as connection:
        keys.create(connection, "acme")


def build_index(settings: Settings) -> None:
    runtime = build(settings)
    try:
        assert runtime.owner is not None
        scope_index.build(runtime.owner, 1, model="hash-256", dimensions=256)
    finally:
        runtime.close()


OWNERS_WORK = {"migrate": schema.upgrade, "keys": make_key, "index": build_index}


@pytest.mark.parametrize("work", OWNERS_WORK.values(), ids=OWNERS_WORK)
def test_the_owner_is_refused_behind_a_pooler_that_shares_processes(
    pooler: PgBouncer, settings: Settings, work: Callable[[Settings], object]
) -> None:
    with pytest.raises(StoreRefused, match="need a direct connection to PostgreSQL"):
        work(owner_through(pooler, settings))

    assert named(owner_through(pooler, settings), "owner").state is State.FAIL


@pytest.mark.parametrize("pool_size", [1, 20])
def test_a_pooler_in_session_mode_is_as_good_as_none(settings: Settings, pool_size: int) -> None:
    with pgbouncer(owner_url(settings), mode="session", pool_size=pool_size) as pooler:
        assert schema.upgrade(owner_through(pooler, settings))


def test_the_owner_is_refused_however_the_pooler_takes_turns(settings: Settings) -> None:
    with pgbouncer(owner_url(settings), lines=["server_round_robin = 1"]) as pooler:
        for _ in range(4):
            with pytest.raises(StoreRefused):
                make_key(owner_through(pooler, settings))
