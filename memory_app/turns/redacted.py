"""Take private parts out of a turn before it is stored, and let a retry of it be recognised all the same. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from memory_app.language.redaction import Rules
from memory_app.records.records import NewTurn
from memory_app.records.scope import Scope
from memory_app.tenancy.redaction import Redactor
from memory_app.turns.intake import request_hash


@dataclass(frozen=True, slots=True)
class Prepared:
    """A turn that is ready to be stored.

    ``digest`` is what is stored beside its idempotency key, None without one. ``digests`` are those that the same turn
    may have been stored under. ``redacted`` counts what was taken out, by kind.
    """

    turn: NewTurn
    speaker: str
    digest: bytes | None
    digests: tuple[bytes, ...] = ()
    redacted: Mapping[str, int] = field(default_factory=dict)


def prepared_turn(
    scope: Scope, turn: NewTurn, *, speaker: str, rules: Rules, label: str | None = None
) -> Prepared:
    """The turn as the rules let it be stored. Names stay as they are: of the session, the speaker and tools.

    ``label`` takes the place of a ``speaker`` whom the caller did not name. The digest is of the speaker all the same:
    a retry must be recognised after the user was given another label.
    """
    prepared = _prepared(scope, turn, speaker=speaker, rules=rules)
    return prepared if label is None or turn.speaker else replace(prepared, speaker=label)


def _prepared(scope: Scope, turn: NewTurn, *, speaker: str, rules: Rules) -> Prepared:
    sent = request_hash(scope, turn, speaker) if turn.idempotency_key else None
    redacted, counts = _redacted(turn, rules)
    if not counts or sent is None:
        return Prepared(redacted, speaker, sent, () if sent is None else (sent,), counts)
    # Of what is stored: from the digest of the whole, a number of few digits could be found by trying all. That of the
    # whole stands beside it, as the turn may have been sent before the redaction was switched on.
    stored = request_hash(scope, redacted, speaker)
    return Prepared(redacted, speaker, stored, (stored, sent), counts)


def _redacted(turn: NewTurn, rules: Rules) -> tuple[NewTurn, dict[str, int]]:
    if not rules.is_on:
        return turn, {}
    redactor = Redactor(rules)
    redacted = replace(
        turn,
        text=redactor.text(turn.text),
        emotional_tone=redactor.optional(turn.emotional_tone),
        metadata=redactor.json(turn.metadata),
    )
    return redacted, redactor.by_kind()
