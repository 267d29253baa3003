"""What a sleep cycle does to scopes with known repeats, and what it costs.

``python -m benchmarks.sleep planted``   one scope of 5,000 statements: repeats that must become one, near misses that
                                         must not; dry run against run, undo row by row, three cycles in all
``python -m benchmarks.sleep many``      100,000 memories in 1,000 scopes, the whole product running: throughput,
                                         memory, and how fast others are answered meanwhile
``python -m benchmarks.sleep locomo F``  conversations of a LoCoMo file with each turn as a memory: recall at ten before
                                         and after three cycles

Servers of their own are started in a temporary folder.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any
from uuid import UUID

import psutil
import typer
from rich.console import Console
from sqlalchemy import text

from memory_app import MemoryApp, Scope, Statement, blas_threads
from memory_app.bench import locomo, retrieval, stage
from memory_app.bench.figures import Ranking, mean_figures, rank_figures, time_figures
from memory_app.bench.rows import bulk
from memory_app.db.db import transaction
from memory_app.dispatch.job_table import JOBS
from memory_app.jobs import jobs
from memory_app.jobs.rows.runs import Run
from memory_app.local.embedded import place as files
from memory_app.local.stack import Options, Stack, running
from memory_app.local.stack.folder import temporary_folder
from memory_app.local.stack.parts import MAINTENANCE_WORKER, NEEDED
from memory_app.memories.remember import Place, prepare, write
from memory_app.records.records import Tier
from memory_app.records.run import RunName
from memory_app.tenancy.access import owner_url
from memory_app.tenancy.policy import Policy
from memory_app.tenancy.rows import names

AGENT = "assistant"
CHATTING = tuple(Scope(AGENT, f"chatting {number}") for number in range(40))
"""Those who talk meanwhile, in turn: the history of one alone would grow longer than any chat, and slower."""
CYCLES = 3
PAUSE = 0.02
"""Seconds between two calls of those who chat."""
CALLS_BETWEEN_LOOKS = 5
"""Calls of those who chat from one count of open cycles to the next."""
SCOPES_AT_ONCE = 20
"""Put to sleep; then as many calls are made with nobody asleep, because what is compared must not be minutes apart on a
machine that is shared."""
TABLES = ("memories", "links", "mentions", "evidence", "entities")

PEOPLE = ("Mira", "Jonas", "Aiko", "Pedro", "Leila", "Noah", "Ines", "Tomas", "Yara", "Emil")
DEEDS = (
    "repairs", "paints", "collects", "photographs", "restores", "sells", "designs", "studies", "builds", "borrows",
    "sketches", "catalogues", "polishes", "inherits", "trades", "stores", "describes", "measures", "lends", "admires",
)  # fmt: skip
THINGS = (
    "wooden boats", "garden chairs", "old radios", "stone bridges", "silver spoons", "paper kites", "brass lamps",
    "wool carpets", "glass bottles", "steam engines", "field maps", "clay pots", "silk scarves", "iron gates",
    "music boxes", "chess boards", "herb gardens", "leather boots", "wall clocks", "model trains", "oak barrels",
    "tea kettles", "cloth dolls", "copper coins", "rowing oars",
)  # fmt: skip
PLACES = (
    "in the harbour", "behind the school", "near the mill", "at the market", "beside the river", "under the bridge",
    "in the attic", "at the station", "by the lighthouse", "on the hill",
)  # fmt: skip
FILLERS = ("", "really ", "also ", "indeed ", "still ")

app = typer.Typer(help=__doc__)
console = Console(soft_wrap=True)


@dataclass(frozen=True, slots=True)
class Planted:
    """A statement and the cluster it belongs to; None: it says something that nothing else says."""

    said: str
    cluster: int | None


def planted(memories: int, *, seed: int = 7) -> list[Planted]:
    """A fifth are in clusters of two to five repeats; a fifth are near misses of another, in pairs; the rest stands
    alone."""
    drawn = random.Random(seed)
    subjects = [(p, d, t, w) for p in PEOPLE for d in DEEDS for t in THINGS for w in PLACES]
    drawn.shuffle(subjects)
    source = iter(subjects)
    made: list[Planted] = []
    cluster = 0
    while len(made) < memories // 5:
        person, deed, thing, place = next(source)
        size = drawn.randint(2, 5)
        made += [
            Planted(f"{person} {filler}{deed} {thing} {place} with great patience and care.", cluster)
            for filler in FILLERS[:size]
        ]
        cluster += 1
    while len(made) < 2 * memories // 5:
        person, deed, thing, place = next(source)
        number = drawn.randint(3, 90)
        kind = drawn.randrange(3)
        one = f"{person} {deed} {number} {thing} {place} with great patience and care."
        other = (
            one.replace(f" {number} ", f" {number + 1} "),
            one.replace(f" {deed} ", f" never {deed} "),
            one.replace(person, PEOPLE[(PEOPLE.index(person) + 1) % len(PEOPLE)]),
        )[kind]
        made += [Planted(one, None), Planted(other, None)]
    while len(made) < memories:
        person, deed, thing, place = next(source)
        made.append(Planted(f"{person} {deed} {thing} {place}.", None))
    drawn.shuffle(made)
    return made[:memories]


def store(
    memory: MemoryApp, scope: Scope, said: Sequence[str], *, evidence: Sequence[UUID] = ()
) -> list[UUID]:
    """Statements as they are, as if nobody had looked for repeats; their ids in order."""
    runtime, tenant_id = memory.runtime, memory.tenant_id
    with transaction(runtime.engine, tenant_id) as connection:
        row = names.ensure_scope(connection, tenant_id, scope)
    ids: list[UUID] = []
    for start in range(0, len(said), 250):
        some = said[start : start + 250]
        sources = evidence[start : start + 250] if evidence else [None] * len(some)
        statements = [
            Statement("fact", words, evidence=() if turn is None else (turn,))
            for words, turn in zip(some, sources, strict=True)
        ]
        prepared = prepare(runtime, statements, policy=Policy())
        with transaction(runtime.engine, tenant_id) as connection:
            names.lock_scope(connection, tenant_id, row.id)
            place = Place(tenant_id, row.id, turn_scopes=(row.id,))
            ids += [write(connection, runtime, place, prepared=one, deduplicate=False).id for one in prepared]
    return ids


def cycle(memory: MemoryApp, scope: Scope, **options: Any) -> tuple[Run, float]:
    """One cycle in this process, and its seconds."""
    asked = memory.sleep(scope, **options)
    began = time.perf_counter()
    jobs.perform(memory.runtime, asked.id, JOBS)
    seconds = time.perf_counter() - began
    run = memory.run(asked.id)
    if run.state != "done":
        raise RuntimeError(f"run {run.id} {run.state}: {run.reason}")
    return run, seconds


def whole(memory: MemoryApp) -> dict[str, str]:
    """A digest of every row of each table."""
    with transaction(memory.runtime.engine, memory.tenant_id) as connection:
        return {
            table: connection.execute(
                text(
                    f"SELECT md5(coalesce(string_agg(md5(t::text), '' ORDER BY t::text), '')) FROM {table} t"
                )
            ).scalar_one()
            for table in TABLES
        }


@app.command("planted")
def measure_planted(
    memories: Annotated[int, typer.Option(min=100, help="Statements in the scope.")] = 5_000,
    embedder: Annotated[str, typer.Option(help="wordllama or hash.")] = "wordllama",
) -> None:
    """Known repeats and near misses: what is merged, what is not, and whether all of it can be taken back."""
    scope = Scope(AGENT, "me")
    source = planted(memories)
    with stage.prepared(None, say=console.print, embedding={"provider": embedder}) as memory:
        console.print(f"storing {memories} statements")
        ids = store(memory, scope, [one.said for one in source])
        cluster_of = dict(zip(map(str, ids), (one.cluster for one in source), strict=True))
        before = whole(memory)
        rehearsed, rehearsal_seconds = cycle(memory, scope, dry_run=True)
        console.print(f"dry run: {rehearsal_seconds:.1f} s, changed nothing: {whole(memory) == before}")
        run, seconds = cycle(memory, scope)
        console.print(f"run: {seconds:.1f} s, the very same report: {run.report == rehearsed.report}")
        _tell_merges(run.report, cluster_of, source)
        began = time.perf_counter()
        memory.undo(run.id)
        undone_seconds = time.perf_counter() - began
        console.print(f"undo: {undone_seconds:.1f} s, every row as before: {whole(memory) == before}")
        for _ in range(CYCLES):
            run, seconds = cycle(memory, scope)
            report = run.report
            console.print(
                f"cycle: {seconds:.1f} s, freed {report['freed']}, gate {report['gate']}, applied {report['applied']}"
            )


def _tell_merges(
    report: dict[str, Any], cluster_of: dict[str, int | None], source: Sequence[Planted]
) -> None:
    repeats = sum(one.cluster is not None for one in source) - len({one.cluster for one in source} - {None})
    right = wrong = 0
    for found in report["clusters"]:
        clusters = {cluster_of[id] for id in (found["anchor"], *found["merged"])}
        if len(clusters) == 1 and None not in clusters:
            right += found["freed"]
        else:
            wrong += 1
    console.print(
        f"planted repeats {repeats}, merged {right} ({right / repeats:.1%}); wrong merges {wrong}; "
        f"reported as freed {report['freed']}; gate {report['gate']}"
    )


@app.command("many")
def measure_many(
    scopes: Annotated[int, typer.Option(min=2, help="Users.")] = 1_000,
    each: Annotated[int, typer.Option(min=10, help="Memories of each.")] = 100,
) -> None:
    """Many scopes, put to sleep by the product's own workers: how many memories a second, and how fast others are
    answered meanwhile."""
    users = [f"user {n}" for n in range(scopes)]
    with (
        temporary_folder(None) as folder,
        running(Options(folder, parts=NEEDED), say=console.print) as stack,
        MemoryApp.connect(stack.settings, tenant=stage.TENANT) as memory,
    ):
        blas_threads.take_one()
        console.print(f"storing {scopes * each} memories")
        _store_copies(memory, users, [one.said for one in planted(each)])
        _chats(memory, 2 * len(CHATTING))
        console.print(f"{SCOPES_AT_ONCE} scopes at a time, a chat during and after each")
        worker = _worker(stack)
        quiet: list[float] = []
        busy: list[float] = []
        seconds, most_bytes = 0.0, 0
        for place in range(0, scopes, SCOPES_AT_ONCE):
            began = time.perf_counter()
            for user in users[place : place + SCOPES_AT_ONCE]:
                memory.sleep(Scope(AGENT, user))
            chats = len(busy)
            while _open_cycles(memory):
                busy += _chats(memory, CALLS_BETWEEN_LOOKS)
            seconds += time.perf_counter() - began
            most_bytes = max(most_bytes, _most_bytes(worker))
            quiet += _chats(memory, len(busy) - chats)
            stack.tend()
        _tell_cycles(memory)
    console.print(
        f"{scopes * each} memories in {scopes} scopes: {seconds:.0f} s, {scopes * each / seconds:.0f} memories/s, "
        f"{scopes / seconds:.1f} scopes/s, most memory of a worker's process {most_bytes / 2**20:.0f} MB"
    )
    still, moving = time_figures(quiet), time_figures(busy)
    console.print(f"chat between:      {still}")
    console.print(f"chat during sleep: {moving}")
    console.print(
        f"during sleep: p50 {moving.p50_ms / still.p50_ms:.2f} times, p95 {moving.p95_ms / still.p95_ms:.2f} times"
    )


def _store_copies(memory: MemoryApp, users: Sequence[str], said: Sequence[str]) -> None:
    """The same memories for each of the users and for those who chat."""
    store(memory, CHATTING[0], said)
    everybody = [*CHATTING[1:], *(Scope(AGENT, user) for user in users)]
    with transaction(memory.runtime.engine, memory.tenant_id) as connection:
        source = names.ensure_scope(connection, memory.tenant_id, CHATTING[0]).id
        rows = [names.ensure_scope(connection, memory.tenant_id, scope).id for scope in everybody]
        bulk.copy_memories(connection, source, rows)
        connection.execute(
            text(
                """INSERT INTO scope_models (tenant_id, scope_id, model)
                SELECT tenant_id, id, :model FROM scopes WHERE id = ANY(:rows) ON CONFLICT DO NOTHING"""
            ),
            {"model": memory.runtime.embedder.model, "rows": rows},
        )
    bulk.settle(owner_url(memory.runtime.settings), tables=("memories", "terms"))


def _chat(memory: MemoryApp, number: int) -> float:
    """Seconds of one turn and the recall for its answer, after a pause: a chat is not a queue of calls, and caches
    grow cold in it whether others sleep or not."""
    scope = CHATTING[number % len(CHATTING)]
    time.sleep(PAUSE)
    began = time.perf_counter()
    said = f"What does Mira do in the harbour today, number {number}?"
    memory.record(Scope(scope.agent, scope.user, "chat"), said)
    memory.recall(scope, "What does Mira do in the harbour?", tiers=(Tier.FACTS,))
    return time.perf_counter() - began


def _chats(memory: MemoryApp, count: int) -> list[float]:
    return [_chat(memory, number) for number in range(count)]


def _open_cycles(memory: MemoryApp) -> int:
    with transaction(memory.runtime.engine, memory.tenant_id) as connection:
        return int(
            connection.execute(
                text("SELECT count(*) FROM runs WHERE name = :sleep AND state IN ('queued', 'running')"),
                {"sleep": RunName.SLEEP},
            ).scalar_one()
        )


def _tell_cycles(memory: MemoryApp) -> None:
    with transaction(memory.runtime.engine, memory.tenant_id) as connection:
        ended = connection.execute(
            text(
                """SELECT state, count(*) AS runs, coalesce(sum((report->>'freed')::int), 0) AS freed FROM runs
                WHERE name = :sleep GROUP BY state ORDER BY state"""
            ),
            {"sleep": RunName.SLEEP},
        ).all()
    for row in ended:
        console.print(f"cycles {row.state}: {row.runs}, memories freed {row.freed}")


def _worker(stack: Stack) -> psutil.Process:
    """The main process of the worker that sleeps; it leads a group of its own."""
    pid = files.read(stack.folder.locks / f"{MAINTENANCE_WORKER}.pid")
    assert pid is not None
    return psutil.Process(int(pid))


def _most_bytes(worker: psutil.Process) -> int:
    """Resident memory of its biggest process."""
    return max(int(one.memory_info().rss) for one in (worker, *worker.children(recursive=True)))


@app.command("locomo")
def measure_locomo(
    path: Annotated[Path, typer.Argument(help="LoCoMo file.")],
    conversations: Annotated[int, typer.Option(min=1, help="Only the first.")] = 10,
) -> None:
    """Each turn as a memory: what is found before and after three cycles."""
    chosen = locomo.load(path)[:conversations]
    sections: dict[str, dict[str, object]] = {"index": {"daily_log_days": 36_500}}
    with stage.prepared(None, say=console.print, **sections) as memory:
        before: list[Ranking] = []
        after: list[Ranking] = []
        counts = [0, 0]
        for conversation in chosen:
            scope = Scope(retrieval.AGENT, conversation.name)
            turns = retrieval.load(memory, conversation)
            said = {
                turn.id: f"{turn.speaker}: {turn.text}"
                for part in conversation.sessions
                for turn in part.turns
            }
            store(memory, scope, [said[name] for name in turns.values()], evidence=list(turns))
            counts[0] += _current(memory, scope)
            before += [
                _found(memory, scope, question, turns)
                for question in conversation.questions
                if not question.apart
            ]
            for _ in range(CYCLES):
                run, seconds = cycle(memory, scope, max_inspected=20_000)
                report = run.report
                console.print(
                    f"{conversation.name}: {seconds:.1f} s, inspected {report['inspected']}, freed {report['freed']}, "
                    f"gate {report['gate']}, applied {report['applied']}"
                )
            counts[1] += _current(memory, scope)
            after += [
                _found(memory, scope, question, turns)
                for question in conversation.questions
                if not question.apart
            ]
    console.print(f"memories before {counts[0]}, after {counts[1]}")
    was, now = mean_figures(before), mean_figures(after)
    console.print(f"before {was}")
    console.print(f"after  {now}")


def _current(memory: MemoryApp, scope: Scope) -> int:
    with transaction(memory.runtime.engine, memory.tenant_id) as connection:
        row = names.need_scope(connection, memory.tenant_id, scope)
        return int(
            connection.execute(
                text("SELECT count(*) FROM memories WHERE scope_id = :scope AND retired_at IS NULL"),
                {"scope": row.id},
            ).scalar_one()
        )


def _found(memory: MemoryApp, scope: Scope, question: Any, turns: Any) -> Ranking:
    """How well a question is answered by memories: by the turns that each of those found rests on."""
    hits = memory.recall(scope, question.text, limit=20, tiers=(Tier.FACTS,)).memories
    ids = [hit.id for hit in hits]
    with transaction(memory.runtime.engine, memory.tenant_id) as connection:
        rests_on = connection.execute(
            text("SELECT memory_id, turn_id FROM evidence WHERE memory_id = ANY(:ids) ORDER BY turn_id"),
            {"ids": ids},
        ).all()
    named: dict[Any, list[str]] = {}
    for row in rests_on:
        named.setdefault(row.memory_id, []).append(turns[row.turn_id])
    # A memory counts once, for whichever of its turns is asked for.
    ranked = [
        next(
            (name for name in named.get(id, ()) if name in question.evidence),
            next(iter(named.get(id, ())), str(id)),
        )
        for id in ids
    ]
    return rank_figures(ranked, question.evidence)


if __name__ == "__main__":
    app()
