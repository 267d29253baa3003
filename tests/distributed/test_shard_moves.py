"""A whole shard goes to another server while its users chat."""

from __future__ import annotations

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest
from queries import rows
from sqlalchemy import Engine, text
from two_servers import BOB, East, say

from memory_app import MemoryApp, failpoint
from memory_app.db import shard_move
from memory_app.dispatch import finder
from memory_app.errors import Conflict, InvalidInput, MemoryAppError, Misconfigured, StoreUnavailable
from memory_app.ops.doctor import diagnose
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime, build
from memory_app.settings import Settings
from memory_app.tenancy import schema
from memory_app.transfer import shards

pytestmark = pytest.mark.one_shard

WRITERS = 4


def chat(app: MemoryApp, user: str, stop: Event, accepted: list[tuple[str, str]]) -> None:
    """Say one thing after the other, each until it is accepted."""
    number = 0
    while not stop.is_set():
        number += 1
        words = f"{user} says number {number}."
        for _ in range(200):
            try:
                say(app, words, scope=Scope("ada", user, "s"), key=f"{user} {number}")
                break
            except StoreUnavailable:
                time.sleep(0.05)
        else:
            raise AssertionError(f"{words} was never accepted")
        accepted.append((user, words))
        time.sleep(0.005)


def cut_off(monkeypatch: pytest.MonkeyPatch, settings: Settings, place: str) -> None:
    """Begin to move shard 1 to the home server, and break off at a place."""

    def die(reached: str) -> None:
        if reached == f"shard_move.{place}":
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(failpoint, "reach", die)
        with pytest.raises(KeyboardInterrupt):
            schema.move_shard(settings, 1, to="home")


def test_a_shard_moves_while_its_users_chat(
    runtime: Runtime, app: MemoryApp, in_east: Settings, owner: Engine, tenant: int, east: East
) -> None:
    users = [f"user {number}" for number in range(WRITERS)]
    for user in users:
        say(app, "I live in Porto.", scope=Scope("ada", user, "s"))
    app.change_agent("ada", policy={"after_turns": 5})
    finder.drain(runtime)
    stop, accepted = Event(), list[tuple[str, str]]()
    other = build(in_east)
    told: list[str] = []
    try:
        with ThreadPoolExecutor(WRITERS) as threads:
            writers = [threads.submit(chat, MemoryApp(other, tenant), user, stop, accepted) for user in users]
            moved = schema.move_shard(in_east, 1, to="home", say=told.append)
            at_the_switch = len(accepted)
            time.sleep(1)
            stop.set()
            for writer in writers:
                writer.result()
    finally:
        stop.set()
        other.close()
    assert (moved.source, moved.target) == ("east", "home")
    assert moved.pause_seconds is not None
    print(
        f"paused for {moved.pause_seconds:.2f} s, {len(accepted)} accepted, {at_the_switch} before the switch"
    )
    assert len(accepted) > at_the_switch > WRITERS
    stored = rows(
        owner,
        """SELECT u.name, t.text, t.seq FROM shard_0001.turns t
        JOIN shard_0001.scopes c ON c.id = t.scope_id JOIN shard_0001.users u ON u.id = c.user_id
        ORDER BY u.name, t.seq""",
    )
    assert Counter((row.name, row.text) for row in stored if "number" in row.text) == Counter(accepted)
    for user in users:
        mine = [row for row in stored if row.name == user]
        assert [row.seq for row in mine] == list(range(1, len(mine) + 1))
        assert [row.text for row in mine][1:] == [words for name, words in accepted if name == user]
    assert rows(owner, "SELECT server, moves_to, is_closed FROM public.shards WHERE id = 1") == [
        (None, None, False)
    ]
    finder.drain(runtime)
    assert rows(owner, "SELECT count(*) FROM shard_0001.turns WHERE indexed_at IS NULL") == [(0,)]
    assert "Porto" in app.context(Scope("ada", users[0], "s"), query="Where do I live?").text
    assert schema.differences(in_east) == ()
    (left,) = (check for check in diagnose(in_east) if check.name == "moved shards")
    assert left.found.endswith("moved_shard_0001") and "drop-moved 1" in left.to_do
    assert schema.drop_moved(in_east, 1) == ("east",)
    schemas = "SELECT nspname FROM pg_namespace WHERE nspname ~ 'shard'"
    assert rows(east.engine(), schemas) == []


