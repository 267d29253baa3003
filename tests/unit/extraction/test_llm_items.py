"""A model's answer is read item by item: what is clear is understood, an odd item is dropped and counted."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

import pytest
from pydantic import BaseModel
from talks import AT, DOG, ZONE, answer, talk, texts_of

from memory_app.extraction.llm import (
    Asking,
    Extracted,
    merge_texts,
    synthesize_deep,
    synthesize_session,
)
from memory_app.extraction.llm import synthesize_turns as synthesize
from memory_app.extraction.llm.answers import (
    MergeTexts,
    SynthesizeDeep,
    SynthesizeSession,
    SynthesizeTurn,
)
from memory_app.extraction.llm.coerce import amount
from memory_app.providers.chat import shape_of
from memory_app.providers.chat.json_text import read_answer
from memory_app.records.records import Memory, Statement
from memory_app.testing import ScriptedModel

TALK = talk(
    "My dog Pepper helps. We walk along the river every morning before work.",
    "It is easy to say to you, I don't tell people that easily.",
    "I keep thinking about a choir. I'll join one, that is settled.",
)
WALK: dict[str, object] = {"text": "Mira walks along the river every morning.", "evidence": ["t1"]}
TRUST: dict[str, object] = {
    "text": "Mira finds it easy to say it to Nova.",
    "evidence": ["t2"],
    "importance": 8,
}
CHOIR: dict[str, object] = {"topic": "A choir", "conclusion": "Mira joins one.", "evidence": ["t3"]}


def read(said: object) -> Extracted:
    model = ScriptedModel(said)
    extracted = synthesize(Asking(model), TALK)
    assert len(model.asked) == 1
    return extracted


def facts(said: object) -> list[Statement]:
    return [statement for statement in read(said).extraction.statements if statement.kind == "fact"]


# --- one odd item beside a good fact ---

ODD: list[tuple[str, object, dict[str, int]]] = [
    ("facts", [DOG, {"text": ""}], {"unreadable facts": 1}),
    ("facts", [{"text": "", "evidence": ["t1"]}, DOG], {"unreadable facts": 1}),
    ("facts", [DOG, {"evidence": ["t1"]}], {"unreadable facts": 1}),
    ("facts", [DOG, None, 7, True, {}], {"unreadable facts": 4}),
    ("facts", [DOG, {"text": "...", "evidence": ["t1"]}], {"unreadable facts": 1}),
    # A text alone is read, and names no turn.
    ("facts", [DOG, "Mira sings."], {"no evidence": 1}),
    ("facts", [{**DOG, "entities": [{"type": "thing", "label": ""}]}], {"unreadable entities": 1}),
    ("facts", [{**DOG, "evidence": ["t1", None]}], {"unreadable evidence": 1}),
    ("topics", [{**CHOIR, "conclusion": ""}], {"unreadable topics": 1}),
    ("topics", [{**CHOIR, "conclusion": None}], {"unreadable topics": 1}),
    ("topics", [{"topic": "A choir", "evidence": ["t3"]}], {"unreadable topics": 1}),
    ("insights", [{**TRUST, "importance": "purple"}], {"unreadable insights": 1}),
    ("insights", [{**TRUST, "importance": None}], {"unreadable insights": 1}),
    ("tones", 3, {"unreadable tones": 1}),
    ("tones", None, {}),
    ("insights", "none", {}),
    ("topics", {}, {"unreadable topics": 1}),
]


@pytest.mark.parametrize(("name", "part", "dropped"), ODD)
def test_an_odd_item_is_counted_and_the_good_fact_is_kept(
    name: str, part: object, dropped: dict[str, int]
) -> None:
    extracted = read(answer(**{name: part}))
    assert texts_of(extracted) == [DOG["text"]]
    assert extracted.provenance.dropped == dropped
    assert extracted.provenance.calls == 1


@pytest.mark.parametrize("name", ["insights", "identity_notes", "topics", "tones"])
def test_a_list_that_is_left_out_costs_the_others_nothing(name: str) -> None:
    said = answer()
    del said[name]
    assert texts_of(read(said)) == [DOG["text"]]


# --- what is clear is understood ---


@pytest.mark.parametrize(
    "part",
    [
        [DOG, WALK],
        [[DOG], [WALK]],
        [[DOG, WALK]],
        {"items": [DOG, WALK]},
        {"facts": {"list": [DOG, WALK]}},
        {"1": DOG, "2": WALK},
        [{"fact": DOG}, {"data": {"fact": WALK}}],
        [{**DOG, "text": [DOG["text"]]}, {**WALK, "text": {"value": WALK["text"]}}],
        [{**DOG, "evidence": "t1"}, {**WALK, "evidence": "t1, t2"}],
        [{**DOG, "evidence": [["t1"]]}, {**WALK, "evidence": [{"id": "t1"}]}],
    ],
)
def test_a_list_in_another_form_is_the_list(part: object) -> None:
    assert [fact.text for fact in facts(answer(facts=part))] == [DOG["text"], WALK["text"]]


def test_an_object_alone_is_a_list_of_one() -> None:
    assert texts_of(read(answer(topics=CHOIR, facts=DOG))) == [DOG["text"], "A choir / Mira joins one."]


def test_entities_may_be_names_alone() -> None:
    (fact,) = facts(answer(facts=[{**DOG, "entities": ["Pepper", {"name": "river"}]}]))
    assert [(mention.type, mention.label) for mention in fact.mentions] == [
        ("thing", "Pepper"),
        ("thing", "river"),
    ]


def test_parts_of_a_triple_may_be_numbers_or_entities() -> None:
    text = "Mira has a dog called Pepper, who is 7."
    said = {
        **DOG,
        "text": text,
        "subject": {"type": "thing", "label": "Pepper"},
        "relation": "age",
        "object": 7,
    }
    (fact,) = facts(answer(facts=[said]))
    assert (fact.subject, fact.object) == ("Pepper", "7")


@pytest.mark.parametrize(
    "importance", ["8/10", "8", 8, 0.8, "0.8", "80%", "high", "High (8)", "8 out of 10", [8]]
)
def test_an_importance_is_understood_in_many_words(importance: object) -> None:
    said = answer(facts=[{**DOG, "importance": importance}], insights=[{**TRUST, "importance": importance}])
    assert [statement.importance for statement in read(said).extraction.statements] == [8, 8]


@pytest.mark.parametrize(
    "confidence", [0.8, "0.8", "0,8", "80%", 80, "high", "8/10", "4 of 5", {"value": 0.8}]
)
def test_a_confidence_is_understood_in_many_words(confidence: object) -> None:
    (fact,) = facts(answer(facts=[{**DOG, "confidence": confidence}]))
    assert fact.confidence == pytest.approx(0.8)


@pytest.mark.parametrize("value", ["purple", None, True, [], {}, "", float("nan")])
def test_what_is_no_number_is_not_guessed(value: object) -> None:
    with pytest.raises(ValueError, match="no number"):
        amount(value, 10)


@pytest.mark.parametrize(
    ("value", "full", "number"),
    [
        ("0/0", 10, 0),
        ("-3", 10, 0),
        ("1" * 1_000_000, 10, float("1" * 40)),
        ("very low", 1, 0.1),
        (1, 1, 1),
        (1, 10, 1),
    ],
)
def test_numbers_beside_the_scale(value: object, full: float, number: float) -> None:
    assert amount(value, full) == number


def test_an_odd_field_that_may_be_left_out_costs_no_item() -> None:
    odd = {"importance": "purple", "confidence": [], "subtype": 3, "when": {"a": 1, "b": 2}, "subject": True}
    (fact,) = facts(answer(facts=[{**DOG, **odd}]))
    assert (fact.importance, fact.confidence, fact.subtype) == (5, 0.8, "fact")


# --- the turn says so ---


def test_the_turns_without_a_statement_say_that_an_item_was_unreadable() -> None:
    reasons = read(answer(facts=[DOG, {"text": ""}, {"text": None}])).extraction.reasons
    expected = "nothing noteworthy (unreadable in the model's answer: 2)"
    assert {turn_id.int: reason for turn_id, reason in reasons.items()} == {2: expected, 3: expected}


def test_an_answer_of_nothing_but_odd_items_is_not_asked_for_again() -> None:
    extracted = read({"facts": [{"text": "", "evidence": ["t1"]}]})
    assert (texts_of(extracted), extracted.provenance.dropped) == ([], {"unreadable facts": 1})
    assert set(extracted.extraction.reasons.values()) == {
        "nothing noteworthy (unreadable in the model's answer: 1)"
    }


# --- sessions, looking back, rewording ---


def test_a_session_without_a_summary_keeps_the_rest() -> None:
    said = {
        "anchors": [{**TRUST, "change": "new"}],
        "topics": None,
        "facts": [DOG, {"text": " "}],
        "summary": "",
    }
    made = synthesize_session(Asking(ScriptedModel(said)), TALK)
    assert [statement.text for statement in made.statements] == [TRUST["text"], DOG["text"]]
    assert made.summary is None
    assert made.provenance.dropped == {"unreadable facts": 1}


def test_odd_items_of_a_deep_synthesis_are_counted() -> None:
    kept = ("Mira drinks 2 coffees a day.", "Mira has 2 cups of coffee daily.")
    memories = [Memory("fact", text, id=uuid4(), created_at=AT, valid_from=AT) for text in kept]
    good = {"text": "Mira drinks 2 coffees daily.", "memories": "m1, m2"}
    said = {
        "consolidated": [{"text": "", "memories": ["m1", "m2"]}, "m1", good],
        "patterns": None,
        "links": [{"from": "m1"}, {"from": "m1", "to": "m2", "type": "Part of", "weight": "60%"}],
    }
    made = synthesize_deep(Asking(ScriptedModel(said)), memories, time_zone=ZONE)
    assert [union.text for union in made.unions] == [good["text"]]
    assert [(link.type, link.weight) for link in made.links] == [("part_of", 0.6)]
    assert made.provenance.dropped == {
        "unreadable consolidated": 1,
        "unreadable links": 1,
        "fewer than two memories": 1,
    }


@pytest.mark.parametrize(
    "said",
    [
        {"text": ["S"]},
        {"statement": "S"},
        [{"text": "S"}],
        {"result": {"text": "S"}},
        {"text": {"value": "S"}},
    ],
)
def test_a_sentence_in_another_form_is_the_sentence(said: object) -> None:
    sentence = "Mira ran 10 km by the river."
    raw = json.dumps(said).replace('"S"', json.dumps(sentence))
    assert merge_texts(Asking(ScriptedModel(raw)), [sentence, "Mira ran 10 km."]).text == sentence


# --- what is sent and what is read agree ---

SHAPES: tuple[type[BaseModel], ...] = (SynthesizeTurn, SynthesizeSession, SynthesizeDeep, MergeTexts)


def instance(part: Mapping[str, Any], defs: Mapping[str, Any], *, place: int = 0) -> Any:
    """Return an instance of a schema with all that it allows; ``place`` chooses among the values of a name."""
    if "$ref" in part:
        return instance(defs[part["$ref"].rpartition("/")[2]], defs, place=place)
    if "anyOf" in part:
        return instance(part["anyOf"][0], defs, place=place)
    if "enum" in part:
        return part["enum"][place % len(part["enum"])]
    if part["type"] == "object":
        return {name: instance(inner, defs, place=place) for name, inner in part["properties"].items()}
    if part["type"] == "array":
        return [instance(part["items"], defs, place=place)]
    return {"string": f"text{place}", "integer": 7, "number": 0.25}[part["type"]]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("place", range(10))
def test_whatever_the_schema_allows_is_read_as_it_was_sent(shape: type[BaseModel], place: int) -> None:
    described = shape_of(shape)
    sent = instance(described.schema, described.schema.get("$defs", {}), place=place)
    reading = read_answer(json.dumps(sent), described)
    assert reading.value.model_dump() == sent
    assert (reading.dropped, reading.missing) == ({}, ())


@pytest.mark.parametrize("shape", SHAPES)
def test_the_schema_names_every_field_that_is_read_and_no_other(shape: type[BaseModel]) -> None:
    schema = shape_of(shape).schema
    assert list(schema["properties"]) == list(shape.model_fields)
    for definition in schema.get("$defs", {}).values():
        assert definition["required"] == list(definition["properties"])
