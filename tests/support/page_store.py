"""Stores for the page to show: a small one with names and texts that are not nice, and a large one."""

from __future__ import annotations

from dataclasses import dataclass
from io import BytesIO
from uuid import UUID

from sqlalchemy import Engine, text

from memory_app.agents.agents import AgentChange, change_agent
from memory_app.demo.conversation import MEETINGS
from memory_app.dispatch import finder
from memory_app.dispatch.job_table import JOBS
from memory_app.forget.forget import forget_user
from memory_app.jobs import jobs
from memory_app.memories.remember import remember
from memory_app.records.records import NewTurn, Role, Statement
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.sleep import cycle
from memory_app.transfer import imports
from memory_app.transfer.import_order import Order
from memory_app.turns.record import record

MIRA = Scope("Ada", "Mira")
ODD = Scope("Ada/1", "<script>alert(1)</script>")
LONG = "Donaudampfschifffahrtsgesellschaftskapitänswitwenrente" * 4

ALIKE = (
    "Mira goes sailing on the lake with her cousin in the summer.",
    "Mira goes sailing on the lake with her cousin in summer.",
    "Mira goes out sailing on the lake with her cousin in the summer.",
)
CHAT = b"""31/12/2025, 21:40 - Messages and calls are end-to-end encrypted.
31/12/2025, 21:41 - Mira: I moved to <b>Graz</b>.
31/12/2025, 21:42 - Ben: How is it?
31/12/2025, 21:43 - Mira: <Media omitted>
"""

MANY_MEMORIES, MANY_TURNS = 20_000, 10_000


@dataclass(frozen=True, slots=True)
class Ids:
    """What views are about: a night, a night that was only tried, two imports in the same way, a receipt."""

    night: UUID
    tried_night: UUID
    imported: UUID
    tried_import: UUID
    erasure: UUID


def fill(runtime: Runtime, tenant: int) -> Ids:
    """The demo's conversation, an odd person, nights, imports, an agent of its own and somebody who was forgotten."""
    for meeting in MEETINGS:
        turns = [NewTurn(Role(role), words) for role, words in meeting.turns]
        record(runtime, tenant, Scope("Ada", "Mira", meeting.name), new=turns)
    odd = Scope(ODD.agent, ODD.user, "chat / 1")
    texts = ("<img src=x onerror=alert(1)> I live in Porto.", "אני גרה בליסבון", "word " * 19_000, LONG)
    record(runtime, tenant, odd, new=[NewTurn(Role.USER, words) for words in texts])
    for words in ("אני גרה בליסבון", "<img src=x onerror=alert(1)> lives in Porto.", LONG):
        remember(runtime, tenant, ODD, statement=Statement("fact", words))
    finder.drain(runtime)
    for words in ALIKE:
        remember(runtime, tenant, MIRA, statement=Statement("fact", words), deduplicate=False)
    tried_night, night = (sleep(runtime, tenant, dry_run=dry_run) for dry_run in (True, False))
    tried_import, imported = (bring(runtime, tenant, dry_run=dry_run) for dry_run in (True, False))
    traits = [{"name": "patient", "description": "Explains as often as it takes.", "intensity": 8}]
    change = AgentChange(frozenset({"persona"}), persona={"name": "Ada", "traits": traits})
    change_agent(runtime, tenant, Scope("Ada"), change=change)
    remember(runtime, tenant, Scope("Ada", "Gone"), statement=Statement("fact", "Gone likes pears."))
    erasure = forget_user(runtime, tenant, "Gone").report["erasure"]
    finder.drain(runtime)
    return Ids(night, tried_night, imported, tried_import, UUID(str(erasure)))


def sleep(runtime: Runtime, tenant: int, *, dry_run: bool) -> UUID:
    run = cycle.ask(runtime, tenant, MIRA, options={"dry_run": dry_run})
    jobs.perform(runtime, run.id, JOBS)
    return run.id


def bring(runtime: Runtime, tenant: int, *, dry_run: bool) -> UUID:
    order = Order(dry_run=dry_run, speakers={} if dry_run else {"Mira": "user"})
    run = imports.ask(runtime, tenant, MIRA, order=order, file=BytesIO(CHAT))
    jobs.perform(runtime, run.id, JOBS)
    return run.id


def enlarge(owner: Engine) -> None:
    """Copy a memory of Mira's, what it mentions, and a turn until there are many."""
    # Numbered within the copies: the keys of rows are unique.
    copies = {
        "memories": ("kind = 'fact' AND object IS NOT NULL", MANY_MEMORIES, "canonical_key"),
        "turns": ("seq = 1", MANY_TURNS, "seq"),
    }
    with owner.begin() as connection:
        for table, (which, count, key) in copies.items():
            value = "g + 100" if key == "seq" else "'copy ' || g"
            object_ = ", 'object_key', 'thing_' || g, 'single_valued', false" if table == "memories" else ""
            connection.execute(
                text(
                    f"""INSERT INTO {table} SELECT (jsonb_populate_record(m, jsonb_build_object(
                        'id', new_id(), 'text', m.text || ' ' || g, '{key}', {value}{object_}))).*
                    FROM {table} m CROSS JOIN generate_series(1, :count) g
                    WHERE m.id = (SELECT t.id FROM {table} t JOIN scopes c ON c.id = t.scope_id
                                  JOIN users u ON u.id = c.user_id AND u.name = 'Mira'
                                  WHERE {which} ORDER BY t.id LIMIT 1)"""
                ),
                {"count": count},
            )
        connection.execute(
            text(
                """INSERT INTO mentions (tenant_id, scope_id, memory_id, entity_id)
                SELECT m.tenant_id, m.scope_id, m.id, e.id FROM memories m
                JOIN entities e ON e.scope_id = m.scope_id AND e.key = 'person:mira'
                WHERE m.canonical_key LIKE 'copy %' ON CONFLICT DO NOTHING"""
            )
        )
        connection.execute(
            text("UPDATE sessions SET next_seq = :seq, extracted_seq = :seq - 1 WHERE name = 'first-chat'"),
            {"seq": MANY_TURNS + 101},
        )
    with owner.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("ANALYZE memories, mentions, turns"))
