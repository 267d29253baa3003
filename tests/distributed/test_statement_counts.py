"""A user on another server costs one statement more for each call, the one that asks the home shard."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import Engine, event, text
from two_servers import BOB, say

from memory_app import MemoryApp
from memory_app.dispatch import finder
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.settings import Settings
from memory_app.tenancy import schema

pytestmark = pytest.mark.one_shard

EVE = Scope("ada", "eve", "s")

CALLS: dict[str, Callable[[MemoryApp, Scope], object]] = {
    "accept": lambda app, scope: say(app, "I have a dog.", scope=scope, key=f"{scope.user} 2"),
    "retry": lambda app, scope: say(app, "I have a dog.", scope=scope, key=f"{scope.user} 2"),
    "accept without a key": lambda app, scope: say(app, "I have a cat.", scope=scope),
    "recall": lambda app, scope: app.recall(scope, "Which pet?"),
    "context": lambda app, scope: app.context(scope, query="Which pet?"),
    "turns": lambda app, scope: app.turns(scope),
    "memories": lambda app, scope: app.memories(scope),
    "remember": lambda app, scope: app.remember(scope, "I have a horse."),
}


@pytest.fixture
def counts(
    app: MemoryApp, runtime: Runtime, owner: Engine, in_east: Settings
) -> Callable[[str], tuple[int, int]]:
    """How many statements a call sends for a user of a shard beside the home shard, and for one on the other server."""
    say(app, "I live in Porto.", key="bob 1")
    assert schema.add_shards(in_east, 1) == (2,)
    with owner.begin() as connection:
        connection.execute(text("UPDATE public.shards SET is_open = (id = 2)"))
    runtime.directory.read_again()
    say(app, "I live in Porto.", scope=EVE, key="eve 1")
    finder.drain(runtime)
    sent: list[str] = []

    def note(*values: Any) -> None:
        sent.append(values[2])

    for engine in (runtime.directory.servers.home, runtime.directory.servers.engine("east")):
        event.listen(engine, "before_cursor_execute", note)

    def count(name: str, scope: Scope) -> int:
        sent.clear()
        CALLS[name](app, scope)
        return len(sent)

    return lambda name: (count(name, EVE), count(name, BOB))


def test_a_call_sends_one_statement_more_at_most(counts: Callable[[str], tuple[int, int]]) -> None:
    for name in CALLS:
        # What a process keeps of a tenant for a moment is read once.
        counts(name)
    found = {name: counts(name) for name in CALLS}
    assert {name: pair for name, pair in found.items() if pair[1] > pair[0] + 1} == {}
