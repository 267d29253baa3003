"""Feedback and the query graph: what a rating moves, what counts as the same question, and what answered it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID, uuid4

import all_shards
import pytest
from queries import rows
from sqlalchemy import Engine, text
from starlette.testclient import TestClient

from memory_app.agents.rows import agents
from memory_app.dispatch import finder
from memory_app.dispatch.job_table import JOBS
from memory_app.errors import InvalidInput, NotFound, TooLarge
from memory_app.hot import erase
from memory_app.jobs import jobs
from memory_app.main.http import create_app
from memory_app.memories import lookup
from memory_app.memories.feedback import give_feedback
from memory_app.memories.query_graph import Source, search
from memory_app.memories.remember import remember
from memory_app.recall.context import ContextRequest, context
from memory_app.records.records import Label, NewTurn, Role, Statement
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.sleep import cycle
from memory_app.turns.record import record
from memory_app.turns.tickets import ticket

SCOPE = Scope("ada", "bob")
CHAT, OTHER = Scope("ada", "bob", "chat"), Scope("ada", "bob", "other")
PARKED = "Where did I park the blue car yesterday evening?"
PARKED_TOO = "Where did I park the blue car yesterday evening?!"
PARKED_NEAR = "Where did I park the blue car on yesterday's evening trip?"


def said(runtime: Runtime, tenant: int, *turns: tuple[Role, str], scope: Scope = CHAT) -> list[UUID]:
    tickets = record(runtime, tenant, scope, [NewTurn(role, words) for role, words in turns])
    finder.drain(runtime)
    return [ticket.id for ticket in tickets]


def queries(owner: Engine) -> Sequence[Any]:
    return rows(owner, "SELECT * FROM memories WHERE kind = 'query' ORDER BY id")


def score(owner: Engine, memory_id: UUID) -> float:
    ((found,),) = rows(owner, "SELECT feedback_score FROM memories WHERE id = :id", id=memory_id)
    return float(found)


def fact(runtime: Runtime, tenant: int, words: str) -> UUID:
    return remember(runtime, tenant, SCOPE, statement=Statement("fact", words), deduplicate=False).id


# --- feedback -------------------------------------------------------------------------------------------------


def ask_window(runtime: Runtime, tenant: int, query: str, *, session: str = "chat") -> tuple[str, ...]:
    return context(runtime, tenant, SCOPE, request=ContextRequest(query, session=session)).ids


def test_a_rating_of_a_reply_reaches_what_stood_in_its_window(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    horse = fact(runtime, tenant, "Bob rides a horse.")
    core = remember(
        runtime,
        tenant,
        SCOPE,
        statement=Statement("core", "Never speak of the horse race."),
        deduplicate=False,
    ).id
    others = [fact(runtime, tenant, f"Horse number {n} stands in the stable.") for n in range(12)]
    window = ask_window(runtime, tenant, "Does Bob ride a horse?")
    outside = next(other for other in others if str(other) not in window)
    assert str(horse) in window and str(core) in window
    (reply,) = said(runtime, tenant, (Role.ASSISTANT, "Yes, he rides a lot."))
    effect = give_feedback(runtime, tenant, SCOPE, target=reply, label=Label.DOWN)
    assert horse in effect.shown
    assert score(owner, horse) == pytest.approx(-0.1)
    assert (score(owner, outside), score(owner, core)) == (0, 0)
    give_feedback(runtime, tenant, SCOPE, target=reply, label=Label.UP)
    assert score(owner, horse) == pytest.approx(0, abs=1e-6)


def test_a_rating_reaches_the_window_before_the_reply_only(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    horse, boat = fact(runtime, tenant, "Bob rides a horse."), fact(runtime, tenant, "Eve sails a boat.")
    ask_window(runtime, tenant, "Who rides a horse?")
    (first,) = said(runtime, tenant, (Role.ASSISTANT, "Bob does."))
    ask_window(runtime, tenant, "Who sails a boat?", session="other")
    (second,) = said(runtime, tenant, (Role.ASSISTANT, "Eve does."), scope=OTHER)
    of_first = give_feedback(runtime, tenant, SCOPE, target=first, label=Label.UP).shown
    of_second = give_feedback(runtime, tenant, SCOPE, target=second, label=Label.UP).shown
    assert horse in of_first
    assert boat in of_second
    ((scope_id,),) = rows(owner, "SELECT DISTINCT scope_id FROM turns")
    erase.erase(runtime.hot, [scope_id])
    assert give_feedback(runtime, tenant, SCOPE, target=first, label=Label.UP).shown == ()


def test_what_is_retired_since_it_was_shown_is_not_moved(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    horse = fact(runtime, tenant, "Bob rides a horse.")
    ask_window(runtime, tenant, "Who rides a horse?")
    (reply,) = said(runtime, tenant, (Role.ASSISTANT, "Bob does."))
    with owner.begin() as connection:
        connection.execute(
            text("UPDATE memories SET retired_at = now(), retired_reason = 'evicted' WHERE id = :id"),
            {"id": horse},
        )
    assert give_feedback(runtime, tenant, SCOPE, target=reply, label=Label.UP).shown == ()
    assert score(owner, horse) == 0


def test_feedback_moves_a_memory_and_half_of_it_what_is_similar(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    meant = fact(runtime, tenant, "Bob goes sailing on the lake with his cousin on Sundays.")
    similar = fact(runtime, tenant, "Bob goes sailing on the lake with his cousin in summer on Sundays.")
    far = fact(runtime, tenant, "The printer needs toner.")

    given = give_feedback(runtime, tenant, SCOPE, target=meant, label=Label.UP, note="right")

    assert given.moved == (meant,)
    assert given.neighbours == (similar,)
    assert [score(owner, id) for id in (meant, similar, far)] == pytest.approx([0.2, 0.1, 0.0])
    assert [tuple(row) for row in rows(owner, "SELECT memory_id, label, note FROM feedback")] == [
        (meant, "up", "right")
    ]


def test_scores_stay_between_minus_one_and_one(runtime: Runtime, tenant: int, owner: Engine) -> None:
    meant = fact(runtime, tenant, "Bob likes tea.")
    for _ in range(7):
        give_feedback(runtime, tenant, SCOPE, target=meant, label=Label.DOWN)
    assert score(owner, meant) == -1
    give_feedback(runtime, tenant, SCOPE, target=meant, label=Label.UP)
    assert score(owner, meant) == pytest.approx(-0.8)


def test_feedback_on_an_answer_moves_the_question_it_answered(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    _, answer = said(
        runtime, tenant, (Role.USER, PARKED), (Role.ASSISTANT, "In the garage of the theatre, level two.")
    )
    (question,) = queries(owner)

    given = give_feedback(runtime, tenant, SCOPE, target=answer, label=Label.RETRY)

    assert question.id in given.moved
    assert score(owner, question.id) == pytest.approx(-0.1)


def test_feedback_on_what_was_merged_moves_what_it_was_merged_into(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    meant = fact(runtime, tenant, "Bob goes sailing on the lake with his cousin in the summer.")
    fact(runtime, tenant, "Bob goes sailing on the lake with his cousin in summer.")
    jobs.perform(runtime, cycle.ask(runtime, tenant, SCOPE).id, JOBS)
    whole = lookup.read_memory(runtime, tenant, meant).successor
    assert whole is not None

    given = give_feedback(runtime, tenant, SCOPE, target=meant, label=Label.UP)

    assert (given.target, given.moved) == (meant, (whole,))
    assert [score(owner, id) for id in (meant, whole)] == pytest.approx([0.0, 0.2])
    assert [row.memory_id for row in rows(owner, "SELECT memory_id FROM feedback")] == [whole]


def test_feedback_on_what_was_replaced_stays_with_what_was_meant(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    old, new = (
        remember(
            runtime,
            tenant,
            SCOPE,
            statement=Statement(
                "fact", f"Bob lives in {city}.", subject="Bob", relation="lives_in", object=city
            ),
        ).id
        for city in ("Porto", "Lisbon")
    )
    assert lookup.read_memory(runtime, tenant, old).retired_reason == "superseded"
    assert give_feedback(runtime, tenant, SCOPE, target=old, label=Label.DOWN).moved == (old,)
    assert score(owner, new) == 0


@pytest.mark.parametrize("role", [Role.USER, Role.TOOL, Role.SYSTEM])
def test_only_the_assistants_turns_are_rated(
    runtime: Runtime, tenant: int, owner: Engine, role: Role
) -> None:
    (turn,) = said(runtime, tenant, (role, PARKED))
    with pytest.raises(InvalidInput, match=f"the {role}'s; rate the assistant's turn") as refused:
        give_feedback(runtime, tenant, SCOPE, target=turn, label=Label.UP)
    assert refused.value.field == "target"
    assert rows(owner, "SELECT FROM feedback") == []


def test_feedback_on_what_belongs_to_somebody_else_finds_nothing(
    runtime: Runtime, tenant: int, other_tenant: int
) -> None:
    meant = fact(runtime, tenant, "Bob likes tea.")
    remember(runtime, tenant, Scope("ada", "eve"), statement=Statement("fact", "Eve likes milk."))
    remember(runtime, other_tenant, SCOPE, statement=Statement("fact", "Bob likes milk."))
    for whose, scope, target in (
        (tenant, Scope("ada", "eve"), meant),
        (other_tenant, SCOPE, meant),
        (tenant, SCOPE, uuid4()),
    ):
        with pytest.raises(NotFound) as refused:
            give_feedback(runtime, whose, scope, target=target, label=Label.UP)
        assert refused.value.field == "target"


def test_a_note_has_a_limit(runtime: Runtime, tenant: int) -> None:
    meant = fact(runtime, tenant, "Bob likes tea.")
    with pytest.raises(TooLarge):
        give_feedback(runtime, tenant, SCOPE, target=meant, label=Label.UP, note="x" * 2_001)


# --- the query graph ------------------------------------------------------------------------------------------


def test_a_question_asked_again_is_counted_and_not_stored_twice(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    said(runtime, tenant, (Role.USER, PARKED))
    said(runtime, tenant, (Role.USER, PARKED_TOO))
    (question,) = queries(owner)
    assert (question.text, question.repeat_count) == (PARKED, 2)


def test_similar_questions_are_linked_and_never_merged(runtime: Runtime, tenant: int, owner: Engine) -> None:
    said(runtime, tenant, (Role.USER, PARKED), (Role.USER, PARKED_NEAR))
    assert [row.retired_at for row in queries(owner)] == [None, None]
    assert [row.type for row in rows(owner, "SELECT type FROM links")] == ["similar_to"]


def test_the_next_answer_is_linked_to_its_question(runtime: Runtime, tenant: int, owner: Engine) -> None:
    asked, first, _ = said(
        runtime,
        tenant,
        (Role.USER, PARKED),
        (Role.ASSISTANT, "In the garage of the theatre, level two."),
        (Role.ASSISTANT, "You paid until midnight."),
    )
    assert {
        row.turn_id
        for row in rows(
            owner,
            "SELECT turn_id FROM evidence e JOIN memories m ON m.id = e.memory_id WHERE m.kind = 'query'",
        )
    } == {asked, first}


def test_an_answer_that_comes_later_is_linked_too(runtime: Runtime, tenant: int, owner: Engine) -> None:
    said(runtime, tenant, (Role.USER, PARKED))
    (answer,) = said(runtime, tenant, (Role.ASSISTANT, "In the garage of the theatre, level two."))
    assert answer in {row.turn_id for row in rows(owner, "SELECT turn_id FROM evidence")}


def test_what_a_question_mentions_is_linked(runtime: Runtime, tenant: int, owner: Engine) -> None:
    said(runtime, tenant, (Role.USER, "My sister Clara Novak lives in Lisbon."))
    said(runtime, tenant, (Role.USER, "When does Clara Novak arrive in Lisbon?"))
    mentioned = rows(
        owner,
        """SELECT e.label FROM mentions n JOIN entities e ON e.id = n.entity_id
        JOIN memories m ON m.id = n.memory_id WHERE m.kind = 'query'""",
    )
    assert mentioned


def test_questions_are_kept_out_of_recall_and_of_tickets(runtime: Runtime, tenant: int) -> None:
    (turn_id,) = said(runtime, tenant, (Role.USER, PARKED))
    client_rows = search(runtime, tenant, SCOPE, text=PARKED)
    assert len(client_rows) == 1
    from_ticket = rows_of_ticket(runtime, tenant, turn_id)
    assert from_ticket == ((), "nothing noteworthy")


def rows_of_ticket(runtime: Runtime, tenant: int, turn_id: UUID) -> tuple[tuple[UUID, ...], str | None]:
    found = ticket(runtime, tenant, turn_id)
    return found.memory_ids, found.reason


def test_an_agent_may_do_without_the_query_graph(runtime: Runtime, tenant: int, owner: Engine) -> None:
    said(runtime, tenant, (Role.USER, "Hello there, I am back again."))
    with owner.begin() as connection:
        agents.change(
            connection,
            tenant,
            "ada",
            parts={"policy": {"query_graph": False}},
            copies=all_shards.copies(connection),
        )
    said(runtime, tenant, (Role.USER, PARKED))
    assert queries(owner) == []


def test_similar_questions_are_found_with_a_bias_to_the_session(runtime: Runtime, tenant: int) -> None:
    said(runtime, tenant, (Role.USER, PARKED), scope=OTHER)
    said(runtime, tenant, (Role.USER, PARKED_NEAR), scope=CHAT)

    found = search(runtime, tenant, CHAT, text="Where is the blue car that I did park yesterday evening?")

    assert {one.source for one in found} == {Source.SESSION, Source.AGENT}
    by_source = {one.source: one for one in found}
    assert by_source[Source.SESSION].score == pytest.approx(by_source[Source.SESSION].similarity + 0.05)
    assert by_source[Source.AGENT].score == pytest.approx(by_source[Source.AGENT].similarity)
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)


@pytest.mark.parametrize(
    ("words", "limit", "field"), [(" ", 5, "text"), ("x" * 8_001, 5, "text"), ("x", 0, "limit")]
)
def test_a_search_that_makes_no_sense_is_refused(
    runtime: Runtime, tenant: int, words: str, limit: int, field: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        search(runtime, tenant, CHAT, text=words, limit=limit)
    assert refused.value.field == field


# --- over HTTP ------------------------------------------------------------------------------------------------


def test_feedback_and_queries_over_http(runtime: Runtime, tenant: int, api_key: str) -> None:
    client = TestClient(create_app(runtime), headers={"Authorization": f"Bearer {api_key}"})
    said(runtime, tenant, (Role.USER, PARKED))
    meant = fact(runtime, tenant, "Bob likes tea.")
    base = "/v1/agents/ada/users/bob"

    given = client.post(f"{base}/feedback", json={"target": str(meant), "label": "up"})
    assert given.status_code == 201
    effect = {"target": str(meant), "label": "up", "moved": [str(meant)], "neighbours": [], "shown": []}
    assert given.json() == effect
    assert client.get(f"/v1/memories/{meant}").json()["feedback_score"] == pytest.approx(0.2)

    (found,) = client.post(f"{base}/queries/search", json={"text": PARKED, "session": "chat"}).json()[
        "queries"
    ]
    assert (found["text"], found["source"], found["session"]) == (PARKED, "session", "chat")
    assert found["similarity"] == pytest.approx(1, abs=1e-3)

    refused = client.post(f"{base}/feedback", json={"target": str(meant), "label": "great"})
    assert (refused.status_code, refused.json()["error"]["field"]) == (422, "label")
