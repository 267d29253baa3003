"""How `memory status` looks in a terminal: once, or live until Ctrl-C."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime

from rich.console import Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from memory_app.console.output import out, shown, wrapped
from memory_app.errors import MemoryAppError
from memory_app.jobs.rows import health
from memory_app.ops.lock_check import LONG_SECONDS
from memory_app.ops.retention_check import limits_text, overdue_text
from memory_app.ops.status import Status


def show(report: Status) -> None:
    """Print it once. Lines are left as long as they are, tables fit the terminal."""
    for line in _lines(report):
        out.print(line, markup=False, highlight=False)
    for table in _tables(report):
        wrapped.print(table)


def watch(look: Callable[[], Status], *, every_seconds: float) -> None:
    """Show the status anew every few seconds. A look that fails is shown in its place and tried again."""
    with Live(console=wrapped, screen=True, auto_refresh=False) as live:
        try:
            while True:
                live.update(_looked(look), refresh=True)
                time.sleep(every_seconds)
        except KeyboardInterrupt:
            return


def _looked(look: Callable[[], Status]) -> RenderableType:
    at = Text(f"{datetime.now().astimezone():%H:%M:%S}  (Ctrl-C ends)", style="dim")
    try:
        return Group(at, view(look()))
    except MemoryAppError as error:
        return Group(at, Text(error.message, style="red"))


def view(report: Status) -> RenderableType:
    """Everything on one page. Names may look like markup and are never taken for it."""
    return Group(*(Text(line) for line in _lines(report)), *_tables(report))


def _lines(report: Status) -> Iterator[str]:
    pipe = report.pipeline
    yield (
        f"backlog: {health.shown(pipe.unindexed)} turns to index (oldest {pipe.oldest_unindexed_seconds:.0f} s), "
        f"{health.shown(pipe.due_sessions)} sessions to extract (oldest {pipe.oldest_due_seconds:.0f} s)"
    )
    late = [work for work in report.due if work.oldest_seconds > 0]
    if late:
        ages = (f"{w.kind} {w.oldest_seconds:.0f} s{'' if w.is_held else ', nobody is at it'}" for w in late)
        yield f"oldest work: {'; '.join(ages)}"
    yield f"failed turns: {health.shown(pipe.failed)}"
    hooks = report.webhooks
    if hooks.active or hooks.given_up:
        yield (
            f"webhooks: {hooks.active} active, {hooks.failing} of them fail, {hooks.given_up} were given up "
            f"(oldest event {hooks.oldest_waiting_seconds:.0f} s)"
        )
    if report.locks.longest_seconds >= LONG_SECONDS:
        yield (
            f"waiting for locks: {report.locks.count}, the first for {report.locks.longest_seconds:.0f} s "
            "(`memory doctor` says behind whom)"
        )
    for name, queues in (report.workers or {}).items():
        yield f"worker {name}: {', '.join(queues)}"
    if not report.workers:
        yield f"workers: {'Redis does not answer' if report.workers is None else 'none answers'}"
    for kind, heard in (report.parts or {}).items():
        if heard.silent:
            instances = ", ".join(f"{sign.instance} for {sign.age_seconds:.0f} s" for sign in heard.silent)
            yield f"{kind} silent: {instances}{'' if heard.living else ', and no other is heard'}"
    if report.dropped is not None and report.dropped.total:
        yield f"messages dropped: {_listed(report.dropped.counts)}"
    for reason in report.left_out:
        yield f"not counted: {reason}"


def _tables(report: Status) -> Iterator[Table]:
    yield _table(
        "tenants",
        (
            "tenant",
            "sessions",
            "turns by stage",
            "memories by kind",
            "missed periods",
            "tokens today",
            "dollars",
        ),
        [
            (
                name,
                amounts.sessions,
                _listed(amounts.turns),
                _listed(amounts.memories),
                _listed(amounts.missed_periods),
                report.activity[name].tokens_today,
                f"{report.activity[name].dollars_today:.2f}",
            )
            for name, amounts in report.tenants.items()
        ],
    )
    waiting = [(name, row) for name, activity in report.activity.items() for row in activity.waiting]
    if waiting:
        yield _table(
            "sessions that wait",
            ("tenant", "agent", "user", "session", "turns", "for s", "why"),
            [
                (name, row.agent, row.user, row.session, row.turns, f"{row.waited_seconds:.0f}", row.why)
                for name, row in waiting
            ],
        )
    jobs = [(name, job) for name, activity in report.activity.items() for job in activity.jobs]
    if jobs:
        yield _table(
            "jobs of the last day",
            ("tenant", "job", "done", "failed", "last"),
            [(name, job.job, job.done, job.failed, job.last_at) for name, job in jobs],
        )
    limited = [(name, agent) for name, activity in report.activity.items() for agent in activity.limited]
    if limited:
        yield _table(
            "retention",
            ("tenant", "agent", "keeps", "overdue"),
            [(name, agent.agent, limits_text(agent), overdue_text(agent)) for name, agent in limited],
        )


def _table(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", header_style="bold")
    for column in columns:
        # Folded, not cut: a name that ends in "…" is of no use.
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(Text(shown(cell)) for cell in row))
    return table


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.items())
