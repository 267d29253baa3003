"""LongMemEval: questions that each come with the whole history of one user and an assistant.

A file is a list of questions. Each is a conversation of its own, so that a run takes as many histories as it has
questions: `--conversations` picks some. Where no message is marked (``has_answer``), all of an answer session count.
Questions about what was never said (ids that end with ``_abs``) are reported apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from memory_app.bench.conversation import Conversation, Message, Question, Stretch, read_json
from memory_app.errors import InvalidInput
from memory_app.records.records import Role

TIME_FORMAT = "%Y/%m/%d (%a) %H:%M"

TURN_PACE = timedelta(minutes=1)
"""Only sessions are dated; messages follow each other at this pace, so that their order can be told by time."""

NEVER_SAID = "_abs"


def load(path: Path) -> tuple[Conversation, ...]:
    """One conversation for each question of the file. `InvalidInput` when it is not LongMemEval."""
    content = read_json(path)
    if not isinstance(content, list):
        raise InvalidInput(f"{path}: LongMemEval is a list of questions", field="path")
    try:
        conversations = [_conversation(sample) for sample in content]
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise InvalidInput(
            f"{path}: not LongMemEval ({type(error).__name__}: {error})", field="path"
        ) from error
    return tuple(conversation for conversation in conversations if conversation.questions)


def _conversation(sample: Mapping[str, Any]) -> Conversation:
    id = str(sample["question_id"])
    histories = zip(
        sample["haystack_session_ids"], sample["haystack_dates"], sample["haystack_sessions"], strict=True
    )
    # The same session may stand in a history twice; its second time is another session of ours.
    sessions = tuple(
        _session(f"{place}-{name}", date, messages)
        for place, (name, date, messages) in enumerate(histories)
        if messages
    )
    evidence = frozenset(_evidence(sample))
    question = Question(
        str(sample["question"]), str(sample["question_type"]), evidence, apart=id.endswith(NEVER_SAID)
    )
    return Conversation(f"longmemeval-{id}", sessions, (question,) if evidence else ())


def _session(name: str, date: str, messages: list[Mapping[str, Any]]) -> Stretch:
    begin = datetime.strptime(date, TIME_FORMAT).replace(tzinfo=UTC)
    return Stretch(
        name,
        tuple(
            Message(
                id=f"{name}:{place}",
                role=Role(message["role"]),
                speaker=None,
                text=message["content"],
                at=begin + place * TURN_PACE,
            )
            for place, message in enumerate(messages)
            if message["content"].strip()
        ),
    )


def _evidence(sample: Mapping[str, Any]) -> Iterator[str]:
    """Ids of the messages that hold the answer."""
    answers = set(sample["answer_session_ids"])
    sessions = zip(sample["haystack_session_ids"], sample["haystack_sessions"], strict=True)
    marked: list[str] = []
    all_of_answers: list[str] = []
    for place, (name, messages) in enumerate(sessions):
        if name not in answers:
            continue
        ids = {f"{place}-{name}:{number}": message for number, message in enumerate(messages)}
        said = {id: message for id, message in ids.items() if message["content"].strip()}
        marked += [id for id, message in said.items() if message.get("has_answer")]
        all_of_answers += said
    yield from marked or all_of_answers
