"""A gate for retrieval on a conversation of our own: what the presets are tuned for must not get lost unnoticed.

Small on purpose: the figures of a real benchmark are measured with ``memory bench retrieval``.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from memory_app import MemoryApp
from memory_app.bench.conversation import Conversation, Message, Question, Stretch
from memory_app.bench.retrieval import measure
from memory_app.providers.embedders import WordLlamaEmbedder
from memory_app.records.records import Role
from memory_app.runtime import Runtime

SESSIONS = {
    "kitchen": (
        datetime(2025, 3, 8, 18, 0, tzinfo=UTC),
        (
            ("Mira", "Hi Joost! The new oven finally came, so I baked rye bread on Thursday."),
            ("Joost", "Lovely. Did the crust hold this time?"),
            (
                "Mira",
                "Yes, after I put a bowl of water underneath. The sourdough is called Gustav, by the way.",
            ),
            ("Joost", "Ha. Mine died in January because I forgot it in the fridge of the office."),
            ("Mira", "What are you cooking these days?"),
            (
                "Joost",
                "Mostly lentils. My doctor said my cholesterol is too high, so no butter until summer.",
            ),
            ("Mira", "Oh no. Is your mother helping you with recipes?"),
            ("Joost", "She sends me one every Sunday. She learned them in Surabaya, where she grew up."),
            ("Mira", "I would love to try her peanut sauce again."),
            ("Joost", "Then come over on the twelfth, I will make gado-gado."),
        ),
    ),
    "boats": (
        datetime(2025, 5, 17, 9, 30, tzinfo=UTC),
        (
            ("Joost", "Big news: I bought a wooden sailing boat from an old man in Hoorn!"),
            ("Mira", "You? You get seasick on a ferry."),
            ("Joost", "I take pills. She is called Albatros and needs a new mast."),
            ("Mira", "How much did you pay for her?"),
            ("Joost", "Four thousand two hundred, with the trailer. The mast will be another nine hundred."),
            ("Mira", "And who teaches you to sail?"),
            ("Joost", "Femke from the harbour. She won the regatta in Medemblik twice."),
            ("Mira", "I cannot come before June, I have my exams for the nursing school."),
            ("Joost", "No hurry, the varnish has to dry for three weeks anyway."),
            ("Mira", "Send pictures! And wear a life vest, please."),
        ),
    ),
    "moving": (
        datetime(2025, 8, 2, 20, 15, tzinfo=UTC),
        (
            ("Mira", "I passed everything! From September I work at the children's ward in Leiden."),
            ("Joost", "Congratulations! Will you move there?"),
            ("Mira", "Yes, into a flat above a bicycle shop, with a tiny balcony for my tomatoes."),
            ("Joost", "What happens to Pluis? Is the landlord fine with a cat?"),
            ("Mira", "He has two himself. But Pluis hates the stairs, she is fourteen now."),
            ("Joost", "Do you need help with the piano?"),
            (
                "Mira",
                "I sold it to my cousin Teun. I will learn the ukulele instead, it fits on the balcony.",
            ),
            ("Joost", "We capsized last week, by the way. Femke laughed for an hour."),
            ("Mira", "Is the boat all right?"),
            ("Joost", "A scratch at the bow. My phone is at the bottom of the IJsselmeer, though."),
        ),
    ),
    "winter": (
        datetime(2025, 12, 14, 16, 45, tzinfo=UTC),
        (
            ("Joost", "My blood values are fine again, so there is butter on my bread."),
            ("Mira", "Wonderful! Night shifts are killing me, but the children are sweet."),
            ("Joost", "Are you coming for Christmas?"),
            ("Mira", "I work on the twenty-fifth. I could come on New Year's Eve with the late train."),
            ("Joost", "Then we eat fondue. Femke comes too; we have been together since October."),
            ("Mira", "I knew it! Since the capsizing?"),
            ("Joost", "More or less. She moved her workshop into my barn."),
            ("Mira", "What does she build there?"),
            ("Joost", "Paddles and oars of ash wood. A rowing club in Hoorn ordered thirty."),
            ("Mira", "Please ask her for a tiny one, as a spoon for Gustav."),
        ),
    ),
}

QUESTIONS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("What is Mira's sourdough called?", ("kitchen:3",)),
    ("Why did Joost give up butter?", ("kitchen:6",)),
    ("Where did Joost's mother grow up?", ("kitchen:8",)),
    ("What did Joost buy in Hoorn?", ("boats:1",)),
    ("How much did the boat cost?", ("boats:5",)),
    ("Who teaches Joost to sail?", ("boats:7",)),
    ("What is the name of Joost's boat?", ("boats:3",)),
    ("Where does Mira work since September?", ("moving:1",)),
    ("What does Mira live above?", ("moving:3",)),
    ("How old is Mira's cat?", ("moving:5",)),
    ("To whom did Mira sell her piano?", ("moving:7",)),
    ("What did Joost lose when he capsized?", ("moving:10",)),
    ("Since when are Joost and Femke a couple?", ("winter:5",)),
    ("When can Mira visit at the end of December?", ("winter:4",)),
    ("What does Femke make in the barn?", ("winter:7", "winter:9")),
    ("Which instrument does Mira learn now?", ("moving:7",)),
)


def conversation() -> Conversation:
    stretches = tuple(
        Stretch(
            name,
            tuple(
                Message(
                    f"{name}:{place}",
                    Role.USER,
                    speaker=speaker,
                    text=words,
                    at=began + place * timedelta(minutes=1),
                )
                for place, (speaker, words) in enumerate(said, start=1)
            ),
        )
        for name, (began, said) in SESSIONS.items()
    )
    questions = tuple(Question(words, "all", frozenset(ids)) for words, ids in QUESTIONS)
    return Conversation("mira-and-joost", stretches, questions)


@pytest.fixture
def figures(runtime: Runtime, tenant: int) -> dict[str, dict[str, Any]]:
    """Overall figures by preset, through the product's own accept, index and recall."""
    memory = MemoryApp(replace(runtime, embedder=WordLlamaEmbedder()), tenant)
    measured: dict[str, Any] = dict(measure(memory, [conversation()], preset="balanced", say=lambda _: None))
    return {preset: found["overall"] for preset, found in measured["presets"].items()}


def test_balanced_finds_what_answers_and_more_than_either_arm_alone(
    figures: dict[str, dict[str, Any]],
) -> None:
    balanced, keyword, vector = (figures[name] for name in ("balanced", "keyword", "vector"))
    assert balanced["questions"] == len(QUESTIONS)
    assert balanced["recall_at_5"] >= 0.9
    assert balanced["recall_at_10"] >= 0.9
    assert balanced["recall_at_5"] > keyword["recall_at_5"]
    assert balanced["ndcg_at_10"] > keyword["ndcg_at_10"]
    assert balanced["recall_at_5"] > vector["recall_at_5"]
