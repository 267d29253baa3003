"""Serving the API: one process, and no open door.

Keys are always checked. Without one only a loopback address may be served, and only where the operator named the
tenant; an address that others reach is refused as long as there is no key at all.
"""

from __future__ import annotations

import gc

import uvicorn

from memory_app import cores, log
from memory_app import runtime as wiring
from memory_app.errors import Misconfigured
from memory_app.http.app import create_app
from memory_app.http.auth import is_loopback
from memory_app.runtime import Runtime
from memory_app.services import access
from memory_app.settings import Settings
from memory_app.store.keys import Caller

KEEP_ALIVE_SECONDS = 30
SHUTDOWN_SECONDS = 25
"""Time for requests under way; as long as workers get."""


def serve(settings: Settings) -> None:
    """Serve until stopped. Raises `Misconfigured` for an address that would stand open, before anything listens."""
    log.configure(level=settings.log.level, form=settings.log.form)
    runtime = wiring.build(settings)
    cores.take_one()
    try:
        anonymous = check_door(runtime)
        # What stands for good is not looked through again: a full collection would hold a request up for 100 ms.
        gc.collect()
        gc.freeze()
        uvicorn.run(
            create_app(runtime, anonymous=anonymous),
            host=settings.http.host,
            port=settings.http.port,
            log_config=None,
            access_log=False,  # An address holds the names of people.
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=SHUTDOWN_SECONDS,
        )
    finally:
        runtime.close()


def check_door(runtime: Runtime) -> Caller | None:
    """Who may ask without a key, or None. Raises `Misconfigured` where the door would stand open or lead nowhere."""
    http = runtime.settings.http
    if http.allow_anonymous_tenant is not None:
        if not is_loopback(http.host):
            raise Misconfigured(
                f"http.allow_anonymous_tenant needs a loopback http.host, not {http.host}; use keys instead",
                field="http.allow_anonymous_tenant",
            )
        return access.anonymous_caller(runtime.settings, http.allow_anonymous_tenant)
    if not is_loopback(http.host) and not access.has_live_key(runtime):
        raise Misconfigured(
            f"http.host {http.host} can be reached by others and there is no API key yet; "
            "make one with `memory keys create`",
            field="http.host",
        )
    return None
