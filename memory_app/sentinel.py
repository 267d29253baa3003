"""The address of a Redis that sentinels watch: ``sentinel://:password@host1:26379,host2:26379/0?primary=mymaster``.

One address for hot memory and for the broker, which ask the sentinels in their own ways. User and password are those
of the Redis servers; sentinels with a password of their own are not supported.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import parse_qs, unquote, urlsplit

from memory_app.errors import Misconfigured

SCHEME = "sentinel"
PORT = 26379


@dataclass(frozen=True, slots=True)
class Watched:
    """Which ``primary``, and the sentinels that know where it is."""

    addresses: tuple[tuple[str, int], ...]
    primary: str
    db: int = 0
    username: str | None = None
    password: str | None = field(default=None, repr=False)


def read(url: str) -> Watched | None:
    """None for the address of a Redis itself. Raises `Misconfigured`."""
    parts = urlsplit(url)
    if parts.scheme != SCHEME:
        return None
    login, _, hosts = parts.netloc.rpartition("@")
    username, _, password = login.partition(":")
    primary = parse_qs(parts.query).get("primary", [""])[0]
    try:
        addresses = tuple(_address(host) for host in hosts.split(","))
        db = int(parts.path.strip("/") or 0)
    except ValueError:
        addresses, db = (), 0
    if not addresses or not primary:
        raise Misconfigured(
            "redis.url: write sentinel://host1:26379,host2:26379/0?primary=NAME", field="redis.url"
        )
    return Watched(addresses, primary, db, unquote(username) or None, unquote(password) or None)


def broker_urls(url: str) -> str:
    """The same sentinels as the broker's library wants them, separated by semicolons."""
    parts = urlsplit(url)
    login, at, hosts = parts.netloc.rpartition("@")
    return ";".join(f"{SCHEME}://{login}{at}{host}{parts.path}" for host in hosts.split(","))


def _address(host: str) -> tuple[str, int]:
    name, _, port = host.partition(":")
    if not name:
        raise ValueError
    return name, int(port or PORT)
