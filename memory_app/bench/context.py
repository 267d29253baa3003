"""Quality of the context window: whether the turns that hold the answer stand in the text that the model would read.

Conversations go through the product's own way from turns to memories; then each question is asked for a window of each
budget, without a session, so that nothing stands in it only because it was said last. A turn is shown where its words
stand whole in one line of the window, or where a line shows a passage of it. Beside it stand two windows that need no
memory: the end of the chat, as far as the budget goes, and the ten best turns of recall.
"""

from __future__ import annotations

import re
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memory_app import MemoryApp, Scope
from memory_app.bench import retrieval, stage
from memory_app.bench.conversation import Conversation, Message, Question
from memory_app.bench.retrieval import AGENT
from memory_app.bench.stage import Say
from memory_app.language.budget import count_tokens
from memory_app.language.text import normalise
from memory_app.records.quote import CONTINUED, LINE_BREAK, quoted
from memory_app.records.records import Tier

BUDGETS = (500, 1_000, 2_000, 4_000)
"""Tokens of a window."""

TOP_TURNS = 10

PASSAGE_CHARS = 60
"""Fewest characters of a turn, normalised, that count as a passage of it; the whole of a shorter turn always does."""

WINDOW, CHAT_END, TOP = "window", "end of the chat", "top ten turns"

_CUT = "…"
_CONTINUED = re.compile(rf"\n{re.escape(CONTINUED.rstrip())} ?")
_LABEL = re.compile(r"^(?:<[^>]*>)?\W*?(?:\[[^\]]*\]\s*)?(?:[^:]{1,60}:\s)?")
"""What a line says before the words of a turn: a tag or bullet, the time, the speaker."""


@dataclass(frozen=True, slots=True)
class Shown:
    """One question and one text: how many of its evidence turns stand in it, and how long it is."""

    question: Question
    shown: int
    tokens: int


@dataclass(frozen=True, slots=True)
class _Asked:
    """A conversation that is loaded, with the turns of every question at hand."""

    memory: MemoryApp
    conversation: Conversation
    turns: Mapping[str, Message]
    ids: Mapping[Any, str]


def measure(memory: MemoryApp, conversations: Sequence[Conversation], *, say: Say) -> Mapping[str, Any]:
    """Shares of evidence in the text and tokens used, for each kind of text and budget."""
    shown: dict[tuple[str, int], list[Shown]] = defaultdict(list)
    for conversation in conversations:
        say(f"{conversation.name}: loading {len(conversation.sessions)} sessions")
        asked = _Asked(
            memory,
            conversation,
            turns={turn.id: turn for session in conversation.sessions for turn in session.turns},
            ids=retrieval.load(memory, conversation),
        )
        stage.drain(memory)
        say(f"{conversation.name}: asking for {len(conversation.questions)} × {len(BUDGETS)} windows")
        for question in conversation.questions:
            _ask(asked, question, shown)
    return {
        "embedder": memory.runtime.embedder.model,
        "conversations": [conversation.name for conversation in conversations],
        "texts": [
            {"text": text, "budget": budget, **_figures(of_text)} for (text, budget), of_text in shown.items()
        ],
        "by_category": _by_category(shown),
    }


def is_shown(turn: str, lines: Iterable[str]) -> bool:
    """Whether ``turn`` stands whole in one of ``lines``, or a passage of it does where the line was cut."""
    # As the window writes it, with entities for what could pass for a tag; its mark for a line break is a blank here.
    words = _unbroken(quoted(turn))
    return any(words in _unbroken(line) or _shows_passage(line, words) for line in lines)


def _unbroken(line: str) -> str:
    return normalise(line.replace(LINE_BREAK, " "))


def _shows_passage(line: str, words: str) -> bool:
    # A line that was not cut has to hold the whole turn.
    if _CUT not in line:
        return False
    pieces = (_unbroken(piece) for piece in _LABEL.sub("", line).split(_CUT))
    return any(len(piece) >= PASSAGE_CHARS and piece in words for piece in pieces)


def _ask(asked: _Asked, question: Question, shown: dict[tuple[str, int], list[Shown]]) -> None:
    scope = Scope(AGENT, asked.conversation.name)
    for budget in BUDGETS:
        window = asked.memory.context(scope, question.text, budget_tokens=budget)
        shown[WINDOW, budget].append(_shown(asked, question, text=window.text, tokens=window.tokens))
        end = _end_of_chat(asked.conversation, budget)
        shown[CHAT_END, budget].append(_shown(asked, question, text=end, tokens=count_tokens(end)))
    top = _top_turns(asked, scope, question)
    shown[TOP, 0].append(_shown(asked, question, text=top, tokens=count_tokens(top)))


def _shown(asked: _Asked, question: Question, *, text: str, tokens: int) -> Shown:
    # A turn that keeps its layout stands on several lines.
    lines = _CONTINUED.sub(LINE_BREAK, text).splitlines()
    evidence = (asked.turns[id].text for id in question.evidence)
    return Shown(question, sum(is_shown(turn, lines) for turn in evidence), tokens)


def _end_of_chat(conversation: Conversation, budget: int) -> str:
    """The last turns that fit, oldest first, as a chat without memory would send them."""
    turns = [turn for session in conversation.sessions for turn in session.turns]
    lines: list[str] = []
    used = 0
    for turn in reversed(turns):
        line = _line(turn)
        used += count_tokens(line)
        if used > budget:
            break
        lines.append(line)
    return "\n".join(reversed(lines))


def _top_turns(asked: _Asked, scope: Scope, question: Question) -> str:
    recalled = asked.memory.recall(scope, question.text, limit=TOP_TURNS, tiers=(Tier.DAILY_LOGS,))
    ids = [asked.ids[hit.id] for hit in recalled.memories if hit.id in asked.ids]
    return "\n".join(_line(asked.turns[id]) for id in ids)


def _line(turn: Message) -> str:
    return f"{turn.speaker or turn.role.value}: {quoted(turn.text)}"


def _figures(shown: Sequence[Shown]) -> dict[str, Any]:
    """``evidence``: share of evidence turns shown; ``mean``: the mean over questions of the share of theirs, in which
    one with thirty turns counts like any other; ``whole``: share of questions with all of theirs."""
    counted = [result for result in shown if not result.question.apart]
    evidence = sum(len(result.question.evidence) for result in counted)
    tokens = [result.tokens for result in counted]
    return {
        "questions": len(counted),
        "evidence": _share(sum(result.shown for result in counted), evidence),
        "mean": _share(sum(result.shown / len(result.question.evidence) for result in counted), len(counted)),
        "whole": _share(
            sum(result.shown == len(result.question.evidence) for result in counted), len(counted)
        ),
        "tokens_mean": round(statistics.fmean(tokens)) if tokens else 0,
        "tokens_most": max(tokens, default=0),
    }


def _by_category(shown: Mapping[tuple[str, int], Sequence[Shown]]) -> dict[str, dict[int, float | None]]:
    """Share of evidence turns shown by the window, by the category of the question and the budget."""
    shares: dict[str, dict[int, float | None]] = defaultdict(dict)
    for budget in BUDGETS:
        by_category: dict[str, list[Shown]] = defaultdict(list)
        for result in shown.get((WINDOW, budget), ()):
            by_category[result.question.category].append(result)
        for category, results in sorted(by_category.items()):
            evidence = sum(len(result.question.evidence) for result in results)
            shares[category][budget] = _share(sum(result.shown for result in results), evidence)
    return dict(shares)


def _share(part: float, whole: int) -> float | None:
    return round(part / whole, 4) if whole else None
