"""Check servers, settings and workers from outside, and say what is wrong and what to do about it.

Each check stands alone, so that one broken part does not hide the others. Nothing is changed and no content is read.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TypeVar

from sqlalchemy import Connection, Engine

from memory_app.db import db, inspection
from memory_app.db.directory import Directory
from memory_app.errors import MemoryAppError
from memory_app.forget import receipts
from memory_app.forget.receipts import Comparison
from memory_app.hot import breaker
from memory_app.hot.client import Hot
from memory_app.jobs.rows import health
from memory_app.jobs.rows.health import DueWork, PipelineState, shown
from memory_app.ops import (
    database_checks,
    due,
    limit_checks,
    lock_check,
    process_checks,
    redaction_check,
    redis_checks,
    retention_check,
    settings_check,
    shard_checks,
    time_outs,
    webhook_checks,
)
from memory_app.ops.check import Check, State, fail, failure, ok, warn
from memory_app.ops.redis_checks import open_hot
from memory_app.recall import scope_index
from memory_app.runtime import app_servers, embedder_of
from memory_app.settings import ENV_FILE, Settings


def diagnose(settings: Settings) -> tuple[Check, ...]:
    """All checks, in the order of the pipe. Never raises for a part that is away; takes a few seconds."""
    owner_url = settings.database.owner_url
    directory = Directory(app_servers(settings))
    engine = directory.servers.home
    owner = None if owner_url is None else db.connect_owner(owner_url.get_secret_value())
    try:
        is_reachable, checks = database_checks.look(settings, engine)
        checks += [
            settings_check.look(os.environ, Path(ENV_FILE)),
            time_outs.check(settings),
            *redis_checks.look(settings),
            *process_checks.look(settings),
            *redis_checks.messages(settings),
        ]
        # Without the database each of its checks would say the same, after a time-out of its own.
        tenants, owner_checks = _owner(owner) if is_reachable else (None, [])
        checks += owner_checks
        checks += [_embedder(settings, directory, tenants), _language_model(settings, directory, tenants)]
        checks.append(retention_check.look(settings, directory, tenants if is_reachable else None))
        if is_reachable:
            checks += [
                *shard_checks.look(directory),
                *lock_check.look(engine, owner),
                *_due(settings, directory),
                *_failed(directory, tenants),
                *limit_checks.look(directory, tenants),
                *webhook_checks.look(engine),
                *redaction_check.look(settings, engine, tenants),
                *_big_scopes(settings, engine),
                *_search_indexes(directory, tenants),
                *_erasures(settings, engine, tenants),
            ]
        return tuple(checks)
    finally:
        directory.servers.dispose()
        if owner is not None:
            owner.dispose()


def is_well(checks: Sequence[Check]) -> bool:
    """Whether nothing fails; warnings do not count."""
    return all(check.state is not State.FAIL for check in checks)


# --- work ---------------------------------------------------------------------------------------------------


def _due(settings: Settings, directory: Directory) -> Iterator[Check]:
    try:
        first, *others = [_pipeline(place) for place in directory.engines()]
        pipe = sum(others, first)
        late = due.lateness(lambda: _look(directory), process_checks.signs(settings) or {})
    except MemoryAppError as error:
        yield fail("due work", error.message, to_do="mend Postgres first")
        return
    finding = f"{shown(pipe.unindexed)} turns to index, {shown(pipe.due_sessions)} sessions to extract"
    if not late:
        yield ok("due work", finding)
        return
    to_do = "see that workers, Beat and `memory finder` run, and read their logs"
    # A backlog is worked off by itself; work that no worker has in hand is not.
    judge = fail if any(work.is_stalled for work in late) else warn
    reasons = [f"{work.kind}: {work.reason}" for work in late]
    yield judge("due work", "; ".join([finding, *reasons]), to_do=to_do)


def _look(directory: Directory) -> Sequence[DueWork]:
    works: list[DueWork] = []
    for place in directory.engines():
        with db.transaction(place, None) as connection:
            works += health.due_work(connection)
    return health.united(works)


def _pipeline(place: Engine) -> PipelineState:
    with db.transaction(place, None) as connection:
        return health.pipeline_state(connection)


# --- embedder, failed turns ---------------------------------------------------------------------------------

_Tenants = tuple[tuple[int, str], ...]
_Answer = TypeVar("_Answer")


def _owner(owner: Engine | None) -> tuple[_Tenants | None, list[Check]]:
    """All tenants, which only the owner of the tables sees, and the check of its connection."""
    # The parts run without the owner's connection; checks of all tenants are left out then.
    if owner is None:
        return None, []
    try:
        with db.transaction(owner, None) as connection:
            return inspection.tenants(connection), [ok("owner", "connects directly")]
    except MemoryAppError as error:
        return None, [failure("owner", error)]


def _embedder(settings: Settings, directory: Directory, tenants: _Tenants | None) -> Check:
    hot = open_hot(settings)
    try:
        embedder = embedder_of(settings.embedding, hot)
        rest = _rest_seconds(hot, "embedding")
        stored = () if tenants is None else _each(directory, tenants, inspection.stored_embeddings)
    except MemoryAppError as error:
        to_do = "check MEMORY_EMBEDDING__PROVIDER and its dimensions"
        return fail("embedder", error.message, to_do=to_do)
    finally:
        hot.close()
    if rest > 0:
        finding = f"{embedder.model} failed too often; it rests {rest:.0f} s"
        to_do = "check its address, its key and the account; turns are accepted meanwhile and wait"
        return warn("embedder", finding, to_do=to_do)
    rows = list(chain.from_iterable(stored))
    own = [row for row in rows if row.model == embedder.model]
    # Vectors of one model and two lengths cannot be compared: the search would fail.
    misfit = next((row for row in own if row.dimensions != embedder.dimensions), None)
    if misfit is not None:
        finding = f"{embedder.model} gives {embedder.dimensions} dimensions, stored are {misfit.dimensions}"
        return fail("embedder", finding, to_do="set MEMORY_EMBEDDING__DIMENSIONS to what is stored")
    others = sorted({f"{row.model} ({row.rows} rows)" for row in rows if row.model != embedder.model})
    if others:
        finding = f"{embedder.model}; stored are also {', '.join(others)}"
        to_do = "move them with `memory reembed`; workers do it too, and search goes on meanwhile"
        return warn("embedder", finding, to_do=to_do)
    finding = f"{embedder.model}, {embedder.dimensions} dimensions"
    if tenants is None:
        finding += "; stored vectors not compared (needs MEMORY_DATABASE__OWNER_URL)"
    return ok("embedder", finding)


def _language_model(settings: Settings, directory: Directory, tenants: _Tenants | None) -> Check:
    """Whether one is set, and whether its circuit is open."""
    # The model itself is not called: that would cost money each time a supervisor runs the doctor.
    chat, name = settings.chat, "language model"
    hot = open_hot(settings)
    try:
        rest = _rest_seconds(hot, "chat")
        waiting = sum(_each(directory, tenants or (), inspection.agents_with_model))
    except MemoryAppError as error:
        return fail(name, error.message, to_do="mend Postgres first")
    finally:
        hot.close()
    if chat.base_url is None:
        to_do = "set MEMORY_CHAT__BASE_URL and MEMORY_CHAT__MODEL, or their policy's extraction to rules"
        if waiting:
            return warn(name, f"none is set; agents that wait for one: {waiting}", to_do=to_do)
        return ok(name, "none is set, and no agent asks one")
    if rest > 0:
        to_do = "check MEMORY_CHAT__BASE_URL, its key and the account; turns are accepted meanwhile and wait"
        return warn(name, f"{chat.model} failed too often; it rests {rest:.0f} s", to_do=to_do)
    return ok(name, f"{chat.model}; its circuit is closed")


def _rest_seconds(hot: Hot, name: str) -> float:
    """How long the circuit breaker stays open; 0 while Redis is away, which has a check of its own."""
    try:
        return breaker.rest_left(hot, name)
    except MemoryAppError:
        return 0.0


def _failed(directory: Directory, tenants: _Tenants | None) -> Iterator[Check]:
    if tenants is None:
        return
    try:
        count = sum(_each(directory, tenants, inspection.failed_turns))
    except MemoryAppError as error:
        yield fail("failed turns", error.message, to_do="mend Postgres first")
        return
    if count:
        to_do = "read why with `memory failed`, mend the cause, and replay or discard them"
        yield warn("failed turns", f"{count} set aside", to_do=to_do)
    else:
        yield ok("failed turns", "none")


# Early enough to move tenants before a scope that grows big gets no index.
BIG_SCOPES_WARN = 0.8
"""Share of the scopes that may have search indexes from which on the doctor warns."""


def _big_scopes(settings: Settings, engine: Engine) -> Iterator[Check]:
    """Whether there is room for search indexes of more scopes. No check where no scope has one."""
    name = "big scopes"
    try:
        with db.transaction(engine, None) as connection:
            room = scope_index.room(connection, setting=settings.recall.big_scopes_max)
    except MemoryAppError as error:
        yield fail(name, error.message, to_do="mend Postgres first")
        return
    if not room.indexed:
        return
    finding = f"{room.indexed} of at most {room.most} have search indexes"
    if room.indexed < BIG_SCOPES_WARN * room.most:
        yield ok(name, finding)
        return
    to_do = (
        "users of further ones move to another shard; without MEMORY_DATABASE__OWNER_URL they are scanned, which takes "
        "75 ms at 100,000 rows"
    )
    # Every index takes a lock in each statement on its table, so the lock table of PostgreSQL may set a lower limit.
    if room.most < settings.recall.big_scopes_max:
        to_do = f"raise max_locks_per_transaction of Postgres and restart it; else {to_do}"
    yield warn(name, finding, to_do=to_do)


def _search_indexes(directory: Directory, tenants: _Tenants | None) -> Iterator[Check]:
    """How well the approximate indexes of big scopes agree with a scan. No check where there is none."""
    if tenants is None:
        return
    try:
        agreements = list(chain.from_iterable(_each(directory, tenants, scope_index.agreements)))
    except MemoryAppError as error:
        yield fail("search indexes", error.message, to_do="mend Postgres first")
        return
    if not agreements:
        return
    worst = min(agreements, key=lambda agreement: agreement.share)
    finding = f"{len(agreements)} looked at; the worst finds {worst.share:.0%} of what a scan finds"
    if worst.share < scope_index.AGREEMENT_LEAST:
        finding += f" (scope {worst.scope_id}, {worst.table})"
        to_do = "raise MEMORY_RECALL__CANDIDATES, or REINDEX the scope's indexes CONCURRENTLY"
        yield warn("search indexes", finding, to_do=to_do)
    else:
        yield ok("search indexes", finding)


def _erasures(settings: Settings, engine: Engine, tenants: _Tenants | None) -> Iterator[Check]:
    """Whether the database knows every erasure of the file. One that was restored from a backup does not."""
    path, name = settings.erasures_file, "erasures"
    if settings.erasure.secret is None:
        finding = (
            "whoever has a receipt may guess whom it is of, nobody can tell whether it was altered, and only the "
            "process that began a session of the page knows it; no webhook can be made"
        )
        yield warn("erasure secret", finding, to_do="set MEMORY_ERASURE__SECRET for all processes alike")
    if path is None:
        return
    if tenants is None:
        yield ok(name, f"{path} not compared (needs MEMORY_DATABASE__OWNER_URL)")
        return
    if not path.exists():
        to_do = f"`memory erasures export {path}` makes it; each erasure is then added by itself"
        yield warn(name, f"there is no file {path} yet", to_do=to_do)
        return
    try:
        comparison = receipts.compare(engine, dict(tenants), path)
    except MemoryAppError as error:
        to_do = "check MEMORY_ERASURES_FILE and the rights on that file"
        yield fail(name, error.message, to_do=to_do)
        return
    yield _comparison(name, path, comparison)


def _comparison(name: str, path: Path, comparison: Comparison) -> Check:
    # The worst first: people who were forgotten are back in the database.
    if comparison.only_in_file:
        finding = (
            f"{comparison.only_in_file} of {comparison.receipts} receipts in {path} are unknown to the database, "
            f"the newest of {comparison.newest_only_in_file:%Y-%m-%d %H:%M}: it was restored from an older backup"
        )
        return warn(name, finding, to_do=f"erase again what came back: `memory erasures replay {path}`")
    if comparison.only_in_database:
        finding = f"{path} lacks {comparison.only_in_database} receipts"
        return warn(name, finding, to_do=f"add them with `memory erasures export {path}`")
    if comparison.unreadable:
        finding = f"{path} has {comparison.unreadable} lines that are no receipts"
        return warn(name, finding, to_do="no receipt is missing; take those lines out")
    return ok(name, f"the database knows all {comparison.receipts} receipts in {path}")


def _each(directory: Directory, tenants: _Tenants, query: Callable[[Connection], _Answer]) -> list[_Answer]:
    """The answers of one query for each tenant and shard, in a transaction of its own: row-level security shows one
    tenant at a time."""
    answers = []
    for place in directory.engines():
        for tenant_id, _ in tenants:
            with db.transaction(place, tenant_id) as connection:
                answers.append(query(connection))
    return answers
