"""Take private parts out of a statement before it is judged, embedded and stored."""

from __future__ import annotations

from dataclasses import replace

from memory_app.language.redaction import Rules
from memory_app.records.records import EmotionalState, Mention, RelationalContext, Statement
from memory_app.tenancy.redaction import Redactor, note


def redacted_statement(
    statement: Statement, notes: tuple[str, ...], *, rules: Rules
) -> tuple[Statement, tuple[str, ...]]:
    """The statement as the rules let it be stored; a note says how many parts of which kind were taken out.

    Who stands behind it stays as named, and so does its relation: both are names of the caller's.
    """
    if not rules.is_on:
        return statement, notes
    redactor = Redactor(rules)
    redacted = replace(
        statement,
        text=redactor.text(statement.text),
        subject=redactor.optional(statement.subject),
        object=redactor.optional(statement.object),
        corrects=redactor.optional(statement.corrects),
        tags=redactor.texts(statement.tags),
        emotional_state=_emotion(redactor, statement.emotional_state),
        relational_context=_relational(redactor, statement.relational_context),
        mentions=tuple(Mention(mention.type, redactor.text(mention.label)) for mention in statement.mentions),
    )
    counts = redactor.by_kind()
    if not counts:
        return statement, notes
    note(counts, "memory")
    taken = ", ".join(f"{kind} {number}" for kind, number in counts.items())
    return redacted, (*notes, f"private parts were taken out, as the agent's policy says: {taken}")


def _emotion(redactor: Redactor, state: EmotionalState | None) -> EmotionalState | None:
    return None if state is None else replace(state, user_impact=redactor.optional(state.user_impact))


def _relational(redactor: Redactor, context: RelationalContext | None) -> RelationalContext | None:
    if context is None:
        return None
    return replace(
        context,
        communication_style=redactor.texts(context.communication_style),
        shared_references=redactor.texts(context.shared_references),
        user_values=redactor.texts(context.user_values),
        user_struggles=redactor.texts(context.user_struggles),
    )
