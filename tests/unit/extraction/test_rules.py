"""The rule extractor: what it reads, what it must leave alone, and how well it does on hand-written cases."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID, uuid5
from zoneinfo import ZoneInfo

import pytest

from memory_app.extraction.rules import extract
from memory_app.records.records import Extraction, Mention, Origin, Role, Statement, Turn

CASES = json.loads((Path(__file__).parent / "rule_cases.json").read_text(encoding="utf-8"))
WEDNESDAY = datetime(2023, 5, 10, 12, tzinfo=UTC)
UTC_ZONE = ZoneInfo("UTC")


def turn(
    text: str, *, seq: int = 1, role: str = "user", speaker: str = "Anna", at: datetime = WEDNESDAY
) -> Turn:
    return Turn(uuid5(UUID(int=0), f"{seq} {text[:50]}"), "s", seq, Role(role), speaker, text, at)


def read(
    *turns: Turn,
    earlier: tuple[Turn, ...] = (),
    zone: ZoneInfo = UTC_ZONE,
    known: tuple[str, ...] = (),
) -> Extraction:
    return extract(turns, earlier, user_label="Anna", agent_label="Nova", time_zone=zone, labels=known)


def only(text: str, *, at: datetime = WEDNESDAY, zone: ZoneInfo = UTC_ZONE) -> Statement:
    (statement,) = read(turn(text, at=at), zone=zone).statements
    return statement


def test_precision_and_recall_on_the_hand_written_cases() -> None:
    hits, wrong, missed = 0, [], []
    for case in CASES:
        said = turn(case["text"], role=case.get("role", "user"), speaker=case.get("speaker", "Anna"))
        found = {(s.subject, s.relation, s.object) for s in read(said).statements}
        expected = {tuple(triple) for triple in case["expect"]}
        hits += len(found & expected)
        wrong += [(case["text"], triple) for triple in found - expected]
        missed += [(case["text"], triple) for triple in expected - found]
    precision, recall = hits / (hits + len(wrong)), hits / (hits + len(missed))
    report = "\n".join([*(f"wrong  {w}" for w in wrong), *(f"missed {m}" for m in missed)])
    assert precision >= 0.95, f"precision {precision:.3f}\n{report}"
    assert recall >= 0.8, f"recall {recall:.3f}\n{report}"


def test_the_cases_hold_enough_sentences_that_state_nothing() -> None:
    assert len(CASES) >= 120
    assert sum(not case["expect"] for case in CASES) >= 45


@pytest.mark.parametrize("case", [c for c in CASES if not c["expect"]], ids=lambda c: c["text"][:40])
def test_nothing_is_read_from_a_sentence_that_states_nothing(case: dict[str, str]) -> None:
    said = turn(case["text"], role=case.get("role", "user"))
    found = read(said)
    assert found.statements == ()
    assert found.reasons[said.id]


def test_a_statement_carries_its_evidence_source_and_origin() -> None:
    said = turn("I'm allergic to peanuts.")
    (statement,) = read(said).statements
    assert statement.evidence == (said.id,)
    assert statement.source == "Anna"
    assert statement.origin is Origin.EXTRACTED
    assert statement.text == "Anna is allergic to peanuts."
    assert statement.valid_from == said.at
    assert statement.importance == 8


def test_a_speaker_called_user_takes_the_label_of_the_user() -> None:
    (statement,) = read(turn("I live in Berlin, you know.", speaker="user")).statements
    assert statement.subject == "Anna"


def test_a_relative_date_becomes_the_speakers_own_date() -> None:
    said_at = datetime(2023, 5, 7, 14, 30, tzinfo=UTC)  # 23:30 of that day in Tokyo, 7 May
    statement = only("Yesterday evening I went to a concert.", at=said_at, zone=ZoneInfo("Asia/Tokyo"))
    assert statement.text == "Anna went to a concert on 2023-05-06."
    late = datetime(2023, 5, 7, 15, 30, tzinfo=UTC)  # already 8 May in Tokyo
    statement = only("Yesterday evening I went to a concert.", at=late, zone=ZoneInfo("Asia/Tokyo"))
    assert statement.text == "Anna went to a concert on 2023-05-07."
    assert statement.valid_from == datetime(2023, 5, 7, tzinfo=ZoneInfo("Asia/Tokyo"))


def test_since_tells_when_a_fact_became_true() -> None:
    statement = only("I've worked at Volvo since 2019.")
    assert statement.valid_from == datetime(2019, 1, 1, tzinfo=UTC_ZONE)
    assert statement.text == "Anna has worked at Volvo since 2019."


def test_a_plan_holds_from_the_moment_it_was_told() -> None:
    statement = only("I'm going to Paris next week.")
    assert statement.valid_from == WEDNESDAY
    assert statement.text == "Anna is going to Paris in the week of 2023-05-15."


def test_nothing_becomes_true_after_it_was_said() -> None:
    statement = only("Today I went to the dentist.")
    assert statement.valid_from is not None
    assert statement.valid_from <= WEDNESDAY


def test_who_was_there_is_kept() -> None:
    statement = only("My husband and I went camping last weekend.")
    assert statement.text == "Anna went camping with their husband on the weekend of 2023-05-06."


def test_a_wish_for_how_to_speak_is_an_expression() -> None:
    statement = only("Please keep your answers short.")
    assert statement.kind == "expression"
    assert statement.text == "Anna asked: keep your answers short."


def test_what_was_asked_to_be_remembered_weighs_more_and_is_tagged() -> None:
    statement = only("Remember that I love pistachio ice cream.")
    assert statement.importance == 7
    assert statement.tags == ("explicit",)


@pytest.mark.parametrize(
    ("text", "role", "reason"),
    [
        ("It rained.", "user", "nothing noteworthy"),
        ("ok thanks", "user", "acknowledgement"),
        ("vielen dank, danke danke danke", "user", "acknowledgement"),
        ("I live in Berlin and I love it here.", "assistant", "not said by the user"),
        ("I live in Berlin and I love it here.", "tool", "not said by the user"),
        ("It was a long day, nothing happened.", "user", "nothing noteworthy"),
        (
            "My passphrase is correct horse battery.",
            "user",
            "guarded: names a password, a key or a card number",
        ),
        ("我对花生过敏。", "user", "language not read by rules: zh"),
    ],
)
def test_a_turn_without_a_statement_says_why(text: str, role: str, reason: str) -> None:
    said = turn(text, role=role)
    assert read(said).reasons == {said.id: reason}


def test_remember_said_to_a_friend_asks_for_nothing() -> None:
    text = "Remember that even small steps make a difference."
    friend = turn("I had a hard week.", speaker="Tom", seq=1)
    alone, in_company = (
        read(turn(text, speaker="Anna", seq=2), earlier=earlier) for earlier in ((), (friend,))
    )
    assert [statement.relation for statement in alone.statements] == ["asked_to_remember"]
    assert in_company.statements == ()
    # What is a fact of the speaker's is kept all the same.
    told = read(turn("Remember that I live in Lyon.", speaker="Anna", seq=2), earlier=(friend,))
    assert [statement.relation for statement in told.statements] == ["lives_in"]


def test_what_the_assistant_said_before_is_not_new_when_it_is_quoted_back() -> None:
    answer = turn("I am allergic to handling peanuts safely.", role="assistant", seq=1)
    back = turn("I am allergic to handling peanuts safely.", seq=2)
    assert read(back, earlier=(answer,)).statements == ()


def test_injected_memories_are_not_stored_again() -> None:
    text = (
        'Context: <memory tier="facts">Anna said: I live in Rome.</memory>\n'
        "[2023-05-01 10:00] I have a dog called Rex.\n> I love tennis a lot\nI live in Kiel."
    )
    assert [s.object for s in read(turn(text)).statements] == ["Kiel"]


def test_an_unclosed_memory_block_hides_the_rest() -> None:
    assert read(turn('<memory tier="facts"> I live in Rome. I love tennis.')).statements == ()


def test_equal_turns_give_equal_extractions() -> None:
    said = turn("I live in Kiel and I have two cats named Luna and Oliver.")
    assert read(said) == read(said)


def test_reading_many_turns_equals_reading_each() -> None:
    first, second = turn("I live in Kiel by the sea.", seq=1), turn("I love salty liquorice.", seq=2)
    together = read(first, second).statements
    assert together == (*read(first).statements, *read(second).statements)


def test_entities_are_found_in_mid_sentence_and_typed_by_cues() -> None:
    said = turn("Last year I moved to Lisbon with Sara, and I work at Bosch near Green Park.")
    mentions = read(said).mentions[said.id]
    assert Mention("place", "Lisbon") in mentions
    assert Mention("person", "Sara") in mentions
    assert Mention("org", "Bosch") in mentions
    assert Mention("place", "Green Park") in mentions


def test_weekdays_months_and_first_words_are_no_entities() -> None:
    said = turn("Pizza was on Monday. March was cold with German beer, God knows. I know.")
    assert read(said).mentions[said.id] == ()


def test_an_assistant_turn_still_gives_entity_candidates() -> None:
    said = turn("You could travel to Kyoto with Sara in the autumn.", role="assistant")
    assert Mention("place", "Kyoto") in read(said).mentions[said.id]


def test_known_entities_are_found_in_any_place_and_case() -> None:
    said = turn("bluebird is late again, as always it seems.")
    assert read(said, known=("project:Bluebird",)).mentions[said.id] == (Mention("project", "Bluebird"),)


def test_a_speakers_name_is_a_person() -> None:
    earlier = turn("Nice to see you again, how are you?", speaker="Ben")
    said = turn("Hey Ben! How are things going with you?", seq=2)
    assert read(said, earlier=(earlier,)).mentions[said.id] == (Mention("person", "Ben"),)


@pytest.mark.parametrize(
    "text",
    [
        "I am " * 25_000,
        "<a>" * 34_000,
        "<memory " * 12_000,
        '"' * 100_000,
        "'a " * 33_000,
        "I love " + "a, " * 33_000,
        "and I " * 16_000,
        "My " * 33_000,
        "Aa " * 33_000,
        "every " * 16_000,
        "for a few " * 10_000,
        "." * 100_000,
        "1" * 100_000,
        "I went to " + "x" * 100_000,
        "```" * 33_000,
        "\n" * 100_000,
    ],
    ids=lambda text: text[:8],
)
@pytest.mark.timeout(10)
def test_hostile_text_ends_soon(text: str) -> None:
    """A pattern that backtracks without bound would run into the time limit; ordinary work takes a blink."""
    found = read(turn(text))
    assert len(found.statements) <= 24


def test_the_text_that_is_read_is_bounded() -> None:
    sentence = "I love swimming in cold lakes number {}. "
    long = "".join(sentence.format(n) for n in range(5_000))
    assert len(read(turn(long)).statements) == 24


def test_turns_far_apart_keep_their_own_dates() -> None:
    old = turn("Yesterday I went to a pottery class.", at=WEDNESDAY - timedelta(days=365))
    new = replace(turn("Yesterday I went to a pottery class.", seq=2))
    texts = [s.text for s in read(old, new).statements]
    assert texts == [
        "Anna went to a pottery class on 2022-05-09.",
        "Anna went to a pottery class on 2023-05-09.",
    ]
