"""Turns from producers that reach only the broker: stored as the API would, once however often delivered."""

from __future__ import annotations

from datetime import datetime

import pytest
from sqlalchemy import Engine, text

from memory_app.errors import Forbidden, InvalidInput, MemoryAppError, Unauthorized
from memory_app.runtime import Runtime
from memory_app.tenancy.rows import keys
from memory_app.turns.relay import relay

SAID = {
    "agent": "ada",
    "user": "mira",
    "session": "chat",
    "role": "user",
    "content": "I have a dog called Bruno.",
    "at": "2026-01-31T09:00:00+01:00",
}


def test_a_message_that_is_delivered_twice_is_stored_once(
    runtime: Runtime, tenant: int, api_key: str, owner: Engine
) -> None:
    first = relay(runtime, {**SAID, "api_key": api_key}, message_id="m-1")
    again = relay(runtime, {**SAID, "api_key": api_key}, message_id="m-1")
    other = relay(runtime, {**SAID, "api_key": api_key}, message_id="m-2")
    assert (again.id, again.duplicate) == (first.id, True)
    assert other.seq == 2
    with owner.connect() as connection:
        tenants = connection.execute(text("SELECT DISTINCT tenant_id FROM turns")).scalars().all()
    assert tenants == [tenant], "the tenant comes from the key"


def test_a_message_may_say_of_a_turn_whatever_a_request_may(
    runtime: Runtime, api_key: str, owner: Engine
) -> None:
    more = {"name": "Mira", "emotional_tone": "glad", "tools_used": ["clock"], "metadata": {"via": "broker"}}
    relay(runtime, {**SAID, **more, "idempotency_key": "k-1", "api_key": api_key}, message_id="m-1")
    with owner.connect() as connection:
        row = connection.execute(
            text("SELECT speaker, emotional_tone, tools_used, metadata, idempotency_key, text, at FROM turns")
        ).one()
    assert tuple(row[:6]) == ("Mira", "glad", ["clock"], {"via": "broker"}, "k-1", SAID["content"])
    assert row.at == datetime.fromisoformat(SAID["at"])


@pytest.mark.parametrize(
    ("change", "error", "field"),
    [
        ({"role": "narrator"}, InvalidInput, "role"),
        ({"unheard": "of"}, InvalidInput, "unheard"),
        ({"at": "2026-01-31T09:00:00"}, InvalidInput, "at"),
        ({"content": "\x00"}, InvalidInput, "turn.content"),
        ({"content": None}, InvalidInput, "content"),
        ({"content": [{"type": "text"}]}, InvalidInput, "content[0].text"),
        ({"api_key": "mem_forged_00000000"}, Unauthorized, None),
        ({"api_key": keys.new_key()}, Unauthorized, None),
    ],
)
def test_what_the_api_would_refuse_is_refused_and_never_quoted(
    runtime: Runtime,
    api_key: str,
    owner: Engine,
    change: dict[str, object],
    error: type[MemoryAppError],
    field: str,
) -> None:
    with pytest.raises(error) as refused:
        relay(runtime, {**SAID, "api_key": api_key, **change}, message_id="m-1")
    assert refused.value.field == field
    assert "Bruno" not in str(refused.value)
    with owner.connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM turns")).scalar_one() == 0


def test_a_key_that_may_only_read_records_nothing(runtime: Runtime, owner: Engine) -> None:
    with owner.begin() as connection:
        _, reader = keys.create(connection, "acme", rights=("read",))
    with pytest.raises(Forbidden):
        relay(runtime, {**SAID, "api_key": reader}, message_id="m-1")
