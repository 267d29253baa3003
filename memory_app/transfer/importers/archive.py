"""Look into an archive: programs export a zip, of which the chats are one file or a few."""

from __future__ import annotations

import io
import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import IO, Any, BinaryIO, cast
from zipfile import BadZipFile, ZipFile, ZipInfo

from memory_app.errors import InvalidInput, TooLarge
from memory_app.transfer.importers.records import Source

_SIGNATURE = b"PK\x03\x04"

_CHATS = re.compile(
    r"(?:.*/)?(?:conversations(?:-\d+)?\.json|_chat\.txt|WhatsApp Chat [^/]*\.txt)", re.IGNORECASE
)
"""Files of an archive that hold chats, in the exports of ChatGPT, Claude and WhatsApp."""

_FAULTS = (BadZipFile, EOFError, NotImplementedError, RuntimeError, ValueError, zlib.error)
"""What the library raises for an archive that is damaged, has a password, or is packed in a way it does not know."""

# Read piece by piece, so this bounds the time and not the memory.
UNPACKED_LIMIT_BYTES = 4_000_000_000
"""Largest sum of the files that are read from an archive."""


@dataclass(frozen=True, slots=True)
class Member:
    """A file in an archive."""

    archive: Source
    info: ZipInfo

    def open(self) -> BinaryIO:
        return cast(BinaryIO, io.BufferedReader(_Stream(self.archive.open(), self.info)))


class _Stream(io.RawIOBase):
    """The bytes of a member. Closes the archive with itself."""

    def __init__(self, archive: BinaryIO, info: ZipInfo) -> None:
        self._archive = archive
        self._member: IO[bytes] = archive
        try:
            self._member = ZipFile(archive).open(info)  # noqa: SIM115  # closed with this stream
        except _FAULTS as error:
            self.close()
            raise _unreadable() from error

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            # No more than the archive says that the member has; the checksum of one with more does not fit.
            content = self._member.read(len(buffer))
        except _FAULTS as error:
            raise _unreadable() from error
        buffer[: len(content)] = content
        return len(content)

    def close(self) -> None:
        if not self.closed:
            self._member.close()
            self._archive.close()
        super().close()


def _unreadable() -> InvalidInput:
    return InvalidInput(
        "file: an archive that cannot be read; was it cut, or has it a password? Nothing was imported",
        field="file",
    )


def files_of(source: Source) -> Sequence[Source]:
    """The files that hold chats: the source itself, or those in it where it is an archive, in their order.

    Raises `InvalidInput` for an archive that cannot be read, or holds none.
    """
    with source.open() as file:
        if file.read(len(_SIGNATURE)) != _SIGNATURE:
            return (source,)
        try:
            infos = ZipFile(file).infolist()
        except _FAULTS as error:
            raise _unreadable() from error
    chats = sorted(
        (info for info in infos if _CHATS.fullmatch(info.filename)), key=lambda info: info.filename
    )
    if not chats:
        raise InvalidInput(
            "file: an archive without conversations.json or the text of a chat; unpack it and import the file",
            field="file",
        )
    if sum(info.file_size for info in chats) > UNPACKED_LIMIT_BYTES:
        raise TooLarge(f"file: unpacked it has more than {UNPACKED_LIMIT_BYTES} bytes", field="file")
    return tuple(Member(source, info) for info in chats)
