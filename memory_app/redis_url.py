"""The address of a Redis server, read once for hot memory and for the broker, so that both connect in the same way.

    redis://user:password@host:6379/0
    rediss://user:password@host:6380/0?ssl_ca_certs=/etc/memory/ca.pem            TLS
    sentinel://user:password@host1:26379,host2:26379/0?primary=NAME               the primary that sentinels know
    sentinels://…                                                                 the same, TLS to both

With TLS the certificate of the server and its host name are always verified, unless the settings say otherwise; an
address alone cannot switch that off. User and password are those of the Redis servers; sentinels with a login of their
own are not supported.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from memory_app.errors import Misconfigured

REDIS_PORT: Final = 6379
SENTINEL_PORT: Final = 26379

PLAIN_SCHEMES: Final = ("redis", "sentinel")
TLS_SCHEMES: Final = ("rediss", "sentinels")

PRIMARY: Final = "primary"
CA_FILE: Final = "ssl_ca_certs"
CERTIFICATE_FILE: Final = "ssl_certfile"
KEY_FILE: Final = "ssl_keyfile"
VERIFICATION: Final = {
    "ssl_cert_reqs": ("required", "cert_required"),
    "ssl_check_hostname": ("true", "1", "yes"),
}
"""Options of other clients about verification, and the values that ask for what we do anyway."""


@dataclass(frozen=True, slots=True)
class Tls:
    """How the server is verified, and what we show to it. Without ``ca_file`` the authorities of the system count."""

    ca_file: str | None = None
    certificate_file: str | None = None
    key_file: str | None = None
    is_verified: bool = True

    def options(self) -> dict[str, Any]:
        """As the Redis client names them; the broker's library hands them on to it."""
        return {
            "ssl_cert_reqs": "required" if self.is_verified else "none",
            "ssl_check_hostname": self.is_verified,
            "ssl_ca_certs": self.ca_file,
            "ssl_certfile": self.certificate_file,
            "ssl_keyfile": self.key_file,
        }


@dataclass(frozen=True, slots=True)
class Address:
    """Where a Redis is and who we are there. ``hosts`` are sentinels if there is a ``primary`` to ask them for.

    ``setting`` is the one that the address comes from, for messages.
    """

    hosts: tuple[tuple[str, int], ...]
    primary: str | None = None
    db: int = 0
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    tls: Tls | None = None
    setting: str = "redis.url"

    @property
    def label(self) -> str:
        """Host and port, for messages to operators."""
        return ", ".join(f"{host}:{port}" for host, port in self.hosts)

    @property
    def variable(self) -> str:
        """The environment variable that the address comes from."""
        return f"MEMORY_{self.setting.replace('.', '__').upper()}"

    def __json__(self) -> str:
        """How kombu writes it into a worker's answer to whoever asks for its state: without the login."""
        return self.label

    def broker_url(self) -> str:
        """For the broker's library: of a sentinel only the first; TLS and the rest are options beside it."""
        # For sentinels TLS stands in the options beside the URL alone.
        scheme = "sentinel" if self.primary else "rediss" if self.tls else "redis"
        host, port = self.hosts[0]
        # An IPv6 address stands in brackets, or its colons would begin the port.
        place = f"[{host}]" if ":" in host else host
        has_login = bool(self.username or self.password)
        login = f"{_quoted(self.username)}:{_quoted(self.password)}@" if has_login else ""
        return f"{scheme}://{login}{place}:{port}/{self.db}"


