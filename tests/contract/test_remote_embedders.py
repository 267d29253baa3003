"""Embedders behind a network and in a folder: the promises of every embedder, and servers that break theirs.

The first half is the suite of `test_embedders`, run again over other makers. A real server joins when
MEMORY_TEST_EMBEDDINGS_URL, _MODEL and _DIMENSIONS (and _KEY where needed) are set.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from log_lines import logged
from onnx import TensorProto, numpy_helper
from onnx import helper as graph
from pydantic import SecretStr
from test_embedders import (  # noqa: F401 - one suite for all embedders
    test_a_batch_gives_what_single_calls_give,
    test_a_restated_sentence_is_nearer_than_another,
    test_a_text_without_content_resembles_nothing,
    test_any_text_has_a_finite_unit_vector,
    test_each_text_becomes_one_unit_row,
    test_every_row_can_be_written_without_changing_another_call,
    test_no_texts_give_no_rows,
    test_the_name_carries_the_dimensions,
)
from tokenizers import Regex, Tokenizer, models, pre_tokenizers, processors

from memory_app.errors import (
    BadModelOutput,
    CircuitOpen,
    DimensionMismatch,
    MemoryAppError,
    Misconfigured,
    ProviderUnavailable,
    RateLimited,
)
from memory_app.hot import Hot, breaker, limits
from memory_app.providers.embedders import Embedder, Options, Pooling, embed_queries, factory, make_embedder
from memory_app.providers.embedders.remote import PIECE_BYTES
from memory_app.providers.provider import Gate, Timeouts
from memory_app.testing import Mode, Rule, StubProvider

QUICK = Timeouts(connect=30, read=0.5, total=1)
"""For a provider that never answers. One that does may take its time, on a busy machine."""

PATIENT = Timeouts(connect=5, read=60, total=60)

LONGEST = 2_000
"""Characters of a text that a real server gets from the suite; the rest costs money and shows nothing more."""


@pytest.fixture
def stub() -> Iterator[StubProvider]:
    with StubProvider() as stub:
        yield stub


class Made:
    """Makes embedders over the stub."""

    def __init__(self, stub: StubProvider) -> None:
        self.stub = stub

    def __call__(self, provider: str, dimensions: int = 64, **options: object) -> Embedder:
        root = self.stub.address if provider == "ollama" else self.stub.base_url
        given = {"base_url": root, "model": "stub-embed", "key": SecretStr("sk-secret"), "timeouts": PATIENT}
        return make_embedder(provider, dimensions, options=Options(**given | options), cache_size=0)  # type: ignore[arg-type]


@pytest.fixture
def make(stub: StubProvider) -> Made:
    return Made(stub)


# --- a tiny model in a folder ---

TOKENS = 128
WIDTH = 16
INPUTS = ("input_ids", "attention_mask")


def write_model(
    folder: Path, *, pooled: bool = False, inputs: tuple[str, ...] = INPUTS, rows: int = TOKENS
) -> Path:
    """A sentence model that looks every letter up in a table of random rows, with [CLS] and [SEP] around."""
    folder.mkdir()
    table = np.random.default_rng(0).standard_normal((rows, WIDTH)).astype(np.float32)
    nodes = [graph.make_node("Gather", ["table", "input_ids"], ["looked_up"])]
    if pooled:
        nodes.append(graph.make_node("ReduceMean", ["looked_up", "axes"], ["out"], keepdims=0))
    else:
        nodes.append(graph.make_node("Identity", ["looked_up"], ["out"]))
    made = graph.make_graph(
        nodes,
        "letters",
        [graph.make_tensor_value_info(name, TensorProto.INT64, ["n", "t"]) for name in inputs],
        [graph.make_tensor_value_info("out", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(table, "table"), numpy_helper.from_array(np.array([1]), "axes")],
    )
    model = graph.make_model(made, opset_imports=[graph.make_opsetid("", 18)], ir_version=10)
    onnx.save(model, folder / "model.onnx")
    write_tokenizer(folder)
    return folder


def write_tokenizer(folder: Path) -> None:
    letters = {chr(code): code for code in range(1, TOKENS)}
    letters |= {"[UNK]": 0}
    letters.pop("\x02")
    letters.pop("\x03")
    tokenizer = Tokenizer(models.WordLevel({**letters, "[CLS]": 2, "[SEP]": 3}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    tokenizer.save(str(folder / "tokenizer.json"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_model(tmp_path / "letters")


# --- the suite of every embedder ---

REAL = "MEMORY_TEST_EMBEDDINGS_URL"
MAKERS = ["openai", "compatible", "ollama", "prefixed", "onnx"]


def real_embedder() -> Embedder:
    key = os.environ.get("MEMORY_TEST_EMBEDDINGS_KEY")
    options = Options(
        base_url=os.environ[REAL],
        model=os.environ["MEMORY_TEST_EMBEDDINGS_MODEL"],
        key=SecretStr(key) if key else None,
    )
    return make_embedder("compatible", int(os.environ["MEMORY_TEST_EMBEDDINGS_DIMENSIONS"]), options=options)


@pytest.fixture(params=[*MAKERS, *(["real"] if REAL in os.environ else [])])
def embedder(request: pytest.FixtureRequest) -> Embedder:
    if request.param == "real":
        return real_embedder()
    if request.param == "onnx":
        folder = request.getfixturevalue("folder")
        return make_embedder("onnx", WIDTH, options=Options(folder=folder), cache_size=0)
    make = request.getfixturevalue("make")
    if request.param == "prefixed":
        prefixes = {"query_prefix": "query: ", "passage_prefix": "passage: "}
        return make("compatible", ask_dimensions=True, timeouts=PATIENT, **prefixes)
    if request.param == "ollama":
        return make("ollama", 768, timeouts=PATIENT)
    return make(request.param, ask_dimensions=True, timeouts=PATIENT)


# --- what is sent ---


def test_texts_go_out_in_batches(make: Made, stub: StubProvider) -> None:
    embedder = make("openai", batch=3)
    stub.reset()
    embedder.embed([f"text {number}" for number in range(8)])
    assert [len(seen.body["input"]) for seen in stub.requests] == [3, 3, 2]
    assert {seen.body["dimensions"] for seen in stub.requests} == {64}
    assert stub.requests[0].headers["authorization"] == "Bearer sk-secret"


def test_the_usual_models_are_asked_for_without_being_named(make: Made, stub: StubProvider) -> None:
    assert make("openai", 1536, model=None).model == "text-embedding-3-small-1536"
    assert "dimensions" not in stub.requests[-1].body
    assert make("ollama", 768, model=None).model == "nomic-embed-text-768"
    assert stub.requests[-1].path == "/api/embed"


def test_a_long_text_goes_in_pieces_and_all_of_it_counts(make: Made, stub: StubProvider) -> None:
    embedder = make("openai")
    stub.reset()
    long = "We talked about the weather. " * 1_000
    end = embedder.embed([long, long + "Lisbon " * 2_000, "Lisbon"])
    sent = [text for seen in stub.requests for text in seen.body["input"]]
    assert max(len(text.encode()) for text in sent) <= PIECE_BYTES
    assert end[1] @ end[2] > end[0] @ end[2] + 0.1


def test_an_empty_text_is_never_sent(make: Made, stub: StubProvider) -> None:
    embedder = make("openai")
    stub.reset()
    embedder.embed(["", " \n", "\0"])
    assert stub.requests == []


def test_a_question_is_marked_as_one_where_the_model_wants_it(make: Made, stub: StubProvider) -> None:
    nomic = make("ollama", 768, model="nomic-embed-text:v1.5")
    nomic.embed(["tea"])
    embed_queries(nomic, ["tea"])
    assert [seen.body["input"] for seen in stub.requests[-2:]] == [
        ["search_document: tea"],
        ["search_query: tea"],
    ]
    plain = make("openai")
    embed_queries(plain, ["tea"])
    assert stub.requests[-1].body["input"] == ["tea"]


def test_a_cache_keeps_questions_and_passages_apart(stub: StubProvider) -> None:
    options = Options(base_url=stub.base_url, model="multilingual-e5-small", ask_dimensions=True)
    embedder = make_embedder("compatible", 64, options=options)
    stub.reset()
    rows = [embedder.embed(["tea"]), embed_queries(embedder, ["tea"]), embedder.embed(["tea"])]
    assert stub.stats.calls.total() == 2
    assert np.array_equal(rows[0], rows[2])
    assert not np.array_equal(rows[0], rows[1])


def test_rows_in_another_order_find_their_texts(make: Made, stub: StubProvider) -> None:
    embedder = make("openai")
    expected = embedder.embed(["a cat", "a dog", "a house"])
    stub.follow(Rule(Mode.UNORDERED))
    np.testing.assert_array_equal(embedder.embed(["a cat", "a dog", "a house"]), expected)


# --- the server fails ---


@pytest.mark.parametrize("provider", ["openai", "ollama"])
@pytest.mark.parametrize(
    ("rule", "error"),
    [
        (Rule(Mode.RATE_LIMITED, retry_after="7"), RateLimited),
        (Rule(Mode.SERVER_ERROR), ProviderUnavailable),
        (Rule(Mode.UNAUTHORIZED), ProviderUnavailable),
        (Rule(Mode.NOT_FOUND), ProviderUnavailable),
        (Rule(Mode.HANG), ProviderUnavailable),
        (Rule(Mode.DRIP, seconds=0.05), ProviderUnavailable),
        (Rule(Mode.CUT), ProviderUnavailable),
        (Rule(Mode.BROKEN_BODY), ProviderUnavailable),
        (Rule(Mode.HUGE, size_bytes=70_000_000), BadModelOutput),
        (Rule(Mode.BAD_REQUEST), BadModelOutput),
        (Rule(Mode.WRONG_DIMENSION), DimensionMismatch),
        (Rule(Mode.NAN), BadModelOutput),
        (Rule(Mode.ZERO), BadModelOutput),
        (Rule(Mode.FEWER_ROWS), BadModelOutput),
    ],
    ids=lambda value: value.mode if isinstance(value, Rule) else None,
)
def test_a_failure_is_named_and_tried_only_once(
    make: Made, stub: StubProvider, provider: str, rule: Rule, error: type[MemoryAppError]
) -> None:
    timeouts = QUICK if rule.mode in (Mode.HANG, Mode.DRIP) else PATIENT
    embedder = make(provider, 768, timeouts=timeouts)
    stub.reset()
    stub.follow(rule)
    with pytest.raises(error) as raised:
        embedder.embed(["tea", "coffee"])
    assert stub.stats.calls.total() == 1
    assert "sk-" not in str(raised.value)
    assert raised.value.retry_after == (7 if error is RateLimited else None)


@pytest.mark.parametrize("mode", [Mode.WRONG_DIMENSION, Mode.NAN, Mode.ZERO])
def test_a_model_that_does_not_fit_is_told_at_the_start(make: Made, stub: StubProvider, mode: Mode) -> None:
    stub.follow(Rule(mode))
    with pytest.raises((DimensionMismatch, BadModelOutput)):
        make("openai")


def test_a_server_that_is_not_there_yet_does_not_keep_us_from_starting(
    make: Made, stub: StubProvider
) -> None:
    stub.follow(Rule(Mode.SERVER_ERROR, times=1))
    with logged(factory) as logs:
        embedder = make("openai")
    assert [line["event"] for line in logs] == ["embedder_not_ready"]
    assert embedder.embed(["tea"]).shape == (1, 64)


@pytest.mark.parametrize(("provider", "missing"), [("compatible", "base_url"), ("onnx", "folder")])
def test_what_a_provider_needs_is_named(provider: str, missing: str) -> None:
    with pytest.raises(Misconfigured) as raised:
        make_embedder(provider)
    assert raised.value.field == missing


def test_a_failing_embedder_opens_its_circuit(make: Made, stub: StubProvider, hot: Hot) -> None:
    def take(name: str, **given: float) -> limits.Verdict:
        return limits.take(hot, name, **given)

    embedder = make(
        "openai", gate=Gate("embedder", take=take, guarded=lambda: breaker.guarded(hot, "embedder"))
    )
    stub.follow(Rule(Mode.SERVER_ERROR))
    for _ in range(5):
        with pytest.raises(ProviderUnavailable):
            embedder.embed(["tea"])
    with pytest.raises(CircuitOpen):
        embedder.embed(["tea"])


# --- a model in a folder ---


def test_tokens_are_averaged_or_the_first_is_taken(folder: Path) -> None:
    mean = make_embedder("onnx", WIDTH, options=Options(folder=folder, pooling=Pooling.MEAN))
    cls = make_embedder("onnx", WIDTH, options=Options(folder=folder, pooling=Pooling.CLS))
    assert not np.allclose(*mean.embed(["tea", "milk"]))
    np.testing.assert_allclose(*cls.embed(["tea", "milk"]), atol=1e-6)
    assert mean.model == "letters-16"


def test_a_model_that_pools_by_itself_is_taken_as_it_is(tmp_path: Path, folder: Path) -> None:
    pooled = make_embedder(
        "onnx", WIDTH, options=Options(folder=write_model(tmp_path / "pooled", pooled=True))
    )
    mean = make_embedder("onnx", WIDTH, options=Options(folder=folder))
    np.testing.assert_allclose(pooled.embed(["tea"]), mean.embed(["tea"]), atol=1e-6)


def test_the_end_of_a_text_longer_than_the_model_counts(folder: Path) -> None:
    embedder = make_embedder("onnx", WIDTH, options=Options(folder=folder, tokens_limit=16))
    end = embedder.embed(["a" * 1_000, "a" * 900 + "z" * 100, "z" * 10])
    assert end[1] @ end[2] > end[0] @ end[2] + 0.01


def test_a_folder_of_another_length_or_without_its_files_is_refused(tmp_path: Path, folder: Path) -> None:
    with pytest.raises(DimensionMismatch):
        make_embedder("onnx", 384, options=Options(folder=folder))
    odd = write_model(tmp_path / "odd", inputs=("input_ids", "pixels"))
    for bad in (tmp_path, odd):
        with pytest.raises(Misconfigured) as raised:
            make_embedder("onnx", WIDTH, options=Options(folder=bad))
        assert raised.value.field == "folder"
    too_small = write_model(tmp_path / "small", rows=4)
    with pytest.raises(Misconfigured, match="fails on a text"):
        make_embedder("onnx", WIDTH, options=Options(folder=too_small))
    (folder / "model.onnx").write_bytes(b"not a model")
    with pytest.raises(Misconfigured):
        make_embedder("onnx", WIDTH, options=Options(folder=folder))
