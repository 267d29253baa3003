"""Delete turns and memories of a scope together with what rests on them alone.

Memories that have other sources, too, stay, go or are retired as `memory_app.forget.rules` decides. The scope's row
must be locked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import Connection

from memory_app.forget.rows import erase
from memory_app.forget.rows.erase import Family, TurnRow
from memory_app.forget.rules import Fate, fates
from memory_app.memories.rows import merges
from memory_app.tenancy.digests import sent_name
from memory_app.tenancy.rows import names

Counts = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Forgotten:
    """Rows by table, the ``touched`` scopes whose caches may hold ids of them, and the scopes that are ``erased``.

    ``memories`` are the rows that the caller named, with all that said the same or was merged into them. ``sent`` are
    the names of the turns that had an idempotency key, by which a caller may send them again.
    """

    counts: Counts
    touched: frozenset[int] = frozenset()
    erased: tuple[int, ...] = ()
    memories: tuple[UUID, ...] = ()
    sent: tuple[str, ...] = ()


NOTHING = Forgotten({})


def united(first: Forgotten, second: Forgotten) -> Forgotten:
    """The two added up."""
    return Forgotten(
        counts=added(first.counts, second.counts),
        touched=first.touched | second.touched,
        erased=(*first.erased, *second.erased),
        memories=(*first.memories, *second.memories),
        sent=(*first.sent, *second.sent),
    )


def forget_turns(
    connection: Connection,
    tenant_id: int,
    scope_id: int,
    *,
    turns: Sequence[TurnRow],
    gone: Sequence[UUID] = (),
) -> Forgotten:
    """Delete turns, and the memories ``gone``, with their share in every count and what came only from them."""
    ids = [turn.id for turn in turns]
    # Before the turns are deleted: the foreign keys take the evidence with them.
    resting = erase.resting_on(connection, scope_id, ids)
    for other in resting:
        # The caller has locked its own scope.
        if other != scope_id:
            names.lock_scope(connection, tenant_id, other)
    # An extraction that has read the turns is under way perhaps, and must not commit what it made of them.
    erase.fence_sessions(connection, scope_id, turns)
    counts: Counts = {"turns": erase.delete_turns(connection, tenant_id, scope_id, turns=turns)}
    counts = added(counts, {"checkpoints": erase.delete_checkpoints(connection, scope_id, ids)})
    text = "\n".join(turn.text for turn in turns)
    # In the order of ids, as everywhere: two erasures that lock rows of the same scopes must not wait in a circle.
    for other in sorted({scope_id, *resting}):
        settled = settle(
            connection,
            tenant_id,
            other,
            gone=gone if other == scope_id else (),
            touched=resting.get(other, ()),
            erased_text=text,
            by_turn=True,
        )
        counts = added(counts, settled)
    counts = added(counts, {"entities": lower_mentions_in(connection, scope_id, turns)})
    return Forgotten(counts, frozenset({scope_id, *resting}), sent=_sent_names(connection, scope_id, turns))


def _sent_names(connection: Connection, scope_id: int, turns: Sequence[TurnRow]) -> tuple[str, ...]:
    keyed = [turn for turn in turns if turn.idempotency_key is not None]
    if not keyed:
        return ()
    user = erase.user_of_scope(connection, scope_id)
    # A constraint of the table: with the key there is the hash.
    return tuple(
        sent_name(user, turn.idempotency_key or "", bytes(turn.request_hash or b"")) for turn in keyed
    )


def lower_mentions_in(connection: Connection, scope_id: int, turns: Iterable[TurnRow]) -> int:
    """Take back what these turns counted for entities; how many entities went, since nothing names them any more."""
    labels = erase.labels(connection, scope_id)
    mentions = Counter(entity for turn in turns for entity in _entities_in(turn.text, labels))
    return erase.lower_mentions(connection, scope_id, mentions)


def _entities_in(text: str, labels: Sequence[tuple[int, tuple[str, ...]]]) -> list[int]:
    """Entities that a text names by any of their labels."""
    folded = text.casefold()
    return [entity for entity, names in labels if any(name.casefold() in folded for name in names)]


def settle(
    connection: Connection,
    tenant_id: int,
    scope_id: int,
    *,
    gone: Collection[UUID],
    touched: Collection[UUID],
    erased_text: str,
    by_turn: bool,
) -> Counts:
    """Delete memories that rest on what is erased alone, retire those without a source, restore parts of merges."""
    family = erase.family(connection, scope_id, {*gone, *touched}, touched=touched)
    fate = fates(family.kin, gone=gone, erased_text=erased_text, by_turn=by_turn)
    lost = sorted(id for id, verdict in fate.items() if verdict is Fate.GONE)
    unsupported = [id for id, verdict in fate.items() if verdict is Fate.UNSUPPORTED]
    # Before the memories are deleted: the foreign keys take their mentions with them.
    mentioned = erase.mentioned_by(connection, scope_id, lost)
    checkpoints = erase.delete_checkpoints(connection, scope_id, lost)
    erase.drop_answers(connection, scope_id)
    erase.drop_surveys(connection, scope_id)
    # The parts come back only after the merged row is gone: it may have the text of one of them, and of the current
    # rows only one may have a text.
    deleted = merges.remove(connection, tenant_id, scope_id, ids=lost)
    _restore_parts(connection, scope_id, family=family, lost=set(lost))
    retired = erase.retire_unsupported(connection, scope_id, unsupported)
    # Where turns are forgotten, their mentions are counted by the turns and not by the memories made of them.
    fewer = 0 if by_turn else 1
    entities = erase.lower_mentions(connection, scope_id, dict.fromkeys(mentioned, fewer))
    return added(
        {},
        {"memories": deleted, "memories retired": retired, "entities": entities, "checkpoints": checkpoints},
    )


def _restore_parts(connection: Connection, scope_id: int, *, family: Family, lost: set[UUID]) -> None:
    """Put the remaining parts of deleted merged rows in their place: current, or retired as the row was."""
    for id in sorted(lost & family.parts.keys()):
        parts = _remaining_parts(id, family, lost)
        if not parts:
            continue
        if id not in family.retired:
            # A current row may have been stored since that says what a part says.
            twins = merges.twins(connection, scope_id, parts, besides=parts)
            duplicates = {part for part, _ in twins}
            merges.restore(connection, scope_id, [part for part in parts if part not in duplicates])
            continue
        at, reason, successor = family.retired[id]
        # A row that was merged into one that goes too: its parts are among the parts of that one.
        if successor not in lost:
            erase.hand_on(connection, scope_id, parts, at=at, reason=reason, successor=successor)


def _remaining_parts(id: UUID, family: Family, lost: set[UUID]) -> list[UUID]:
    """The parts of a merged row; in place of a part that goes too, the parts of that."""
    parts: list[UUID] = []
    for part in family.parts.get(id, ()):
        parts += _remaining_parts(part, family, lost) if part in lost else [part]
    return parts


def added(counts: Counts, more: Counts) -> Counts:
    total = Counter(counts)
    total.update(more)
    return {table: count for table, count in total.items() if count}
