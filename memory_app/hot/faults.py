"""What goes wrong between us and Redis, told apart: one sentence for each fault, which says what to do.

The sentences name the setting that holds the address, never the address: it may carry a password. Hot memory and the
broker share them, since both speak through the same client.
"""

from __future__ import annotations

import re
import socket
import ssl
from collections.abc import Iterator
from dataclasses import dataclass

from redis.exceptions import RedisError

from memory_app.errors import Transient
from memory_app.redis_url import Address

USERS_FILE = "deploy/redis/users.acl"

NO_TEXT = r"(?!)"
"""Of a fault that the client does not tell: it is seen by looking at the server."""


class HotUnavailable(Transient):
    """Redis is away, slow, full or refuses. Hot memory is left out; nothing is lost."""

    kind = "hot_unavailable"


class HotRefused(HotUnavailable):
    """Redis refuses, and will until a person acts: the message says how."""

    kind = "hot_refused"


@dataclass(frozen=True, slots=True)
class Fault:
    """A failure by the client's texts. ``is_lasting``: waiting for it to pass is in vain."""

    name: str
    pattern: str
    sentence: str
    is_lasting: bool = False


FAULTS = (
    Fault(
        "name not resolved",
        r"gaierror",
        "the host name in {setting} is not known; mend it, or wait until the host is there",
    ),
    Fault(
        "certificate of another host",
        r"Hostname mismatch|IP address mismatch|doesn't match|is not valid for",
        "the certificate of Redis is for another host name than the one in {setting}; write the name that is in the "
        "certificate",
        is_lasting=True,
    ),
    Fault(
        "certificate expired",
        r"certificate has expired|certificate is not yet valid",
        "the certificate of Redis has expired or is not valid yet; renew it, and check the clocks",
        is_lasting=True,
    ),
    Fault(
        "certificate not trusted",
        r"CERTIFICATE_VERIFY_FAILED",
        "the certificate of Redis at {setting} is not signed by a CA that we trust; name the file of its CA with "
        "MEMORY_REDIS__CA_FILE",
        is_lasting=True,
    ),
    Fault(
        "client certificate required",
        r"ALERT_CERTIFICATE_REQUIRED|ALERT_HANDSHAKE_FAILURE|ALERT_UNKNOWN_CA|ALERT_BAD_CERTIFICATE",
        "Redis wants a certificate of the client, and one that it trusts; name its files with ssl_certfile and "
        "ssl_keyfile in {setting}, or set tls-auth-clients no there",
        is_lasting=True,
    ),
    Fault(
        "TLS not offered",
        r"WRONG_VERSION_NUMBER|RECORD_LAYER_FAILURE|PACKET_LENGTH_TOO_LONG",
        "{setting} asks for TLS and what answers there speaks none; write redis:// instead of rediss://, or the port "
        "of Redis for TLS",
        is_lasting=True,
    ),
    Fault(
        "TLS required",
        NO_TEXT,
        "what answers at {setting} speaks TLS; write rediss:// instead of redis://",
        is_lasting=True,
    ),
    Fault(
        "password wrong",
        r"invalid username-password pair|WRONGPASS",
        "Redis does not accept user {user} with the password in {setting}, or the user is switched off; mend the "
        f"address, or the user in {USERS_FILE}",
        is_lasting=True,
    ),
    Fault(
        "no password",
        r"Authentication required|NOAUTH",
        "Redis asks for a login and {setting} carries none; write redis://user:password@host",
        is_lasting=True,
    ),
    Fault(
        "password not asked for",
        r"without any password configured",
        "{setting} carries a password and Redis has none; set one there (requirepass, or users), or take it out of "
        "the address",
        is_lasting=True,
    ),
    Fault(
        "channel not allowed",
        r"permissions to access (one of the channels|a channel)|can't access at least one of the channels",
        "the Redis user {user} may not use the channels of remote control and events; give it those of its part in "
        f"{USERS_FILE} (&memory:/0.celery.pidbox, &memory:/0.celeryev/*)",
        is_lasting=True,
    ),
    Fault(
        "key not allowed",
        r"permissions to access (one of the keys|a key)|can't access at least one of the keys",
        "the Redis user {user} may not touch one of our keys; give it those of its part in "
        f"{USERS_FILE}, and the prefix that MEMORY_REDIS__PREFIX says",
        is_lasting=True,
    ),
    Fault(
        "command not allowed",
        r"has no permissions to run the (?P<detail>'[^']*') command|has no permissions|NOPERM|script can't run this",
        f"the Redis user {{user}} may not run the command {{detail}}; give it those of its part in {USERS_FILE}",
        is_lasting=True,
    ),
    Fault(
        "protected mode",
        r"DENIED|protected mode",
        "Redis takes nobody from another machine (protected mode): give it users or a password, and bind it to its "
        "network",
        is_lasting=True,
    ),
    Fault(
        "cluster",
        r"MovedError|AskError|ClusterDownError|ClusterCrossSlotError|CROSSSLOT",
        "what answers at {setting} is a Redis Cluster, which is not supported; use one server, or several with "
        "Sentinel",
        is_lasting=True,
    ),
    Fault(
        "a sentinel",
        NO_TEXT,
        "what answers at {setting} is a Sentinel; write sentinel://host1:26379,host2:26379/0?primary=NAME",
        is_lasting=True,
    ),
    Fault(
        "too old",
        NO_TEXT,
        "the Redis at {setting} is too old; move to Redis 7 or newer, or to Valkey",
        is_lasting=True,
    ),
    Fault(
        "evicts",
        NO_TEXT,
        "the Redis at {setting} throws queued work away when it is full (maxmemory-policy allkeys-…); set "
        "maxmemory-policy noeviction there",
        is_lasting=True,
    ),
    Fault(
        "database missing",
        r"DB index is out of range",
        "Redis has no database {db}; write /0 at the end of the address in {setting}",
        is_lasting=True,
    ),
    Fault(
        "primary not known",
        r"MasterNotFoundError|SlaveNotFoundError",
        "no Sentinel at {setting} knows where the primary is; see whether they run and whether its name is right "
        "(primary=NAME)",
    ),
    Fault(
        "a replica",
        r"ReadOnlyError|READONLY|UNBLOCKED",
        "what answers at {setting} is a replica, which takes no writes; let the address lead to the primary, or wait "
        "until a failover is through",
    ),
    Fault(
        "full",
        r"OutOfMemoryError|OOM command not allowed",
        "Redis is full (maxmemory); give it more memory, or see what fills it",
    ),
    Fault("loading", r"BusyLoadingError|LOADING", "Redis is loading its data; wait until it is through"),
    Fault(
        "disk failing",
        r"MISCONF",
        "Redis takes no writes because it cannot save its data; see its log and its disk",
    ),
    Fault(
        "too many connections",
        r"max number of clients",
        "Redis has no connection left; raise maxclients there, or see who holds them",
    ),
    Fault(
        "wrong kind of key",
        r"WRONGTYPE",
        "a key of ours in Redis holds something else; another program writes below MEMORY_REDIS__PREFIX",
    ),
    Fault(
        "no Redis",
        r"Protocol Error|InvalidResponse",
        "what answers at {setting} is no Redis; mend the host or the port",
        is_lasting=True,
    ),
    Fault(
        "no answer",
        r"TimeoutError|timed out|Timeout",
        "Redis does not answer in time at the address in {setting}; see whether it hangs, or a firewall drops what is "
        "sent",
    ),
    Fault(
        "away",
        r"Connection refused|No route to host|Network is unreachable|Host is down|No such file",
        "Redis is away: nobody answers at the address in {setting}; start it, or mend the address",
    ),
    Fault(
        "connection closed",
        r"Connection closed|Connection reset|Broken pipe|ConnectionError",
        "Redis closed the connection; try again in a moment",
    ),
)
"""The first that fits counts."""

