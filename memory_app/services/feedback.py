"""Feedback: up, down or retry on an assistant's turn or on a memory. It moves the target, and half of it moves what is
similar to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from sqlalchemy import Connection

from memory_app.domain.scope import Scope
from memory_app.domain.text import clean_given
from memory_app.errors import NotFound, TooLarge
from memory_app.runtime import Runtime
from memory_app.services.remember import drop_context
from memory_app.store import feedback, memories, names
from memory_app.store.db import transaction
from memory_app.store.names import ScopeRow

NOTE_LIMIT = 2_000
"""Longest note, in characters."""

DIFFUSION = 0.5
"""Share of a feedback that reaches the similar neighbours of its target."""


class Label(StrEnum):
    """What somebody thought of an answer or a memory."""

    UP = "up"
    DOWN = "down"
    RETRY = "retry"


STEP: Mapping[Label, float] = {Label.UP: 0.2, Label.DOWN: -0.2, Label.RETRY: -0.1}
"""What one feedback adds to a score of −1…1: five alike exhaust it. Asking again says less than a thumb down."""


@dataclass(frozen=True, slots=True)
class Given:
    """What a feedback moved: ``moved`` the memories meant, ``neighbours`` those similar to them."""

    target: UUID
    label: Label
    moved: tuple[UUID, ...]
    neighbours: tuple[UUID, ...]


@dataclass(frozen=True, slots=True)
class _Target:
    scope_id: int
    turn_id: UUID | None
    memory_id: UUID | None


def give_feedback(
    runtime: Runtime, tenant_id: int, scope: Scope, target: UUID, label: Label, *, note: str | None = None
) -> Given:
    """Note feedback on a turn or a memory of the scope and move the scores.

    Of a turn: the memories that rest on it, and the questions it answered. Raises `NotFound` for a target that is not
    of this scope, `TooLarge` for the note.
    """
    said = None if note is None else clean_given(note, field="note")[0].strip() or None
    if said is not None and len(said) > NOTE_LIMIT:
        raise TooLarge(f"note: at most {NOTE_LIMIT} characters", field="note")
    with transaction(runtime.engine, tenant_id) as connection:
        row = names.need_scope(connection, tenant_id, scope)
        meant = _target(connection, row, target)
        names.lock_scope(connection, tenant_id, meant.scope_id)
        feedback.add(
            connection,
            tenant_id,
            meant.scope_id,
            turn_id=meant.turn_id,
            memory_id=meant.memory_id,
            label=label.value,
            note=said,
        )
        given = _move(connection, meant, target, label)
    drop_context(runtime, meant.scope_id)
    return given


def _target(connection: Connection, row: ScopeRow, target: UUID) -> _Target:
    memory = memories.read(connection, target)
    if memory is not None and memory.scope_id in row.visible:
        return _Target(memory.scope_id, None, target)
    turn_scope = feedback.turn_scope(connection, [row.id], target)
    if turn_scope is None:
        raise NotFound(f"target: no turn or memory {target} of this agent and user", field="target")
    return _Target(turn_scope, target, None)


def _move(connection: Connection, meant: _Target, target: UUID, label: Label) -> Given:
    moved: tuple[UUID, ...] = (target,)
    if meant.turn_id is not None:
        moved = feedback.memories_of_turn(connection, meant.scope_id, meant.turn_id)
    neighbours = feedback.similar(connection, meant.scope_id, moved) if moved else ()
    feedback.move(connection, meant.scope_id, moved, STEP[label])
    feedback.move(connection, meant.scope_id, neighbours, STEP[label] * DIFFUSION)
    return Given(target, label, moved, neighbours)
