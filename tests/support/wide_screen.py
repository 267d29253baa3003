"""A screen on which a table of a command has room for whole ids, whatever terminal the tests run in."""

from __future__ import annotations

import pytest

from memory_app.console import output

WIDTH = 200


def widen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Until the test ends. The consoles read the variable COLUMNS when they are made, perhaps by another test."""
    for console in (output.out, output.wrapped, output.err):
        monkeypatch.setattr(console, "_width", WIDTH)
