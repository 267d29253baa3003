"""Rules of a sleep cycle: its options and steps, the summary of a cluster, and what counts as a pattern. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
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


def checked_options(options: Mapping[str, object], defaults: SleepOptions) -> SleepOptions:
    """``options`` by name over ``defaults``; None means the default.

    Raises `InvalidInput` naming the option that is unknown, out of range or contradicts another.
    """
    names = SleepOptions.__slots__
    for name in options:
        if name not in names:
            raise InvalidInput(f"{name}: unknown option; one of {', '.join(names)}", field=name)
    values = {name: getattr(defaults, name) for name in names}
    for name, value in options.items():
        if value is not None:
            values[name] = _checked(name, value)
    checked = SleepOptions(**values)
    if checked.min_cluster_size > checked.max_inspected:
        raise InvalidInput(
            "min_cluster_size: larger than max_inspected, so no cluster could be found",
            field="min_cluster_size",
        )
    # Force overrules the default cool-down; an explicit one contradicts it.
    if checked.force and options.get("cool_down_seconds"):
        raise InvalidInput("force: contradicts cool_down_seconds; give one of them", field="force")
    return checked


def _checked(name: str, value: object) -> object:
    if name in ("force", "dry_run"):
        return _flag(name, value)
    if name == "trigger":
        if not isinstance(value, str) or value not in set(Trigger):
            raise InvalidInput(f"{name}: one of {', '.join(Trigger)}", field=name)
        return Trigger(value)
    return _number(name, value)


def _flag(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise InvalidInput(f"{name}: true or false", field=name)
    return value


def _number(name: str, value: object) -> int | float:
    low, high = RANGES[name]
    is_whole = name not in ("similarity", "min_strength", "cool_down_seconds")
    types = int if is_whole else int | float
    # To Python, True is the number 1.
    if isinstance(value, types) and not isinstance(value, bool) and low <= value <= high:
        return value
    kind = "a whole number" if is_whole else "a number"
    raise InvalidInput(f"{name}: {kind} of {low:g} to {high:g}", field=name)


# --- summaries ----------------------------------------------------------------------------------------------

_SENTENCE = re.compile(r"[^.!?\u3002\uff01\uff1f\n]+[.!?\u3002\uff01\uff1f]*[\"'\u201d\u2019)]*\s*")


def share_a_sentence(first: str, second: str) -> bool:
    """Return whether both contain the same sentence. Then each may say more and still be about the same."""
    return not _sentences(first).isdisjoint(_sentences(second))


def _sentences(text: str) -> set[str]:
    return {canonical_key(match[0]) for match in _SENTENCE.finditer(text)}


def summary(texts: Sequence[str], *, limit: int) -> str:
    """Return the longest text and the sentences of the others that add something, up to ``limit`` characters.

    All words are those of the sources, so that nothing is made up. The longest text stands whole, whatever its length.
    """
    # The text itself decides between two of one length, so that a dry run and the run say the same.
    longest, *others = sorted(dict.fromkeys(texts), key=lambda text: (-len(text), text))
    result, words = longest, set(terms(longest))
    for text in others:
        for match in _SENTENCE.finditer(text):
            sentence = match[0].strip()
            # A later, shorter one may still fit.
            has_room = len(result) + 1 + len(sentence) <= limit
            if has_room and _adds_to(words, sentence):
                result = f"{result} {sentence}"
                words |= set(terms(sentence))
    return result


def _adds_to(words: AbstractSet[str], sentence: str) -> bool:
    """Return whether more of the sentence's words are new than a merge may lose."""
    own = set(terms(sentence))
    return len(own - words) > LOSS_ALLOWED * len(own)


# --- patterns -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Topic:
    """An entity, the memories that mention it, and when each of these began to be true."""

    entity_id: int
    label: str
    memories: tuple[UUID, ...]
    at: tuple[datetime, ...]


def is_pattern(topic: Topic, *, weeks: int, memories: int, excluding: frozenset[str]) -> bool:
    """Return whether enough memories mention the topic, in enough different weeks, over as long a time.

    ``excluding`` are names in lower case that are mentioned by nature: those of the speakers.
    """
    if len(set(topic.memories)) < memories or topic.label.casefold() in excluding:
        return False
    # With the year: week 1 comes every year.
    calendar_weeks = {at.isocalendar()[:2] for at in topic.at}
    # Two neighbouring days may lie in two weeks, so the time between first and last counts too.
    is_long = max(topic.at) - min(topic.at) >= timedelta(weeks=weeks - 1)
    return is_long and len(calendar_weeks) >= weeks


def pattern_text(label: str, since: datetime) -> str:
    """Return the sentence of a pattern, always in the same words, so that a second cycle finds it stored."""
    return f"{label} keeps coming up, since {MONTHS[since.month - 1]} {since.year}."
