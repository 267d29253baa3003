"""A process that runs what `MemoryApp.local` needs for as long as somebody uses it: servers, one worker, the finder.

Whoever uses it holds a lock on a file together with all others (see `lease`). The kernel lets go of a lock when its
process ends, however it ends: so when nobody holds it any more, nobody is left, and everything stops in order.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from pathlib import Path
from threading import Event

from memory_app.errors import Conflict, MemoryAppError
from memory_app.local import stack
from memory_app.local.embedded import place
from memory_app.local.lease import KeeperLease
from memory_app.local.stack.parts import LOCAL
from memory_app.log import configure

LOOK_SECONDS = 0.25
"""How soon after the last user has gone everything begins to stop."""

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class _Over(BaseException):
    """Nobody uses it any more, or it is to stop. Passes whoever goes on after an `Exception`."""


def command(folder: Path) -> tuple[str, ...]:
    """The command line of a keeper."""
    return (sys.executable, "-m", "memory_app.local.keeper", str(folder))


def keep(folder: Path) -> None:
    """Run everything in the folder until nobody uses it. Raises `Conflict` where another process runs it already."""
    lease = KeeperLease(folder)
    stopping = Event()
    for number in STOP_SIGNALS:
        signal.signal(number, lambda *_: stopping.set())

    def pause(seconds: float) -> None:
        # Also while the parts start: whoever wanted them may have been killed.
        if stopping.wait(seconds) or lease.is_over():
            raise _Over

    options = stack.Options(folder, port=0, parts=LOCAL)
    with contextlib.suppress(_Over), stack.running(options, say=_say, pause=pause) as running:
        place.write(lease.ready, str(os.getpid()))
        try:
            while not stopping.wait(LOOK_SECONDS) and not lease.is_over():
                running.tend()
        finally:
            lease.ready.unlink(missing_ok=True)


def _say(step: str) -> None:
    sys.stderr.write(f"{time.strftime('%H:%M:%S')} {step}\n")


def main() -> None:
    """Keep the folder that the command line names."""
    configure(level="INFO", form="console")
    try:
        keep(Path(sys.argv[1]))
    except Conflict:
        # Somebody was faster; whoever started this one finds that.
        return
    except MemoryAppError as error:
        sys.exit(f"memory: {error.message}")


if __name__ == "__main__":
    main()
