"""Engine and transactions. One place turns driver errors into ours and sets the tenant for row-level security."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Literal

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url, text
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from memory_app import metrics, tracing
from memory_app.db import branches, locks, revision, shards
from memory_app.db.bounded_connection import MARGIN_SECONDS, BoundedConnection, bounded_connect
from memory_app.db.faults import OWNER_SETTING, RIGHT_MISSING, SETTING, Login, fault_of, is_right_missing
from memory_app.db.login_pause import LoginPause
from memory_app.db.pooler import Driver, is_pooled, shares_processes
from memory_app.db.shards import bound_of
from memory_app.errors import Forbidden, MemoryAppError, Misconfigured, StoreRefused, StoreUnavailable

LEAST_VERSION = 16
"""PostgreSQL's major version; 16 and 18 are tested."""

DRIVER = "postgresql+psycopg"

_STEADY = "ISOLATION LEVEL REPEATABLE READ READ ONLY"
_FOR_READING = text(
    "SELECT set_config('idle_in_transaction_session_timeout', '5min', true), set_config('enable_sort', 'off', true)"
)
_LIMIT_WAITS = text("SELECT set_config('lock_timeout', :limit, true)")
_PLAN_ANEW = text("SET LOCAL plan_cache_mode = force_custom_plan")

_LAST = "before_commit"

_MISSING_STATES = frozenset({"42P01", "42883", "3F000"})
"""A table, function or schema is missing. Parts may be started before the database is migrated, and wait for it."""
_OLD_SCHEMA_STATES = frozenset({"42703", "42704"})
"""A column or type is missing: a mistake of ours, unless the schema is behind this code."""

POOLER_WAIT_SECONDS = 5


def connect(
    url: str,
    *,
    pool_size: int = 8,
    pool_overflow: int = 8,
    pool_timeout_seconds: float = 5,
    connect_timeout_seconds: int = 5,
    statement_timeout_ms: int = 20_000,
    prepared_statements: Literal["auto", "on", "off"] = "auto",
    setting: str = SETTING,
    pauses: bool = False,
) -> Engine:
    """An engine; opens nothing yet. Make it after a fork, never before. Raises `Misconfigured` for what is no address.

    ``setting`` is the one that holds ``url``. ``pauses``: after a login that failed none is tried for a while, so
    that a server that is away holds up nobody who goes through all of them.
    ``statement_timeout_ms`` is when the server ends a statement of this role (see `app_role`): an answer is waited for
    a little longer. With 0 a wait has no end. ``prepared_statements`` are kept by the server; ``auto`` does without
    them behind a pooler, which may hand the next transaction to a server process that knows none.
    """

    def prepare_nothing(driver: Driver) -> None:
        if prepared_statements == "off" or (prepared_statements == "auto" and is_pooled(driver)):
            driver.prepare_threshold = None

    engine = _engine(
        url,
        setting=setting,
        prepare=prepare_nothing,
        pool_size=pool_size,
        pool_overflow=pool_overflow,
        pool_timeout_seconds=pool_timeout_seconds,
        connect_timeout_seconds=connect_timeout_seconds,
        statement_timeout_ms=statement_timeout_ms,
        pause=LoginPause() if pauses else None,
    )
    event.listen(engine, "handle_error", _leave_dropped_role)
    return engine


def connect_owner(url: str, *, statement_timeout_ms: int = 20_000, setting: str = OWNER_SETTING) -> Engine:
    """An engine for the owner of the tables; opens nothing yet. ``setting`` is the one that holds ``url``.

    Its first use raises `StoreRefused` behind a pooler that shares server processes. With ``statement_timeout_ms`` 0 a
    wait has no end: for work that takes minutes.
    """
    engine = _engine(
        url,
        setting=setting,
        prepare=lambda driver: _refuse_pooler(driver, engine),
        pool_size=1,
        pool_overflow=1,
        pool_timeout_seconds=5,
        connect_timeout_seconds=5,
        statement_timeout_ms=statement_timeout_ms,
        pause=None,
    )
    return engine


