"""Times that are given on the command line."""

from __future__ import annotations

from datetime import datetime

import typer


def instant_option(value: str | None, option: str) -> datetime | None:
    """The time that an option names; None stays None. Raises `typer.BadParameter` for one without a zone."""
    if value is None:
        return None
    try:
        at = datetime.fromisoformat(value)
    except ValueError as error:
        raise typer.BadParameter(
            f"{value} is no time; write 2026-01-31T09:00:00+01:00", param_hint=option
        ) from error
    if at.tzinfo is None:
        raise typer.BadParameter("a time needs its zone, as in 2026-01-31T09:00:00+01:00", param_hint=option)
    return at
