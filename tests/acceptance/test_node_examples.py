"""The examples for Node, beside real workers: plain `fetch`, the OpenAI client, and the client of docs/typescript.md.

Needs Node and the npm registry, from which it takes the locked versions.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from documentation import block_run_by
from example_stage import ANSWER, EXAMPLES, PERSON, QUESTION, REPLY, STATEMENT, ExampleStage, example_stage

from memory_app.client import Scope
from memory_app.local.embedded import Servers

pytestmark = [pytest.mark.system, pytest.mark.slow, pytest.mark.timeout(900)]

NODE = ("node", "main.mjs")


@pytest.fixture(scope="module")
def stage(
    servers: Servers, template: Servers, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ExampleStage]:
    assert shutil.which("node") and shutil.which("npm"), (
        "the examples need Node and npm: install nodejs and npm"
    )
    with example_stage(servers, tmp_path_factory.mktemp("examples")) as stage:
        yield stage


@pytest.fixture(scope="module")
def openai_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = copied("node_openai", tmp_path_factory.mktemp("node"))
    run(("npm", "ci", "--no-audit", "--no-fund"), folder)
    return folder


def copied(name: str, folder: Path) -> Path:
    """A copy of an example, so that nothing is installed or built in the source tree."""
    copy = folder / "examples" / name
    shutil.copytree(
        EXAMPLES / name, copy, ignore=shutil.ignore_patterns("node_modules", "dist", "schema.d.ts")
    )
    return copy


def run(
    command: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None, *, status: int = 0
) -> str:
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=500, check=False
    )
    assert done.returncode == status, f"{command}: {done.stdout[-3000:]}{done.stderr[-3000:]}"
    return done.stdout


def test_node_with_fetch_alone_remembers(stage: ExampleStage) -> None:
    example = stage.example("node_http", NODE)
    example.assert_remembers()
    with example.client() as memory:
        said = [(turn.role, turn.content) for turn in memory.turns(Scope("ada", "noa", "friday")).turns]
    assert said == [("user", QUESTION), ("assistant", ANSWER)]


@pytest.mark.parametrize("options", [(), ("--stream",)], ids=["whole", "streamed"])
def test_an_unchanged_openai_client_of_node_remembers(
    stage: ExampleStage, openai_folder: Path, options: tuple[str, ...]
) -> None:
    example = stage.example("node_openai" + "".join(options), NODE)
    # The only changes: a base URL and a key.
    changed = {"OPENAI_BASE_URL": f"{example.address}/openai/v1", "OPENAI_API_KEY": example.key}
    environment = {
        name: value for name, value in example.environment.items() if not name.startswith("MEMORY_")
    }
    example = replace(example, folder=openai_folder, environment=environment | changed, options=options)
    example.assert_remembers(Scope("assistant", PERSON.user))
    with example.client() as memory:
        turns = memory.turns(Scope("assistant", PERSON.user, "monday")).turns
    assert [(turn.role, turn.content) for turn in turns] == [("user", STATEMENT), ("assistant", REPLY)]


def test_the_generated_typescript_client_compiles_and_works(stage: ExampleStage, tmp_path: Path) -> None:
    example = stage.example("typescript")
    folder = copied("typescript", tmp_path)
    key = tmp_path / ".memory/api-key"
    key.parent.mkdir()
    key.write_text(example.key)
    block = block_run_by("docs/typescript.md", __file__)
    code = block.code.replace("http://127.0.0.1:8321", example.address)
    printed = run(("bash", "-euc", code), tmp_path, example.environment)
    _, _, on_friday = printed.split("turn.extracted\n")
    assert "noa has a dog called Bruno." in on_friday
    # The types are those of this API, not `any`.
    program = folder / "main.ts"
    program.write_text(program.read_text().replace("query: text", "qurey: text"))
    assert "'qurey' does not exist" in run(("npx", "tsc"), folder, status=2)
