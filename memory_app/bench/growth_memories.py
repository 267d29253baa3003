"""Growth of what is done for one person: extraction, writing, links, import, sleep."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import timedelta
from functools import partial
from itertools import islice
from uuid import uuid4

from memory_app import MemoryApp, NewTurn, Role, Scope, Statement
from memory_app.agents.agents import AgentChange, change_agent
from memory_app.bench.growth_database import SCOPE, Figure, MeasuredDatabase
from memory_app.bench.plain_rows import unjudged_row
from memory_app.bench.prose import statements
from memory_app.bench.rows.crowd import AGENT
from memory_app.db import clock
from memory_app.db.db import transaction
from memory_app.dispatch.job_table import JOBS
from memory_app.jobs import jobs
from memory_app.jobs.rows import runs
from memory_app.memories.remember import prepare
from memory_app.memories.rows import memories
from memory_app.memories.rows import terms as term_store
from memory_app.recall import scope_index
from memory_app.records.records import Mention
from memory_app.tenancy.policy import Policy
from memory_app.turns import extract, index
from memory_app.turns.rows import sessions

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


# --- one person's memories ----------------------------------------------------------------------------------


def measure_memories(database: MeasuredDatabase, size: int) -> Iterator[Figure]:
    """A scope near its ceilings."""
    cost = partial(database.cost, size=size, of="memories in the scope")
    memory, runtime = database.memory, database.memory.runtime
    scope_id = database.scope_id(SCOPE)
    # A little above what is written below, so that writing comes near the ceilings and does not reach them.
    _let_it_hold(memory, memories=size + size // 30 + 100, links=(size + size // 30 + 300) * LINKS_EACH)
    database.crowd.memories(scope_id, size, links_each=LINKS_EACH)
    # Maintenance would have built them long before a scope grew so big.
    if size >= runtime.settings.recall.scan_rows:
        scope_index.index_big_scopes(runtime)
    session_id = _talk(memory, database.scope_id(SCOPE))
    database.crowd.settle()
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


def measure_links(database: MeasuredDatabase, size: int) -> Iterator[Figure]:
    """Statements that are all alike."""
    memory = database.memory

    def say_all() -> None:
        for place in range(size):
            cake = f"X{place} cake"
            memory.remember(SCOPE, f"I love {cake}.", subject="I", relation="likes", object=cake)

    figure = database.cost("remember: all alike", say_all, size=size, of="statements")
    yield replace(figure, note=f"{database.crowd.count('links')} links")


# --- transfer, sleep ----------------------------------------------------------------------------------------


def measure_import(database: MeasuredDatabase, size: int) -> Iterator[Figure]:
    """A snapshot with so many entities, a tenth of them merged into another."""
    memory = database.memory
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
    yield database.cost("import", lambda: memory.load(target, snapshot), size=size, of="entities")


def measure_sleep(database: MeasuredDatabase, size: int) -> Iterator[Figure]:
    """A cycle over a scope in which every fourth memory is said twice."""
    memory, runtime = database.memory, database.memory.runtime
    scope_id = database.scope_id(SCOPE)
    _store(memory, scope_id, _repeats(size))
    database.crowd.settle()
    run = memory.sleep(SCOPE, force=True)
    # Performed here: no worker runs beside a measurement, and its statements would not be counted.
    figure = database.cost("sleep", lambda: jobs.perform(runtime, run.id, JOBS), size=size, of="memories")
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