def _engine(
    url: str,
    *,
    setting: str,
    prepare: Callable[[Driver], None],
    pool_size: int,
    pool_overflow: int,
    pool_timeout_seconds: float,
    connect_timeout_seconds: int,
    statement_timeout_ms: int,
    pause: LoginPause | None,
) -> Engine:
    """``prepare`` is called with each new connection."""
    engine = create_engine(
        _address(url, setting),
        execution_options={"setting": setting},
        json_serializer=_json_text,
        pool_size=pool_size,
        max_overflow=pool_overflow,
        pool_timeout=pool_timeout_seconds,
        # The one used last first: those beyond the usual load stay idle, and a server or pooler may close them.
        pool_use_lifo=True,
        pool_recycle=1800,
        # No "options" here: a pooler refuses them. What a session needs are defaults of its role.
        connect_args={
            "connect_timeout": connect_timeout_seconds,
            "keepalives": 1,
            "keepalives_idle": 10,
            "keepalives_interval": 5,
            "keepalives_count": 3,
            # Keepalives are not sent while something is not yet acknowledged; this is the limit for that.
            "tcp_user_timeout": 20_000,
        },
    )

    def begin_session(driver: Driver, _: object) -> None:
        try:
            _check_version(driver)
            prepare(driver)
        except BaseException:
            # The pool does not have it yet, so nobody else would close it.
            driver.close()
            raise

    event.listen(engine, "connect", begin_session)
    event.listen(engine, "handle_error", _keep_values_out)
    limit_seconds = statement_timeout_ms / 1000 + MARGIN_SECONDS if statement_timeout_ms else None
    open_bounded = bounded_connect(limit_seconds)
    if pause is not None:
        open_bounded = pause.between(open_bounded)
    # Connections of our own class; a "creator" of the engine would have to take the address apart itself.
    event.listen(
        engine, "do_connect", lambda _dialect, _record, args, options: open_bounded(*args, **options)
    )
    tracing.watch_engine(engine)
    locks.watch(engine)
    return engine


def _json_text(value: object) -> str:
    """In UTF-8 as it is: escaped, a text in Chinese would be twice as long."""
    return json.dumps(value, ensure_ascii=False)


def _address(url: str, setting: str) -> URL:
    """The address, read. What is wrong with it is not quoted: it may be a piece of the password."""
    try:
        address = make_url(url)
    except (ArgumentError, ValueError):
        address = None
    if address is None or "@" in (address.host or "") or not address.drivername.startswith("postgres"):
        raise Misconfigured(
            f"{setting} is no address; write postgresql+psycopg://ROLE:PASSWORD@HOST:5432/DATABASE, and in a password "
            "%40 for @, %2F for / and %25 for %",
            field=setting,
        )
    return address.set(drivername=DRIVER)


def _check_version(driver: Driver) -> None:
    if driver.info.server_version < LEAST_VERSION * 10_000:
        name = driver.info.parameter_status("server_version")
        raise StoreRefused(
            f"PostgreSQL {name} is too old; move the database to version {LEAST_VERSION} or newer"
        )


def _refuse_pooler(driver: Driver, engine: Engine) -> None:
    def open_another() -> Driver:
        """Waits for the pooler no longer than this: it may have no second connection for the owner."""
        args, options = engine.dialect.create_connect_args(engine.url)
        return bounded_connect(POOLER_WAIT_SECONDS)(*args, **options, connect_timeout=POOLER_WAIT_SECONDS)

    if is_pooled(driver) and shares_processes(driver, open_another):
        setting = engine.get_execution_options()["setting"]
        raise StoreRefused(
            f"{setting} leads to a pooler that hands its connections on after each transaction; migrations, keys "
            "and index builds need a direct connection to PostgreSQL, or a pooler in session mode"
        )


