"""A TCP proxy inside the test that can freeze, slow, cut or turn away what passes through it.

A frozen connection stays open and is acknowledged by the kernel, so no keepalive notices it: only a time limit of the
program itself helps. That is harder than a peer that vanished.
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import parse_qs, unquote, urlsplit

Address = tuple[str, int] | str
"""Host and port, or the path of a socket."""

CHUNK_BYTES = 16_384
RESET = struct.pack("ii", 1, 0)


@dataclass(eq=False, slots=True)
class Link:
    """One connection through the proxy."""

    client: socket.socket
    server: socket.socket
    frozen: threading.Event = field(default_factory=threading.Event)

    def cut(self) -> None:
        """Both ends see a reset."""
        for end in (self.client, self.server):
            with contextlib.suppress(OSError):
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
                end.shutdown(socket.SHUT_RDWR)
            end.close()


@dataclass(eq=False, slots=True)
class Proxy:
    """Between clients and ``upstream``. Its fields may be changed while it runs."""

    upstream: Address
    port: int
    delay_seconds: float = 0
    bytes_per_second: float = 0
    refuses: bool = False
    cut_behind: bytes | None = None
    """Cut a connection right after its client sent this: the outcome stays unknown to the client."""
    cut_every: int = 1
    """Only every so manieth time."""
    seen: int = 0
    links: list[Link] = field(default_factory=list)
    cuts: int = 0

    def freeze(self) -> int:
        """Nothing passes through today's connections any more, for ever; new ones work. How many there were."""
        for link in self.links:
            link.frozen.set()
        return len(self.links)

    def cut(self) -> int:
        """Reset today's connections; how many there were."""
        links = list(self.links)
        for link in links:
            link.cut()
        return len(links)


@contextmanager
def proxied(upstream: Address) -> Iterator[Proxy]:
    """A proxy on a free port of loopback until the end of the block."""
    with socket.create_server(("127.0.0.1", 0), backlog=256) as listener:
        proxy = Proxy(upstream, int(listener.getsockname()[1]))
        over = threading.Event()
        accepting = threading.Thread(target=_accept, args=(listener, proxy, over), name="proxy", daemon=True)
        accepting.start()
        try:
            yield proxy
        finally:
            over.set()
            accepting.join()
            for link in list(proxy.links):
                link.frozen.clear()
                link.cut()


def redis_address(url: str) -> Address:
    parts = urlsplit(url)
    return parts.hostname or "127.0.0.1", parts.port or 6379


def redis_through(url: str, proxy: Proxy) -> str:
    """The same Redis as seen through the proxy."""
    parts = urlsplit(url)
    return parts._replace(netloc=f":{parts.password or ''}@127.0.0.1:{proxy.port}").geturl()


def postgres_address(url: str) -> Address:
    """The socket of the embedded server."""
    return unquote(parse_qs(urlsplit(url).query)["host"][0]) + "/.s.PGSQL.5432"


def postgres_through(url: str, proxy: Proxy) -> str:
    """The same database, as the same role, through the proxy."""
    parts = urlsplit(url)
    login = parts.netloc.rpartition("@")[0]
    return f"{parts.scheme}://{login}@127.0.0.1:{proxy.port}{parts.path}?sslmode=disable&gssencmode=disable"


def _accept(listener: socket.socket, proxy: Proxy, over: threading.Event) -> None:
    with selectors.DefaultSelector() as ready:
        ready.register(listener, selectors.EVENT_READ)
        while not over.is_set():
            if ready.select(0.1):
                client, _ = listener.accept()
                _link(client, proxy)


def _link(client: socket.socket, proxy: Proxy) -> None:
    if proxy.refuses:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        client.close()
        return
    try:
        server = _connect(proxy.upstream)
    except OSError:
        client.close()
        return
    link = Link(client, server)
    proxy.links.append(link)
    for source, target in ((client, server), (server, client)):
        threading.Thread(target=_pump, args=(proxy, link, source, target), daemon=True).start()


def _connect(address: Address) -> socket.socket:
    if isinstance(address, str):
        server = socket.socket(socket.AF_UNIX)
        server.connect(address)
        return server
    return socket.create_connection(address, timeout=None)


def _pump(proxy: Proxy, link: Link, source: socket.socket, target: socket.socket) -> None:
    """Carry bytes one way until either end closes; a frozen link swallows what it gets."""
    with contextlib.suppress(OSError):
        while passing := source.recv(CHUNK_BYTES):
            if link.frozen.is_set():
                continue
            time.sleep(
                proxy.delay_seconds + (len(passing) / proxy.bytes_per_second if proxy.bytes_per_second else 0)
            )
            target.sendall(passing)
            if source is link.client and _is_to_be_cut(proxy, passing):
                break
    if link.frozen.is_set():
        return
    link.cut()
    with contextlib.suppress(ValueError):
        proxy.links.remove(link)


def _is_to_be_cut(proxy: Proxy, passing: bytes) -> bool:
    if proxy.cut_behind is None or proxy.cut_behind not in passing:
        return False
    proxy.seen += 1
    cut = proxy.seen % proxy.cut_every == 0
    proxy.cuts += cut
    return cut
