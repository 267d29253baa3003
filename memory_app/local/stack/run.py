"""Start all parts in order, start again those that die, and stop all in order."""

from __future__ import annotations

import contextlib
import os
import secrets
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import structlog

from memory_app.errors import Conflict, Misconfigured
from memory_app.local import embedded
from memory_app.local.embedded import place
from memory_app.local.embedded.lifetime import Pause
from memory_app.local.servers import ERASURE_SECRET, embedded_settings
from memory_app.local.stack import ports
from memory_app.local.stack.child import POLL_SECONDS, Child, end_orphans
from memory_app.local.stack.folder import Addresses, Folder, claimed, open_folder, secret, write_addresses
from memory_app.local.stack.launch import Launcher, launching
from memory_app.local.stack.parts import API, FLOWER, PARTS, Plan, common_environment, make_parts
from memory_app.local.stack.tenant import ensure_key
from memory_app.local.stack.watch import Watch
from memory_app.settings import Settings
from memory_app.tenancy import schema

log = structlog.get_logger(__name__)

# A part that cannot start dies long before; a part that is still alive then is only slow.
READY_SECONDS = 300.0
"""Longest wait for all parts."""

RESTARTS_AT_START = 3
"""A part that dies so often before it was ever ready does not start; its log says why."""

REST_SECONDS = 5.0
"""Pause after a failure to look after a part."""

TENANT = "default"
FLOWER_PORT = 5555
FLOWER_USER = "memory"

FLOWER_MODULES = ("flower.command",)

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Options:
    """What to run and where. ``port`` of the API must be free if it is not None; 0 is any.

    ``embedded`` False uses the servers that the settings name. ``durable`` False is for trials: a power cut loses data.
    """

    folder: Path
    port: int | None = None
    embedded: bool = True
    durable: bool = True
    parts: Collection[str] = PARTS
    concurrency: int = 2
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Stack:
    """A running stack. ``settings`` connect to it as the application; ``key`` opens the API."""

    folder: Folder
    settings: Settings
    addresses: Addresses
    key: str = field(repr=False)
    children: tuple[Child, ...]
    watch: Watch | None
    _rests_until: dict[Child | Watch, float] = field(default_factory=dict, repr=False)

    def tend(self) -> None:
        """Start again what is gone. To be called every moment or so."""
        members: list[Child | Watch] = [*self.children]
        if self.watch is not None:
            # First: parts do nothing without their servers.
            members.insert(0, self.watch)
        for member in members:
            if time.monotonic() < self._rests_until.get(member, 0):
                continue
            try:
                member.tend()
            except Exception as error:
                # A full disk or a lack of processes must not end the parts that work; it is tried again later.
                self._rests_until[member] = time.monotonic() + REST_SECONDS
                log.error("not_tended", error=f"{type(error).__name__}: {error}")


@contextlib.contextmanager
def running(options: Options, *, say: Say, pause: Pause = time.sleep) -> Iterator[Stack]:
    """The stack, ready; everything is stopped at the end, the servers of the folder too.

    ``say`` gets each step. ``pause`` waits for so many seconds; what it raises ends the start, and everything is
    stopped. Raises `Conflict` when the folder is in use, `Misconfigured` when a part does not start.
    """
    folder = open_folder(options.folder)
    say = _tolerant(say)
    with claimed(folder) as is_ours:
        if not is_ours:
            raise Conflict(f"{folder.path} is in use by another `memory up`, or by `MemoryApp.local`")
        # Before the servers: parts that outlived a killed `memory up` would go on using them.
        end_orphans(folder)
        environment = {**os.environ, **options.environment}
        with (
            # First: what the parts are forked from loads while the servers start.
            launching(
                folder.logs / "start.log",
                environment | {"MEMORY_DATA_FOLDER": str(folder.path)},
                modules=FLOWER_MODULES if FLOWER in options.parts else (),
            ) as launcher,
            _servers(options, folder, say=say, pause=pause) as settings,
            _started(options, folder, settings, launcher, say=say, pause=pause) as stack,
        ):
            yield stack


