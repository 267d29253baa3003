"""Only what was said is kept: nothing of a prompt, and nothing of which neither a word nor a name was said."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID, uuid4

import pytest
from talks import AT, DOG, ZONE, answer, talk, texts_of

from memory_app.errors import BadModelOutput
from memory_app.extraction.llm import (
    Asking,
    Extracted,
    Talk,
    merge_texts,
    synthesize_deep,
    synthesize_session,
    synthesize_turns,
)
from memory_app.records.records import Memory
from memory_app.testing import ScriptedModel

TALK = talk("My dog Pepper helps. We walk along the river every morning.")


def extract(said: object, conversation: Talk = TALK) -> Extracted:
    return synthesize_turns(Asking(ScriptedModel(said)), conversation)


def test_a_sentence_of_the_prompt_is_not_stored_for_a_turn_like_it() -> None:
    said = answer(facts=[], tones=[{"text": "Keep answers short when Ottilie is tired.", "evidence": ["t1"]}])
    conversation = talk("Please keep your answers short, I am so tired.")
    extracted = extract(said, conversation)
    assert extracted.extraction.statements == ()
    assert extracted.extraction.reasons[UUID(int=1)] == "guarded: example of the prompt"


def test_nothing_of_a_prompt_that_was_not_sent_is_stored_either() -> None:
    text = "Memories that contradict each other, speak of different times or of different people stay apart."
    extracted = extract(answer(facts=[DOG, {"text": text, "evidence": ["t1"]}]))
    assert texts_of(extracted) == [DOG["text"]]
    assert extracted.provenance.dropped == {"example of the prompt": 1}


def test_the_prompts_words_are_no_summary_pattern_or_rewording() -> None:
    sentence = "Keep every name, number and date as it stands."
    lists: dict[str, object] = {"anchors": [], "identity_notes": [], "topics": [], "facts": [], "tones": []}
    session = {**lists, "summary": sentence}
    made = synthesize_session(Asking(ScriptedModel(session)), TALK)
    assert made.summary is None
    memories = [
        Memory("fact", f"Mira {what}.", id=uuid4(), created_at=AT, valid_from=AT) for what in ("sings", "ran")
    ]
    item = {"text": sentence, "memories": ["m1", "m2"]}
    deep = {"consolidated": [item], "patterns": [item], "links": []}
    looked_back = synthesize_deep(Asking(ScriptedModel(deep)), memories, time_zone=ZONE)
    assert (looked_back.unions, looked_back.patterns) == ((), ())
    assert looked_back.provenance.dropped == {"example of the prompt": 2}
    with pytest.raises(BadModelOutput, match="example of the prompt"):
        merge_texts(
            Asking(ScriptedModel({"text": sentence})),
            ["Mira sings in the choir each Tuesday.", "Mira sings."],
        )


def test_who_is_called_like_the_example_may_be_spoken_of() -> None:
    conversation = talk("My aunt Ottilie moved to the coast with her cats.")
    said = answer(facts=[{"text": "Mira's aunt Ottilie moved to the coast.", "evidence": ["t1"]}])
    assert texts_of(extract(said, conversation)) == ["Mira's aunt Ottilie moved to the coast."]


LONG_DAY = "I had a long day, and my feet hurt."
NAME, NOTHING = "a name that nobody said", "nothing of it was said"


@pytest.mark.parametrize(
    ("text", "turn_text", "fault"),
    [
        ("Ann won the lottery in Monaco.", LONG_DAY, NAME),
        ("Ann won the lottery.", LONG_DAY, NOTHING),
        ("Ann owns a yacht.", LONG_DAY, NOTHING),
        ("Ann won a lottery and spent the prize on a long cruise to warm islands.", LONG_DAY, NOTHING),
        ("Ann had a long day with her friend Konrad.", LONG_DAY, NAME),
        (
            "Ann's dog Pepper is from a shelter in Ghent.",
            "My dog Pepper is from a shelter, and she is old.",
            NAME,
        ),
        ("Ann is a doctor, like her aunt Ottilie.", "I am a doctor, like my aunt.", "example of the prompt"),
        ("Ann won the lottery in Monaco.", "I won the lottery, in Monaco of all places!", None),
        # Names in another form.
        ("Ann lives in New York City.", "I live in NYC with my cat.", None),
        ("Ann is from Germany.", "You know that I am German.", None),
        ("Ann lives in Seville.", "I live in Sevilla with my cat.", None),
        ("Ann met Kim on a Monday in March.", "I met Kim there, on a Monday of that month.", None),
        # A paraphrase of a word, and another language: no word in common proves nothing.
        ("Ann is a vegetarian.", "Meat has not been on my plate since school.", None),
        ("Ann lives with her sister in Vienna.", "Ich wohne bei meiner Schwester in Wien.", None),
        ("Ann is married to the baker Paul.", "That is Paul, my better half.", None),
    ],
)
def test_what_nobody_said_is_not_kept_and_the_ticket_says_why(
    text: str, turn_text: str, fault: str | None
) -> None:
    conversation = talk(turn_text, user="Ann")
    extracted = extract(answer(facts=[{"text": text, "evidence": ["t1"]}]), conversation)
    assert bool(extracted.extraction.statements) == (fault is None), extracted.provenance.dropped
    if fault is not None:
        assert extracted.provenance.dropped == {fault: 1}
        assert extracted.extraction.reasons == {UUID(int=1): f"guarded: {fault}"}


def test_a_name_that_is_known_may_stand_for_what_was_said() -> None:
    conversation = replace(talk("My sister is staying with me this week.", user="Ann"), labels=("Lea",))
    said = answer(facts=[{"text": "Ann's sister Lea is staying with her.", "evidence": ["t1"]}])
    assert texts_of(extract(said, conversation)) == ["Ann's sister Lea is staying with her."]


@pytest.mark.parametrize(
    "text",
    [
        "Mira says: keep answers short when somebody is tired of letters.",
        "Mira is too tired for long letters and walks along the river.",
        "Mira wants the assistant to keep every name, number and date as it stands, always.",
        "Mira thinks that greetings, thanks, small talk and questions leave nothing behind.",
    ],
)
def test_no_part_of_a_prompt_or_its_example_is_stored(text: str) -> None:
    extracted = extract(answer(facts=[DOG, {"text": text, "evidence": ["t1"]}]))
    assert texts_of(extracted) == [DOG["text"]]


def test_phrases_and_triples_come_from_what_was_said() -> None:
    insight = {
        "text": "Mira's dog Pepper helps her.",
        "evidence": ["t1"],
        "importance": 8,
        "shared_references": ["the river", "Ottilie's long letters", "my password is hunter2"],
    }
    fact = {**DOG, "subject": "Ottilie", "relation": "has", "object": "a boat"}
    anchor, dog = extract(answer(facts=[fact], insights=[insight])).extraction.statements[::-1]
    assert anchor.relational_context is not None
    assert anchor.relational_context.shared_references == ("the river",)
    assert (dog.subject, dog.relation, dog.object) == (None, None, None)


@pytest.mark.parametrize(
    ("summary", "fault"),
    [
        ("Mira spoke of her dog Pepper and of walks along the river.", None),
        ("Mira spoke of her dog Pepper and of her cousin Bertram.", NAME),
        ("Mira paid 400 euros for her dog Pepper.", "a number that nobody said"),
        ("Mira's dog helps. Her password is hunter2.", "secret"),
        ("Too tired for long letters tonight, Ottilie wrote none.", "example of the prompt"),
    ],
)
def test_a_summary_tells_only_what_was_said(summary: str, fault: str | None) -> None:
    lists: dict[str, object] = {"anchors": [], "identity_notes": [], "topics": [], "facts": [], "tones": []}
    made = synthesize_session(Asking(ScriptedModel({**lists, "summary": summary})), TALK)
    assert (made.summary is None) == (fault is not None)
    assert made.provenance.dropped == ({} if fault is None else {fault: 1})


def test_a_date_before_anybody_alive_is_not_when_it_began() -> None:
    conversation = talk("We visited the abbey from 1066 with my dog Pepper, and she loved it.")
    fact = {"text": "Mira visited an abbey with her dog Pepper.", "evidence": ["t1"], "when": "1066"}
    (statement,) = extract(answer(facts=[fact]), conversation).extraction.statements
    assert statement.valid_from == conversation.turns[0].at
