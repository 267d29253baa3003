"""Extraction: strictly in order, once, and never silent about what came of a turn."""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier
from uuid import UUID

import all_shards
import pytest
from embedders import ScriptedEmbedder, failing
from hot_reads import cached_context
from queries import rows
from sqlalchemy import Engine, text

from memory_app.agents.rows import agents
from memory_app.db.db import transaction
from memory_app.dispatch import finder
from memory_app.errors import BadModelOutput, ProviderUnavailable
from memory_app.extraction.llm import Talk
from memory_app.hot import cache
from memory_app.hot.cache import CachedContext
from memory_app.records.records import NewTurn, Role, Stage
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.settings import Extract, Settings
from memory_app.tenancy.policy import Policy
from memory_app.turns import batch as batches
from memory_app.turns import extract, extraction_failures, extractor, failed
from memory_app.turns.extract import ExtractReport, extract_session
from memory_app.turns.index import index_turns
from memory_app.turns.record import record
from memory_app.turns.rows import stages
from memory_app.turns.rows.stages import TicketRow

SCOPE = Scope("ada", "bob", "s1")
PARIS, LONDON, REX = "I live in Paris these days.", "I live in London these days.", "I have a dog named Rex."


class Killed(BaseException):
    """Stands for SIGKILL: nothing of the product may catch it."""


def spoken(
    runtime: Runtime, tenant: int, *words: str, role: Role = Role.USER, scope: Scope = SCOPE
) -> list[UUID]:
    return [ticket.id for ticket in record(runtime, tenant, scope, [NewTurn(role, said) for said in words])]


def only_session(owner: Engine) -> int:
    with owner.connect() as connection:
        return int(connection.execute(text("SELECT id FROM sessions")).scalar_one())


def ticket(runtime: Runtime, tenant: int, turn_id: UUID) -> TicketRow:
    with transaction(runtime.engine, tenant) as connection:
        found = stages.ticket(connection, turn_id)
    assert found is not None
    return found


def current(owner: Engine) -> list[str]:
    return [
        row.text
        for row in rows(
            owner, "SELECT text FROM memories WHERE retired_at IS NULL AND valid_until IS NULL ORDER BY text"
        )
    ]


def change(owner: Engine, statement: str, **values: object) -> None:
    with owner.begin() as connection:
        connection.execute(text(statement), values)


def expire_lease(owner: Engine) -> None:
    """As if the lease, or the pause after an error, were over."""
    change(
        owner,
        """UPDATE sessions SET lease_until = now() - interval '1 second',
        due_at = least(due_at, now() - interval '1 second')""",
    )


def set_policy(owner: Engine, tenant: int, **policy: object) -> None:
    with owner.begin() as connection:
        agents.change(
            connection, tenant, "ada", parts={"policy": policy}, copies=all_shards.copies(connection)
        )


def one_at_a_time(runtime: Runtime, settings: Settings) -> Runtime:
    return replace(runtime, settings=settings.model_copy(update={"extract": Extract(batch=1)}))


# --- what comes of a turn -------------------------------------------------------------------------------------


def test_a_turn_becomes_memories_that_rest_on_it(runtime: Runtime, tenant: int, owner: Engine) -> None:
    (turn_id,) = spoken(runtime, tenant, PARIS)
    index_turns(runtime)
    report = extract_session(runtime, only_session(owner))
    assert (report.turns, report.failed) == (1, 0)
    assert report.memories >= 1
    found = ticket(runtime, tenant, turn_id)
    assert (found.stage, found.reason) == (Stage.EXTRACTED, None)
    assert len(found.memory_ids) == report.memories
    assert any("Paris" in said for said in current(owner))
    (source,) = rows(owner, "SELECT DISTINCT sources, origin FROM memories")
    assert (source.sources, source.origin) == (["user:bob"], "extracted")


