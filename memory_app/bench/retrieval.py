"""Retrieval quality: conversations through the product's own accept and index path, then one recall per question.

Retrieved turns are compared with the turns that hold the answer. Each conversation is a user of its own.
"""

from __future__ import annotations

import math
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
        for question in conversation.questions:
            answered += [_ask(memory, conversation, question, ids=ids, preset=name) for name in presets]
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
    # At its usual limit it would leave the rest to a hint, and no worker is here to take it.
    batches = len(ids) // memory.runtime.settings.index.batch + 2
    index.index_turns(memory.runtime, most_batches=batches, most_seconds=math.inf)
    return ids


def _record(memory: MemoryApp, scope: Scope, session: Stretch) -> dict[UUID, str]:
    ids: dict[UUID, str] = {}
    for place in range(0, len(session.turns), BATCH):
        batch = session.turns[place : place + BATCH]
        new = [NewTurn(turn.role, turn.text, speaker=turn.speaker, at=turn.at) for turn in batch]
        tickets = memory.record_all(scope, new)
        ids |= {ticket.id: turn.id for ticket, turn in zip(tickets, batch, strict=True)}
    return ids


def _ask(
    memory: MemoryApp, conversation: Conversation, question: Question, *, ids: Mapping[UUID, str], preset: str
) -> Answered:
    began = time.perf_counter()
    recalled = memory.recall(
        Scope(AGENT, conversation.name),
        question.text,
        limit=RETRIEVED,
        # The labels of the data sets name turns; facts and entities have none.
        tiers=(Tier.DAILY_LOGS,),
        preset=preset,
    )
    seconds = time.perf_counter() - began
    ranked = [ids[hit.id] for hit in recalled.memories if isinstance(hit.id, UUID) and hit.id in ids]
    return Answered(
        conversation=conversation.name,
        question=question,
        preset=preset,
        ranking=rank_figures(ranked, question.evidence, sessions=conversation.session_of),
        seconds=seconds,
    )


def _textbook(conversation: Conversation) -> list[Answered]:
    texts = [(turn.id, turn.text) for session in conversation.sessions for turn in session.turns]
    collection = textbook.collected(texts)
    answered = []
    for question in conversation.questions:
        began = time.perf_counter()
        ranked = textbook.best(collection, question.text, limit=RETRIEVED)
        seconds = time.perf_counter() - began
        answered.append(
            Answered(
                conversation=conversation.name,
                question=question,
                preset=TEXTBOOK,
                ranking=rank_figures(ranked, question.evidence, sessions=conversation.session_of),
                seconds=seconds,
            )
        )
    return answered


def _report(answered: Sequence[Answered]) -> Mapping[str, object]:
    counted = [a for a in answered if not a.question.apart]
    by_category: dict[str, list[Ranking]] = defaultdict(list)
    by_conversation: dict[str, list[Ranking]] = defaultdict(list)
    # By category all of them; the category that stands apart is shown for itself.
    for answer in answered:
        by_category[answer.question.category].append(answer.ranking)
    for answer in counted:
        by_conversation[answer.conversation].append(answer.ranking)
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
