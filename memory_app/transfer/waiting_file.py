"""A file that waits in the database for its import, in parts of one size, as a stream."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Any, BinaryIO, cast

from memory_app.db.db import transaction
from memory_app.jobs.rows.runs import RunClaim
from memory_app.runtime import Runtime
from memory_app.transfer.rows import imports


@dataclass(frozen=True, slots=True)
class WaitingFile:
    """The file that waits for a run."""

    runtime: Runtime
    claimed: RunClaim
    part_bytes: int

    def open(self) -> BinaryIO:
        return cast(BinaryIO, io.BufferedReader(_Parts(self), self.part_bytes))


class _Parts(io.RawIOBase):
    """The parts of a file as one stream, of which one is in memory. No transaction is open between two of them."""

    def __init__(self, file: WaitingFile) -> None:
        self._runtime = file.runtime
        self._claimed = file.claimed
        self._part_bytes = file.part_bytes
        self._position = 0
        self._number = -1
        self._part = b""

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        if whence == io.SEEK_CUR:
            offset += self._position
        elif whence == io.SEEK_END:
            with transaction(self._runtime.engine, self._claimed.tenant_id) as connection:
                offset += imports.size(connection, self._claimed.run_id)
        self._position = max(offset, 0)
        return self._position

    def tell(self) -> int:
        return self._position

    def readinto(self, buffer: Any) -> int:
        number, start = divmod(self._position, self._part_bytes)
        content = self._read(number)[start : start + len(buffer)]
        buffer[: len(content)] = content
        self._position += len(content)
        return len(content)

    def _read(self, number: int) -> bytes:
        if number != self._number:
            with transaction(self._runtime.engine, self._claimed.tenant_id) as connection:
                self._part = imports.read_part(connection, self._claimed.run_id, number) or b""
            self._number = number
        return self._part
