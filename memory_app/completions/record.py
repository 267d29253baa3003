"""Record both sides of a chat: the messages that are new, and the reply.

Everything here may fail without any harm to the chat: what was not recorded comes again with the next call, since
clients send the whole conversation each time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from memory_app.completions.chat_request import ChatRequest
from memory_app.completions.edits import Former, former_turns
from memory_app.completions.history import known_messages
from memory_app.completions.memory import ChatPolicy
from memory_app.completions.placing import Place, placed, said_by, stands_for
from memory_app.errors import Erased, NotFound
from memory_app.records.records import ListedTurn, NewTurn
from memory_app.runtime import Runtime
from memory_app.tenancy.rows.keys import Caller
from memory_app.turns.bodies import parse_message
from memory_app.turns.record import record
from memory_app.turns.replaced import REPLACED_LIMIT, replacing
from memory_app.turns.stream import latest_turns

LOOKED_THROUGH = 500
"""Turns of the session beside which a conversation is laid, the latest ones."""

SPARE_TURNS = 20
"""Turns looked at beyond as many as were sent: others may have recorded in the session as well."""

BATCH = 50
"""Messages recorded in one call."""


def record_messages(
    runtime: Runtime, tenant_id: int, *, chat: ChatRequest, policy: ChatPolicy, caller: Caller
) -> Place:
    """Record the messages that are new; the place of the reply.

    Raises what `record` raises; a part of the messages may be recorded then.
    """
    sent = [said_by(turn, policy.rules) for turn in chat.turns]
    recorded = _recorded(runtime, tenant_id, chat)
    has_first = not recorded or (recorded[0].place or recorded[0].seq) == 1
    # What a turn said whose words were deleted is known by its place alone.
    said = [said_by(turn, policy.rules) if turn.words_deleted_at is None else None for turn in recorded]
    known = known_messages(sent, said, is_whole=has_first)
    begin = _begin(chat) if known.place is None else stands_for(recorded[known.place])
    rest = chat.turns[known.count :]
    former = Former()
    if chat.is_whole and has_first and "erase" in caller.rights:
        former = former_turns(chat.turns, recorded, known)
    new, place = placed(rest, begin, former, policy.rules)
    if sum(turn.replaces is not None for turn in new) > REPLACED_LIMIT:
        # No edit, but another conversation. It is recorded behind, as where nothing is said of the history.
        new, place = placed(rest, begin, Former(), policy.rules)
    for start in range(0, len(new), BATCH):
        _record(runtime, tenant_id, chat, caller, new[start : start + BATCH])
    return place


def record_reply(
    runtime: Runtime,
    tenant_id: int,
    *,
    chat: ChatRequest,
    policy: ChatPolicy,
    caller: Caller,
    reply: Mapping[str, Any],
    place: Place,
) -> None:
    """Record what the model said at its place. Raises what `record` raises, and `InvalidInput`."""
    former = () if place.former is None else (place.former,)
    new, _ = placed((parse_message(reply),), place.previous, Former(former), policy.rules)
    _record(runtime, tenant_id, chat, caller, new)


def _record(
    runtime: Runtime, tenant_id: int, chat: ChatRequest, caller: Caller, new: Sequence[NewTurn]
) -> None:
    """Record the turns but for those that were forgotten: clients send them again, and they stay forgotten."""
    try:
        with replacing(runtime, tenant_id, chat.scope, new, caller=caller):
            record(runtime, tenant_id, chat.scope, new=new)
    except Erased:
        # Nothing of the call is recorded then, and nobody says which it was: few are, so halves find them soon.
        middle = len(new) // 2
        for half in (new[:middle], new[middle:]) if middle else ():
            _record(runtime, tenant_id, chat, caller, half)


def _begin(chat: ChatRequest) -> str:
    """What the first message of a conversation follows. Keys count per person, so the names belong to it."""
    return f"{chat.scope.agent}\0{chat.scope.session}"


def _recorded(runtime: Runtime, tenant_id: int, chat: ChatRequest) -> tuple[ListedTurn, ...]:
    # An edit near the beginning of a long conversation sends few messages.
    limit = LOOKED_THROUGH if chat.is_whole else min(len(chat.turns) + SPARE_TURNS, LOOKED_THROUGH)
    try:
        return latest_turns(runtime, tenant_id, chat.scope, limit=limit, of_one_moment=chat.is_whole)
    except NotFound:
        return ()
