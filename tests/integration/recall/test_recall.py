"""Recall: the best of one's own rows, at once after they were said, and never a row of anybody else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import all_shards
import pytest
from embedders import failing
from sqlalchemy import Engine, make_url, text

from memory_app.agents.rows import agents
from memory_app.db.db import connect
from memory_app.errors import InvalidInput, NotFound, ProviderUnavailable
from memory_app.local.embedded import Servers
from memory_app.memories.remember import remember
from memory_app.recall.context import ContextRequest, context
from memory_app.recall.recall import Hit, RecallQuery, recall
from memory_app.records.records import Mention, NewTurn, Role, Statement, Tier
from memory_app.records.scope import Scope
from memory_app.records.scoring import PRESETS, SIGNAL_NAMES
from memory_app.runtime import Runtime
from memory_app.turns.index import index_turns
from memory_app.turns.record import record

BOB, EVE, AGENT = Scope("ada", "bob"), Scope("ada", "eve"), Scope("ada")
NAMED_BY_PRESET = {"vector": {"similarity"}, "keyword": {"keyword"}}


def say(
    runtime: Runtime, tenant: int, *words: str, scope: Scope = BOB, session: str = "s1", **fields: Any
) -> None:
    place = Scope(scope.agent, scope.user, session)
    record(runtime, tenant, place, [NewTurn(fields.pop("role", Role.USER), said, **fields) for said in words])


def know(runtime: Runtime, tenant: int, words: str, *, scope: Scope = BOB, **fields: Any) -> Any:
    statement = Statement(**{"kind": "fact", "text": words} | fields)
    return remember(runtime, tenant, scope, statement=statement, deduplicate=False).id


def asked(
    runtime: Runtime, tenant: int, words: str | None, *, scope: Scope = BOB, **fields: Any
) -> tuple[Hit, ...]:
    return recall(runtime, tenant, scope, query=RecallQuery(words, **fields)).memories


def texts(hits: Sequence[Hit]) -> list[str]:
    return [hit.text for hit in hits]


# --- at once --------------------------------------------------------------------------------------------------


def test_what_was_just_said_is_found_before_it_is_indexed_and_says_so(runtime: Runtime, tenant: int) -> None:
    say(runtime, tenant, "My passport is in the blue drawer.")
    (hit,) = asked(runtime, tenant, "where is the passport")
    assert (hit.tier, hit.indexed, hit.speaker, hit.seq) == (Tier.DAILY_LOGS, False, "bob", 1)
    index_turns(runtime)
    (hit,) = asked(runtime, tenant, "where is the passport")
    assert hit.indexed


def test_a_recent_turn_unrelated_to_the_question_is_left_out(runtime: Runtime, tenant: int) -> None:
    say(runtime, tenant, "My passport is in the blue drawer.", role=Role.ASSISTANT)
    assert asked(runtime, tenant, "giraffes") == ()


def test_a_memory_is_found_as_soon_as_it_is_remembered(runtime: Runtime, tenant: int) -> None:
    memory_id = know(runtime, tenant, "Bob plays the saxophone.", tags=("music",), importance=7)
    (hit,) = asked(runtime, tenant, "saxophone")
    assert (hit.id, hit.tier, hit.kind, hit.importance, hit.tags) == (
        memory_id,
        Tier.FACTS,
        "fact",
        7,
        ("music",),
    )


def test_the_speaker_and_the_day_of_a_turn_can_be_asked_for(runtime: Runtime, tenant: int) -> None:
    say(runtime, tenant, "We went sailing.", speaker="Roberta", at=datetime(2023, 5, 8, 13, 0, tzinfo=UTC))
    say(runtime, tenant, "We stayed at home.", speaker="Conrad", at=datetime(2023, 6, 9, 13, 0, tzinfo=UTC))
    index_turns(runtime)
    assert asked(runtime, tenant, "What did Roberta do?")[0].text == "We went sailing."
    assert (
        asked(runtime, tenant, "What happened on 9 June 2023?", preset="keyword")[0].text
        == "We stayed at home."
    )


def test_old_turns_are_searched_up_to_the_limit_of_the_agent(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    say(runtime, tenant, "My passport is in the blue drawer.", "I like passport photos in blue frames.")
    index_turns(runtime)
    with owner.begin() as connection:
        connection.execute(text("UPDATE turns SET accepted_at = now() - interval '31 days' WHERE seq = 1"))
    assert sorted(hit.seq for hit in asked(runtime, tenant, "passport blue") if hit.seq) == [1, 2]
    with owner.begin() as connection:
        agents.change(
            connection,
            tenant,
            "ada",
            parts={"policy": {"daily_log_limit_days": 30}},
            copies=all_shards.copies(connection),
        )
    assert [hit.seq for hit in asked(runtime, tenant, "passport blue")] == [2]


def test_chinese_japanese_and_thai_words_are_found(runtime: Runtime, tenant: int) -> None:
    said = {
        "我住在上海，养了一只猫。": "上海",
        "私は京都に住んでいます。": "京都",
        "ฉันอาศัยอยู่ที่เชียงใหม่": "เชียงใหม่",
    }
    for words in said:
        know(runtime, tenant, words)
    for words, wanted in said.items():
        assert asked(runtime, tenant, wanted, preset="keyword")[0].text == words


# --- presets --------------------------------------------------------------------------------------------------


def test_each_preset_scores_by_its_own_weights(runtime: Runtime, tenant: int) -> None:
    say(runtime, tenant, "The saxophone is in the attic.", "It has a broken key.")
    index_turns(runtime)
    know(runtime, tenant, "Bob plays the saxophone.")
    for preset, weights in PRESETS.items():
        recalled = recall(
            runtime, tenant, BOB, query=RecallQuery("Who plays the saxophone?", preset=preset, explain=True)
        )
        for hit in (*recalled.memories, *recalled.cut):
            assert hit.explain is not None
            signals, parts = hit.explain["signals"], hit.explain["contributions"]
            assert isinstance(signals, dict)
            assert isinstance(parts, dict)
            relevance, full, bearing = (
                hit.explain[name] for name in ("relevance", "full_relevance", "bearing")
            )
            assert relevance == pytest.approx(sum(parts.values()))
            assert hit.score == pytest.approx(bearing * relevance / full)  # type: ignore[operator]
            assert set(parts) <= NAMED_BY_PRESET.get(preset, set(SIGNAL_NAMES))
            for name, part in parts.items():
                assert part == pytest.approx(signals[name] * weights[name]), (preset, name)


def test_keyword_finds_words_and_vector_finds_spellings(runtime: Runtime, tenant: int) -> None:
    know(runtime, tenant, "Bob is a saxophonist.")
    know(runtime, tenant, "Bob rides a horse.")
    assert asked(runtime, tenant, "saxophones", preset="vector")[0].text == "Bob is a saxophonist."
    assert texts(asked(runtime, tenant, "horse", preset="keyword")) == ["Bob rides a horse."]


def test_the_agents_preset_and_weights_apply_unless_the_caller_names_one(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    know(runtime, tenant, "Bob rides a horse.")
    know(runtime, tenant, "Bob feeds goats.", importance=10)
    assert texts(asked(runtime, tenant, "horse"))[0] == "Bob rides a horse."
    with owner.begin() as connection:
        weights = {"keyword": 0.1, "importance": 5.0}
        agents.change(
            connection,
            tenant,
            "ada",
            parts={"policy": {"preset": "keyword", "weights": weights}},
            copies=all_shards.copies(connection),
        )
    assert texts(asked(runtime, tenant, "horse"))[0] == "Bob feeds goats."


def test_a_pinned_memory_is_always_a_candidate_and_shown(runtime: Runtime, tenant: int) -> None:
    know(runtime, tenant, "Bob is allergic to nuts.", pinned=True)
    know(runtime, tenant, "Bob rides a horse.")
    assert "Bob is allergic to nuts." in texts(asked(runtime, tenant, "horse", preset="keyword"))


# --- near twins -----------------------------------------------------------------------------------------------

HIVES = (
    "Bob has kept three hives of bees behind his wooden house near the old harbour of Kyoto since the spring, "
    "and he sells the honey at the market."
)


def test_paraphrases_are_shown_once_but_not_texts_that_differ_in_a_number(
    runtime: Runtime, tenant: int
) -> None:
    first, again, more = (
        remember(runtime, tenant, BOB, statement=Statement("fact", said), deduplicate=False).id
        for said in (HIVES, HIVES.replace("behind his", "behind the"), HIVES.replace("three", "thirteen"))
    )
    recalled = recall(runtime, tenant, BOB, query=RecallQuery("bees in Kyoto", explain=True))
    shown = {hit.id for hit in recalled.memories}
    assert more in shown and len(shown & {first, again}) == 1
    (repeat,) = recalled.cut
    assert repeat.explain is not None
    (kept,) = shown - {more}
    assert str(repeat.explain["cut"]).startswith(f"says the same as {kept} in other words (cosine 0.9")


# --- explain --------------------------------------------------------------------------------------------------


def test_explain_gives_every_signal_of_every_candidate_and_why_it_was_cut(
    runtime: Runtime, tenant: int
) -> None:
    say(runtime, tenant, "The horse is in the stable.")
    index_turns(runtime)
    say(runtime, tenant, "The horse is hungry.")
    for words in ("Bob rides a horse.", "Bob rides a horse!", "Bob owns a horse."):
        know(runtime, tenant, words, kind="fact" if words.endswith(".") else "artifact")
    know(runtime, tenant, "Zzz.", kind="artifact")
    recalled = recall(
        runtime, tenant, BOB, query=RecallQuery("horse", limit=2, preset="keyword", explain=True)
    )
    assert len(recalled.memories) == 2
    for hit in (*recalled.memories, *recalled.cut):
        assert hit.explain is not None
        assert set(hit.explain["signals"]) == set(SIGNAL_NAMES)  # type: ignore[call-overload]
    reasons = [str(hit.explain["cut"]) for hit in recalled.cut if hit.explain]
    assert any(reason.startswith("says the same as") for reason in reasons)
    assert "below the limit" in reasons
    assert all("cut" not in (hit.explain or {}) for hit in recalled.memories)


def test_without_explain_nothing_is_explained(runtime: Runtime, tenant: int) -> None:
    know(runtime, tenant, "Bob rides a horse.")
    recalled = recall(runtime, tenant, BOB, query=RecallQuery("horse"))
    assert (recalled.cut, recalled.memories[0].explain, recalled.degraded) == ((), None, ())


# --- filters --------------------------------------------------------------------------------------------------


def test_a_filter_narrows(runtime: Runtime, tenant: int) -> None:
    say(runtime, tenant, "A horse was mentioned.", session="s1")
    say(runtime, tenant, "A horse was mentioned elsewhere.", session="s2")
    index_turns(runtime)
    know(runtime, tenant, "Bob rides a horse.", importance=9, tags=("animals",))
    know(runtime, tenant, "They once met on a horse.", kind="anchor", importance=4)

    def find(**fields: Any) -> list[str]:
        return texts(asked(runtime, tenant, "horse", **fields))

    assert find(kinds=("anchor",)) == ["They once met on a horse."]
    assert find(tags=("animals",)) == ["Bob rides a horse."]
    assert find(min_importance=8) == ["Bob rides a horse."]
    assert find(tiers=(Tier.DAILY_LOGS,), session="s2") == ["A horse was mentioned elsewhere."]
    assert len(find(tiers=(Tier.DAILY_LOGS,))) == 2
    assert len(find(tiers=(Tier.FACTS,))) == 2
    assert len(find(limit=1)) == 1
    assert find(kinds=("anchor",), tags=("animals",)) == []
    assert find(kinds=("anchor",), tiers=(Tier.DAILY_LOGS,)) == []


def test_a_filter_that_is_unknown_or_empty_is_an_error_that_names_it(runtime: Runtime, tenant: int) -> None:
    know(runtime, tenant, "Bob rides a horse.")
    wrong: list[tuple[str, dict[str, Any]]] = [
        ("query", {"text": "  "}),
        ("query", {"text": "x" * 8_001}),
        ("limit", {"limit": 0}),
        ("limit", {"limit": 101}),
        ("kinds", {"kinds": ()}),
        ("kinds", {"kinds": ("mood",)}),
        ("tiers", {"tiers": ()}),
        ("tags", {"tags": ()}),
        ("preset", {"preset": "best"}),
        ("min_importance", {"min_importance": 0}),
        ("min_importance", {"min_importance": 11}),
        ("as_of", {"as_of": datetime(2024, 1, 1)}),  # noqa: DTZ001
    ]
    for field, given in wrong:
        with pytest.raises(InvalidInput) as refused:
            recall(runtime, tenant, BOB, query=RecallQuery(**{"text": "horse"} | given))
        assert refused.value.field == field
    with pytest.raises(NotFound, match="session"):
        asked(runtime, tenant, "horse", session="nowhere")


def test_as_of_asks_what_held_then(runtime: Runtime, tenant: int) -> None:
    for city, since in (("Paris", 2018), ("London", 2022)):
        remember(
            runtime,
            tenant,
            BOB,
            statement=Statement(
                "fact",
                f"Bob lives in {city}.",
                subject="Bob",
                relation="lives_in",
                object=city,
                valid_from=datetime(since, 1, 1, tzinfo=UTC),
            ),
        )

    def find(**fields: Any) -> list[str]:
        return texts(asked(runtime, tenant, "Where does Bob live?", **fields))

    assert find() == ["Bob lives in London."]
    assert find(as_of=datetime(2020, 1, 1, tzinfo=UTC)) == ["Bob lives in Paris."]
    assert find(as_of=datetime(2022, 1, 1, tzinfo=UTC)) == ["Bob lives in London."], "intervals are half-open"
    assert find(as_of=datetime(2010, 1, 1, tzinfo=UTC)) == []


def test_as_of_does_not_see_what_was_said_later_indexed_or_not(runtime: Runtime, tenant: int) -> None:
    long_ago = datetime(2020, 1, 1, tzinfo=UTC)
    say(runtime, tenant, "The horse was young.", at=long_ago)
    say(runtime, tenant, "The horse is old.")
    before = texts(asked(runtime, tenant, "horse", as_of=long_ago + timedelta(days=1)))
    index_turns(runtime)
    assert texts(asked(runtime, tenant, "horse", as_of=long_ago + timedelta(days=1))) == before
    assert before == ["The horse was young."]


def test_without_a_question_the_filters_alone_list(runtime: Runtime, tenant: int) -> None:
    know(runtime, tenant, "Bob rides a horse.", tags=("animals",))
    know(runtime, tenant, "Bob drives a van.")
    assert texts(asked(runtime, tenant, None, tags=("animals",))) == ["Bob rides a horse."]
    assert len(asked(runtime, tenant, None, tiers=(Tier.FACTS,))) == 2


# --- whose it is ----------------------------------------------------------------------------------------------


def test_every_read_path_stays_inside_the_scope(runtime: Runtime, tenant: int, other_tenant: int) -> None:
    secret = "The horse is called Zanzibar."
    others = ((tenant, EVE), (tenant, Scope("max", "bob")), (other_tenant, BOB))
    for tenant_id, scope in others:
        say(runtime, tenant_id, secret, scope=scope)
        know(runtime, tenant_id, secret, scope=scope, mentions=(Mention("thing", "Zanzibar"),), pinned=True)
        know(runtime, tenant_id, secret, scope=scope, kind="anchor", importance=10)
    index_turns(runtime)
    for tenant_id, scope in others:
        say(runtime, tenant_id, secret, scope=scope)
    say(runtime, tenant, "Good morning to you.", role=Role.ASSISTANT)
    for preset in PRESETS:
        assert secret not in texts(asked(runtime, tenant, "Zanzibar horse", preset=preset, limit=100))
    assert asked(runtime, tenant, None, tiers=(Tier.FACTS, Tier.ENTITIES)) == ()
    window = context(runtime, tenant, BOB, request=ContextRequest(query="Zanzibar horse", session="s1"))
    assert "Zanzibar" not in window.text
    for tenant_id, scope in others:
        assert "Zanzibar" in context(runtime, tenant_id, scope, request=ContextRequest(query="Zanzibar")).text


def test_an_agents_memories_are_seen_by_its_users_and_by_no_other_agent(
    runtime: Runtime, tenant: int, other_tenant: int
) -> None:
    know(runtime, tenant, "Ada was built by sailors.", scope=AGENT, kind="core")
    for tenant_id, agent in ((tenant, "ada"), (tenant, "max"), (other_tenant, "ada")):
        for name in ("bob", "eve"):
            know(runtime, tenant_id, "Tea is nice.", scope=Scope(agent, name))
    for user in ("bob", "eve", None):
        assert "Ada was built by sailors." in texts(
            asked(runtime, tenant, "sailors", scope=Scope("ada", user))
        )
    assert "Ada was built by sailors." not in texts(
        asked(runtime, tenant, "sailors", scope=Scope("max", "bob"))
    )
    assert "Ada was built by sailors." not in texts(asked(runtime, other_tenant, "sailors"))


def test_an_agent_does_not_see_what_is_known_of_its_users(runtime: Runtime, tenant: int) -> None:
    know(runtime, tenant, "Bob rides a horse.")
    know(runtime, tenant, "Ada was built by sailors.", scope=AGENT, kind="core")
    assert asked(runtime, tenant, "horse", scope=AGENT, preset="keyword") == ()


def test_a_session_of_somebody_else_is_unknown(runtime: Runtime, tenant: int) -> None:
    say(runtime, tenant, "A horse was mentioned.", scope=EVE, session="hers")
    know(runtime, tenant, "Tea is nice.")
    with pytest.raises(NotFound):
        asked(runtime, tenant, "horse", session="hers")


def test_a_scope_of_which_nothing_is_known_is_not_found(
    runtime: Runtime, tenant: int, other_tenant: int
) -> None:
    know(runtime, tenant, "Bob rides a horse.")
    for tenant_id, scope in ((tenant, EVE), (tenant, Scope("max", "bob")), (other_tenant, BOB)):
        with pytest.raises(NotFound):
            asked(runtime, tenant_id, "horse", scope=scope)


def test_a_memory_of_a_session_is_not_shown_in_another_one(runtime: Runtime, tenant: int) -> None:
    say(runtime, tenant, "Good morning to you all.", session="s1")
    say(runtime, tenant, "Good evening to you all.", session="s2")
    know(runtime, tenant, "Bob rides a horse.", scope=Scope("ada", "bob", "s1"))
    assert texts(asked(runtime, tenant, "horse", session="s1", tiers=(Tier.FACTS,))) == ["Bob rides a horse."]
    assert asked(runtime, tenant, "horse", session="s2", tiers=(Tier.FACTS,)) == ()


# --- what is left out -----------------------------------------------------------------------------------------


def test_without_the_embedder_keywords_find_and_the_answer_says_so(runtime: Runtime, tenant: int) -> None:
    say(runtime, tenant, "The horse is in the stable.")
    index_turns(runtime)
    know(runtime, tenant, "Bob rides a horse.")
    recalled = recall(
        replace(runtime, embedder=failing(ProviderUnavailable("nobody answers"))),
        tenant,
        BOB,
        query=RecallQuery("horse"),
    )
    assert set(texts(recalled.memories)) == {"The horse is in the stable.", "Bob rides a horse."}
    assert recalled.degraded == ("similarity",)


def test_memories_that_are_gone_or_no_longer_hold_are_not_found(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    for word in ("deleted", "retired", "ended", "kept"):
        know(runtime, tenant, f"The {word} horse.")
    with owner.begin() as connection:
        for statement in (
            "DELETE FROM memories WHERE text LIKE '%deleted%'",
            "UPDATE memories SET retired_at = now(), retired_reason = 'evicted' WHERE text LIKE '%retired%'",
            "UPDATE memories SET valid_until = now() WHERE text LIKE '%ended%'",
        ):
            connection.execute(text(statement))
    assert texts(asked(runtime, tenant, "horse")) == ["The kept horse."]


def test_reading_never_writes(runtime: Runtime, tenant: int, database: Servers) -> None:
    say(runtime, tenant, "The horse is in the stable.")
    index_turns(runtime)
    know(runtime, tenant, "Bob rides a horse.")
    url = make_url(database.app_url).update_query_dict({"options": "-c default_transaction_read_only=on"})
    reader = connect(url.render_as_string(hide_password=False))
    reading = replace(runtime, engine=reader)
    assert len(asked(reading, tenant, "horse")) == 2
    assert "horse" in context(reading, tenant, BOB, request=ContextRequest(query="horse", session="s1")).text
    reader.dispose()


# --- what sort of thing is said -----------------------------------------------------------------------------


def contributions(runtime: Runtime, tenant: int, query: str) -> dict[str, dict[str, float]]:
    """What each signal adds for each turn, by its text, best first."""
    hits = asked(runtime, tenant, query, tiers=(Tier.DAILY_LOGS,), explain=True)
    return {hit.text: (hit.explain or {})["contributions"] for hit in hits}  # type: ignore[misc]


@pytest.mark.parametrize(
    ("query", "answer", "signal"),
    [
        ("When did the cousin visit?", "The cousin came by last week.", "moment"),
        ("How many dogs has the cousin?", "The cousin has three of them.", "quantity"),
        ("Can you recommend a tea?", "I prefer white ones, of the cousin.", "preference"),
        ("Which tea is it?", "Always name the cousin when I ask about tea.", "standing"),
    ],
)
def test_what_is_of_the_sort_that_is_asked_for_weighs_more(
    runtime: Runtime, tenant: int, query: str, answer: str, signal: str
) -> None:
    # given turns alike, of which one is of the sort that is asked for
    say(runtime, tenant, "The dogs visit; the cousin, too.", answer, "It is tea, of the cousin.")
    index_turns(runtime)
    # then that one alone is raised for it
    found = contributions(runtime, tenant, query)
    assert {said for said, parts in found.items() if signal in parts} == {answer}
    assert found[answer][signal] > 0
    # and the database, which chooses the rows, scores as is explained
    plain = asked(runtime, tenant, query, tiers=(Tier.DAILY_LOGS,))
    assert texts(plain) == list(found)


def test_what_is_of_a_sort_that_nobody_asks_for_weighs_nothing(runtime: Runtime, tenant: int) -> None:
    said = "I prefer the three cousins of last week."
    say(runtime, tenant, said)
    index_turns(runtime)
    parts = contributions(runtime, tenant, "Where is the cousin?")[said]
    assert not {"preference", "quantity", "moment"} & set(parts)


def test_a_fact_is_raised_for_its_number_and_a_preference_for_what_it_is(
    runtime: Runtime, tenant: int
) -> None:
    remember(runtime, tenant, BOB, statement=Statement("fact", "Bob has three dogs."))
    remember(runtime, tenant, BOB, statement=Statement("fact", "Bob likes long walks.", subtype="preference"))
    for query, signal in (
        ("How many dogs?", "quantity"),
        ("What walks would you suggest, can you?", "preference"),
    ):
        hits = asked(runtime, tenant, query, tiers=(Tier.FACTS,), explain=True)
        raised = [hit.text for hit in hits if signal in hit.explain["contributions"]]  # type: ignore[index,operator]
        assert raised == ["Bob has three dogs." if signal == "quantity" else "Bob likes long walks."]


def test_code_within_a_turn_is_found_by_its_words(runtime: Runtime, tenant: int) -> None:
    say(runtime, tenant, "Here it is:\n```python\nfrobnicate(left, right)\n```", "Something else.")
    index_turns(runtime)
    assert "frobnicate" in asked(runtime, tenant, "frobnicate", tiers=(Tier.DAILY_LOGS,))[0].text


def test_what_is_to_be_done_with_what_is_found_is_not_searched_for(runtime: Runtime, tenant: int) -> None:
    say(runtime, tenant, "Mention the order of items in the list.", "The garden got a pond.")
    index_turns(runtime)
    query = "In what order did we mention items about the garden? List only five items."
    assert asked(runtime, tenant, query, tiers=(Tier.DAILY_LOGS,))[0].text == "The garden got a pond."