def test_a_turn_without_memories_says_why(runtime: Runtime, tenant: int, owner: Engine) -> None:
    reasons = {
        ("Rex barks.", Role.USER): "nothing noteworthy",
        ("ok thanks", Role.USER): "acknowledgement",
        ("The weather was rather changeable.", Role.USER): "nothing noteworthy",
        (PARIS, Role.ASSISTANT): "not said by the user",
        (LONDON, Role.TOOL): "not said by the user",
        (REX, Role.SYSTEM): "not said by the user",
    }
    turns = [NewTurn(role, said) for said, role in reasons]
    tickets = record(runtime, tenant, SCOPE, turns)
    finder.drain(runtime)
    found = [ticket(runtime, tenant, accepted.id) for accepted in tickets]
    assert [one.reason for one in found] == list(reasons.values())
    assert {(one.stage, one.memory_ids) for one in found} == {(Stage.EXTRACTED, ())}
    assert current(owner) == []


def test_with_fact_curation_off_the_turn_says_so_and_keeps_its_entities(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    set_policy(owner, tenant, fact_curation=False)
    (turn_id,) = spoken(runtime, tenant, PARIS)
    finder.drain(runtime)
    found = ticket(runtime, tenant, turn_id)
    assert (found.stage, found.memory_ids) == (Stage.EXTRACTED, ())
    assert found.reason == extract.NOT_CURATED
    assert current(owner) == []


def test_with_entity_extraction_off_a_turn_without_memories_has_no_entity(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    set_policy(owner, tenant, entity_extraction=False)
    spoken(runtime, tenant, "Yesterday it rained on Alexander Hamilton all day.")
    finder.drain(runtime)
    assert rows(owner, "SELECT key FROM entities") == []


def test_repeating_the_assistants_last_words_is_no_new_fact_of_the_user(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    said = "I have a sister named Paula."
    spoken(runtime, tenant, said, role=Role.ASSISTANT)
    finder.drain(runtime)
    (echo,) = spoken(runtime, tenant, said)
    finder.drain(runtime)
    assert ticket(runtime, tenant, echo).reason == "nothing noteworthy", "the turn before is seen as context"
    spoken(runtime, tenant, "Hm.", "Hm.", "Hm.")
    finder.drain(runtime)
    (later,) = spoken(runtime, tenant, said)
    finder.drain(runtime)
    assert ticket(runtime, tenant, later).memory_ids, "three turns of context, not more"


def test_the_answer_is_gone_once_it_took_effect_and_ids_stay(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    spoken(runtime, tenant, PARIS)
    finder.drain(runtime)
    (run,) = rows(owner, "SELECT * FROM runs")
    assert (run.state, run.answer, run.model) == ("done", None, extractor.RULES)
    assert run.report["turns"] == 1
    assert [UUID(id) for id in run.report["memories"]] == [
        row.id for row in rows(owner, "SELECT id FROM memories")
    ]
    assert {row.run_id for row in rows(owner, "SELECT run_id FROM memories")} == {run.id}


def test_new_memories_drop_the_cached_context_of_their_scope(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    spoken(runtime, tenant, PARIS)
    (scope_id,) = (row.scope_id for row in rows(owner, "SELECT scope_id FROM sessions"))
    index_turns(runtime)
    kept = CachedContext("asked", {})
    cache.put(runtime.hot, [scope_id], kept, token=cached_context(runtime.hot, [scope_id]).token)
    assert cached_context(runtime.hot, [scope_id]).context == kept
    extract_session(runtime, only_session(owner))
    assert cached_context(runtime.hot, [scope_id]).context is None


def test_a_repeated_fact_gains_evidence_instead_of_a_second_row(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    first, second = spoken(runtime, tenant, PARIS, PARIS)
    finder.drain(runtime)
    assert ticket(runtime, tenant, first).memory_ids == ticket(runtime, tenant, second).memory_ids
    assert len(current(owner)) == 1


# --- order ----------------------------------------------------------------------------------------------------


def test_turns_take_effect_in_order_so_that_the_latest_move_holds(
    runtime: Runtime, settings: Settings, tenant: int, owner: Engine
) -> None:
    spoken(runtime, tenant, PARIS, LONDON, PARIS, LONDON)
    session = only_session(owner)
    single, together = one_at_a_time(runtime, settings), Barrier(4)

    def work(_: int) -> ExtractReport:
        together.wait()
        return extract_session(single, session)

    with ThreadPoolExecutor(4) as pool:
        done = sum(report.turns for report in pool.map(work, range(4)))
    assert done + extract_session(single, session).turns == 4
    assert [said for said in current(owner) if "Paris" in said] == []
    assert len([said for said in current(owner) if "London" in said]) == 1
    places = [(row.from_seq, row.to_seq) for row in rows(owner, "SELECT * FROM runs ORDER BY finished_at")]
    assert places == [(n, n) for n in range(1, 5)]


def test_a_session_that_is_lent_out_or_not_due_is_left_alone(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    spoken(runtime, tenant, PARIS)
    session = only_session(owner)
    assert extract._claim(runtime, session) is not None
    assert extract_session(runtime, session) == ExtractReport()
    expire_lease(owner)
    assert extract_session(runtime, session).turns == 1
    assert extract_session(runtime, session) == ExtractReport()
    assert extract_session(runtime, 999_999_999) == ExtractReport()


def test_turns_that_come_while_a_session_is_lent_out_are_not_forgotten(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    spoken(runtime, tenant, PARIS)
    late: list[UUID] = []

    def say_more(_: Sequence[str]) -> None:
        if not late:
            late.extend(spoken(runtime, tenant, REX))

    report = extract_session(
        replace(runtime, embedder=ScriptedEmbedder(before=say_more)), only_session(owner)
    )
    assert report.turns == 2
    assert ticket(runtime, tenant, late[0]).stage is not Stage.FAILED
    assert finder.look(runtime).sessions == ()


# --- workers that die -----------------------------------------------------------------------------------------


@pytest.fixture
def answers_of_a_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """What rules answer counts as the answer of a model, which is kept."""
    by_rules = extractor.answer

    def answer(runtime: Runtime, tenant_id: int, talk: Talk, *, policy: Policy) -> extractor.Answered:
        answered = by_rules(runtime, tenant_id, talk, policy=policy)
        return replace(answered, made={"model": "small"})

    monkeypatch.setattr(extractor, "answer", answer)


@pytest.mark.usefixtures("answers_of_a_model")
def test_after_a_crash_the_stored_answer_is_applied_without_another_call(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    (turn_id,) = spoken(runtime, tenant, PARIS)
    session = only_session(owner)
    with pytest.raises(Killed):
        extract_session(replace(runtime, embedder=failing(Killed())), session)
    assert current(owner) == []
    (run,) = rows(owner, "SELECT answer FROM runs")
    marked = json.loads(json.dumps(run.answer).replace("Paris", "Prague"))
    change(owner, "UPDATE runs SET answer = CAST(:answer AS jsonb)", answer=json.dumps(marked))
    expire_lease(owner)
    assert extract_session(runtime, session).turns == 1
    assert all("Prague" in said for said in current(owner))
    assert ticket(runtime, tenant, turn_id).stage is not Stage.FAILED
    assert [row.attempts for row in rows(owner, "SELECT attempts FROM runs")] == [2]


@pytest.mark.usefixtures("answers_of_a_model")
def test_a_stored_answer_applies_to_its_turns_though_a_retry_takes_one(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    spoken(runtime, tenant, PARIS, REX, "I have a sister named Paula.")
    session = only_session(owner)
    slow = extract._claim(runtime, session)
    assert slow is not None
    batch = batches.next_batch(runtime, slow)
    assert batch is not None
    expire_lease(owner)
    second = extract._claim(runtime, session)
    assert second is not None
    assert batches.next_batch(runtime, second) is not None, "a shorter piece of the same run was begun"
    extract._ask(runtime, batch)
    change(owner, "UPDATE sessions SET starts = 1")
    expire_lease(owner)
    report = extract_session(runtime, session)
    assert report.turns == 3
    assert len(rows(owner, "SELECT FROM runs")) == 1
    assert [row.to_seq for row in rows(owner, "SELECT to_seq FROM runs")] == [3]


def test_turns_that_are_tried_alone_stay_with_the_process_that_tries_them(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    spoken(runtime, tenant, PARIS, REX, "I have a sister named Paula.")
    session = only_session(owner)
    with pytest.raises(Killed):
        extract_session(replace(runtime, embedder=failing(Killed())), session)
    change(owner, "UPDATE runs SET answer = NULL")
    expire_lease(owner)
    report = extract_session(runtime, session, most_seconds=0)
    assert report.turns == 3
    assert sorted(row.to_seq for row in rows(owner, "SELECT to_seq FROM runs WHERE state = 'done'")) == [1, 3]


def test_an_answer_that_cannot_be_read_any_more_is_asked_anew(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    spoken(runtime, tenant, PARIS)
    session = only_session(owner)
    with pytest.raises(Killed):
        extract_session(replace(runtime, embedder=failing(Killed())), session)
    change(owner, """UPDATE runs SET answer = '{"version": 0}'""")
    expire_lease(owner)
    assert extract_session(runtime, session).turns == 1
    assert len(current(owner)) == 1


@pytest.mark.usefixtures("answers_of_a_model")
def test_an_unstorable_statement_is_a_failure_of_its_turn_and_no_crash(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    (turn_id,) = spoken(runtime, tenant, PARIS)
    session = only_session(owner)
    with pytest.raises(Killed):
        extract_session(replace(runtime, embedder=failing(Killed())), session)
    change(
        owner,
        "UPDATE runs SET answer = jsonb_set(answer, '{extraction,statements,0,subtype}', '\"unheard of\"')",
    )
    expire_lease(owner)
    assert extract_session(runtime, session) == ExtractReport()
    assert [row.reason.split(":")[0] for row in rows(owner, "SELECT * FROM runs")] == ["subtype"]
    expire_lease(owner)
    assert extract_session(runtime, session).turns == 1
    assert ticket(runtime, tenant, turn_id).memory_ids


def test_an_answer_of_rules_is_not_kept(runtime: Runtime, tenant: int, owner: Engine) -> None:
    spoken(runtime, tenant, PARIS)
    session = only_session(owner)
    with pytest.raises(Killed):
        extract_session(replace(runtime, embedder=failing(Killed())), session)
    assert [row.answer for row in rows(owner, "SELECT answer FROM runs")] == [None]
    expire_lease(owner)
    assert extract_session(runtime, session).turns == 1
    assert [row.attempts for row in rows(owner, "SELECT attempts FROM runs")] == [2]


def test_a_worker_whose_session_was_taken_over_commits_nothing(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    spoken(runtime, tenant, PARIS, REX)
    session = only_session(owner)
    overtaken: list[ExtractReport] = []

    def overtake(_: Sequence[str]) -> None:
        expire_lease(owner)
        overtaken.append(extract_session(runtime, session))

    slow = extract_session(replace(runtime, embedder=ScriptedEmbedder(before=overtake)), session)
    assert sum(report.turns for report in overtaken) == 2
    assert (slow.turns, slow.memories) == (0, 0)
    counts = rows(owner, "SELECT repeat_count FROM memories")
    assert {row.repeat_count for row in counts} == {1}, "no effect happened twice"
    assert {row.state for row in rows(owner, "SELECT state FROM runs")} == {"done"}


def test_the_older_of_two_claims_commits_nothing_while_the_newer_works(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    spoken(runtime, tenant, PARIS)
    session = only_session(owner)
    claims = []
    for _ in range(2):
        claims.append(extract._claim(runtime, session))
        expire_lease(owner)
    old, new = claims
    assert old is not None
    assert new is not None
    batch = batches.next_batch(runtime, new)
    assert batch is not None
    stale = replace(batch, claim=old)
    with pytest.raises(extract._Fenced):
        extract._apply(runtime, stale, extract._ask(runtime, batch))
    assert current(owner) == []
    for give_up in (
        extraction_failures.park,
        lambda *about: extraction_failures.retry_or_park(about[0], about[1], BadModelOutput("no")),
    ):
        give_up(runtime, stale, "too late")
    assert [row.state for row in rows(owner, "SELECT state FROM runs")] == ["running"]
    assert extract._extract_claimed(runtime, new).turns == 1


@pytest.mark.parametrize("strict", [False, True])
def test_an_overtaken_worker_sets_no_turn_aside(
    runtime: Runtime, tenant: int, owner: Engine, strict: bool
) -> None:
    set_policy(owner, tenant, strict=strict)
    (turn_id,) = spoken(runtime, tenant, PARIS)
    session = only_session(owner)
    old = extract._claim(runtime, session)
    assert old is not None
    stale = batches.next_batch(runtime, old)
    assert stale is not None
    expire_lease(owner)
    assert extract_session(runtime, session).turns == 1
    assert extraction_failures.park(runtime, stale, "too late") == 0
    assert ticket(runtime, tenant, turn_id).stage is not Stage.FAILED


def test_a_session_goes_on_without_the_turn_that_killed_three_workers(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    before, poison, after = spoken(runtime, tenant, PARIS, REX, "I have a sister named Paula.")
    index_turns(runtime)
    session, deadly = only_session(owner), replace(runtime, embedder=failing(Killed(), at="Rex"))
    deaths = 0
    for _ in range(20):
        try:
            extract_session(deadly, session)
        except Killed:
            deaths += 1
        expire_lease(owner)
        if not finder.look(runtime).sessions:
            break
    assert ticket(runtime, tenant, poison).stage is Stage.FAILED
    assert (ticket(runtime, tenant, poison).reason or "").startswith("quarantined")
    assert ticket(runtime, tenant, before).memory_ids
    assert ticket(runtime, tenant, after).memory_ids
    assert deaths <= 5, "three alone, and at most one beside each neighbour"


def test_a_failed_turn_that_is_replayed_leaves_memories_after_all(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    (poison,) = spoken(runtime, tenant, REX)
    index_turns(runtime)
    session = only_session(owner)
    for _ in range(3):
        extract._claim(runtime, session)
        expire_lease(owner)
    assert extract_session(runtime, session).failed == 1
    assert [turn.id for turn in failed.failed(runtime, tenant)] == [poison]
    failed.replay(runtime, tenant, poison)
    extract_session(runtime, session)
    assert ticket(runtime, tenant, poison).stage is Stage.EXTRACTED
    assert ticket(runtime, tenant, poison).memory_ids


def test_a_strict_agents_session_stops_at_a_failed_turn_until_a_decision(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    set_policy(owner, tenant, strict=True)
    poison, waiting = spoken(runtime, tenant, REX, PARIS)
    index_turns(runtime)
    session = only_session(owner)
    for _ in range(3):
        extract._claim(runtime, session)
        expire_lease(owner)
    assert extract_session(runtime, session).failed == 1
    (later,) = spoken(runtime, tenant, LONDON)
    finder.drain(runtime)
    assert ticket(runtime, tenant, poison).stage is Stage.FAILED
    assert {ticket(runtime, tenant, id).stage for id in (waiting, later)} == {Stage.INDEXED}
    failed.discard(runtime, tenant, poison)
    finder.drain(runtime)
    assert {ticket(runtime, tenant, id).stage for id in (waiting, later)} == {Stage.EXTRACTED}
    assert ticket(runtime, tenant, poison).memory_ids == ()


# --- providers that refuse ------------------------------------------------------------------------------------


def test_during_an_outage_a_session_waits_ever_longer_and_loses_nothing(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    (turn_id,) = spoken(runtime, tenant, PARIS)
    session = only_session(owner)
    away = replace(runtime, embedder=failing(ProviderUnavailable("nobody answers")))
    waits = []
    for _ in range(6):
        assert extract_session(away, session) == ExtractReport()
        (row,) = rows(
            owner, "SELECT extract(epoch FROM due_at - now())::float AS wait, failures FROM sessions"
        )
        waits.append(row.wait)
        expire_lease(owner)
    assert waits[-1] > 8 * waits[0]
    assert extract_session(runtime, session).turns == 1
    assert ticket(runtime, tenant, turn_id).memory_ids
    assert [row.failures for row in rows(owner, "SELECT failures FROM sessions")] == [0]


def test_new_turns_do_not_shorten_the_pause_after_an_error(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    spoken(runtime, tenant, PARIS)
    away = replace(runtime, embedder=failing(ProviderUnavailable("nobody answers", retry_after=300)))
    extract_session(away, only_session(owner))
    spoken(runtime, tenant, REX)
    (row,) = rows(owner, "SELECT extract(epoch FROM due_at - now())::float AS wait FROM sessions")
    assert row.wait > 250


def test_after_a_day_of_errors_the_turn_is_parked_with_the_reason(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    (turn_id,) = spoken(runtime, tenant, PARIS)
    session = only_session(owner)
    away = replace(runtime, embedder=failing(ProviderUnavailable("nobody answers")))
    extract_session(away, session)
    change(owner, "UPDATE sessions SET failing_since = failing_since - interval '25 hours'")
    expire_lease(owner)
    assert extract_session(away, session).failed == 1
    found = ticket(runtime, tenant, turn_id)
    assert found.stage is Stage.FAILED
    assert "nobody answers" in (found.reason or "")


def test_a_permanent_error_parks_only_its_own_turn_after_three_tries(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    before, guilty, after = spoken(runtime, tenant, PARIS, REX, "I have a sister named Paula.")
    index_turns(runtime)
    session = only_session(owner)
    picky = replace(runtime, embedder=failing(BadModelOutput("unreadable"), at="Rex"))
    for _ in range(10):
        extract_session(picky, session)
        expire_lease(owner)
    assert ticket(runtime, tenant, guilty).stage is Stage.FAILED
    assert ticket(runtime, tenant, guilty).reason == "unreadable"
    assert ticket(runtime, tenant, before).memory_ids
    assert ticket(runtime, tenant, after).memory_ids


# --- policy, and people who are forgotten ---------------------------------------------------------------------


def test_extraction_off_frees_the_session_and_extraction_on_resumes_it(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    (turn_id,) = spoken(runtime, tenant, PARIS)
    session = only_session(owner)
    set_policy(owner, tenant, extraction="off")
    assert extract_session(runtime, session) == ExtractReport()
    assert finder.look(runtime).sessions == ()
    set_policy(owner, tenant, extraction="rules")
    spoken(runtime, tenant, REX)
    assert extract_session(runtime, session).turns == 2
    assert ticket(runtime, tenant, turn_id).memory_ids


def test_nothing_of_a_person_forgotten_during_extraction_comes_back(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    spoken(runtime, tenant, PARIS, REX)
    forgetting = ScriptedEmbedder(before=lambda _: change(owner, "DELETE FROM scopes"))
    assert extract_session(replace(runtime, embedder=forgetting), only_session(owner)) == ExtractReport()
    for table in ("memories", "entities", "evidence", "turns", "sessions", "runs", "terms"):
        assert rows(owner, f"SELECT FROM {table}") == [], table


def test_no_connection_is_held_while_a_provider_is_called(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    spoken(runtime, tenant, PARIS)
    held: list[int] = []
    watching = ScriptedEmbedder(before=lambda _: held.append(runtime.engine.pool.checkedout()))  # type: ignore[attr-defined]
    extract_session(replace(runtime, embedder=watching), only_session(owner))
    assert set(held) == {0}
