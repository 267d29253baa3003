"""Receipts across tenants, for operators: list them, keep them in a file, and erase again what a backup brought back.

A database knows its own erasures, and a backup those up to its making. A receipt of the file that the database does not
know shows that a backup was restored, and is the erasure to do again. Then the database knows it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import partial
from pathlib import Path
from uuid import UUID

from sqlalchemy import Connection, Engine

from memory_app.db import inspection
from memory_app.db.db import transaction
from memory_app.db.shards import HOME
from memory_app.errors import InvalidInput, Misconfigured, NotFound
from memory_app.forget import forget, receipt_file
from memory_app.forget.agent_erasure import erase_agent_older
from memory_app.forget.erasure import erase_memory, erase_session, erase_turn, erase_user
from memory_app.forget.receipt import Receipt, Seal, Subject, seal_of
from memory_app.forget.rows import receipts
from memory_app.forget.settlement import NOTHING, Forgotten, added, united
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.tenancy.digests import digests_of
from memory_app.tenancy.rows import keys
from memory_app.tenancy.shards import in_each

Tenants = Mapping[int, str]

LINES_LIMIT = 1_000
"""Most receipts that are verified in one call."""


class Outcome(StrEnum):
    """What a line of the file led to."""

    KNOWN = "known"
    """The database knows this erasure: nothing to do."""
    ERASED = "erased again"
    ABSENT = "nothing of it here"
    OTHER_TENANT = "no such tenant here"
    UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True)
class Replayed:
    """A line of the file and what became of it. ``counts`` are the rows erased now."""

    file: Path
    line: int
    outcome: Outcome
    receipt: Receipt | None
    counts: Mapping[str, int]
    wrong: str = ""


@dataclass(frozen=True, slots=True)
class Comparison:
    """A file of receipts beside the database: what only one of them knows, and lines that cannot be read."""

    receipts: int
    only_in_file: int
    newest_only_in_file: datetime | None
    only_in_database: int
    unreadable: int


def tenants_of(runtime: Runtime, tenant: str | None) -> Tenants:
    """The tenant of that name, or all of them, which only the owner sees. Raises `NotFound`, `Misconfigured`."""
    if tenant is not None:
        with transaction(runtime.directory.engine, None) as connection:
            tenant_id = keys.find_tenant(connection, tenant)
        if tenant_id is None:
            raise NotFound(f"tenant {tenant!r} was not found; `memory keys list` shows all", field="tenant")
        return {tenant_id: tenant}
    # In the home shard: others have copies of those tenants only who have users there.
    owner = runtime.at(HOME).owner
    if owner is None:
        raise Misconfigured(
            "MEMORY_DATABASE__OWNER_URL is not set; without it name one tenant with --tenant",
            field="database.owner_url",
        )
    with transaction(owner, None) as connection:
        return dict(inspection.tenants(connection))


def list_receipts(runtime: Runtime, tenants: Tenants, *, limit: int | None = None) -> tuple[Receipt, ...]:
    """Receipts of these tenants, newest first; ``limit`` None gives all."""
    rows: list[Receipt] = []
    # One transaction for each tenant: row-level security shows the receipts of one at a time.
    for tenant_id in tenants:
        with transaction(runtime.directory.engine, tenant_id) as connection:
            rows += receipts.listed(connection, tenant_id, limit=limit)
    rows.sort(key=lambda row: (row.erased_at, row.id), reverse=True)
    return tuple(rows[:limit])


def export_receipts(runtime: Runtime, tenants: Tenants, path: Path) -> tuple[int, int]:
    """Add to the file what it lacks; how many receipts it has now, and how many of them are new.

    Raises `InvalidInput` when the file cannot be read or written.
    """
    in_file = _by_id(receipt_file.read(path)) if path.exists() else {}
    oldest_first = reversed(list_receipts(runtime, tenants))
    missing = [row for row in oldest_first if row.id not in in_file]
    try:
        # Nothing is ever taken out: where a backup was restored, the file knows more than the database does.
        receipt_file.append(path, missing, digests_of(runtime.settings))
    except OSError as error:
        raise InvalidInput(f"{path}: cannot be written ({error.strerror})", field="path") from error
    return len(in_file) + len(missing), len(missing)


def compare(engine: Engine, tenants: Tenants, path: Path) -> Comparison:
    """The file beside the database. Receipts of tenants that are not here are left out. Raises `InvalidInput`."""
    lines = list(receipt_file.read(path))
    in_file = {id: row for id, row in _by_id(lines).items() if _is_here(row, tenants)}
    in_database = _ids(engine, tenants)
    missing = [row for row in in_file.values() if row.id not in in_database]
    return Comparison(
        receipts=len(in_file),
        only_in_file=len(missing),
        newest_only_in_file=max((row.erased_at for row in missing), default=None),
        only_in_database=len(in_database - in_file.keys()),
        unreadable=sum(line.receipt is None for line in lines),
    )


@dataclass(frozen=True, slots=True)
class Verified:
    """A line of a file and what is true of it. ``seal`` None: it is no receipt, and ``wrong`` says why.

    ``is_of_user`` None: nobody asked.
    """

    line: int
    wrong: str = ""
    seal: Seal | None = None
    id: UUID | None = None
    of: Subject | None = None
    erased_at: datetime | None = None
    is_known: bool | None = None
    is_of_user: bool | None = None

    @property
    def is_good(self) -> bool:
        return self.seal is Seal.VALID and self.is_known is True and self.is_of_user is not False


def verify(runtime: Runtime, path: Path, *, user: str | None = None) -> tuple[Verified, ...]:
    """Each receipt of the file: its seal, whether this database knows it just so, and whether it is of a person.

    Raises `InvalidInput` when the file cannot be read.
    """
    return tuple(_verified(runtime, line, user=user) for line in receipt_file.read(path))


def verify_text(
    runtime: Runtime, tenant_id: int, text: str, *, user: str | None = None
) -> tuple[Verified, ...]:
    """As `verify`, of lines that somebody of a tenant has. Receipts of other tenants are no receipts here.

    Raises `InvalidInput` for more than `LINES_LIMIT`.
    """
    lines = list(receipt_file.parse_lines(text.splitlines()))
    if len(lines) > LINES_LIMIT:
        raise InvalidInput(f"receipts: at most {LINES_LIMIT} lines", field="receipts")
    return tuple(_verified_for(runtime, tenant_id, line, user=user) for line in lines)


def _verified_for(runtime: Runtime, tenant_id: int, line: receipt_file.Line, *, user: str | None) -> Verified:
    # Nothing is told of another tenant, not even whether it has such a receipt.
    if line.receipt is not None and line.receipt.tenant_id != tenant_id:
        return Verified(line.number, "the receipt is of another tenant")
    return _verified(runtime, line, user=user)


def _verified(runtime: Runtime, line: receipt_file.Line, *, user: str | None) -> Verified:
    receipt = line.receipt
    if receipt is None:
        return Verified(line.number, line.wrong)
    made = digests_of(runtime.settings)
    # By its tenant's number, so that no owner is needed; a number that stands for another tenant shows another name.
    with transaction(runtime.at(HOME).engine, receipt.tenant_id) as connection:
        stored = receipts.read_receipt(connection, receipt.tenant_id, receipt.id)
    is_of_user = None
    if user is not None:
        digests = made.possible(receipt.tenant_id, Subject.USER, user)
        is_of_user = not set(digests).isdisjoint(receipt.digests)
    return Verified(
        line.number,
        seal=seal_of(line.text, made),
        id=receipt.id,
        of=receipt.of,
        erased_at=receipt.erased_at,
        is_known=stored is not None and _is_same(stored, receipt),
        is_of_user=is_of_user,
    )


def _is_same(stored: Receipt, receipt: Receipt) -> bool:
    # Kind and further digests stand in a run that is deleted after a while.
    return (stored.tenant, stored.erased_at, dict(stored.counts)) == (
        receipt.tenant,
        receipt.erased_at,
        dict(receipt.counts),
    ) and stored.digests[0] == receipt.digests[0]


def replay(
    runtime: Runtime, tenants: Tenants, paths: Sequence[Path], *, dry_run: bool = False
) -> Iterator[Replayed]:
    """Erase again what the receipts of the files name, line by line; what the database knows is left alone.

    Only rows that are older than the erasure go. A second run finds nothing to do. Raises `InvalidInput` when a file
    cannot be read, before anything is erased.
    """
    # A list, so that a file that cannot be read is noticed before the first erasure.
    lines = [(path, line) for path in paths for line in receipt_file.read(path)]
    in_database = _ids(runtime.directory.engine, tenants)
    in_files = [line.receipt for _, line in lines if line.receipt is not None]
    due = [row for row in in_files if _is_here(row, tenants) and row.id not in in_database]
    matches = _matches(runtime, due)
    for path, line in lines:
        receipt = line.receipt
        counts: Mapping[str, int] = {}
        if receipt is None:
            outcome = Outcome.UNREADABLE
        elif not _is_here(receipt, tenants):
            outcome = Outcome.OTHER_TENANT
        elif receipt.id in in_database:
            outcome = Outcome.KNOWN
        else:
            # Two files may hold the same receipt.
            in_database.add(receipt.id)
            counts = _erase_again(runtime, receipt, matches=matches, dry_run=dry_run)
            outcome = Outcome.ERASED if counts else Outcome.ABSENT
        yield Replayed(
            file=path,
            line=line.number,
            outcome=outcome,
            receipt=receipt,
            counts=counts,
            wrong=line.wrong,
        )


_Match = tuple[Subject, str, int]
"""What a digest is about: its kind, its name or id, and a shard that has it. An agent may be in all of them."""


def _by_id(lines: Iterable[receipt_file.Line]) -> dict[UUID, Receipt]:
    return {line.receipt.id: line.receipt for line in lines if line.receipt is not None}


def _ids(engine: Engine, tenants: Tenants) -> set[UUID]:
    """Ids of all receipts that the database has."""
    ids: set[UUID] = set()
    for tenant_id in tenants:
        with transaction(engine, tenant_id) as connection:
            ids |= receipts.ids(connection, tenant_id)
    return ids


def _is_here(receipt: Receipt, tenants: Tenants) -> bool:
    """Is the receipt's tenant in this database?"""
    # The number alone would not do: in another database another tenant may have it.
    return tenants.get(receipt.tenant_id) == receipt.tenant


