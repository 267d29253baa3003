"""Questions of every kind: repeated over sessions, about a month, and after what the assistant said."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from memory_app.dispatch import finder
from memory_app.recall.context import ContextRequest, context
from memory_app.recall.recall import RecallQuery, recall
from memory_app.records.records import NewTurn, Role, Tier
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.turns.record import record

BOB = Scope("ada", "bob")
USER, ASSISTANT = Role.USER, Role.ASSISTANT


def say(runtime: Runtime, tenant: int, session: str, at: datetime, *turns: tuple[Role, str]) -> None:
    said = [NewTurn(role, text, at=at + timedelta(minutes=place)) for place, (role, text) in enumerate(turns)]
    record(runtime, tenant, Scope("ada", "bob", session), said)


def answers(runtime: Runtime, tenant: int, query: str, limit: int = 10) -> list[str]:
    asked = RecallQuery(query, limit=limit, tiers=(Tier.DAILY_LOGS,))
    return [hit.text for hit in recall(runtime, tenant, BOB, query=asked).memories]


@pytest.mark.parametrize(
    ("told", "question"),
    [
        ("The spare key is under the blue flower pot.", "Where is the spare key?"),
        ("Grandma's ring lies in the piano stool.", "Do you remember where Grandma's ring is?"),
        ("Der Ersatzschlüssel liegt unter dem Blumentopf.", "Wo liegt der Ersatzschlüssel?"),
    ],
)
def test_a_question_asked_in_many_sessions_is_shown_once(
    runtime: Runtime, tenant: int, told: str, question: str
) -> None:
    start = datetime(2026, 3, 1, 9, tzinfo=UTC)
    say(runtime, tenant, "s0", start, (USER, told))
    for day in range(1, 9):
        refusal = (ASSISTANT, "I do not know that, sorry.")
        say(runtime, tenant, f"s{day}", start + timedelta(days=day), (USER, question), refusal)
    finder.drain(runtime)
    found = answers(runtime, tenant, question, limit=3)
    assert told in found
    assert found.count(question) == 1
    window = context(runtime, tenant, BOB, request=ContextRequest(question)).text
    assert told in window
    assert window.count(question) == 1
    assert window.count("I do not know that, sorry.") == 1


def test_short_answers_of_other_sessions_are_no_repeats(runtime: Runtime, tenant: int) -> None:
    start = datetime(2026, 3, 1, 9, tzinfo=UTC)
    for day in range(3):
        say(runtime, tenant, f"s{day}", start + timedelta(days=day), (USER, "Yes."))
    finder.drain(runtime)
    assert answers(runtime, tenant, "yes").count("Yes.") == 3


@pytest.mark.parametrize(
    "question",
    [
        "Which places in Canada did Evan visit in July 2023?",
        "What did Evan visit in Canada on 14 July 2023?",
        "In July 2023, where in Canada was Evan?",
    ],
)
def test_a_month_selects_the_time_and_not_the_words(runtime: Runtime, tenant: int, question: str) -> None:
    july = datetime(2023, 7, 14, 9, tzinfo=UTC)
    chatter = [
        (USER, text) for text in ("No worries!", "Take care, Sam!", "July is so hot.", "See you in July!")
    ]
    say(runtime, tenant, "s1", july, *chatter, (USER, "Evan loved Banff and Jasper while he toured Canada."))
    say(
        runtime, tenant, "s2", july + timedelta(days=200), (USER, "Evan toured Canada again, and saw Quebec.")
    )
    finder.drain(runtime)
    assert answers(runtime, tenant, question)[0] == "Evan loved Banff and Jasper while he toured Canada."


def test_what_answers_a_question_like_it_comes_first(runtime: Runtime, tenant: int) -> None:
    start = datetime(2026, 3, 1, 9, tzinfo=UTC)
    say(
        runtime,
        tenant,
        "s1",
        start,
        (USER, "The harbour picnic with the choir was lovely."),
        (ASSISTANT, "What games did you play at the picnic?"),
        (USER, "Charades and a sack race, and everybody laughed a lot."),
        (USER, "We packed early because of the rain."),
    )
    finder.drain(runtime)
    query = RecallQuery("Which games were played at the picnic?", tiers=(Tier.DAILY_LOGS,), explain=True)
    hits = recall(runtime, tenant, BOB, query=query).memories
    signals = {hit.text[:8]: hit.explain["signals"] for hit in hits if hit.explain}
    answered = {text for text, of_row in signals.items() if of_row["answers"] > 0}
    assert answered == {"Charades"}
    # The turn two before it, which the same person said, is about the picnic, too.
    assert signals["Charades"]["second_neighbour_keyword"] > 0
    places = [hit.text[:8] for hit in hits]
    assert places.index("Charades") < places.index("We packe")


def test_how_people_talk_does_not_count_after_the_assistant(runtime: Runtime, tenant: int) -> None:
    start = datetime(2026, 3, 1, 9, tzinfo=UTC)
    say(
        runtime,
        tenant,
        "s1",
        start,
        (USER, "Which glue holds on a violin?"),
        (ASSISTANT, "You need hide glue for your violin. Which violin is it?"),
        (USER, "My old one."),
    )
    finder.drain(runtime)
    for question, counts in (
        ("What did you recommend as glue for a violin?", False),
        ("Which violin do I glue?", True),
    ):
        query = RecallQuery(question, tiers=(Tier.DAILY_LOGS,), explain=True)
        hits = recall(runtime, tenant, BOB, query=query).memories
        shares = {name for hit in hits if hit.explain for name in hit.explain["contributions"]}
        assert ({"answers", "addresses"} <= shares) is counts
        assert bool({"answers", "addresses", "second_neighbour_keyword"} & shares) is counts


def test_a_window_after_the_assistant_shows_the_user_too(runtime: Runtime, tenant: int) -> None:
    asked = "Four days until the exam. What did you suggest for studying?"
    turns = [
        NewTurn(Role.USER, "I have my exam in March. I panic in exams."),
        NewTurn(Role.ASSISTANT, "Let us do ten questions every second day."),
        NewTurn(Role.USER, "I can't take melatonin, it gives me migraines."),
        NewTurn(Role.ASSISTANT, "I noted: no melatonin."),
    ]
    record(runtime, tenant, Scope("ada", "bob", "s1"), turns)
    finder.drain(runtime)
    window = context(runtime, tenant, BOB, request=ContextRequest(asked, session="s2")).text
    for turn in turns:
        assert turn.text in window, "there is room for all of them"


@pytest.mark.parametrize(
    ("question", "told", "advice"),
    [
        (
            "What did you recommend for my back pain?",
            "My back pain is bad, my back hurts and I want something for my back pain.",
            "Swimming twice a week often helps against back pain.",
        ),
        (
            "Which book had you suggested for the train?",
            "I want to read a book on the train, a good book for the train.",
            "Take The Summer Book along, it suits a train.",
        ),
        (
            "Was hast du mir gegen Rückenschmerzen empfohlen?",
            "Ich habe Rückenschmerzen, schlimme Rückenschmerzen, und will etwas gegen Rückenschmerzen.",
            "Gegen Rückenschmerzen hilft oft Schwimmen.",
        ),
    ],
)
def test_what_the_assistant_said_is_found_where_it_is_asked_for(
    runtime: Runtime, tenant: int, question: str, told: str, advice: str
) -> None:
    start = datetime(2026, 3, 1, 9, tzinfo=UTC)
    say(runtime, tenant, "s1", start, (USER, told), (ASSISTANT, advice))
    finder.drain(runtime)
    assert answers(runtime, tenant, question)[0] == advice
