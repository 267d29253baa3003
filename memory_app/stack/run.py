"""Start everything in order, keep it going, stop it in order."""

from __future__ import annotations

import contextlib
import os
import secrets
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from memory_app import embedded
from memory_app.embedded import place
from memory_app.errors import Conflict, Misconfigured
from memory_app.servers import embedded_settings
from memory_app.services import schema
from memory_app.settings import Settings
from memory_app.stack import ports
from memory_app.stack.child import POLL_SECONDS, Child, end_orphans
from memory_app.stack.folder import Addresses, Folder, claimed, open_folder, secret, write_addresses
from memory_app.stack.parts import API, FLOWER, PARTS, Plan, make_parts
from memory_app.stack.tenant import ensure_key
from memory_app.stack.watch import Watch

READY_SECONDS = 90.0
"""Longest wait for all parts; a slow disk and a cold cache take a while at the first start."""

RESTARTS_AT_START = 3
"""A part that dies so often before it was ever ready will not come; its log says why."""

TENANT = "default"
FLOWER_USER = "memory"

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Options:
    """What to run and where. ``port`` of the API must be free if it is given; the usual ones are only preferred.

    ``embedded`` False uses the servers that the settings name. ``durable`` False is for trials: a power cut loses data.
    """

    folder: Path
    port: int | None = None
    embedded: bool = True
    durable: bool = True
    parts: Collection[str] = PARTS
    concurrency: int = 2
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Stack:
    """A running stack. ``settings`` connect to it as the application; ``key`` opens the API."""

    folder: Folder
    settings: Settings
    addresses: Addresses
    key: str = field(repr=False)
    children: tuple[Child, ...]
    watch: Watch | None

    def tend(self) -> None:
        """Start again what died. To be called every moment or so."""
        if self.watch is not None:
            self.watch.tend()
        for child in self.children:
            child.tend()


@contextlib.contextmanager
def running(options: Options, *, say: Say) -> Iterator[Stack]:
    """The stack, ready; everything is stopped at the end, the servers of the folder too.

    ``say`` is told each step. Raises `Conflict` when the folder is in use, `Misconfigured` when a part does not come.
    """
    folder = open_folder(options.folder)
    with claimed(folder) as mine:
        if not mine:
            raise Conflict(f"{folder.path} is in use by another `memory up`")
        end_orphans(folder)
        with _servers(options, folder, say) as settings, _started(options, folder, settings, say) as stack:
            yield stack


@contextlib.contextmanager
def _servers(options: Options, folder: Folder, say: Say) -> Iterator[Settings]:
    """Settings that reach migrated servers."""
    if not options.embedded:
        settings = Settings()
        _migrate(settings, say)
        yield settings
        return
    servers = embedded.start(folder.path, durable=options.durable, on_progress=say)
    try:
        settings = embedded_settings(servers)
        _migrate(settings, say)
        yield settings
    finally:
        say("stopping the servers")
        embedded.stop(folder.path)


def _migrate(settings: Settings, say: Say) -> None:
    say("bringing the database to the newest schema")
    schema.upgrade(settings)


@contextlib.contextmanager
def _started(options: Options, folder: Folder, settings: Settings, say: Say) -> Iterator[Stack]:
    stack = _stack(options, folder, settings, say)
    try:
        for child in stack.children:
            say(f"starting {child.part.name}")
            child.start()
        _wait_until_ready(stack.children, say)
        write_addresses(folder, stack.addresses)
        yield stack
    finally:
        for child in stack.children:
            say(f"stopping {child.part.name}")
            child.stop()


def _stack(options: Options, folder: Folder, settings: Settings, say: Say) -> Stack:
    api_port = ports.choose(settings.http.port) if options.port is None else ports.demand(options.port)
    flower_port = ports.choose(5555) if FLOWER in options.parts else 0
    if API in options.parts and options.port is None and api_port != settings.http.port:
        say(f"port {settings.http.port} is taken; the API uses {api_port}")
    if FLOWER in options.parts and flower_port != 5555:
        say(f"port 5555 is taken; Flower uses {flower_port}")
    login = f"{FLOWER_USER}:{secret(folder.flower_password, make=secrets.token_urlsafe(18))}"
    plan = Plan(
        settings=settings,
        api_port=api_port,
        flower_port=flower_port,
        flower_login=login,
        schedule=folder.schedule,
        concurrency=options.concurrency,
        environment={**os.environ, **options.environment},
    )
    return Stack(
        folder=folder,
        settings=settings,
        addresses=Addresses(
            pid=os.getpid(),
            api=f"http://{ports.HOST}:{api_port}",
            flower=f"http://{ports.HOST}:{flower_port}",
            flower_login=login,
        ),
        key=ensure_key(settings, folder.key, tenant=TENANT),
        children=tuple(Child(part, folder) for part in make_parts(plan) if part.name in options.parts),
        watch=Watch(folder.path, durable=options.durable) if options.embedded else None,
    )


def _wait_until_ready(children: Collection[Child], say: Say) -> None:
    waiting = list(children)
    deadline = time.monotonic() + READY_SECONDS
    while waiting:
        for child in list(waiting):
            child.tend()
            if child.is_alive() and child.part.is_ready():
                say(f"{child.part.name} is ready")
                waiting.remove(child)
            elif child.restarts >= RESTARTS_AT_START or time.monotonic() > deadline:
                said = place.tail(child.log).splitlines()[-1]
                raise Misconfigured(f"{child.part.name} does not start; {child.log} ends with: {said}")
        time.sleep(POLL_SECONDS if waiting else 0)
