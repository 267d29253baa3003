"""Receipts of erasures, as they stand in a file beside the backups. Pure.

With a receipt the same is erased again from a database that was restored from an older backup. The file names nobody:
a receipt holds digests of names and ids, so only a database that still has a name can tell whose it is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from memory_app.errors import InvalidInput
from memory_app.tenancy.digests import Digests

FORMAT = "memory-erasure"
VERSION = 1


class ErasureState(StrEnum):
    """States of a receipt."""

    # The only one: a receipt is written in the transaction that erases. The column would admit those of a run, too.
    DONE = "done"


class Subject(StrEnum):
    """What an erasure is of."""

    USER = "user"
    AGENT = "agent"
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


class Seal(StrEnum):
    """What the seal of a line says."""

    VALID = "valid"
    WRONG = "altered, or sealed with another secret"
    ABSENT = "without a seal"


def receipt_line(receipt: Receipt, made: Digests) -> str:
    """The receipt as one line of JSON, without the line's end; sealed where a secret is set."""
    row: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "id": str(receipt.id),
        "tenant": receipt.tenant,
        "tenant_id": receipt.tenant_id,
        "of": receipt.of,
        "digests": [digest.hex() for digest in receipt.digests],
        # In UTC, so that the same receipt has the same words wherever it is written.
        "erased_at": receipt.erased_at.astimezone(UTC).isoformat(),
        "counts": dict(receipt.counts),
    }
    seal = made.seal(_sealed_text(row))
    if seal is not None:
        row["seal"] = seal
    return json.dumps(row, ensure_ascii=False)


def seal_of(line: str, made: Digests) -> Seal:
    """What the seal of a line says. The line must be a receipt (`parse_receipt`)."""
    row = json.loads(line)
    seal = row.pop("seal", None)
    if seal is None:
        return Seal.ABSENT
    is_valid = isinstance(seal, str) and made.is_sealed(_sealed_text(row), seal)
    return Seal.VALID if is_valid else Seal.WRONG


def _sealed_text(row: Mapping[str, Any]) -> str:
    """All fields in one order and spelling, whoever wrote them."""
    return json.dumps(row, sort_keys=True, separators=(",", ":"))


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
