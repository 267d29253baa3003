"""What was said in one language answers a question in another, also after a change of the embedder."""

from __future__ import annotations

from dataclasses import replace

from memory_app.providers.embedders import make_embedder
from memory_app.recall.recall import RecallQuery, recall
from memory_app.recall.reembed import reembed
from memory_app.records.records import NewTurn, Role
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.turns.index import index_turns
from memory_app.turns.record import record

BOB = Scope("ada", "bob", "s1")
SPANISH = "Mi hermana trabaja de enfermera en un hospital."
OTHERS = (
    "The printer is out of toner again.",
    "We watched a long film about penguins.",
    "Ayer compramos manzanas en el mercado.",
    "He painted the fence green.",
    "El tren llegó con retraso.",
)


def test_a_turn_in_spanish_answers_a_question_in_english(runtime: Runtime, tenant: int) -> None:
    record(runtime, tenant, BOB, [NewTurn(Role.USER, said) for said in (*OTHERS, SPANISH)])
    index_turns(runtime)
    runtime = replace(runtime, embedder=make_embedder("multilingual"))
    assert reembed(runtime).moved == len(OTHERS) + 1
    hits = recall(runtime, tenant, BOB, query=RecallQuery("What is the job of my sister?", limit=3)).memories
    assert hits[0].text == SPANISH
