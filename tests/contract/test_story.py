"""The story of two sessions over two weeks comes out the same, however its turns are cut into questions."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from uuid import UUID, uuid4
from zoneinfo import ZoneInfo

import pytest
from pydantic import TypeAdapter

from memory_app.extraction.llm import Asking, SessionSynthesis, Talk, synthesize_session, synthesize_turns
from memory_app.providers.chat import Chat
from memory_app.providers.provider import connect
from memory_app.records.records import Extraction, Memory, Role, Statement, Turn
from memory_app.testing import StubProcess, story

ZONE = ZoneInfo("Europe/Berlin")


@pytest.fixture(scope="module")
def asking() -> Iterator[Asking]:
    with StubProcess(*story.RULES) as stub:
        chat = Chat(connect(stub.base_url), "stub-small")
        yield Asking(chat)
        chat.close()


def turns_of(session: story.StorySession) -> list[Turn]:
    speakers = {"user": story.USER, "assistant": story.AGENT}
    return [
        Turn(
            UUID(int=n),
            session.name,
            n,
            Role(role),
            speakers[role],
            text,
            session.begins + timedelta(minutes=n),
        )
        for n, (role, text) in enumerate(session.turns, 1)
    ]


def talk(turns: list[Turn], earlier: list[Turn] | None = None) -> Talk:
    return Talk(tuple(turns), story.USER, story.AGENT, ZONE, earlier=tuple(earlier or ()))


def in_batches(
    asking: Asking, session: story.StorySession, size: int, ask=synthesize_turns
) -> list[Statement]:
    turns = turns_of(session)
    found: list[Statement] = []
    for start in range(0, len(turns), size):
        batch = talk(turns[start : start + size], turns[max(start - 3, 0) : start])
        found += ask(asking, batch).extraction.statements
    return found


@pytest.mark.parametrize("size", [2, 3, 4, 20])
def test_turns_give_the_same_memories_in_any_batches(asking: Asking, size: int) -> None:
    texts = {(s.kind, s.text) for session in story.SESSIONS for s in in_batches(asking, session, size)}
    assert texts == {
        ("fact", "Mira moved to Hamburg in the week of 2026-02-23."),
        ("fact", "Mira works at the harbour museum."),
        ("fact", "Mira has a dog called Pepper."),
        ("fact", "Mira walks along the Elbe with Pepper every morning."),
        ("fact", "Mira sings in the choir Elbe Singers, which rehearses on Tuesdays."),
        ("fact", "Mira works at the maritime archive."),
        ("fact", "Mira has a sister called Lea."),
        ("anchor", story.FIRST_TRUST),
        ("identity", "Nova slows down when somebody trusts her."),
        (
            "artifact",
            "Joining a choir / excitement / It scares Mira and will give her evenings a shape; she joins one.",
        ),
        ("artifact", "The choir / joy / The first rehearsal was terrifying and wonderful."),
        ("expression", "Keep answers short in the evening; Mira is tired then."),
        ("expression", "Longer answers are welcome in the evening again."),
    }


def test_a_session_strengthens_and_then_changes_its_anchor(asking: Asking) -> None:
    begun = story.FIRST.begins
    anchor = Memory("anchor", story.FIRST_TRUST, id=uuid4(), created_at=begun, valid_from=begun, importance=8)
    first = synthesize_session(asking, talk(turns_of(story.FIRST)), [anchor])
    assert [s.text for s in first.statements if s.kind == "anchor"] == [story.FIRST_TRUST]
    assert first.summary is not None
    assert first.summary.text == story.FIRST_SUMMARY
    second = synthesize_session(asking, talk(turns_of(story.SECOND)), [anchor])
    assert [(c.memory_id, c.statement.text) for c in second.changed] == [(anchor.id, story.SECOND_TRUST)]


@pytest.mark.parametrize("session", story.SESSIONS, ids=lambda session: session.name)
def test_what_was_made_can_be_kept_as_json_and_read_again(
    asking: Asking, session: story.StorySession
) -> None:
    for kind, made in (
        (Extraction, synthesize_turns(asking, talk(turns_of(session))).extraction),
        (SessionSynthesis, synthesize_session(asking, talk(turns_of(session)))),
    ):
        adapter = TypeAdapter(kind)
        assert adapter.validate_json(adapter.dump_json(made)) == made
