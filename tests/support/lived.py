"""A database in which something happened: rows in every table, all through the services.

Invented people, few rows. For tests that upgrade, dump and restore; with the code of an earlier release this file made
the rows of ``tests/integration/db/revision_0001.sql``.
"""

from __future__ import annotations

from decimal import Decimal

from sqlalchemy import Connection, Engine, text

from memory_app import MemoryApp, Scope
from memory_app.agents import agents
from memory_app.db.db import transaction
from memory_app.dispatch import finder
from memory_app.records.records import Mention, NewTurn, Role
from memory_app.tenancy.rows import keys, usage

TENANT, OTHER_TENANT = "acme", "globex"

ADA_MIRA = Scope("ada", "mira")
CHAT = Scope("ada", "mira", "chat-1")
SECOND_CHAT = Scope("ada", "mira", "chat-2")
LEAVER = Scope("ada", "otto", "farewell")

QUESTIONS = ("Where does Mira live?", "What is the dog called?", "With whom does Mira go sailing?")

TURNS = (
    NewTurn(
        Role.USER, "I moved to Lisbon last month and I have a dog called Bruno.", idempotency_key="first"
    ),
    NewTurn(Role.ASSISTANT, "Lisbon must be lovely in spring. How old is Bruno?"),
    NewTurn(Role.USER, "He is four. My sister Clara works at the harbour museum."),
)
SAILING = (
    "Mira goes sailing on the lake with her cousin in the summer.",
    "Mira goes sailing on the lake with her cousin in summer.",
    "Mira goes out sailing on the lake with her cousin in the summer.",
)


def live(memory: MemoryApp, owner: Engine) -> None:
    """Fill the database of this application, which has the tenant already."""
    with owner.begin() as connection:
        keys.create(connection, TENANT, label="chat")
        other = keys.ensure_tenant(connection, OTHER_TENANT)
    _set_agent(memory)
    (_, answer, *_) = memory.record_all(CHAT, TURNS)
    finder.drain(memory.runtime)
    for words in SAILING:
        memory.remember(ADA_MIRA, words, deduplicate=False, mentions=(Mention("concept", "Sailing"),))
    liked = memory.remember(CHAT, "Mira drinks her tea without sugar.", kind="value")
    memory.remember(Scope("ada"), "The museum is closed on Mondays.", shared=True)
    memory.feedback(CHAT, liked.id, "up", note="right")
    memory.feedback(CHAT, answer.id, "down")
    memory.recall(CHAT, QUESTIONS[0])
    memory.sleep(ADA_MIRA)
    finder.drain(memory.runtime)
    memory.checkpoint(CHAT)
    memory.record_all(LEAVER, [NewTurn(Role.USER, "I live in Porto and I play chess.")])
    finder.drain(memory.runtime)
    memory.forget("otto")
    memory.end_session(CHAT)
    memory.record_all(SECOND_CHAT, [NewTurn(Role.USER, "Clara has a new boat, the Petrel.")])
    finder.drain(memory.runtime)
    # What still waits to be indexed and extracted after an upgrade or a restore.
    memory.record_all(SECOND_CHAT, [NewTurn(Role.USER, "My office is in the Rua Augusta.")])
    with transaction(memory.runtime.engine, memory.tenant_id) as connection:
        usage.add(
            connection, memory.tenant_id, model="stub", tokens_in=120, tokens_out=30, cost_usd=Decimal("0.01")
        )
    neighbour = MemoryApp(memory.runtime, other)
    neighbour.remember(Scope("ada", "zoe"), "Zoe collects stamps from Lisbon.")


def _set_agent(memory: MemoryApp) -> None:
    defaults = ({"text": "Answers are short.", "kind": "expression"},)
    change = agents.AgentChange(default_memories=defaults, named=frozenset({"default_memories"}))
    agents.change_agent(memory.runtime, memory.tenant_id, Scope("ada"), change=change)


def counts(connection: Connection, tables: list[str]) -> dict[str, int]:
    """Rows by table, as somebody who sees them all."""
    return {
        table: int(connection.execute(text(f"SELECT count(*) FROM {table}")).scalar_one()) for table in tables
    }
