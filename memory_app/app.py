"""The Python facade for producers in the same process: same words, same results as over HTTP."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType

from memory_app.db.db import transaction
from memory_app.errors import Misconfigured, NotFound
from memory_app.facade.events import Events
from memory_app.facade.jobs import Jobs
from memory_app.facade.memories import Memories
from memory_app.facade.operations import Operations
from memory_app.facade.people import People
from memory_app.facade.recall import Recall
from memory_app.facade.transfer import Transfer
from memory_app.facade.turns import Turns
from memory_app.facade.webhooks import Webhooks
from memory_app.local import embedded, keeper, lease
from memory_app.local.servers import embedded_settings
from memory_app.runtime import build
from memory_app.settings import Settings
from memory_app.tenancy.rows import keys


def _nothing() -> None:
    """Of an app for which nothing was started."""


@dataclass(frozen=True, slots=True)
class MemoryApp(Turns, Recall, Memories, People, Jobs, Transfer, Events, Webhooks, Operations):
    """The verbs of one tenant. Make it with `connect` or `local`, after a fork; close it, or use it with ``with``."""

    _end: Callable[[], None] = field(default=_nothing, repr=False, compare=False)
    """Ends what was started for it."""

    @classmethod
    def connect(cls, settings: Settings | None = None, *, tenant: str = "default") -> MemoryApp:
        """Connect as ``tenant``; settings come from the environment unless given.

        Raises `NotFound` when the tenant was never made (``memory keys create --tenant NAME`` makes it).
        """
        runtime = build(settings or Settings())
        try:
            with transaction(runtime.engine, None) as connection:
                tenant_id = keys.find_tenant(connection, tenant)
            if tenant_id is None:
                raise NotFound(f"tenant {tenant!r}: make it with `memory keys create --tenant {tenant}`")
        except BaseException:
            # Also where Ctrl-C comes in between: nobody else has the runtime yet.
            runtime.close()
            raise
        return cls(runtime, tenant_id)

    @classmethod
    def beside(cls, folder: Path | str = ".memory", *, tenant: str = "default") -> MemoryApp:
        """Connect to what ``memory up`` runs in ``folder``. Raises `Misconfigured` when nothing runs there."""
        servers = embedded.find(Path(folder))
        if servers is None:
            raise Misconfigured(f"no servers run in {folder}: start them with `memory up --data {folder}`")
        return cls.connect(embedded_settings(servers), tenant=tenant)

    @classmethod
    def local(cls, folder: Path | str = ".memory", *, tenant: str = "default") -> MemoryApp:
        """Start on this machine what does not run in ``folder`` yet (servers, one worker, the finder), and connect.

        Everything stops when the last process that uses it has closed it, or has ended in whatever way; the data stays.
        Beside ``memory up`` it uses what runs. Starting takes seconds, the first time more. Raises `Misconfigured`.
        """
        path = Path(folder).expanduser().resolve()
        use = lease.use(path, command=keeper.command)
        try:
            app = cls.beside(path, tenant=tenant)
        except BaseException:
            use.end()
            raise
        return replace(app, _end=use.end)

    def close(self) -> None:
        """Give back every connection; for `local` also what runs, if nobody else uses it."""
        self.runtime.close()
        self._end()

    def __enter__(self) -> MemoryApp:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
