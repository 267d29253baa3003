"""What a module writes into the log while something is done."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from types import ModuleType
from typing import Any
from unittest import mock

import structlog
from structlog.testing import capture_logs


@contextmanager
def logged(module: ModuleType) -> Iterator[list[MutableMapping[str, Any]]]:
    """The lines of the module's ``log``, as they come in, with ``event`` and ``log_level``."""
    # A logger of its own: the module's may have been bound for good by a test that set up logging in this process.
    with mock.patch.object(module, "log", structlog.get_logger()), capture_logs() as lines:
        yield lines