UNKNOWN = Fault("refused", "", "Redis refuses what we ask ({kind}); `memory doctor` looks for the reason")


def fault_of(error: BaseException) -> Fault:
    """Which fault an error of the client means."""
    return _match(error)[0]


def translate(error: BaseException, address: Address) -> HotUnavailable:
    """Our error for one of the client, with its sentence; `HotRefused` where waiting is in vain."""
    fault, detail = _match(error)
    return _error(fault, address, kind=type(error).__name__, detail=detail)


def named(name: str, address: Address) -> HotUnavailable:
    """Our error for a fault that was seen by looking."""
    return _error(next(fault for fault in FAULTS if fault.name == name), address)


def _match(error: BaseException) -> tuple[Fault, str]:
    """The fault, and what its pattern calls ``detail``."""
    text = "\n".join(_texts(error))
    for fault in FAULTS:
        if hit := re.search(fault.pattern, text):
            return fault, hit.groupdict().get("detail") or "that we need"
    return UNKNOWN, ""


def _error(fault: Fault, address: Address, *, kind: str = "", detail: str = "") -> HotUnavailable:
    user = address.username or "default"
    words = {"setting": address.variable, "user": user, "db": address.db, "kind": kind, "detail": detail}
    sentence = fault.sentence.format(**words)
    return HotRefused(sentence) if fault.is_lasting else HotUnavailable(sentence)


def _texts(error: BaseException | None) -> Iterator[str]:
    """Type and words of an error and of what led to it."""
    while error is not None:
        if isinstance(error, RedisError | OSError | ssl.SSLError | socket.gaierror):
            yield f"{type(error).__name__}: {error}"
        error = error.__cause__ or error.__context__
