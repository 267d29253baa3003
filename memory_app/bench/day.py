"""A made-up day on which somebody says the same few things over and over, in other words each time.

Each statement carries what it says (its ``meaning``), so that a measurement can see whether two different things were
ever blended. Numbers, negations, names and dates differ between meanings where the words hardly do.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

# The empty opening stands twice, so that a quarter of the statements begins at once.
OPENINGS = (
    "",
    "",
    "By the way, ",
    "Just so you know, ",
    "As I said, ",
    "Again: ",
    "Honestly, ",
    "To be clear, ",
)
ENDINGS = (".", ".", "!", " .", ", as always.", ", really.", ", you know.")


@dataclass(frozen=True, slots=True)
class Remark:
    """One statement of the day. ``meaning`` names what it says; parts of a fact where an extractor would know them."""

    meaning: str
    text: str
    subject: str | None = None
    relation: str | None = None
    object: str | None = None


@dataclass(frozen=True, slots=True)
class _Topic:
    meaning: str
    wordings: tuple[str, ...]
    fact: tuple[str, str, str] | None = None


TOPICS = (
    _Topic(
        "lives in Lisbon",
        ("Mira lives in Lisbon", "Mira's home is Lisbon", "Mira is living in Lisbon these days"),
        ("Mira", "lives_in", "Lisbon"),
    ),
    _Topic(
        "likes oolong",
        ("Mira likes oolong tea", "Mira loves oolong tea", "Mira is very fond of oolong tea"),
        ("Mira", "likes", "oolong tea"),
    ),
    _Topic(
        "dislikes cilantro",
        ("Mira does not like cilantro", "Mira can't stand cilantro", "Mira dislikes cilantro"),
        ("Mira", "dislikes", "cilantro"),
    ),
    # Two pairs that differ in one number or one negation: whoever goes by similarity alone blends them.
    _Topic(
        "ran 5 km",
        ("Mira ran 5 km along the river before breakfast", "Before breakfast Mira ran 5 km along the river"),
    ),
    _Topic(
        "ran 7 km",
        ("Mira ran 7 km along the river before breakfast", "Before breakfast Mira ran 7 km along the river"),
    ),
    _Topic(
        "sister may visit",
        ("Mira's sister may visit her in spring", "In spring Mira's sister may visit her"),
    ),
    _Topic(
        "sister will not visit",
        ("Mira's sister will not visit her in spring", "In spring Mira's sister will not visit her"),
    ),
)


def day(count: int, *, seed: int) -> Iterator[Remark]:
    """``count`` statements about the same few things, the same for the same seed."""
    chance = random.Random(seed)
    for _ in range(count):
        topic = chance.choice(TOPICS)
        words = chance.choice(topic.wordings)
        opening = chance.choice(OPENINGS)
        # Names keep their capital in the middle of a sentence.
        if opening and not words.startswith("Mira"):
            words = words[0].lower() + words[1:]
        text = f"{opening}{words}{chance.choice(ENDINGS)}"
        subject, relation, obj = topic.fact or (None, None, None)
        yield Remark(topic.meaning, text, subject=subject, relation=relation, object=obj)
