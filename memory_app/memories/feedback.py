"""Feedback: up, down or retry on an assistant's turn or on a memory. It moves the target, and half of it moves what is
similar to it. Of a turn, half of it also moves the memories that stood in the context window before the turn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from uuid import UUID

import structlog
from sqlalchemy import Connection

from memory_app.db.db import transaction
from memory_app.db.shards import HOME
from memory_app.errors import InvalidInput, MemoryAppError, NotFound, TooLarge
from memory_app.hot import shown_windows
from memory_app.language.text import clean_given
from memory_app.memories.remember import drop_context
from memory_app.memories.rows import feedback, memories
from memory_app.memories.rows.feedback import RatedTurn
from memory_app.records.records import Label, Role
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.tenancy import redaction
from memory_app.tenancy.policy import Policy, parse_policy
from memory_app.tenancy.redaction import Redactor
from memory_app.tenancy.rows import names
from memory_app.tenancy.rows.names import ScopeRow
from memory_app.tenancy.shards import in_scopes_shard

log = structlog.get_logger(__name__)

NOTE_LIMIT = 2_000
"""Longest note, in characters."""

DIFFUSION = 0.5
"""Share of a feedback that reaches the similar neighbours of its target."""


STEP: Mapping[Label, float] = {Label.UP: 0.2, Label.DOWN: -0.2, Label.RETRY: -0.1}
"""What one feedback adds to a score of −1…1: five alike exhaust it. Asking again says less than a thumb down."""


@dataclass(frozen=True, slots=True)
class Given:
    """What a feedback moved: ``moved`` the memories meant, ``neighbours`` those similar to them, ``shown`` those that
    stood in the window before the reply. For a memory that was merged since, ``moved`` names the one it was merged
    into."""

    target: UUID
    label: Label
    moved: tuple[UUID, ...]
    neighbours: tuple[UUID, ...]
    shown: tuple[UUID, ...] = ()


@dataclass(frozen=True, slots=True)
class _Target:
    scope_id: int
    turn_id: UUID | None
    memory_id: UUID | None
    shown: tuple[UUID, ...] = ()


@in_scopes_shard
def give_feedback(
    runtime: Runtime,
    tenant_id: int,
    scope: Scope,
    *,
    target: UUID,
    label: Label,
    note: str | None = None,
) -> Given:
    """Note feedback on an assistant's turn or a memory of the scope and move the scores.

    Of a turn: the memories that rest on it, the questions it answered, and what bore on its query in the window before
    it, as long as Redis knows. Of a memory that was merged: the one it was
    merged into. Raises `NotFound` for a target that is not of this scope, `InvalidInput` for a turn of anybody but the
    assistant, `TooLarge` for the note.
    """
    note_text = _checked_note(note)
    try:
        return _give(runtime, tenant_id, scope, target=target, label=label, note=note_text)
    except NotFound:
        # What all users of the agent share may stand in the home shard.
        if runtime.shard == HOME or not _is_shared(runtime, tenant_id, scope):
            raise
    agent = Scope(scope.agent, None)
    return _give(runtime.at(HOME), tenant_id, agent, target=target, label=label, note=note_text)


def _is_shared(runtime: Runtime, tenant_id: int, scope: Scope) -> bool:
    with transaction(runtime.engine, tenant_id) as connection:
        row = names.find_scope(connection, tenant_id, scope)
    return row is not None and bool(row.shared)


def _give(
    runtime: Runtime, tenant_id: int, scope: Scope, *, target: UUID, label: Label, note: str | None
) -> Given:
    with transaction(runtime.engine, tenant_id) as connection:
        row = names.need_scope(connection, tenant_id, scope)
        resolved = _target(runtime, connection, row, target)
        note = _redacted_note(note, parse_policy(row.policy))
        names.hold_scope(connection, tenant_id, scope, resolved.scope_id)
        if resolved.memory_id is not None:
            # Under the lock: sleep may have merged the memory since it was read above.
            standing = _standing(connection, resolved.scope_id, resolved.memory_id)
            resolved = replace(resolved, memory_id=standing)
        feedback.add(
            connection,
            tenant_id,
            resolved.scope_id,
            turn_id=resolved.turn_id,
            memory_id=resolved.memory_id,
            label=label.value,
            note=note,
        )
        effect = _move(connection, resolved, target=target, label=label)
    drop_context(runtime, resolved.scope_id)
    return effect


def _redacted_note(note: str | None, policy: Policy) -> str | None:
    redactor = Redactor(policy.redaction_rules)
    redacted = redactor.optional(note)
    redaction.note(redactor.by_kind(), "note")
    return redacted


def _checked_note(note: str | None) -> str | None:
    """The note without what cannot be seen; None where nothing remains."""
    if note is None:
        return None
    text = clean_given(note, field="note")[0].strip()
    if len(text) > NOTE_LIMIT:
        raise TooLarge(f"note: at most {NOTE_LIMIT} characters", field="note")
    return text or None


def _target(runtime: Runtime, connection: Connection, row: ScopeRow, target: UUID) -> _Target:
    memory = memories.read(connection, target)
    # A memory that all users of the agent share may be rated too; a turn only by the user that it belongs to.
    if memory is not None and memory.scope_id in row.visible:
        return _Target(memory.scope_id, turn_id=None, memory_id=target)
    turn = feedback.turn(connection, [row.id], target)
    if turn is None:
        raise _unknown(target)
    if turn.role is not Role.ASSISTANT:
        raise InvalidInput(
            f"target: turn {target} is the {turn.role}'s; rate the assistant's turn that answers it, or a memory",
            field="target",
        )
    return _Target(turn.scope_id, turn_id=target, memory_id=None, shown=_shown_before(runtime, turn))


def _shown_before(runtime: Runtime, turn: RatedTurn) -> tuple[UUID, ...]:
    try:
        return shown_windows.before(runtime.hot, turn.scope_id, session=turn.session, at=turn.accepted_at)
    except MemoryAppError as error:
        log.warning("window_of_reply_not_read", error=error.kind)
        return ()


def _standing(connection: Connection, scope_id: int, memory_id: UUID) -> UUID:
    """Which row holds now what the memory said."""
    row_id = feedback.standing(connection, scope_id, memory_id)
    if row_id is None:
        raise _unknown(memory_id)
    return row_id


def _unknown(target: UUID) -> NotFound:
    return NotFound(f"target: no turn or memory {target} of this agent and user", field="target")


def _move(connection: Connection, resolved: _Target, *, target: UUID, label: Label) -> Given:
    if resolved.turn_id is not None:
        moved = feedback.memories_of_turn(connection, resolved.scope_id, resolved.turn_id)
    else:
        assert resolved.memory_id is not None
        moved = (resolved.memory_id,)
    # Read before the scores move, and without what moves itself: nothing counts twice.
    neighbours = feedback.similar(connection, resolved.scope_id, moved) if moved else ()
    in_window = feedback.current(connection, resolved.scope_id, resolved.shown) if resolved.shown else ()
    stood = tuple(id for id in in_window if id not in moved)
    feedback.move(connection, resolved.scope_id, moved, by=STEP[label])
    # A reply may be bad for other reasons than what was shown before it.
    beside = tuple(dict.fromkeys((*neighbours, *stood)))
    feedback.move(connection, resolved.scope_id, beside, by=STEP[label] * DIFFUSION)
    return Given(target, label=label, moved=moved, neighbours=neighbours, shown=stood)
