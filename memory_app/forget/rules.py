"""Decide what goes with what is forgotten: memories that lose their last source, and those whose words came from it.

Pure. A memory that other sources still support stays, unless it holds something that only the forgotten part said.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from graphlib import CycleError, TopologicalSorter
from uuid import UUID

from memory_app.language.text import terms
from memory_app.records.records import STATED, Origin

_TOKEN = re.compile(r"\w+")

# Shorter words of Latin scripts are grammar ("of", "to") and would make every memory look as if it repeats the rest.
SHORTEST = 3
"""Letters of a word that can give something away."""


class Fate(IntEnum):
    """What becomes of a memory. `UNSUPPORTED` has no source left, but says nothing of what is forgotten."""

    KEPT = 0
    UNSUPPORTED = 1
    GONE = 2


@dataclass(frozen=True, slots=True)
class Kin:
    """A memory that rests on something forgotten, directly or through others, or that such a memory rests on.

    ``evidence`` are texts of turns that remain, ``parents`` the memories it was made of. ``has_own_evidence``: a turn
    that remains supports it and none of its parents. ``is_touched``: a turn that it rested on is forgotten.
    """

    id: UUID
    text: str
    origin: Origin
    is_merged: bool
    is_touched: bool
    parents: frozenset[UUID]
    evidence: tuple[str, ...]
    has_own_evidence: bool


def fates(
    kin: Mapping[UUID, Kin], *, gone: Collection[UUID], erased_text: str, by_turn: bool
) -> dict[UUID, Fate]:
    """The fate of each of ``kin`` when the memories ``gone`` and turns with ``erased_text`` are forgotten.

    ``by_turn``: what a person said is forgotten, so what rested on it alone came from it and goes too.
    """
    fate_of: dict[UUID, Fate] = dict.fromkeys(gone, Fate.GONE)
    # A memory's fate depends on what became of its parents.
    for id in _parents_first(kin):
        if id in fate_of:
            continue
        parents = kin[id].parents & kin.keys()
        gone_parents = {parent for parent in parents if fate_of.get(parent) is Fate.GONE}
        fate_of[id] = _fate(
            kin[id],
            gone_parents=[kin[parent].text for parent in gone_parents],
            other_parents=[kin[parent].text for parent in parents - gone_parents],
            erased_text=erased_text,
            by_turn=by_turn,
        )
    return fate_of


def _parents_first(kin: Mapping[UUID, Kin]) -> tuple[UUID, ...]:
    """Ids so that each stands behind those it was made of."""
    predecessors = {id: memory.parents & kin.keys() for id, memory in kin.items()}
    try:
        return tuple(TopologicalSorter(predecessors).static_order())
    except CycleError:
        # Links may lead in a circle. Ids are UUIDs of version 7, so this is the order of age.
        return tuple(sorted(kin))


def _fate(
    memory: Kin,
    *,
    gone_parents: Sequence[str],
    other_parents: Sequence[str],
    erased_text: str,
    by_turn: bool,
) -> Fate:
    if not gone_parents and not memory.is_touched:
        return Fate.KEPT
    # What somebody declared or imported needs no source. A merged row goes, but its declared parts come back.
    if memory.origin in STATED and not memory.is_merged:
        return Fate.KEPT
    erased = [erased_text, *gone_parents]
    sources = [*memory.evidence, *other_parents]
    if not sources:
        return Fate.GONE if by_turn or carries(memory.text, erased, ()) else Fate.UNSUPPORTED
    is_composed = memory.origin is Origin.SYNTHESIZED
    if memory.is_merged and not memory.has_own_evidence:
        # It may have the words of one part as they are, and then shares the fate of that part.
        if memory.text in other_parents:
            return Fate.KEPT
        if memory.text in gone_parents:
            return Fate.GONE
        is_composed = True
    # Each word of a composed text may come from the erased part. Another text is supported by a turn that remains and
    # may use other words, so only a name or a number counts.
    gives_away = carries if is_composed else names
    return Fate.GONE if gives_away(memory.text, erased, sources) else Fate.KEPT


def carries(text: str, erased: Iterable[str], sources: Iterable[str]) -> bool:
    """Does ``text`` hold a word of what is erased that none of its remaining ``sources`` has?"""
    return bool(_words(text) & _words(" ".join(erased)) - _words(" ".join(sources)))


def names(text: str, erased: Iterable[str], sources: Iterable[str]) -> bool:
    """Does ``text`` hold a name or a number of what is erased that none of its remaining ``sources`` has?"""
    # The sources fold all their words: somebody may have written the name in lower case there.
    return bool(_names(text) & _names(" ".join(erased)) - _folded(" ".join(sources)))


def _words(text: str) -> set[str]:
    # A word of two characters may say everything in Chinese or Japanese.
    return {term for term in terms(text) if len(term) >= SHORTEST or not term.isascii()}


def _names(text: str) -> set[str]:
    return {token.casefold() for token in _TOKEN.findall(text) if _may_be_name(token)}


def _may_be_name(token: str) -> bool:
    """A capital or a digit makes it one. The first word of a sentence counts too, which errs towards erasing."""
    return token != token.lower() or any(character.isdigit() for character in token)


def _folded(text: str) -> set[str]:
    return {token.casefold() for token in _TOKEN.findall(text)}
