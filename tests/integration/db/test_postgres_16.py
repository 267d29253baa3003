"""The oldest PostgreSQL that will do: its ids, and the whole product on it, as a smoke test.

All integration tests run on it with ``TEST_POSTGRES_VERSION=16``.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from uuid import UUID

import lived
import pytest
from databases import answers, failures, settings_for
from own_servers import PostgresServer, postgres_server
from queries import rows
from sqlalchemy import create_engine
from sqlalchemy.pool import NullPool

from memory_app import MemoryApp
from memory_app.dispatch import finder
from memory_app.errors import NotFound
from memory_app.local.embedded import Servers
from memory_app.settings import Settings
from memory_app.tenancy import schema
from memory_app.tenancy.rows import keys


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    with postgres_server(version="16") as server:
        server.create_database("memory")
        yield server


@pytest.fixture(scope="module")
def on_16(postgres: PostgresServer, servers: Servers) -> Settings:
    settings = settings_for(postgres, servers)
    schema.upgrade(settings)
    return settings


def test_ids_are_of_version_7_and_order_by_time(postgres: PostgresServer, on_16: Settings) -> None:
    before = datetime.now(UTC)
    made = [
        UUID(str(id))
        for (id,) in rows(postgres.url("memory"), "SELECT uuidv7() FROM generate_series(1, 2000)")
    ]
    after = datetime.now(UTC)

    assert {id.version for id in made} == {7}
    assert {id.variant for id in made} == {"specified in RFC 4122"}
    assert len(set(made)) == len(made)
    # Milliseconds and their fraction come first: 60 bits without the version.
    assert sorted(made, key=lambda id: id.int >> 64) == made
    times = [datetime.fromtimestamp((id.int >> 80) / 1000, UTC) for id in made]
    assert before - timedelta(milliseconds=1) <= times[0] <= times[-1] <= after
    fractions = {(id.int >> 64) & 0xFFF for id in made}
    assert len(fractions) > 1
    assert max(fractions) > 0x7F


def test_the_product_works(postgres: PostgresServer, on_16: Settings) -> None:
    owner = create_engine(postgres.url("memory"), poolclass=NullPool)
    with owner.begin() as connection:
        keys.ensure_tenant(connection, lived.TENANT)
    with MemoryApp.connect(on_16, tenant=lived.TENANT) as memory:
        lived.live(memory, owner)
        assert failures(on_16) == {}
        lisbon, *_ = answers(memory, lived.CHAT, lived.QUESTIONS)
        assert any("Lisbon" in text for _, text, _ in lisbon)
        assert "Rua Augusta" in memory.context(lived.SECOND_CHAT, "Where is the office?").text
        finder.drain(memory.runtime)
        memory.forget("mira")
        with pytest.raises(NotFound):
            memory.recall(lived.ADA_MIRA, lived.QUESTIONS[0])
