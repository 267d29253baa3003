"""Settlement: delete turns and memories of a scope together with what rests on them alone.

What else rests on them stays, goes or is retired as `memory_app.forget.rules` decides. The scope's row must be
locked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import Connection

from memory_app.forget.rows import erase
from memory_app.forget.rows.erase import Family, TurnRow
from memory_app.forget.rules import Fate, fates
from memory_app.memories.rows import merges
from memory_app.tenancy.rows import names

Counts = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Forgotten:
    """Rows by table, and the scopes whose caches hold ids of them; ``erased`` ones are gone altogether.

    ``memories`` are the rows that were asked for by name, with all that said the same or was merged into them.
    """

    counts: Counts
    touched: frozenset[int] = frozenset()
    erased: tuple[int, ...] = ()
    memories: tuple[UUID, ...] = ()


NOTHING = Forgotten({})


def united(first: Forgotten, second: Forgotten) -> Forgotten:
    """The two added up."""
    return Forgotten(
        added(first.counts, second.counts),
        first.touched | second.touched,
        (*first.erased, *second.erased),
        (*first.memories, *second.memories),
    )


def forget_turns(
    connection: Connection,
    tenant_id: int,
    scope_id: int,
    found: Sequence[TurnRow],
    *,
    gone: Sequence[UUID] = (),
) -> Forgotten:
    """Delete turns, and the memories ``gone``, with their share in every count and what came only from them."""
    ids = [turn.id for turn in found]
    resting = erase.resting_on(connection, scope_id, ids)
    for other in resting:
        # The caller has locked its own scope.
        if other != scope_id:
            names.lock_scope(connection, tenant_id, other)
    erase.fence_sessions(connection, scope_id, found)
    counts: Counts = {"turns": erase.delete_turns(connection, tenant_id, scope_id, found)}
    counts = added(counts, {"checkpoints": erase.delete_checkpoints(connection, scope_id, ids)})
    text = "\n".join(turn.text for turn in found)
    for other in sorted({scope_id, *resting}):
        settled = settle(
            connection,
            tenant_id,
            other,
            gone=gone if other == scope_id else (),
            touched=resting.get(other, ()),
            said=text,
            by_turn=True,
        )
        counts = added(counts, settled)
    labels = erase.labels(connection, scope_id)
    named = Counter(entity for turn in found for entity in _named(labels, turn.text))
    counts = added(counts, {"entities": erase.lower_mentions(connection, scope_id, named)})
    return Forgotten(counts, frozenset({scope_id, *resting}))


def _named(labels: Sequence[tuple[int, tuple[str, ...]]], text: str) -> list[int]:
    """Entities that a text names by any of their labels."""
    folded = text.casefold()
    return [entity for entity, called in labels if any(name.casefold() in folded for name in called)]


def settle(
    connection: Connection,
    tenant_id: int,
    scope_id: int,
    *,
    gone: Collection[UUID],
    touched: Collection[UUID],
    said: str,
    by_turn: bool,
) -> Counts:
    """Delete memories that rest on what is erased alone, retire those without a source, restore parts of merges."""
    family = erase.family(connection, scope_id, {*gone, *touched}, touched=touched)
    fate = fates(family.kin, gone=gone, said=said, by_turn=by_turn)
    lost = sorted(id for id, verdict in fate.items() if verdict is Fate.GONE)
    unsupported = [id for id, verdict in fate.items() if verdict is Fate.UNSUPPORTED]
    mentioned = erase.mentioned_by(connection, scope_id, lost)
    checkpoints = erase.delete_checkpoints(connection, scope_id, lost)
    erase.drop_answers(connection, scope_id)
    # The parts come back only after the merged row is gone, whose text may be that of one of them.
    deleted = merges.remove(connection, tenant_id, scope_id, ids=lost)
    _bring_back(connection, scope_id, family, set(lost))
    retired = erase.retire_unsupported(connection, scope_id, unsupported)
    entities = erase.lower_mentions(connection, scope_id, dict.fromkeys(mentioned, 0 if by_turn else 1))
    return added(
        {},
        {"memories": deleted, "memories retired": retired, "entities": entities, "checkpoints": checkpoints},
    )


def _bring_back(connection: Connection, scope_id: int, family: Family, lost: set[UUID]) -> None:
    """Put the remaining parts of deleted merged rows in their place: current, or retired as the row was."""
    for id in sorted(lost & family.parts.keys()):
        parts = _parts_left(family, id, lost)
        retired = family.retired.get(id)
        if not parts or (retired is not None and retired[2] in lost):
            continue
        if retired is None:
            duplicates = {part for part, _ in merges.twins(connection, scope_id, parts, besides=parts)}
            merges.restore(connection, scope_id, [part for part in parts if part not in duplicates])
        else:
            at, reason, successor = retired
            erase.hand_on(connection, scope_id, parts, at=at, reason=reason, successor=successor)


def _parts_left(family: Family, id: UUID, lost: set[UUID]) -> list[UUID]:
    parts: list[UUID] = []
    for part in family.parts.get(id, ()):
        parts += _parts_left(family, part, lost) if part in lost else [part]
    return parts


def added(counts: Counts, more: Counts) -> Counts:
    total = Counter(counts)
    total.update(more)
    return {table: count for table, count in total.items() if count}
