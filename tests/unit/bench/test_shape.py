"""The figures of the code's shape are counted as their names say."""

from __future__ import annotations

from pathlib import Path

from benchmarks import shape


def write(root: Path, **sources: str) -> None:
    package = root / "shop"
    package.mkdir()
    (package / "__init__.py").write_text("")
    for name, source in sources.items():
        (package / f"{name}.py").write_text(source)


def test_imports_inside_functions_close_a_cycle(tmp_path: Path) -> None:
    write(
        tmp_path,
        till="from shop import stock\n",
        stock="def price():\n    from shop.till import open_till\n    return open_till\n",
        door="from shop import till\n",
    )
    assert shape.measure(tmp_path, ["shop"]).import_cycles == 1


def test_decisions_and_comments_are_counted_per_hundred_lines(tmp_path: Path) -> None:
    write(
        tmp_path,
        till="""# A licence.
VAT = 1
def pay(price, cash, found):
    # Coins are counted twice.
    if price > cash and found:  # noqa: X1
        return [coin for coin in price if coin]
    return call(1, 2, 3, 4)
""",
    )
    figures = shape.measure(tmp_path, ["shop"])
    assert figures.body_lines == 3
    assert figures.decisions_per_100_lines == 100.0
    assert figures.comments_per_100_lines == round(100 / 7, 2)
    assert figures.calls_with_many_positional_arguments == 1
    assert figures.bindings_named_by_participles == 1
