"""Have a verb done in the right shard: that of the user whom its scope names, or the one that holds the row of an id.

A verb takes the runtime first. These decorators hand it the same runtime bound to a shard (`Runtime.at`), and take it
to another shard where the rows turn out to be there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar
from uuid import UUID

from sqlalchemy import Connection

from memory_app.db import branches
from memory_app.db.directory import Shard
from memory_app.db.shards import HOME, hint_of, home_engine_of, other_schemas, schema_of
from memory_app.errors import (
    MemoryAppError,
    Moved,
    NotFound,
    ReferenceGone,
    ShardMissing,
    StoreUnavailable,
)
from memory_app.records.ids import checked_id
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime

P = ParamSpec("P")
Answer = TypeVar("Answer")

TRIES = 3
"""A user who moves is found at the second try; the third is for one who moves back."""


def in_scopes_shard(
    verb: Callable[Concatenate[Runtime, int, Scope, P], Answer],
) -> Callable[Concatenate[Runtime, int, Scope, P], Answer]:
    """Do a verb about a scope in the shard of its user; that of an agent alone in the home shard."""

    @wraps(verb)
    def do(runtime: Runtime, tenant_id: int, scope: Scope, /, *args: P.args, **kwargs: P.kwargs) -> Answer:
        if scope.user is None:
            return verb(runtime.at(HOME), tenant_id, scope, *args, **kwargs)
        return in_users_shard(
            runtime, tenant_id, scope.user, lambda here: verb(here, tenant_id, scope, *args, **kwargs)
        )

    return do


def in_users_shard(runtime: Runtime, tenant_id: int, user: str, act: Callable[[Runtime], Answer]) -> Answer:
    """Act in the shard of a user. Raises `Moved` when the user moves on again and again."""
    shard = runtime.directory.shard_of_user(tenant_id, user)
    for _ in range(TRIES - 1):
        before = runtime.directory.known_shard(shard)
        try:
            return act(runtime.at(shard))
        except Moved as moved:
            shard = moved.shard
            runtime.directory.note(tenant_id, user, shard)
        except ReferenceGone:
            # By the foreign key to a row that has just moved away.
            current = runtime.directory.read_shard_of_user(tenant_id, user)
            if current in (None, shard):
                raise
            shard = current
        except ShardMissing:
            if runtime.directory.has_moved(shard, before):
                continue
            if runtime.directory.read_shard_of_user(tenant_id, user) is not None:
                raise
            # Nobody knows the user yet, so another shard will do.
            others = (other for other in runtime.directory.shards() if other.id != shard)
            shard = runtime.directory.shard_for_new(others)
    return act(runtime.at(shard))


def where_stored(
    verb: Callable[Concatenate[Runtime, int, UUID, P], Answer],
) -> Callable[Concatenate[Runtime, int, UUID, P], Answer]:
    """Do a verb about an id in the shard that has its row; the verb raises `NotFound` where it is not."""

    @wraps(verb)
    def do(runtime: Runtime, tenant_id: int, id: UUID, /, *args: P.args, **kwargs: P.kwargs) -> Answer:
        id = checked_id(id)
        missing: NotFound | None = None
        away: StoreUnavailable | None = None
        for shard in _order(runtime, id):
            try:
                return verb(runtime.at(shard), tenant_id, id, *args, **kwargs)
            except NotFound as error:
                missing = error
            except StoreUnavailable as error:
                away = error
        # It may be in the shard that is away: "not found" would not be true.
        if away is not None:
            raise away
        assert missing is not None
        raise missing

    return do


def in_each(runtime: Runtime, act: Callable[[Runtime], Answer]) -> list[Answer]:
    """Act in every shard, one after the other. One that fails keeps none of the others from it.

    Raises what the first of them raised, after the last; `ShardMissing` for one that cannot be used.
    """
    return _act_in(runtime, runtime.directory.shards(), act)


def in_usable(runtime: Runtime, act: Callable[[Runtime], Answer]) -> list[Answer]:
    """Act in every shard that can be used, as work in the background does, which comes to the others when they are
    mended. Otherwise like `in_each`."""
    return _act_in(runtime, runtime.directory.usable(), act)


@dataclass(frozen=True, slots=True)
class Place:
    """The schema of a shard, and a connection to its server that belongs to a transaction of the home shard."""

    connection: Connection
    schema: str


def other_places(runtime: Runtime, connection: Connection) -> tuple[Place, ...]:
    """All shards beside the home shard, for what a transaction of the home shard changes in each, such as copies of the
    directory. Raises `ShardMissing` for one on another server that cannot be used."""
    here = tuple(Place(connection, schema) for schema in other_schemas(connection))
    elsewhere = (shard for shard in runtime.directory.shards() if shard.server is not None)
    return (*here, *(place_of(runtime, connection, shard.id) for shard in elsewhere))


def place_of(runtime: Runtime, connection: Connection, shard: int) -> Place:
    """A shard, for a transaction of the home shard that changes rows in it. Raises `ShardMissing`."""
    engine = runtime.directory.engine_of(shard)
    if home_engine_of(engine) is None:
        return Place(connection, schema_of(shard))
    return Place(branches.also_in(connection, engine, writes=True), schema_of(shard))


def _act_in(runtime: Runtime, shards: Iterable[Shard], act: Callable[[Runtime], Answer]) -> list[Answer]:
    answers: list[Answer] = []
    failure: MemoryAppError | None = None
    for shard in shards:
        try:
            answers.append(act(runtime.at(shard.id)))
        except MemoryAppError as error:
            failure = failure or error
    if failure is not None:
        raise failure
    return answers


def _order(runtime: Runtime, id: UUID) -> Iterator[int]:
    """Where to look: first where the id says that it was made, then in the home shard, then in all others."""
    first = [
        number
        for number in (hint_of(id), HOME)
        if number in {shard.id for shard in runtime.directory.known()}
    ]
    yield from dict.fromkeys(first)
    # Read again only now: nearly always the row was there.
    yield from (shard.id for shard in runtime.directory.shards() if shard.id not in first)
