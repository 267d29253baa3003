"""What the window keeps between two calls: cached ids, tone and start of a session, and nothing shown twice."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from hot_reads import cached_context, noted_expression
from sqlalchemy import Engine, text

from memory_app.dispatch import finder
from memory_app.hot import expression
from memory_app.hot.erase import erase
from memory_app.memories.remember import remember
from memory_app.recall.context import ContextRequest, context
from memory_app.recall.sections import ContextWindow
from memory_app.records.records import NewTurn, Role, Statement
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.turns.record import record
from memory_app.turns.stream import clear_hot

BOB, SESSION = Scope("ada", "bob"), Scope("ada", "bob", "s1")


def know(runtime: Runtime, tenant: int, kind: str, words: str, **fields: Any) -> UUID:
    return remember(runtime, tenant, BOB, statement=Statement(kind, words, **fields), deduplicate=False).id


def say(runtime: Runtime, tenant: int, words: str, *, session: str = "s1", **fields: Any) -> None:
    place = Scope("ada", "bob", session)
    record(runtime, tenant, place, [NewTurn(fields.pop("role", Role.USER), words, **fields)])


def window(runtime: Runtime, tenant: int, query: str | None = None, **fields: Any) -> ContextWindow:
    return context(runtime, tenant, BOB, request=ContextRequest(query=query, **fields))


def lines(found: ContextWindow, section: str) -> str:
    return "\n".join(line for one in found.sections if one.name == section for line in one.lines)


@pytest.fixture
def scope_id(runtime: Runtime, tenant: int, owner: Engine) -> int:
    say(runtime, tenant, "Good morning.")
    with owner.connect() as connection:
        return int(connection.execute(text("SELECT scope_id FROM sessions")).scalar_one())


# --- the cached ids -------------------------------------------------------------------------------------------


def test_ids_of_standing_rows_are_cached_and_dropped_with_a_change(
    runtime: Runtime, tenant: int, scope_id: int
) -> None:
    know(runtime, tenant, "core", "Never give medical advice.")
    assert "medical" in window(runtime, tenant).text
    kept = cached_context(runtime.hot, [scope_id]).context
    assert kept is not None and len(kept.ids["bootstrap"]) == 1
    know(runtime, tenant, "core", "Always be brief.")
    assert cached_context(runtime.hot, [scope_id]).context is None
    assert "brief" in window(runtime, tenant).text


def test_a_cached_id_of_a_memory_that_no_longer_holds_shows_nothing(
    runtime: Runtime, tenant: int, scope_id: int, owner: Engine
) -> None:
    know(runtime, tenant, "core", "Never give medical advice.")
    window(runtime, tenant)
    with owner.begin() as connection:
        connection.execute(text("UPDATE memories SET valid_until = now()"))
    assert cached_context(runtime.hot, [scope_id]).context is not None
    assert "medical" not in window(runtime, tenant).text


def test_the_window_is_the_same_from_the_cache_and_without_it(
    runtime: Runtime, tenant: int, scope_id: int
) -> None:
    for n in range(12):
        know(runtime, tenant, "core", f"Directive number {n}.", importance=n % 3 + 8)
        know(runtime, tenant, "anchor", f"They laughed about train number {n}.", importance=7)
    first = window(runtime, tenant)
    assert window(runtime, tenant).sections == first.sections
    erase(runtime.hot, [scope_id])
    assert window(runtime, tenant).sections == first.sections


# --- tone and session -----------------------------------------------------------------------------------------


def test_the_tone_of_the_last_interaction_is_shown_whoever_keeps_it(
    runtime: Runtime, tenant: int, scope_id: int
) -> None:
    say(runtime, tenant, "I won!", emotional_tone="joy")
    assert "last tone joy" in lines(window(runtime, tenant, session="s1"), "expression")
    say(runtime, tenant, "Hm.", emotional_tone="wistful about the sea")
    assert noted_expression(runtime.hot, scope_id).tone == expression.UNLABELLED, (
        "free words stay out of Redis"
    )
    assert "last tone wistful about the sea" in lines(window(runtime, tenant, session="s1"), "expression")
    erase(runtime.hot, [scope_id])
    assert "last tone wistful" in lines(window(runtime, tenant, session="s1"), "expression")
    rebuilt = noted_expression(runtime.hot, scope_id)
    assert rebuilt.last_interaction_at is not None and rebuilt.session_started_at is not None


def test_the_session_section_says_how_long_it_has_been(
    runtime: Runtime, tenant: int, scope_id: int, owner: Engine
) -> None:
    say(runtime, tenant, "Hello again.", session="s2")
    with owner.begin() as connection:
        connection.execute(
            text(
                """UPDATE turns SET at = at - CAST(v.ago AS interval)
                FROM (VALUES ('s1', '2 days 5 hours'), ('s2', '40 minutes')) AS v(name, ago)
                JOIN sessions s ON s.name = v.name
                WHERE turns.session_id = s.id"""
            )
        )
    erase(runtime.hot, [scope_id])
    head = lines(window(runtime, tenant, session="s2"), "session").splitlines()[0]
    assert head == 'Session "s2": 40 minutes so far. Last interaction before it: 2 days 5 hours ago.'


def test_clearing_a_session_starts_its_time_anew(
    runtime: Runtime, tenant: int, scope_id: int, owner: Engine
) -> None:
    with owner.begin() as connection:
        connection.execute(text("UPDATE sessions SET created_at = created_at - interval '3 days'"))
    clear_hot(runtime, tenant, SESSION)
    assert "less than a minute so far" in lines(window(runtime, tenant, session="s1"), "session")


# --- nothing twice --------------------------------------------------------------------------------------------


def test_an_insight_on_the_topic_is_in_its_section_and_not_among_the_rows(
    runtime: Runtime, tenant: int
) -> None:
    for n in range(11):
        know(runtime, tenant, "artifact", f"Insight number {n} about gardens.", importance=9)
    know(runtime, tenant, "artifact", "Long swims clear the head.", importance=2)
    found = window(runtime, tenant, "swims", budget_tokens=4_000)
    assert "Long swims" in lines(found, "insights")
    assert "Long swims" not in lines(found, "memories")
    assert len(found.ids) == len(set(found.ids))


def test_a_turn_the_budget_took_out_of_the_session_may_stand_as_a_row(runtime: Runtime, tenant: int) -> None:
    say(runtime, tenant, "The ferry to Texel leaves at seven from the north pier.")
    for n in range(19):
        say(
            runtime, tenant, f"Small talk number {n}, which goes on and on about nothing in particular today."
        )
    finder.drain(runtime)
    wide = window(runtime, tenant, "when does the ferry leave", session="s1", budget_tokens=6_000)
    assert "ferry to Texel" in lines(wide, "session") and "ferry to Texel" not in lines(wide, "memories")
    tight = window(runtime, tenant, "when does the ferry leave", session="s1", budget_tokens=500)
    assert "ferry to Texel" not in lines(tight, "session")
    assert "ferry to Texel" in lines(tight, "memories")
    assert tight.tokens <= 500
