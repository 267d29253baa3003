"""Say behind what each new message of a chat belongs, under which key, and which turn it replaces. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

from memory_app.completions.edits import Former
from memory_app.completions.history import KEY_PREFIX, digest, key_after
from memory_app.language.redaction import Rules
from memory_app.records.records import ListedTurn, NewTurn


@dataclass(frozen=True, slots=True)
class Place:
    """Where the next turn belongs: behind what ``previous`` stands for, as `key_after` takes it.

    ``former`` is the turn that stands there until now and gives way to it.
    """

    previous: str
    former: ListedTurn | None = None

    def without_former(self) -> Place:
        return replace(self, former=None)


def placed(
    turns: Sequence[NewTurn], previous: str, former: Former, rules: Rules
) -> tuple[list[NewTurn], Place]:
    """The turns that are to be recorded behind ``previous``, and the place behind the last of ``turns``."""
    new = []
    for turn, old in zip_longest(turns, former.turns):
        own = said_by(turn, rules)
        if old is None:
            previous = key_after(previous, own)
            new.append(replace(turn, idempotency_key=previous))
        elif said_by(old, rules) == own:
            previous = stands_for(old)
        else:
            # With what it replaces in the key: a message may be edited back into what it was before.
            previous = key_after(f"{previous}\0{old.id}", own)
            new.append(replace(turn, idempotency_key=previous, replaces=old.id))
    return new, Place(previous, former.reply)


def stands_for(turn: ListedTurn) -> str:
    """What stands for a turn in the keys of those behind it: its own, or its id where another door recorded it."""
    key = turn.idempotency_key
    return key if key is not None and key.startswith(KEY_PREFIX) else str(turn.id)


def said_by(turn: NewTurn | ListedTurn, rules: Rules) -> str:
    return digest(turn.role, turn.text, turn.tools_used, rules)
