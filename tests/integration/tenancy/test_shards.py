"""Shards: a user is served from the one that holds their rows, wherever that is, and moves with everything."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from threading import Event, Thread
from typing import Any
from uuid import UUID

import pytest
from log_lines import logged
from queries import rows
from sqlalchemy import Connection, Engine, text

from memory_app import MemoryApp
from memory_app.agents.agents import AgentChange, change_agent
from memory_app.db import catalog, directory
from memory_app.db.db import transaction
from memory_app.db.shards import hint_of
from memory_app.dispatch import big_scopes, finder
from memory_app.errors import Conflict, MemoryAppError, NotFound, ShardMissing, StoreUnavailable
from memory_app.forget.forget import forget_turn, forget_user, read_erasure
from memory_app.memories import lookup
from memory_app.memories.feedback import give_feedback
from memory_app.memories.remember import remember
from memory_app.ops.doctor import diagnose
from memory_app.ops.health import health
from memory_app.ops.status import status
from memory_app.recall.context import ContextRequest, context
from memory_app.recall.recall import RecallQuery, recall
from memory_app.records.records import Label, NewTurn, Role, Stage, Statement, Ticket
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime, build
from memory_app.settings import Settings
from memory_app.tenancy import schema
from memory_app.tenancy.rows import keys, names
from memory_app.transfer import shards, snapshots
from memory_app.transfer.export import export_lines
from memory_app.turns import failed, tickets
from memory_app.turns.record import record
from memory_app.turns.stream import latest_turns

pytestmark = pytest.mark.one_shard

BOB = Scope("ada", "bob", "s")
TABLES = ("turns", "memories", "sessions", "scopes")


@pytest.fixture
def sharded(settings: Settings, owner: Engine, tenant: int, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Three shards, of which only the last takes new users."""
    # What a process knows of the list is looked up anew each time, so that no test has to wait.
    monkeypatch.setattr(directory, "KNOWN_SECONDS", 0.0)
    assert schema.add_shards(settings, 2) == (1, 2)
    open_only(owner, 2)
    return settings


def open_only(owner: Engine, shard: int) -> None:
    with owner.begin() as connection:
        connection.execute(
            text(
                "INSERT INTO shards (id, revision) SELECT 0, max(revision) FROM shards ON CONFLICT DO NOTHING"
            )
        )
        connection.execute(text("UPDATE shards SET is_open = (id = :shard)"), {"shard": shard})


def say(runtime: Runtime, tenant: int, words: str, *, scope: Scope = BOB, key: str | None = None) -> Ticket:
    (ticket,) = record(runtime, tenant, scope, [NewTurn(Role.USER, words, idempotency_key=key)])
    return ticket


def count(owner: Engine, shard: int) -> dict[str, int]:
    name = "public" if shard == 0 else f"shard_{shard:04d}"
    return {table: rows(owner, f"SELECT count(*) FROM {name}.{table}")[0][0] for table in TABLES}


def shard_of(owner: Engine, user: str = "bob") -> int:
    return int(rows(owner, "SELECT shard FROM public.users WHERE name = :name", name=user)[0][0])


def hits(runtime: Runtime, tenant: int, query: str, scope: Scope = BOB) -> list[Any]:
    found = recall(runtime, tenant, Scope(scope.agent, scope.user), query=RecallQuery(query)).memories
    return [(hit.id, hit.tier, hit.text) for hit in found]


def test_a_new_shard_has_the_same_objects_as_the_first(sharded: Settings, owner: Engine) -> None:
    with owner.begin() as connection:
        for shard in (0, 1, 2):
            assert catalog.differences_of(connection, shard=shard) == ()


def test_two_who_add_shards_at_once_make_different_ones(settings: Settings, owner: Engine) -> None:
    with ThreadPoolExecutor(2) as pool:
        made = list(pool.map(lambda _: schema.add_shards(settings, 1), range(2)))
    assert sorted(made) == [(1,), (2,)]
    assert rows(owner, "SELECT id FROM shards WHERE revision IS NULL") == []