def _matches(runtime: Runtime, due: Sequence[Receipt]) -> dict[bytes, list[_Match]]:
    """Names and ids of the database that the receipts are about, by digest."""
    matches: dict[bytes, list[_Match]] = {}
    for tenant_id in sorted({receipt.tenant_id for receipt in due}):
        own = [receipt for receipt in due if receipt.tenant_id == tenant_id]
        for of in Subject:
            # Only kinds that the receipts are about are read: a database has many more turns than users.
            digests = {digest for row in own if row.of in (None, of) for digest in row.digests}
            if digests:
                matches |= _matches_of(runtime, tenant_id, of=of, digests=digests)
    return matches


def _matches_of(
    runtime: Runtime, tenant_id: int, *, of: Subject, digests: set[bytes]
) -> dict[bytes, list[_Match]]:
    matches: dict[bytes, list[_Match]] = {}
    made = digests_of(runtime.settings)

    def look(here: Runtime) -> None:
        with transaction(here.engine, tenant_id) as connection:
            # A digest cannot be turned back into a name, so each name that is here is digested and compared.
            for name in receipts.names(connection, tenant_id, of):
                for digest in made.possible(tenant_id, of, name):
                    if digest in digests:
                        matches.setdefault(digest, []).append((of, name, here.shard))

    in_each(runtime, look)
    return matches


