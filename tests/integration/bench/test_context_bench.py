"""The windows of labelled questions are compared with the turns that hold the answer."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from memory_app import MemoryApp
from memory_app.bench import context
from memory_app.bench.conversation import Conversation, Message, Question, Stretch
from memory_app.records.records import Role
from memory_app.runtime import Runtime

BEGIN = datetime(2026, 3, 1, 9, tzinfo=UTC)
ANSWER = "The spare key is under the blue flower pot."


def conversation() -> Conversation:
    """The answer, then so much talk that the end of the chat does not reach back to it."""
    chatter = [f"Today I walked {place} miles along the canal, and it rained." for place in range(400)]
    turns = tuple(
        Message(str(place), Role.USER, "Ines", text, BEGIN + place * timedelta(minutes=1))
        for place, text in enumerate([ANSWER, *chatter])
    )
    questions = (
        Question("Where is the spare key?", "single-hop", frozenset({"0"})),
        Question("Where was the spare key not?", "adversarial", frozenset({"0"}), apart=True),
    )
    return Conversation("ines", (Stretch("first", turns),), questions)


def test_evidence_counts_where_it_stands_in_the_text(runtime: Runtime, tenant: int) -> None:
    figures = context.measure(MemoryApp(runtime, tenant), [conversation()], say=lambda _: None)

    by_text = {(of["text"], of["budget"]): of for of in figures["texts"]}
    assert {of["questions"] for of in by_text.values()} == {1}
    for budget in context.BUDGETS:
        window = by_text["window", budget]
        assert (window["evidence"], window["whole"]) == (1.0, 1.0)
        assert window["tokens_most"] <= budget
        assert by_text["end of the chat", budget]["evidence"] == 0
    assert by_text["top ten turns", 0]["evidence"] == 1.0
    assert figures["by_category"]["single-hop"] == dict.fromkeys(context.BUDGETS, 1.0)
