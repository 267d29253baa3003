"""A reranker reorders what recall found; without an answer of it our own order stands, and is named."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
from cross_encoders import write_cross_encoder

from memory_app.memories.remember import remember
from memory_app.providers.provider import Timeouts
from memory_app.providers.rerankers import Options, make_reranker
from memory_app.recall.context import ContextRequest, context
from memory_app.recall.recall import RecallQuery, recall
from memory_app.recall.records import Recalled
from memory_app.records.records import NewTurn, Role, Statement, Tier
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime, build
from memory_app.settings import Rerank
from memory_app.testing import Mode, Rule, StubProvider
from memory_app.turns.index import index_turns
from memory_app.turns.record import record

BOB = Scope("ada", "bob")
QUERY = "Which horse won the race?"
NAMES = ("Comet", "Dolly", "Ember", "Flint", "Ginger", "Hazel")


@pytest.fixture
def stub() -> Iterator[StubProvider]:
    with StubProvider() as stub:
        yield stub


@pytest.fixture
def horses(runtime: Runtime, tenant: int) -> Runtime:
    for name in NAMES:
        statement = Statement(kind="fact", text=f"The horse {name} won a race at Ascot.")
        remember(runtime, tenant, BOB, statement=statement, deduplicate=False)
    words = [f"We watched the horse {name} in the race." for name in NAMES]
    record(runtime, tenant, Scope("ada", "bob", "s1"), [NewTurn(Role.USER, text) for text in words])
    index_turns(runtime)
    return runtime


def preferring(name: str) -> Rule:
    """A model for which only texts with ``name`` answer."""

    def scores(body: Any) -> list[float]:
        return [float(name in text) for text in body.get("texts", body.get("documents"))]

    return Rule(answer=scores)


def with_server(runtime: Runtime, stub: StubProvider, **timeouts: float) -> Runtime:
    options = Options(base_url=stub.address, timeouts=Timeouts(**timeouts))
    return replace(runtime, reranker=make_reranker("tei", options))


def ask(runtime: Runtime, tenant: int, **fields: Any) -> Recalled:
    return recall(runtime, tenant, BOB, query=RecallQuery(QUERY, **fields))


def order(recalled: Recalled) -> list[tuple[object, float]]:
    return [(hit.id, hit.score) for hit in recalled.memories]


@pytest.mark.parametrize("name", NAMES)
def test_the_model_decides_the_order_below_the_limit(
    horses: Runtime, tenant: int, stub: StubProvider, name: str
) -> None:
    stub.follow(preferring(name))
    reranked = with_server(horses, stub)
    best = ask(reranked, tenant, limit=2).memories
    assert len(best) == 2
    assert all(name in hit.text for hit in best), "the fact and the turn"
    assert ask(reranked, tenant, limit=2).degraded == ()


def test_scores_stay_those_of_our_own_signals(horses: Runtime, tenant: int, stub: StubProvider) -> None:
    own = {hit.id: hit.score for hit in ask(horses, tenant, limit=50).memories}
    stub.follow(preferring("Ginger"))
    for hit in ask(with_server(horses, stub), tenant, limit=3).memories:
        assert hit.score == pytest.approx(own[hit.id])


def test_explain_tells_what_the_model_said(horses: Runtime, tenant: int, stub: StubProvider) -> None:
    own = [hit.id for hit in ask(horses, tenant, limit=50).memories]
    stub.follow(preferring("Hazel"))
    recalled = ask(with_server(horses, stub), tenant, limit=2, explain=True)
    for hit in recalled.memories:
        assert hit.explain is not None
        assert hit.explain["rerank"] == {"score": 1.0, "place_before": own.index(hit.id) + 1}
    reasons = {hit.explain["cut"] for hit in recalled.cut if hit.explain and "rerank" in hit.explain}
    assert reasons == {"below the limit"}


@pytest.mark.parametrize(
    "mode",
    [Mode.SERVER_ERROR, Mode.HANG, Mode.BROKEN_BODY, Mode.FEWER_ROWS, Mode.NAN, Mode.RATE_LIMITED, Mode.CUT],
)
def test_without_an_answer_our_own_order_stands(
    horses: Runtime, tenant: int, stub: StubProvider, mode: Mode
) -> None:
    stub.follow(Rule(mode))
    hurried = with_server(horses, stub, connect=5, read=0.5, total=0.5)
    for limit in (1, 3, 10):
        recalled = ask(hurried, tenant, limit=limit)
        assert recalled.degraded == ("rerank",)
        assert order(recalled) == order(ask(horses, tenant, limit=limit))


def test_a_server_that_is_away_changes_nothing_and_is_named(
    horses: Runtime, tenant: int, stub: StubProvider
) -> None:
    away = with_server(horses, stub)
    plain = context(horses, tenant, BOB, request=ContextRequest(QUERY, session="s1"))
    stub.close()
    assert order(ask(away, tenant)) == order(ask(horses, tenant))
    window = context(away, tenant, BOB, request=ContextRequest(QUERY, session="s1"))
    assert "rerank" in window.degraded
    assert window.ids == plain.ids


def test_a_window_shows_what_the_model_prefers(horses: Runtime, tenant: int, stub: StubProvider) -> None:
    stub.follow(preferring("Ember"))
    request = ContextRequest(QUERY, topic_limit=1, budget_tokens=400, expand_graph=False)
    window = context(with_server(horses, stub), tenant, BOB, request=request)
    first = next(line for line in window.text.splitlines() if "horse" in line)
    assert "Ember" in first
    assert window.degraded == ()


def test_the_model_reads_the_passage_and_who_said_it(
    horses: Runtime, tenant: int, stub: StubProvider
) -> None:
    filler = "Rain fell on the hills all day long. " * 200
    place = Scope("ada", "bob", "s2")
    record(horses, tenant, place, [NewTurn(Role.USER, filler + "The race was won by the horse Indigo.")])
    index_turns(horses)
    ask(with_server(horses, stub), tenant)
    (request,) = stub.requests
    texts: Sequence[str] = request.body["texts"]  # type: ignore[assignment]
    (passage,) = (text for text in texts if "Indigo" in text)
    assert passage.startswith("bob (20") and len(passage) < 1_100


def test_a_list_without_a_query_asks_no_model(horses: Runtime, tenant: int, stub: StubProvider) -> None:
    recall(with_server(horses, stub), tenant, BOB, query=RecallQuery(None))
    assert stub.requests == []


def test_a_cross_encoder_in_a_folder_reorders(horses: Runtime, tenant: int, tmp_path: Any) -> None:
    folder = write_cross_encoder(tmp_path / "pairs")
    options = Options(folder=folder, timeouts=Timeouts(total=60.0))
    reranker = make_reranker("onnx", options)
    reranked = replace(horses, reranker=reranker)
    recalled = ask(reranked, tenant, limit=12, tiers=(Tier.FACTS,), explain=True)
    scores = [hit.explain["rerank"]["score"] for hit in recalled.memories if hit.explain]  # type: ignore[index]
    assert recalled.degraded == ()
    assert len(scores) == len(NAMES)
    assert scores == sorted(scores, reverse=True) and len(set(scores)) > 1
    assert [hit.id for hit in recalled.memories] != [hit.id for hit in ask(horses, tenant).memories]


def test_a_reranker_is_made_of_the_settings(runtime: Runtime, tmp_path: Any) -> None:
    settings = runtime.settings.model_copy(
        update={"rerank": Rerank(provider="onnx", folder=write_cross_encoder(tmp_path / "m"))}
    )
    built = build(settings)
    try:
        assert built.reranker is not None and built.reranker.model == "m"
    finally:
        built.close()
    assert runtime.reranker is None
