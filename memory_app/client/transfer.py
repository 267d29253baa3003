"""Calls of transfer: snapshots, checkpoints, exports as JSON Lines."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from uuid import UUID

from memory_app.client.call import (
    TRANSFER_SECONDS,
    Call,
    answer_of,
    body_of,
    in_agent,
    in_user,
    json_of,
    nothing,
    object_of,
    path,
    query_of,
)
from memory_app.errors import InvalidInput
from memory_app.jobs.answers import RunStateAnswer
from memory_app.records.ids import checked_id
from memory_app.records.scope import Scope, check_name
from memory_app.transfer.answers import CheckpointAnswer, CheckpointsAnswer, ImportedAnswer


def export(scope: Scope) -> Call[dict[str, Any]]:
    """The whole scope as a snapshot, which `load` takes."""
    return Call("GET", in_user(scope, "export"), object_of, further_seconds=TRANSFER_SECONDS)


def load(scope: Scope, snapshot: Mapping[str, Any], *, new_consent: bool = False) -> Call[ImportedAnswer]:
    """Fill an empty scope from a snapshot, or raise and import nothing.

    ``new_consent``: the person was erased once and has agreed anew.
    """
    return Call(
        "POST",
        in_user(scope, "import"),
        answer_of(ImportedAnswer),
        body=json_of({**snapshot, "new_consent": new_consent}),
        # A second one would be refused, since the scope is not empty any more.
        is_repeatable=False,
        further_seconds=TRANSFER_SECONDS,
    )


def import_file(
    scope: Scope,
    file: Path | str | bytes,
    *,
    format: str | None = None,
    dry_run: bool = False,
    time_zone: str | None = None,
    date_order: str | None = None,
    speakers: Mapping[str, str] | None = None,
    owner: str | None = None,
) -> Call[RunStateAnswer]:
    """Have a worker import the chats or memories that another program exported; follow it with `run`.

    ``file`` is its path, or its bytes. The scope's session names that of a file with one conversation. ``speakers`` are
    roles, ``user`` or ``assistant``, by name; ``date_order`` is ``dmy`` or ``mdy``; ``owner`` is whose part comes in,
    by the id in the file. A dry run only reports. Importing it again stores nothing twice.
    """
    query = query_of(
        format=format,
        dry_run=dry_run,
        session=scope.session,
        time_zone=time_zone,
        date_order=date_order,
        speakers=None if speakers is None else json_of(speakers).decode(),
        owner=owner,
    )
    return Call(
        "POST",
        in_user(scope, "imports"),
        answer_of(RunStateAnswer),
        query=query,
        body=_content_of(file),
        media_type="application/octet-stream",
        further_seconds=TRANSFER_SECONDS,
    )


def _content_of(file: Path | str | bytes) -> bytes:
    if isinstance(file, bytes):
        return file
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise InvalidInput(f"{file}: cannot be read ({error.strerror})", field="file") from error


def checkpoint(scope: Scope, *, most: int | None = None) -> Call[CheckpointAnswer]:
    """Keep the strongest memories of the scope, or of its session, as a document."""
    body = body_of(session=scope.session, most=most)
    return Call(
        "POST", in_user(scope, "checkpoints"), answer_of(CheckpointAnswer), body=body, is_repeatable=False
    )


def checkpoints(
    scope: Scope, *, limit: int = 50, cursor: UUID | str | None = None
) -> Call[CheckpointsAnswer]:
    """Checkpoints, newest first."""
    query = query_of(limit=limit, cursor=cursor)
    return Call("GET", in_user(scope, "checkpoints"), answer_of(CheckpointsAnswer), query=query)


def read_checkpoint(scope: Scope, checkpoint_id: UUID | str) -> Call[dict[str, Any]]:
    """The document of a checkpoint, which `load` takes."""
    id = checked_id(checkpoint_id, field="checkpoint_id")
    return Call("GET", in_user(scope, "checkpoints", id), object_of, further_seconds=TRANSFER_SECONDS)


def export_lines(
    *, agent: str | None = None, user: str | None = None, with_vectors: bool = False
) -> Call[None]:
    """Everything of a user, an agent or the tenant as lines of JSON; names that are absent widen it.

    The lines come while they are read. The last one has the counts; without it the export was cut.
    """
    if user is not None:
        address = path("v1", "users", check_name(user, field="user"), "export")
        query = query_of(agent=agent, with_vectors=with_vectors)
    else:
        address = path("v1", "export") if agent is None else in_agent(agent, "export")
        query = query_of(with_vectors=with_vectors)
    return Call("GET", address, nothing, query=query, further_seconds=TRANSFER_SECONDS)
