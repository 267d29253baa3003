"""What of each section stands in a window: nothing twice, nothing lost for that, and the person before the log."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from memory_app.language.budget import count_tokens
from memory_app.memories.rows.cards import CardFact
from memory_app.recall.parts import Card, ContextParts, SessionPart
from memory_app.recall.records import Hit
from memory_app.recall.sections import ContextWindow, render
from memory_app.records.records import Memory, Role, Tier, Turn

NOW = datetime(2026, 3, 14, 18, 30, tzinfo=UTC)


def fact(number: int, text: str) -> CardFact:
    return CardFact(text, UUID(int=number))


def own_card(*facts: CardFact) -> Card:
    return Card("person:kim", "Kim", "person, the user", facts=facts, is_own=True)


def row(number: int, text: str, *, tier: Tier = Tier.FACTS) -> Hit:
    return Hit(UUID(int=number), tier, text, at=NOW, speaker="Kim" if tier is Tier.DAILY_LOGS else None)


def turn(number: int, text: str, *, session: str = "old") -> Turn:
    at = NOW - timedelta(hours=100 - number)
    return Turn(UUID(int=number), session, number, Role.USER, "Kim", text, at)


def shown(parts: ContextParts, budget: int = 2_000) -> ContextWindow:
    window = render(parts, budget_tokens=budget, now=NOW)
    assert window.tokens == count_tokens(window.text) <= budget
    return window


def lines(window: ContextWindow, name: str) -> list[str]:
    return [line for section in window.sections if section.name == name for line in section.lines]


NUTS = "Kim is allergic to nuts."
SISTER = "Kim has a sister called Ode."


def test_what_the_own_card_says_is_no_row_again() -> None:
    parts = ContextParts(cards=(own_card(fact(1, NUTS)),), rows=(row(1, NUTS), row(2, "Kim likes figs.")))
    window = shown(parts)
    assert window.text.count(NUTS) == 1
    assert len(lines(window, "memories")) == 1
    assert window.dropped == (), "what is shown elsewhere is not missing"


def test_the_ids_of_what_a_card_says_are_those_of_the_window() -> None:
    parts = ContextParts(cards=(own_card(fact(1, NUTS), fact(2, SISTER)),), rows=(row(1, NUTS),))
    assert shown(parts).ids == ("person:kim", str(UUID(int=1)), str(UUID(int=2)))


def test_the_same_words_of_another_memory_are_a_repeat_as_well() -> None:
    parts = ContextParts(cards=(own_card(fact(1, NUTS)),), rows=(row(9, NUTS.rstrip(".")),))
    assert lines(shown(parts), "memories") == []


@pytest.mark.parametrize(
    "more",
    [
        row(1, "Kim is allergic to nuts since 2019."),
        row(1, NUTS, tier=Tier.DAILY_LOGS),
    ],
)
def test_a_row_that_says_more_than_the_card_stays(more: Hit) -> None:
    parts = ContextParts(cards=(own_card(fact(1, NUTS)),), rows=(more,))
    assert len(lines(shown(parts), "memories")) == 1


def test_a_card_does_not_repeat_the_one_before_it() -> None:
    ode = Card("person:ode", "Ode", "person", facts=(fact(2, SISTER), fact(3, "Ode is a pilot.")))
    window = shown(ContextParts(cards=(own_card(fact(1, NUTS), fact(2, SISTER)), ode)))
    assert lines(window, "entities")[1] == "- Ode (person): Ode is a pilot."


def test_a_card_that_only_repeats_is_left_out() -> None:
    ode = Card("person:ode", "Ode", "person", facts=(fact(2, SISTER),), linked=("Kim",))
    window = shown(ContextParts(cards=(own_card(fact(2, SISTER)), ode)))
    assert len(lines(window, "entities")) == 1
    assert window.dropped == ()


@pytest.mark.parametrize("budget", range(150, 500, 7))
def test_a_fact_stands_where_its_card_has_no_room(budget: int) -> None:
    ode = Card("person:ode", "Ode", "person", summary="a pilot " * 30, facts=(fact(2, SISTER),))
    songs = [fact(n, f"Kim knows song number {n} by heart.") for n in range(3, 7)]
    parts = ContextParts(cards=(own_card(*songs), ode), rows=(row(2, SISTER),))
    window = shown(parts, budget)
    assert window.text.count(SISTER) == 1
    has_row = SISTER in "".join(lines(window, "memories"))
    assert has_row is (len(lines(window, "entities")) == 1)


def test_what_is_cut_off_a_card_stands_as_a_row() -> None:
    facts = [fact(n, f"Kim once repaired the clock of village number {n}.") for n in range(1, 25)]
    parts = ContextParts(cards=(own_card(*facts),), rows=(row(24, facts[23].text), row(1, facts[0].text)))
    for budget in range(200, 900, 10):
        window = shown(parts, budget)
        card = lines(window, "entities")[0]
        for one in facts:
            assert window.text.count(one.text) <= 1
        assert facts[23].text in card or facts[23].text in "".join(lines(window, "memories"))


def test_a_card_is_cut_between_facts() -> None:
    facts = [fact(n, f"Kim once repaired the clock of village number {n}.") for n in range(1, 25)]
    (card,) = lines(shown(ContextParts(cards=(own_card(*facts),)), 160), "entities")
    assert card.endswith(". …")
    count = card.count("Kim once")
    assert card == f"- Kim (person, the user): {' '.join(one.text for one in facts[:count])} …"


def test_facts_that_are_sentences_need_no_further_mark() -> None:
    (card,) = lines(
        shown(ContextParts(cards=(own_card(fact(1, NUTS), fact(2, "born in May"), fact(3, SISTER)),))),
        "entities",
    )
    assert card == f"- Kim (person, the user): {NUTS} born in May; {SISTER}"


def test_the_own_card_and_directives_come_before_the_log() -> None:
    facts = [fact(n, f"Kim once repaired the clock of village number {n}.") for n in range(1, 25)]
    directive = "Never advise on dosage, whatever is asked. " * 20
    parts = ContextParts(
        core=(Memory("core", directive, id=UUID(int=99), created_at=NOW, valid_from=NOW),),
        cards=(own_card(*facts),),
        log=tuple(turn(n, f"We sang number {n} in the choir of the village today.") for n in range(500, 700)),
    )
    window = shown(parts)
    assert facts[-1].text in window.text
    assert directive.strip() in window.text
    assert "We sang" in window.text


def test_the_last_turns_come_before_lines_of_the_log() -> None:
    said = tuple(turn(n, f"What shall we sing at the wedding number {n}?", session="now") for n in range(4))
    parts = ContextParts(
        cards=(own_card(*(fact(n, f"Kim knows song number {n} by heart.") for n in range(10, 19))),),
        log=tuple(turn(n, f"We sang number {n} in the choir today.") for n in range(500, 700)),
        session=SessionPart("now", started_at=NOW, turns=said),
    )
    for budget in (300, 400, 500):
        text = shown(parts, budget).text
        assert said[-1].text in text and said[-2].text in text, budget
        assert "We sang" in text, budget
