"""Export as JSON Lines: everything that is stored about a person, an agent or a tenant, line by line.

The whole is one state of the database, read in one transaction, and never held: memory does not grow with it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any

from sqlalchemy import Connection

from memory_app.db import clock
from memory_app.db.db import steady
from memory_app.db.vectors import sparse_text, vector_text
from memory_app.errors import NotFound
from memory_app.language.framing import unframed
from memory_app.language.keywords import keyword_weights
from memory_app.language.text import NORMALISER_VERSION, terms
from memory_app.records.scope import Scope, check_name
from memory_app.runtime import Runtime
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

    The first line is there once the names were found; raises `NotFound` before it. Whoever stops reading must close the
    iterator, which ends the transaction.
    """
    for name, field in ((agent, "agent"), (user, "user")):
        if name is not None:
            check_name(name, field=field)
    counts: Counter[str] = Counter()
    with (
        steady(runtime.engine, tenant_id) as connection,
        closing(_rows(connection, tenant_id, extent_of(agent, user), agent, user, with_vectors)) as rows,
    ):
        first = next(rows, None)
        if first is None and (agent is not None or user is not None):
            raise _not_found(agent, user)
        yield _header(connection, runtime, tenant_id, agent, user, with_vectors)
        for type, line in _chained(first, rows):
            counts[type] += 1
            yield line
    yield line_of(END, json.dumps({"counts": dict(counts)}))


def import_lines(
    runtime: Runtime, tenant_id: int, lines: Iterable[str], *, user: str | None = None
) -> Imported:
    """Fill the empty scopes of a user from an export of that user, with the same ids; all of it or nothing.

    ``user`` takes the place of the name in the export. Sessions, turns, memories, links, entities, mentions and
    evidence are stored; feedback, runs and checkpoints are in an export to be read. Without vectors in it, memories are
    embedded now and turns by the workers. Raises `InvalidInput` naming the line, or as `transfer.load`.
    """
    parsed = parse_export(lines)
    embedder = parsed.header["embedder"]
    if not parsed.header["with_vectors"]:
        embedder = embedder_meta(runtime.embedder.model, runtime.embedder.dimensions)
        for lists in parsed.lists.values():
            _fill_in(runtime, lists)
    snapshots = [
        (Scope(scope.agent, user or scope.user), snapshot_of(parsed, scope, embedder))
        for scope in parsed.lists
    ]
    zones = {user or name: zone for name, zone in parsed.zones.items()}
    return transfer.load_all(runtime, tenant_id, snapshots, time_zones=zones)


_Row = tuple[str, str]


def _rows(
    connection: Connection,
    tenant_id: int,
    extent: Extent,
    agent: str | None,
    user: str | None,
    with_vectors: bool,
) -> Generator[_Row, None, None]:
    if extent in (Extent.AGENT, Extent.TENANT):
        for row in exports.agents(connection, tenant_id, agent):
            yield "agent", line_of("agent", row)
    for row in exports.users(connection, tenant_id, agent, user):
        yield "user", line_of("user", row)
    for scope in exports.scopes(connection, tenant_id, agent, user):
        yield "scope", line_of("scope", scope.row, agent=scope.agent, user=scope.user)
        for type, row in exports.rows(connection, scope.id, with_vectors=with_vectors):
            yield type, line_of(type, row, agent=scope.agent, user=scope.user)
    if extent is Extent.TENANT:
        for row in exports.usage(connection, tenant_id):
            yield "usage", line_of("usage", row)


def _chained(first: _Row | None, rest: Iterator[_Row]) -> Iterator[_Row]:
    if first is not None:
        yield first
    yield from rest


def _header(
    connection: Connection,
    runtime: Runtime,
    tenant_id: int,
    agent: str | None,
    user: str | None,
    with_vectors: bool,
) -> str:
    embedder = runtime.embedder
    given = {
        "format": FORMAT,
        "version": VERSION,
        "extent": extent_of(agent, user),
        "tenant": exports.tenant_name(connection, tenant_id),
        "agent": agent,
        "user": user,
        "created_at": clock.now(connection).isoformat(),
        "with_vectors": with_vectors,
        "embedder": embedder_meta(embedder.model, embedder.dimensions),
        "normaliser": NORMALISER_VERSION,
    }
    return line_of(HEADER, json.dumps(given, ensure_ascii=False))


def _not_found(agent: str | None, user: str | None) -> NotFound:
    named = [f"{what} {name!r}" for what, name in (("agent", agent), ("user", user)) if name is not None]
    return NotFound(
        f"nothing is stored for {' and '.join(named)}", field="user" if user is not None else "agent"
    )


def _fill_in(runtime: Runtime, lists: Mapping[str, Sequence[dict[str, Any]]]) -> None:
    """Make what an export without vectors leaves out. Turns are indexed by the workers as if they were new."""
    nodes = lists["nodes"]
    for start in range(0, len(nodes), BATCH):
        batch = nodes[start : start + BATCH]
        vectors = runtime.embedder.embed([unframed(str(node["text"])) for node in batch])
        for node, vector in zip(batch, vectors, strict=True):
            weights = keyword_weights(terms(str(node["text"])))
            node |= {
                "embedding": vector_text(vector).replace(" ", ""),
                "embedding_model": runtime.embedder.model,
                "keywords": sparse_text(weights),
                "terms": sorted(weights),
            }
    for turn in lists["turns"]:
        turn |= dict.fromkeys(("embedding", "embedding_model", "keywords", "terms"))
        if turn.get("failed_at") is None:
            turn["indexed_at"] = None
