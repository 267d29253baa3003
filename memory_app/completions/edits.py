"""Tell which recorded turns an edited conversation no longer has, where the client says that it sends all of it. Pure.

What takes the place of a turn has that turn forgotten, so nothing here is a guess: the client vouches for its history,
the conversation begins as the session did, and both are laid beside each other place by place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

from memory_app.completions.history import KEY_PREFIX, Known
from memory_app.records.records import ListedTurn, NewTurn, Role

BEGINNING = 2
"""So many messages must be those with which the session began: a greeting alone begins other conversations, too."""


@dataclass(frozen=True, slots=True)
class Former:
    """``turns`` stand where the messages behind the known ones belong, one for one, as far as they can give way.

    ``reply`` stands where the reply belongs.
    """

    turns: tuple[ListedTurn, ...] = ()
    reply: ListedTurn | None = None


def former_turns(sent: Sequence[NewTurn], recorded: Sequence[ListedTurn], known: Known) -> Former:
    """The turns that stand in the places of new messages and of the reply to them.

    ``recorded`` must begin with the first turn of the session. A turn gives way only to a message of its role, and
    only where it was recorded from a chat: what another door recorded is not in the client's history. Nothing gives
    way behind a turn that is missing, as one that was forgotten by itself.
    """
    if known.count < BEGINNING or known.place != known.count - 1:
        return Former()
    standing = list(takewhile(_is_ours, _without_gap(recorded)[known.count :]))
    pairs = zip(sent[known.count :], standing, strict=False)
    turns = tuple(old for _, old in takewhile(lambda pair: pair[0].role == pair[1].role, pairs))
    # Behind a message that is new to the session, so is the reply.
    has_place = known.count + len(turns) == len(sent) and len(standing) > len(turns)
    reply = standing[len(turns)] if has_place else None
    return Former(turns, reply if reply is not None and reply.role is Role.ASSISTANT else None)


def _without_gap(recorded: Sequence[ListedTurn]) -> Sequence[ListedTurn]:
    """The turns up to the first whose number is not that of its place in the list."""
    numbered = enumerate(recorded, 1)
    return [turn for _, turn in takewhile(lambda pair: (pair[1].place or pair[1].seq) == pair[0], numbered)]


def _is_ours(turn: ListedTurn) -> bool:
    return turn.idempotency_key is not None and turn.idempotency_key.startswith(KEY_PREFIX)
