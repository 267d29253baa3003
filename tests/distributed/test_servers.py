"""A shard on another server: what a chat app does with its users is the same, and takes effect on both or on none."""

from __future__ import annotations

import pytest
from queries import rows
from sqlalchemy import Engine
from two_servers import BOB, East, say

from memory_app import MemoryApp
from memory_app.dispatch import finder
from memory_app.errors import Erased
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime

pytestmark = pytest.mark.one_shard


def texts(app: MemoryApp, query: str, scope: Scope = BOB) -> list[str]:
    return [hit.text for hit in app.recall(scope, query).memories]


def test_a_new_user_is_served_from_the_other_server(
    app: MemoryApp, runtime: Runtime, east: East, owner: Engine
) -> None:
    first = say(app, "I live in Porto.", key="k1")
    again = say(app, "I live in Porto.", key="k1")
    assert again.id == first.id and again.duplicate
    finder.drain(runtime)
    finder.drain(runtime)
    assert rows(east.engine(), "SELECT count(*) FROM turns WHERE extracted_at IS NOT NULL") == [(1,)]
    assert rows(owner, "SELECT count(*) FROM turns") == [(0,)]
    assert any("Porto" in text for text in texts(app, "Where does Bob live?"))
    assert "Porto" in app.context(BOB, query="Where do I live?").text


def test_what_all_users_share_is_found_from_there(app: MemoryApp, runtime: Runtime) -> None:
    say(app, "Hello.")
    app.remember(Scope("ada"), "The office closes at six.", kind="fact", shared=True)
    finder.drain(runtime)
    assert "The office closes at six." in texts(app, "When does the office close?")


def test_an_erasure_takes_effect_on_both(app: MemoryApp, runtime: Runtime, east: East, owner: Engine) -> None:
    say(app, "I live in Porto.", key="k1")
    say(app, "I have a dog.", key="k2")
    finder.drain(runtime)
    app.forget("bob")
    finder.drain(runtime)
    assert rows(east.engine(), "SELECT count(*) FROM turns") == [(0,)]
    assert rows(owner, "SELECT name FROM users") == []
    assert rows(owner, "SELECT counts ->> 'turns' FROM erasures") == [("2",)]
    with pytest.raises(Erased):
        say(app, "I live in Porto.", key="k1")
    assert rows(owner, "SELECT count(*) FROM decisions") != [(0,)]
