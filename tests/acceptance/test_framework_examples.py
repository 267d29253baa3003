"""The examples for frameworks, each in an environment of its own, beside real workers and the stub model.

Needs the package index, from which it takes what each example requires.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from built_package import build, environment_of, run
from example_stage import (
    ANSWER,
    EXAMPLES,
    QUESTION,
    REPLY,
    ROOT,
    STATEMENT,
    Example,
    ExampleStage,
    example_stage,
)

from memory_app.client import Scope
from memory_app.local.embedded import Servers

pytestmark = [pytest.mark.system, pytest.mark.slow, pytest.mark.timeout(900)]

FRAMEWORKS = ("langgraph", "llama_index", "openai_agents", "pydantic_ai")

SESSION = """
import asyncio, os
from main import AsyncMemoryClient, MemorySession, Scope, message

async def main():
    async with AsyncMemoryClient(os.environ["MEMORY_URL"], os.environ["MEMORY_API_KEY"]) as memory:
        session = MemorySession(memory, Scope("ada", "kit", "session"))
        thought = {"type": "reasoning", "summary": []}
        await session.add_items([message("user", "One."), thought, message("assistant", "Two.")])
        print([item["content"] for item in await session.get_items()])
        print([item["content"] for item in await session.get_items(limit=1)])
        print(await session.pop_item())
        print([item["content"] for item in await session.get_items()])
        await session.clear_session()
        print(await session.get_items(), await session.pop_item())

asyncio.run(main())
"""

STORE = """
import os
from main import MemoryClient, MemoryStore

with MemoryClient(os.environ["MEMORY_URL"], os.environ["MEMORY_API_KEY"]) as memory:
    store, kit = MemoryStore(memory), ("ada", "kit")
    print(store.get(kit, "pet"), store.search(kit, query="pet"))
    store.put(kit, "pet", {"text": "Kit has a cat called Mia."})
    store.put(kit, "twin", {"text": "Kit has a cat called Mia."})
    print(store.get(kit, "pet").value["text"], store.get(kit, "twin").value["text"], store.get(kit, "none"))
    store.delete(kit, "twin")
    store.put(kit, "tea", {"text": "Kit likes green tea."})
    store.put(kit, "pet", {"text": "Kit has a cat called Momo."})
    print(store.get(kit, "pet").value["text"])
    print(sorted({(item.key, item.value["text"]) for item in store.search(kit, query="Which cat?")}))
    store.delete(kit, "pet")
    print(store.get(kit, "pet"), [item.key for item in store.search(kit, query="Which cat?")])
    for refused in (
        lambda: store.put(kit, "pet", {"data": 1}),
        lambda: store.put(("kit",), "pet", {"text": "Kit sings."}),
        lambda: store.search(kit, filter={"kind": "fact"}),
        lambda: store.list_namespaces(),
    ):
        try:
            print("accepted", refused())
        except (ValueError, NotImplementedError) as error:
            print(type(error).__name__, str(error).partition(":")[0])
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("built"))[0]


@pytest.fixture(scope="module")
def stage(
    servers: Servers, template: Servers, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ExampleStage]:
    with example_stage(servers, tmp_path_factory.mktemp("examples")) as stage:
        yield stage


@pytest.fixture(scope="module", params=FRAMEWORKS)
def example(
    request: pytest.FixtureRequest, stage: ExampleStage, wheel: Path, tmp_path_factory: pytest.TempPathFactory
) -> Example:
    """The example with the packages that it requires and no others."""
    name = request.param
    # Compiled is what is imported, when it is.
    requirements = ("--no-compile", wheel, "-r", EXAMPLES / name / "requirements.txt")
    environment = environment_of(tmp_path_factory.mktemp(name) / "venv", *requirements)
    example = stage.example(name, (environment / "bin/python", "main.py"))
    further = {
        # OpenAI Agents would send traces of each run to the provider.
        "OPENAI_AGENTS_DISABLE_TRACING": "1",
        # As LlamaIndex calls it.
        "OPENAI_API_BASE": example.environment["OPENAI_BASE_URL"],
    }
    return replace(example, environment={**example.environment, **further})


def test_an_agent_of_the_framework_remembers_another_session(example: Example) -> None:
    example.assert_remembers()
    with example.client() as memory:
        turns = (
            memory.turns(Scope("ada", "noa", "monday")).turns
            + memory.turns(Scope("ada", "noa", "friday")).turns
        )
    said = [("user", STATEMENT), ("assistant", REPLY), ("user", QUESTION), ("assistant", ANSWER)]
    assert [(turn.role, turn.content) for turn in turns] == said
    if example.folder.name == "openai_agents":
        assert printed(example, SESSION) == [
            "['One.', 'Two.']",
            "['Two.']",
            "{'role': 'assistant', 'content': 'Two.'}",
            "['One.']",
            "[] None",
        ]
    if example.folder.name == "langgraph":
        assert printed(example, STORE) == [
            "None []",
            "Kit has a cat called Mia. Kit has a cat called Mia. None",
            "Kit has a cat called Momo.",
            "[('pet', 'Kit has a cat called Momo.'), ('tea', 'Kit likes green tea.')]",
            "None ['tea']",
            "ValueError value",
            "ValueError namespace ('kit',)",
            "NotImplementedError filter",
            "NotImplementedError namespaces are agents and users",
        ]


def test_the_types_of_the_example_are_those_of_the_framework(example: Example, tmp_path: Path) -> None:
    # Strict, so that a package which cannot be found is an error and not `Any`.
    options = (
        *("--config-file", ROOT / "pyproject.toml"),
        *("--python-executable", example.program[0]),
        *("--cache-dir", tmp_path / "cache"),
    )
    # In the example's folder, so that the memory is the package that is installed beside the framework.
    checked = run(sys.executable, "-m", "mypy", *options, "main.py", cwd=example.folder)
    assert checked.stdout.startswith("Success")


def printed(example: Example, code: str) -> list[str]:
    """What a piece of code prints that uses the example's adapter."""
    done = subprocess.run(
        [example.program[0], "-c", code],
        cwd=example.folder,
        env=example.environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()
