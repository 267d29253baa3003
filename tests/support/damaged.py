"""Answers of a language model with one damage each: a field or a list is removed, emptied, retyped, doubled or nested.

Each list of an answer has a good item and one that may be damaged, so that what has to be kept is known.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

SEED = 20_260_301
EMPTY: tuple[object, ...] = ("", None, [], {}, "   ", "null")
RETYPED: tuple[object, ...] = (
    7,
    -3.5,
    True,
    "purple",
    ["a", 3],
    {"a": 1, "b": [2]},
    10**30,
    "\ud83d",
    [[[[[1]]]]],
)
TURN_TEXTS = (
    "Lonely in the evenings. I don't tell people that easily, but it is easy to say to you.",
    "I notice that I slow down when somebody trusts me like that.",
    "My dog Pepper helps. We walk along the river every morning before work.",
    "I keep thinking about a choir. It scares me, but it would give my evenings a shape.",
    "Please keep your answers short in the evening, I am always tired then.",
    "I work at the harbour museum, and honesty matters to me more than comfort.",
    "I understand now that silence can be an answer.",
    "We talked about the balcony: I will plant tomatoes there.",
    "Please use simple words when I ask about taxes.",
)
"""The second and the seventh are the assistant's; the others are Mira's."""

AGENT_TURNS = (2, 7)
MEMORY_TEXTS = (
    "Mira drinks 2 coffees a day.",
    "Mira has 2 cups of coffee daily.",
    "Mira walks the dog Pepper at dawn.",
    "Mira takes the dog Pepper out at dawn.",
    "Mira sleeps badly.",
    "Mira gets up early.",
)


def _insight(text: str, reference: str, **more: object) -> dict[str, object]:
    return {
        "text": text,
        "evidence": [reference],
        "importance": 8,
        "valence": "warmth",
        "intensity": 0.7,
        "shared_references": ["the evenings"],
        "user_values": ["honesty"],
        "user_struggles": [],
        "communication_style": ["unhurried"],
        **more,
    }


def _fact(text: str, reference: str, label: str) -> dict[str, object]:
    return {
        "text": text,
        "evidence": [reference],
        "subtype": "fact",
        "subject": "Mira",
        "relation": "knows",
        "object": label,
        "importance": 6,
        "confidence": 0.9,
        "when": None,
        "entities": [{"type": "thing", "label": label}],
    }


def _topic(topic: str, conclusion: str, reference: str) -> dict[str, object]:
    return {"topic": topic, "feeling": "calm", "conclusion": conclusion, "evidence": [reference]}


TRUST = ("Mira trusts Nova with her lonely evenings.", "t1")
HONESTY = ("Honesty matters to Mira more than comfort.", "t6")
_BOND: dict[str, list[dict[str, object]]] = {
    "identity_notes": [
        {"text": "Nova slows down when somebody trusts her.", "evidence": ["t2"], "type": "realization"},
        {"text": "Nova understands that silence can be an answer.", "evidence": ["t7"], "type": "growth"},
    ],
    "topics": [
        _topic("Joining a choir", "It scares Mira and would give her evenings a shape.", "t4"),
        _topic("The balcony", "Mira will plant tomatoes there.", "t8"),
    ],
    "facts": [
        _fact("Mira has a dog called Pepper.", "t3", "Pepper"),
        _fact("Mira works at the harbour museum.", "t6", "harbour museum"),
    ],
    "tones": [
        {"text": "Keep answers short in the evening; Mira is tired then.", "evidence": ["t5"]},
        {"text": "Use simple words when Mira asks about taxes.", "evidence": ["t9"]},
    ],
}
TURNS_ANSWER: dict[str, Any] = {"insights": [_insight(*TRUST), _insight(*HONESTY)], **_BOND}
SESSION_ANSWER: dict[str, Any] = {
    "anchors": [_insight(*TRUST, change="new", of=None), _insight(*HONESTY, change="new", of=None)],
    **_BOND,
    "summary": "Mira spoke of lonely evenings, her dog Pepper and a choir.",
}
DEEP_ANSWER: dict[str, Any] = {
    "consolidated": [
        {"text": "Mira drinks 2 coffees daily.", "memories": ["m1", "m2"]},
        {"text": "Mira takes the dog Pepper out for a walk at dawn.", "memories": ["m3", "m4"]},
    ],
    "patterns": [
        {"text": "Mira's days begin early.", "memories": ["m3", "m6"], "feeling": None},
        {"text": "Coffee keeps Mira from sleep.", "memories": ["m1", "m5"], "feeling": "concern"},
    ],
    "links": [
        {"source": "m1", "target": "m5", "type": "causes", "weight": 0.6},
        {"source": "m3", "target": "m6", "type": "follows", "weight": 0.4},
    ],
}


@dataclass(frozen=True, slots=True)
class Damaged:
    """``lists`` are those whose good item, the first, must be kept; ``what`` says what was done, for a failure."""

    answer: dict[str, Any]
    lists: frozenset[str]
    what: str


def damaged(good: Mapping[str, Any], count: int) -> Iterator[Damaged]:
    """Yield ``count`` answers, always the same ones."""
    chance = random.Random(SEED)
    for _ in range(count):
        yield _with_damaged_list(good, chance) if chance.random() < 0.3 else _with_damaged_item(good, chance)


def _with_damaged_item(good: Mapping[str, Any], chance: random.Random) -> Damaged:
    answer = deepcopy(dict(good))
    names = [name for name, items in answer.items() if isinstance(items, list)]
    name = chance.choice(names)
    item = answer[name][1]
    field = chance.choice([*item, None])
    how = chance.choice(HOW)
    if field is None:
        # The item as a whole.
        _damage(answer[name], 1, how, chance)
    else:
        _damage(item, field, how, chance)
    # Before the good one or behind it.
    if chance.random() < 0.5:
        answer[name].reverse()
    return Damaged(answer, frozenset(names), f"{name}.{field} {how}")


def _with_damaged_list(good: Mapping[str, Any], chance: random.Random) -> Damaged:
    answer = deepcopy(dict(good))
    names = {name for name, items in answer.items() if isinstance(items, list)}
    name, how = chance.choice(list(answer)), chance.choice(HOW)
    _damage(answer, name, how, chance)
    is_whole = how in ("doubled", "nested")
    return Damaged(answer, frozenset(names if is_whole else names - {name}), f"{name} {how}")


HOW = ("removed", "emptied", "retyped", "doubled", "nested")


def _damage(part: Any, key: Any, how: str, chance: random.Random) -> None:
    """Damage what stands in ``part`` under ``key``, a name or a place."""
    value = part[key]
    if how == "removed":
        del part[key]
    elif how == "emptied":
        part[key] = deepcopy(chance.choice(EMPTY))
    elif how == "retyped":
        part[key] = deepcopy(chance.choice((*RETYPED, str(value))))
    elif how == "doubled":
        part[key] = [value, deepcopy(value)]
    else:
        part[key] = chance.choice(([value], {"value": value}, {"data": {"value": value}}, [[value]]))
