"""What damaged answers cost: one question each, and one more only where nothing at all could be read."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from uuid import UUID
from zoneinfo import ZoneInfo

import damaged
import pytest
from damaged import AGENT_TURNS, TURN_TEXTS

from memory_app.errors import BadModelOutput
from memory_app.extraction.llm import Asking, Talk, synthesize_turns
from memory_app.providers.chat import Chat
from memory_app.providers.provider import Timeouts, connect
from memory_app.records.records import Role, Turn
from memory_app.testing import Rule, StubProvider

AT = datetime(2026, 3, 6, 14, 30, tzinfo=UTC)
PATIENT = Timeouts(connect=120, read=120, total=120)


def turn(number: int, text: str) -> Turn:
    role, speaker = (Role.ASSISTANT, "Nova") if number in AGENT_TURNS else (Role.USER, "Mira")
    return Turn(UUID(int=number), "s", number, role, speaker, text, AT + timedelta(minutes=number))


TALK = Talk(
    tuple(turn(number, text) for number, text in enumerate(TURN_TEXTS, 1)),
    "Mira",
    "Nova",
    ZoneInfo("Europe/Lisbon"),
)


@pytest.fixture
def stub() -> Iterator[StubProvider]:
    with StubProvider() as stub:
        yield stub


@pytest.fixture
def chat(stub: StubProvider) -> Iterator[Chat]:
    chat = Chat(connect(stub.base_url, timeouts=PATIENT), "small", question_seconds=600)
    yield chat
    chat.close()


@pytest.mark.slow
def test_a_thousand_damaged_answers_take_one_call_each(stub: StubProvider, chat: Chat) -> None:
    for case in damaged.damaged(damaged.TURNS_ANSWER, 1_000):
        stub.follow(Rule(answer=case.answer))
        stub.reset()
        made = synthesize_turns(Asking(chat), TALK)
        assert stub.stats.calls.total() == made.provenance.calls == 1, case.what
        assert len(made.extraction.statements) >= len(case.lists), case.what


UNREADABLE = (
    "",
    "I am sorry.",
    "{}",
    "[]",
    '{"colour": "blue"}',
    '{"facts": []}',
    '{"facts": [{"text": "cut',
    "7",
)


@pytest.mark.parametrize("answer", UNREADABLE)
def test_where_nothing_can_be_read_one_question_more_is_asked(
    stub: StubProvider, chat: Chat, answer: str
) -> None:
    stub.follow(Rule(answer=answer))
    with pytest.raises(BadModelOutput, match="after one repair"):
        synthesize_turns(Asking(chat), TALK)
    assert stub.stats.calls.total() == 2


def test_what_the_repair_brings_is_read_item_by_item(stub: StubProvider, chat: Chat) -> None:
    odd = {**damaged.TURNS_ANSWER, "facts": [{"text": ""}, *damaged.TURNS_ANSWER["facts"]]}
    stub.follow(Rule(answer="I am sorry.", times=1), Rule(answer=odd))
    made = synthesize_turns(Asking(chat), TALK)
    assert (made.provenance.calls, made.provenance.dropped) == (2, {"unreadable facts": 1})
    assert len(made.extraction.statements) == 10
