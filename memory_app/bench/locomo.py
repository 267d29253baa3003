"""LoCoMo: two people who chat over months. Both are users; a picture's caption belongs to what was said.

Questions of category 5 are about things that were never said so; they are reported apart. Evidence ids are
``D<session>:<turn>``; a few strings hold two of them or a stray colon, and what stays unclear is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from memory_app.bench.conversation import Conversation, Message, Question, Stretch, read_json
from memory_app.errors import InvalidInput
from memory_app.records.records import Role

CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
APART = 5

TIME_FORMAT = "%I:%M %p on %d %B, %Y"

TURN_PACE = timedelta(seconds=30)
"""Only sessions are dated; turns follow each other at this pace, so that their order can be told by time."""

_SESSION = re.compile(r"session_(\d+)")
_EVIDENCE = re.compile(r"D:?(\d+):(\d+)")


def load(path: Path) -> tuple[Conversation, ...]:
    """All conversations of a file. `InvalidInput` when it is not LoCoMo."""
    samples = read_json(path)
    if not isinstance(samples, list):
        raise InvalidInput(f"{path}: LoCoMo is a list of conversations", field="path")
    try:
        return tuple(_conversation(sample) for sample in samples)
    except (KeyError, TypeError, AttributeError) as error:
        raise InvalidInput(f"{path}: not LoCoMo ({type(error).__name__}: {error})", field="path") from error


def evidence_ids(texts: Iterable[str], ids: frozenset[str]) -> frozenset[str]:
    """Those of ``ids`` that stand in evidence strings, also where two share one string or a colon strayed."""
    pairs = (pair for text in texts for pair in _EVIDENCE.findall(text))
    # Through int, since the same turn is written D8:6 and D08:6.
    return frozenset(f"D{int(session)}:{int(turn)}" for session, turn in pairs) & ids


def _conversation(sample: Mapping[str, Any]) -> Conversation:
    parts = sample["conversation"]
    matches = filter(None, map(_SESSION.fullmatch, parts))
    # As numbers: by their names, session_10 would stand before session_2.
    numbers = sorted(int(match[1]) for match in matches)
    # A session may be dated and empty.
    sessions = tuple(_session(parts, number) for number in numbers if parts[f"session_{number}"])
    ids = frozenset(message.id for session in sessions for message in session.turns)
    return Conversation(str(sample["sample_id"]), sessions, _questions(sample["qa"], ids))


def _session(parts: Mapping[str, Any], number: int) -> Stretch:
    began = datetime.strptime(parts[f"session_{number}_date_time"], TIME_FORMAT).replace(tzinfo=UTC)
    return Stretch(
        f"session_{number}",
        tuple(
            Message(
                id=turn["dia_id"],
                # Both speakers are people, and evidence stands in what either of them says.
                role=Role.USER,
                speaker=turn["speaker"],
                text=_text(turn),
                at=began + place * TURN_PACE,
            )
            for place, turn in enumerate(parts[f"session_{number}"])
        ),
    )


def _text(turn: Mapping[str, Any]) -> str:
    caption = turn.get("blip_caption")
    return f"{turn['text']} … [picture: {caption}]" if caption else str(turn["text"])


def _questions(samples: Sequence[Mapping[str, Any]], ids: frozenset[str]) -> tuple[Question, ...]:
    questions = []
    for question in samples:
        evidence = evidence_ids(question["evidence"], ids)
        if evidence:
            category = question["category"]
            questions.append(
                Question(question["question"], CATEGORIES[category], evidence, apart=category == APART)
            )
    return tuple(questions)