def test_a_user_of_another_shard_is_served_like_any_other(
    sharded: Settings, runtime: Runtime, owner: Engine, tenant: int
) -> None:
    ticket = say(runtime, tenant, "I work as a nurse in Porto.", key="k")
    finder.drain(runtime)
    finder.drain(runtime)

    assert hint_of(ticket.id) == 2
    assert shard_of(owner) == 2
    assert count(owner, 0) == dict.fromkeys(TABLES, 0)
    assert count(owner, 2)["turns"] == 1
    row = tickets.ticket(runtime, tenant, ticket.id)
    assert row.stage is Stage.EXTRACTED
    (memory_id, *_) = row.memory_ids
    assert "nurse" in lookup.read_memory(runtime, tenant, memory_id).text
    assert [turn.id for turn in lookup.why(runtime, tenant, memory_id).evidence] == [ticket.id]
    assert memory_id in [id for id, _, _ in hits(runtime, tenant, "What does Bob work as?")]
    assert "nurse" in context(runtime, tenant, BOB, request=ContextRequest("work", session="s")).text
    # the same key again is the same turn
    again = say(runtime, tenant, "I work as a nurse in Porto.", key="k")
    assert (again.id, again.duplicate) == (ticket.id, True)


def test_an_idempotency_key_belongs_to_a_user(runtime: Runtime, tenant: int) -> None:
    first = say(runtime, tenant, "I like tea.", key="1")
    other = say(runtime, tenant, "I like rain.", key="1", scope=Scope("ada", "eve", "s"))
    assert not other.duplicate and other.id != first.id
    # with another agent and in another session, too, the key of a user is one
    elsewhere = Scope("max", "bob", "t")
    with pytest.raises(Conflict, match="idempotency_key"):
        say(runtime, tenant, "I like rain.", key="1", scope=elsewhere)


def test_a_key_of_a_turn_from_before_it_named_its_user_still_counts(
    runtime: Runtime, owner: Engine, tenant: int
) -> None:
    first = say(runtime, tenant, "I like tea.", key="1")
    with owner.begin() as connection:
        connection.execute(text("UPDATE turns SET user_id = NULL"))
    again = say(runtime, tenant, "I like tea.", key="1")
    assert (again.id, again.duplicate) == (first.id, True)
    other = say(runtime, tenant, "I like tea.", key="1", scope=Scope("ada", "eve", "s"))
    assert not other.duplicate


def test_a_turn_of_the_release_before_gets_its_user(runtime: Runtime, owner: Engine, tenant: int) -> None:
    first = say(runtime, tenant, "I like tea.", key="1")
    with owner.begin() as connection:
        connection.execute(
            text(
                """INSERT INTO turns (tenant_id, scope_id, session_id, seq, role, speaker, text, at, idempotency_key,
                    request_hash)
                SELECT tenant_id, scope_id, session_id, 2, role, speaker, text, at, '2', request_hash FROM turns"""
            )
        )
    assert rows(owner, "SELECT count(DISTINCT user_id), count(user_id) FROM turns") == [(1, 2)]
    assert say(runtime, tenant, "I like tea.", key="1").id == first.id


def test_a_moved_user_keeps_everything(
    sharded: Settings, runtime: Runtime, owner: Engine, tenant: int
) -> None:
    tickets_of = [
        say(runtime, tenant, f"I have {n} cats and a dog called Rex.", key=f"k{n}") for n in range(9)
    ]
    remember(runtime, tenant, Scope("ada", "bob"), statement=Statement("fact", "Bob plays the cello."))
    for _ in range(2):
        finder.drain(runtime)
    before = hits(runtime, tenant, "What does Bob play?")
    exported = lines_of(runtime, tenant)
    stored = count(owner, 2)

    moved = shards.move_user(runtime, tenant, "bob", to=1)

    assert (moved.source, moved.target) == (2, 1)
    assert count(owner, 2) == dict.fromkeys(TABLES, 0)
    assert count(owner, 1) == stored
    assert hits(runtime, tenant, "What does Bob play?") == before
    assert lines_of(runtime, tenant) == exported
    for ticket in tickets_of:
        assert tickets.ticket(runtime, tenant, ticket.id).stage is Stage.EXTRACTED
    again = say(runtime, tenant, "I have 3 cats and a dog called Rex.", key="k3")
    assert (again.id, again.duplicate) == (tickets_of[3].id, True)
    new = say(runtime, tenant, "I have a parrot, too.")
    assert new.seq == 10
    finder.drain(runtime)
    assert tickets.ticket(runtime, tenant, new.id).stage is not Stage.ACCEPTED
    # to the home shard, and once more to where the user is already
    assert shards.move_user(runtime, tenant, "bob", to=0).source == 1
    assert shards.move_user(runtime, tenant, "bob", to=0).rows == {}
    assert len(latest_turns(runtime, tenant, BOB, limit=50)) == 10
    assert count(owner, 1) == dict.fromkeys(TABLES, 0)


