"""Small plots as SVG, made on the server. Colours and sizes come from the style sheet; every mark has a title.

Labels stand beside a plot as text of the page: text inside of a picture that shrinks with a narrow screen cannot
be read. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date
from decimal import Decimal
from typing import TypeVar

from markupsafe import Markup

WIDTH, HEIGHT = 720, 120
"""Units of the drawing, which is stretched to the place that it gets."""

GAP = 2


N = TypeVar("N", int, Decimal)


def bars(values: Mapping[date, N], *, amount: Callable[[N], str], title: str) -> Markup:
    """A bar for each day; empty for no days. ``amount`` writes a value with its unit."""
    if not values:
        return Markup("")
    most = max(values.values())
    unit = HEIGHT / (float(most) or 1.0)
    step = WIDTH / len(values)
    marks = Markup("").join(
        _BAR.format(
            x=f"{number * step + GAP / 2:.1f}",
            y=f"{HEIGHT - float(value) * unit:.1f}",
            width=f"{max(step - GAP, 1):.1f}",
            height=f"{float(value) * unit:.1f}",
            title=f"{day:%Y-%m-%d}: {amount(value)}",
        )
        for number, (day, value) in enumerate(values.items())
    )
    days = list(values)
    return _FIGURE.format(
        title=title,
        summary=f"{title}, {days[0]:%Y-%m-%d} to {days[-1]:%Y-%m-%d}, at most {amount(most)}",
        marks=marks,
        width=WIDTH,
        height=HEIGHT,
        first=f"{days[0]:%Y-%m-%d}",
        last=f"{days[-1]:%Y-%m-%d}",
        most=amount(most),
    )


_BAR = Markup(
    '<rect class="bar" x="{x}" y="{y}" width="{width}" height="{height}"><title>{title}</title></rect>'
)
_FIGURE = Markup(
    '<figure class="plot"><svg viewBox="0 0 {width} {height}" preserveAspectRatio="none" role="img" '
    'aria-label="{summary}">{marks}</svg>'
    "<figcaption><span>{first}</span><span>{title}; most: {most}</span><span>{last}</span></figcaption></figure>"
)
