"""The API as a real server in this process, for clients that need an address."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread

import uvicorn
from free_ports import free_port
from own_servers import wait_until

from memory_app.main.http import create_app
from memory_app.runtime import Runtime


@contextmanager
def serving(runtime: Runtime, *, port: int | None = None) -> Iterator[int]:
    """A real server in a thread of its own; its port."""
    port = port or free_port()
    config = uvicorn.Config(create_app(runtime), host="127.0.0.1", port=port, log_config=None)
    server = uvicorn.Server(config)
    thread = Thread(target=server.run)
    thread.start()
    try:
        wait_until(lambda: server.started, "the server has started")
        yield port
    finally:
        server.should_exit = True
        thread.join()