@pytest.mark.parametrize("place", ["made", "published", "subscribed", "ready", "closed", "renamed"])
def test_a_move_that_was_cut_off_goes_on(
    place: str,
    app: MemoryApp,
    runtime: Runtime,
    in_east: Settings,
    owner: Engine,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    say(app, "I live in Porto.", key="k1")
    cut_off(monkeypatch, in_east, place)
    runtime.directory.read_again()
    is_closed = place in ("closed", "renamed")
    if is_closed:
        with pytest.raises(StoreUnavailable, match="memory shards move"):
            say(app, "I have a dog.", key="k2")
    else:
        say(app, "I have a dog.", key="k2")
    schema.move_shard(in_east, 1, to="home")
    said = [("I live in Porto.",), *([] if is_closed else [("I have a dog.",)])]
    assert rows(owner, "SELECT text FROM shard_0001.turns ORDER BY seq") == said
    assert say(app, "I live in Porto.", key="k1").duplicate
    assert say(app, "I have a cat.", key="k3").seq == len(said) + 1


@pytest.mark.parametrize("place", ["made", "subscribed", "closed"])
def test_a_move_is_taken_back(
    place: str,
    app: MemoryApp,
    in_east: Settings,
    east: East,
    owner: Engine,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    say(app, "I live in Porto.", key="k1")
    cut_off(monkeypatch, in_east, place)
    with pytest.raises(Conflict, match="is being moved"):
        schema.upgrade(in_east)
    schema.abort_move(in_east, 1)
    assert rows(owner, "SELECT nspname FROM pg_namespace WHERE nspname ~ 'shard'") == []
    assert rows(
        east.engine(), "SELECT count(*) FROM pg_replication_slots WHERE database = current_database()"
    ) == [(0,)]
    say(app, "I have a dog.", key="k2")
    assert schema.upgrade(in_east)
    assert schema.differences(in_east) == ()
    with pytest.raises(Conflict, match="is not being moved"):
        schema.abort_move(in_east, 1)


def test_who_stays_in_the_shard_is_waited_for(
    app: MemoryApp, in_east: Settings, east: East, monkeypatch: pytest.MonkeyPatch
) -> None:
    say(app, "I live in Porto.")
    monkeypatch.setattr(shard_move.migrate, "PATIENCE_SECONDS", 0.0)
    with east.engine().begin() as connection:
        connection.execute(text("SELECT FROM alembic_version"))
        with pytest.raises(StoreUnavailable, match="somebody stayed in shard 1"):
            shard_move.move(
                *_logins(in_east), 1, to="home", servers=schema.servers_of(in_east), patience_seconds=0
            )
        assert say(app, "I have a dog.").seq == 2
    assert schema.move_shard(in_east, 1, to="home").pause_seconds is not None
    assert [turn.text for turn in app.turns(BOB)] == ["I live in Porto.", "I have a dog."]


def _logins(settings: Settings) -> tuple[shard_move.Logins, dict[str, str]]:
    return schema.home_of(settings), schema.session_defaults(settings)


def test_what_cannot_be_moved_is_told(app: MemoryApp, in_east: Settings) -> None:
    say(app, "I live in Porto.")
    for shard, to, error, words in (
        (1, "east", Conflict, "is on server 'east' already"),
        (1, "west", InvalidInput, "no owner of server 'west'"),
        (0, "east", InvalidInput, "the home shard stays"),
        (7, "east", MemoryAppError, "there is no shard 7"),
    ):
        with pytest.raises(error, match=words):
            schema.move_shard(in_east, shard, to=to)


def test_a_server_without_logical_replication_is_told(
    app: MemoryApp, in_east: Settings, runtime: Runtime, owner: Engine
) -> None:
    """The server of the home shard has the usual wal_level."""
    assert schema.add_shards(in_east, 1) == (2,)
    with pytest.raises(MemoryAppError, match="wal_level = replica"):
        schema.move_shard(in_east, 2, to="east")
    assert rows(owner, "SELECT moves_to FROM public.shards WHERE id = 2") == [(None,)]
    assert [row.shard.id for row in shards.list_shards(runtime)] == [0, 1, 2]


def test_an_address_that_leads_nowhere_is_told_without_the_password(
    app: MemoryApp, in_east: Settings, east: East, owner: Engine
) -> None:
    say(app, "I live in Porto.")
    away = east.owner_url.replace(f":{east.server.port}/", ":1/")
    with pytest.raises(Misconfigured, match="--source-url") as caught:
        schema.move_shard(in_east, 1, to="home", source_url=away)
    assert east.server.password not in str(caught.value)
    assert caught.value.__cause__ is None
    schema.abort_move(in_east, 1)
    assert rows(owner, "SELECT nspname FROM pg_namespace WHERE nspname ~ 'shard'") == []


def test_what_a_move_leaves_that_died_after_the_switch_goes(
    app: MemoryApp, in_east: Settings, east: East, owner: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slot would keep changes until the disk is full."""
    say(app, "I live in Porto.")
    cut_off(monkeypatch, in_east, "switched")
    slots = "SELECT count(*) FROM pg_replication_slots WHERE database = current_database()"
    assert rows(east.engine(), slots) == [(1,)]
    with pytest.raises(Conflict, match="already"):
        schema.move_shard(in_east, 1, to="home")
    assert schema.drop_moved(in_east, 1) == ("east",)
    assert rows(east.engine(), slots) == [(0,)]
    subscriptions = "SELECT count(*) FROM pg_subscription s JOIN pg_database d ON d.oid = s.subdbid"
    assert rows(owner, f"{subscriptions} WHERE d.datname = current_database()") == [(0,)]
    assert say(app, "I have a dog.").seq == 2
