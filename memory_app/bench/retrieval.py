"""Retrieval quality: conversations through the product's own accept and index path, then one recall per question.

Retrieved turns are compared with the turns that hold the answer. Each conversation is a user of its own.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from uuid import UUID

from memory_app import MemoryApp, NewTurn, Scope
from memory_app.bench import textbook
from memory_app.bench.conversation import Conversation, Question, Stretch
from memory_app.bench.figures import Ranking, mean_figures, rank_figures, time_figures
from memory_app.bench.stage import Say
from memory_app.records.records import Tier
from memory_app.turns import index

AGENT = "assistant"
RETRIEVED = 20
BASELINES = ("keyword", "vector")
"""Arms alone, measured in the same run."""

TEXTBOOK = "BM25"
"""What is found without us: see `textbook`."""

BATCH = 100
"""Turns recorded in one call."""


@dataclass(frozen=True, slots=True)
class Answered:
    """A question, how well it was answered with a preset, and how long that took."""

    conversation: str
    question: Question
    preset: str
    ranking: Ranking
    seconds: float


def measure(
    memory: MemoryApp, conversations: Sequence[Conversation], *, preset: str, say: Say
) -> Mapping[str, object]:
    """Figures for ``preset``, the `BASELINES` and the `TEXTBOOK`: overall, by category, and which stand apart."""
    presets = tuple(dict.fromkeys((preset, *BASELINES)))
    answered: list[Answered] = []
    turns = 0
    for conversation in conversations:
        say(f"{conversation.name}: loading {len(conversation.sessions)} sessions")
        ids = load(memory, conversation)
        turns += len(ids)
        say(f"{conversation.name}: asking {len(conversation.questions)} questions")
        answered += [
            _ask(memory, conversation, question, ids, name)
            for question in conversation.questions
            for name in presets
        ]
        answered += _textbook(conversation)
    return {
        "embedder": memory.runtime.embedder.model,
        "preset": preset,
        "conversations": [conversation.name for conversation in conversations],
        "turns": turns,
        "presets": {
            name: _report([a for a in answered if a.preset == name]) for name in (*presets, TEXTBOOK)
        },
    }


def load(memory: MemoryApp, conversation: Conversation) -> Mapping[UUID, str]:
    """Record and index a conversation; the data set's ids by turn id."""
    ids: dict[UUID, str] = {}
    for session in conversation.sessions:
        ids |= _record(memory, Scope(AGENT, conversation.name, session.name), session)
    index.index_turns(memory.runtime, most_batches=len(ids) // memory.runtime.settings.index.batch + 2)
    return ids


def _record(memory: MemoryApp, scope: Scope, session: Stretch) -> dict[UUID, str]:
    ids: dict[UUID, str] = {}
    for place in range(0, len(session.turns), BATCH):
        said = session.turns[place : place + BATCH]
        new = [NewTurn(turn.role, turn.text, speaker=turn.speaker, at=turn.at) for turn in said]
        tickets = memory.record_all(scope, new)
        ids |= {ticket.id: turn.id for ticket, turn in zip(tickets, said, strict=True)}
    return ids


def _ask(
    memory: MemoryApp, conversation: Conversation, question: Question, ids: Mapping[UUID, str], preset: str
) -> Answered:
    began = time.perf_counter()
    found = memory.recall(
        Scope(AGENT, conversation.name),
        question.text,
        limit=RETRIEVED,
        tiers=(Tier.DAILY_LOGS,),
        preset=preset,
    )
    seconds = time.perf_counter() - began
    ranked = [ids[hit.id] for hit in found.memories if isinstance(hit.id, UUID) and hit.id in ids]
    ranking = rank_figures(ranked, question.evidence, sessions=conversation.session_of)
    return Answered(conversation.name, question, preset, ranking, seconds)


def _textbook(conversation: Conversation) -> list[Answered]:
    said = [(turn.id, turn.text) for session in conversation.sessions for turn in session.turns]
    collection = textbook.collected(said)
    answered = []
    for question in conversation.questions:
        began = time.perf_counter()
        found = textbook.best(collection, question.text, limit=RETRIEVED)
        seconds = time.perf_counter() - began
        ranking = rank_figures(found, question.evidence, sessions=conversation.session_of)
        answered.append(Answered(conversation.name, question, TEXTBOOK, ranking, seconds))
    return answered


def _report(answered: Sequence[Answered]) -> Mapping[str, object]:
    counted = [a for a in answered if not a.question.apart]
    by_category: dict[str, list[Ranking]] = defaultdict(list)
    by_conversation: dict[str, list[Ranking]] = defaultdict(list)
    for one in answered:
        by_category[one.question.category].append(one.ranking)
    for one in counted:
        by_conversation[one.conversation].append(one.ranking)
    return {
        "overall": asdict(mean_figures([a.ranking for a in counted])),
        "by_category": {
            name: asdict(mean_figures(rankings)) for name, rankings in sorted(by_category.items())
        },
        "by_conversation": {
            name: asdict(mean_figures(rankings)) for name, rankings in by_conversation.items()
        },
        "apart": sorted({a.question.category for a in answered if a.question.apart}),
        "recall_ms": asdict(time_figures([a.seconds for a in answered])) if answered else None,
    }