def read(
    url: str, *, setting: str = "redis.url", ca_file: str | None = None, is_verified: bool = True
) -> Address:
    """Raises `Misconfigured`, without repeating the address, for what cannot be an address or asks for less safety.

    ``ca_file`` holds where the address names no other. ``is_verified`` is the operator's decision for TLS.
    """
    try:
        parts = urlsplit(url)
        hosts = _hosts(parts.netloc.rpartition("@")[2], _default_port(parts.scheme))
        db = int(parts.path.strip("/") or 0)
    except ValueError as error:
        raise _unreadable(setting) from error
    if parts.scheme not in (*PLAIN_SCHEMES, *TLS_SCHEMES) or not hosts or db < 0:
        raise _unreadable(setting)
    # Taken out one by one below; what is left over nobody knows.
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    primary = options.pop(PRIMARY, None)
    if parts.scheme.startswith("sentinel") != bool(primary) or (primary is None and len(hosts) > 1):
        raise Misconfigured(
            f"{setting}: write sentinel://host1:26379,host2:26379/0?primary=NAME for sentinels, "
            "and one host without primary= for a Redis itself",
            field=setting,
        )
    tls = None
    if parts.scheme in TLS_SCHEMES:
        tls = _tls(options, setting=setting, ca_file=ca_file, is_verified=is_verified)
    if options:
        raise _unknown_option(sorted(options)[0], setting, is_tls=tls is not None)
    username, _, password = parts.netloc.rpartition("@")[0].partition(":")
    return Address(
        hosts=hosts,
        primary=primary,
        db=db,
        username=unquote(username) or None,
        password=unquote(password) or None,
        tls=tls,
        setting=setting,
    )


def _default_port(scheme: str) -> int:
    return SENTINEL_PORT if scheme.startswith("sentinel") else REDIS_PORT


def _hosts(text: str, default_port: int) -> tuple[tuple[str, int], ...]:
    """Raises ValueError. Each host may be an IPv6 address in brackets."""
    hosts = []
    for part in text.split(","):
        host = urlsplit(f"//{part}")
        if not host.hostname:
            raise ValueError
        hosts.append((unquote(host.hostname), default_port if host.port is None else host.port))
    return tuple(hosts)


def _tls(options: dict[str, str], *, setting: str, ca_file: str | None, is_verified: bool) -> Tls:
    """Takes what it knows out of ``options``."""
    for name, harmless in VERIFICATION.items():
        value = options.pop(name, None)
        if value is not None and value.lower() not in harmless:
            raise Misconfigured(
                f"{setting}: {name}={value} would trust any server; name its authority with {CA_FILE}=FILE or "
                "MEMORY_REDIS__CA_FILE, or switch verification off for good with MEMORY_REDIS__VERIFY_TLS=false",
                field=setting,
            )
    tls = Tls(
        ca_file=options.pop(CA_FILE, None) or ca_file,
        certificate_file=options.pop(CERTIFICATE_FILE, None),
        key_file=options.pop(KEY_FILE, None),
        is_verified=is_verified,
    )
    _check_files(tls, setting)
    return tls


def _check_files(tls: Tls, setting: str) -> None:
    # Read here to say which file is wrong; at the first connection it would pass for a fault of the server.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if tls.ca_file is not None:
        try:
            context.load_verify_locations(cafile=tls.ca_file)
        except OSError as error:
            raise Misconfigured(
                f"{setting}: the CA file {tls.ca_file} cannot be read ({_reason(error)}); "
                f"check {CA_FILE} in the address, or MEMORY_REDIS__CA_FILE",
                field=setting,
            ) from error
    if tls.certificate_file is not None:
        try:
            context.load_cert_chain(tls.certificate_file, tls.key_file)
        except OSError as error:
            raise Misconfigured(
                f"{setting}: the client certificate {tls.certificate_file} cannot be used ({_reason(error)}); "
                f"check {CERTIFICATE_FILE} and {KEY_FILE} in the address",
                field=setting,
            ) from error


def _reason(error: OSError) -> str:
    if isinstance(error, ssl.SSLError):
        return "it is not a PEM file, or certificate and key do not belong together"
    return error.strerror or type(error).__name__


def _unreadable(setting: str) -> Misconfigured:
    return Misconfigured(
        f"{setting} is not the address of a Redis; write redis://user:password@host:6379/0, rediss:// for TLS, "
        "or sentinel://host1:26379,host2:26379/0?primary=NAME; percent-encode what is no letter or digit in a password",
        field=setting,
    )


def _unknown_option(name: str, setting: str, *, is_tls: bool) -> Misconfigured:
    if name.startswith("ssl") and not is_tls:
        return Misconfigured(
            f"{setting}: {name} needs TLS; write rediss:// (sentinels:// for sentinels)", field=setting
        )
    options = ", ".join((CA_FILE, CERTIFICATE_FILE, KEY_FILE, PRIMARY))
    return Misconfigured(
        f"{setting}: unknown option {name!r}; known are {options}, and the database is the path (/0)",
        field=setting,
    )


def _quoted(text: str | None) -> str:
    return quote(text or "", safe="")
