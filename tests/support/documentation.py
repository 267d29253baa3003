"""README.md and docs/*.md as data: pages, fenced blocks with the marks before them, headings and links.

A block's language says what it is: ``sh``, ``python`` and ``http`` are examples, ``output`` is what the example before
it prints, the others are neither. A comment on the line before an example says who runs it:

    <!-- run by tests/acceptance/test_own_servers.py -->    that test
    <!-- not run: needs Docker -->                          nobody, for this reason

Without a comment `tests/acceptance/test_examples.py` runs it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))

EXAMPLES = ("sh", "python", "http")
ANYTHING = "…"
"""In an output: any text within a line, or any lines where it stands alone."""

FENCE = re.compile(r"^(?P<mark><!--[^\n]*-->\n)?```(?P<language>\w*)\n(?P<code>.*?)^```$", re.M | re.S)
HEADING = re.compile(r"^#+ (.+)$", re.M)
LINK = re.compile(r"(?<!!)\[[^]]+\]\(([^)\s]+)\)")


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block. ``mark`` is the text of the comment before it, or empty."""

    page: Path
    line: int
    language: str
    mark: str
    code: str

    @property
    def place(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def is_example(self) -> bool:
        return self.language in EXAMPLES

    @property
    def runner(self) -> str | None:
        """The test file that the mark names."""
        name = re.fullmatch(r"run by (\S+)", self.mark)
        return name[1] if name else None

    @property
    def why_not_run(self) -> str | None:
        reason = re.fullmatch(r"not run: (.+)", self.mark)
        return reason[1] if reason else None


def blocks(page: Path) -> list[Block]:
    """Every fenced block of a page, in order."""
    text = page.read_text(encoding="utf-8")
    return [
        Block(
            page=page,
            line=text.count("\n", 0, fence.start("code")),
            language=fence["language"],
            mark=(fence["mark"] or "").strip().removeprefix("<!--").removesuffix("-->").strip(),
            code=fence["code"],
        )
        for fence in FENCE.finditer(text)
    ]


def block_run_by(page: str, test_file: str) -> Block:
    """The one block of a page that the mark gives to a test, named by its ``__file__``."""
    (block,) = blocks_run_by(page, test_file)
    return block


def blocks_run_by(page: str, test_file: str) -> list[Block]:
    """All of them, where there are several."""
    runner = str(Path(test_file).resolve().relative_to(ROOT))
    return [block for block in blocks(ROOT / page) if block.runner == runner]


def command_lines(block: Block) -> list[str]:
    """The lines of a shell block, without comments."""
    return [line.partition("  #")[0].strip() for line in block.code.splitlines()]


def output_after(example: Block) -> Block | None:
    """The block that says what the example prints, if it follows at once."""
    page = blocks(example.page)
    after = page[page.index(example) + 1 :]
    return after[0] if after and after[0].language == "output" else None


def prose(page: Path) -> str:
    """The page without its fenced blocks."""
    return FENCE.sub("", page.read_text(encoding="utf-8"))


def anchors(page: Path) -> set[str]:
    """The anchors of the page's headings, as GitHub makes them."""
    return {
        re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in HEADING.findall(prose(page))
    }


def links(page: Path) -> Iterator[str]:
    yield from LINK.findall(prose(page))


def is_printed(expected: str, printed: str) -> bool:
    """Whether the output is as shown. Spaces at the end of lines do not count."""
    pattern = ""
    for line in expected.strip().splitlines():
        if line.strip() == ANYTHING:
            pattern += r"(?:.*\n)*?"
        else:
            pattern += r".*?".join(re.escape(part) for part in line.rstrip().split(ANYTHING)) + r" *\n"
    return re.fullmatch(pattern, printed.strip() + "\n") is not None


def is_answer(expected: Any, answer: Any) -> bool:
    """Whether a JSON answer is as shown: "…" is any value, as last of a list any further ones, as a key any others."""
    if isinstance(expected, dict):
        names = expected.keys() - {ANYTHING}
        return (
            isinstance(answer, dict)
            and names <= answer.keys()
            and (ANYTHING in expected or names == answer.keys())
            and all(is_answer(expected[name], answer[name]) for name in names)
        )
    if isinstance(expected, list):
        is_open = bool(expected) and expected[-1] == ANYTHING
        shown = expected[:-1] if is_open else expected
        return (
            isinstance(answer, list)
            and (len(answer) >= len(shown) if is_open else len(answer) == len(shown))
            and all(is_answer(part, other) for part, other in zip(shown, answer, strict=False))
        )
    if isinstance(expected, str) and ANYTHING in expected:
        return expected == ANYTHING or (isinstance(answer, str) and is_printed(expected, answer))
    return bool(expected == answer)


def read_request(block: Block) -> tuple[str, str, dict[str, Any] | None]:
    """Method, path and body of an ``http`` block."""
    first, _, body = block.code.partition("\n")
    method, path = first.split()
    return method, path, json.loads(body) if body.strip() else None
