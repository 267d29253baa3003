"""How the page writes times and counts, and that its plots show nothing as markup."""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone
from decimal import Decimal

import pytest

from memory_app.page import plots, words


@pytest.mark.parametrize(
    ("seconds", "written"),
    [
        (-1, "0.0 s"),
        (0.42, "0.4 s"),
        (59.4, "59 s"),
        (60, "1 min"),
        (3_599, "59 min"),
        (3_600, "1 h"),
        (7_500, "2 h 5 min"),
        (90_000, "1 d"),
    ],
)
def test_a_duration_is_written_in_the_unit_that_fits(seconds: float, written: str) -> None:
    assert words.duration(seconds) == written


def test_an_instant_is_written_in_utc_and_for_machines() -> None:
    at = datetime(2026, 11, 30, 9, 12, 44, tzinfo=timezone(timedelta(hours=2)))

    assert words.instant(at) == '<time datetime="2026-11-30T07:12:44+00:00">2026-11-30 07:12</time>'
    assert words.instant(None) == "–"


def test_counts_are_grouped_and_have_their_number() -> None:
    assert words.plural(1, "turn") == "1 turn"
    assert words.plural(20_000, "memory", "memories") == "20\N{NARROW NO-BREAK SPACE}000 memories"


def test_a_text_that_is_too_long_for_a_list_is_cut() -> None:
    assert words.excerpt("a" * 100_000, 10) == "a" * 9 + "…"
    assert words.excerpt("short", 10) == "short"


def test_bars_stand_in_their_order_and_as_high_as_their_values() -> None:
    svg = plots.bars(
        {date(2026, 11, 29): Decimal("0.5"), date(2026, 11, 30): Decimal(1)},
        amount=words.dollars,
        title="Cost",
    )

    assert svg.count("<rect") == 2
    assert 'height="60.0"' in svg and 'height="120.0"' in svg
    assert "2026-11-29: $0.5000" in svg


def test_days_without_cost_are_drawn_and_no_days_are_not() -> None:
    svg = plots.bars({date(2026, 11, 30): 0}, amount=words.number, title="Calls")
    assert 'height="0.0"' in svg and "Calls; most: 0<" in svg
    assert plots.bars({}, amount=words.dollars, title="Cost") == ""


def test_a_title_of_a_plot_is_never_markup() -> None:
    svg = plots.bars({date(2026, 11, 30): 1}, amount=lambda count: f"{count} <b>", title='"><script>')

    assert "<script" not in svg and "<b>" not in svg
