"""Lines of an export: what each says of itself, and what names ask for."""

from __future__ import annotations

import json

import pytest

from memory_app.transfer.export_lines import Extent, extent_of, is_header, line_of, type_of


@pytest.mark.parametrize(
    ("agent", "user", "extent"),
    [
        (None, "mira", Extent.USER),
        ("ada", "mira", Extent.SCOPE),
        ("ada", None, Extent.AGENT),
        (None, None, Extent.TENANT),
    ],
)
def test_names_that_are_absent_widen_an_export(agent: str | None, user: str | None, extent: Extent) -> None:
    assert extent_of(agent, user) is extent


def test_a_line_says_first_what_it_is_and_then_whose() -> None:
    line = line_of("turn", '{"text": "a \\"type\\": b"}', agent='ad"a', user="mïra")
    assert line.endswith("}\n")
    assert json.loads(line) == {"type": "turn", "agent": 'ad"a', "user": "mïra", "text": 'a "type": b'}
    assert type_of(line) == "turn"


def test_a_snapshot_is_no_export_however_long_its_line() -> None:
    assert is_header('{"type": "header", "format": "memory-export"}\n')
    assert not is_header('{"format": "memory-snapshot"}')
    assert not is_header("[1, 2]")
    assert not is_header("no JSON")
    assert not is_header('{"format": "memory-export", "x": "' + "x" * 20_000)
