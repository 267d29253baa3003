"""What is no text is refused by the name of its field, at the door of Python as over HTTP, and nothing is stored."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest
from sqlalchemy import Engine, text

from memory_app import MemoryApp, Scope
from memory_app.errors import InvalidInput
from memory_app.runtime import Runtime

ME = Scope("assistant", "mira")
CHAT = Scope("assistant", "mira", "chat")

CALLS: dict[str, tuple[Callable[[MemoryApp, Any], object], str]] = {
    "remember": (lambda memory, wrong: memory.remember(ME, wrong), "text"),
    "recall": (lambda memory, wrong: memory.recall(ME, wrong), "query"),
    "context": (lambda memory, wrong: memory.context(CHAT, wrong), "query"),
    "similar queries": (lambda memory, wrong: memory.similar_queries(ME, wrong), "text"),
}


@pytest.mark.parametrize("wrong", [7, b"bytes", ["a list"], {"a": "map"}], ids=str)
@pytest.mark.parametrize("name", CALLS)
def test_what_is_no_text_is_refused(
    runtime: Runtime, tenant: int, owner: Engine, name: str, wrong: object
) -> None:
    memory = MemoryApp(runtime, tenant_id=tenant)
    memory.remember(ME, "They like the sea.")
    call, field = CALLS[name]
    with pytest.raises(InvalidInput) as refused:
        call(memory, wrong)
    assert refused.value.field == field
    assert type(wrong).__name__ in refused.value.message
    with owner.connect() as connection:
        stored = connection.execute(
            text("SELECT (SELECT count(*) FROM turns), (SELECT count(*) FROM memories)")
        )
        assert cast(tuple[int, int], tuple(stored.one())) == (0, 1)


@pytest.mark.parametrize(
    ("wrong", "field", "name"),
    [
        (7, "turn.content", "int"),
        (b"bytes", "turn.content", "bytes"),
        ({"a": "map"}, "turn.content", "dict"),
        (["a list"], "turn.content[0]", "str"),
    ],
    ids=str,
)
def test_a_turn_is_text_or_a_list_of_parts(
    runtime: Runtime, tenant: int, owner: Engine, wrong: Any, field: str, name: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        MemoryApp(runtime, tenant_id=tenant).record(CHAT, wrong)
    assert refused.value.field == field
    assert name in refused.value.message
    with owner.connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM turns")).scalar_one() == 0
