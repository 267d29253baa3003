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

from memory_app.bench.conversation import Conversation, Question, Said, Stretch, read_json
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
    found = read_json(path)
    if not isinstance(found, list):
        raise InvalidInput(f"{path}: LoCoMo is a list of conversations", field="path")
    try:
        return tuple(_conversation(sample) for sample in found)
    except (KeyError, TypeError, AttributeError) as error:
        raise InvalidInput(f"{path}: not LoCoMo ({type(error).__name__}: {error})", field="path") from error


def evidence_ids(given: Iterable[str], known: frozenset[str]) -> frozenset[str]:
    """Turn ids in evidence strings, also where two share one string or a colon strayed; unknown ones are left out."""
    pairs = (pair for text in given for pair in _EVIDENCE.findall(text))
    return frozenset(f"D{int(session)}:{int(turn)}" for session, turn in pairs) & known


def _conversation(sample: Mapping[str, Any]) -> Conversation:
    parts = sample["conversation"]
    numbers = sorted(int(match[1]) for key in parts if (match := _SESSION.fullmatch(key)))
    sessions = tuple(_session(parts, number) for number in numbers if parts[f"session_{number}"])
    known = frozenset(said.id for session in sessions for said in session.turns)
    return Conversation(str(sample["sample_id"]), sessions, _questions(sample["qa"], known))


def _session(parts: Mapping[str, Any], number: int) -> Stretch:
    began = datetime.strptime(parts[f"session_{number}_date_time"], TIME_FORMAT).replace(tzinfo=UTC)
    return Stretch(
        f"session_{number}",
        tuple(
            Said(turn["dia_id"], Role.USER, turn["speaker"], _said(turn), began + place * TURN_PACE)
            for place, turn in enumerate(parts[f"session_{number}"])
        ),
    )


def _said(turn: Mapping[str, Any]) -> str:
    caption = turn.get("blip_caption")
    return f"{turn['text']} … [picture: {caption}]" if caption else str(turn["text"])


def _questions(asked: Sequence[Mapping[str, Any]], known: frozenset[str]) -> tuple[Question, ...]:
    questions = []
    for question in asked:
        evidence = evidence_ids(question["evidence"], known)
        if evidence:
            category = question["category"]
            questions.append(
                Question(question["question"], CATEGORIES[category], evidence, apart=category == APART)
            )
    return tuple(questions)
