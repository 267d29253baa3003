"""Only what was said is kept: nothing of a prompt, and nothing of which neither a word nor a name was said."""

from __future__ import annotations

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


@pytest.mark.parametrize(
    ("text", "turn_text", "is_kept"),
    [
        ("Ann won the lottery in Monaco.", "I had a long day, and my feet hurt.", False),
        ("Ann won the lottery in Monaco.", "I won the lottery, in Monaco of all places!", True),
        # A paraphrase without a name, and another language: no word in common proves nothing.
        ("Ann is a vegetarian and happy with it.", "Meat has not been on my plate since school.", True),
        ("Ann lives with her sister in Vienna.", "Ich wohne bei meiner Schwester in Wien.", True),
        ("Ann is married to the baker Paul.", "That is Paul, my better half.", True),
    ],
)
def test_a_statement_of_which_nothing_was_said_is_not_kept(text: str, turn_text: str, is_kept: bool) -> None:
    conversation = talk(turn_text, user="Ann")
    extracted = extract(answer(facts=[{"text": text, "evidence": ["t1"]}]), conversation)
    assert bool(extracted.extraction.statements) == is_kept
    if not is_kept:
        assert extracted.provenance.dropped == {"nothing of it was said": 1}
