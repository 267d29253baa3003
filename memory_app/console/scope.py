"""Whose memory a command is about, as options that commands share."""

from __future__ import annotations

from typing import Annotated

import typer

Agent = Annotated[str, typer.Option("--agent", help="The AI that remembers.")]
User = Annotated[str, typer.Option("--user", help="The person remembered.")]
