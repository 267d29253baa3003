"""Rerankers: a score for each text in its place, from a folder, or a server that answers well, badly or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from cross_encoders import write_cross_encoder
from pydantic import SecretStr

from memory_app.errors import (
    BadModelOutput,
    CircuitOpen,
    MemoryAppError,
    Misconfigured,
    ProviderUnavailable,
    RateLimited,
)
from memory_app.hot import Hot, breaker, limits
from memory_app.providers.provider import Gate, Timeouts
from memory_app.providers.rerankers import Options, Reranker, make_reranker
from memory_app.testing import Mode, Rule, StubProvider

QUERY = "where is the spare key"
TEXTS = ("the cat sleeps", "the spare key is under the pot", "a key", "")

QUICK = Timeouts(connect=30, read=0.5, total=0.5)
PATIENT = Timeouts(connect=5, read=60, total=60)

SERVERS = {"tei": "", "vllm": "/v1", "llamacpp": "/v1", "jina": "/v1", "cohere": "/v1"}
"""What is added to the address of the stub for each dialect."""


@pytest.fixture
def stub() -> Iterator[StubProvider]:
    with StubProvider() as stub:
        yield stub


def remote(stub: StubProvider, provider: str = "vllm", **options: object) -> Reranker:
    given = {"base_url": stub.address + SERVERS[provider], "key": SecretStr("sk-secret"), "timeouts": PATIENT}
    return make_reranker(provider, Options(**given | options))  # type: ignore[arg-type]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_cross_encoder(tmp_path / "pairs")


# --- what every reranker promises ---


@pytest.fixture(params=[*SERVERS, "onnx"])
def reranker(request: pytest.FixtureRequest, stub: StubProvider, folder: Path) -> Reranker:
    if request.param == "onnx":
        return make_reranker("onnx", Options(folder=folder, timeouts=PATIENT))
    return remote(stub, request.param)


def test_the_text_that_answers_has_the_highest_score(reranker: Reranker) -> None:
    scores = reranker.score("spare key", ["xyz", "spare key", "mmm key"])
    assert scores.index(max(scores)) == 1
    assert scores[2] > scores[0]


def test_scores_stand_in_the_order_of_the_texts(reranker: Reranker) -> None:
    forwards = reranker.score(QUERY, TEXTS)
    backwards = reranker.score(QUERY, TEXTS[::-1])
    assert len(forwards) == len(TEXTS)
    assert forwards == pytest.approx(backwards[::-1])


@pytest.mark.parametrize("text", ["", "\0", "half \ud83d of it", "a" * 50_000, "我" * 9_000])
def test_any_text_gets_a_finite_score(reranker: Reranker, text: str) -> None:
    scores = reranker.score(QUERY, [text, "key"])
    assert len(scores) == 2 and np.isfinite(scores).all()
    assert np.isfinite(reranker.score(text or "?", ["key"])).all()


def test_no_texts_give_no_scores(reranker: Reranker) -> None:
    assert reranker.score(QUERY, []) == []


# --- servers ---


def test_each_dialect_is_spoken_as_its_server_expects(stub: StubProvider) -> None:
    for provider in SERVERS:
        remote(stub, provider, model="m").score(QUERY, TEXTS[:2])
    tei, *others = stub.requests
    assert tei.path == "/rerank"
    assert tei.body == {"query": QUERY, "texts": list(TEXTS[:2]), "truncate": True}
    expected = {"query": QUERY, "documents": list(TEXTS[:2]), "top_n": 2, "model": "m"}
    assert [(request.path, request.body) for request in others] == [("/v1/rerank", expected)] * 4
    assert {request.headers["authorization"] for request in stub.requests} == {"Bearer sk-secret"}


def test_a_tei_gets_no_more_texts_a_call_than_it_takes(stub: StubProvider) -> None:
    texts = [f"key {n}" for n in range(70)]
    scores = remote(stub, "tei").score("key 69", texts)
    assert [len(request.body["texts"]) for request in stub.requests] == [32, 32, 6]  # type: ignore[arg-type]
    assert scores.index(max(scores)) == 69


@pytest.mark.parametrize(
    ("mode", "error"),
    [
        (Mode.RATE_LIMITED, RateLimited),
        (Mode.SERVER_ERROR, ProviderUnavailable),
        (Mode.UNAUTHORIZED, ProviderUnavailable),
        (Mode.NOT_FOUND, ProviderUnavailable),
        (Mode.BAD_REQUEST, BadModelOutput),
        (Mode.REDIRECT, ProviderUnavailable),
        (Mode.HANG, ProviderUnavailable),
        (Mode.DRIP, ProviderUnavailable),
        (Mode.CUT, ProviderUnavailable),
        (Mode.BROKEN_BODY, ProviderUnavailable),
        (Mode.ERROR_IN_BODY, RateLimited),
        (Mode.FEWER_ROWS, BadModelOutput),
        (Mode.NAN, BadModelOutput),
    ],
)
@pytest.mark.parametrize("provider", ["tei", "jina"])
def test_a_bad_answer_is_an_error_of_ours(
    stub: StubProvider, mode: Mode, error: type[MemoryAppError], provider: str
) -> None:
    stub.follow(Rule(mode))
    timeouts = QUICK if mode in (Mode.HANG, Mode.DRIP) else PATIENT
    with pytest.raises(error) as raised:
        remote(stub, provider, timeouts=timeouts).score(QUERY, TEXTS)
    assert "sk-" not in str(raised.value)


def test_a_server_that_is_not_there_is_an_error_of_ours(stub: StubProvider) -> None:
    gone = remote(stub)
    stub.close()
    with pytest.raises(ProviderUnavailable):
        gone.score(QUERY, TEXTS)


def test_after_five_failures_the_server_is_left_alone(stub: StubProvider, hot: Hot) -> None:
    def take(name: str, *, rate_per_second: float, burst: float, cost: float) -> limits.Verdict:
        return limits.take(hot, name, rate_per_second=rate_per_second, burst=burst, cost=cost)

    stub.follow(Rule(Mode.SERVER_ERROR))
    gate = Gate("rerank", take=take, guarded=lambda: breaker.guarded(hot, "rerank"))
    reranker = remote(stub, gate=gate)
    for _ in range(5):
        with pytest.raises(ProviderUnavailable):
            reranker.score(QUERY, TEXTS)
    with pytest.raises(CircuitOpen):
        reranker.score(QUERY, TEXTS)
    assert len(stub.requests) == 5


# --- a folder ---


def test_of_two_outputs_the_second_stands_for_an_answer(tmp_path: Path) -> None:
    one = make_reranker("onnx", Options(folder=write_cross_encoder(tmp_path / "one")))
    two = make_reranker("onnx", Options(folder=write_cross_encoder(tmp_path / "two", outputs=2)))
    assert all(0.5 <= score < 1 for score in one.score(QUERY, TEXTS))
    assert two.score(QUERY, TEXTS) == pytest.approx([0.5] * len(TEXTS)), "both outputs are the same here"


def test_a_long_query_leaves_room_for_the_text(folder: Path) -> None:
    reranker = make_reranker("onnx", Options(folder=folder, tokens_limit=32))
    low, high = reranker.score("z" * 500, ["x" * 500, "z" * 500])
    assert high > low


def test_a_model_that_is_too_slow_is_given_up(folder: Path) -> None:
    hurried = make_reranker("onnx", Options(folder=folder, timeouts=Timeouts(total=0.0)))
    with pytest.raises(ProviderUnavailable):
        hurried.score(QUERY, TEXTS * 50)


def test_a_model_of_something_else_is_named(tmp_path: Path) -> None:
    classes = make_reranker("onnx", Options(folder=write_cross_encoder(tmp_path / "three", outputs=3)))
    with pytest.raises(BadModelOutput):
        classes.score(QUERY, TEXTS)


@pytest.mark.parametrize(
    ("provider", "options", "field"),
    [
        ("onnx", Options(), "folder"),
        ("onnx", Options(folder=Path("nowhere")), "folder"),
        ("vllm", Options(), "base_url"),
        ("tei", Options(), "base_url"),
        ("tei", Options(base_url="ftp://somewhere"), "base_url"),
        ("tea", Options(), "provider"),
    ],
)
def test_what_is_missing_is_named_at_the_start(provider: str, options: Options, field: str) -> None:
    with pytest.raises(Misconfigured) as refused:
        make_reranker(provider, options)
    assert refused.value.field == field
