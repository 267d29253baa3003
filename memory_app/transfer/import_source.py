"""Files to import that are at hand: on disk, or in memory."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from memory_app.errors import InvalidInput
from memory_app.transfer.importers.records import Source


@dataclass(frozen=True, slots=True)
class FileOnDisk:
    path: Path

    def open(self) -> BinaryIO:
        """Raises `InvalidInput` for a file that cannot be read."""
        try:
            return self.path.open("rb")
        except OSError as error:
            raise InvalidInput(f"{self.path}: cannot be read ({error.strerror})", field="file") from error


@dataclass(frozen=True, slots=True)
class Content:
    """A file that was read already."""

    content: bytes

    def open(self) -> BinaryIO:
        return io.BytesIO(self.content)


def source_of(file: Path | str | bytes) -> Source:
    """The file at a path, or of these bytes."""
    return Content(file) if isinstance(file, bytes) else FileOnDisk(Path(file))
