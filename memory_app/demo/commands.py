"""``demo``: the conversation, its progress, and what is remembered of it."""

from __future__ import annotations

import time
from pathlib import Path

from rich.panel import Panel
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
from rich.progress import Progress as Bars
from rich.text import Text

from memory_app.bench.figures import time_figures
from memory_app.console.output import err, out, wrapped, write_table
from memory_app.demo.conversation import MEETINGS
from memory_app.demo.play import STAGES, Played, Progress, play
from memory_app.local.embedded.lifetime import Pause
from memory_app.local.stack import Options, Say, running
from memory_app.local.stack.api import Api, calling
from memory_app.local.stack.folder import temporary_folder
from memory_app.local.stack.parts import NEEDED


def show(data: Path | None, *, say: Say, pause: Pause) -> None:
    """Run the demo in ``data``, or in a folder that is gone afterwards; its last line says how it went."""
    began = time.perf_counter()
    with temporary_folder(data) as folder:
        # Signs of life usually go where `memory health` looks for them; a demo leaves nothing outside of its folder.
        life = {"MEMORY_LIFE_FOLDER": str(folder / "life")}
        options = Options(folder, port=0, parts=NEEDED, environment=life)
        with running(options, say=say, pause=pause) as stack, calling(stack.addresses.api, stack.key) as api:
            started = time.perf_counter() - began
            played = _played_with_bars(api, pause)
    _write(played, started)


def _played_with_bars(api: Api, pause: Pause) -> Played:
    columns = (TextColumn("{task.description:<10}"), BarColumn(), MofNCompleteColumn())
    total = sum(len(meeting.turns) for meeting in MEETINGS)
    with Bars(*columns, console=err) as bars:
        tasks = {stage: bars.add_task(stage, total=total) for stage in STAGES}

        def on_progress(progress: Progress) -> None:
            # Raises after a signal, which by itself only sets a flag.
            pause(0)
            for stage, task in tasks.items():
                bars.update(task, completed=getattr(progress, stage))

        return play(api, on_progress=on_progress)


def _write(played: Played, started: float) -> None:
    rows = []
    for memory in played.memories:
        until = memory.valid_until.date() if memory.valid_until else None
        rows.append((memory.kind, memory.text, memory.valid_from.date(), until, memory.evidence))
    write_table("what is remembered", ("kind", "text", "valid from", "valid until", "evidence"), rows)
    wrapped.print(
        Panel(Text(played.window), title=Text(f"context for: {played.question}"), title_align="left")
    )
    accept = time_figures(played.accept_seconds)
    context_ms = round(played.context_seconds * 1000)
    out.print(
        f"started in {started:.1f} s; accepted over HTTP in {accept.p50_ms:.1f} ms (p95 {accept.p95_ms:.1f} ms); "
        f"all extracted {played.through_seconds:.1f} s after the first turn was sent",
        markup=False,
        highlight=False,
    )
    reached = played.progress
    out.print(
        f"demo: {reached.accepted} turns accepted, {reached.indexed} indexed, {reached.extracted} extracted, "
        f"{len(played.memories)} memories, context {played.tokens} tokens in {context_ms} ms",
        markup=False,
        highlight=False,
    )
