"""Growth: what the product's own calls cost as backlogs, scopes and people's memories grow.

Blocks, rows and statements are counted, not seconds: counts are the same on every machine, so that a call which begins
to walk through what it should look up is seen at once. Each measurement has a database of its own.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import timedelta
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any
from uuid import uuid4

from memory_app import MemoryApp, NewTurn, Role, Scope, Statement
from memory_app.agents.agents import AgentChange, change_agent
from memory_app.bench.plain_rows import unjudged_row
from memory_app.bench.prose import statements
from memory_app.bench.rows.crowd import AGENT, Crowd, undisturbed
from memory_app.bench.stage import TENANT, Say
from memory_app.db import clock, meter
from memory_app.db.db import transaction
from memory_app.db.meter import Cost, Meter
from memory_app.dispatch import finder, upkeep
from memory_app.dispatch.job_table import JOBS
from memory_app.errors import MemoryAppError
from memory_app.jobs import jobs
from memory_app.jobs.rows import runs, schedules
from memory_app.local import embedded
from memory_app.local.servers import embedded_settings
from memory_app.local.stack.folder import temporary_folder
from memory_app.local.stack.tenant import ensure_key
from memory_app.memories.remember import prepare
from memory_app.memories.rows import memories, reembedding
from memory_app.memories.rows import terms as term_store
from memory_app.ops import health
from memory_app.recall import scope_index
from memory_app.recall.rows import scope_index as scope_index_store
from memory_app.records.records import Mention
from memory_app.sleep import decay, synthesis
from memory_app.tenancy import schema
from memory_app.tenancy.policy import Policy
from memory_app.tenancy.rows import names
from memory_app.turns import extract, index
from memory_app.turns.rows import index_work, sessions, turns

LONG_AGO = timedelta(days=60)
"""Older than a turn is searched, and than a run is kept."""

BACKLOG_SCOPES = 10
"""Users whose turns wait."""

LINKS_EACH = 5
TEXTS = (
    "I really like gardening.",
    "I really like chess.",
    "My dog is called Rex.",
    "My sister Ada lives in Graz.",
    "I work at Bruno and Sons.",
    "I play the accordion.",
    "I am allergic to peanuts.",
    "I collect old radios.",
    "My brother is a pilot.",
    "I hate olives.",
    "I really like sailing.",
    "My cat is called Tom.",
    "I play the cello.",
    "I am allergic to cats.",
    "I collect old maps.",
    "My son is called Leo.",
)
"""The session that is extracted, half of what is read at once: each turn says something of its own."""

WRITES = 50
"""Enough that some of them come to look at the ceiling where only some do."""

LOOKS = 60
"""So often is gone through silent sessions before that is measured once more."""

SCOPE = Scope(AGENT, "me")
LEASE = timedelta(seconds=45)

BIG = 100
"""Rows from which a scope gets indexes of its own where these are measured: the least that may be set."""


@dataclass(frozen=True, slots=True)
class Figure:
    """What one call cost at one size. ``note`` says what else was counted, or why there is no figure."""

    call: str
    size: int
    of: str
    statements: int | None = None
    blocks: int | None = None
    rows: int | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Ground:
    """A migrated database with one tenant, and what is needed to fill it and to measure in it."""

    memory: MemoryApp
    crowd: Crowd
    meter: Meter

    def cost(self, call: str, act: Callable[[], object], *, size: int, of: str) -> Figure:
        """The figure of one call; what it gave up with where it did not come to an end."""
        cost = Cost()
        try:
            with self.meter.measured() as cost:
                act()
        except MemoryAppError as error:
            # Kept as a row: a call that is given up at 100,000 is what these measurements look for.
            return Figure(call, size, of, note=f"not done: {error.message}")
        return Figure(call, size, of, statements=cost.statements, blocks=cost.blocks, rows=cost.rows)

    def scope_id(self, scope: Scope) -> int:
        with transaction(self.memory.runtime.engine, self.memory.tenant_id) as connection:
            return names.ensure_scope(connection, self.memory.tenant_id, scope).id


Measure = Callable[[Ground, int], Iterator[Figure]]


@dataclass(frozen=True, slots=True)
class Group:
    """Measurements that share their rows, and the sizes they are made at."""

    name: str
    sizes: tuple[int, ...]
    measure: Measure
    sections: Mapping[str, dict[str, object]] = field(default_factory=dict)


def measure(data: Path | None, *, only: Sequence[str], largest: int, say: Say) -> dict[str, Any]:
    """Every figure of the groups named in ``only`` (all, where it is empty), at sizes up to ``largest``."""
    figures: list[Figure] = []
    with (
        temporary_folder(data) as folder,
        embedded.running(folder, durable=False, on_progress=say) as servers,
    ):
        for group in (group for group in GROUPS if not only or group.name in only):
            for size in (size for size in group.sizes if size <= largest):
                say(f"{group.name}: {size}")
                with _ground(servers, folder, group=group) as ground:
                    figures += group.measure(ground, size)
    return {"figures": [asdict(figure) for figure in figures]}


@contextlib.contextmanager
def _ground(servers: embedded.Servers, folder: Path, *, group: Group) -> Iterator[Ground]:
    # A database for each size: what the size before left in the statistics would change the plans of the next.
    name = f"growth_{uuid4().hex}"
    database = embedded.create_database(servers, name)
    try:
        settings = embedded_settings(database, **group.sections)
        schema.upgrade(settings)
        ensure_key(settings, folder / f"{name}.key", tenant=TENANT)
        with MemoryApp.connect(settings, tenant=TENANT) as memory:
            owner, embedder = memory.runtime.owner, memory.runtime.embedder
            assert owner is not None
            crowd = Crowd(owner, memory.tenant_id, model=embedder.model, dimensions=embedder.dimensions)
            with undisturbed(owner):
                yield Ground(memory, crowd, Meter(memory.runtime.engine, owner))
    finally:
        embedded.drop_database(servers, name)


# --- a backlog ----------------------------------------------------------------------------------------------


def _backlog(ground: Ground, size: int) -> Iterator[Figure]:
    """What is done every few seconds while turns wait to be indexed."""
    cost = partial(ground.cost, size=size, of="waiting turns")
    runtime, each = ground.memory.runtime, size // BACKLOG_SCOPES
    ground.crowd.scopes(BACKLOG_SCOPES)
    ground.crowd.sessions(turns=each, extracted=False)
    ground.crowd.turns(each, indexed=False)
    ground.crowd.settle()
    yield cost("finder: look", lambda: finder.look(runtime))
    yield cost("health: state of the pipe", lambda: health.read_pipeline(runtime))
    yield cost("claim of 64 turns", lambda: _claim(ground))
    ground.crowd.lend_turns()
    ground.crowd.settle()
    # A claim that finds nothing must not walk through all that others hold.
    yield cost("claim where all are lent", lambda: _claim(ground))


def _claim(ground: Ground) -> None:
    with transaction(ground.memory.runtime.engine, None) as connection:
        index_work.claim(connection, batch=64, lease=LEASE)


# --- many scopes --------------------------------------------------------------------------------------------


def _scopes(ground: Ground, size: int) -> Iterator[Figure]:
    """What maintenance asks over everybody's scopes."""
    cost = partial(ground.cost, size=size, of="scopes")
    runtime = ground.memory.runtime
    ground.crowd.scopes(size)
    ground.crowd.scope_with_model()
    ground.crowd.sessions(turns=3, extracted=True, age=timedelta(hours=2))
    ground.crowd.count_terms()
    ground.crowd.schedules()
    ground.crowd.settle()
    model = runtime.embedder.model
    yield cost("big_scopes", lambda: scope_index.index_big_scopes(runtime))
    yield cost("stale_scopes", lambda: _stale(ground, model))
    yield cost("idle_sessions", lambda: synthesis.enqueue_idle(runtime))
    # The first looks ask for what waits; the one that is measured is a look like most others.
    for _ in range(LOOKS):
        synthesis.enqueue_idle(runtime)
    yield cost("idle_sessions, once more", lambda: synthesis.enqueue_idle(runtime))
    yield cost("due_scopes (all are due)", lambda: _due_jobs(ground))
    ground.crowd.due_sessions()
    ground.crowd.due_runs()
    ground.crowd.settle()
    yield cost("finder: look, all sessions and runs due", lambda: finder.look(runtime))


