"""``reembed``: move what was embedded by another model to the current one, while everything goes on."""

from __future__ import annotations

from contextlib import closing

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from memory_app.console.output import AsJson, out, write_json
from memory_app.console.settings import Data, find_settings
from memory_app.errors import Permanent
from memory_app.recall.reembed import Reembedded
from memory_app.recall.reembed import reembed as move
from memory_app.runtime import Runtime, build

app = typer.Typer()


@app.command()
def reembed(data: Data = None, as_json: AsJson = False) -> None:
    """Embed again every row of another model than the settings name. Stop it at any time; it goes on where it was.

    Search answers meanwhile: by the vectors of both models where the old one can still be made, else by words.
    """
    with closing(build(find_settings(data))) as runtime:
        # The progress bar goes to standard output, too, and would break the JSON.
        report = move(runtime) if as_json else _move_with_bar(runtime)
        model = runtime.embedder.model
    if as_json:
        write_json(report)
    else:
        out.print(
            f"{report.moved} rows moved to {model}, {report.scopes} scopes are through", highlight=False
        )
    if report.refused:
        raise Permanent(
            f"the embedder refused {report.refused} rows; they keep their vectors and are found by words"
        )


def _move_with_bar(runtime: Runtime) -> Reembedded:
    columns = (TextColumn("embedding again"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=out) as progress:
        task = progress.add_task("rows", total=None)
        return move(
            runtime,
            on_progress=lambda now: progress.update(task, completed=now.moved, total=now.moved + now.left),
        )
