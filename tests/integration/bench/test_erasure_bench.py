"""A person is erased while everything goes on that works on them: nothing is left, miscounted, or comes back."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pydantic import SecretStr

from memory_app import MemoryApp
from memory_app.bench import erasure
from memory_app.runtime import build
from memory_app.settings import Chat, Settings
from memory_app.testing import Rule, StubProvider

pytestmark = pytest.mark.one_shard

PARTS = {
    "messages",
    "looks of a worker",
    "looks of a worker of maintenance",
    "sleep cycles asked for",
    "syntheses asked for",
    "imports",
    "passes of re-embedding",
}


@pytest.fixture
def busy(settings: Settings, tenant: int) -> Iterator[MemoryApp]:
    """With a language model that takes a moment for each answer."""
    with StubProvider(Rule(seconds=0.05)) as stub:
        chat = Chat(base_url=stub.base_url, model="stub", key=SecretStr("none"))
        runtime = build(settings.model_copy(update={"chat": chat}))
        yield MemoryApp(runtime, tenant)
        runtime.close()


def check(busy: MemoryApp, *, memories: int, turns: int, watch_seconds: float) -> None:
    figures = erasure.measure(
        busy, memories=memories, turns=turns, watch_seconds=watch_seconds, say=lambda _: None
    )
    assert figures["faults"] == dict.fromkeys(figures["faults"], 0)
    assert figures["counts"]["memories"] >= memories
    assert figures["counts"]["turns"] >= turns
    assert figures["work"].keys() == PARTS, "each was at work before the erasure"
    assert figures["refusals"]["messages: erased"] > 0, "what waited was refused"
    assert figures["refusals"]["imports: erased"] > 0


def test_nothing_is_left_of_a_person_who_is_erased_under_load(busy: MemoryApp) -> None:
    check(busy, memories=500, turns=200, watch_seconds=3)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_much_in_memory_is_erased_under_load_and_stays_away(busy: MemoryApp) -> None:
    check(busy, memories=20_000, turns=10_000, watch_seconds=120)