@contextlib.contextmanager
def _servers(options: Options, folder: Folder, *, say: Say, pause: Pause) -> Iterator[Settings]:
    """Settings that reach migrated servers."""
    if not options.embedded:
        settings = Settings()
        _migrate(settings, say, pause)
        yield settings
        return
    servers_ran = not embedded.gone(folder.path)
    leave = False
    try:
        try:
            servers = embedded.start(folder.path, durable=options.durable, on_progress=say, pause=pause)
        except Misconfigured:
            # They live, and others may use them, however slow they are.
            leave = servers_ran
            raise
        secret(servers.folder / ERASURE_SECRET, make=secrets.token_hex(32))
        settings = embedded_settings(servers)
        _migrate(settings, say, pause)
        yield settings
    finally:
        if not leave:
            say("stopping the servers")
            embedded.stop(folder.path)


def _migrate(settings: Settings, say: Say, pause: Pause) -> None:
    # Between two steps Ctrl-C is noticed here, and not in the middle of one.
    pause(0)
    say("bringing the database to the newest schema")
    schema.upgrade(settings)


@contextlib.contextmanager
def _started(
    options: Options, folder: Folder, settings: Settings, launcher: Launcher, *, say: Say, pause: Pause
) -> Iterator[Stack]:
    stack = _stack(options, folder, settings, launcher, say=say, pause=pause)
    try:
        for child in stack.children:
            pause(0)
            say(f"starting {child.part.name}")
            child.start()
        _wait_until_ready(stack.children, say, pause)
        # The file says that the stack is ready, so it comes last. Without an API there is no address.
        if API in options.parts:
            write_addresses(folder, stack.addresses)
        yield stack
    finally:
        _stop(stack.children, say)


def _stop(children: Sequence[Child], say: Say) -> None:
    """Stop all of them in order, also when one of them fails to stop; then raise its error."""
    if not children:
        return
    try:
        say(f"stopping {children[0].part.name}")
        children[0].stop()
    finally:
        _stop(children[1:], say)


def _tolerant(say: Say) -> Say:
    """The same, but without an error when nobody reads the steps any more, as after a terminal was closed."""

    def step(text: str) -> None:
        # rich exits when a pipe was closed.
        with contextlib.suppress(OSError, SystemExit):
            say(text)

    return step


def _stack(
    options: Options, folder: Folder, settings: Settings, launcher: Launcher, *, say: Say, pause: Pause
) -> Stack:
    api_port, flower_port = _ports(options, folder, settings, say=say)
    login = secret(folder.flower_login, make=f"{FLOWER_USER}:{secrets.token_urlsafe(18)}")
    plan = Plan(
        settings=settings,
        api_port=api_port,
        flower_port=flower_port,
        flower_login=login,
        schedule=folder.schedule,
        concurrency=options.concurrency,
        environment={**os.environ, **options.environment},
    )
    launcher.prepare(common_environment(plan))
    return Stack(
        folder=folder,
        settings=settings,
        addresses=Addresses(
            pid=os.getpid(),
            api=f"http://{ports.HOST}:{api_port}",
            flower=f"http://{ports.HOST}:{flower_port}" if FLOWER in options.parts else None,
        ),
        key=ensure_key(settings, folder.key, tenant=TENANT),
        children=tuple(
            Child(part, folder, launcher) for part in make_parts(plan) if part.name in options.parts
        ),
        watch=Watch(folder.path, durable=options.durable, pause=pause) if options.embedded else None,
    )


def _ports(options: Options, folder: Folder, settings: Settings, *, say: Say) -> tuple[int, int]:
    """The ports of the API and of Flower."""
    # A port that a person named must be free; the usual ones are only preferred.
    usual = settings.http.port if options.port is None else options.port
    if options.port:
        api = ports.demand(options.port)
    else:
        api = ports.choose(usual, file=folder.port(API))
    if API in options.parts and usual not in (0, api):
        say(f"the API uses port {api}, in place of {usual}")
    if FLOWER not in options.parts:
        return api, 0
    flower = ports.choose(FLOWER_PORT, file=folder.port(FLOWER))
    if flower != FLOWER_PORT:
        say(f"Flower uses port {flower}, in place of {FLOWER_PORT}")
    return api, flower


def _wait_until_ready(children: Collection[Child], say: Say, pause: Pause) -> None:
    waiting = list(children)
    deadline = time.monotonic() + READY_SECONDS
    while waiting:
        for child in list(waiting):
            child.tend()
            if child.is_alive() and child.part.is_ready():
                say(f"{child.part.name} is ready")
                waiting.remove(child)
            elif child.restarts >= RESTARTS_AT_START or time.monotonic() > deadline:
                last_line = place.tail(child.log).splitlines()[-1]
                raise Misconfigured(f"{child.part.name} does not start; {child.log} ends with: {last_line}")
        pause(POLL_SECONDS if waiting else 0)
