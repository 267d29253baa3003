"""``demo``: a conversation through the whole product."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from memory_app.console.output import say
from memory_app.demo import commands as demo_show
from memory_app.demo import story_command as demo_story
from memory_app.main.up_commands import until_stopped

app = typer.Typer()


@app.command()
def demo(
    data: Annotated[
        Path | None,
        typer.Option("--data", help="Keep the data here. Default: a temporary folder.", show_default=False),
    ] = None,
    story: Annotated[
        bool,
        typer.Option(
            "--story", help="Two sessions read by a language model: MEMORY_CHAT__BASE_URL, or a scripted one."
        ),
    ] = False,
) -> None:
    """Play a conversation through real servers and workers, and show what is remembered."""
    with until_stopped() as pause:
        if story:
            demo_story.show(data, say=say, pause=pause)
        else:
            demo_show.show(data, say=say, pause=pause)
