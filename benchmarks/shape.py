"""Figures of the product code's shape: how dense it is, how it is named, and what a change touches.

    python -m benchmarks.shape [--json | --list-calls]        or: make shape

Decisions are branches, loops, conditions and exception handlers per 100 lines of function bodies; comments are those
that stand in the code, not docstrings. Calls with many positional arguments are counted for domain code apart from the
rest, without calls of variadic functions; `--list-calls` says where they stand. "Files that name a field" is the median
over the fields listed in `FIELDS` and counts what works with them too; what a new field takes, docs/development.md
lists. Tests are left out. For comparison, counted the same way in August 2026: dramatiq has 12.9 decisions and 3.9
comments per 100 lines, pypi/warehouse 8.5 and 6.5, and neither names things by participles.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parents[1]
PACKAGES = ("memory_app", "workers")
DECISIONS = (ast.If, ast.For, ast.While, ast.IfExp, ast.comprehension, ast.ExceptHandler, ast.match_case)
DIRECTIVES = re.compile(r"#\s*(type:|noqa|fmt:|pragma|!)")
POSITIONAL_LIMIT = 4
"""A call with so many positional arguments has to be looked up to be read."""

VARIADIC: Mapping[str, str] = {
    "select": "the columns of one row",
    "returning": "the columns of one row",
    "where": "conditions that all hold",
    "and_": "conditions that all hold",
    "or_": "conditions of which one holds",
    "coalesce": "values of which the first that is not null counts",
    "order_by": "terms of one order",
    "group_by": "terms of one grouping",
    "Table": "a name, the metadata, then columns and constraints",
    "Index": "a name, then columns",
    "UniqueConstraint": "columns",
    "PrimaryKeyConstraint": "columns",
    "AliasChoices": "names of one field",
    "max": "values of which the greatest counts",
    "min": "values of which the least counts",
    "print": "pieces of one line",
}
"""Functions that take any number of arguments of one kind, by the name at the call, with what the arguments are:
which argument is which is no question there."""

DOMAIN = frozenset(
    {"memories", "recall", "sleep", "turns", "extraction", "transfer", "forget"}
    | {"agents", "tenancy", "jobs", "records", "language"}
)
"""The packages that hold the rules of memory; the others serve them."""

FIELDS: Mapping[str, tuple[str, ...]] = {
    "memory field": ("recall_count", "feedback_score", "valid_until", "subtype", "emotional_state"),
    "turn field": ("emotional_tone", "tools_used", "idempotency_key"),
}
PARTICIPLES = frozenset(
    {"found", "said", "told", "kept", "given", "asked", "wanted", "most", "one", "made", "held", "shown"}
    | {"taken", "left", "seen", "known", "meant", "felt"}
)
"""Words that say nothing about the thing they name."""


@dataclass(frozen=True, slots=True)
class Figures:
    """Counts over all modules; the rates are per 100 lines."""

    modules: int
    statements: int
    body_lines: int
    decisions_per_100_lines: float
    comments_per_100_lines: float
    import_cycles: int
    calls_with_many_positional_arguments_in_domain_code: int
    calls_with_many_positional_arguments_elsewhere: int
    bindings: int
    bindings_named_by_participles: int
    files_per_field: Mapping[str, float]


def modules(root: Path, packages: Sequence[str]) -> dict[str, ast.Module]:
    """Every module of ``packages`` by its dotted name. One in a newer Python's syntax is named and left out."""
    trees = {}
    for package in packages:
        for path in sorted((root / package).rglob("*.py")):
            try:
                trees[module_name(path, root)] = ast.parse(path.read_text(encoding="utf-8"))
            except SyntaxError as error:
                print(f"not read: {path}: {error.msg}", file=sys.stderr)
    return trees


def module_name(path: Path, root: Path) -> str:
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def body_lines(tree: ast.Module) -> int:
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return sum((node.body[-1].end_lineno or 0) - node.body[0].lineno + 1 for node in functions)


def decisions(tree: ast.Module) -> int:
    count = sum(isinstance(node, DECISIONS) for node in ast.walk(tree))
    return count + sum(len(node.values) - 1 for node in ast.walk(tree) if isinstance(node, ast.BoolOp))


def comments(source: str) -> int:
    """Lines with a comment below the first line that is none, so that a licence at the top does not count."""
    tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
    begin = next((token.start[0] for token in tokens if token.type in (tokenize.STRING, tokenize.NAME)), 0)
    return sum(
        token.type == tokenize.COMMENT and token.start[0] > begin and not DIRECTIVES.match(token.string)
        for token in tokens
    )


def crowded_call_nodes(tree: ast.Module) -> Iterator[ast.Call]:
    """The calls with many positional arguments, except those of `VARIADIC` functions."""
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        if len(call.args) >= POSITIONAL_LIMIT and function_name(call) not in VARIADIC:
            yield call


def function_name(call: ast.Call) -> str:
    """The last name of what is called: ``where`` in ``select(x).where(y)``; empty where it has none."""
    if isinstance(call.func, ast.Attribute):
        return call.func.attr
    return call.func.id if isinstance(call.func, ast.Name) else ""


def crowded_calls(tree: ast.Module) -> int:
    return sum(1 for _ in crowded_call_nodes(tree))


