"""Write ``migrations/schema.txt``, the objects that doctor expects, from a fresh database.

``python -m tests.manifest``, after each change of revisions or of ``access.sql``; a test says when it was forgotten.
"""

from __future__ import annotations

from sqlalchemy import create_engine
from sqlalchemy.pool import NullPool

from memory_app.db import catalog, migrate
from tests.support.own_servers import postgres_server


def write() -> None:
    with postgres_server() as server:
        server.create_database("memory")
        url = server.url("memory")
        migrate.upgrade(migrate.Logins(url, url), {})
        with create_engine(url, poolclass=NullPool).connect() as connection:
            catalog.EXPECTED.write_text(catalog.render(catalog.objects(connection)), encoding="utf-8")


if __name__ == "__main__":
    write()
