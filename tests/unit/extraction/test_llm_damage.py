"""A thousand damaged answers: what is good in them is kept, and nothing breaks."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID
from zoneinfo import ZoneInfo

import damaged
import pytest
from damaged import AGENT_TURNS, MEMORY_TEXTS, TURN_TEXTS, Damaged

from memory_app.extraction.llm import Asking, Talk, synthesize_deep, synthesize_session, synthesize_turns
from memory_app.extraction.llm.prompts import load_all_prompts
from memory_app.records.records import Memory, Role, Statement, Turn
from memory_app.records.statement import checked_statement
from memory_app.testing import ScriptedModel

ZONE = ZoneInfo("Europe/Lisbon")
AT = datetime(2026, 3, 6, 14, 30, tzinfo=UTC)
EXAMPLE = {"text": "Keep answers short when Ottilie is tired.", "evidence": ["t5"]}
PROMPTS = " ".join(" ".join(prompt.text.split()) for prompt in load_all_prompts())


def turn(number: int, text: str) -> Turn:
    role, speaker = (Role.ASSISTANT, "Nova") if number in AGENT_TURNS else (Role.USER, "Mira")
    return Turn(UUID(int=number), "s", number, role, speaker, text, AT + timedelta(minutes=number))


TALK = Talk(tuple(turn(number, text) for number, text in enumerate(TURN_TEXTS, 1)), "Mira", "Nova", ZONE)
MEMORIES = tuple(
    Memory("fact", text, id=UUID(int=number), created_at=AT, valid_from=AT)
    for number, text in enumerate(MEMORY_TEXTS, 1)
)


def asking(case: Damaged) -> Asking:
    # One answer and no other: a second question would get the stub's.
    return Asking(ScriptedModel(case.answer))


def expected_texts(good: dict[str, object], case: Damaged) -> set[str]:
    first = {name: items[0] for name, items in good.items() if name in case.lists and isinstance(items, list)}
    return {
        " / ".join((item["topic"], item["feeling"], item["conclusion"])) if "topic" in item else item["text"]
        for item in first.values()
    }


def check_statements(statements: tuple[Statement, ...]) -> None:
    for statement in statements:
        checked_statement(statement)
        assert "Ottilie" not in statement.text
        assert statement.text not in PROMPTS


def test_good_items_of_damaged_answers_about_turns_are_kept() -> None:
    for case in damaged.damaged(damaged.TURNS_ANSWER, 500):
        # given an answer with one damage, and an example of the prompt among its items
        if isinstance(case.answer.get("tones"), list):
            case.answer["tones"].append(EXAMPLE)
        # when it is read
        extracted = synthesize_turns(asking(case), TALK)
        # then the good items are there, and nothing of a prompt
        statements = extracted.extraction.statements
        assert expected_texts(damaged.TURNS_ANSWER, case) <= {s.text for s in statements}, case.what
        assert extracted.provenance.calls == 1
        check_statements(statements)


def test_good_items_of_damaged_answers_about_sessions_are_kept() -> None:
    for case in damaged.damaged(damaged.SESSION_ANSWER, 250):
        made = synthesize_session(asking(case), TALK)
        assert expected_texts(damaged.SESSION_ANSWER, case) <= {s.text for s in made.statements}, case.what
        assert made.provenance.calls == 1
        check_statements(made.statements)


def test_good_items_of_damaged_deep_answers_are_kept() -> None:
    for case in damaged.damaged(damaged.DEEP_ANSWER, 250):
        made = synthesize_deep(asking(case), MEMORIES, time_zone=ZONE)
        texts = {item.text for item in (*made.unions, *made.patterns)}
        links = {(link.source, link.target) for link in made.links}
        good = {name: items[0] for name, items in damaged.DEEP_ANSWER.items() if name in case.lists}
        link = good.pop("links", None)
        assert {item["text"] for item in good.values()} <= texts, case.what
        assert link is None or (MEMORIES[0].id, MEMORIES[4].id) in links, case.what
        assert made.provenance.calls == 1
        check_statements(made.patterns)


@pytest.mark.parametrize("good", [damaged.TURNS_ANSWER, damaged.SESSION_ANSWER])
def test_without_damage_everything_is_kept(good: dict[str, object]) -> None:
    case = Damaged(dict(good), frozenset(good), "nothing")
    if "summary" in good:
        statements = synthesize_session(asking(case), TALK).statements
    else:
        statements = synthesize_turns(asking(case), TALK).extraction.statements
    assert len(statements) == 10


def test_all_kinds_of_damage_are_tried() -> None:
    done = {case.what.split()[-1] for case in damaged.damaged(damaged.TURNS_ANSWER, 500)}
    assert done == set(damaged.HOW)