def _erase_again(
    runtime: Runtime, receipt: Receipt, *, matches: Mapping[bytes, Sequence[_Match]], dry_run: bool
) -> Mapping[str, int]:
    """Rows by table that went."""
    subjects = [match for digest in receipt.digests for match in matches.get(digest, ())]
    if receipt.of is not Subject.AGENT:
        # All subjects stand in one scope. A user whose rows are gone is in the list of the home shard, too.
        last = {name: shard for _, name, shard in subjects}
        subjects = [match for match in subjects if last[match[1]] == match[2]]
    # The home shard last: an agent's entry there is what its copies refer to.
    shards = sorted({shard for _, _, shard in subjects} or {HOME}, reverse=True)
    counts: Mapping[str, int] = {}
    for shard in shards:
        here = [(of, name) for of, name, place in subjects if place == shard]
        run = forget.forget_again(
            runtime.at(shard), receipt, partial(_erase_all, receipt=receipt, subjects=here), dry_run=dry_run
        )
        counts = added(counts, run.report["counts"])
    return counts


def _erase_all(
    connection: Connection, *, receipt: Receipt, subjects: Sequence[tuple[Subject, str]]
) -> Forgotten:
    forgotten = NOTHING
    for of, name in subjects:
        forgotten = united(forgotten, _erase_older(connection, receipt, of=of, name=name))
    return forgotten


def _erase_older(connection: Connection, receipt: Receipt, *, of: Subject, name: str) -> Forgotten:
    tenant_id, before = receipt.tenant_id, receipt.erased_at
    # Somebody new may have a name since the erasure; an id of a turn or a memory is never given twice.
    if of is Subject.USER:
        return erase_user(connection, tenant_id, name, before=before)
    if of is Subject.AGENT:
        return erase_agent_older(connection, tenant_id, name, before=before)
    if of is Subject.SESSION:
        return erase_session(connection, tenant_id, Scope(*name.split("\0")), before=before)
    if of is Subject.TURN:
        return erase_turn(connection, tenant_id, UUID(name)) or NOTHING
    return erase_memory(connection, tenant_id, UUID(name)) or NOTHING
