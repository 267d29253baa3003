"""The doctor's look at limits of tenants: who stands at a quota or has spent its tokens, so that calls are refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from sqlalchemy import Engine

from memory_app.db import db
from memory_app.db.directory import Directory
from memory_app.errors import MemoryAppError
from memory_app.ops.check import Check, fail, ok, warn
from memory_app.records.limits import NO_LIMITS, Limits
from memory_app.tenancy.rows import limits as rows
from memory_app.tenancy.rows import usage


def look(directory: Directory, tenants: Sequence[tuple[int, str]] | None) -> Iterator[Check]:
    """No check where no tenant has limits, or where tenants are not known."""
    name, limited = "limits", 0
    findings: list[str] = []
    try:
        for tenant_id, tenant in tenants or ():
            limits, tokens = _limits_and_tokens(directory.servers.home, tenant_id)
            if limits == NO_LIMITS:
                continue
            limited += 1
            findings += [
                f"{tenant}: {text}" for text in _reached(directory, tenant_id, limits, tokens=tokens)
            ]
    except MemoryAppError as error:
        yield fail(name, error.message, to_do="mend Postgres first")
        return
    if findings:
        to_do = "raise them with `memory limits set`, or erase; what is above a quota is refused with 429"
        yield warn(name, "; ".join(findings), to_do=to_do)
    elif limited:
        noun = "tenant has" if limited == 1 else "tenants have"
        yield ok(name, f"{limited} {noun} limits; none is at a quota")


def _limits_and_tokens(engine: Engine, tenant_id: int) -> tuple[Limits, int]:
    """The limits of a tenant, and the tokens that it spent today."""
    with db.transaction(engine, tenant_id) as connection:
        return rows.of_tenant(connection, tenant_id), usage.today(connection, tenant_id).tokens


def _reached(directory: Directory, tenant_id: int, limits: Limits, *, tokens: int) -> Iterator[str]:
    turns = 0
    people: Counter[str] = Counter()
    for place in directory.engines():
        with db.transaction(place, tenant_id) as connection:
            people.update(rows.users_at_quota(connection, tenant_id, limits))
            turns += rows.turns(connection, tenant_id)
    if limits.turns is not None and turns >= limits.turns:
        yield f"{turns} turns are stored, turns is {limits.turns}"
    if limits.tokens_per_day is not None and tokens >= limits.tokens_per_day:
        yield f"{tokens} tokens are spent today, tokens_per_day is {limits.tokens_per_day}"
    for quota, count in people.items():
        if count:
            yield f"{count} {'person has' if count == 1 else 'people have'} all of {quota}"
