"""The end of a session, looking back, and rewording: what a model may change, and what it may not."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4
from zoneinfo import ZoneInfo

import pytest

from memory_app.errors import BadModelOutput
from memory_app.extraction.llm import (
    Asking,
    Talk,
    Union,
    merge_texts,
    synthesize_deep,
    synthesize_session,
)
from memory_app.extraction.llm.session import TRIMMED, curate
from memory_app.extraction.llm.unions import fault_of_union
from memory_app.records.records import Memory, Role, Statement, Turn
from memory_app.records.statement import checked_statement
from memory_app.testing import ScriptedModel

ZONE = ZoneInfo("Europe/Lisbon")
AT = datetime(2024, 3, 6, 14, 30, tzinfo=UTC)


def turn(number: int, text: str, role: Role = Role.USER) -> Turn:
    speaker = "Maria" if role is Role.USER else "Nova"
    return Turn(UUID(int=number), "s", number, role, speaker, text, AT + timedelta(minutes=number))


def memory(text: str, kind: str = "fact", **more: object) -> Memory:
    return Memory(kind, text, id=uuid4(), created_at=AT, valid_from=AT, **more)  # type: ignore[arg-type]


TURNS = (
    turn(1, "I planted a lemon tree in my father's garden today, the first since he died."),
    turn(2, "That sounds like a good way to remember him.", Role.ASSISTANT),
    turn(
        3, "It is. I do not need advice any more, only somebody who listens. I will call my sister about it."
    ),
)
TALK = Talk(TURNS, "Maria", "Nova", ZONE)


def answer(**parts: object) -> dict[str, object]:
    lists: dict[str, object] = {"anchors": [], "topics": [], "identity_notes": [], "tones": [], "facts": []}
    return lists | {"summary": "Maria planted a lemon tree for her father."} | parts


def anchor(text: str, *evidence: str, change: str = "new", of: str | None = None) -> dict[str, object]:
    return {"text": text, "evidence": list(evidence), "importance": 7, "change": change, "of": of}


# --- the end of a session ---


def test_the_summary_rests_on_all_turns() -> None:
    made = synthesize_session(Asking(ScriptedModel(answer())), TALK)
    assert made.summary is not None
    assert (made.summary.kind, made.summary.evidence) == ("episode", tuple(turn.id for turn in TURNS))
    checked_statement(made.summary)
    assert made.provenance.prompt == "synthesize_session-1.1"


def test_a_strengthened_anchor_comes_back_with_its_own_text() -> None:
    known = memory("Maria honours her father in the garden.", "anchor")
    said = anchor("Maria remembers her father by gardening.", "t1", change="strengthened", of="a1")
    model = ScriptedModel(answer(anchors=[said, said]))
    made = synthesize_session(Asking(model), TALK, [known])
    (statement,) = made.statements
    assert (statement.text, statement.evidence, statement.parents) == (known.text, (TURNS[0].id,), ())
    assert f"[a1] anchor | 2024-03-06 | {known.text}" in model.asked[0][1].text


def test_a_changed_anchor_is_a_new_row_for_the_old_one() -> None:
    known = memory("Maria asks Nova for advice about grief.", "anchor")
    said = anchor("Maria wants Nova to listen and give no advice.", "t3", change="changed", of="a1")
    (changed,) = synthesize_session(Asking(ScriptedModel(answer(anchors=[said]))), TALK, [known]).changed
    assert changed.memory_id == known.id
    assert changed.statement.parents == (known.id,)
    assert changed.statement.text == "Maria wants Nova to listen and give no advice."


def test_a_pinned_anchor_is_not_changed() -> None:
    known = memory("Maria misses her father.", "anchor", pinned=True)
    changed = anchor(
        "Maria misses her father less since she planted a tree.", "t1", change="changed", of="a1"
    )
    made = synthesize_session(Asking(ScriptedModel(answer(anchors=[changed]))), TALK, [known])
    assert made.changed == ()
    assert made.provenance.dropped == {"pinned memories": 1}


def test_a_known_anchor_is_no_new_one() -> None:
    known = memory("Maria and Nova share a love of old maps and train journeys.", "anchor")
    said = anchor("Maria and Nova share a love of old maps and train journeys.", "t1")
    made = synthesize_session(Asking(ScriptedModel(answer(anchors=[said]))), TALK, [known])
    assert made.statements == ()
    assert made.provenance.dropped == {"echo of a memory": 1}


@pytest.mark.parametrize("evidence", [[], ["t2"], ["t9"]])
def test_no_anchor_is_strengthened_without_the_user(evidence: list[str]) -> None:
    known = memory("Maria honours her father in the garden.", "anchor")
    said = anchor(known.text, *evidence, change="strengthened", of="a1")
    assert synthesize_session(Asking(ScriptedModel(answer(anchors=[said]))), TALK, [known]).statements == ()


def test_curated_facts_take_a_tenth_of_the_log_at_most() -> None:
    log = tuple(
        turn(number, f"In week {number} I repaired the old clock number {number} again. " * 5)
        for number in range(1, 41)
    )
    facts = [
        {
            "text": f"Maria repaired the old clock number {n}.",
            "evidence": [f"t{n}"],
            "importance": 9 if n == 33 else 5,
        }
        for n in range(1, 41)
    ]
    made = synthesize_session(Asking(ScriptedModel(answer(facts=facts))), Talk(log, "Maria", "Nova", ZONE))
    kept = [statement.text for statement in made.statements]
    assert sum(map(len, kept)) <= sum(len(turn.text) for turn in log) / 10
    assert "Maria repaired the old clock number 33." in kept
    assert made.provenance.dropped[TRIMMED] == 40 - len(kept) > 0


def test_a_short_conversation_may_leave_its_few_facts_and_everything_else() -> None:
    fact, tone = Statement("fact", "Maria has a sister."), Statement("expression", "x" * 500)
    assert curate([fact, tone], 50) == ((fact, tone), 0)


def test_a_session_without_content_asks_nothing() -> None:
    model = ScriptedModel()
    made = synthesize_session(Asking(model), Talk((turn(1, "ok"),), "Maria", "Nova", ZONE))
    assert (made.statements, made.summary, model.asked) == ((), None, [])


def test_the_stub_can_end_a_session() -> None:
    made = synthesize_session(Asking(ScriptedModel()), TALK)
    assert made.summary is not None
    assert [statement.kind for statement in made.statements] == ["fact", "fact"]


# --- looking back ---

COFFEE = [
    memory("Maria drinks 2 coffees a day.", importance=6),
    memory("Maria has 2 cups of coffee daily.", importance=5),
]


def deep(**parts: object) -> dict[str, object]:
    return {"consolidated": [], "patterns": [], "links": []} | parts


def look_back(memories: list[Memory], **parts: object):
    return synthesize_deep(Asking(ScriptedModel(deep(**parts))), memories, time_zone=ZONE)


def test_memories_that_say_the_same_are_proposed_as_one() -> None:
    made = look_back(
        COFFEE, consolidated=[{"text": "Maria drinks 2 coffees daily.", "memories": ["m1", "m2"]}]
    )
    (union,) = made.unions
    assert union == Union("Maria drinks 2 coffees daily.", tuple(memory.id for memory in COFFEE))


@pytest.mark.parametrize(
    ("text", "references", "fault"),
    [
        ("Maria drinks coffee.", ["m1", "m2"], "numbers the memories do not have"),
        ("Maria drinks 3 coffees daily.", ["m1", "m2"], "numbers the memories do not have"),
        ("Maria drinks 2 coffees daily.", ["m1"], "fewer than two memories"),
        ("Maria drinks 2 coffees daily.", ["m1", "m7"], "fewer than two memories"),
        ("Maria drinks 2 coffees daily and trusts Nova.", ["m1", "m3"], "memories of several kinds"),
        ("Maria drinks 2 coffees a day.", ["m1", "m4"], "memories that contradict each other"),
        ("Maria drinks 2 coffees daily.", ["m1", "m5"], "pinned memories"),
        ("Maria drinks 2 coffees daily with Nora.", ["m1", "m2"], "names the memories do not have"),
        ("Maria drinks 2 bitter coffees daily.", ["m1", "m2"], "words the memories do not have"),
        ("Maria never drinks 2 coffees daily.", ["m1", "m2"], "denies what a memory says"),
        ("Maria has 2.", ["m1", "m2"], "loses what a memory says"),
    ],
)
def test_an_unsound_consolidation_is_left_out(text: str, references: list[str], fault: str) -> None:
    others = [
        memory("Maria trusts Nova.", "anchor"),
        memory("Maria does not drink 2 coffees a day."),
        memory("Maria has 2 coffees daily.", pinned=True),
    ]
    made = look_back([*COFFEE, *others], consolidated=[{"text": text, "memories": references}])
    assert made.unions == ()
    assert made.provenance.dropped == {fault: 1}


def test_a_memory_goes_into_one_consolidation_only() -> None:
    third = memory("Maria likes 2 cups of coffee.")
    twice = [
        {"text": "Maria drinks 2 coffees daily.", "memories": ["m1", "m2"]},
        {"text": "Maria likes 2 cups of coffee daily.", "memories": ["m2", "m3"]},
    ]
    assert len(look_back([*COFFEE, third], consolidated=twice[1:]).unions) == 1
    assert len(look_back([*COFFEE, third], consolidated=twice).unions) == 1


def test_a_pattern_is_an_artifact_over_two_memories_or_more() -> None:
    found = [
        {"text": "Maria relies on coffee.", "memories": ["m1", "m2"], "feeling": "concern"},
        {"text": "Maria relies on tea.", "memories": ["m1"]},
        {"text": "Maria spends 900 euros on coffee.", "memories": ["m1", "m2"]},
        {"text": "Maria drinks coffee like her friend Paula.", "memories": ["m1", "m2"]},
        {"text": "Maria is a wonderful person.", "memories": ["m1", "m2"]},
    ]
    made = look_back(COFFEE, patterns=found)
    (pattern,) = made.patterns
    assert (pattern.kind, pattern.synthesis_type, len(pattern.parents)) == ("artifact", "pattern", 2)
    assert pattern.emotional_state is not None
    assert made.provenance.dropped == {
        "fewer than two memories": 1,
        "numbers the memories do not have": 1,
        "names the memories do not have": 1,
        "nothing the memories say": 1,
    }


def test_links_join_two_known_memories() -> None:
    given = [
        {"from": "m1", "to": "[m2]", "type": "causes", "weight": 0.9},
        {"source": "m1", "target": "m2", "type": "causes"},
        {"source": "m1", "target": "m1", "type": "causes"},
        {"source": "m1", "target": "m9", "type": "nonsense"},
    ]
    (link,) = look_back(COFFEE, links=given).links
    assert (link.source, link.target, link.type, link.weight) == (COFFEE[0].id, COFFEE[1].id, "causes", 0.9)


def test_one_memory_is_nothing_to_look_back_on() -> None:
    assert look_back(COFFEE[:1]).provenance.calls == 0


# --- sentences that stand for several memories ---

RUNS = ("Maria ran 10 km on Sunday.", "On Sunday Maria ran 10 km by the river.")
VIOLIN = ("Ana plays the violin in a quartet.", "Ana plays the violin with her sister Lea.")


@pytest.mark.parametrize(
    ("text", "sources"),
    [
        ("On Sunday Maria ran 10 km by the river.", RUNS),
        ("Ana plays the violin in a quartet with her sister Lea.", VIOLIN),
        ("Ana plays the violin with her sister Lea, also in a quartet.", VIOLIN),
        ("Tom never eats meat at home.", ("Tom never eats meat.", "At home Tom never eats meat.")),
        ("Kai is allergic to peanuts.", ("Kai is allergic to peanuts.", "Kai has a peanut allergy.")),
        ("Mira wohnt in Bonn am Rhein.", ("Mira wohnt in Bonn.", "Mira wohnt am Rhein in Bonn.")),
    ],
)
def test_a_sentence_that_keeps_everything_stands_for_its_memories(
    text: str, sources: tuple[str, ...]
) -> None:
    assert fault_of_union(text, sources) is None


@pytest.mark.parametrize(
    ("text", "sources", "fault"),
    [
        ("Maria ran by the river.", RUNS, "numbers the memories do not have"),
        ("Maria ran 12 km on Sunday by the river.", RUNS, "numbers the memories do not have"),
        ("Maria ran 10 km " + "and on " * 30, RUNS, "longer than the memories together"),
        ("Ana plays the violin.", VIOLIN, "loses what a memory says"),
        ("Ana plays the violin in a quartet with her sister.", VIOLIN, "loses what a memory says"),
        ("Ana plays the violin in a quartet with Lea and Ida.", VIOLIN, "names the memories do not have"),
        ("Ana plays the violin badly, in a quartet with Lea.", VIOLIN, "words the memories do not have"),
        ("Ana no longer plays the violin with her sister Lea.", VIOLIN, "denies what a memory says"),
        (
            "Kai has things.",
            ("Kai is allergic to peanuts, severely.", "Kai rides a motorbike."),
            "loses what a memory says",
        ),
        ("Keep answers short when Ottilie is tired.", VIOLIN, "example of the prompt"),
    ],
)
def test_a_sentence_that_adds_or_loses_something_stands_for_none(
    text: str, sources: tuple[str, ...], fault: str
) -> None:
    assert fault_of_union(text, sources) == fault


def test_merged_texts_are_held_against_their_sources() -> None:
    said = {"text": "On Sunday Maria ran 10 km by the river."}
    assert merge_texts(Asking(ScriptedModel(said)), RUNS).text == said["text"]
    with pytest.raises(BadModelOutput, match="numbers the memories do not have"):
        merge_texts(Asking(ScriptedModel({"text": "Maria ran by the river."})), RUNS)
