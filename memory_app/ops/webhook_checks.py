"""The doctor's look at webhooks: which fail, and which were given up."""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import Engine

from memory_app.db import db
from memory_app.errors import MemoryAppError
from memory_app.events.rows import webhooks
from memory_app.ops.check import Check, fail, ok, warn


def look(engine: Engine) -> Iterator[Check]:
    """No check where there is no webhook. ``engine``: of the home shard."""
    name = "webhooks"
    try:
        with db.transaction(engine, None) as connection:
            state = webhooks.state(connection)
    except MemoryAppError as error:
        yield fail(name, error.message, to_do="mend Postgres first")
        return
    finding = f"{state.active} active"
    if state.given_up:
        finding += f", {state.given_up} paused as their receivers are gone or failed for days"
    if state.failing:
        finding += f", {state.failing} fail; the oldest event waits {state.oldest_waiting_seconds:.0f} s"
    if state.failing or state.given_up:
        to_do = "`memory webhooks list` and `memory webhooks deliveries ID` say why; then `memory webhooks resume ID`"
        yield warn(name, finding, to_do=to_do)
    elif state.active:
        yield ok(name, finding)
