"""What ends a process of Celery before it starts: wrong settings, and a database that waiting does not open."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from pydantic import ValidationError

from memory_app.errors import MemoryAppError
from memory_app.ops.startup import check_database
from memory_app.runtime import app_engine
from memory_app.settings import Settings, wrong_setting


@contextmanager
def one_sentence() -> Iterator[None]:
    """End the process with status 1 and one sentence for an error that we know: Celery would write a traceback, or only
    log it and go on."""
    try:
        yield
    except MemoryAppError as error:
        sys.exit(f"memory: {error.message}")
    except ValidationError as error:
        sys.exit(f"memory: {wrong_setting(error)}")


def require_database() -> None:
    """Raises `StoreRefused` for what only a person can mend. Leaves no connection behind for children to inherit."""
    engine = app_engine(Settings())
    try:
        check_database(engine)
    finally:
        engine.dispose()