def watch(engine: Engine, *, begun: Callable[[], None], done: Callable[[], None]) -> None:
    """Call ``begun`` whenever a transaction of this engine begins, and ``done`` after each statement."""
    event.listen(engine, "begin", lambda *_: begun())
    event.listen(engine, "after_cursor_execute", lambda *_: done())


def _keep_values_out(context: Any) -> None:
    """Parameters hold what people said; an exception that is logged must not carry them."""
    if context.sqlalchemy_exception is not None:
        context.sqlalchemy_exception.hide_parameters = True


def _leave_dropped_role(context: Any) -> None:
    """Log in anew where a right is missing: sessions of a role that was dropped and made again never get theirs."""
    if is_right_missing(context.original_exception):
        context.is_disconnect = True


@contextmanager
def transaction(engine: Engine, tenant_id: int | None) -> Iterator[Connection]:
    """One transaction in which only rows of ``tenant_id`` exist; None sees no tenant's rows.

    It works in the shard that the engine is bound to. What was asked for with `before_commit` runs last. Raises
    `StoreUnavailable` when the server or the shard is away, the server is busy, or the outcome of the commit is
    unknown, and `StoreRefused` when it turns us away.
    """
    with _opened(engine, tenant_id) as connection:
        yield connection


@contextmanager
def steady(engine: Engine, tenant_id: int) -> Iterator[Connection]:
    """A transaction that only reads, and sees one state of the tenant however long it takes.

    Whoever is read to may be slow: the server waits 5 minutes between two statements. Rows that stand in an index come
    in its order and at once; sorting a million of them first would take longer than a statement may. Raises as
    `transaction`.
    """
    with _opened(engine, tenant_id, mode=_STEADY) as connection:
        connection.execute(_FOR_READING)
        yield connection


@contextmanager
def one_state(engine: Engine, tenant_id: int) -> Iterator[Connection]:
    """A short transaction that only reads, and whose statements all see one state of the tenant. Raises as
    `transaction`."""
    with _opened(engine, tenant_id, mode=_STEADY) as connection:
        yield connection


@contextmanager
def _opened(engine: Engine, tenant_id: int | None, *, mode: str = "") -> Iterator[Connection]:
    with translated(engine), ExitStack() as stack:

        def begin(engine: Engine) -> Connection:
            return stack.enter_context(_branch(engine, tenant_id, mode=mode))

        connection = begin(engine)
        # Inside of the branches, which would each end by itself otherwise.
        with branches.united(connection, begin=begin, end=_do_last, home=shards.home_engine_of(engine)):
            yield connection


@contextmanager
def _branch(engine: Engine, tenant_id: int | None, *, mode: str) -> Iterator[Connection]:
    """The part of a transaction that is on one server."""
    with _begun(engine) as connection, _beginning(connection, tenant_id, mode=mode):
        shards.enter(connection)
        # Taken once: a connection that broke meanwhile refuses to be asked for it, and would hide how it broke.
        info = connection.info
        info[_LAST] = {}
        try:
            yield connection
        finally:
            info.pop(_LAST, None)


def _do_last(connection: Connection) -> None:
    # Only where the body came to its end; what failed has nothing to write.
    last: dict[Callable[[Connection, list[Any]], None], list[Any]] = connection.info.pop(_LAST, {})
    for act, values in last.items():
        act(connection, values)


@contextmanager
def _beginning(connection: Connection, tenant_id: int | None, *, mode: str) -> Iterator[None]:
    """Sent with the first statement of the transaction: setting the tenant by itself would be a round trip more."""
    if tenant_id is None and not mode:
        # BEGIN alone, as of any engine.
        yield
        return
    driver = connection.connection.driver_connection
    # One of another class would leave the tenant out, and find nothing.
    assert isinstance(driver, BoundedConnection)
    driver.begins_with = shards.first_statements(tenant_id, mode=mode)
    try:
        yield
    finally:
        # Whoever gets the connection next says for themselves whose rows they see.
        driver.begins_with = None