def lines_of(runtime: Runtime, tenant: int) -> list[str]:
    header, *lines = export_lines(runtime, tenant, user="bob")
    return [header.partition('"created_at"')[0], *sorted(lines)]


def test_who_did_not_hear_of_a_move_finds_the_user_all_the_same(
    sharded: Settings, runtime: Runtime, tenant: int
) -> None:
    other = build(sharded)
    try:
        say(other, tenant, "I like tea.", key="a")
        shards.move_user(runtime, tenant, "bob", to=1)

        assert [turn.text for turn in latest_turns(other, tenant, BOB, limit=5)] == ["I like tea."]
        shards.move_user(runtime, tenant, "bob", to=2)
        assert say(other, tenant, "I like tea.", key="a").duplicate
        shards.move_user(runtime, tenant, "bob", to=0)
        assert say(other, tenant, "I like rain.").seq == 2
    finally:
        other.close()


def test_a_move_while_the_user_chats_loses_and_doubles_nothing(
    sharded: Settings, runtime: Runtime, owner: Engine, tenant: int
) -> None:
    over = Event()
    sent: list[str] = []
    failures: list[MemoryAppError] = []

    def chat(writer: int) -> None:
        number = 0
        while not over.is_set():
            words = f"writer {writer} says {number}"
            try:
                say(runtime, tenant, words, scope=Scope("ada", "bob", f"s{writer}"), key=words)
            except MemoryAppError as error:
                failures.append(error)
                continue
            sent.append(words)
            number += 1
            time.sleep(0.005)

    writers = [Thread(target=chat, args=(writer,)) for writer in range(3)]
    for writer in writers:
        writer.start()
    try:
        for round in range(6):
            deadline = len(sent) + 10
            while len(sent) < deadline:
                time.sleep(0.01)
            shards.move_user(runtime, tenant, "bob", to=round % 3)
            finder.drain(runtime)
    finally:
        over.set()
        for writer in writers:
            writer.join()
    stored = [
        row.text
        for shard in ("public", "shard_0001", "shard_0002")
        for row in rows(owner, f"SELECT text FROM {shard}.turns")
    ]
    assert sorted(stored) == sorted(sent)
    assert [type(error) for error in failures] == []
    in_order = rows(
        owner,
        """SELECT array_agg(t.seq - 1 ORDER BY t.seq),
            array_agg(CAST(split_part(t.text, ' ', 4) AS integer) ORDER BY t.seq)
        FROM shard_0002.turns t GROUP BY t.session_id""",
    )
    assert len(in_order) == 3
    for seqs, numbers in in_order:
        assert numbers == seqs == list(range(len(numbers)))


