"""A Valkey server for the run, and hot memory under a prefix of its own for each test.

After each test every key under the prefix must have an expiry, and be of the type that the table of keys
says.
"""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import pytest
from own_servers import valkey_server
from redis import Redis

from memory_app.hot import Hot, connect
from memory_app.hot.keys import KEYS
from memory_app.redis_url import read


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    with valkey_server() as server:
        yield server.url


@pytest.fixture
def raw(redis_url: str) -> Iterator[Redis]:
    """The server as anybody sees it, to look behind the product and to turn time forward."""
    with Redis.from_url(redis_url, protocol=2) as client:
        yield client


@pytest.fixture
def hot(redis_url: str, raw: Redis) -> Iterator[Hot]:
    hot = connect(read(redis_url), prefix=f"test-{uuid4().hex}:", timeout_seconds=5)
    yield hot
    hot.close()
    left = list(raw.scan_iter(f"{hot.prefix}*"))
    endless = [key for key in left if raw.ttl(key) < 0]
    unknown = [key for key in left if not is_in_table(raw, hot, key)]
    if left:
        raw.delete(*left)
    assert endless == [], "every key expires"
    assert unknown == [], "every key has a line in the table, with its type"


def is_in_table(raw: Redis, hot: Hot, key: bytes) -> bool:
    rest = key.decode().removeprefix(hot.prefix)
    for row in KEYS:
        is_named = rest.startswith(f"{row.name}:") and not row.per_scope
        is_of_scope = rest.startswith("scope:{") and rest.endswith(f"}}:{row.name}") and row.per_scope
        if is_named or is_of_scope:
            return (
                bool(raw.type(key).decode() == row.type) and raw.pttl(key) <= row.life.total_seconds() * 1000
            )
    return False
