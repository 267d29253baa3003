"""The examples of README.md and docs/*.md, page by page as a reader would try them, beside one `memory up`.

Each page's shell, Python and HTTP blocks run in their order in a folder with `.memory` and `.venv`. What an ``output``
block shows must be what the example before it prints. `{id}` in an HTTP example is the last ``id`` that was answered.
Blocks with a mark are left to the test that the mark names; `tests/unit/main/test_docs.py` checks the marks.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from documentation import PAGES, ROOT, Block, blocks, is_answer, is_printed, output_after, read_request
from own_servers import open_folder
from sqlalchemy import create_engine
from sqlalchemy.pool import NullPool

from memory_app import MemoryApp, Scope
from memory_app.local import embedded, stack
from memory_app.settings import Settings
from memory_app.tenancy.rows import keys

USUAL_ADDRESS = "http://127.0.0.1:8321"
EXAMPLE_SECONDS = 300.0
PLACEHOLDER = re.compile(r"\{(\w+)\}")


def runs_here(block: Block) -> bool:
    return block.is_example and not block.mark


@dataclass(slots=True)
class Reader:
    """Somebody who tries the examples of a page. ``answered`` holds the last value of each field of an answer."""

    folder: Path
    api: str
    key: str
    environment: dict[str, str]
    answered: dict[str, str] = field(default_factory=dict)

    def try_example(self, block: Block) -> None:
        if block.language == "http":
            self._request(block)
        else:
            self._program(block)

    def _program(self, block: Block) -> None:
        code = block.code.replace(USUAL_ADDRESS, self.api)
        command = [sys.executable, "-c", code] if block.language == "python" else ["bash", "-euc", code]
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=EXAMPLE_SECONDS,
            check=False,
        )
        assert done.returncode == 0, f"{block.place}: {done.stdout}{done.stderr}"
        output = output_after(block)
        if output is not None:
            assert is_printed(output.code, done.stdout), f"{output.place}: it prints\n{done.stdout}"

    def _request(self, block: Block) -> None:
        method, path, body = read_request(block)
        request = urllib.request.Request(
            self.api + self._filled(path),
            None if body is None else self._filled(json.dumps(body)).encode(),
            {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"},
            method=method,
        )
        try:
            with urllib.request.urlopen(request, timeout=EXAMPLE_SECONDS) as response:
                status, text = response.status, response.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                status, text = error.code, error.read().decode()
        answer = json.loads(text) if text else None
        self._note(answer)
        self._compare(block, status, answer)

    def _compare(self, block: Block, status: int, answer: Any) -> None:
        output = output_after(block)
        if output is None:
            assert status < 400, f"{block.place}: {status} {answer}"
            return
        expected_status, _, expected = output.code.partition("\n")
        assert int(expected_status) == status, f"{output.place}: {status} {answer}"
        if expected.strip():
            shown = json.dumps(answer, indent=2)
            assert is_answer(json.loads(expected), answer), f"{output.place}: the answer is\n{shown}"

    def _filled(self, text: str) -> str:
        """With the names in braces replaced by what was answered under them."""
        return PLACEHOLDER.sub(
            lambda name: self.answered[name[1]] if name[1] in self.answered else name[0], text
        )

    def _note(self, answer: Any) -> None:
        """Remember the first text of each name in the answer."""
        seen: dict[str, str] = {}
        rest = [answer]
        while rest:
            part = rest.pop(0)
            if isinstance(part, dict):
                for name, value in part.items():
                    if isinstance(value, str):
                        seen.setdefault(name, value)
                rest += part.values()
            elif isinstance(part, list):
                rest += part
        self.answered |= seen


def prepare_acme(settings: Settings) -> None:
    """The tenant whose people docs/backup.md exports."""
    assert settings.database.owner_url is not None
    engine = create_engine(settings.database.owner_url.get_secret_value(), poolclass=NullPool)
    with engine.begin() as connection:
        keys.ensure_tenant(connection, "acme")
    with MemoryApp.connect(settings, tenant="acme") as memory:
        memory.remember(Scope("ada", "mira"), "Mira has a dog called Bruno.")


@pytest.fixture(scope="module")
def reader() -> Iterator[Reader]:
    assert shutil.which("curl"), "the examples call the API with curl: install it"
    with open_folder("memory-docs-") as folder:
        data = folder / ".memory"
        (folder / ".venv").symlink_to(sys.prefix)
        shutil.copy(ROOT / "celerybeat-schedule.example", folder)
        try:
            with stack.running(stack.Options(data, port=0), say=lambda _: None) as up:
                own = {name: value for name, value in os.environ.items() if not name.startswith("MEMORY_")}
                reader = Reader(
                    folder,
                    up.addresses.api,
                    up.key,
                    own
                    | {
                        "PATH": f"{sys.prefix}/bin:{own['PATH']}",
                        "PYTHONPATH": str(ROOT),
                        "COLUMNS": "120",
                        "BROKER_URL": up.settings.redis.url.get_secret_value(),
                        "RECEIPTS": str(folder),
                    },
                )
                prepare_acme(up.settings)
                yield reader
        finally:
            embedded.remove(data)


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if any(runs_here(block) for block in blocks(page))],
    ids=lambda page: page.stem,
)
def test_the_examples_of_a_page_do_what_the_page_says(reader: Reader, page: Path) -> None:
    for block in blocks(page):
        if runs_here(block):
            reader.try_example(block)
