"""README.md and docs/*.md: links lead somewhere, examples say who runs them, names in them exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from documentation import ANYTHING, PAGES, ROOT, anchors, blocks, is_answer, is_printed, links, prose

from benchmarks import settings_page
from memory_app import MemoryApp
from memory_app.main.commands import COMMANDS
from memory_app.main.http import create_app
from memory_app.queue import ROUTES
from memory_app.records.kinds import KINDS
from memory_app.runtime import build
from memory_app.settings import Embedding, Settings

LANGUAGES = ("sh", "python", "http", "output", "text", "ini", "toml", "ts")
README_WORDS = 900

NOT_RUN = {
    "docs/clients.md": ["needs a language model"],
    "docs/compose.md": ["needs Docker", "needs Docker"],
    "docs/development.md": ["clones the repository"],
    "docs/growth.md": ["takes half an hour"],
    "docs/models.md": ["needs a language model"],
    "docs/scaling.md": ["needs a second server"],
    "docs/shards.md": ["needs a second server", "needs a second server"],
}
"""The reasons of the examples that nobody runs. A further one must be added here, too."""

COMMAND = re.compile(
    r"^\s*(\$ |memory |curl |make |git |pip |export |docker |python |(GET|POST|PUT|DELETE) /)"
)
OTHER_VARIABLES = {"MEMORY_FAILPOINTS", "MEMORY_URL", "MEMORY_API_KEY"}
"""Variables of the environment that are no settings."""


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_to_files_and_headings_that_exist(page: Path) -> None:
    for link in links(page):
        if link.startswith(("https://", "http://")):
            continue
        target, _, anchor = link.partition("#")
        path = (page.parent / target).resolve() if target else page
        assert path.exists(), f"{name(page)}: {link}"
        assert not anchor or anchor in anchors(path), f"{name(page)}: {link}"


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_block_says_what_it_is(page: Path) -> None:
    for block in blocks(page):
        assert block.language in LANGUAGES, block.place
        if not block.is_example:
            assert block.mark == "", f"{block.place}: only examples are run"
        if block.language in ("text", "ini", "toml"):
            commands = [line for line in block.code.splitlines() if COMMAND.match(line)]
            assert commands == [], f"{block.place}: an example is sh, python or http"


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_output_follows_an_example(page: Path) -> None:
    languages = [block.language for block in blocks(page)]

    for before, after in zip(["", *languages], languages, strict=False):
        assert after != "output" or before in ("sh", "python", "http"), name(page)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_mark_names_a_test_that_reads_the_page_or_a_known_reason(page: Path) -> None:
    reasons = []
    for block in blocks(page):
        if block.runner is not None:
            test = ROOT / block.runner
            assert test.is_file() and page.name in test.read_text(encoding="utf-8"), block.place
        elif block.mark:
            assert block.why_not_run is not None, f"{block.place}: {block.mark}"
            reasons.append(block.why_not_run)

    assert reasons == NOT_RUN.get(name(page), [])


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").split()) < README_WORDS


def test_the_readme_leads_to_every_page() -> None:
    targets = {link.partition("#")[0] for link in links(ROOT / "README.md")}

    assert [name(page) for page in PAGES[1:] if name(page) not in targets] == []


def test_the_page_of_settings_is_what_the_generator_prints() -> None:
    page = (ROOT / "docs/configuration.md").read_text(encoding="utf-8")

    assert page == settings_page.page(), "run `make docs`"


def test_every_setting_has_a_sentence() -> None:
    rows = [row for section in settings_page.sections().values() for row in section]

    assert [row.name for row in rows if not row.sentence.endswith((".", "%"))] == []


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_pages_name_only_settings_that_exist(page: Path) -> None:
    known = {row.name for section in settings_page.sections().values() for row in section}
    text = page.read_text(encoding="utf-8")

    named = set(re.findall(r"\bMEMORY_[A-Z_]*[A-Z]\b(?!__…)", text)) - OTHER_VARIABLES
    # Names of servers are chosen by whoever has them.
    named = {re.sub(r"(?<=__SERVERS)__[A-Z]+__(URL|OWNER_URL)$", "", name) for name in named}
    assert named - known == set()


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_pages_name_only_commands_that_exist(page: Path) -> None:
    code = re.findall(r"`memory ([a-z]+)", prose(page))
    for block in blocks(page):
        if block.language == "sh":
            code += re.findall(r"(?:^|bin/)memory ([a-z]+)", block.code, re.M)

    assert set(code) - COMMANDS.keys() == set()


def first_cells(page: str, heading: str) -> list[list[str]]:
    """The names in backquotes of the first cell of each row below a heading."""
    text = (ROOT / page).read_text(encoding="utf-8")
    section = text.partition(f"\n{heading}\n")[2].partition("\n#")[0]
    cells = re.findall(r"^\| (`[^|]*`) \|", section, re.M)
    return [re.findall(r"`([^`]+)`", cell) for cell in cells]


def test_the_page_of_the_api_names_every_call() -> None:
    runtime = build(Settings(_env_file=None, embedding=Embedding(provider="hash")))
    try:
        paths = create_app(runtime).openapi()["paths"]
    finally:
        runtime.close()
    calls = {
        f"{method.upper()} {path.replace('/v1/agents/{agent}/users/{user}', 'S')}"
        for path, methods in paths.items()
        for method in methods
    }

    assert {call for cell in first_cells("docs/api.md", "### All calls") for call in cell} == calls


def test_the_page_of_the_api_names_every_method_and_command() -> None:
    methods = {name for name in dir(MemoryApp) if not name.startswith("_")}
    not_verbs = {"connect", "beside", "local", "close", "runtime", "tenant_id"}

    shown = {name for cell in first_cells("docs/api.md", "## Python") for name in cell}
    assert shown == methods - not_verbs
    assert {
        name for cell in first_cells("docs/api.md", "## Command line") for name in cell
    } == COMMANDS.keys()


def test_the_page_of_celery_names_every_task_with_its_queue() -> None:
    text = (ROOT / "docs/celery.md").read_text(encoding="utf-8")

    assert dict(re.findall(r"^\| `(memory\.\w+)` \| (\w+) \|", text, re.M)) == ROUTES


def test_the_table_of_kinds_is_that_of_the_code() -> None:
    text = (ROOT / "docs/concepts.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \|.*\| ([\w ]+) \| (\d+) \|$", text, re.M)

    assert rows == [
        (
            kind.name,
            f"{kind.half_life.days} days"
            if kind.half_life
            else "a setting"
            if kind.name == "query"
            else "never fades",
            str(kind.importance),
        )
        for kind in KINDS.values()
    ]


def test_the_tree_of_the_page_on_development_is_that_of_the_repository() -> None:
    (tree,) = [block for block in blocks(ROOT / "docs/development.md") if block.language == "text"]
    shown = set(re.findall(r"(?:^|  )(\w+)/", tree.code, re.M))
    packages = {path.parent.name for path in ROOT.glob("memory_app/*/__init__.py")}

    assert shown == packages | {"memory_app", "workers", "migrations"}


def test_an_output_is_compared_but_for_what_varies() -> None:
    assert is_printed("a … c\n…\nlast", "a b c\nx\ny\nlast\n")
    assert is_printed("a\n…", "a\n")
    assert not is_printed("a\nlast", "a\nx\nlast")
    assert not is_printed("a … c", "a b d")


def test_an_answer_is_compared_but_for_what_varies() -> None:
    assert is_answer({"id": ANYTHING, "list": [1, ANYTHING]}, {"id": 5, "list": [1, 2, 3]})
    assert is_answer({"a": 1, ANYTHING: ANYTHING}, {"a": 1, "b": 2})
    assert not is_answer({"a": 1}, {"a": 1, "b": 2})
    assert not is_answer({"list": [1]}, {"list": [1, 2]})
    assert not is_answer({"text": "Bruno"}, {"text": "Rex"})
