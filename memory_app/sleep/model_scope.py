"""Read the scope of a run that asks a language model, or say why it cannot be asked."""

from __future__ import annotations

from sqlalchemy import Connection

from memory_app.errors import NotFound, Permanent
from memory_app.jobs.rows.runs import RunClaim
from memory_app.tenancy.policy import ExtractionMode, parse_policy
from memory_app.tenancy.rows import names
from memory_app.tenancy.rows.names import ScopeRow


class NoModel(Permanent):
    """The agent's policy allows no language model."""

    kind = "no_model"


def need_model(connection: Connection, claimed: RunClaim) -> ScopeRow:
    """The scope of the run. Raises `NotFound` for one that was forgotten, `NoModel` where its agent asks no model."""
    row = names.read_scope(connection, claimed.scope_id)
    if row is None:
        raise NotFound("the person was forgotten")
    if parse_policy(row.policy).extraction is not ExtractionMode.LLM:
        raise NoModel(f"agent {row.agent!r} has no language model: set its extraction to llm to synthesise")
    return row
