"""What the processes of a stack use: processor time and memory, its servers and whatever was forked included."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from memory_app.errors import Misconfigured
from memory_app.local.embedded import postgres, valkey


@dataclass(frozen=True, slots=True)
class Family:
    """The processes of one data folder: ``up`` with all that it started, and both servers with theirs."""

    up: psutil.Process
    servers: tuple[psutil.Process, ...]

    def cpu_seconds(self) -> float:
        """Processor time until now, user and system, also of those that have ended since."""
        return self._sum(lambda member: sum(member.cpu_times()[:4]))

    def memory_mb(self) -> float:
        """Proportional memory: what several processes share counts once."""
        return self._sum(lambda member: member.memory_full_info().pss) / 1_000_000

    def _sum(self, read: Callable[[psutil.Process], float]) -> float:
        total = 0.0
        for member in self.members():
            # One that ended meanwhile; its processor time counts as its parent's.
            with suppress(psutil.NoSuchProcess):
                total += read(member)
        return total

    def members(self) -> Iterator[psutil.Process]:
        for root in (self.up, *self.servers):
            yield root
            yield from root.children(recursive=True)


def family_of(up: int, folder: Path) -> Family:
    """The processes of ``memory up`` that has this id. Raises `Misconfigured` where the system does not tell."""
    if not psutil.LINUX:
        raise Misconfigured("memory that processes share is told by /proc, which only Linux has")
    files = (postgres.cluster(folder) / "postmaster.pid", folder / "valkey" / valkey.PID_FILE)
    servers = [psutil.Process(int(file.read_text(encoding="ascii").split()[0])) for file in files]
    return Family(psutil.Process(up), tuple(servers))
