"""Refuse what is never kept: secrets, and subjects of which an agent's instructions say that nothing is kept.

Of a subject words alone are compared: a text that has all words of a subject is about it, however they are inflected. A
language model is told the subjects besides, and may find what says the same in other words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from memory_app.errors import InvalidInput
from memory_app.language.redaction import PrivateKind, Rules
from memory_app.language.secrets import SECRET_KINDS, told_secrets
from memory_app.memories.guards import content_words, words_only_in
from memory_app.records.records import RelationalContext, Statement
from memory_app.tenancy.policy import Policy

FORBIDDEN = "never to be kept for this agent"
"""The reason of what was left out."""

_NAMES = {
    PrivateKind.CARD: "a card number",
    PrivateKind.KEY: "a key or token",
    PrivateKind.NATIONAL_ID: "a national id number",
    PrivateKind.PASSWORD: "a password or code",
}
_BETWEEN_SUBJECTS = re.compile(r"\s*[,;、，；]\s*(?:(?:and|or)\s+)?")


def is_forbidden(text: str, never: Sequence[str]) -> bool:
    """Whether ``text`` is about a subject of ``never``, the lines of `Instructions.never`."""
    return any(_is_about(text, subject) for line in never for subject in _BETWEEN_SUBJECTS.split(line))


def check_allowed(statement: Statement, policy: Policy) -> None:
    """Raise `InvalidInput`, naming the field, for a statement of a caller that this agent never keeps."""
    if is_forbidden(statement.text, policy.instructions.never):
        raise InvalidInput("text: the agent's instructions say that nothing of this is kept", field="text")
    kinds = SECRET_KINDS - _redacted_kinds(policy.redaction_rules)
    for field, text in _texts(statement):
        # What is no text is refused with the rest of the statement, by its own name.
        secrets = told_secrets(text, kinds) if isinstance(text, str) else ()
        if secrets:
            names = " and ".join(_NAMES[kind] for kind in secrets)
            raise InvalidInput(
                f"{field}: holds {names}, which is never remembered; leave it out or say where it is kept, or switch "
                "`redaction` on in the agent's policy, which takes it out",
                field=field,
            )


def _redacted_kinds(rules: Rules) -> frozenset[PrivateKind]:
    """What will be taken out before the statement is stored."""
    return rules.kinds if rules.is_on else frozenset()


def _texts(statement: Statement) -> Iterator[tuple[str, str]]:
    """All words of a statement, each with its field; the text of a fact may be made of the parts before it."""
    for field in ("subject", "object", "text"):
        if value := getattr(statement, field):
            yield field, value
    for tag in statement.tags:
        yield "tags", tag
    if statement.emotional_state is not None and statement.emotional_state.user_impact:
        yield "emotional_state", statement.emotional_state.user_impact
    if statement.relational_context is not None:
        for text in _relational_texts(statement.relational_context):
            yield "relational_context", text


def _relational_texts(context: RelationalContext) -> Sequence[str]:
    return (
        *context.communication_style,
        *context.shared_references,
        *context.user_values,
        *context.user_struggles,
    )


def _is_about(text: str, subject: str) -> bool:
    # A subject of nothing but words like "the" would forbid everything.
    return bool(content_words(subject)) and not words_only_in(subject, text)
