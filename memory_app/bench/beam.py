"""BEAM: long chats of a user with an assistant. A folder of ``N-chat.json`` and ``N-probing_questions.json``.

A batch is a session and has the date of its anchor. Questions without source messages (what was never said) are left
out. The generator's mark at the end of some messages (``->-> 3,12``) is no part of what was said.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from memory_app.bench.conversation import Conversation, Message, Question, Stretch, read_json
from memory_app.errors import InvalidInput
from memory_app.records.records import Role

TIME_FORMAT = "%B-%d-%Y"
START_OF_DAY = timedelta(hours=9)

TURN_PACE = timedelta(minutes=1)
"""Only batches are dated; messages follow each other at this pace, so that their order can be told by time."""

_CHAT = "-chat.json"
_MARK = re.compile(r"\s*->->\s*[\d,\s]*$")


def load(folder: Path) -> tuple[Conversation, ...]:
    """All chats of a folder, in the order of their numbers. `InvalidInput` when there is none, or it is not BEAM."""
    names = [path.name.removesuffix(_CHAT) for path in folder.glob(f"*{_CHAT}")]
    if not names:
        raise InvalidInput(f"{folder}: no N{_CHAT} in this folder", field="path")
    # "10" stands after "9": shorter numbers are smaller ones.
    in_order = sorted(names, key=lambda name: (len(name), name))
    try:
        return tuple(_conversation(folder, name) for name in in_order)
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise InvalidInput(f"{folder}: not BEAM ({type(error).__name__}: {error})", field="path") from error


def _conversation(folder: Path, name: str) -> Conversation:
    sessions = tuple(_session(batch) for batch in read_json(folder / f"{name}{_CHAT}"))
    ids = frozenset(message.id for session in sessions for message in session.turns)
    questions = []
    for category, group in read_json(folder / f"{name}-probing_questions.json").items():
        for question in group:
            evidence = frozenset(_ids(question.get("source_chat_ids"))) & ids
            # Nothing can be retrieved for a question about what was never said.
            if evidence:
                questions.append(Question(question["question"], category, evidence))
    return Conversation(f"beam-{name}", sessions, tuple(questions))


def _session(batch: Mapping[str, Any]) -> Stretch:
    messages = [message for group in batch["turns"] for message in group]
    # Some batches carry their date only on the first message.
    anchor = batch.get("time_anchor") or messages[0]["time_anchor"]
    began = datetime.strptime(anchor, TIME_FORMAT).replace(tzinfo=UTC) + START_OF_DAY
    return Stretch(
        f"batch_{batch['batch_number']}",
        tuple(
            Message(
                id=str(message["id"]),
                role=Role(message["role"]),
                speaker=None,
                text=_MARK.sub("", message["content"]),
                at=began + place * TURN_PACE,
            )
            for place, message in enumerate(messages)
        ),
    )


def _ids(sources: Any) -> Iterator[str]:
    """Message ids, however deep they are nested in lists and named groups."""
    if isinstance(sources, Mapping):
        sources = list(sources.values())
    if isinstance(sources, list):
        for inner in sources:
            yield from _ids(inner)
    elif sources is not None:
        yield str(sources)
