"""Options of recall and of a window: a floor for scores and cosines, weights for one query, links beside the limit."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import Engine, text

from memory_app.db.db import transaction
from memory_app.errors import InvalidInput
from memory_app.memories.remember import remember
from memory_app.memories.rows import links
from memory_app.recall.context import ContextRequest, context
from memory_app.recall.recall import RecallQuery, recall
from memory_app.recall.records import Hit, Recalled
from memory_app.records.records import NewTurn, Role, Statement, Tier
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.turns.index import index_turns
from memory_app.turns.record import record

BOB = Scope("ada", "bob")

LIFE = (
    "I work as a nurse on the night shift at the children's hospital.",
    "My sister Clara keeps bees behind the greenhouse.",
    "The spare key is under the blue flower pot.",
    "On Sundays I bake sourdough bread with rye flour.",
    "We moved from Leeds to York in spring.",
)


def say(runtime: Runtime, tenant: int, *words: str, session: str = "s1") -> None:
    record(runtime, tenant, Scope("ada", "bob", session), [NewTurn(Role.USER, text) for text in words])
    index_turns(runtime)


def know(runtime: Runtime, tenant: int, words: str, **fields: Any) -> UUID:
    statement = Statement(**{"kind": "fact", "text": words} | fields)
    return remember(runtime, tenant, BOB, statement=statement, deduplicate=False).id


def ask(runtime: Runtime, tenant: int, words: str | None, **fields: Any) -> Recalled:
    return recall(runtime, tenant, BOB, query=RecallQuery(words, **fields))


def texts(hits: tuple[Hit, ...]) -> list[str]:
    return [hit.text for hit in hits]


def join(runtime: Runtime, tenant: int, owner: Engine, source: UUID, target: UUID) -> None:
    with owner.connect() as connection:
        scope_id = connection.execute(
            text("SELECT scope_id FROM memories WHERE id = :id"), {"id": source}
        ).scalar_one()
    with transaction(runtime.engine, tenant) as connection:
        links.add(connection, tenant, scope_id, edges=[(source, target, 0.9)], type="similar_to")


# --- scores ---------------------------------------------------------------------------------------------------

ANSWERED = (
    "Where is the spare key?",
    "What does Clara keep behind the greenhouse?",
    "Where do I work as a nurse?",
)
UNRELATED = (
    "How tall is the volcano in the archipelago?",
    "Recommend a tax lawyer for my trademark dispute",
    "Which guitar amplifier fits a jazz quartet?",
)


@pytest.mark.parametrize("preset", ["balanced", "hybrid", "entity_first", "keyword", "vector"])
def test_scores_lie_between_0_and_1_and_fall(runtime: Runtime, tenant: int, preset: str) -> None:
    say(runtime, tenant, *LIFE)
    know(runtime, tenant, "Bob has a sister called Clara.", pinned=True, importance=10)
    for query in (*ANSWERED, *UNRELATED, None):
        scores = [hit.score for hit in ask(runtime, tenant, query, preset=preset).memories]
        assert scores == sorted(scores, reverse=True)
        assert all(0 <= score <= 1 for score in scores)


def test_a_floor_of_the_score_keeps_answers_and_cuts_the_unrelated(runtime: Runtime, tenant: int) -> None:
    say(runtime, tenant, *LIFE)
    for query in ANSWERED:
        assert ask(runtime, tenant, query, min_score=0.4).memories, query
    for query in UNRELATED:
        assert ask(runtime, tenant, query).memories, "without the floor the nearest rows come"
        assert ask(runtime, tenant, query, min_score=0.4).memories == (), query


def test_what_the_floor_cuts_is_explained(runtime: Runtime, tenant: int) -> None:
    say(runtime, tenant, *LIFE)
    recalled = ask(runtime, tenant, ANSWERED[0], min_score=0.4, explain=True)
    assert texts(recalled.memories) == ["The spare key is under the blue flower pot."]
    reasons = {hit.explain["cut"] for hit in recalled.cut if hit.explain}
    assert reasons == {"below min_score"}


# --- weights and threshold --------------------------------------------------------------------------------------


def test_weights_of_a_call_override_those_of_the_preset(runtime: Runtime, tenant: int) -> None:
    plain = know(runtime, tenant, "The boat needs new paint.", importance=2)
    vital = know(runtime, tenant, "Never sell the boat.", importance=10)
    query = "Who paints the boat with new paint?"
    assert ask(runtime, tenant, query).memories[0].id == plain
    moved = ask(runtime, tenant, query, weights={"importance": 5.0}, explain=True).memories
    assert moved[0].id == vital
    assert moved[0].explain is not None
    assert moved[0].explain["contributions"]["importance"] == pytest.approx(5.0)  # type: ignore[index]
    assert ask(runtime, tenant, query, weights={"importance": None}).memories[0].id == plain


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"weights": {"luck": 1.0}}, "weights.luck"),
        ({"weights": {"keyword": 99.0}}, "weights.keyword"),
        ({"weights": {"keyword": float("nan")}}, "weights.keyword"),
        ({"min_score": 1.5}, "min_score"),
        ({"min_score": float("nan")}, "min_score"),
        ({"threshold": -0.1}, "threshold"),
    ],
)
def test_an_option_out_of_range_is_named(
    runtime: Runtime, tenant: int, options: dict[str, Any], field: str
) -> None:
    say(runtime, tenant, LIFE[0])
    with pytest.raises(InvalidInput) as refused:
        ask(runtime, tenant, "work", **options)
    assert refused.value.field == field


def test_the_threshold_is_a_floor_for_the_cosine(runtime: Runtime, tenant: int) -> None:
    say(runtime, tenant, *LIFE)
    know(runtime, tenant, "Bob bakes bread on Sundays.")
    everything = ask(runtime, tenant, ANSWERED[0], explain=True, limit=50)
    cosines = sorted(
        (hit.explain["signals"]["similarity"] for hit in everything.memories if hit.explain),  # type: ignore[index]
        reverse=True,
    )
    # The date is part of what is embedded, so how many are near depends on the day: the nearest one is.
    floor = cosines[0] / 2
    count = sum(cosine >= floor for cosine in cosines)
    assert 0 < count < len(cosines) and floor > 0
    assert len(ask(runtime, tenant, ANSWERED[0], threshold=floor).memories) == count
    assert ask(runtime, tenant, ANSWERED[0], threshold=1.0).memories == ()
    record(runtime, tenant, Scope("ada", "bob", "s1"), [NewTurn(Role.USER, "The spare key is gone.")])
    near = ask(runtime, tenant, ANSWERED[0], threshold=floor).memories
    assert len(near) == count, "the new one has no embedding yet"


# --- links ----------------------------------------------------------------------------------------------------


def test_what_links_lead_to_stands_beside_the_limit(runtime: Runtime, tenant: int, owner: Engine) -> None:
    rider = know(runtime, tenant, "Bob rides a horse in Ghent.")
    far = [know(runtime, tenant, f"The {place} was painted.") for place in ("yard", "hall", "mill", "gate")]
    for n in range(6):
        know(runtime, tenant, f"A horse, number {n}.")
    for target in far:
        join(runtime, tenant, owner, rider, target)
    query = "Bob rides a horse"
    plain = ask(runtime, tenant, query, limit=3, tiers=(Tier.FACTS,)).memories
    expanded = ask(runtime, tenant, query, limit=3, tiers=(Tier.FACTS,), expand_graph=True).memories
    direct = [hit.id for hit in expanded if not hit.related]
    related = [hit.id for hit in expanded if hit.related]
    assert direct == [hit.id for hit in plain], "links displace nothing"
    assert set(related) <= set(far) and len(related) == 3, "at most as many again"


# --- the window -------------------------------------------------------------------------------------------------


def window(runtime: Runtime, tenant: int, query: str | None = None, **fields: Any) -> str:
    return context(runtime, tenant, BOB, request=ContextRequest(query, **fields)).text


def test_a_window_shows_as_many_anchors_as_asked_for(runtime: Runtime, tenant: int) -> None:
    bonds = {
        f"A bond over {topic}.": importance
        for importance, topic in enumerate(("tea", "chess", "rain", "jazz", "maps", "soup", "moss"), start=4)
    }
    for words, importance in bonds.items():
        know(runtime, tenant, words, kind="anchor", importance=importance)

    def shown(**options: Any) -> set[int]:
        found = window(runtime, tenant, **options)
        return {importance for words, importance in bonds.items() if words in found}

    assert shown() == {6, 7, 8, 9, 10}
    assert shown(anchor_limit=2) == {9, 10}
    assert shown(anchor_limit=0) == set()
    assert shown(anchor_limit=9, anchor_importance=1) == {4, 5, 6, 7, 8, 9, 10}
    assert shown(anchor_importance=9) == {9, 10}


def test_a_window_adds_what_links_lead_to(runtime: Runtime, tenant: int, owner: Engine) -> None:
    rider = know(runtime, tenant, "Bob rides a horse in Ghent.")
    for n in range(30):
        know(runtime, tenant, f"The ride along canal {n} took {n} hours.")
    invoice = know(runtime, tenant, "Invoice 4711 was paid late.")
    join(runtime, tenant, owner, rider, invoice)
    query = "Does Bob ride a horse in Ghent?"
    assert "Invoice 4711" in window(runtime, tenant, query, topic_limit=3)
    assert "Invoice 4711" not in window(runtime, tenant, query, topic_limit=3, expand_graph=False)


def test_a_window_looks_for_as_many_rows_as_asked_for(runtime: Runtime, tenant: int) -> None:
    for n in range(12):
        know(runtime, tenant, f"Horse number {n} won a race at Ascot.")
    few = window(runtime, tenant, "Which horse won a race?", topic_limit=2, expand_graph=False)
    assert few.count("won a race") == 2
    assert window(runtime, tenant, "Which horse won a race?").count("won a race") == 8


@pytest.mark.parametrize(
    ("field", "value"),
    [("anchor_limit", -1), ("anchor_importance", 11), ("topic_limit", 0), ("depth", 9)],
)
def test_an_option_of_a_window_out_of_range_is_named(
    runtime: Runtime, tenant: int, field: str, value: int
) -> None:
    say(runtime, tenant, LIFE[0])
    with pytest.raises(InvalidInput) as refused:
        window(runtime, tenant, "work", **{field: value})
    assert refused.value.field == field
