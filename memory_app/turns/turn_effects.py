"""What turns tell beside the memories made of them: names and zone of the user, questions, entities.

All of it is written in the transaction of the extraction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlalchemy import Connection

from memory_app.language.zones import told_zone
from memory_app.memories import query_graph, remember
from memory_app.memories.forbidden import is_forbidden
from memory_app.memories.mentions import Ties, named_text, ties_of
from memory_app.memories.people import display_names
from memory_app.memories.rows import entities
from memory_app.memories.rows import queries as query_store
from memory_app.records.records import WITHHELD, Extraction, Role, Statement, Turn
from memory_app.runtime import Runtime
from memory_app.tenancy.rows import user_details
from memory_app.turns.batch import Batch

TIME_ZONE = "time_zone"
"""Relation of the zone that a person says is theirs."""


def kept_turns(batch: Batch, extraction: Extraction) -> tuple[Turn, ...]:
    """The turns of the batch, without those of which somebody asked that they are not kept."""
    return tuple(turn for turn in batch.turns if extraction.reasons.get(turn.id) != WITHHELD)


def names_of_user(batch: Batch) -> dict[str, str]:
    """Slug to name of everything that the user goes by besides the id; see `display_names`."""
    # In a room each name is a person of its own.
    if batch.policy.group:
        return {}
    return display_names(batch.turns, batch.user, label=batch.label, aliases=batch.aliases)


def note_user(connection: Connection, batch: Batch) -> None:
    """Note by which names the user goes, so that whatever is told of any of them is told of one person."""
    user_names = names_of_user(batch)
    if not user_names or not batch.policy.entity_extraction:
        return
    entities.note_user(
        connection,
        batch.claim.tenant_id,
        batch.claim.scope_id,
        user=batch.user,
        names=user_names,
        at=max(turn.at for turn in batch.turns),
    )


def note_zone(connection: Connection, batch: Batch, statements: Sequence[Statement]) -> None:
    """Take the zone that the user says is theirs for the one in which their times are read from now on."""
    if batch.policy.group:
        return
    told = [
        statement.object
        for statement in statements
        if statement.relation == TIME_ZONE
        and (statement.subject or "").casefold() == batch.user.casefold()
        and statement.object is not None
        and (statement.source or "").startswith(f"{Role.USER}:")
    ]
    zone = told_zone(told[-1]) if told else None
    if zone is not None:
        user_details.note_zone(connection, batch.claim.tenant_id, batch.claim.scope_id, zone=zone)


def questions_of(batch: Batch, extraction: Extraction) -> tuple[Statement, ...]:
    """Questions of the turns, without those about what the agent never keeps."""
    if not batch.policy.query_graph:
        return ()
    never = batch.policy.instructions.never
    questions = query_graph.questions(kept_turns(batch, extraction), extraction.mentions)
    return tuple(question for question in questions if not is_forbidden(question.text, never))


def note_questions(
    connection: Connection,
    runtime: Runtime,
    place: remember.Place,
    *,
    batch: Batch,
    questions: Sequence[remember.Prepared],
) -> list[remember.Remembered]:
    """Write the questions of the turns into the query graph of the session, and link the answers to them."""
    if not batch.policy.query_graph or not batch.turns:
        return []
    in_session = replace(place, session_id=batch.claim.session_id, session=batch.turns[0].session)
    noted = remember.write_all(connection, runtime, in_session, prepared=questions)
    answers = [turn.id for turn in batch.turns if turn.role is Role.ASSISTANT]
    query_store.link_answers(connection, batch.claim.scope_id, answers)
    return noted


def note_entities(
    connection: Connection, batch: Batch, *, extraction: Extraction, questions: Sequence[Statement]
) -> None:
    """Count the entities that turns mention beyond what the write path counted of their memories."""
    claimed = batch.claim
    statements = (*extraction.statements, *questions)
    turns = kept_turns(batch, extraction)
    known = entities.likely_named(connection, claimed.scope_id, [turn.text for turn in turns])
    ties: Ties = {}
    for turn in turns:
        of_turn = [statement for statement in statements if turn.id in statement.evidence]
        # Of a turn that is remembered only what was known before: what is new in it stands in its memories.
        mentions = () if of_turn else extraction.mentions.get(turn.id, ())
        counted = {
            key
            for statement in of_turn
            for key in ties_of(named_text(statement), statement.mentions, known, turn.at)
        }
        ties_of_turn = ties_of(turn.text, mentions, known, turn.at)
        ties |= {key: tie for key, tie in ties_of_turn.items() if key not in counted}
    entities.upsert(connection, claimed.tenant_id, claimed.scope_id, mentions=ties)
