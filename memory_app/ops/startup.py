"""Before a part starts: whether the database will have it."""

from __future__ import annotations

import structlog
from sqlalchemy import Engine

from memory_app.db import revision
from memory_app.db.db import transaction
from memory_app.errors import StoreRefused, StoreUnavailable

log = structlog.get_logger(__name__)


def check_database(engine: Engine) -> None:
    """Raise `StoreRefused` for what only a person can mend, such as a wrong password.

    Parts may be started in any order: a database that is away or not migrated yet is logged, and waited for.
    """
    try:
        with transaction(engine, None) as connection:
            difference = revision.difference(revision.stored(connection))
    except StoreRefused:
        raise
    except StoreUnavailable as error:
        difference = error.message
    if difference is not None:
        log.warning("database_not_ready", reason=difference)
