"""Events come in the order in which changes became visible, none is missed, and nobody hears of others."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from threading import Event as Signal

import pytest
from listening import listen, now, types
from sqlalchemy import Engine, text

from memory_app.db import directory
from memory_app.db.db import transaction
from memory_app.dispatch import finder
from memory_app.errors import InvalidInput, ShardMissing
from memory_app.events import read
from memory_app.events.cursor import Cursor
from memory_app.events.event import Choice, EventType, types_of
from memory_app.events.read import Feed, read_page
from memory_app.forget.forget import forget_memory, forget_user
from memory_app.memories.fate import revive
from memory_app.memories.lookup import invalidate, pin
from memory_app.memories.remember import remember
from memory_app.records.records import NewTurn, Role, Statement
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.settings import Settings
from memory_app.sleep import decay
from memory_app.tenancy import schema
from memory_app.transfer import shards, snapshots
from memory_app.turns import failed
from memory_app.turns.record import record
from memory_app.turns.rows import failed_turns

ADA = Scope("ada", "mira", "chat")
T = EventType
TURN = Choice(types_of("turn"))


def say(runtime: Runtime, tenant: int, *words: str, scope: Scope = ADA) -> list[str]:
    return [str(t.id) for t in record(runtime, tenant, scope, [NewTurn(Role.USER, word) for word in words])]


def change(owner: Engine, statement: str, **values: object) -> None:
    with owner.begin() as connection:
        connection.execute(text(statement), values)


def test_a_turn_is_heard_of_at_each_of_its_stages(runtime: Runtime, tenant: int) -> None:
    (turn,) = say(runtime, tenant, "My name is Mira and I live in Lisbon.")
    finder.drain(runtime)
    finder.drain(runtime)
    events = listen(runtime, tenant, 3, choice=TURN)
    assert types(events) == [T.TURN_ACCEPTED, T.TURN_INDEXED, T.TURN_EXTRACTED]
    assert {str(event.target) for event in events} == {turn}
    assert {(event.agent, event.user, event.session) for event in events} == {("ada", "mira", "chat")}
    memories = listen(runtime, tenant, 1, choice=Choice(types_of("memory")))
    assert set(types(memories)) == {T.MEMORY_INSERTED}
    assert "Lisbon" not in repr(events + memories)


def test_a_failed_turn_is_heard_of_and_its_replay_is(runtime: Runtime, tenant: int, owner: Engine) -> None:
    (turn,) = say(runtime, tenant, "I am vegan.")
    with transaction(runtime.engine, tenant) as connection:
        (scope_id,) = connection.execute(text("SELECT scope_id FROM turns")).scalars()
        failed_turns.fail(connection, scope_id, [turn], reason="quarantined")  # type: ignore[list-item]
    events = listen(runtime, tenant, 2, choice=TURN)
    assert types(events) == [T.TURN_ACCEPTED, T.TURN_FAILED]
    failed.replay(runtime, tenant, events[0].target)  # type: ignore[arg-type]
    finder.drain(runtime)
    finder.drain(runtime)
    later = listen(runtime, tenant, 2, choice=TURN, after=events[-1].id)
    assert types(later) == [T.TURN_INDEXED, T.TURN_EXTRACTED]


def test_what_becomes_of_a_memory_is_heard_of(runtime: Runtime, tenant: int) -> None:
    scope = Scope("ada", "mira")
    start = now(runtime, tenant)
    first = remember(runtime, tenant, scope, statement=Statement("fact", "Mira lives in Lisbon.")).id
    pin(runtime, tenant, first, pinned=True)
    listen(runtime, tenant, 2, after=start, choice=Choice(types_of("memory")))
    invalidate(runtime, tenant, first)
    events = listen(runtime, tenant, 2, after=start, choice=Choice(types_of("memory")))
    assert [(event.type, event.target) for event in events] == [
        (T.MEMORY_INSERTED, first),
        (T.MEMORY_INVALIDATED, first),
    ]
    assert {event.kind for event in events} == {"fact"}


def test_recalls_of_a_memory_are_no_news(runtime: Runtime, tenant: int, owner: Engine) -> None:
    memory = remember(runtime, tenant, Scope("ada", "mira"), statement=Statement("fact", "Mira is vegan.")).id
    inserted = listen(runtime, tenant, 1, choice=Choice(types_of("memory")))
    change(owner, "UPDATE memories SET recall_count = recall_count + 1, last_recalled = now()")
    pin(runtime, tenant, memory, pinned=True)
    later = listen(runtime, tenant, 1, after=inserted[-1].id)
    assert types(later) == [T.MEMORY_CHANGED]


def test_a_revived_memory_is_heard_of(runtime: Runtime, tenant: int, owner: Engine) -> None:
    memory = remember(runtime, tenant, Scope("ada", "mira"), statement=Statement("fact", "Mira is vegan.")).id
    change(owner, "UPDATE memories SET retired_at = now(), retired_reason = 'expired'")
    (first, second, *_) = listen(runtime, tenant, 2, choice=Choice(types_of("memory")))
    assert [first.type, second.type] == [T.MEMORY_INSERTED, T.MEMORY_EXPIRED]
    revive(runtime, tenant, memory)
    assert types(listen(runtime, tenant, 1, after=second.id)) == [T.MEMORY_CHANGED]


def test_runs_and_erasures_are_heard_of(runtime: Runtime, tenant: int) -> None:
    say(runtime, tenant, "I am vegan.")
    finder.drain(runtime)
    start = now(runtime, tenant)
    run = decay.ask(runtime, tenant, Scope("ada", "mira"))
    finder.drain(runtime)
    events = listen(runtime, tenant, 2, after=start, choice=Choice(types_of("run")))
    assert [(event.type, event.target, event.kind) for event in events[:2]] == [
        (T.RUN_CREATED, run.id, "decay"),
        (T.RUN_DONE, run.id, "decay"),
    ]
    forgotten = forget_user(runtime, tenant, "mira")
    (erasure,) = listen(runtime, tenant, 1, after=start, choice=Choice(types_of("erasure")))
    assert str(erasure.target) == forgotten.report["erasure"]
    assert (erasure.agent, erasure.user) == (None, None)
    assert listen(runtime, tenant, 1, choice=Choice(types_of("erasure"), user="mira")) == [erasure]
    assert read_page(runtime, tenant, Choice(user="otto"), after="oldest", limit=10).events == ()
    assert read_page(runtime, tenant, Choice(agent="ada", user="mira"), after="oldest", limit=10).events == ()


def test_a_commit_that_comes_late_is_waited_for(runtime: Runtime, tenant: int, owner: Engine) -> None:
    """The transaction that began first commits last: what came after it is not shown before it."""
    say(runtime, tenant, "first")
    start = listen(runtime, tenant, 1)[-1].id
    began, go_on = Signal(), Signal()

    def commit_late() -> None:
        with owner.begin() as connection:
            connection.execute(text("UPDATE turns SET indexed_at = now() WHERE indexed_at IS NULL"))
            began.set()
            assert go_on.wait(60)

    with ThreadPoolExecutor(1) as pool:
        late = pool.submit(commit_late)
        assert began.wait(60)
        (other,) = say(runtime, tenant, "second", scope=Scope("ada", "otto", "chat"))
        waiting = Feed(runtime, tenant, Choice(), start, 100)
        assert waiting.look().events == ()
        go_on.set()
        late.result()
    events = listen(runtime, tenant, 2, after=waiting.cursor)
    assert types(events) == [T.TURN_INDEXED, T.TURN_ACCEPTED]
    assert str(events[1].target) == other
    # Whoever went on from the place before hears the same in the same order.
    assert listen(runtime, tenant, 2, after=start) == events


def test_pages_go_on_within_a_transaction(runtime: Runtime, tenant: int) -> None:
    turns = say(runtime, tenant, *(f"word {n}" for n in range(25)))
    for limit in (1, 4, 25, 100):
        events = listen(runtime, tenant, 25, limit=limit)
        assert sorted(str(event.target) for event in events) == sorted(turns)
        assert [event.id for event in events] == sorted(event.id for event in events)


def test_a_listener_far_behind_comes_up_in_windows(
    runtime: Runtime, tenant: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = [say(runtime, tenant, f"word {n}")[0] for n in range(5)]
    start = listen(runtime, tenant, 5)[0].id
    monkeypatch.setattr(read, "WINDOW", 1)
    events = listen(runtime, tenant, 4, after=start)
    assert [str(event.target) for event in events] == turns[1:]


def test_writers_at_once_and_a_listener_that_begins_again_and_again(runtime: Runtime, tenant: int) -> None:
    def write(writer: int) -> list[str]:
        scope = Scope("ada", f"user-{writer}", "chat")
        return [say(runtime, tenant, f"word {n}", scope=scope)[0] for n in range(15)]

    with ThreadPoolExecutor(4) as pool:
        writers = [pool.submit(write, writer) for writer in range(4)]
        heard: Counter[str] = Counter()
        after = "oldest"
        while heard.total() < 60:
            # A new one each time, as after a disconnection; it knows the last id only.
            events = listen(runtime, tenant, 1, after=after, limit=7)
            heard.update(str(event.target) for event in events)
            after = events[-1].id
        turns = [turn for writer in writers for turn in writer.result()]
    assert heard == Counter(turns)


def test_tenants_and_names_are_told_apart(runtime: Runtime, tenant: int, other_tenant: int) -> None:
    say(runtime, tenant, "hello")
    say(runtime, tenant, "hello", scope=Scope("ada", "otto", "chat"))
    say(runtime, tenant, "hello", scope=Scope("bert", "mira", "chat"))
    say(runtime, other_tenant, "hello", scope=Scope("zoe", "zora", "chat"))
    assert {event.agent for event in listen(runtime, tenant, 3)} == {"ada", "bert"}
    assert [(e.agent, e.user) for e in listen(runtime, tenant, 1, choice=Choice(user="otto"))] == [
        ("ada", "otto")
    ]
    assert [(e.agent, e.user) for e in listen(runtime, tenant, 1, choice=Choice(agent="bert"))] == [
        ("bert", "mira")
    ]
    # By the database, too, whatever the choice says.
    bound = runtime.bound(None, "otto")
    assert {event.user for event in listen(bound, tenant, 1)} == {"otto"}


def test_types_are_chosen_by_name_and_by_group(runtime: Runtime, tenant: int) -> None:
    say(runtime, tenant, "My name is Mira.")
    finder.drain(runtime)
    finder.drain(runtime)
    listen(runtime, tenant, 3, choice=TURN)
    chosen = listen(runtime, tenant, 1, choice=Choice(types_of("turn.extracted, erasure")))
    assert types(chosen) == [T.TURN_EXTRACTED]
    with pytest.raises(InvalidInput, match="types: each is one of turn, memory, run, erasure"):
        types_of("turns")
    with pytest.raises(InvalidInput, match="after: the id of an event"):
        read_page(runtime, tenant, Choice(), after="yesterday", limit=1)
    with pytest.raises(InvalidInput, match="user: a name cannot be empty"):
        read_page(runtime, tenant, Choice(user=" "), after=None, limit=1)


def test_a_place_in_another_database_is_reset(runtime: Runtime, tenant: int, owner: Engine) -> None:
    say(runtime, tenant, "hello")
    place = Cursor.read(listen(runtime, tenant, 1)[0].id)
    elsewhere = Cursor("0" * 8, place.number, place.source, place.id)
    ahead = Cursor(place.epoch, place.number + 10**6)
    for cursor in (elsewhere, ahead):
        page = read_page(runtime, tenant, Choice(), after=str(cursor), limit=10)
        assert types(list(page.events)) == [T.RESET]
        assert page.cursor == page.events[0].id
        say(runtime, tenant, "again")
        assert types(listen(runtime, tenant, 1, after=page.cursor)) == [T.TURN_ACCEPTED]


def test_numbers_of_another_cluster_come_before_all(runtime: Runtime, tenant: int, owner: Engine) -> None:
    """As after a restore into a cluster that has not come to those numbers; `memory migrate` raises its own."""
    say(runtime, tenant, "before the restore")
    change(owner, "UPDATE turns SET accepted_xact = accepted_xact + 5000000")
    change(owner, "COMMENT ON FUNCTION public.xact_offset() IS 'another cluster'")
    schema.upgrade(runtime.settings)
    (turn,) = say(runtime, tenant, "after it")
    events = listen(runtime, tenant, 2)
    assert str(events[-1].target) == turn
    offset = "SELECT public.xact_offset()"
    with owner.connect() as connection:
        raised = connection.execute(text(offset)).scalar_one()
        assert raised > 0
    schema.upgrade(runtime.settings)
    with owner.connect() as connection:
        assert connection.execute(text(offset)).scalar_one() == raised, "once is enough"


def test_an_imported_snapshot_is_heard_of(runtime: Runtime, tenant: int) -> None:
    say(runtime, tenant, "My name is Mira.")
    finder.drain(runtime)
    finder.drain(runtime)
    listen(runtime, tenant, 3, choice=TURN)
    snapshot = snapshots.export(runtime, tenant, Scope("ada", "mira"))
    assert "xact" not in str(snapshot)
    forget_user(runtime, tenant, "mira")
    start = now(runtime, tenant)
    snapshots.load(runtime, tenant, Scope("ada", "mira"), snapshot, new_consent=True)
    events = listen(runtime, tenant, 3, after=start, choice=TURN)
    assert types(events) == [T.TURN_ACCEPTED, T.TURN_INDEXED, T.TURN_EXTRACTED]


@pytest.mark.one_shard
class TestShards:
    """One order over all shards of the database."""

    @pytest.fixture(autouse=True)
    def sharded(
        self, settings: Settings, owner: Engine, monkeypatch: pytest.MonkeyPatch, tenant: int
    ) -> None:
        monkeypatch.setattr(directory, "KNOWN_SECONDS", 0.0)
        schema.add_shards(settings, 2)
        self.open_only(owner, 2)

    def open_only(self, owner: Engine, shard: int) -> None:
        change(
            owner,
            "INSERT INTO shards (id, revision) SELECT 0, max(revision) FROM shards ON CONFLICT DO NOTHING",
        )
        change(owner, "UPDATE shards SET is_open = (id = :shard)", shard=shard)

    def test_users_of_all_shards_are_in_one_order(self, runtime: Runtime, tenant: int, owner: Engine) -> None:
        turns = []
        for shard in (2, 0, 1):
            self.open_only(owner, shard)
            scope = Scope("ada", f"user-{shard}", "chat")
            turns += [say(runtime, tenant, "hello", scope=scope)[0] for _ in range(3)]
        events = listen(runtime, tenant, 9, limit=2)
        assert [str(event.target) for event in events] == turns

    def test_a_user_who_moves_is_neither_missed_nor_told_of_again(
        self, runtime: Runtime, tenant: int, owner: Engine
    ) -> None:
        turns = say(runtime, tenant, "one", "two")
        # As if stored before there were numbers.
        change(owner, "UPDATE shard_0002.turns SET accepted_xact = NULL WHERE id = :id", id=turns[0])
        start = now(runtime, tenant)
        shards.move_user(runtime, tenant, "mira", to=1)
        (new,) = say(runtime, tenant, "three")
        assert [str(event.target) for event in listen(runtime, tenant, 1, after=start)] == [new]
        assert [str(event.target) for event in listen(runtime, tenant, 2)] == [turns[1], new]

    def test_a_shard_that_cannot_be_read_is_not_passed_over(
        self, runtime: Runtime, tenant: int, owner: Engine
    ) -> None:
        say(runtime, tenant, "hello")
        start = now(runtime, tenant)
        say(runtime, tenant, "again")
        change(owner, "ALTER SCHEMA shard_0002 RENAME TO elsewhere")
        with pytest.raises(ShardMissing, match="shard 2 is missing"):
            read_page(runtime, tenant, Choice(), after=start, limit=10)


def test_an_erased_memory_is_no_event_of_its_own(runtime: Runtime, tenant: int) -> None:
    memory = remember(runtime, tenant, Scope("ada", "mira"), statement=Statement("fact", "Mira is vegan.")).id
    start = now(runtime, tenant)
    forget_memory(runtime, tenant, memory)
    events = listen(runtime, tenant, 1, after=start, choice=Choice(types_of("erasure,memory")))
    assert types(events) == [T.ERASURE_DONE]