def _stale(ground: Ground, model: str) -> None:
    with transaction(ground.memory.runtime.engine, None) as connection:
        reembedding.stale_scopes(connection, model=model, limit=50)


def _due_jobs(ground: Ground) -> None:
    runtime = ground.memory.runtime
    with transaction(runtime.engine, None) as connection:
        schedules.due(connection, most=runtime.settings.schedule.batch)


# --- one person's memories ----------------------------------------------------------------------------------


def _memories(ground: Ground, size: int) -> Iterator[Figure]:
    """A scope near its ceilings."""
    cost = partial(ground.cost, size=size, of="memories in the scope")
    memory, runtime = ground.memory, ground.memory.runtime
    scope_id = ground.scope_id(SCOPE)
    # A little above what is written below, so that writing comes near the ceilings and does not reach them.
    _let_it_hold(memory, memories=size + size // 30 + 100, links=(size + size // 30 + 300) * LINKS_EACH)
    ground.crowd.memories(scope_id, size, links_each=LINKS_EACH)
    # Maintenance would have built them long before a scope grew so big.
    if size >= runtime.settings.recall.scan_rows:
        scope_index.index_big_scopes(runtime)
    session_id = _talk(memory, ground.scope_id(SCOPE))
    ground.crowd.settle()
    memory.remember(SCOPE, "The first call of a process plans what the others do.")
    reports: list[extract.ExtractReport] = []
    extracting = cost(
        f"extraction of {len(TEXTS)} turns",
        lambda: reports.append(extract.extract_session(runtime, session_id)),
    )
    yield replace(extracting, note=f"{reports[0].memories} memories") if reports else extracting
    yield cost("remember", lambda: memory.remember(SCOPE, "The blue kettle is broken."))
    yield cost(f"remember, {WRITES} times near the ceiling", lambda: _write(memory))


def _let_it_hold(memory: MemoryApp, *, memories: int, links: int) -> None:
    change = AgentChange(frozenset({"policy"}), policy={"max_memories": memories, "max_links": links})
    change_agent(memory.runtime, memory.tenant_id, Scope(AGENT), change=change)


def _talk(memory: MemoryApp, scope_id: int) -> int:
    """A session whose turns are indexed and wait to be extracted; each of them says one thing."""
    memory.record_all(Scope(AGENT, "me", "chat"), [NewTurn(Role.USER, text) for text in TEXTS])
    index.index_turns(memory.runtime, most_seconds=math.inf)
    with transaction(memory.runtime.engine, memory.tenant_id) as connection:
        session = sessions.find(connection, scope_id, "chat")
    assert session is not None
    return session.id


def _write(memory: MemoryApp) -> None:
    """Things that have nothing in common, so that each is a row of its own."""
    for place, text in enumerate(statements(WRITES, seed=11)):
        memory.remember(SCOPE, f"Note {place}: {text}")


def _links(ground: Ground, size: int) -> Iterator[Figure]:
    """Statements that are all alike."""
    memory = ground.memory

    def say_all() -> None:
        for place in range(size):
            cake = f"X{place} cake"
            memory.remember(SCOPE, f"I love {cake}.", subject="I", relation="likes", object=cake)

    figure = ground.cost("remember: all alike", say_all, size=size, of="statements")
    yield replace(figure, note=f"{ground.crowd.count('links')} links")


# --- transfer, sleep ----------------------------------------------------------------------------------------


def _import(ground: Ground, size: int) -> Iterator[Figure]:
    """A snapshot with so many entities, a tenth of them merged into another."""
    memory = ground.memory
    source = Scope(AGENT, "source")
    memory.remember(source, "Mira lives in Lisbon.", mentions=(Mention("person", "Mira"),))
    snapshot = memory.export(source)
    (entity,) = snapshot["entities"]
    others = [
        entity
        | {
            "key": f"thing:thing-{place}",
            "type": "thing",
            "label": f"Thing {place}",
            "merged_into": f"thing:thing-{place - 1}" if place % 10 == 9 else None,
        }
        for place in range(size)
    ]
    (node,) = snapshot["nodes"]
    fresh = str(uuid4())
    snapshot |= {
        "nodes": [node | {"id": fresh}],
        "entities": others,
        "mentions": [{"memory_id": fresh, "entity": others[0]["key"]}],
        "links": [],
    }
    snapshot["counts"] |= {"nodes": 1, "entities": size, "mentions": 1, "links": 0}
    target = Scope(AGENT, "target")
    yield ground.cost("import", lambda: memory.load(target, snapshot), size=size, of="entities")


def _sleep(ground: Ground, size: int) -> Iterator[Figure]:
    """A cycle over a scope in which every fourth memory is said twice."""
    memory, runtime = ground.memory, ground.memory.runtime
    scope_id = ground.scope_id(SCOPE)
    _store(memory, scope_id, _repeats(size))
    ground.crowd.settle()
    run = memory.sleep(SCOPE, force=True)
    # Performed here: no worker runs beside a measurement, and its statements would not be counted.
    figure = ground.cost("sleep", lambda: jobs.perform(runtime, run.id, JOBS), size=size, of="memories")
    with transaction(runtime.engine, memory.tenant_id) as connection:
        ended_run = runs.read(connection, run.id)
    report = ended_run.report if ended_run else None
    yield replace(figure, note=f"{len((report or {}).get('clusters', ()))} clusters")


def _repeats(size: int) -> Iterator[str]:
    texts = statements(size, seed=5)
    count = 0
    while count < size:
        text = next(texts)
        yield text
        count += 1
        if count < size and count % 4 == 1:
            yield f"As I said, {text[0].lower()}{text[1:]}"
            count += 1


def _store(memory: MemoryApp, scope_id: int, texts: Iterable[str]) -> None:
    """Statements as they are, as if nobody had looked for repeats."""
    runtime, tenant_id = memory.runtime, memory.tenant_id
    waiting = iter(texts)
    while batch := list(islice(waiting, 500)):
        prepared = prepare(runtime, [Statement("fact", text) for text in batch], policy=Policy())
        with transaction(runtime.engine, tenant_id) as connection:
            now = clock.now(connection)
            for statement in prepared:
                row = unjudged_row(
                    statement,
                    model=runtime.embedder.model,
                    now=now,
                    # Old enough to have lost strength: a cycle leaves firm memories as they are.
                    last_seen=now - timedelta(days=30),
                )
                memories.insert(connection, tenant_id, scope_id, new=row)
            counted = [(scope_id, statement.keywords) for statement in prepared]
            term_store.add(connection, tenant_id, counted)


# --- what nobody asks for any more --------------------------------------------------------------------------


def _runs(ground: Ground, size: int) -> Iterator[Figure]:
    """Runs that ended longer ago than they are kept."""
    scope_id = ground.scope_id(SCOPE)
    ground.crowd.old_runs(scope_id, size, age=LONG_AGO)
    ground.crowd.settle()
    figure = ground.cost("tidy", lambda: upkeep.tidy(ground.memory.runtime), size=size, of="old runs")
    yield replace(figure, note=f"{ground.crowd.count('runs')} runs left")


def _lapsed(ground: Ground, size: int) -> Iterator[Figure]:
    """Turns that are too old to be searched."""
    memory = ground.memory
    cost = partial(ground.cost, size=size, of="old turns in the scope")
    ground.crowd.scopes(1)
    ground.crowd.sessions(turns=size, extracted=True, age=LONG_AGO)
    ground.crowd.turns(size, indexed=True, age=LONG_AGO)
    ground.crowd.count_terms()
    scope = Scope(AGENT, "crowd 1")
    run = decay.ask(memory.runtime, memory.tenant_id, scope)
    ground.crowd.settle()
    yield cost("decay", lambda: jobs.perform(memory.runtime, run.id, JOBS))
    ground.crowd.settle()
    memory.recall(scope, "The first call of a process plans what the others do.")
    figure = cost("recall", lambda: memory.recall(scope, "Which dog did I walk?"))
    yield replace(figure, note=f"{ground.crowd.search_bytes() // size} bytes kept for search by each turn")


# --- search indexes of big scopes ---------------------------------------------------------------------------


def _big_scopes(ground: Ground, size: int) -> Iterator[Figure]:
    """Scopes that are big enough for search indexes, and what a small one pays for them."""
    memory, runtime = ground.memory, ground.memory.runtime
    for place in range(size):
        ground.crowd.memories(ground.scope_id(Scope(AGENT, f"big {place}")), BIG, links_each=0)
    memory.remember(SCOPE, "I like the sea.")
    # A call builds those of a few scopes and leaves the rest to the next one.
    while scope_index.index_big_scopes(runtime):
        pass
    ground.crowd.settle()
    locks = 0

    def ask() -> None:
        nonlocal locks
        with transaction(runtime.engine, memory.tenant_id) as connection:
            turns.unindexed(connection, [1], limit=1)
            memories.current_ids(connection, 1, [])
            locks = meter.relation_locks(connection)

    figure = ground.cost("a look at turns and memories", ask, size=size, of="big scopes")
    with transaction(runtime.engine, memory.tenant_id) as connection:
        indexed = len(scope_index_store.indexed(connection, most=10_000))
    yield replace(figure, note=f"{indexed} scopes indexed, {locks} relations locked")


GROUPS = (
    Group("backlog", (1_000, 10_000, 100_000), measure=_backlog),
    Group("scopes", (10, 1_000, 10_000), measure=_scopes),
    Group("memories", (1_000, 10_000, 100_000), measure=_memories),
    Group("links", (200,), measure=_links),
    Group("import", (500, 2_000, 10_000), measure=_import),
    Group("sleep", (1_000, 10_000), measure=_sleep),
    Group("runs", (1_000, 10_000), measure=_runs),
    Group("lapsed", (1_000, 10_000), measure=_lapsed),
    Group("big scopes", (1, 20, 60), measure=_big_scopes, sections={"recall": {"scan_rows": BIG}}),
)