def before_commit(connection: Connection, act: Callable[[Connection, list[Any]], None], value: Any) -> None:
    """Let ``act`` be the last thing the transaction does, once, with all values it was asked for.

    For rows that many transactions touch: who takes such locks last, and in one order, never waits in a circle.
    Outside of `transaction` it acts at once.
    """
    last = connection.info.get(_LAST)
    if last is None:
        act(connection, [value])
    else:
        last.setdefault(act, []).append(value)


def limit_waits(connection: Connection, *, milliseconds: int) -> None:
    """From here on the transaction waits for each lock as long as this at most; 0: as long as a statement may last."""
    connection.execute(_LIMIT_WAITS, {"limit": str(milliseconds)})


def wait_briefly(connection: Connection) -> None:
    """From here on the transaction waits 100 ms at most for a row that is locked: for what can be tried again later."""
    limit_waits(connection, milliseconds=round(locks.BRIEF_SECONDS * 1000))


def wait_in_line(connection: Connection) -> None:
    """From here on the transaction waits for a locked row as long as a statement may last: for what must come to its
    turn. The server serves those who wait for a row in their order."""
    limit_waits(connection, milliseconds=0)


def plan_anew(connection: Connection) -> None:
    """From here on the transaction plans each statement for the scopes at hand: for those that are large or have
    indexes of their own, since a kept plan fits a scope of average size and no index of one scope.
    """
    connection.execute(_PLAN_ANEW)


@contextmanager
def _begun(engine: Engine) -> Iterator[Connection]:
    """A transaction. What ended it goes on as it is, even if the connection cannot roll back any more."""
    ended_by: Exception | None = None
    try:
        with ExitStack() as stack:
            with metrics.timed(metrics.connection_seconds):
                connection = stack.enter_context(engine.begin())
            try:
                yield connection
            except Exception as error:
                ended_by = error
                raise
    except DBAPIError as error:
        # A worker's time limit strikes in the middle of a statement; the failing rollback would pass for an outage.
        if ended_by is not None and not isinstance(ended_by, DBAPIError):
            raise ended_by from error
        raise


@contextmanager
def translated(engine: Engine) -> Iterator[None]:
    """Turn driver errors that the state of the server explains into ours; others stay programming errors."""
    try:
        yield
    except PoolTimeout as error:
        metrics.database_failures.labels("pool").inc()
        raise StoreUnavailable(
            "no free database connection; try again, or raise MEMORY_DATABASE__POOL_SIZE", retry_after=1
        ) from error
    except DBAPIError as error:
        # The schema first: without it, a column that a migration has yet to add would be a programming error.
        fault: MemoryAppError | None = (
            _schema_fault(engine, error) or _bound_fault(engine, error) or fault_of(error, Login.of(engine))
        )
        if fault is None:
            raise
        metrics.database_failures.labels(getattr(error.orig, "sqlstate", None) or "connection").inc()
        raise fault from error


def _bound_fault(engine: Engine, error: DBAPIError) -> Forbidden | None:
    """Whether a row or a table was refused because it is not of whom the engine is bound to."""
    if bound_of(engine) is None or getattr(error.orig, "sqlstate", None) != RIGHT_MISSING:
        return None
    return Forbidden("this key is for one agent or one user, and may do nothing about others")


def _schema_fault(engine: Engine, error: DBAPIError) -> StoreUnavailable | None:
    """Whether something is missing because the schema is another than this code's."""
    state = getattr(error.orig, "sqlstate", None)
    if state not in _MISSING_STATES | _OLD_SCHEMA_STATES:
        return None
    try:
        # Over another connection: a transaction that failed answers nothing more.
        with engine.connect() as connection:
            difference = revision.difference(revision.stored(connection, shard=shards.shard_of(engine)))
    except DBAPIError as reason:
        return fault_of(reason, Login.of(engine))
    if difference is None and state in _MISSING_STATES:
        difference = f"something of the schema is missing ({state}); `memory doctor` names it"
    return None if difference is None else StoreUnavailable(difference, retry_after=1)
