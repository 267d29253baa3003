"""Receipts of erasures, as they stand in a file beside the backups. Pure.

With a receipt the same is erased again from a database that was restored from an older backup. The file names nobody:
a receipt holds digests of names and ids, so only a database that still has a name can tell whose it is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from memory_app.errors import InvalidInput

FORMAT = "memory-erasure"
VERSION = 1


class ErasureState(StrEnum):
    """States of a receipt."""

    # The only one: a receipt is written in the transaction that erases. The column would admit those of a run, too.
    DONE = "done"


class Subject(StrEnum):
    """What an erasure is of."""

    USER = "user"
    SESSION = "session"
    TURN = "turn"
    MEMORY = "memory"


@dataclass(frozen=True, slots=True)
class Receipt:
    """An erasure: of what kind, when, how many rows went, and digests of what was named.

    The erasure of a memory has a digest for each row that went with it: a backup may hold only the rows that were
    merged into the memory later. ``of`` is None where the run that says so is gone.
    """

    id: UUID
    tenant_id: int
    tenant: str
    of: Subject | None
    digests: tuple[bytes, ...]
    erased_at: datetime
    counts: Mapping[str, int]


def receipt_line(receipt: Receipt) -> str:
    """The receipt as one line of JSON, without the line's end."""
    return json.dumps(
        {
            "format": FORMAT,
            "version": VERSION,
            "id": str(receipt.id),
            "tenant": receipt.tenant,
            "tenant_id": receipt.tenant_id,
            "of": receipt.of,
            "digests": [digest.hex() for digest in receipt.digests],
            "erased_at": receipt.erased_at.isoformat(),
            "counts": dict(receipt.counts),
        },
        ensure_ascii=False,
    )


def parse_receipt(line: str) -> Receipt:
    """The receipt of a line; `InvalidInput` says what is wrong with it."""
    try:
        row = json.loads(line)
    except ValueError as error:
        raise InvalidInput("the line is not JSON; it was perhaps cut") from error
    if not isinstance(row, dict) or row.get("format") != FORMAT:
        raise InvalidInput(f"the line is no receipt of an erasure; its format must be {FORMAT!r}")
    if row.get("version") != VERSION:
        raise InvalidInput(f"the receipt has version {row.get('version')!r}; this code reads {VERSION}")
    try:
        return _receipt(row)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InvalidInput(f"the receipt has a field that is missing or does not fit ({error})") from error


def _receipt(row: Mapping[str, Any]) -> Receipt:
    erased_at = datetime.fromisoformat(row["erased_at"])
    # It is compared with times of the database, which a time without a zone cannot be.
    if erased_at.tzinfo is None:
        raise ValueError("erased_at lacks its zone")
    digests = tuple(bytes.fromhex(digest) for digest in row["digests"])
    if not digests:
        raise ValueError("digests is empty")
    return Receipt(
        id=UUID(row["id"]),
        tenant_id=int(row["tenant_id"]),
        tenant=str(row["tenant"]),
        of=None if row["of"] is None else Subject(row["of"]),
        digests=digests,
        erased_at=erased_at,
        counts={str(table): int(count) for table, count in row["counts"].items()},
    )
