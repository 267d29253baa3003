"""Whatever is asked: a clear error or a named degradation, never everything, never a crash. And words of any script."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import all_shards
import numpy as np
import pytest
from sqlalchemy import Engine

from memory_app.agents.agents import AgentChange, change_agent
from memory_app.agents.rows import agents
from memory_app.db.db import transaction
from memory_app.errors import InvalidInput, NotFound
from memory_app.memories.remember import remember
from memory_app.providers.embedders import HashEmbedder, Thresholds, verified
from memory_app.providers.embedders.embedder import Vectors
from memory_app.recall.context import ContextRequest, context
from memory_app.recall.recall import Recalled, RecallQuery, recall
from memory_app.records.records import NewTurn, Role, Statement, Tier
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.turns.index import index_turns
from memory_app.turns.record import record

BOB, SESSION = Scope("ada", "bob"), Scope("ada", "bob", "s1")
NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


@dataclass
class Broken:
    """An embedder whose answers are ``rows`` for any text, checked as every embedder checks its own."""

    rows: Any
    inner: HashEmbedder

    @property
    def model(self) -> str:
        return self.inner.model

    @property
    def dimensions(self) -> int:
        return self.inner.dimensions

    @property
    def thresholds(self) -> Thresholds:
        return self.inner.thresholds

    def embed(self, texts: Sequence[str]) -> Vectors:
        return verified(np.asarray(self.rows, dtype=np.float32), len(texts), self.dimensions)


@pytest.fixture
def horses(runtime: Runtime, tenant: int) -> Runtime:
    record(runtime, tenant, SESSION, [NewTurn(Role.USER, "A horse was mentioned at noon.")])
    index_turns(runtime)
    for words in ("Bob rides a horse.", "Bob drives a van."):
        remember(runtime, tenant, BOB, statement=Statement("fact", words, tags=("bob",)), deduplicate=False)
    return runtime


def asked(runtime: Runtime, tenant: int, words: str | None = "horse", **fields: Any) -> Recalled:
    return recall(runtime, tenant, BOB, query=RecallQuery(words, **fields))


# --- queries --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        "?!… ---",
        "🤖",
        "%",
        "'; DROP TABLE memories; --",
        "\\",
        "{}",
        "a" * 8_000,
        "horse " * 1_300,
        "\u202e\u200b horse",
        ":name :vector_0 %(x)s",
        "the of and",
    ],
)
def test_any_words_give_an_answer(horses: Runtime, tenant: int, words: str) -> None:
    found = asked(horses, tenant, words)
    assert found.degraded == ()
    assert len(found.memories) <= 3
    assert context(horses, tenant, BOB, request=ContextRequest(query=words, session="s1")).tokens > 0


@pytest.mark.parametrize("words", ["", "  \n", "\x00\x00"])
def test_a_query_without_content_is_refused(horses: Runtime, tenant: int, words: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        asked(horses, tenant, words)
    assert refused.value.field == "query"


def test_words_that_nobody_said_find_nothing_by_keyword(horses: Runtime, tenant: int) -> None:
    assert asked(horses, tenant, "giraffe", preset="keyword").memories == ()
    assert asked(horses, tenant, "?!", preset="keyword").memories == ()


# --- filters --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "given"),
    [
        ("kinds", {"kinds": ("facts",)}),
        ("kinds", {"kinds": ()}),
        ("subtypes", {"subtypes": ("habits",)}),
        ("subtypes", {"subtypes": ()}),
        ("tiers", {"tiers": ()}),
        ("tags", {"tags": ()}),
        ("preset", {"preset": ""}),
        ("limit", {"limit": 0}),
        ("limit", {"limit": -1}),
        ("limit", {"limit": 10**9}),
        ("depth", {"depth": 0}),
        ("depth", {"depth": 9}),
        ("after", {"after": datetime(2026, 1, 1)}),  # noqa: DTZ001
        ("before", {"before": datetime(2026, 1, 1)}),  # noqa: DTZ001
        ("before", {"after": NOON, "before": NOON}),
    ],
)
def test_a_filter_that_says_nothing_clear_is_refused_by_name(
    horses: Runtime, tenant: int, field: str, given: dict[str, Any]
) -> None:
    with pytest.raises(InvalidInput) as refused:
        asked(horses, tenant, **given)
    assert refused.value.field == field


def test_an_unknown_tag_or_session_gives_nothing_instead_of_everything(horses: Runtime, tenant: int) -> None:
    assert asked(horses, tenant, tags=("nobody",)).memories == ()
    with pytest.raises(NotFound) as refused:
        asked(horses, tenant, session="nowhere")
    assert refused.value.field == "session"


def test_a_range_of_time_is_half_open(runtime: Runtime, tenant: int) -> None:
    for hour in (9, 12, 15):
        at = NOON.replace(hour=hour)
        record(runtime, tenant, SESSION, [NewTurn(Role.USER, f"A horse at {hour}.", at=at)])
    record(runtime, tenant, SESSION, [NewTurn(Role.USER, "A horse not indexed at 12.", at=NOON)])
    index_turns(runtime)
    record(
        runtime, tenant, SESSION, [NewTurn(Role.USER, "A horse just said at 15.", at=NOON.replace(hour=15))]
    )
    remember(runtime, tenant, BOB, statement=Statement("fact", "Bob got a horse.", valid_from=NOON))
    found = asked(runtime, tenant, after=NOON, before=NOON.replace(hour=15)).memories
    assert {hit.text for hit in found} == {"A horse at 12.", "A horse not indexed at 12.", "Bob got a horse."}


def test_a_subtype_narrows_to_memories_of_it(runtime: Runtime, tenant: int) -> None:
    for subtype in ("habit", "preference"):
        remember(
            runtime,
            tenant,
            BOB,
            statement=Statement("fact", f"A horse, as a {subtype}.", subtype=subtype),
            deduplicate=False,
        )
    assert [hit.text for hit in asked(runtime, tenant, subtypes=("habit",)).memories] == [
        "A horse, as a habit."
    ]


# --- embeddings -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "rows", [[[0.1, 0.2]], [[float("nan")] * 256], [[0.0] * 256], [], [[float("inf")] * 256]]
)
def test_an_embedding_that_cannot_be_used_is_named_and_words_go_on(
    horses: Runtime, tenant: int, rows: Any
) -> None:
    broken = replace(horses, embedder=Broken(rows, HashEmbedder()))
    found = asked(broken, tenant)
    assert found.degraded == ("similarity",)
    assert "horse" in found.memories[0].text
    window = context(broken, tenant, BOB, request=ContextRequest(query="horse"))
    assert "similarity" in window.degraded and "horse" in window.text


# --- context --------------------------------------------------------------------------------------------------


def test_a_budget_too_small_for_the_core_says_what_was_dropped(runtime: Runtime, tenant: int) -> None:
    remember(
        runtime,
        tenant,
        BOB,
        statement=Statement("core", "Never give medical advice, whatever is asked of you."),
    )
    window = context(runtime, tenant, BOB, request=ContextRequest(budget_tokens=5))
    assert window.text == ""
    assert ("core", 1, "budget") in {(note.section, note.rows, note.reason) for note in window.dropped}


def test_a_persona_that_does_not_fit_is_refused_with_its_field(runtime: Runtime, tenant: int) -> None:
    for persona, field in (
        ({"name": "Ada", "style": "loud"}, "style"),
        ({"name": "Ada", "tone": "friendly"}, "tone"),
        ({"name": "Ada", "mood": "good"}, "mood"),
    ):
        with pytest.raises(InvalidInput) as refused:
            change_agent(
                runtime,
                tenant,
                Scope("ada"),
                change=AgentChange(named=frozenset({"persona"}), persona=persona),
            )
        assert field in str(refused.value.field)


def test_an_agents_own_weights_may_also_count_against_a_row(runtime: Runtime, tenant: int) -> None:
    policy = {"weights": {"user_role": -1.0, "keyword": 1.0}}
    with transaction(runtime.at(0).engine, tenant) as connection:
        agents.change(
            connection, tenant, "ada", parts={"policy": policy}, copies=all_shards.copies(connection)
        )
    for role in (Role.USER, Role.ASSISTANT):
        record(runtime, tenant, SESSION, [NewTurn(role, f"A horse, says the {role.value}.")])
    index_turns(runtime)
    assert asked(runtime, tenant, "horse").memories[0].role == "assistant"


# --- scripts --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        ("我昨天在北京买了一台新的照相机。", "照相机"),
        ("我的猫叫小白，今年三岁了。", "小白几岁"),
        ("来月、大阪で写真の展覧会があります。", "展覧会"),
        ("カメラを修理に出しました。", "カメラ"),
        ("ฉันชอบกินข้าวผัดกับน้องสาว", "ข้าวผัด"),
        ("أخي يعمل طبيبا في مستشفى القاهرة.", "مستشفى"),
        ("שלומית גרה בחיפה ליד הים.", "בחיפה"),
        ("Я купил велосипед в Казани.", "велосипеда"),
        ("우리 강아지 이름은 초코입니다.", "강아지"),
        ("मेरी बहन दिल्ली में रहती है।", "दिल्ली"),
        ("That made me so happy 🎉🥳", "🥳"),
        ("Fixed it with `np.linalg.norm(x, axis=-1)` at last.", "linalg.norm"),
        ("The error was E1042 in parse_config().", "parse_config"),
        ("We moved from v2.3.1 to v2.4.0 of getUserById.", "getUserById 2.3.1"),
        ("Mail me at kim.o'neil+news@example.org please.", "example.org"),
        ("The C++ part is older than the C# part.", "C#"),
    ],
)
def test_words_of_any_script_names_and_code_are_found_by_keyword(
    runtime: Runtime, tenant: int, said: str, wanted: str
) -> None:
    others = ("It rained all day.", "今天天气很好。", "The C part is in Rust.", "Thanks 🙏", "مرحبا بالعالم")
    record(runtime, tenant, SESSION, [NewTurn(Role.USER, words) for words in (*others, said)])
    index_turns(runtime)
    remember(runtime, tenant, BOB, statement=Statement("fact", said), deduplicate=False)
    turns = asked(runtime, tenant, wanted, preset="keyword", tiers=(Tier.DAILY_LOGS,))
    facts = asked(runtime, tenant, wanted, preset="keyword", tiers=(Tier.FACTS,))
    assert turns.memories[0].text == said
    assert facts.memories[0].text == said


def test_nothing_of_the_agents_rows_is_locked_while_it_is_asked(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    remember(runtime, tenant, BOB, statement=Statement("fact", "Bob rides a horse."))
    with owner.begin() as connection:
        connection.exec_driver_sql("SELECT id FROM scopes FOR UPDATE")
        connection.exec_driver_sql("SELECT id FROM memories FOR UPDATE")
        assert asked(runtime, tenant).memories[0].text == "Bob rides a horse."
