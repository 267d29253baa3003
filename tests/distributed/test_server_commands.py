"""The commands about shards and servers, as an operator types them."""

from __future__ import annotations

import json

import all_shards
import pytest
from commands import Memory
from sqlalchemy import Engine, text
from two_servers import BOB, say

from memory_app import MemoryApp
from memory_app.runtime import Runtime
from memory_app.settings import Settings

pytestmark = pytest.mark.one_shard


@pytest.fixture
def operator(memory: Memory, in_east: Settings, monkeypatch: pytest.MonkeyPatch) -> Memory:
    """Whose settings name the other server."""
    for name, value in all_shards.variables(in_east).items():
        monkeypatch.setenv(name, value)
    return memory


def test_shards_are_listed_with_their_servers(operator: Memory) -> None:
    added = operator("shards", "add", "--server", "east")
    assert (added.status, "shard 2 is made" in added.out) == (0, True)
    listed = json.loads(operator("shards", "list", "--json").out)
    assert [(row["shard"], row["server"]) for row in listed] == [(0, None), (1, "east"), (2, "east")]
    assert "east" in operator("shards", "list").out


def test_a_shard_and_a_user_are_moved(operator: Memory, app: MemoryApp, runtime: Runtime) -> None:
    say(app, "I live in Porto.")
    moved = operator("shards", "move", "1", "--to", "home")
    assert (moved.status, "shard 1 is on server home now; nobody could write for" in moved.out) == (0, True)
    assert "drop-moved 1" in moved.out
    assert "dropped on server east" in operator("shards", "drop-moved", "1").out
    assert operator("shards", "drop-moved", "1").err.startswith("memory: no server has anything left")
    done = operator("shards", "move-user", "bob", "--to", "0", "--tenant", "acme")
    assert (done.status, "from shard 1 to shard 0" in done.out) == (0, True)
    assert [turn.text for turn in app.turns(BOB)] == ["I live in Porto."]


def test_mistakes_are_told(operator: Memory) -> None:
    for command, words in (
        (("shards", "add", "--server", "west"), "MEMORY_DATABASE__SERVERS__WEST__OWNER_URL"),
        (("shards", "move", "1", "--to", "west"), "no owner of server 'west'"),
        (("shards", "move", "1"), "name the server that the shard goes to"),
        (("shards", "move", "1", "--abort"), "is not being moved"),
    ):
        failed = operator(*command)
        assert failed.status != 0
        assert words in failed.err


def test_doctor_names_the_servers(operator: Memory) -> None:
    checked = operator("doctor")
    assert "server east" in checked.out
    assert "0 of 50 prepared transactions" in checked.out


def test_doctor_finds_users_whom_the_directory_lacks(operator: Memory, app: MemoryApp, owner: Engine) -> None:
    """As after a restore of the directory alone."""
    say(app, "I live in Porto.")
    assert "users of shards" not in operator("doctor").out
    with owner.begin() as connection:
        connection.execute(text("DELETE FROM public.users"))
    found = operator("doctor")
    assert found.status != 0
    assert "shard 1 holds 1 users, and the directory has 0 there" in found.out


def test_a_name_that_is_none_is_refused(operator: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(
        "MEMORY_DATABASE__SERVERS__HOME__URL", "postgresql+psycopg://memory_app@localhost/memory"
    )
    failed = operator("shards", "list")
    assert (failed.status, "'home' is no name of a further server" in failed.err) == (1, True)
