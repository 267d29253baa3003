"""What may be asked of a worker from outside. Whoever reaches the broker can ask all workers at once.

Inspection stays, as Flower and doctor need it. A command that changes what a worker does is refused: nobody stops,
slows or redirects a worker but who runs it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import structlog
from celery.worker.control import Panel

log = structlog.get_logger(__name__)

INSPECTION = frozenset(
    {
        "active",
        "active_queues",
        "clock",
        "conf",
        "ping",
        "query_task",
        "registered",
        "reserved",
        "revoked",
        "scheduled",
        "stats",
        "dump_active",
        "dump_conf",
        "dump_reserved",
        "dump_revoked",
        "dump_schedule",
        "dump_tasks",
    }
)
HARMLESS = frozenset({"enable_events", "heartbeat"})
"""Events are on anyway; Flower asks for them every few seconds."""


def refusal(name: str) -> Callable[..., Mapping[str, str]]:
    """What stands in the place of a command."""

    def refuse(state: Any, **arguments: Any) -> Mapping[str, str]:
        log.warning("control_refused", command=name)
        return {"error": f"{name} is refused: only who runs a worker changes what it does"}

    return refuse


# Once, as the module is imported: before the worker listens to anybody.
for name in Panel.data.keys() - INSPECTION - HARMLESS:
    Panel.data[name] = refusal(name)
