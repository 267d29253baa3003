"""Growth: what the product's own calls cost as backlogs, scopes and people's memories grow.

Blocks, rows and statements are counted, not seconds: counts are the same on every machine, so that a call which begins
to walk through what it should look up is seen at once. Each measurement has a database of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from memory_app.bench import growth_memories, growth_upkeep
from memory_app.bench.growth_database import BIG, Figure, Group, prepared_database
from memory_app.bench.stage import Say
from memory_app.local import embedded
from memory_app.local.stack.folder import temporary_folder

GROUPS = (
    Group("backlog", (1_000, 10_000, 100_000), measure=growth_upkeep.measure_backlog),
    Group("scopes", (10, 1_000, 10_000), measure=growth_upkeep.measure_scopes),
    Group("memories", (1_000, 10_000, 100_000), measure=growth_memories.measure_memories),
    Group("links", (200,), measure=growth_memories.measure_links),
    Group("import", (500, 2_000, 10_000), measure=growth_memories.measure_import),
    Group("sleep", (1_000, 10_000), measure=growth_memories.measure_sleep),
    Group("runs", (1_000, 10_000), measure=growth_upkeep.measure_runs),
    Group("lapsed", (1_000, 10_000), measure=growth_upkeep.measure_lapsed),
    Group(
        "big scopes",
        (1, 20, 60),
        measure=growth_upkeep.measure_big_scopes,
        sections={"recall": {"scan_rows": BIG}},
    ),
)


def measure(data: Path | None, *, only: Sequence[str], largest: int, say: Say) -> dict[str, Any]:
    """Every figure of the groups named in ``only`` (all, where it is empty), at sizes up to ``largest``."""
    figures: list[Figure] = []
    with (
        temporary_folder(data) as folder,
        embedded.running(folder, durable=False, on_progress=say) as servers,
    ):
        for group in (group for group in GROUPS if not only or group.name in only):
            for size in (size for size in group.sizes if size <= largest):
                say(f"{group.name}: {size}")
                with prepared_database(servers, folder, group=group) as database:
                    figures += group.measure(database, size)
    return {"figures": [asdict(figure) for figure in figures]}
