from __future__ import annotations

import pytest

from memory_app import sentinel
from memory_app.errors import Misconfigured
from memory_app.sentinel import Watched

URL = "sentinel://user:p%40ss@one:1,two/3?primary=main"


def test_one_address_names_the_sentinels_the_primary_and_the_login() -> None:
    assert sentinel.read(URL) == Watched((("one", 1), ("two", 26379)), "main", 3, "user", "p@ss")
    assert "p@ss" not in repr(sentinel.read(URL))


def test_the_broker_gets_one_url_for_each_sentinel() -> None:
    assert sentinel.broker_urls(URL) == "sentinel://user:p%40ss@one:1/3;sentinel://user:p%40ss@two/3"


def test_a_redis_itself_is_left_alone() -> None:
    assert sentinel.read("redis://localhost:6379/0") is None


@pytest.mark.parametrize(
    "url",
    [
        "sentinel://one:1/0",
        "sentinel:///0?primary=main",
        "sentinel://one:port/0?primary=main",
        "sentinel://one/zero?primary=main",
    ],
)
def test_an_address_without_sentinels_or_primary_is_refused(url: str) -> None:
    with pytest.raises(Misconfigured, match="primary=NAME"):
        sentinel.read(url)
