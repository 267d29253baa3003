"""Agents: read and change persona, policy and default memories; everything is checked before it is stored."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from sqlalchemy import Connection

from memory_app import queue
from memory_app.agents.persona import Persona, parse_persona, persona_of
from memory_app.agents.rows import agents
from memory_app.agents.rows.agents import AgentRow
from memory_app.db.db import transaction
from memory_app.db.shards import HOME
from memory_app.errors import InvalidInput, NotFound
from memory_app.jobs.rows import runs
from memory_app.jobs.rows.runs import Run
from memory_app.records.json_fields import parse_object
from memory_app.records.records import Statement
from memory_app.records.run import RunName, RunState
from memory_app.records.scope import Scope
from memory_app.records.statement import checked_statement
from memory_app.runtime import Runtime
from memory_app.tenancy.policy import Policy, parse_policy
from memory_app.tenancy.shards import other_places

DEFAULT_MEMORY_FIELDS = ("kind", "text", "subtype", "importance", "importance_scale", "tags", "pinned")
"""What a default memory may say; the rest follows from when and for whom it is stored."""


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent with everything filled in."""

    name: str
    persona: Persona
    policy: Policy
    default_memories: tuple[Mapping[str, Any], ...]
    created_at: datetime


@dataclass(frozen=True, slots=True)
class AgentChange:
    """Parts to set. ``named`` says which of them are meant; None puts one back to its default."""

    named: frozenset[str]
    persona: Mapping[str, Any] | None = None
    policy: Mapping[str, Any] | None = None
    default_memories: Sequence[Mapping[str, Any]] | None = None


def agent(runtime: Runtime, tenant_id: int, scope: Scope) -> Agent:
    """The agent of the scope; `NotFound` for one that nothing was ever stored for."""
    with transaction(runtime.at(HOME).engine, tenant_id) as connection:
        row = agents.read(connection, tenant_id, scope.agent)
    if row is None:
        raise _no_agent(scope)
    return _agent(row)


def change_agent(runtime: Runtime, tenant_id: int, scope: Scope, *, change: AgentChange) -> Agent:
    """Set parts of an agent, which is made when it is new. Raises `InvalidInput` naming the part that is wrong."""
    # All parts are checked before a connection is taken: nothing is stored of a change that is wrong in one.
    parts = {name: check(change) for name, check in _CHECKS.items() if name in change.named}
    with transaction(runtime.at(HOME).engine, tenant_id) as connection:
        # The directory first: it holds the row until the end, and whoever copies it meanwhile waits.
        before = agents.lock(connection, tenant_id, scope.agent)
        copies = partial(other_places, runtime, connection)
        changed = _agent(agents.change(connection, tenant_id, scope.agent, parts=parts, copies=copies))
        run = _apply_retention(connection, tenant_id, changed, before=before)
    _hint(runtime, run)
    return changed


def amend_agent(
    runtime: Runtime,
    tenant_id: int,
    scope: Scope,
    *,
    policy: Mapping[str, Any] | None = None,
    persona: Mapping[str, Any] | None = None,
) -> Agent:
    """Change single fields of an agent's policy and persona; the others stay, and null puts one back to its default.

    Raises `InvalidInput` naming the field, `NotFound` for an agent that nothing was ever stored for.
    """
    amendments = {"policy": policy, "persona": persona}
    with transaction(runtime.at(HOME).engine, tenant_id) as connection:
        row = agents.lock(connection, tenant_id, scope.agent)
        if row is None:
            raise _no_agent(scope)
        # A persona that was never set is amended as it is shown: the default one.
        stored = {"policy": row.policy, "persona": persona_of(row.persona).as_dict()}
        amended: dict[str, Any] = {
            name: _amended(stored[name], fields) for name, fields in amendments.items() if fields is not None
        }
        change = AgentChange(named=frozenset(amended), **amended)
        parts = {name: check(change) for name, check in _CHECKS.items() if name in change.named}
        copies = partial(other_places, runtime, connection)
        changed = _agent(agents.change(connection, tenant_id, scope.agent, parts=parts, copies=copies))
        run = _apply_retention(connection, tenant_id, changed, before=row)
    _hint(runtime, run)
    return changed


def _apply_retention(
    connection: Connection, tenant_id: int, changed: Agent, *, before: AgentRow | None
) -> Run | None:
    """Have a worker make decay due where a changed retention asks for it: in each scope, of which there may be many.

    None where nothing is limited that was not before; what is planned for a shorter limit finds nothing to do.
    """
    retention = changed.policy.retention
    # A new agent has no scope yet.
    if before is None or not retention or retention == parse_policy(before.policy).retention:
        return None
    options = {"target": changed.name}
    run = runs.find_open(connection, tenant_id, RunName.APPLY_RETENTION, options=options)
    if run is not None and run.state is RunState.QUEUED:
        return run
    return runs.enqueue(connection, tenant_id, RunName.APPLY_RETENTION, scope_id=None, options=options)


def _hint(runtime: Runtime, run: Run | None) -> None:
    """After the commit: a worker must find the run."""
    if run is not None:
        runtime.at(HOME).hint(queue.DECAY, run_id=str(run.id))


def _amended(stored: Mapping[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in {**stored, **fields}.items() if value is not None}


def _no_agent(scope: Scope) -> NotFound:
    return NotFound(f"no agent {scope.agent!r}; PUT makes one, and so does its first turn", field="agent")


def _checked_persona(change: AgentChange) -> dict[str, Any] | None:
    # None stays None, so that an agent follows the default persona when that changes.
    return None if change.persona is None else parse_persona(change.persona).as_dict()


def _checked_policy(change: AgentChange) -> dict[str, Any]:
    return {} if change.policy is None else parse_policy(change.policy).as_dict()


def _checked_defaults(change: AgentChange) -> list[dict[str, Any]]:
    defaults = change.default_memories or ()
    return [checked_default(memory, place) for place, memory in enumerate(defaults)]


_CHECKS: Mapping[str, Callable[[AgentChange], Any]] = {
    "persona": _checked_persona,
    "policy": _checked_policy,
    "default_memories": _checked_defaults,
}
"""Part of an agent to what is stored of it."""


def checked_default(memory: Mapping[str, Any], place: int) -> dict[str, Any]:
    """A default memory as it is stored: cleaned, its importance as given, for the write path to judge."""
    path = f"default_memories[{place}]"
    fields = dict(parse_object(memory, path, names=DEFAULT_MEMORY_FIELDS))
    tags = fields.pop("tags", ())
    if not isinstance(tags, list | tuple):
        raise InvalidInput(f"{path}.tags: a list is required", field=f"{path}.tags")
    given: dict[str, Any] = {"kind": "core", "text": "", **fields, "tags": tuple(tags)}
    try:
        statement, _ = checked_statement(Statement(**given))
    except InvalidInput as error:
        # Of the same class, which decides the status of the answer: too large is not the same as wrong.
        raise type(error)(f"{path}.{error.message}", field=f"{path}.{error.field}") from error
    values = {name: getattr(statement, name) for name in DEFAULT_MEMORY_FIELDS}
    return {**values, "tags": list(statement.tags)}


def _agent(row: AgentRow) -> Agent:
    return Agent(
        name=row.name,
        persona=persona_of(row.persona),
        policy=parse_policy(row.policy),
        default_memories=row.default_memories,
        created_at=row.created_at,
    )
