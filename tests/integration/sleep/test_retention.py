"""Retention: what an agent keeps no longer than so many days goes for good, and nothing else with it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from queries import rows, tables_with
from redis import Redis
from sqlalchemy import Engine, text

from memory_app.app import MemoryApp
from memory_app.db.meter import Meter
from memory_app.dispatch import finder, periodic
from memory_app.dispatch.job_table import JOBS
from memory_app.errors import Conflict, Erased, InvalidInput
from memory_app.jobs import jobs
from memory_app.jobs.rows.runs import Run
from memory_app.memories import lookup
from memory_app.memories.remember import remember
from memory_app.ops.check import Check, State
from memory_app.ops.doctor import diagnose
from memory_app.ops.status import status
from memory_app.recall.context import ContextRequest, context
from memory_app.recall.recall import RecallQuery, recall
from memory_app.records.audit import Action
from memory_app.records.kinds import KINDS
from memory_app.records.records import NewTurn, Role, Statement
from memory_app.records.retention import CLASSES
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.sleep import cycle, decay, retention
from memory_app.tenancy import audit
from memory_app.turns.record import record

BOB, CHAT = Scope("ada", "bob"), Scope("ada", "bob", "chat")
SAILING = (
    "Bob goes sailing on the lake with his cousin in the summer.",
    "Bob goes sailing on the lake with his cousin in summer.",
    "Bob goes out sailing on the lake with his cousin in the summer.",
)
CANARY = "quokka"
"""Stands in the words of turns and in no memory."""


@pytest.fixture
def app(runtime: Runtime, tenant: int) -> MemoryApp:
    return MemoryApp(runtime, tenant)


def limit(app: MemoryApp, **days: int | None) -> None:
    app.change_agent("ada", policy={"retention": days})
    finder.drain(app.runtime)


def tell(app: MemoryApp, *texts: str, scope: Scope = CHAT, **fields: Any) -> list[UUID]:
    tickets = record(
        app.runtime, app.tenant_id, scope, [NewTurn(Role.USER, each, **fields) for each in texts]
    )
    finder.drain(app.runtime)
    return [ticket.id for ticket in tickets]


def keep(app: MemoryApp, words: str, *, kind: str = "fact", deduplicate: bool = True, **fields: Any) -> UUID:
    statement = Statement(kind, words, **fields)
    return remember(app.runtime, app.tenant_id, BOB, statement=statement, deduplicate=deduplicate).id


class Killed(BaseException):
    """In place of SIGKILL: nothing that handles errors handles it."""


def die(_: str) -> None:
    raise Killed


def slept(app: MemoryApp) -> Run:
    run = cycle.ask(app.runtime, app.tenant_id, BOB, options={})
    jobs.perform(app.runtime, run.id, JOBS)
    return jobs.read(app.runtime, app.tenant_id, run.id)


def age(owner: Engine, days: float, *, table: str = "turns") -> None:
    """As if what is there had come in so many days before it did."""
    columns = {"turns": ("accepted_at",), "memories": ("confirmed_at", "last_seen", "created_at")}[table]
    changes = ", ".join(f"{column} = {column} - CAST(:past AS interval)" for column in columns)
    with owner.begin() as connection:
        connection.execute(text(f"UPDATE {table} SET {changes}"), {"past": f"{days} days"})


def decayed(app: MemoryApp, scope: Scope = BOB) -> dict[str, Any]:
    run = decay.ask(app.runtime, app.tenant_id, scope)
    jobs.perform(app.runtime, run.id, JOBS)
    done = jobs.read(app.runtime, app.tenant_id, run.id)
    assert done.state == "done", done.reason
    return done.report  # type: ignore[no-any-return]


def run_what_is_due(app: MemoryApp) -> None:
    periodic.enqueue_due(app.runtime)
    finder.drain(app.runtime)


def memory_ids(owner: Engine) -> set[UUID]:
    return {row.id for row in rows(owner, "SELECT id FROM memories")}


def keys_with(runtime: Runtime, word: str) -> list[bytes]:
    with Redis.from_url(runtime.settings.redis.url.get_secret_value()) as redis:
        return [key for key in redis.scan_iter("*") if word.encode() in (redis.dump(key) or b"")]


# --- the policy -----------------------------------------------------------------------------------------------


def test_every_class_is_settable_and_read_back(app: MemoryApp) -> None:
    days = {name: place + 1 for place, name in enumerate(CLASSES)}
    assert app.change_agent("ada", policy={"retention": days}).policy.retention == days
    assert app.change_agent("ada", policy={"retention": {"turns": None}}).policy.retention == {}


@pytest.mark.parametrize("days", [0, -1, 36_501, 1.5, "30", True, [30]])
def test_a_number_that_is_no_limit_is_refused_by_name(app: MemoryApp, days: Any) -> None:
    with pytest.raises(InvalidInput) as refused:
        app.change_agent("ada", policy={"retention": {"episode": days}})
    assert refused.value.field == "policy.retention.episode"


def test_an_unknown_class_is_refused_by_name(app: MemoryApp) -> None:
    with pytest.raises(InvalidInput) as refused:
        app.change_agent("ada", policy={"retention": {"turn": 30}})
    assert refused.value.field == "policy.retention.turn"


# --- turns ----------------------------------------------------------------------------------------------------


def test_the_words_of_an_old_turn_are_nowhere_and_what_it_taught_stays(
    app: MemoryApp, runtime: Runtime, owner: Engine
) -> None:
    (turn,) = tell(
        app,
        f"I am allergic to peanuts, said the {CANARY}.",
        speaker="Robbie the Tall",
        emotional_tone=f"{CANARY} calm",
        tools_used=(f"{CANARY}_tool",),
        metadata={CANARY: CANARY},
        idempotency_key="first",
    )
    fact = keep(app, "Bob is allergic to peanuts.", evidence=(turn,), origin="extracted")
    reply = app.record(CHAT, f"I remember, {CANARY}.", role="assistant").id
    app.feedback(BOB, reply, "up", note=f"the {CANARY} is right")
    context(runtime, app.tenant_id, BOB, request=ContextRequest(query=CANARY, session="chat"))
    finder.drain(runtime)
    # Memories are classes of their own: those that rules made of these words are no matter of this limit.
    with owner.begin() as connection:
        connection.execute(text("DELETE FROM memories WHERE text ILIKE :word"), {"word": f"%{CANARY}%"})
    limit(app, turns=30)
    age(owner, 29.9)
    assert decayed(app)["deleted"] == {}
    age(owner, 0.2)

    assert decayed(app)["deleted"] == {"turns": 2}

    assert tables_with(owner, CANARY) == []
    assert keys_with(runtime, CANARY) == []
    # Who is known, and who stands behind a memory, belongs to what is known.
    assert set(tables_with(owner, "Robbie the Tall")) <= {"entities", "memories"}
    assert fact in memory_ids(owner)
    (cited,) = lookup.why(runtime, app.tenant_id, fact).evidence
    assert (cited.id, cited.text, cited.speaker) == (turn, "", "user")
    assert cited.words_deleted_at is not None


def test_a_deleted_turn_is_in_no_window_and_no_search(
    app: MemoryApp, runtime: Runtime, owner: Engine
) -> None:
    tell(app, "The heron stood in the shallow water all morning.")
    limit(app, turns=7)
    age(owner, 8)
    decayed(app)
    tell(app, "Good evening, Ada, how are you?")
    window = context(runtime, app.tenant_id, BOB, request=ContextRequest(query="heron", session="chat"))
    assert "heron" not in window.text and "Good evening" in window.text
    found = recall(runtime, app.tenant_id, BOB, query=RecallQuery("Where did the heron stand?")).memories
    assert [hit for hit in found if hit.tier == "daily-logs" and not hit.text] == []
    listed = app.turns(CHAT)
    assert [(turn.seq, turn.text) for turn in listed] == [(1, ""), (2, "Good evening, Ada, how are you?")]
    assert [turn.words_deleted_at is None for turn in listed] == [False, True]


def test_a_retry_of_a_deleted_turn_gets_its_first_ticket(app: MemoryApp, owner: Engine) -> None:
    (turn,) = tell(app, f"The {CANARY} came in May.", idempotency_key="once")
    limit(app, turns=7)
    age(owner, 8)
    decayed(app)
    assert rows(owner, "SELECT FROM turns WHERE idempotency_key = 'once'") == []

    (ticket,) = record(
        app.runtime,
        app.tenant_id,
        CHAT,
        [NewTurn(Role.USER, f"The {CANARY} came in May.", idempotency_key="once")],
    )

    assert (ticket.id, ticket.duplicate) == (turn, True)
    assert len(rows(owner, "SELECT FROM turns")) == 1


@pytest.mark.parametrize("of", ["turn", "session", "user", "agent"])
def test_a_retry_does_not_bring_back_what_was_erased_after_its_words(
    app: MemoryApp, owner: Engine, of: str
) -> None:
    (turn,) = tell(app, f"The {CANARY} came in May.", idempotency_key="once")
    limit(app, turns=7)
    age(owner, 8)
    decayed(app)
    erase: dict[str, Callable[[], Run]] = {
        "turn": lambda: app.forget_turn(turn),
        "session": lambda: app.forget_session(CHAT),
        "user": lambda: app.forget("bob"),
        "agent": lambda: app.forget_agent("ada"),
    }
    erase[of]()
    finder.drain(app.runtime)

    with pytest.raises(Erased):
        tell(app, f"The {CANARY} came in May.", idempotency_key="once")

    assert rows(owner, "SELECT FROM turns") == []


@pytest.mark.parametrize("stage", ["indexed_at", "extracted_at"])
def test_a_turn_that_waits_for_its_work_keeps_its_words(app: MemoryApp, owner: Engine, stage: str) -> None:
    tell(app, "I moved to Lisbon.")
    limit(app, turns=7)
    age(owner, 30)
    with owner.begin() as connection:
        connection.execute(text(f"UPDATE turns SET {stage} = NULL"))
    assert decayed(app)["deleted"] == {}
    with owner.begin() as connection:
        connection.execute(text(f"UPDATE turns SET {stage} = now()"))
    assert decayed(app)["deleted"] == {"turns": 1}


def test_a_turn_of_an_agent_that_extracts_nothing_waits_for_no_extraction(
    app: MemoryApp, owner: Engine
) -> None:
    app.change_agent("ada", policy={"extraction": "off", "retention": {"turns": 7}})
    tell(app, "I moved to Lisbon.")
    age(owner, 8)
    assert decayed(app)["deleted"] == {"turns": 1}


def test_a_failed_turn_is_discarded_with_its_words(app: MemoryApp, owner: Engine) -> None:
    (turn,) = tell(app, "I moved to Lisbon.")
    limit(app, turns=7)
    age(owner, 8)
    with owner.begin() as connection:
        connection.execute(
            text("UPDATE turns SET failed_at = now(), failed_reason = 'broken', extracted_at = NULL")
        )
    assert decayed(app)["deleted"] == {"turns": 1}
    assert app.failed() == ()
    with pytest.raises(Conflict):
        app.replay(turn)


# --- memories -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", list(KINDS))
def test_a_memory_goes_when_its_kind_is_kept_no_longer(app: MemoryApp, owner: Engine, kind: str) -> None:
    pinned = keep(app, "Ada and Bob met by the harbour.", kind=kind, pinned=True)
    other = keep(app, "Bob likes green tea.", kind="fact" if kind != "fact" else "value")
    limit(app, **{kind: 365})
    age(owner, 364, table="memories")
    assert decayed(app)["deleted"] == {}
    age(owner, 2, table="memories")

    assert decayed(app)["deleted"] == {kind: 1}

    assert memory_ids(owner) & {pinned, other} == {other}
    assert rows(owner, "SELECT FROM terms t WHERE row_count > 0") != []


def test_what_was_confirmed_since_stays_with_what_was_merged_into_it(app: MemoryApp, owner: Engine) -> None:
    old = keep(app, "Bob keeps bees on the roof.")
    age(owner, 400, table="memories")
    again = keep(app, "Bob keeps bees on the roof.")
    limit(app, fact=365)
    assert decayed(app)["deleted"] == {}
    assert again == old and old in memory_ids(owner)


def test_parts_of_a_merge_stay_with_it_and_go_with_it(app: MemoryApp, owner: Engine) -> None:
    for words in SAILING:
        keep(app, words, deduplicate=False)
    night = slept(app)
    assert len(memory_ids(owner)) == 4 and night.report["applied"]
    limit(app, fact=365)
    with owner.begin() as connection:
        connection.execute(
            text(
                "UPDATE memories SET confirmed_at = now() - interval '400 days' WHERE retired_at IS NOT NULL"
            )
        )
    assert decayed(app)["deleted"] == {}
    age(owner, 366, table="memories")
    assert decayed(app)["deleted"] == {"fact": 4}
    assert memory_ids(owner) == set()


def test_what_rested_on_it_alone_goes_with_it(app: MemoryApp, owner: Engine) -> None:
    old = keep(app, "Bob's boat is called Wanda.")
    other = keep(app, "Bob likes green tea.", kind="value")
    alone = keep(app, "Bob names what he loves.", kind="artifact", parents=(old,), origin="synthesized")
    both = keep(app, "Bob is a calm man.", kind="artifact", parents=(old, other), origin="synthesized")
    limit(app, fact=30)
    age(owner, 31, table="memories")
    assert decayed(app)["deleted"] == {"fact": 1, "artifact": 1}
    assert memory_ids(owner) == {other, both} and alone not in memory_ids(owner)


def test_a_summary_of_a_session_goes_with_its_episode(app: MemoryApp, owner: Engine) -> None:
    tell(app, "I moved to Lisbon.")
    episode = keep(app, f"Bob told of the {CANARY}.", kind="episode")
    with owner.begin() as connection:
        connection.execute(
            text("UPDATE sessions SET summary = :words, summary_id = :id"),
            {"words": f"Bob told of the {CANARY}.", "id": episode},
        )
    app.checkpoint(BOB)
    limit(app, episode=30)
    age(owner, 31, table="memories")
    decayed(app)
    assert tables_with(owner, CANARY) == []


def test_a_night_of_which_something_is_gone_can_still_be_undone(app: MemoryApp, owner: Engine) -> None:
    for words in SAILING:
        keep(app, words, deduplicate=False)
    for words in ("Bob loves the smell of fresh bread.", "Bob loves the smell of fresh breads."):
        keep(app, words, kind="value", deduplicate=False)
    night = slept(app)
    limit(app, fact=365)
    with owner.begin() as connection:
        connection.execute(
            text("UPDATE memories SET confirmed_at = now() - interval '366 days' WHERE kind = 'fact'")
        )
    decayed(app)
    left = {row.kind for row in rows(owner, "SELECT kind FROM memories")}
    assert left == {"value"}

    app.undo(night.id)

    found = rows(owner, "SELECT kind FROM memories WHERE retired_at IS NULL")
    assert [row.kind for row in found] == ["value"] * 2


def test_another_person_and_another_agent_are_untouched(app: MemoryApp, owner: Engine) -> None:
    tell(app, "I moved to Lisbon.")
    tell(app, "I moved to Lisbon.", scope=Scope("ada", "eve", "chat"))
    tell(app, "I moved to Lisbon.", scope=Scope("max", "bob", "chat"))
    app.change_agent("ada", policy={"retention": {"turns": 7}})
    age(owner, 8)
    assert decayed(app)["deleted"] == {"turns": 1}
    assert len(rows(owner, "SELECT FROM turns WHERE words_deleted_at IS NULL AND text <> ''")) == 2


def test_a_longer_limit_saves_what_is_still_there(app: MemoryApp, owner: Engine) -> None:
    tell(app, "I moved to Lisbon.")
    limit(app, turns=7)
    age(owner, 8)
    limit(app, turns=30)
    run_what_is_due(app)
    assert len(rows(owner, "SELECT FROM turns WHERE words_deleted_at IS NULL")) == 1


# --- the run --------------------------------------------------------------------------------------------------


def test_a_shorter_limit_reaches_every_person_by_itself(app: MemoryApp, owner: Engine) -> None:
    for user in ("bob", "eve"):
        tell(app, "I moved to Lisbon.", scope=Scope("ada", user, "chat"))
    limit(app, turns=30)
    age(owner, 8)
    run_what_is_due(app)
    assert len(rows(owner, "SELECT FROM turns WHERE words_deleted_at IS NOT NULL")) == 0
    limit(app, turns=7)
    run_what_is_due(app)
    assert len(rows(owner, "SELECT FROM turns WHERE words_deleted_at IS NOT NULL")) == 2


def test_a_run_whose_worker_died_goes_on_where_it_was(
    app: MemoryApp, owner: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    tell(app, *(f"On day {number} I wrote a letter." for number in range(5)))
    limit(app, turns=7)
    age(owner, 8)
    monkeypatch.setattr(retention, "AT_ONCE", 2)
    run = decay.ask(app.runtime, app.tenant_id, BOB)
    with monkeypatch.context() as patched:
        patched.setattr(retention.failpoint, "reach", die)
        with pytest.raises(Killed):
            jobs.perform(app.runtime, run.id, JOBS)
    assert len(rows(owner, "SELECT FROM turns WHERE words_deleted_at IS NOT NULL")) == 2
    with owner.begin() as connection:
        connection.execute(text("UPDATE runs SET lease_until = now() WHERE lease_until IS NOT NULL"))

    jobs.perform(app.runtime, run.id, JOBS)

    assert jobs.read(app.runtime, app.tenant_id, run.id).report["deleted"] == {"turns": 5}
    (entry,) = audit.entries(app.runtime, app.tenant_id, action=Action.RETENTION)
    assert (entry.target or "").startswith("turns: 5 of run")


def test_decay_looks_again_when_the_next_thing_is_at_its_limit(app: MemoryApp, owner: Engine) -> None:
    tell(app, "I moved to Lisbon.")
    limit(app, turns=30)
    age(owner, 10)
    run_what_is_due(app)
    (planned,) = rows(owner, "SELECT due_at - now() AS wait FROM schedules WHERE job = 'decay'")
    assert 0 < planned.wait.days <= 20


def test_an_agent_whose_memory_is_off_forgets_all_the_same(app: MemoryApp, owner: Engine) -> None:
    tell(app, "I moved to Lisbon.")
    app.change_agent("ada", policy={"memory": False, "retention": {"turns": 7}})
    finder.drain(app.runtime)
    age(owner, 8)
    run_what_is_due(app)
    assert len(rows(owner, "SELECT FROM turns WHERE words_deleted_at IS NOT NULL")) == 1


def test_a_pass_costs_as_many_statements_whatever_was_deleted_before(
    app: MemoryApp, runtime: Runtime, owner: Engine
) -> None:
    def cost() -> int:
        meter = Meter(runtime.engine, owner)
        with meter.measured() as spent:
            decayed(app)
        return spent.statements

    limit(app, turns=7)
    tell(app, "I moved to Lisbon.")
    age(owner, 8)
    first = cost()
    tell(app, *(f"On day {number} I wrote a letter." for number in range(40)))
    age(owner, 8)
    assert cost() <= first + 2


def test_what_was_deleted_stands_in_the_audit_log_without_a_word(app: MemoryApp, owner: Engine) -> None:
    tell(app, f"I moved to Lisbon with a {CANARY}.")
    keep(app, "Bob likes green tea.", kind="value")
    limit(app, turns=7, value=7)
    age(owner, 8)
    age(owner, 8, table="memories")
    decayed(app)
    entries = audit.entries(app.runtime, app.tenant_id, action=Action.RETENTION)
    assert [(entry.agent, (entry.target or "").partition(" of run ")[0]) for entry in entries] == [
        ("ada", "value: 1"),
        ("ada", "turns: 1"),
    ]
    assert audit.verify(app.runtime, app.tenant_id).broken_at is None


def test_the_export_and_its_import_keep_that_the_words_were_deleted(app: MemoryApp, owner: Engine) -> None:
    (turn,) = tell(app, "I moved to Lisbon.", idempotency_key="once")
    limit(app, turns=7)
    age(owner, 8)
    decayed(app)
    snapshot = app.export(BOB)
    assert json.loads(json.dumps(snapshot, default=str))["turns"][0]["text"] == ""
    app.forget("bob")
    app.load(BOB, snapshot, new_consent=True)
    (stored,) = rows(owner, "SELECT id, text, words_deleted_at FROM turns")
    assert (stored.id, stored.text) == (turn, "") and stored.words_deleted_at is not None
    assert rows(owner, "SELECT FROM speakers") == []


def test_trace_and_timeline_go_on_without_the_words(app: MemoryApp, owner: Engine) -> None:
    (turn,) = tell(app, "I moved to Lisbon.")
    limit(app, turns=7)
    age(owner, 8)
    decayed(app)
    assert [row.id for row in app.trace(turn).turns] == [turn]
    assert app.ticket(turn).stage == "extracted"
    (fact,) = [row.id for row in rows(owner, "SELECT id FROM memories WHERE kind = 'fact'")]
    assert [parent.words_deleted_at is None for parent in app.why(fact).evidence] == [False]
    assert app.export(BOB)["evidence"] != []


# --- what operators see ---------------------------------------------------------------------------------------


def retention_check_of(app: MemoryApp) -> Check:
    return next(check for check in diagnose(app.runtime.settings) if check.name == "retention")


def test_doctor_and_status_say_which_limits_hold_and_what_is_overdue(app: MemoryApp, owner: Engine) -> None:
    tell(app, "I moved to Lisbon.")
    limit(app, turns=7, episode=365)
    healthy = retention_check_of(app)
    assert healthy.state is State.OK and "/ada keeps turns 7 days, episode 365 days" in healthy.found
    age(owner, 10)
    late = retention_check_of(app)
    assert late.state is State.WARN and "1 turns are past their limit" in late.found
    (activity,) = status(app.runtime.settings).activity.values()
    assert [(agent.agent, agent.days, agent.overdue_turns) for agent in activity.limited] == [
        ("ada", {"turns": 7, "episode": 365}, 1)
    ]
    decayed(app)
    assert retention_check_of(app).state is State.OK
