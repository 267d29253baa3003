"""Read the file of receipts, one line for each erasure, and add to it. Several processes may share it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from memory_app.errors import InvalidInput
from memory_app.forget.receipt import Receipt, parse_receipt, receipt_line
from memory_app.tenancy.digests import Digests

OWNER_ONLY = 0o600


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the file: a receipt, or what is wrong with it."""

    number: int
    text: str
    receipt: Receipt | None
    wrong: str = ""


def append(path: Path, receipts: Sequence[Receipt], made: Digests) -> None:
    """Add receipts, sealed by ``made``, at the end and wait until they are on the disk. Raises `OSError`.

    A new file can be read by its owner only.
    """
    # O_APPEND: the system moves to the end and writes in one step, also when another process writes.
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, OWNER_ONLY)
    try:
        lines = "".join(f"{receipt_line(receipt, made)}\n" for receipt in receipts)
        # A line that was cut by a full disk or a crash must not swallow the next one; empty lines are skipped.
        end = os.fstat(descriptor).st_size
        if end and os.pread(descriptor, 1, end - 1) != b"\n":
            lines = "\n" + lines
        _write(descriptor, lines.encode())
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read(path: Path) -> Iterator[Line]:
    """The lines of the file in order, without empty ones. `InvalidInput` when it cannot be read."""
    try:
        # A byte that is no UTF-8 spoils its line only: the other receipts are still read.
        with path.open(encoding="utf-8", errors="replace") as file:
            yield from parse_lines(file)
    except OSError as error:
        raise InvalidInput(f"{path}: cannot be read ({error.strerror})", field="path") from error


def parse_lines(texts: Iterable[str]) -> Iterator[Line]:
    """The lines in order, without empty ones."""
    for number, text in enumerate(texts, start=1):
        if text.strip():
            yield _line(number, text)


def _line(number: int, text: str) -> Line:
    try:
        return Line(number, text, parse_receipt(text))
    except InvalidInput as error:
        return Line(number, text, None, error.message)


def _write(descriptor: int, content: bytes) -> None:
    # One call where the system takes it whole, so that lines of several processes do not mix.
    while content:
        content = content[os.write(descriptor, content) :]
