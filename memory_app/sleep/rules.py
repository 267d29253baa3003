"""Rules of a sleep cycle: its options and steps, the summary of a cluster, and what counts as a pattern. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from uuid import UUID

from memory_app.errors import InvalidInput
from memory_app.language.calendar import MONTHS
from memory_app.language.text import canonical_key, terms
from memory_app.memories.merge_rules import LOSS_ALLOWED
from memory_app.records.run import Trigger


class Step(StrEnum):
    """What a cycle does, in this order."""

    MERGE = "merge"
    LINK = "link"
    NAME_PATTERNS = "name-patterns"
    PROMOTE = "promote"
    EVICT = "evict"


SCOPE_STEPS = frozenset(Step)
SESSION_STEPS = frozenset({Step.MERGE, Step.LINK, Step.EVICT})
"""Patterns need more than one session, and the end of the session promotes by rules of its own."""

CONSOLIDATION_STEPS = frozenset({Step.MERGE})


@dataclass(frozen=True, slots=True)
class MergeRules:
    """What a cycle may merge, beyond what holds for every merge: one kind, pairwise similar, no conflict, not pinned.

    ``contained_only``: of two memories one must say all that the other says. ``summarise``: the merged row says what
    each member says; otherwise it takes the longest text. ``rewrites_limit``: most merges behind a memory that may be
    merged again. ``parts_limit``: most members in one operation; a larger cluster is merged in several, each with the
    result of the one before.
    """

    kinds: frozenset[str]
    contained_only: bool = True
    summarise: bool = True
    rewrites_limit: int | None = None
    parts_limit: int | None = None


@dataclass(frozen=True, slots=True)
class SleepOptions:
    """What a cycle may do.

    ``similarity`` None takes the embedder's threshold for merging. Memories at least ``min_strength`` strong are firm.
    ``cool_down_seconds`` is the pause since the last cycle; ``force`` does without it.
    """

    max_clusters: int = 1_000
    max_inspected: int = 5_000
    min_cluster_size: int = 2
    similarity: float | None = None
    min_strength: float = 0.9
    summary_chars: int = 600
    cool_down_seconds: float = 0.0
    force: bool = False
    trigger: Trigger = Trigger.MANUAL
    dry_run: bool = False


RANGES: Mapping[str, tuple[float, float]] = {
    "max_clusters": (1, 10_000),
    "max_inspected": (2, 20_000),
    "min_cluster_size": (2, 100),
    "similarity": (0.5, 1),
    "min_strength": (0, 1),
    "summary_chars": (80, 8_000),
    "cool_down_seconds": (0, 30 * 86_400),
}
"""Least and greatest value of each option that is a number."""


def checked_options(given: Mapping[str, object], defaults: SleepOptions) -> SleepOptions:
    """``given`` over ``defaults``. Raises `InvalidInput` naming the option that is unknown, unfit or contradicts
    another."""
    known = SleepOptions.__slots__
    for name in given:
        if name not in known:
            raise InvalidInput(f"{name}: unknown option; one of {', '.join(known)}", field=name)
    values = {name: getattr(defaults, name) for name in known} | {
        name: _checked(name, value) for name, value in given.items() if value is not None
    }
    options = SleepOptions(**values)
    if options.min_cluster_size > options.max_inspected:
        raise InvalidInput(
            "min_cluster_size: larger than max_inspected, so no cluster could be found",
            field="min_cluster_size",
        )
    if options.force and given.get("cool_down_seconds"):
        raise InvalidInput("force: contradicts cool_down_seconds; give one of them", field="force")
    return options


def _checked(name: str, value: object) -> object:
    if name in ("force", "dry_run"):
        if not isinstance(value, bool):
            raise InvalidInput(f"{name}: true or false", field=name)
        return value
    if name == "trigger":
        if not isinstance(value, str) or value not in set(Trigger):
            raise InvalidInput(f"{name}: one of {', '.join(Trigger)}", field=name)
        return Trigger(value)
    return _number(name, value)


def _number(name: str, value: object) -> int | float:
    low, high = RANGES[name]
    is_whole = name not in ("similarity", "min_strength", "cool_down_seconds")
    fits = isinstance(value, int if is_whole else int | float) and not isinstance(value, bool)
    if not fits or not isinstance(value, int | float) or not low <= value <= high:
        kind = "a whole number" if is_whole else "a number"
        raise InvalidInput(f"{name}: {kind} of {low:g} to {high:g}", field=name)
    return value


# --- summaries ----------------------------------------------------------------------------------------------

_SENTENCE = re.compile(r"[^.!?\u3002\uff01\uff1f\n]+[.!?\u3002\uff01\uff1f]*[\"'\u201d\u2019)]*\s*")


def share_a_sentence(one: str, other: str) -> bool:
    """Do both say one sentence alike? Then each may add others without being about something else."""
    return not _sentences(one).isdisjoint(_sentences(other))


def _sentences(text: str) -> set[str]:
    return {canonical_key(match[0]) for match in _SENTENCE.finditer(text)}


def summary(texts: Sequence[str], *, limit: int) -> str:
    """The longest text, and the sentences of the others that say something it does not, up to ``limit`` characters.

    The words are those of the sources: nothing is worded anew, so nothing is made up. The longest text stands whole,
    whatever its length.
    """
    first, *others = sorted(dict.fromkeys(texts), key=lambda text: (-len(text), text))
    said, known = first, set(terms(first))
    for sentence in (match[0].strip() for text in others for match in _SENTENCE.finditer(text)):
        words = set(terms(sentence))
        fits = len(said) + 1 + len(sentence) <= limit
        if fits and words and len(words - known) > LOSS_ALLOWED * len(words):
            said, known = f"{said} {sentence}", known | words
    return said


# --- patterns -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Topic:
    """An entity, the memories that mention it and when each of those was true first."""

    entity_id: int
    label: str
    memories: tuple[UUID, ...]
    at: tuple[datetime, ...]


def is_pattern(topic: Topic, *, weeks: int, memories: int, besides: frozenset[str]) -> bool:
    """Does it come up again and again: in so many memories, in so many different weeks, over as long a time?

    Those in ``besides`` (the names of who talks, in lower case) come up by nature.
    """
    if len(set(topic.memories)) < memories or topic.label.casefold() in besides:
        return False
    seen = {at.isocalendar()[:2] for at in topic.at}
    return len(seen) >= weeks and max(topic.at) - min(topic.at) >= timedelta(weeks=weeks - 1)


def pattern_text(label: str, since: datetime) -> str:
    """The same words each time, so that a pattern is known again."""
    return f"{label} keeps coming up, since {MONTHS[since.month - 1]} {since.year}."
