"""Doctor: looks at servers, settings and workers from outside, and says what is wrong and what to do about it.

Each check stands alone, so that one broken part does not hide the others. Nothing is changed and no content is read.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from sqlalchemy import Connection, Engine

from memory_app import queue
from memory_app.db import app_role, catalog, db, inspection, revision
from memory_app.db.app_role import Deviation
from memory_app.db.catalog import Difference
from memory_app.db.inspection import Server
from memory_app.errors import MemoryAppError
from memory_app.forget import receipts
from memory_app.forget.receipts import Comparison
from memory_app.hot import breaker
from memory_app.hot.client import Hot
from memory_app.hot.life import Sign
from memory_app.jobs import life
from memory_app.jobs.life import Heard
from memory_app.jobs.rows import health
from memory_app.jobs.rows.health import DueWork, shown
from memory_app.ops import due, redis_checks, time_outs
from memory_app.ops.check import Check, State, clock, version
from memory_app.ops.redis_checks import open_hot
from memory_app.recall import scope_index
from memory_app.runtime import app_engine, embedder_of
from memory_app.settings import Settings
from memory_app.tenancy import schema

VECTOR_VERSION = (0, 8)

DIFFERENCES_SHOWN = 10
"""Objects of the schema that are named when they are not as expected; the others are counted."""


def diagnose(settings: Settings) -> tuple[Check, ...]:
    """All checks, in the order of the pipe. Never raises for a part that is away; takes a few seconds."""
    database = settings.database
    engine = app_engine(settings)
    owner = None if database.owner_url is None else db.connect_owner(database.owner_url.get_secret_value())
    try:
        reachable, checks = _database(settings, engine)
        found = [
            *checks,
            time_outs.check(settings),
            *redis_checks.look(settings),
            *_processes(settings),
            *redis_checks.messages(settings),
        ]
        tenants, owner_checks = _owner(owner) if reachable else (None, [])
        found += owner_checks
        found += [_embedder(settings, engine, tenants), _language_model(settings, engine, tenants)]
        if reachable:
            found += [
                *_due(settings, engine),
                *_failed(engine, tenants),
                *_big_scopes(settings, engine),
                *_search_indexes(engine, tenants),
            ]
            found += _erasures(settings, engine, tenants)
        return tuple(found)
    finally:
        engine.dispose()
        if owner is not None:
            owner.dispose()


def is_well(checks: Sequence[Check]) -> bool:
    """Whether nothing fails; warnings do not count."""
    return all(check.state is not State.FAIL for check in checks)


# --- Postgres -----------------------------------------------------------------------------------------------


def _database(settings: Settings, engine: Engine) -> tuple[bool, list[Check]]:
    asked = time.time()
    try:
        with db.transaction(engine, None) as connection:
            server = inspection.server(connection)
            stored = revision.stored(connection)
            wanted = schema.session_defaults(settings)
            deviations = () if server.vector_installed is None else app_role.deviations(connection, wanted)
            differences = catalog.differences_of(connection) if stored == revision.newest() else ()
    except MemoryAppError as error:
        return False, [_failure("postgres", error)]
    offset = server.now.timestamp() - (asked + time.time()) / 2
    return stored is not None, [
        _postgres(server),
        _vector(server),
        _schema(stored, differences),
        _role(server),
        _isolation(server),
        _session(deviations),
        _durability(server),
        clock("postgres", offset),
    ]


def _failure(name: str, error: MemoryAppError) -> Check:
    """Messages of errors say what is wrong, then what to do."""
    found, _, to_do = error.message.partition("; ")
    return Check(name, State.FAIL, found, to_do)


def _postgres(server: Server) -> Check:
    major, minor = divmod(server.version, 10_000)
    way = ", through a pooler" if server.is_pooled else ""
    return Check("postgres", State.OK, f"version {major}.{minor}{way}")


def _vector(server: Server) -> Check:
    wanted = ".".join(str(part) for part in VECTOR_VERSION)
    if server.vector_installed is None:
        if server.vector_available is None:
            to_do = f"install pgvector {wanted} or newer on the database server, then run `memory migrate`"
            return Check("pgvector", State.FAIL, "not available on this server", to_do)
        return Check("pgvector", State.FAIL, "available, but not in this database", "run `memory migrate`")
    if version(server.vector_installed) < VECTOR_VERSION:
        to_do = f"install pgvector {wanted} or newer, then `ALTER EXTENSION vector UPDATE`"
        return Check("pgvector", State.FAIL, f"version {server.vector_installed}", to_do)
    return Check("pgvector", State.OK, f"version {server.vector_installed}")


def _schema(stored: str | None, differences: Sequence[Difference]) -> Check:
    difference = revision.difference(stored)
    if difference is not None:
        found, _, to_do = difference.partition("; ")
        return Check("schema", State.WARN if revision.is_ahead(stored) else State.FAIL, found, to_do)
    if differences:
        shown = differences[:DIFFERENCES_SHOWN]
        more = len(differences) - len(shown)
        found = ", ".join(f"{each.name} is {each.state}" for each in shown)
        return Check(
            "schema",
            State.FAIL,
            f"revision {stored}, but {found}{f', and {more} more' if more else ''}",
            "; ".join(dict.fromkeys(each.remedy for each in shown)),
        )
    return Check("schema", State.OK, f"revision {stored}, with every object as expected")


def _role(server: Server) -> Check:
    powers = {"a superuser": server.is_superuser, "bypasses row-level security": server.bypasses_rls}
    powers |= {"owns tables": server.owned_tables > 0}
    held = [power for power, has in powers.items() if has]
    if held:
        to_do = "let MEMORY_DATABASE__URL name the role memory_app, which `memory migrate` makes"
        return Check(
            "role", State.FAIL, f"{server.role}: {', '.join(held)}; tenants are not kept apart", to_do
        )
    return Check("role", State.OK, f"{server.role} owns nothing and bypasses nothing")


def _isolation(server: Server) -> Check:
    if server.open_tables:
        to_do = "ENABLE and FORCE ROW LEVEL SECURITY on them, as the migrations do"
        return Check("isolation", State.FAIL, f"open: {', '.join(server.open_tables)}", to_do)
    return Check("isolation", State.OK, "row-level security holds on every table of tenants")


def _session(deviations: Sequence[Deviation]) -> Check:
    """Whether the connection that workers and the API get is as the settings say."""
    if deviations:
        found = "; ".join(f"{d.name} is {d.value or 'unknown'}, not {d.wanted}" for d in deviations)
        to_do = "run `memory migrate`, which makes them defaults of the role, then let a pooler reconnect"
        return Check("session", State.FAIL, found, to_do)
    return Check("session", State.OK, "time-outs and search settings of the role are in force")


def _durability(server: Server) -> Check:
    if server.fsync != "on":
        return Check(
            "durability", State.WARN, "fsync is off: a power cut loses data", "only for trials; turn it on"
        )
    if server.synchronous_commit == "off":
        to_do = "set synchronous_commit to on; an accepted turn must survive a crash"
        return Check("durability", State.FAIL, "synchronous_commit is off", to_do)
    return Check("durability", State.OK, f"synchronous_commit is {server.synchronous_commit}")


# --- workers, work ----------------------------------------------------------------------------------


def _processes(settings: Settings) -> Iterator[Check]:
    """Each kind of part by the signs of life of its processes; a kind that need not be there is named where it is."""
    hot = open_hot(settings)
    try:
        heard = life.listen(hot)
    except MemoryAppError as error:
        yield Check("workers", State.FAIL, error.message, "mend Redis first")
        return
    finally:
        hot.close()
    for name in queue.QUEUES:
        to_do = f"start one: `memory worker --queue {name}`, or everything with `memory up`"
        yield _process(f"queue {name}", heard[life.worker_of(name)], to_do, missed=State.FAIL)
    looks = heard[life.FINDER].living or heard[life.BEAT].living
    missed = State.OK if looks else State.FAIL
    for kind in (life.FINDER, life.BEAT):
        to_do = f"start one: `memory {kind}`; the finder and Beat find the same work, and one is needed"
        silent = State.WARN if looks else State.FAIL
        yield _process(kind, heard[kind], to_do, missed=missed, silent=silent)
    if not heard[life.API].is_absent:
        yield _process("api", heard[life.API], "start it: `memory serve`", missed=State.OK)


def _process(name: str, heard: Heard, to_do: str, *, missed: State, silent: State = State.FAIL) -> Check:
    if heard.is_absent:
        return Check(name, missed, "none is heard", "" if missed is State.OK else to_do)
    if heard.is_silent:
        told = f"{_instances(heard.silent)} silent for {heard.silent[0].age_seconds:.0f} s"
        return Check(name, silent, told, "see whether it hangs or was killed, and start it again")
    told = _count(heard.living, "worker" if name.startswith("queue") else name)
    if heard.silent:
        return Check(
            name,
            State.WARN,
            f"{told}; {_instances(heard.silent)} silent for {heard.silent[0].age_seconds:.0f} s",
            "see whether it hangs; one that was killed is forgotten after ten minutes",
        )
    return Check(name, State.OK, told)


def _count(signs: Sequence[Sign], noun: str) -> str:
    tasks = sum(sign.tasks for sign in signs)
    told = f"{len(signs)} {noun}" if len(signs) == 1 else f"{len(signs)} {noun}s"
    return f"{told}, {tasks} tasks in hand" if tasks else told


def _instances(signs: Sequence[Sign]) -> str:
    return ", ".join(sign.instance for sign in signs)


def _due(settings: Settings, engine: Engine) -> Iterator[Check]:
    try:
        with db.transaction(engine, None) as connection:
            pipe = health.pipeline_state(connection)
        late = due.lateness(lambda: _look(engine), _listen(settings))
    except MemoryAppError as error:
        yield Check("due work", State.FAIL, error.message, "mend Postgres first")
        return
    found = f"{shown(pipe.unindexed)} turns to index, {shown(pipe.due_sessions)} sessions to extract"
    if not late:
        yield Check("due work", State.OK, found)
        return
    to_do = "see that workers, Beat and `memory finder` run, and read their logs"
    state = State.FAIL if any(one.is_stalled for one in late) else State.WARN
    yield Check("due work", state, "; ".join([found, *(f"{one.kind}: {one.reason}" for one in late)]), to_do)


def _look(engine: Engine) -> Sequence[DueWork]:
    with db.transaction(engine, None) as connection:
        return health.due_work(connection)


def _listen(settings: Settings) -> Mapping[str, Heard]:
    """Nothing without Redis, which has a check of its own."""
    hot = open_hot(settings)
    try:
        return life.listen(hot)
    except MemoryAppError:
        return {}
    finally:
        hot.close()


# --- embedder, failed turns ---------------------------------------------------------------------------------

_Tenants = tuple[tuple[int, str], ...]
_Answer = TypeVar("_Answer")


def _owner(owner: Engine | None) -> tuple[_Tenants | None, list[Check]]:
    """All tenants, which only the owner sees; None without its connection, which is checked where there is one."""
    if owner is None:
        return None, []
    try:
        with db.transaction(owner, None) as connection:
            return inspection.tenants(connection), [Check("owner", State.OK, "connects directly")]
    except MemoryAppError as error:
        return None, [_failure("owner", error)]


def _embedder(settings: Settings, engine: Engine, tenants: _Tenants | None) -> Check:
    hot = open_hot(settings)
    try:
        embedder = embedder_of(settings.embedding, hot)
        rest = _rest_left(hot, "embedding")
        stored = () if tenants is None else _each(engine, tenants, inspection.stored_embeddings)
    except MemoryAppError as error:
        return Check(
            "embedder", State.FAIL, error.message, "check MEMORY_EMBEDDING__PROVIDER and its dimensions"
        )
    finally:
        hot.close()
    if rest > 0:
        to_do = "check its address, its key and the account; turns are accepted meanwhile and wait"
        return Check(
            "embedder", State.WARN, f"{embedder.model} failed too often; it rests {rest:.0f} s", to_do
        )
    other = sorted({f"{s.model} ({s.rows} rows)" for of in stored for s in of if s.model != embedder.model})
    wrong = [
        s for of in stored for s in of if s.model == embedder.model and s.dimensions != embedder.dimensions
    ]
    if wrong:
        found = f"{embedder.model} gives {embedder.dimensions} dimensions, stored are {wrong[0].dimensions}"
        return Check("embedder", State.FAIL, found, "set MEMORY_EMBEDDING__DIMENSIONS to what is stored")
    if other:
        to_do = "move them with `memory reembed`; workers do it too, and search goes on meanwhile"
        return Check("embedder", State.WARN, f"{embedder.model}; stored are also {', '.join(other)}", to_do)
    told = "; stored vectors not compared (needs MEMORY_DATABASE__OWNER_URL)" if tenants is None else ""
    return Check("embedder", State.OK, f"{embedder.model}, {embedder.dimensions} dimensions{told}")


def _language_model(settings: Settings, engine: Engine, tenants: _Tenants | None) -> Check:
    """Set or not, and whether its circuit is open. It is not asked: that would cost money."""
    chat, name = settings.chat, "language model"
    hot = open_hot(settings)
    try:
        rest = _rest_left(hot, "chat")
        waiting = sum(_each(engine, tenants or (), inspection.agents_with_model))
    except MemoryAppError as error:
        return Check(name, State.FAIL, error.message, "mend Postgres first")
    finally:
        hot.close()
    if chat.base_url is None:
        to_do = "set MEMORY_CHAT__BASE_URL and MEMORY_CHAT__MODEL, or their policy's extraction to rules"
        if waiting:
            return Check(name, State.WARN, f"none is set; agents that wait for one: {waiting}", to_do)
        return Check(name, State.OK, "none is set, and no agent asks one")
    if rest > 0:
        to_do = "check MEMORY_CHAT__BASE_URL, its key and the account; turns are accepted meanwhile and wait"
        return Check(name, State.WARN, f"{chat.model} failed too often; it rests {rest:.0f} s", to_do)
    return Check(name, State.OK, f"{chat.model}; its circuit is closed")


def _rest_left(hot: Hot, name: str) -> float:
    """As the breaker says; without Redis, which has a check of its own, nothing rests."""
    try:
        return breaker.rest_left(hot, name)
    except MemoryAppError:
        return 0.0


def _failed(engine: Engine, tenants: _Tenants | None) -> Iterator[Check]:
    if tenants is None:
        return
    try:
        count = sum(_each(engine, tenants, inspection.failed_turns))
    except MemoryAppError as error:
        yield Check("failed turns", State.FAIL, error.message, "mend Postgres first")
        return
    if count:
        to_do = "read why with `memory failed`, mend the cause, and replay or discard them"
        yield Check("failed turns", State.WARN, f"{count} set aside", to_do)
    else:
        yield Check("failed turns", State.OK, "none")


BIG_SCOPES_WARN = 0.8
"""Share of the scopes that may have search indexes from which one is told, before big ones get none."""


def _big_scopes(settings: Settings, engine: Engine) -> Iterator[Check]:
    """Whether there is room for search indexes of more scopes; where there are none, nothing is said."""
    name = "big scopes"
    try:
        with db.transaction(engine, None) as connection:
            room = scope_index.room(connection, setting=settings.recall.big_scopes_max)
    except MemoryAppError as error:
        yield Check(name, State.FAIL, error.message, "mend Postgres first")
        return
    if not room.indexed:
        return
    found = f"{room.indexed} of at most {room.most} have search indexes"
    if room.indexed < BIG_SCOPES_WARN * room.most:
        yield Check(name, State.OK, found)
        return
    to_do = (
        "further ones are scanned, which takes 75 ms at 100,000 rows: move some tenants to another database"
    )
    if room.most < settings.recall.big_scopes_max:
        to_do = f"raise max_locks_per_transaction of Postgres and restart it; else {to_do}"
    yield Check(name, State.WARN, found, to_do)


def _search_indexes(engine: Engine, tenants: _Tenants | None) -> Iterator[Check]:
    """Of big scopes only; where there is none, nothing is said."""
    if tenants is None:
        return
    try:
        found = [one for of in _each(engine, tenants, scope_index.agreements) for one in of]
    except MemoryAppError as error:
        yield Check("search indexes", State.FAIL, error.message, "mend Postgres first")
        return
    if not found:
        return
    worst = min(found, key=lambda one: one.share)
    told = f"{len(found)} looked at; the worst finds {worst.share:.0%} of what a scan finds"
    if worst.share < scope_index.AGREEMENT_LEAST:
        to_do = "raise MEMORY_RECALL__CANDIDATES, or REINDEX the scope's indexes CONCURRENTLY"
        yield Check("search indexes", State.WARN, f"{told} (scope {worst.scope_id}, {worst.table})", to_do)
    else:
        yield Check("search indexes", State.OK, told)


def _erasures(settings: Settings, engine: Engine, tenants: _Tenants | None) -> Iterator[Check]:
    """Whether the database knows every erasure of the file; one that was restored from a backup does not."""
    path, name = settings.erasures_file, "erasures"
    if path is None:
        return
    if tenants is None:
        yield Check(name, State.OK, f"{path} not compared (needs MEMORY_DATABASE__OWNER_URL)")
        return
    if not path.exists():
        to_do = f"`memory erasures export {path}` makes it; each erasure is then added by itself"
        yield Check(name, State.WARN, f"there is no file {path} yet", to_do)
        return
    try:
        compared = receipts.compare(engine, dict(tenants), path)
    except MemoryAppError as error:
        yield Check(name, State.FAIL, error.message, "check MEMORY_ERASURES_FILE and the rights on that file")
        return
    yield _comparison(name, path, compared)


def _comparison(name: str, path: Path, compared: Comparison) -> Check:
    if compared.only_in_file:
        text = (
            f"{compared.only_in_file} of {compared.receipts} receipts in {path} are unknown to the database, "
        )
        text += f"the newest of {compared.newest_only_in_file:%Y-%m-%d %H:%M}: it was restored from an older backup"
        return Check(name, State.WARN, text, f"erase again what came back: `memory erasures replay {path}`")
    if compared.only_in_database:
        text = f"{path} lacks {compared.only_in_database} receipts"
        return Check(name, State.WARN, text, f"add them with `memory erasures export {path}`")
    if compared.unreadable:
        text = f"{path} has {compared.unreadable} lines that are no receipts"
        return Check(name, State.WARN, text, "no receipt is missing; take those lines out")
    return Check(name, State.OK, f"the database knows all {compared.receipts} receipts in {path}")


def _each(engine: Engine, tenants: _Tenants, ask: Callable[[Connection], _Answer]) -> list[_Answer]:
    answers = []
    for tenant_id, _ in tenants:
        with db.transaction(engine, tenant_id) as connection:
            answers.append(ask(connection))
    return answers
