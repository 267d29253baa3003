"""What a Redis is and what we may do there, asked before anything rests on it."""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from redis import Redis
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import NoPermissionError, RedisError, ResponseError
from redis.exceptions import TimeoutError as RedisTimeoutError

from memory_app.hot.client import open_client
from memory_app.hot.faults import USERS_FILE, HotRefused, HotUnavailable, fault_of, named, translate
from memory_app.hot.permissions import Command
from memory_app.redis_url import Address, Tls

OLDEST_VERSION = 7
TIMEOUT_SECONDS = 3.0
# Long enough for a server that speaks first; most are silent, and this is waited for in vain.
GREETING_SECONDS = 0.5
# An inline command, which needs no agreement on a version of the protocol.
HELLO_BYTES = b"PING\r\n"


@dataclass(frozen=True, slots=True)
class Server:
    """``info`` is empty where our user may not ask for it. ``clock_offset_seconds`` is against this machine's."""

    name: str
    version: str
    is_replica: bool
    info: Mapping[str, Any]
    clock_offset_seconds: float | None

    @property
    def policy(self) -> str | None:
        """What it does when it is full; None if it did not say."""
        return self.info.get("maxmemory_policy")


def inspect(address: Address) -> Server:
    """Look at a server. Raises `HotRefused` for one that we cannot work with, `HotUnavailable` for what passes."""
    with _asking(address) as redis:
        hello = _hello(redis)
        _refuse_kind(hello, address)
        info = _info(redis)
        # Set to be compatible, a Valkey calls itself Redis at HELLO; its report names both versions in any case.
        is_valkey = "valkey_version" in info or hello.get("server") == "valkey"
        return Server(
            name="Valkey" if is_valkey else "Redis",
            version=str(info.get("valkey_version") or hello.get("version", "0")),
            is_replica=hello.get("role") in ("replica", "slave"),
            info=info,
            clock_offset_seconds=_clock_offset(redis),
        )


def check_rights(address: Address, commands: Sequence[Command]) -> None:
    """Whether our user may run ``commands``; none of them is run.

    They are queued in a transaction that is thrown away: Redis says at once what it would deny. Raises `HotRefused` for
    the first that is denied, and as `inspect` does.
    """
    with _asking(address) as redis:
        connection = redis.connection_pool.get_connection()
        try:
            lines = [("MULTI",), *commands, ("DISCARD",)]
            packed = connection.pack_commands(lines)  # type: ignore[no-untyped-call]
            connection.send_packed_command(packed)  # type: ignore[no-untyped-call]
            denied = [line for line in lines if _is_denied(connection)]
        finally:
            redis.connection_pool.release(connection)
    if denied:
        raise _denial(denied[0], address)


@contextmanager
def _asking(address: Address) -> Iterator[Redis]:
    """A client for a moment, whose failures leave as ours."""
    redis = open_client(address, timeout_seconds=TIMEOUT_SECONDS)
    try:
        yield redis
    except (RedisError, OSError) as error:
        raise _ours(error, address) from error
    finally:
        redis.close()


def _hello(redis: Redis) -> Mapping[str, str]:
    """What kind of server it is. Everybody may ask this."""
    try:
        reply = redis.execute_command("HELLO")  # type: ignore[no-untyped-call]
    except ResponseError as error:
        # HELLO came with Redis 6.
        if "unknown command" in str(error).lower():
            return {"version": "5"}
        raise
    # Names and values by turns. The list of modules among them is no text, and nobody looks at it.
    words = [word.decode() if isinstance(word, bytes) else word for word in reply]
    return {str(name): str(value) for name, value in zip(words[::2], words[1::2], strict=False)}


def _refuse_kind(hello: Mapping[str, str], address: Address) -> None:
    if hello.get("mode") == "cluster":
        raise named("cluster", address)
    if hello.get("mode") == "sentinel":
        raise named("a sentinel", address)
    major = hello.get("version", "").partition(".")[0]
    if major.isdigit() and int(major) < OLDEST_VERSION:
        raise named("too old", address)


