"""What a window does with its room: the person first, then what bears on the query, with the turns around it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import all_shards
import pytest
from sqlalchemy import Engine, event, text

from memory_app.agents.rows import agents
from memory_app.dispatch import finder
from memory_app.memories.remember import remember
from memory_app.recall.context import ContextRequest, context
from memory_app.recall.recall import RecallQuery, recall
from memory_app.recall.sections import ContextWindow
from memory_app.records.records import Mention, NewTurn, RelationalContext, Role, Statement, Tier
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.turns.record import record

BOB = Scope("ada", "bob")
START = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)


def say(runtime: Runtime, tenant: int, *words: str, session: str, day: int = 0) -> None:
    turns = [
        NewTurn(Role.USER, text, at=START + timedelta(days=day, minutes=place))
        for place, text in enumerate(words)
    ]
    record(runtime, tenant, Scope("ada", "bob", session), turns)


def window(runtime: Runtime, tenant: int, query: str | None = None, **fields: Any) -> ContextWindow:
    return context(runtime, tenant, BOB, request=ContextRequest(query=query, **fields))


def lines(found: ContextWindow, section: str) -> list[str]:
    return [line for one in found.sections if one.name == section for line in one.lines]


@pytest.mark.parametrize(
    ("told", "asked", "known"),
    [
        ("I'm allergic to shellfish.", "Suggest a restaurant for my dad's birthday.", "shellfish"),
        ("I live in Ghent, near the canal.", "What should I cook tonight?", "Ghent"),
        ("I work at Nordea as a tester.", "Write a poem about rain.", "Nordea"),
        ("My wife Ines plays the cello.", "How tall is the Eiffel tower?", "Ines"),
        ("Please keep your answers short.", "Explain how a telescope works.", "short"),
    ],
)
def test_the_users_own_card_is_always_there(
    runtime: Runtime, tenant: int, told: str, asked: str, known: str
) -> None:
    say(runtime, tenant, "I play the guitar on Sundays.", told, "The bus was late again today.", session="s1")
    finder.drain(runtime)
    for query in (asked, None):
        found = window(runtime, tenant, query)
        assert known in "\n".join(lines(found, "entities")[:1] + lines(found, "expression"))


def test_the_own_card_comes_before_those_of_the_query(runtime: Runtime, tenant: int) -> None:
    say(runtime, tenant, "I'm allergic to peanuts.", session="s1")
    finder.drain(runtime)
    for number in range(10):
        fact = Statement(
            "fact", f"John Doe owns boat number {number}.", mentions=(Mention("person", "John Doe"),)
        )
        remember(runtime, tenant, BOB, statement=fact, deduplicate=False)
    first, second = lines(window(runtime, tenant, "What do you know about John Doe?"), "entities")
    assert "peanuts" in first
    assert "John Doe" in second, "an entity of the query has its card, however many rows speak of it"


def test_the_room_is_used_by_lines_of_the_log_in_order_of_time(runtime: Runtime, tenant: int) -> None:
    for day in range(12):
        words = [f"On day {day} the garden had {n} new beds of kale and leeks." for n in range(6)]
        say(runtime, tenant, *words, session=f"s{day}", day=day)
    finder.drain(runtime)
    small, large = (window(runtime, tenant, "How is the garden?", budget_tokens=n) for n in (600, 1_500))
    assert len(large.ids) > 2 * len(small.ids)
    assert large.tokens > 1_200
    assert len(large.ids) == len(set(large.ids))
    shown = lines(large, "memories")
    block = shown[shown.index('<memory tier="daily-logs">') + 1 : -1]
    days = [line[1:11] for line in block if line.startswith("[2026")]
    assert days == sorted(days)


def test_the_turns_around_a_hit_are_shown(runtime: Runtime, tenant: int) -> None:
    say(
        runtime, tenant, "Guess what arrived.", "The telescope from Uncle Pavel!", "Only a cup.", session="s1"
    )
    for day in range(1, 40):
        say(runtime, tenant, f"Telescopes are number {day} on my list.", session=f"s{day + 1}", day=day)
    finder.drain(runtime)
    found = "\n".join(lines(window(runtime, tenant, "Uncle Pavel telescope", budget_tokens=900), "memories"))
    assert "Guess what arrived." in found
    assert "Only a cup." in found


def test_a_superseded_line_is_marked_as_past(runtime: Runtime, tenant: int) -> None:
    say(runtime, tenant, "I live in Porto and I work as a nurse.", session="s1")
    say(runtime, tenant, "I moved to Lisbon for good.", session="s2", day=9)
    finder.drain(runtime)
    shown = [
        line for line in lines(window(runtime, tenant, "Where do I live?"), "memories") if "in Porto" in line
    ]
    assert all("(past: " in line for line in shown)
    assert any(
        "Lisbon" in line and "(past" not in line for line in lines(window(runtime, tenant), "entities")
    )


def test_a_long_turn_is_shown_by_its_passage(runtime: Runtime, tenant: int) -> None:
    pages = "The committee met and talked about the minutes of the meeting before. " * 800
    say(runtime, tenant, f"{pages}The vault code is kept by Orsolya in the bakery.", session="s1")
    finder.drain(runtime)
    found = window(runtime, tenant, "Who keeps the vault code?", budget_tokens=500)
    assert "kept by Orsolya in the bakery." in found.text


def test_a_window_takes_as_many_statements_whatever_it_shows(runtime: Runtime, tenant: int) -> None:
    statements: list[str] = []
    event.listen(runtime.engine, "before_cursor_execute", lambda *args: statements.append(args[2]))

    def counted(budget: int) -> int:
        window(runtime, tenant, "How is the garden?", budget_tokens=budget)
        statements.clear()
        window(runtime, tenant, "How is the garden?", budget_tokens=budget)
        return len(statements)

    say(runtime, tenant, "I'm allergic to nuts.", "The garden has one bed.", session="s0")
    finder.drain(runtime)
    few = counted(500)
    for day in range(15):
        say(runtime, tenant, *(f"Garden bed {n} of day {day}." for n in range(8)), session=f"t{day}", day=day)
    finder.drain(runtime)
    assert counted(4_000) <= few
    assert few <= 10


# --- a user whom the agent has not met ------------------------------------------------------------------------


def begin_with(owner: Engine, tenant: int, **default: Any) -> None:
    with owner.begin() as connection:
        agents.change(
            connection,
            tenant,
            "ada",
            parts={"default_memories": [default]},
            copies=all_shards.copies(connection),
        )


@pytest.mark.parametrize("session", [None, "s1"])
def test_default_memories_stand_in_the_first_window(
    runtime: Runtime, tenant: int, owner: Engine, session: str | None
) -> None:
    begin_with(owner, tenant, kind="core", text="Never give medical dosage advice.")
    found = window(runtime, tenant, "How much ibuprofen may I take?", session=session)
    assert "Never give medical dosage advice." in "\n".join(lines(found, "core"))
    begin_with(owner, tenant, kind="core", text="Always answer kindly.")
    assert lines(window(runtime, tenant), "core") == ["- Always answer kindly."]


def test_default_memories_are_shown_once_before_and_after_they_are_stored(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    begin_with(owner, tenant, kind="core", text="Never give medical dosage advice.")
    say(runtime, tenant, "I live in Ghent.", session="s1")
    before = window(runtime, tenant)
    finder.drain(runtime)
    after = window(runtime, tenant)
    assert lines(before, "core") == lines(after, "core") == ["- Never give medical dosage advice."]


def test_a_changed_default_reaches_who_has_the_former_one(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    begin_with(owner, tenant, kind="core", text="Never give medical dosage advice.")
    say(runtime, tenant, "I live in Ghent.", session="s1")
    remember(runtime, tenant, BOB, statement=Statement("core", "Call him Captain."))
    finder.drain(runtime)
    begin_with(owner, tenant, kind="core", text="Send questions about dosage to a doctor.")
    for query in (None, "medical dosage advice"):
        found = window(runtime, tenant, query)
        assert set(lines(found, "core")) == {
            "- Send questions about dosage to a doctor.",
            "- Call him Captain.",
        }
        assert "Never give medical" not in found.text
    with owner.begin() as connection:
        agents.change(
            connection,
            tenant,
            "ada",
            parts={"default_memories": []},
            copies=all_shards.copies(connection),
        )
    assert lines(window(runtime, tenant), "core") == ["- Call him Captain."]


def test_a_default_that_the_user_repeated_or_took_back_is_theirs(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    kept, dropped = "Never give medical dosage advice.", "Always answer in rhyme."
    with owner.begin() as connection:
        defaults = [{"kind": "core", "text": kept}, {"kind": "core", "text": dropped}]
        agents.change(
            connection,
            tenant,
            "ada",
            parts={"default_memories": defaults},
            copies=all_shards.copies(connection),
        )
    remember(runtime, tenant, BOB, statement=Statement("core", kept))
    with owner.begin() as connection:
        connection.execute(
            text("UPDATE memories SET valid_until = now() WHERE text = :text"), {"text": dropped}
        )
    runtime.hot.redis.delete(*runtime.hot.redis.keys(f"{runtime.hot.prefix}scope:*"))
    assert lines(window(runtime, tenant), "core") == [f"- {kept}"]
    with owner.begin() as connection:
        agents.change(
            connection,
            tenant,
            "ada",
            parts={"default_memories": []},
            copies=all_shards.copies(connection),
        )
    assert lines(window(runtime, tenant), "core") == [f"- {kept}"]


def test_what_all_users_share_stands_in_the_first_window(runtime: Runtime, tenant: int) -> None:
    shared = Statement("core", "Ada is an AI.")
    remember(runtime, tenant, Scope("ada"), statement=shared)
    assert lines(window(runtime, tenant), "core") == ["- Ada is an AI."]


# --- the person, whatever is asked ------------------------------------------------------------------------------


def test_turns_about_work_come_first_where_work_is_asked_for(runtime: Runtime, tenant: int) -> None:
    theo = Scope("ada", "theo", "s1")
    life = (
        "My wife Velma and I went dancing on Friday.",
        "I spend too much time scrolling on my phone.",
        "I started working at the harbour museum two weeks ago.",
        "I'm allergic to walnuts, badly.",
        "At work in the museum I look after the old ship engines.",
        "I bought a new bass guitar and I practise every night.",
    )
    turns = [NewTurn(Role.USER, words, at=START + timedelta(days=n)) for n, words in enumerate(life)]
    record(runtime, tenant, theo, turns)
    finder.drain(runtime)
    query = RecallQuery("Where does Theo work now?", tiers=(Tier.DAILY_LOGS,))
    found = recall(runtime, tenant, Scope("ada", "theo"), query=query)
    assert {hit.text for hit in found.memories[:2]} == {life[2], life[4]}


def test_a_suggestion_sees_allergy_and_budget(runtime: Runtime, tenant: int) -> None:
    for words in (
        "I'm allergic to shellfish.",
        "My budget for eating out is 40 euros.",
        "I don't want Italian food, please.",
        "I play the guitar.",
    ):
        say(runtime, tenant, words, session="s1")
    finder.drain(runtime)
    found = window(runtime, tenant, "Suggest a restaurant for my dad's birthday.").text
    assert "shellfish" in found and "40 euros" in found and "Italian" in found


def test_without_entity_extraction_a_turn_makes_no_entity_and_no_card(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    with owner.begin() as connection:
        agents.change(
            connection,
            tenant,
            "ada",
            parts={"policy": {"entity_extraction": False}},
            copies=all_shards.copies(connection),
        )
    say(runtime, tenant, "My friend Ludmila lives in Prague.", "Ludmila works at Tesla.", session="s1")
    finder.drain(runtime)
    with owner.connect() as connection:
        keys = connection.execute(text("SELECT key FROM entities WHERE key <> 'person:bob'")).scalars().all()
    assert keys == []
    query = RecallQuery("Where does Ludmila live?", tiers=(Tier.ENTITIES,))
    assert recall(runtime, tenant, BOB, query=query).memories == ()


# --- times ----------------------------------------------------------------------------------------------------


def test_the_offset_of_a_time_is_the_zone_of_the_window(runtime: Runtime, tenant: int) -> None:
    at = datetime(2026, 3, 10, 8, 30, tzinfo=timezone(timedelta(hours=9)))
    turns = [NewTurn(Role.USER, "Yesterday I bought a piano.", at=at)]
    record(runtime, tenant, Scope("ada", "bob", "s1"), turns)
    finder.drain(runtime)
    query = RecallQuery("When did I buy a piano?", tiers=(Tier.FACTS,))
    (fact,) = recall(runtime, tenant, BOB, query=query).memories
    assert "2026-03-09" in fact.text
    assert "2026-03-10 08:30" in window(runtime, tenant, "When did I buy a piano?").text


def test_times_of_a_session_are_those_of_its_turns(runtime: Runtime, tenant: int) -> None:
    now = datetime.now(UTC)
    for session, ago in (("s1", timedelta(days=3, minutes=1)), ("s2", timedelta(minutes=40, seconds=9))):
        record(runtime, tenant, Scope("ada", "bob", session), [NewTurn(Role.USER, "Hello.", at=now - ago)])
    head = lines(window(runtime, tenant, session="s2"), "session")[0]
    assert head == 'Session "s2": 40 minutes so far. Last interaction before it: 3 days ago.'
    head = lines(window(runtime, tenant, session="s3"), "session")[0]
    assert head == 'Session "s3": just begun. Last interaction before it: 40 minutes ago.'


def test_the_style_of_communication_is_shown_with_the_anchors(runtime: Runtime, tenant: int) -> None:
    context = RelationalContext(communication_style=("teasing", "short messages"))
    anchor = Statement("anchor", "They joke about trains.", importance=8, relational_context=context)
    remember(runtime, tenant, BOB, statement=anchor)
    assert "teasing, short messages" in "\n".join(lines(window(runtime, tenant), "relationship"))


# --- nothing twice ----------------------------------------------------------------------------------------------


def test_what_is_on_the_own_card_is_shown_once_and_its_memory_rated(runtime: Runtime, tenant: int) -> None:
    say(runtime, tenant, "I'm allergic to walnuts.", "My sister Ode is a pilot.", session="s1")
    finder.drain(runtime)
    found = window(runtime, tenant, "What do you know about Ode and walnuts?")
    assert found.text.count("bob is allergic to walnuts.") == 1
    assert found.text.count("bob has a sister called Ode.") == 1
    query = RecallQuery("Am I allergic to walnuts?", tiers=(Tier.FACTS,), limit=1)
    (allergy,) = recall(runtime, tenant, BOB, query=query).memories
    assert str(allergy.id) in found.ids


def test_a_name_that_every_line_shows_is_no_row(runtime: Runtime, tenant: int) -> None:
    say(runtime, tenant, "My name is BoB.", "The bus was late again today.", session="s1")
    finder.drain(runtime)
    found = window(runtime, tenant, "What is my name?")
    assert "is called" not in found.text
    assert lines(found, "entities") == ["- BoB (person, the user)"]


def test_a_card_is_not_linked_through_what_is_over(runtime: Runtime, tenant: int, owner: Engine) -> None:
    """What ended by its own date is no longer said on a card, nor what it led to."""
    for place in ("Porto", "Bonn"):
        fact = Statement(
            "fact", f"Ode works in {place}.", mentions=(Mention("person", "Ode"), Mention("place", place))
        )
        remember(runtime, tenant, BOB, statement=fact, deduplicate=False)
    with owner.begin() as connection:
        connection.execute(text("UPDATE memories SET valid_until = now() WHERE text LIKE '%Porto.'"))
    (card,) = lines(window(runtime, tenant, "What do you know about Ode?"), "entities")
    assert card == "- Ode (person): Ode works in Bonn. (linked: Bonn)"
