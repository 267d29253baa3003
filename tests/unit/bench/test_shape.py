"""The figures of the code's shape are counted as their names say."""

from __future__ import annotations

import ast
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
    assert figures.calls_with_many_positional_arguments_elsewhere == 1
    assert figures.bindings_named_by_participles == 1


def test_crowded_calls_are_counted_for_domain_code_apart(
    tmp_path: Path,
) -> None:
    write(
        tmp_path,
        till="pay(1, 2, 3, 4)\npay(1, 2, 3)\n",
        memories="pay(1, 2, 3, 4)\nstock.pay(1, 2, 3, 4, 5)\n",
    )
    figures = shape.measure(tmp_path, ["shop"])
    assert figures.calls_with_many_positional_arguments_in_domain_code == 2
    assert figures.calls_with_many_positional_arguments_elsewhere == 1
    assert list(shape.list_calls(tmp_path, ["shop"])) == [
        "domain     shop.memories:1 pay (4 arguments)",
        "domain     shop.memories:2 stock.pay (5 arguments)",
        "elsewhere  shop.till:1 pay (4 arguments)",
    ]


def test_a_variadic_function_may_take_many_arguments(tmp_path: Path) -> None:
    write(
        tmp_path, till="max(1, 2, 3, 4)\nselect(1, 2, 3, 4).where(1, 2, 3, 4)\n(lambda *n: n)(1, 2, 3, 4)\n"
    )
    assert [line.split(maxsplit=1)[1] for line in shape.list_calls(tmp_path, ["shop"])] == [
        "shop.till:3 lambda *n: n (4 arguments)"
    ]


def test_every_variadic_function_of_the_list_is_called() -> None:
    trees = shape.modules(shape.ROOT, shape.PACKAGES)
    calls = (node for tree in trees.values() for node in ast.walk(tree) if isinstance(node, ast.Call))
    assert set(shape.VARIADIC) - {shape.function_name(call) for call in calls} == set()
