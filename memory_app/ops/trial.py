"""Try the configured language model on a short invented conversation, and judge what is kept of its answers.

The questions, the reading of answers and the guards are those of the workers; nothing is stored. What is expected and
what would be wrong stands beside the conversation in `trial_talk.toml`.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from functools import partial
from importlib.resources import files
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from memory_app.errors import BadModelOutput
from memory_app.extraction.llm import Asking, Provenance, Talk, synthesize_session, synthesize_turns
from memory_app.language.text import terms
from memory_app.providers.chat import LanguageModel, Usage
from memory_app.records.kinds import KINDS
from memory_app.records.records import Role, Statement, Turn
from memory_app.turns.batch import EARLIER_TURNS

ENOUGH_COVERAGE, ENOUGH_PRECISION = 0.7, 0.8
"""From here on a model is good enough: it finds seven facts of ten, and one of five may be beside the point."""

Rejected = Sequence[tuple[str, str]]


class Verdict(StrEnum):
    """What a statement that was kept is worth. Of kinds other than facts nothing is expected."""

    EXPECTED = "expected"
    MORE = "not expected"
    WRONG = "wrong"
    BESIDE = "beside the facts"


@dataclass(frozen=True, slots=True)
class Kept:
    """A statement that passed the guards; ``about`` names what it was recognised as."""

    step: str
    kind: str
    text: str
    verdict: Verdict
    about: str = ""


@dataclass(frozen=True, slots=True)
class Dropped:
    """A statement that a guard rejected, and why."""

    step: str
    text: str
    reason: str


@dataclass(frozen=True, slots=True)
class Trial:
    """What came of it. ``precision``: expected facts among those kept; ``coverage``: those among all expected; 0–1.

    ``unreadable`` counts items that were no statements; ``failed`` are steps without an answer of use, with the reason.
    """

    model: str
    kept: tuple[Kept, ...]
    dropped: tuple[Dropped, ...]
    unreadable: Mapping[str, int]
    failed: Mapping[str, str]
    missed: tuple[str, ...]
    precision: float
    coverage: float
    calls: int
    seconds: float
    tokens_in: int
    tokens_out: int

    @property
    def wrong(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(item.about for item in self.kept if item.verdict is Verdict.WRONG))

    @property
    def is_enough(self) -> bool:
        is_good = self.coverage >= ENOUGH_COVERAGE and self.precision >= ENOUGH_PRECISION
        return is_good and not self.wrong and not self.failed


@dataclass(frozen=True, slots=True)
class _Mark:
    """By its ``words`` a statement is recognised as being ``about`` something."""

    about: str
    words: frozenset[str]

    def is_said_by(self, text: str) -> bool:
        return self.words <= terms(text).keys()


@dataclass(frozen=True, slots=True)
class Conversation:
    """The conversation in ``batches``, and the marks by which what is kept of it is judged."""

    user: str
    agent: str
    batches: tuple[tuple[Turn, ...], ...]
    expected: tuple[_Mark, ...]
    wrong: tuple[_Mark, ...]

    def talk(self, turns: Sequence[Turn], earlier: Sequence[Turn] = ()) -> Talk:
        return Talk(tuple(turns), self.user, self.agent, ZoneInfo("UTC"), earlier=tuple(earlier))


def load_conversation() -> Conversation:
    """Read the conversation that ships with the product."""
    text = files("memory_app.ops").joinpath("trial_talk.toml").read_text(encoding="utf-8")
    table = tomllib.loads(text)
    return Conversation(
        user=table["user"],
        agent=table["agent"],
        batches=tuple(_batches(table)),
        expected=tuple(map(_mark, table["expected"])),
        wrong=tuple(map(_mark, table["wrong"])),
    )


def _batches(table: Mapping[str, Any]) -> Iterator[tuple[Turn, ...]]:
    began: datetime = table["began"]
    names = {Role.USER: table["user"], Role.ASSISTANT: table["agent"]}
    seq = 0
    for batch in table["batch"]:
        turns = []
        for role, text in batch["turns"]:
            seq += 1
            speaker = names[Role(role)]
            at = began + timedelta(minutes=seq)
            turns.append(Turn(UUID(int=seq), "trial", seq, Role(role), speaker, text, at))
        yield tuple(turns)


def _mark(fields: Mapping[str, Any]) -> _Mark:
    return _Mark(fields["about"], frozenset(terms(" ".join(fields["words"])).keys()))


def try_model(
    small: LanguageModel, large: LanguageModel, *, conversation: Conversation, say: Callable[[str], None]
) -> Trial:
    """Ask ``small`` about the turns and ``large`` about the whole session; ``say`` tells each step.

    Raises what `Chat.complete` does where the server is away; an answer that is of no use is part of the result.
    """
    notes = _Notes(conversation)
    earlier: tuple[Turn, ...] = ()
    for number, batch in enumerate(conversation.batches, 1):
        step = f"turns {number}"
        say(f"asking {small.model} about {len(batch)} turns")
        notes.note(step, partial(_of_turns, notes.asking(small), conversation.talk(batch, earlier)))
        earlier = batch[-EARLIER_TURNS:]
    whole = conversation.talk([turn for batch in conversation.batches for turn in batch])
    say(f"asking {large.model} about the whole session")
    notes.note("session", partial(_of_session, notes.asking(large), whole))
    return notes.trial(small.model if small.model == large.model else f"{small.model}, {large.model}")


@dataclass(frozen=True, slots=True)
class _Answer:
    statements: Sequence[Statement]
    rejected: Rejected
    provenance: Provenance


def _of_turns(asking: Asking, talk: Talk) -> _Answer:
    made = synthesize_turns(asking, talk)
    return _Answer(made.extraction.statements, made.rejected, made.provenance)


def _of_session(asking: Asking, talk: Talk) -> _Answer:
    made = synthesize_session(asking, talk)
    statements = [*made.statements, *([made.summary] if made.summary else [])]
    return _Answer(statements, made.rejected, made.provenance)


class _Notes:
    """What the steps gave so far."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation
        self._kept: list[Kept] = []
        self._dropped: list[Dropped] = []
        self._unreadable: Counter[str] = Counter()
        self._failed: dict[str, str] = {}
        self._usages: list[Usage] = []

    def asking(self, model: LanguageModel) -> Asking:
        # Counted as they are made: those for an answer of no use were paid for as well.
        return Asking(model, on_usage=self._usages.append)

    def note(self, step: str, ask: Callable[[], _Answer]) -> None:
        try:
            answer = ask()
        except BadModelOutput as error:
            self._failed[step] = error.message
            return
        self._kept += [self._judged(step, statement) for statement in answer.statements]
        self._dropped += [Dropped(step, text, reason) for text, reason in answer.rejected]
        named = {reason for _, reason in answer.rejected}
        dropped = answer.provenance.dropped
        self._unreadable.update({name: count for name, count in dropped.items() if name not in named})

    def _judged(self, step: str, statement: Statement) -> Kept:
        text, kind = statement.text, statement.kind
        for mark in self._conversation.wrong:
            if mark.is_said_by(text):
                return Kept(step, kind, text, Verdict.WRONG, mark.about)
        # Anchors, summaries and the like are in the model's own words: none is expected, and none is too much.
        if not KINDS[kind].is_curated:
            return Kept(step, kind, text, Verdict.BESIDE)
        about = ", ".join(mark.about for mark in self._conversation.expected if mark.is_said_by(text))
        return Kept(step, kind, text, Verdict.EXPECTED if about else Verdict.MORE, about)

    def trial(self, model: str) -> Trial:
        facts = [item for item in self._kept if KINDS[item.kind].is_curated]
        right = [item for item in facts if item.verdict is Verdict.EXPECTED]
        expected = self._conversation.expected
        missed = tuple(
            mark.about for mark in expected if not any(mark.is_said_by(item.text) for item in right)
        )
        return Trial(
            model=model,
            kept=tuple(self._kept),
            dropped=tuple(self._dropped),
            unreadable=dict(self._unreadable),
            failed=dict(self._failed),
            missed=missed,
            precision=len(right) / len(facts) if facts else 0.0,
            coverage=1 - len(missed) / len(expected),
            calls=len(self._usages),
            seconds=round(sum(usage.seconds for usage in self._usages), 2),
            tokens_in=sum(usage.tokens_in for usage in self._usages),
            tokens_out=sum(usage.tokens_out for usage in self._usages),
        )
