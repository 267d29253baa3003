"""The examples for Node, beside real workers: plain `fetch`, the OpenAI client, and the client of docs/typescript.md.

Needs Node and the npm registry, from which it takes the locked versions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from documentation import block_run_by
from example_stage import ANSWER, PERSON, QUESTION, REPLY, STATEMENT, ExampleStage, example_stage
from node_programs import copied, require_node, run, with_packages

from memory_app.client import Scope
from memory_app.local.embedded import Servers

pytestmark = [pytest.mark.system, pytest.mark.slow, pytest.mark.timeout(900)]

NODE = ("node", "main.mjs")


@pytest.fixture(scope="module")
def stage(
    servers: Servers, template: Servers, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ExampleStage]:
    require_node()
    with example_stage(servers, tmp_path_factory.mktemp("examples")) as stage:
        yield stage


@pytest.fixture(scope="module")
def openai_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return with_packages("node_openai", tmp_path_factory.mktemp("node"))


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
