"""What must go with what is forgotten: memories that lose their last source, and those whose words came from it.

Pure. A memory that others still support stays, unless it holds something that only the forgotten part said.
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

SHORTEST = 3
"""Letters of a word that can give something away; shorter ones are grammar."""


class Fate(IntEnum):
    """What becomes of a memory. `UNSUPPORTED` has no source left, but says nothing of what is forgotten."""

    KEPT = 0
    UNSUPPORTED = 1
    GONE = 2


@dataclass(frozen=True, slots=True)
class Kin:
    """A memory that rests on something forgotten, directly or through others, or that such a memory rests on.

    ``evidence`` are texts of turns that are left, ``parents`` the memories it was made of. ``has_own_evidence``: a turn
    that is left supports it and none of its parents. ``is_touched``: a turn that it rested on is forgotten.
    """

    id: UUID
    text: str
    origin: Origin
    is_merged: bool
    is_touched: bool
    parents: frozenset[UUID]
    evidence: tuple[str, ...]
    has_own_evidence: bool


def fates(kin: Mapping[UUID, Kin], *, gone: Collection[UUID], said: str, by_turn: bool) -> dict[UUID, Fate]:
    """The fate of each of ``kin`` when the memories ``gone`` and turns that said ``said`` are forgotten.

    ``by_turn``: what a person said is forgotten, so what rested on it alone came from it and goes too.
    """
    found: dict[UUID, Fate] = dict.fromkeys(gone, Fate.GONE)
    for id in _parents_first(kin):
        if id not in found:
            parents = [kin[parent] for parent in kin[id].parents if parent in kin]
            found[id] = _fate(kin[id], parents, found, said=said, by_turn=by_turn)
    return found


def _parents_first(kin: Mapping[UUID, Kin]) -> tuple[UUID, ...]:
    """Ids so that each stands behind those it was made of; where links lead in a circle, in the order of age."""
    ahead = {id: one.parents & kin.keys() for id, one in kin.items()}
    try:
        return tuple(TopologicalSorter(ahead).static_order())
    except CycleError:
        return tuple(sorted(kin))


def _fate(one: Kin, parents: Sequence[Kin], found: Mapping[UUID, Fate], *, said: str, by_turn: bool) -> Fate:
    lost = [parent.text for parent in parents if found.get(parent.id) is Fate.GONE]
    kept = [parent.text for parent in parents if found.get(parent.id) is not Fate.GONE]
    if not lost and not one.is_touched:
        return Fate.KEPT
    if not one.is_merged and one.origin in STATED:
        return Fate.KEPT
    sources = [*one.evidence, *kept]
    forgotten = [said, *lost]
    if not sources:
        return Fate.GONE if by_turn or carries(one.text, forgotten, ()) else Fate.UNSUPPORTED
    if one.is_merged and not one.has_own_evidence:
        if one.text in kept:
            return Fate.KEPT
        is_from_it = one.text in lost or carries(one.text, forgotten, sources)
        return Fate.GONE if is_from_it else Fate.KEPT
    if one.origin is Origin.SYNTHESIZED:
        return Fate.GONE if carries(one.text, forgotten, sources) else Fate.KEPT
    return Fate.GONE if names(one.text, forgotten, sources) else Fate.KEPT


def carries(text: str, forgotten: Iterable[str], sources: Iterable[str]) -> bool:
    """Does ``text`` hold a word of what is forgotten that none of its remaining ``sources`` has?"""
    return bool(_words(text) & _words(" ".join(forgotten)) - _words(" ".join(sources)))


def names(text: str, forgotten: Iterable[str], sources: Iterable[str]) -> bool:
    """Does ``text`` hold a name or a number of what is forgotten that none of its remaining ``sources`` has?"""
    return bool(_names(text) & _names(" ".join(forgotten)) - _folded(" ".join(sources)))


def _words(text: str) -> set[str]:
    return {term for term in terms(text) if len(term) >= SHORTEST or not term.isascii()}


def _names(text: str) -> set[str]:
    tokens = _TOKEN.findall(text)
    return {token.casefold() for token in tokens if token != token.lower() or any(c.isdigit() for c in token)}


def _folded(text: str) -> set[str]:
    return {token.casefold() for token in _TOKEN.findall(text)}
