"""Export as JSON Lines: everything that is stored about a person, an agent or a tenant, line by line.

All lines of a shard show one state of it, which is read in one transaction, and none is held in memory.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any

from sqlalchemy import Connection

from memory_app.db import clock
from memory_app.db.db import steady, transaction
from memory_app.db.shards import HOME, shard_of
from memory_app.db.vectors import sparse_text, vector_text
from memory_app.errors import NotFound
from memory_app.language.framing import unframed
from memory_app.language.keywords import keyword_weights
from memory_app.language.text import NORMALISER_VERSION, terms
from memory_app.records.scope import Scope, check_name
from memory_app.runtime import Runtime
from memory_app.tenancy.redaction import with_redaction_of
from memory_app.tenancy.rows import names
from memory_app.tenancy.shards import in_users_shard
from memory_app.transfer import snapshots as transfer
from memory_app.transfer.export_lines import (
    END,
    FORMAT,
    HEADER,
    VERSION,
    Extent,
    extent_of,
    line_of,
    parse_export,
    snapshot_of,
)
from memory_app.transfer.rows import exports
from memory_app.transfer.snapshot import embedder_meta
from memory_app.transfer.snapshots import Imported

BATCH = 64
"""Texts embedded in one call."""


def export_lines(
    runtime: Runtime,
    tenant_id: int,
    *,
    agent: str | None = None,
    user: str | None = None,
    with_vectors: bool = False,
) -> Generator[str, None, None]:
    """Lines of JSON with their ends: a header, the rows, the counts. Names that are absent widen what is exported.

    Raises `NotFound` before the first line. Whoever stops reading must close the iterator, which ends the transaction.
    """
    selection = _Selection(tenant_id, agent=agent, user=user, with_vectors=with_vectors)
    counts: Counter[str] = Counter()
    with closing(_rows(runtime, selection)) as rows:
        # Before the header goes out: once a line was sent, a caller over HTTP can no longer get a 404.
        first = next(rows, None)
        if first is None and selection.extent is not Extent.TENANT:
            raise _not_found(agent, user)
        yield _header(runtime, selection)
        for type, line in chain([] if first is None else [first], rows):
            counts[type] += 1
            yield line
    # The counts stand at the end, so that a file that was cut has none.
    yield line_of(END, json.dumps({"counts": dict(counts)}))


def import_lines(
    runtime: Runtime,
    tenant_id: int,
    lines: Iterable[str],
    *,
    user: str | None = None,
    new_consent: bool = False,
) -> Imported:
    """Fill the empty scopes of a user from an export of that user, with the same ids; all of it or nothing.

    ``user`` takes the place of the name in the export. Sessions, turns, memories, links, entities, mentions and
    evidence are stored; feedback, runs, checkpoints and grants are in an export to be read: what
    somebody lets another agent recall is theirs to say anew. Without vectors in it, memories are
    embedded now and turns by the workers. Raises `InvalidInput` naming the line, or as `transfer.load`.
    """
    parsed = parse_export(lines)
    embedder = parsed.header["embedder"]
    if not parsed.header["with_vectors"]:
        embedder = embedder_meta(runtime.embedder.model, runtime.embedder.dimensions)
        for scope, lists in parsed.lists.items():
            _fill_in(with_redaction_of(runtime, tenant_id, scope.agent), lists)
    snapshots = [
        (Scope(scope.agent, user or scope.user), snapshot_of(parsed, scope, embedder))
        for scope in parsed.lists
    ]
    zones = {user or name: zone for name, zone in parsed.zones.items()}
    user_names = {user or name: given for name, given in parsed.user_names.items()}
    return in_users_shard(
        runtime,
        tenant_id,
        user or parsed.header["user"],
        lambda here: transfer.load_all(
            here,
            tenant_id,
            snapshots,
            time_zones=zones,
            user_names=user_names,
            new_consent=new_consent,
        ),
    )


@dataclass(frozen=True, slots=True)
class _Selection:
    """What is exported. Raises `InvalidInput` for a name that is none."""

    tenant_id: int
    agent: str | None
    user: str | None
    with_vectors: bool

    def __post_init__(self) -> None:
        if self.agent is not None:
            check_name(self.agent, field="agent")
        if self.user is not None:
            check_name(self.user, field="user")

    @property
    def extent(self) -> Extent:
        return extent_of(self.agent, self.user)


def _rows(runtime: Runtime, selection: _Selection) -> Generator[tuple[str, str], None, None]:
    """Type and line of each row, shard by shard."""
    for here in _places(runtime, selection):
        with steady(here.engine, selection.tenant_id) as connection:
            yield from _rows_of_shard(connection, selection)


def _places(runtime: Runtime, selection: _Selection) -> Iterator[Runtime]:
    """The runtime in the shards that hold rows of the selection. Raises `ShardMissing` before the first of them."""
    if selection.user is None:
        # The home shard comes first, with agents and use. All are checked now: later the caller has had lines already.
        yield from [runtime.at(shard.id) for shard in runtime.directory.read_again()]
    else:
        yield in_users_shard(runtime, selection.tenant_id, selection.user, partial(_checked_place, selection))


def _checked_place(selection: _Selection, here: Runtime) -> Runtime:
    assert selection.user is not None
    with transaction(here.engine, selection.tenant_id) as connection:
        names.check_users_shard(connection, selection.tenant_id, selection.user)
    return here


def _rows_of_shard(connection: Connection, selection: _Selection) -> Generator[tuple[str, str], None, None]:
    tenant_id, agent, user = selection.tenant_id, selection.agent, selection.user
    is_home = shard_of(connection) == HOME
    # Persona and policy belong to the agent, not to a person: the export of one person leaves them out.
    if is_home and selection.extent in (Extent.AGENT, Extent.TENANT):
        for row in exports.agents(connection, tenant_id, agent):
            yield "agent", line_of("agent", row)
    for row in exports.users(connection, tenant_id, agent=agent, user=user):
        yield "user", line_of("user", row)
    for scope in exports.scopes(connection, tenant_id, agent=agent, user=user):
        # Before the rows of the scope: an import takes them only for a scope that was announced.
        yield "scope", line_of("scope", scope.row, agent=scope.agent, user=scope.user)
        for type, row in exports.rows(connection, scope.id, with_vectors=selection.with_vectors):
            yield type, line_of(type, row, agent=scope.agent, user=scope.user)
    if is_home and selection.extent is Extent.TENANT:
        for row in exports.usage(connection, tenant_id):
            yield "usage", line_of("usage", row)


def _header(runtime: Runtime, selection: _Selection) -> str:
    embedder = runtime.embedder
    # From the directory: a shard knows those tenants only who have users in it.
    with transaction(runtime.at(HOME).engine, selection.tenant_id) as connection:
        tenant, now = exports.tenant_name(connection, selection.tenant_id), clock.now(connection)
    header = {
        "format": FORMAT,
        "version": VERSION,
        "extent": selection.extent,
        "tenant": tenant,
        "agent": selection.agent,
        "user": selection.user,
        "created_at": now.isoformat(),
        "with_vectors": selection.with_vectors,
        "embedder": embedder_meta(embedder.model, embedder.dimensions),
        "normaliser": NORMALISER_VERSION,
    }
    return line_of(HEADER, json.dumps(header, ensure_ascii=False))


def _not_found(agent: str | None, user: str | None) -> NotFound:
    names = [f"{field} {name!r}" for field, name in (("agent", agent), ("user", user)) if name is not None]
    field = "agent" if user is None else "user"
    return NotFound(f"nothing is stored for {' and '.join(names)}", field=field)


def _fill_in(runtime: Runtime, lists: Mapping[str, Sequence[dict[str, Any]]]) -> None:
    """Compute what an export without vectors leaves out."""
    nodes = lists["nodes"]
    for start in range(0, len(nodes), BATCH):
        batch = nodes[start : start + BATCH]
        vectors = runtime.embedder.embed([unframed(str(node["text"])) for node in batch])
        for node, vector in zip(batch, vectors, strict=True):
            weights = keyword_weights(terms(str(node["text"])))
            node |= {
                # The check of a snapshot takes vectors as PostgreSQL writes them, without spaces.
                "embedding": vector_text(vector),
                "embedding_model": runtime.embedder.model,
                "keywords": sparse_text(weights),
                "terms": sorted(weights),
            }
    # Turns may be many more than memories: the workers index them as if they were new, while the import is done.
    for turn in lists["turns"]:
        turn |= dict.fromkeys(("embedding", "embedding_model", "keywords", "terms"))
        if turn.get("failed_at") is None:
            turn["indexed_at"] = None
