"""Check the database before a part starts."""

from __future__ import annotations

import structlog
from sqlalchemy import Engine

from memory_app.db import revision
from memory_app.db.db import transaction
from memory_app.errors import StoreRefused, StoreUnavailable

log = structlog.get_logger(__name__)


def check_database(engine: Engine) -> None:
    """Raise `StoreRefused` for what only a person can mend, such as a wrong password."""
    try:
        with transaction(engine, None) as connection:
            difference = revision.difference(revision.stored(connection))
    except StoreRefused:
        raise
    except StoreUnavailable as error:
        difference = error.message
    # Parts may be started in any order, so a database that is away or not migrated yet is waited for.
    if difference is not None:
        log.warning("database_not_ready", reason=difference)
