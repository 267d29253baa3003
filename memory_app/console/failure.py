"""What the command line says when a command failed: one line for every error that we know."""

from __future__ import annotations

import structlog
from pydantic import ValidationError
from sqlalchemy.exc import DBAPIError

from memory_app.console.output import complain
from memory_app.errors import MemoryAppError
from memory_app.log import configure
from memory_app.settings import wrong_setting

log = structlog.get_logger(__name__)


def tell(error: Exception) -> None:
    """Write one line for an error that we know; one that is a fault of the program is logged by its type and place."""
    if isinstance(error, MemoryAppError):
        complain(error.message)
    elif isinstance(error, ValidationError):
        complain(wrong_setting(error))
    elif isinstance(error, DBAPIError):
        # Only the type of the error, because the driver's message may quote a row.
        complain(
            f"the database refused ({type(error.orig).__name__}); `memory doctor` says what is wrong with it"
        )
    else:
        configure(level="WARNING", form="console")
        log.critical("command_broke", exc_info=error)