@pytest.mark.parametrize("place", ["move.after_locks", "move.before_commit", "move.after_commit"])
def test_a_move_that_dies_leaves_the_user_here_or_there(
    place: str,
    sharded: Settings,
    runtime: Runtime,
    owner: Engine,
    tenant: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    say(runtime, tenant, "I like tea.", key="a")
    stored = count(owner, 2)

    def die(name: str) -> None:
        if name == place:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(shards.failpoint, "reach", die)
        with pytest.raises(KeyboardInterrupt):
            shards.move_user(runtime, tenant, "bob", to=1)

    target = 1 if place == "move.after_commit" else 2
    assert shard_of(owner) == target
    assert count(owner, target) == stored
    assert count(owner, 3 - target) == dict.fromkeys(TABLES, 0)
    shards.move_user(runtime, tenant, "bob", to=1)
    assert say(runtime, tenant, "I like tea.", key="a").duplicate


VERBS: dict[str, Callable[[MemoryApp, UUID, UUID], object]] = {
    "record in a new session": lambda app, turn, memory: app.record(Scope("ada", "bob", "new"), "Hello."),
    "record to a new agent": lambda app, turn, memory: app.record(Scope("eve", "bob", "new"), "Hello."),
    "remember": lambda app, turn, memory: app.remember(Scope("ada", "bob"), "Bob likes rain."),
    "feedback": lambda app, turn, memory: app.feedback(Scope("ada", "bob"), memory, "up"),
    "pin": lambda app, turn, memory: lookup.pin(app.runtime, app.tenant_id, memory, pinned=True),
    "invalidate": lambda app, turn, memory: lookup.invalidate(app.runtime, app.tenant_id, memory),
    "consolidate": lambda app, turn, memory: app.consolidate(Scope("ada", "bob")),
    "forget_session": lambda app, turn, memory: app.forget_session(BOB),
    "forget_turn": lambda app, turn, memory: app.forget_turn(turn),
    "forget_memory": lambda app, turn, memory: app.forget_memory(memory),
}
EFFECTS = {
    "record in a new session": (2, 1),
    "record to a new agent": (2, 1),
    "remember": (1, 2),
    "forget_session": (0, 1),
    "forget_turn": (0, 1),
    "forget_memory": (1, 0),
}
"""Turns and memories afterwards, where a verb changes how many there are."""


@pytest.mark.parametrize("verb", VERBS)
def test_what_is_begun_during_a_move_takes_effect_after_it(
    verb: str,
    sharded: Settings,
    runtime: Runtime,
    owner: Engine,
    tenant: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # given a user with a turn that leaves nothing and a memory
    app = MemoryApp(runtime, tenant_id=tenant)
    turn = say(runtime, tenant, "Good evening!").id
    finder.drain(runtime)
    memory = app.remember(Scope("ada", "bob"), "Bob plays the cello.").id
    begun: list[Future[object]] = []

    with ThreadPoolExecutor(1) as pool, monkeypatch.context() as patched:

        def begin(place: str) -> None:
            if place == "move.before_commit":
                begun.append(pool.submit(VERBS[verb], app, turn, memory))
                wait_for_a_lock(owner)

        # when a verb begins while the move holds the user's rows
        patched.setattr(shards.failpoint, "reach", begin)
        shards.move_user(runtime, tenant, "bob", to=1)
        begun[0].result(timeout=60)

    # then it did its work where the user is now
    stored = count(owner, 1)
    assert (stored["turns"], stored["memories"]) == EFFECTS.get(verb, (1, 1))
    assert count(owner, 2) == dict.fromkeys(TABLES, 0)


def wait_for_a_lock(owner: Engine) -> None:
    """Until a connection of the application waits for another one."""
    ends_at = time.monotonic() + 60
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
    while not rows(owner, waiting)[0][0]:
        assert time.monotonic() < ends_at, "nothing waits for the move"
        time.sleep(0.01)


def test_an_erasure_during_a_move_takes_the_whole_person(
    sharded: Settings, runtime: Runtime, owner: Engine, tenant: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    say(runtime, tenant, "I like tea.")
    erased = []
    eraser = Thread(target=lambda: erased.append(forget_user(runtime, tenant, "bob")))

    def reach(name: str) -> None:
        if name == "move.before_commit":
            eraser.start()
            eraser.join(0.5)

    with monkeypatch.context() as patched:
        patched.setattr(shards.failpoint, "reach", reach)
        shards.move_user(runtime, tenant, "bob", to=1)
    eraser.join(60)
    # Where the move took longer than the call waits, a worker erases.
    finder.drain(runtime)

    run = MemoryApp(runtime, tenant).run(erased[0].id)
    assert run.report["counts"]["turns"] == 1
    assert rows(owner, "SELECT * FROM public.users") == []
    for shard in (0, 1, 2):
        assert count(owner, shard) == dict.fromkeys(TABLES, 0)


def test_a_person_of_another_shard_is_forgotten_with_a_receipt(
    sharded: Settings, runtime: Runtime, owner: Engine, tenant: int
) -> None:
    turn = say(runtime, tenant, "I like tea.")
    say(runtime, tenant, "I live in Porto.")
    run = forget_turn(runtime, tenant, turn.id)
    assert run.report["counts"]["turns"] == 1

    run = forget_user(runtime, tenant, "bob")

    erasure = read_erasure(runtime, tenant, UUID(run.report["erasure"]))
    assert erasure.counts["turns"] == 1
    assert count(owner, 2) == dict.fromkeys(TABLES, 0)
    assert rows(owner, "SELECT * FROM public.users UNION ALL SELECT * FROM shard_0002.users") == []
    # who comes back is somebody new
    assert say(runtime, tenant, "Hello again.").seq == 1


def test_what_an_agent_knows_is_shared_over_the_shards(
    sharded: Settings, runtime: Runtime, tenant: int
) -> None:
    shared = remember(
        runtime, tenant, Scope("ada"), statement=Statement("fact", "The bakery opens at seven."), shared=True
    )
    say(runtime, tenant, "I like tea.")
    own = remember(runtime, tenant, Scope("ada", "bob"), statement=Statement("fact", "Bob bakes bread."))
    remember(runtime, tenant, Scope("ada"), statement=Statement("core", "Ada never gives medical advice."))

    assert hits(runtime, tenant, "When does the bakery open?")[0][0] == shared.id
    window = context(runtime, tenant, BOB, request=ContextRequest("bakery", session="s")).text
    assert "never gives medical advice" in window and "opens at seven" in window
    listed = lookup.list_memories(
        runtime, tenant, Scope("ada", "bob"), filters=lookup.MemoryFilter(kind="fact")
    )
    assert {memory.id for memory in listed} == {shared.id, own.id}
    give_feedback(runtime, tenant, Scope("ada", "bob"), target=shared.id, label=Label.UP)
    with pytest.raises(NotFound):
        give_feedback(runtime, tenant, Scope("max", "bob"), target=shared.id, label=Label.UP)


def test_agents_tools_serve_a_user_of_any_shard(sharded: Settings, runtime: Runtime, tenant: int) -> None:
    shared = remember(
        runtime, tenant, Scope("ada"), statement=Statement("fact", "The bakery opens at seven."), shared=True
    )
    app = MemoryApp(runtime, tenant)

    def call(name: str, **arguments: object) -> Any:
        answer = app.call_tool(BOB, name, arguments)
        assert not answer.is_error, answer.text
        return json.loads(answer.content)

    stored = call("store_memory", text="Bob is allergic to nuts.", tags=["health"])
    assert sorted(call("search_memory", query="What must Bob not eat?")["memories"][0]["tags"]) == [
        "explicit-store",
        "health",
    ]
    assert "nuts" in str(call("list_facts")) and "nuts" in str(call("get_context", query="food"))
    for memory_id in (stored["id"], str(shared.id)):
        assert call("why", memory_id=memory_id)
    call("forget_memory", memory_id=stored["id"])
    assert "nuts" not in str(call("search_memory", query="What must Bob not eat?"))


def test_what_is_shared_and_known_of_the_user_too_is_one_hit(
    sharded: Settings, runtime: Runtime, tenant: int
) -> None:
    scope = Scope("ada", "bob")
    for text_, where in (
        ("The bakery opens at seven.", scope),
        ("The bakery opens at seven.", Scope("ada")),
        ("The bakery is in Park Street.", scope),
    ):
        remember(runtime, tenant, where, statement=Statement("fact", text_), shared=where.user is None)
    found = recall(runtime, tenant, scope, query=RecallQuery("the bakery", limit=2, explain=True))
    assert {hit.text for hit in found.memories} == {
        "The bakery opens at seven.",
        "The bakery is in Park Street.",
    }
    assert [str((hit.explain or {}).get("cut", "")).split(" 0")[0] for hit in found.cut] == [
        "says the same as"
    ]


def test_a_change_of_an_agent_reaches_its_users_in_every_shard(
    sharded: Settings, runtime: Runtime, tenant: int
) -> None:
    say(runtime, tenant, "I like tea.")
    change = AgentChange(frozenset({"policy"}), policy={"memory": False})
    change_agent(runtime, tenant, Scope("ada"), change=change)
    with pytest.raises(Conflict, match="memory is off"):
        say(runtime, tenant, "I like rain.")


def test_somebody_new_sees_the_agent_as_the_directory_knows_it(
    sharded: Settings, runtime: Runtime, tenant: int
) -> None:
    persona = {"name": "Ada the Pirate"}
    change_agent(runtime, tenant, Scope("ada"), change=AgentChange(frozenset({"persona"}), persona=persona))
    window = context(runtime, tenant, Scope("ada", "zoe"), request=ContextRequest("hello"))
    assert "Ada the Pirate" in window.text


def test_a_missing_shard_stops_its_own_users_only(
    sharded: Settings, runtime: Runtime, owner: Engine, tenant: int
) -> None:
    ticket = say(runtime, tenant, "I like tea.")
    open_only(owner, 1)
    eve = Scope("ada", "eve", "s")
    say(runtime, tenant, "I like rain.", scope=eve)
    with owner.begin() as connection:
        connection.execute(text("ALTER SCHEMA shard_0002 RENAME TO away"))

    with pytest.raises(StoreUnavailable, match="shard 2 is missing"):
        say(runtime, tenant, "I like snow.")
    with pytest.raises(StoreUnavailable, match="shard 2 is missing"):
        tickets.ticket(runtime, tenant, ticket.id)
    assert say(runtime, tenant, "I like snow.", scope=eve).seq == 2
    parts = {part.name: part for part in health(runtime).parts}
    assert parts["database"].reason is None
    assert parts["shards"].is_ok and "shard 2 is missing" in str(parts["shards"].reason)
    assert {check.name: check.state for check in diagnose(sharded)}["shards"] == "fail"
    with logged(directory) as logs:
        for _ in range(3):
            finder.drain(runtime)
    assert [entry["event"] for entry in logs].count("shard_left_out") <= 1, "said once, not at every look"
    with owner.begin() as connection:
        connection.execute(text("ALTER SCHEMA away RENAME TO shard_0002"))
        indexed = connection.execute(text("SELECT count(indexed_at) FROM shard_0001.turns")).scalar_one()
    assert indexed == 2, "the others go on"
    assert say(runtime, tenant, "I like snow.").seq == 2
    assert count(owner, 0) == dict.fromkeys(TABLES, 0)


def test_a_missing_shard_is_never_made_anew(
    sharded: Settings, runtime: Runtime, owner: Engine, tenant: int
) -> None:
    say(runtime, tenant, "I like tea.", key="a")
    with owner.begin() as connection:
        connection.execute(text("ALTER SCHEMA shard_0002 RENAME TO gone"))
    schema.upgrade(sharded)
    with pytest.raises(StoreUnavailable, match="shard 2 is missing"):
        say(runtime, tenant, "I like tea.", key="a")
    with owner.begin() as connection:
        connection.execute(text("ALTER SCHEMA gone RENAME TO shard_0002"))
    assert say(runtime, tenant, "I like tea.", key="a").duplicate


def test_new_users_are_put_beside_a_missing_shard(
    sharded: Settings, runtime: Runtime, owner: Engine, tenant: int
) -> None:
    with owner.begin() as connection:
        connection.execute(text("UPDATE shards SET is_open = id > 0"))
        connection.execute(text("ALTER SCHEMA shard_0002 RENAME TO gone"))
    for number in range(12):
        say(runtime, tenant, "I like tea.", scope=Scope("ada", f"user{number}", "s"))
    assert count(owner, 1)["turns"] == 12


def test_a_snapshot_beside_its_original_in_another_shard_is_refused(
    sharded: Settings, runtime: Runtime, owner: Engine, tenant: int
) -> None:
    say(runtime, tenant, "I like tea.")
    document = snapshots.export(runtime, tenant, Scope("ada", "bob"))
    open_only(owner, 1)
    with pytest.raises(Conflict, match="ids cannot stand twice"):
        snapshots.load(runtime, tenant, Scope("ada", "zoe"), document)
    assert count(owner, 1) == dict.fromkeys(TABLES, 0)


def test_a_shard_that_is_behind_stops_its_own_users_only(
    sharded: Settings, runtime: Runtime, owner: Engine, tenant: int
) -> None:
    say(runtime, tenant, "I like tea.")
    with owner.begin() as connection:
        connection.execute(text("UPDATE shards SET revision = '0002' WHERE id = 2"))
    with pytest.raises(StoreUnavailable, match="shard 2 is at revision 0002, behind"):
        say(runtime, tenant, "I like rain.")
    open_only(owner, 1)
    assert say(runtime, tenant, "I like rain.", scope=Scope("ada", "eve", "s")).seq == 1
    schema.upgrade(sharded)
    assert say(runtime, tenant, "I like rain.").seq == 2


def test_an_entry_without_its_shard_is_named(
    sharded: Settings, runtime: Runtime, owner: Engine, tenant: int
) -> None:
    say(runtime, tenant, "I like tea.")
    with owner.begin() as connection:
        connection.execute(text("UPDATE public.users SET shard = 77"))
    with (
        build_again(sharded) as fresh,
        pytest.raises(StoreUnavailable, match="there is no schema shard_0077"),
    ):
        say(fresh, tenant, "I like rain.")


def test_operators_see_the_rest_while_a_shard_is_missing(
    sharded: Settings, runtime: Runtime, owner: Engine, tenant: int
) -> None:
    say(runtime, tenant, "I like tea.")
    open_only(owner, 1)
    say(runtime, tenant, "I like rain.", scope=Scope("ada", "eve", "s"))
    with owner.begin() as connection:
        connection.execute(text("ALTER SCHEMA shard_0002 RENAME TO away"))

    sentence = "shard 2 is missing: there is no schema shard_0002; restore it from a backup"
    assert [row.shard.difference for row in shards.list_shards(runtime)] == [None, None, sentence]
    report = status(sharded)
    assert report.left_out == (sentence,)
    assert report.pipeline.unindexed == 1
    assert failed.failed(runtime, tenant) == ()
    # Before the first line, which would be an answer.
    with pytest.raises(StoreUnavailable, match="shard 2 is missing"):
        next(iter(export_lines(runtime, tenant)))
    assert list(export_lines(runtime, tenant, user="eve"))
    checks = [check for check in diagnose(sharded) if check.state == "fail"]
    (finding,) = [check for check in checks if check.name == "shards"]
    assert finding.found == (
        "shard 2 is missing: there is no schema shard_0002; users in it, who are answered with 503: 1"
    )
    assert finding.to_do == "restore it from a backup"
    others = [check for check in checks if check.name != "shards"]
    assert not [check for check in others if "shard" in check.found]


@pytest.mark.parametrize("target", [1, 2])
def test_a_move_from_or_to_a_missing_shard_says_so(
    sharded: Settings, runtime: Runtime, owner: Engine, tenant: int, target: int
) -> None:
    open_only(owner, 1)
    say(runtime, tenant, "I like tea.")
    with owner.begin() as connection:
        connection.execute(text(f"ALTER SCHEMA shard_000{target} RENAME TO away"))
    with pytest.raises(ShardMissing, match=f"shard {target} is missing"):
        shards.move_user(runtime, tenant, "bob", to=2)
    assert shard_of(owner) == 1


def test_a_move_out_of_a_shard_that_is_behind_is_refused(
    sharded: Settings, runtime: Runtime, owner: Engine, tenant: int
) -> None:
    say(runtime, tenant, "I like tea.")
    with owner.begin() as connection:
        connection.execute(text("UPDATE shards SET revision = '0002' WHERE id = 2"))
    with pytest.raises(ShardMissing, match="behind"):
        shards.move_user(runtime, tenant, "bob", to=1)


def test_a_revision_that_no_release_has_is_no_newer_one(
    sharded: Settings, runtime: Runtime, owner: Engine, tenant: int
) -> None:
    say(runtime, tenant, "I like tea.")
    with owner.begin() as connection:
        connection.execute(text("UPDATE shards SET revision = 'garbage' WHERE id = 2"))
    with pytest.raises(ShardMissing, match="'garbage', which no release has"):
        say(runtime, tenant, "I like rain.")
    with owner.begin() as connection:
        connection.execute(text("UPDATE shards SET revision = '9999' WHERE id = 2"))
    assert say(runtime, tenant, "I like rain.").seq == 2, "migrated by a later release"


def test_a_shard_that_fell_off_the_list_is_told_from_none(
    sharded: Settings, runtime: Runtime, owner: Engine, tenant: int
) -> None:
    ticket = say(runtime, tenant, "I like tea.")
    with owner.begin() as connection:
        connection.execute(text("DELETE FROM shards WHERE id = 2"))
    reason = "shard 2 holds users and is not in the list of shards; run `memory migrate`"
    with pytest.raises(StoreUnavailable, match=reason):
        tickets.ticket(runtime, tenant, ticket.id)
    with pytest.raises(StoreUnavailable, match=reason):
        say(runtime, tenant, "I like rain.")
    assert [(row.shard.difference, row.users) for row in shards.list_shards(runtime)][2] == (reason, 1)
    assert any(check.to_do == "run `memory migrate`" for check in diagnose(sharded) if check.name == "shards")
    # Neither a new shard nor a migration takes its place.
    assert schema.add_shards(sharded, 1) == (3,)
    assert say(runtime, tenant, "I like rain.").seq == 2
    with owner.begin() as connection:
        connection.execute(text("DELETE FROM shards WHERE id = 2"))
    schema.upgrade(sharded)
    assert tickets.ticket(runtime, tenant, ticket.id).seq == 1


def test_an_id_of_an_unknown_shard_is_not_found(sharded: Settings, runtime: Runtime, tenant: int) -> None:
    with pytest.raises(NotFound):
        tickets.ticket(runtime, tenant, UUID("01890000-0000-7abc-8000-000000000000"))


def test_tenants_stay_apart_in_every_shard(
    sharded: Settings, runtime: Runtime, tenant: int, other_tenant: int
) -> None:
    ticket = say(runtime, tenant, "I like tea.")
    with pytest.raises(NotFound):
        tickets.ticket(runtime, other_tenant, ticket.id)
    with transaction(runtime.at(2).engine, other_tenant) as connection:
        assert seen(connection) == 0
    with transaction(runtime.at(2).engine, None) as connection:
        assert seen(connection) == 0
    with transaction(runtime.at(2).engine, tenant) as connection:
        assert seen(connection) == 1


def seen(connection: Connection) -> int:
    return int(connection.execute(text("SELECT count(*) FROM turns")).scalar_one())


def test_a_tenant_that_comes_later_is_known_to_every_shard(
    sharded: Settings, runtime: Runtime, owner: Engine
) -> None:
    with owner.begin() as connection:
        late = keys.ensure_tenant(connection, "late")
    assert say(runtime, late, "I like tea.").seq == 1
    with transaction(runtime.at(2).engine, late) as connection:
        assert names.find_scope(connection, late, Scope("ada", "bob")) is not None
    assert failed.failed(runtime, late) == ()


def test_users_of_big_scopes_without_room_move_to_a_new_shard(
    settings: Settings, runtime: Runtime, owner: Engine, tenant: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(directory, "KNOWN_SECONDS", 0.0)
    recall_settings = settings.recall.model_copy(update={"scan_rows": 70, "big_scopes_max": 1})
    narrow = replace(runtime, settings=settings.model_copy(update={"recall": recall_settings}))
    users = [f"user {number}" for number in range(3)]
    for user in users:
        turns = [NewTurn(Role.USER, f"I saw bird number {number}.") for number in range(80)]
        record(narrow, tenant, Scope("ada", user, "s"), turns)
    for _ in range(4):
        finder.drain(narrow)

    assert big_scopes.index(narrow) == 2, "one stays, one is moved and indexed"
    assert big_scopes.index(narrow) == 1, "the third moves on to a shard of its own"
    assert big_scopes.index(narrow) == 0

    assert sorted(shard_of(owner, user) for user in users) == [0, 1, 2]
    indexed = rows(
        owner,
        "SELECT DISTINCT relnamespace::regnamespace::text FROM pg_class WHERE relname ~ '^turns_hnsw_' ORDER BY 1",
    )
    assert [row[0] for row in indexed] == ["public", "shard_0001", "shard_0002"]
    for user in users:
        found = recall(narrow, tenant, Scope("ada", user), query=RecallQuery("bird number 7")).memories
        assert "I saw bird number 7." in [hit.text for hit in found]


class build_again:
    """A runtime that has seen nothing yet, as of a process that just started."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def __enter__(self) -> Runtime:
        self._runtime = build(self._settings)
        return self._runtime

    def __exit__(self, *_: object) -> None:
        self._runtime.close()