def is_domain(module: str) -> bool:
    """Whether a module, by its dotted name, belongs to one of the packages of `DOMAIN`."""
    return not DOMAIN.isdisjoint(module.split(".")[1:2])


def list_calls(root: Path, packages: Sequence[str]) -> Iterator[str]:
    """One line for each call with many positional arguments, domain code first."""
    trees = modules(root, packages)
    for name in sorted(trees, key=lambda name: (not is_domain(name), name)):
        part = "domain" if is_domain(name) else "elsewhere"
        for call in sorted(crowded_call_nodes(trees[name]), key=lambda call: call.lineno):
            yield f"{part:<10} {name}:{call.lineno} {ast.unparse(call.func)} ({len(call.args)} arguments)"


def bindings(tree: ast.Module) -> Iterator[str]:
    """Every name that is assigned or is a parameter."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg


def imports(trees: Mapping[str, ast.Module]) -> dict[str, set[str]]:
    """Which module imports which, wherever the statement stands."""
    graph: dict[str, set[str]] = {name: set() for name in trees}
    for name, tree in trees.items():
        for node in ast.walk(tree):
            targets: list[str] = []
            if isinstance(node, ast.Import):
                targets = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                # A name of a package may be a module of its own: then the package itself is not meant.
                inner = [f"{node.module}.{alias.name}" for alias in node.names]
                targets = [target if target in trees else node.module for target in inner]
            graph[name] |= {target for target in targets if target in trees and target != name}
    return graph


def cycles(graph: Mapping[str, set[str]]) -> int:
    """How many groups of modules import each other (strongly connected components of more than one)."""
    order: list[str] = []
    visited: set[str] = set()

    def visit(name: str, edges: Mapping[str, set[str]], into: list[str]) -> None:
        stack = [(name, iter(sorted(edges[name])))]
        visited.add(name)
        while stack:
            current, rest = stack[-1]
            following = next((other for other in rest if other not in visited), None)
            if following is None:
                into.append(current)
                stack.pop()
            else:
                visited.add(following)
                stack.append((following, iter(sorted(edges[following]))))

    for name in graph:
        if name not in visited:
            visit(name, graph, order)
    reverse: dict[str, set[str]] = {name: set() for name in graph}
    for name, targets in graph.items():
        for target in targets:
            reverse[target].add(name)
    visited.clear()
    count = 0
    for name in reversed(order):
        if name not in visited:
            group: list[str] = []
            visit(name, reverse, group)
            count += len(group) > 1
    return count


def files_naming(root: Path, packages: Sequence[str], word: str) -> int:
    """Product files, SQL included, that name ``word``."""
    pattern = re.compile(rf"\b{re.escape(word)}\b")
    paths = (path for package in (*packages, "migrations") for path in (root / package).rglob("*.*"))
    texts = (path.read_text(encoding="utf-8") for path in paths if path.suffix in (".py", ".sql", ".lua"))
    return sum(pattern.search(text) is not None for text in texts)


def measure(root: Path = ROOT, packages: Sequence[str] = PACKAGES) -> Figures:
    trees = modules(root, packages)
    sources = [
        path.read_text(encoding="utf-8") for package in packages for path in (root / package).rglob("*.py")
    ]
    lines = sum(body_lines(tree) for tree in trees.values())
    source_lines = sum(source.count("\n") for source in sources)
    crowded = {name: crowded_calls(tree) for name, tree in trees.items()}
    crowded_in_domain = sum(count for name, count in crowded.items() if is_domain(name))
    names = Counter(name for tree in trees.values() for name in bindings(tree))
    return Figures(
        modules=len(trees),
        statements=sum(isinstance(node, ast.stmt) for tree in trees.values() for node in ast.walk(tree)),
        body_lines=lines,
        decisions_per_100_lines=round(100 * sum(map(decisions, trees.values())) / max(lines, 1), 1),
        comments_per_100_lines=round(100 * sum(map(comments, sources)) / max(source_lines, 1), 2),
        import_cycles=cycles(imports(trees)),
        calls_with_many_positional_arguments_in_domain_code=crowded_in_domain,
        calls_with_many_positional_arguments_elsewhere=sum(crowded.values()) - crowded_in_domain,
        bindings=names.total(),
        bindings_named_by_participles=sum(names[word] for word in PARTICIPLES),
        files_per_field={
            kind: median(files_naming(root, packages, word) for word in words)
            for kind, words in FIELDS.items()
        },
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Figures of the product code's shape.")
    parser.add_argument("--json", action="store_true", help="Print JSON.")
    parser.add_argument(
        "--list-calls", action="store_true", help="List calls with many positional arguments."
    )
    parser.add_argument("--root", type=Path, default=ROOT, help="Another checkout to measure.")
    parser.add_argument("packages", nargs="*", default=PACKAGES, help="Packages of that checkout.")
    options = parser.parse_args()
    if options.list_calls:
        for line in list_calls(options.root, options.packages):
            print(line)
        return
    figures = asdict(measure(options.root, options.packages))
    if options.json:
        json.dump(figures, sys.stdout, indent=2)
        return
    for name, value in figures.items():
        print(f"{name.replace('_', ' '):<52} {value}")


if __name__ == "__main__":
    main()
