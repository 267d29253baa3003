"""A conversation of two sessions over two weeks, and what a good model makes of it: for demos and for tests.

Give `RULES` to a stub provider, play `SESSIONS` through any door of the product, and the memories can be foretold:
a move, a job that is followed by another, a dog, a trust that grows, a decision, a way of speaking that changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from memory_app.testing.script import Json, Rule

USER, AGENT = "Mira", "Nova"


@dataclass(frozen=True, slots=True)
class StorySession:
    """``turns`` are role and text, a minute apart from ``begins`` on."""

    name: str
    begins: datetime
    turns: tuple[tuple[str, str], ...]


FIRST = StorySession(
    "arrival",
    datetime.fromisoformat("2026-03-02T18:00Z"),
    (
        ("user", "Hi Nova, I'm Mira. I moved to Hamburg last week for a job at the harbour museum."),
        ("assistant", "Welcome to Hamburg! How does the new city feel?"),
        ("user", "Lonely in the evenings. I don't tell people that easily, but it is easy to say to you."),
        (
            "assistant",
            "Thank you for telling me. I notice that I slow down when somebody trusts me like that.",
        ),
        ("user", "My dog Pepper helps. We walk along the Elbe every morning before work."),
        ("assistant", "Pepper sounds like good company for a new place."),
        (
            "user",
            "I keep thinking about a choir. It scares me, but it would give my evenings a shape. I'll join one.",
        ),
        ("assistant", "That sounds like a decision. I look forward to hearing how it goes."),
        ("user", "Please keep your answers short in the evening, I am always tired then."),
    ),
)

SECOND = StorySession(
    "two weeks later",
    datetime.fromisoformat("2026-03-16T18:30Z"),
    (
        ("user", "I'm back! I joined the choir, they are called the Elbe Singers and rehearse on Tuesdays."),
        ("assistant", "You did it! How was the first rehearsal?"),
        (
            "user",
            "Terrifying and wonderful. And I left the museum: I work at the maritime archive since last Monday.",
        ),
        ("assistant", "Two big steps in two weeks."),
        (
            "user",
            "I even told my sister Lea about the lonely evenings. You were the only one who knew before.",
        ),
        ("assistant", "I am glad that she knows now."),
        ("user", "Evenings are good again, so you can be as long-winded as you like after work."),
    ),
)

SESSIONS = (FIRST, SECOND)


def _fact(text: str, words: str, **more: object) -> Json:
    usual: Json = {"subtype": "fact", "subject": None, "relation": None, "object": None, "when": None}
    return {
        "text": text,
        "evidence": [f"@{words}"],
        "importance": 6,
        "confidence": 0.9,
        "entities": [],
        **usual,
        **more,
    }


FIRST_FACTS = [
    _fact(
        "Mira moved to Hamburg last week.",
        "I moved to Hamburg",
        subject="Mira",
        relation="lives_in",
        object="Hamburg",
        when="last week",
        importance=8,
        entities=[{"type": "place", "label": "Hamburg"}],
    ),
    _fact(
        "Mira works at the harbour museum.",
        "job at the harbour museum",
        subject="Mira",
        relation="works_at",
        object="harbour museum",
        importance=7,
        entities=[{"type": "org", "label": "harbour museum"}],
    ),
    _fact(
        "Mira has a dog called Pepper.",
        "My dog Pepper",
        subtype="relationship",
        subject="Mira",
        relation="has_pet",
        object="Pepper",
        entities=[{"type": "thing", "label": "Pepper"}],
    ),
    _fact("Mira walks along the Elbe with Pepper every morning.", "along the Elbe", subtype="habit"),
]

SECOND_FACTS = [
    _fact(
        "Mira sings in the choir Elbe Singers, which rehearses on Tuesdays.", "Elbe Singers", subtype="habit"
    ),
    _fact(
        "Mira works at the maritime archive.",
        "maritime archive",
        subject="Mira",
        relation="works_at",
        object="maritime archive",
        when="since last Monday",
        importance=7,
        entities=[{"type": "org", "label": "maritime archive"}],
    ),
    _fact(
        "Mira has a sister called Lea.",
        "my sister Lea",
        subtype="relationship",
        subject="Mira",
        relation="sister",
        object="Lea",
        entities=[{"type": "person", "label": "Lea"}],
    ),
]


def _trust(text: str, words: str, **more: object) -> Json:
    return {
        "text": text,
        "evidence": [f"@{words}"],
        "importance": 8,
        "valence": "warmth",
        "intensity": 0.7,
        "shared_references": ["the lonely evenings"],
        "user_values": ["honesty"],
        "user_struggles": ["lonely evenings"],
        "communication_style": ["unhurried"],
        **more,
    }


FIRST_TRUST = "Mira trusts Nova with her lonely evenings."
SECOND_TRUST = "Mira's trust in Nova made it easier to open up to her sister Lea."

FIRST_MEANING: Json = {
    "identity_notes": [
        {
            "text": "Nova slows down when somebody trusts her.",
            "evidence": ["@I slow down"],
            "type": "realization",
        }
    ],
    "topics": [
        {
            "topic": "Joining a choir",
            "feeling": "excitement",
            "conclusion": "It scares Mira and will give her evenings a shape; she joins one.",
            "evidence": ["@about a choir"],
        }
    ],
    "tones": [
        {
            "text": "Keep answers short in the evening; Mira is tired then.",
            "evidence": ["@keep your answers short"],
        }
    ],
}

SECOND_MEANING: Json = {
    "identity_notes": [],
    "topics": [
        {
            "topic": "The choir",
            "feeling": "joy",
            "conclusion": "The first rehearsal was terrifying and wonderful.",
            "evidence": ["@Terrifying and wonderful"],
        }
    ],
    "tones": [{"text": "Longer answers are welcome in the evening again.", "evidence": ["@long-winded"]}],
}

FIRST_SUMMARY = (
    "Mira told about her move to Hamburg, lonely evenings and her dog Pepper, and decided to join a choir."
)
SECOND_SUMMARY = (
    "Mira joined the Elbe Singers, changed to the maritime archive and told her sister about her evenings."
)


def _rule(schema: str, words: str, answer: Json) -> Rule:
    return Rule(contains=(f'"{schema}"', words), answer=answer)


RULES = (
    _rule(
        "synthesize_session",
        "Elbe Singers",
        {
            "anchors": [
                _trust(SECOND_TRUST, "my sister Lea", change="changed", of="a1"),
            ],
            "facts": SECOND_FACTS,
            "summary": SECOND_SUMMARY,
            **SECOND_MEANING,
        },
    ),
    _rule(
        "synthesize_session",
        "harbour museum",
        {
            "anchors": [_trust(FIRST_TRUST, "Lonely in the evenings", change="strengthened", of="a1")],
            "facts": FIRST_FACTS,
            "summary": FIRST_SUMMARY,
            **FIRST_MEANING,
        },
    ),
    _rule(
        "synthesize_turn",
        f" | user | {USER}: ",
        {
            "insights": [
                _trust(FIRST_TRUST, "Lonely in the evenings"),
                _trust(FIRST_TRUST, "the only one who knew"),
            ],
            "facts": [*FIRST_FACTS, *SECOND_FACTS],
            **{name: [*FIRST_MEANING[name], *SECOND_MEANING[name]] for name in FIRST_MEANING},  # type: ignore[misc]
        },
    ),
)
"""The latest session first, since a request about it may show earlier turns."""
