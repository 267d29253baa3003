"""Delete what an agent's policy does not let be kept any longer: the words of turns, and memories of a kind.

The row of a turn stays, empty, so that what was learned from it keeps its evidence, a retry of the turn is known, and
the numbers of its session have no gap. A memory goes with the rows that were merged into it and with what rested on it
alone. Each call is one batch, in the caller's transaction, which must hold the scope.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from uuid import UUID

from sqlalchemy import Connection

from memory_app.forget.rows import erase, retention
from memory_app.forget.rows.retention import OldTurn
from memory_app.forget.settlement import lower_mentions_in
from memory_app.memories.rows import merges, sources
from memory_app.memories.rows import terms as term_store
from memory_app.tenancy.digests import KEY, Digests, hidden_key, key_name
from memory_app.turns.rows import sessions


def delete_words(
    connection: Connection,
    tenant_id: int,
    scope_id: int,
    *,
    days: int,
    extracting: bool,
    made: Digests,
    limit: int,
) -> int:
    """Delete the words of turns accepted more than ``days`` ago, and their traces; how many turns.

    A turn that waits for the index, or for extraction where its agent is ``extracting``, is left alone until that is
    done.
    """
    turns = retention.delete_words(
        connection, scope_id, age=timedelta(days=days), extracting=extracting, limit=limit
    )
    if not turns:
        return 0
    ids = [turn.id for turn in turns]
    _hide_keys(connection, tenant_id, scope_id, turns, made)
    retention.drop_notes(connection, scope_id, ids)
    erase.delete_checkpoints(connection, scope_id, ids)
    erase.drop_answers(connection, scope_id)
    erase.drop_surveys(connection, scope_id)
    erase.drop_speakers(connection, scope_id, turns)
    lower_mentions_in(connection, scope_id, turns)
    term_store.add(
        connection, tenant_id, [(scope_id, turn.terms) for turn in turns if turn.terms is not None], sign=-1
    )
    for turn in turns:
        if turn.was_failed:
            # A strict agent's session had stopped for it.
            sessions.resume(connection, scope_id, turn.session_id, seq=turn.seq, again=False)
    return len(turns)


def _hide_keys(
    connection: Connection, tenant_id: int, scope_id: int, turns: Sequence[OldTurn], made: Digests
) -> None:
    keyed = [turn for turn in turns if turn.idempotency_key is not None]
    if not keyed:
        return
    user = erase.user_of_scope(connection, scope_id)
    keys = {
        turn.id: hidden_key(made.new(tenant_id, KEY, key_name(user, turn.idempotency_key or "")))
        for turn in keyed
    }
    retention.hide_keys(connection, scope_id, keys)


def delete_memories(
    connection: Connection,
    tenant_id: int,
    scope_id: int,
    *,
    ids: Sequence[UUID],
    days: Mapping[str, int],
) -> Counter[str]:
    """Delete those of ``ids`` that were confirmed longer ago than the ``days`` of their kind; the rows by kind."""
    deleted: Counter[str] = Counter()
    kinds = retention.with_parts(connection, scope_id, ids, days=days)
    while kinds:
        # Which memories rest on the rows must be read before these are deleted with their links.
        dependent = sources.resting(connection, scope_id, list(kinds))
        _delete(connection, tenant_id, scope_id, ids=list(kinds))
        deleted.update(kinds.values())
        # What rested on them alone goes as well, and what rested on that.
        unsupported = sources.unsupported(connection, scope_id, dependent)
        kinds = retention.kinds_of(connection, scope_id, unsupported) if unsupported else {}
    return deleted


def _delete(connection: Connection, tenant_id: int, scope_id: int, *, ids: Sequence[UUID]) -> None:
    # Before the memories are deleted: the foreign keys take their mentions with them.
    mentioned: Collection[int] = erase.mentioned_by(connection, scope_id, ids)
    erase.delete_checkpoints(connection, scope_id, ids)
    erase.drop_answers(connection, scope_id)
    retention.drop_images(connection, scope_id, ids)
    merges.remove(connection, tenant_id, scope_id, ids=ids)
    erase.lower_mentions(connection, scope_id, dict.fromkeys(mentioned, 1))