def _info(redis: Redis) -> Mapping[str, Any]:
    with suppress(NoPermissionError):
        report: Mapping[str, Any] = redis.info()
        return report
    return {}


def _clock_offset(redis: Redis) -> float | None:
    with suppress(NoPermissionError):
        began = time.time()
        seconds, microseconds = redis.time()
        # Against the middle of the round trip: the reply was made somewhere in between.
        return float(seconds + microseconds / 1e6 - (began + time.time()) / 2)
    return None


def _is_denied(connection: Any) -> bool:
    """Whether the next reply refuses our user; other errors are about the command, which is never run."""
    try:
        connection.read_response()
    except NoPermissionError:
        return True
    except ResponseError:
        return False
    return False


def _denial(command: Command, address: Address) -> HotUnavailable:
    name, *words = command
    on = f" on {words[0]}" if words and name not in ("SCRIPT", "EVALSHA") else ""
    what = "use the channel" if name in ("PUBLISH", "PSUBSCRIBE") else f"run {name}"
    subject = f" {words[0]}" if name in ("PUBLISH", "PSUBSCRIBE") else on
    return HotRefused(
        f"the Redis user {address.username or 'default'} may not {what}{subject}; give it what its part has in "
        f"{USERS_FILE}, with the prefix that MEMORY_REDIS__PREFIX says, or mend {address.variable}"
    )


def _ours(error: Exception, address: Address) -> HotUnavailable:
    """A server that closes the connection or is silent may only speak the other language, with TLS or without."""
    # With a primary the hosts are sentinels, which say nothing about the Redis behind them.
    if address.primary is None and isinstance(error, RedisConnectionError | RedisTimeoutError | OSError):
        # Said before anything is asked; the client takes it for the answer to a question of its own.
        if _says_at_once(address).startswith(b"-DENIED"):
            return named("protected mode", address)
        if address.tls is None and _speaks_tls(address):
            return named("TLS required", address)
        if address.tls is not None and _speaks_plainly(address):
            return named("TLS not offered", address)
        if address.tls is not None and _wants_certificate(address, address.tls):
            return named("client certificate required", address)
    return translate(error, address)


def _says_at_once(address: Address) -> bytes:
    with suppress(OSError), socket.create_connection(address.hosts[0], TIMEOUT_SECONDS) as connection:
        connection.settimeout(GREETING_SECONDS)
        return connection.recv(100)
    return b""


def _speaks_tls(address: Address) -> bool:
    # Whom we talk to does not matter here, and nothing is sent.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with suppress(OSError), socket.create_connection(address.hosts[0], TIMEOUT_SECONDS) as connection:
        connection.settimeout(TIMEOUT_SECONDS)
        with context.wrap_socket(connection):
            return True
    return False


def _wants_certificate(address: Address, tls: Tls) -> bool:
    """Whether the server closes the connection because it was shown no certificate that it trusts."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if tls.certificate_file is not None:
        context.load_cert_chain(tls.certificate_file, tls.key_file)
    try:
        with socket.create_connection(address.hosts[0], TIMEOUT_SECONDS) as connection:
            connection.settimeout(GREETING_SECONDS)
            with context.wrap_socket(connection) as wrapped:
                # TLS 1.3 has the server refuse after the handshake: reading gives its reason, writing a broken pipe.
                wrapped.recv(1)
    except OSError as error:
        return fault_of(error).name == "client certificate required"
    return False


def _speaks_plainly(address: Address) -> bool:
    """A Redis answers a line that is no greeting of TLS with a status or an error."""
    with suppress(OSError), socket.create_connection(address.hosts[0], TIMEOUT_SECONDS) as connection:
        connection.settimeout(TIMEOUT_SECONDS)
        connection.sendall(HELLO_BYTES)
        return connection.recv(1) in (b"+", b"-")
    return False
