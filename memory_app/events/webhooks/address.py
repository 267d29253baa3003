"""Where a webhook may lead: which addresses (URL) are taken, and which of those that a name resolves to.

Whoever may make a webhook has us send requests from inside the operator's network, so what is only reachable from there
is refused: by the address that is connected to, since a name may resolve otherwise a moment later.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from memory_app.errors import InvalidInput
from memory_app.events.webhooks.ip_rules import is_allowed
from memory_app.settings import Webhooks

URL_LIMIT = 2_000
"""Characters."""

_DEFAULT_PORTS = {"https": 443, "http": 80}

Resolver = Callable[[str, int], tuple[str, ...]]
"""Host name and port to addresses as text; raises `OSError`."""


class AddressRefused(Exception):
    """A host has an address that no webhook may lead to. Its text names no address: that would map the network."""


@dataclass(frozen=True, slots=True)
class Target:
    """A checked URL. ``path`` has the query; ``port`` is always there."""

    scheme: str
    host: str
    port: int
    path: str


@dataclass(frozen=True, slots=True)
class Rules:
    """What the operator allows. ``ports`` empty: any."""

    allow_private: bool = False
    allow_http: bool = False
    ports: frozenset[int] = frozenset()


def rules_of(settings: Webhooks) -> Rules:
    return Rules(settings.allow_private, settings.allow_http, settings.ports)


def read_url(url: str, rules: Rules, *, field: str = "url") -> Target:
    """The parts of ``url``. Raises `InvalidInput` naming ``field``; the message does not repeat the URL."""
    if len(url) > URL_LIMIT:
        raise InvalidInput(f"{field}: at most {URL_LIMIT} characters", field=field)
    # urlsplit drops line breaks and tabs, which would end a line of the request.
    if not url.isascii() or not url.isprintable() or " " in url:
        raise InvalidInput(
            f"{field}: printable ASCII without spaces is required; escape the rest", field=field
        )
    parts, port = _split(url, field)
    if parts.scheme not in _DEFAULT_PORTS or not parts.hostname:
        raise InvalidInput(f"{field}: an https address is required", field=field)
    if parts.scheme == "http" and not rules.allow_http:
        raise InvalidInput(
            f"{field}: https is required; MEMORY_WEBHOOKS__ALLOW_HTTP=true allows http", field=field
        )
    if parts.username is not None or parts.password is not None:
        raise InvalidInput(f"{field}: no user and password; messages are signed", field=field)
    if parts.fragment:
        raise InvalidInput(f"{field}: no fragment (#)", field=field)
    if any(not 0 < len(label) < 64 for label in parts.hostname.removesuffix(".").split(".")):
        raise InvalidInput(f"{field}: the host name is not valid", field=field)
    port = port or _DEFAULT_PORTS[parts.scheme]
    if rules.ports and port not in rules.ports:
        raise InvalidInput(f"{field}: the port is not among those of MEMORY_WEBHOOKS__PORTS", field=field)
    query = f"?{parts.query}" if parts.query else ""
    return Target(parts.scheme, parts.hostname, port, (parts.path or "/") + query)


def _split(url: str, field: str) -> tuple[SplitResult, int | None]:
    try:
        parts = urlsplit(url)
        return parts, parts.port
    except ValueError:
        raise InvalidInput(f"{field}: not a valid address", field=field) from None


def resolve(host: str, port: int) -> tuple[str, ...]:
    """All addresses of a host, as the system resolves it, each once. Raises `OSError`."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
    return tuple(dict.fromkeys(str(entry[4][0]) for entry in found))


def check_addresses(addresses: tuple[str, ...], rules: Rules) -> None:
    """Raises `AddressRefused` where one of them is refused: a name with a good and a bad address is a trap."""
    if not addresses or not all(
        is_allowed(address, allow_private=rules.allow_private) for address in addresses
    ):
        raise AddressRefused("the host has an address that webhooks may not lead to")


def check_reachable(
    target: Target, rules: Rules, resolver: Resolver = resolve, *, field: str = "url"
) -> None:
    """Raises `InvalidInput` for a host that cannot be resolved or has a refused address. Looks the name up."""
    try:
        addresses = resolver(target.host, target.port)
    except (OSError, UnicodeError):
        raise InvalidInput(f"{field}: the host name was not found", field=field) from None
    try:
        check_addresses(addresses, rules)
    except AddressRefused:
        raise InvalidInput(
            f"{field}: leads to a private or reserved address; MEMORY_WEBHOOKS__ALLOW_PRIVATE=true allows private "
            "ones",
            field=field,
        ) from None
