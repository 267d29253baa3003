"""The examples that need no package beyond our own locks: two sessions each, beside real workers and the stub model."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from documentation import Block, blocks
from example_stage import (
    ANSWER,
    EXAMPLES,
    PERSON,
    QUESTION,
    REPLY,
    ROOT,
    STATEMENT,
    ExampleStage,
    example_stage,
    is_served,
    recalls_bruno,
    running,
)
from free_ports import free_port
from own_servers import open_folder, wait_until
from provider_stage import QUICK

from memory_app import MemoryApp, Scope
from memory_app.local import embedded
from memory_app.local.embedded import Servers

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

LINES_LIMIT = 20
"""Of the programs in docs/quick-start.md."""


@pytest.fixture(scope="module")
def stage(
    servers: Servers, template: Servers, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ExampleStage]:
    with example_stage(servers, tmp_path_factory.mktemp("examples")) as stage:
        yield stage


def test_a_model_with_tools_finds_what_it_stored_in_another_session(stage: ExampleStage) -> None:
    example = stage.example("openai_tools")
    example.assert_remembers()
    with example.client() as memory:
        (stored,) = memory.memories(PERSON, tag="explicit-store").memories
    assert stored.text == "Noa has a dog called Bruno."


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_a_model_uses_the_memory_through_mcp(stage: ExampleStage, transport: str) -> None:
    name = f"mcp_agent-{transport}"
    example = stage.example(name)
    if transport == "stdio":
        # The client starts the server, which finds the database as a process of ours does.
        environment = {
            **stage.stage.environment,
            **example.environment,
            "MEMORY_MCP": shlex.join(
                [sys.executable, "-m", "memory_app", "mcp", "--tenant", f"example-{name}"]
            ),
        }
    else:
        port = free_port()
        address = f"http://127.0.0.1:{port}/mcp"
        serve = [sys.executable, "-m", "memory_app", "mcp", "--transport", "http", "--port", str(port)]
        stage.stage.start(serve)
        wait_until(lambda: refuses_strangers(address), "the MCP server answers")
        environment = {**example.environment, "MEMORY_MCP": address}
    example = replace(example, folder=EXAMPLES / "mcp_agent", environment=environment)
    example.assert_remembers()
    with example.client() as memory:
        (stored,) = memory.memories(PERSON, tag="explicit-store").memories
        turns = memory.turns(Scope("ada", "noa", "friday")).turns
    assert stored.text == "Noa has a dog called Bruno."
    assert [(turn.role, turn.content) for turn in turns] == [("user", QUESTION), ("assistant", ANSWER)]
    # Whose memory it is, the program says: the model is not even offered the names.
    tools = stage.stage.stub.requests()[-1]["body"]["tools"]
    offered = {tool["function"]["name"]: tool["function"]["parameters"] for tool in tools}
    assert {"search_memory", "store_memory", "forget_memory"} <= set(offered)
    assert "record_turns" not in offered
    for parameters in offered.values():
        assert not {"agent", "user", "session"} & {*parameters["properties"], *parameters["required"]}


def refuses_strangers(address: str) -> bool:
    """Whether somebody answers there, and wants a key."""
    try:
        urllib.request.urlopen(address, timeout=10).close()
    except urllib.error.HTTPError as error:
        error.close()
        return error.code == 401
    except OSError:
        return False
    return False


def test_the_chat_app_streams_replies_that_know_other_sessions(stage: ExampleStage) -> None:
    example = stage.example("fastapi_chat")
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    command = (sys.executable, "-m", "uvicorn", "main:app", "--port", str(port), "--log-level", "warning")

    def chat(session: str, text: str) -> str:
        body = json.dumps({"user": "noa", "session": session, "text": text}).encode()
        request = urllib.request.Request(f"{address}/chat", body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as response:
            return str(response.read().decode())

    with running(command, example):
        wait_until(lambda: is_served(f"{address}/docs"), "the chat app answers")
        assert chat("monday", STATEMENT) == REPLY
        example.wait_for_memory()
        assert chat("friday", QUESTION) == ANSWER
    with example.client() as memory:
        said = [(turn.role, turn.content) for turn in memory.turns(Scope("ada", "noa", "friday")).turns]
    assert said == [("user", QUESTION), ("assistant", ANSWER)]


def test_a_producer_at_the_broker_records_a_turn(stage: ExampleStage) -> None:
    example = stage.example("celery_producer")
    assert example.say("monday", STATEMENT).startswith("sent ")
    example.wait_for_memory()
    with example.client() as memory:
        (turn,) = memory.turns(Scope("ada", "noa", "monday")).turns
    assert turn.content == STATEMENT


def chat_programs() -> list[Block]:
    """The chat apps of docs/quick-start.md: one in process, one over HTTP."""
    name = str(Path(__file__).relative_to(ROOT))
    return [block for block in blocks(ROOT / "docs/quick-start.md") if block.runner == name]


def write_program(block: Block, folder: Path, *, address: str = "", key: str = "") -> None:
    """Save the program as the page says, with the folder's key, and the address of a real API."""
    (folder / ".memory").mkdir(exist_ok=True)
    if key:
        (folder / ".memory/api-key").write_text(key)
    code = block.code.replace("http://127.0.0.1:8321", address) if address else block.code
    (folder / "chat.py").write_text(code)


def talk(folder: Path, environment: dict[str, str], session: str, text: str) -> str:
    """Run the program for one session, in which one message is sent."""
    done = subprocess.run(
        [sys.executable, "chat.py", session],
        cwd=folder,
        env=environment,
        input=f"{text}\n\n",
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_quick_start_of_a_chat_app_is_short() -> None:
    lines = [len(block.code.splitlines()) for block in chat_programs()]
    print(f"a chat app: {lines[0]} lines in process, {lines[1]} over HTTP")
    assert len(lines) == 2 and max(lines) <= LINES_LIMIT


def test_the_chat_app_over_http_remembers(stage: ExampleStage, tmp_path: Path) -> None:
    example = stage.example("quick_start_http")
    environment = dict(example.environment) | {"PYTHONPATH": str(ROOT)}
    write_program(chat_programs()[1], tmp_path, address=example.address, key=example.key)
    assert REPLY in talk(tmp_path, environment, "monday", STATEMENT)
    example.wait_for_memory()
    assert ANSWER in talk(tmp_path, environment, "friday", QUESTION)


def test_the_chat_app_in_process_remembers(stage: ExampleStage, monkeypatch: pytest.MonkeyPatch) -> None:
    own = {name: value for name, value in os.environ.items() if not name.startswith("MEMORY_")}
    quick = QUICK | {"MEMORY_EMBEDDING__PROVIDER": "hash"}
    model = {"OPENAI_BASE_URL": stage.stage.stub.base_url, "OPENAI_API_KEY": "none"}
    environment = own | quick | model | {"PYTHONPATH": str(ROOT)}
    for name, value in quick.items():
        monkeypatch.setenv(name, value)
    with open_folder("memory-chat-") as folder:
        write_program(chat_programs()[0], folder)
        try:
            # What the program starts goes on until this block ends, so that the second run need not start it again.
            with MemoryApp.local(folder / ".memory") as memory:
                assert REPLY in talk(folder, environment, "monday", STATEMENT)
                wait_until(lambda: recalls_bruno(memory, PERSON), "a recall finds Bruno")
                assert ANSWER in talk(folder, environment, "friday", QUESTION)
        finally:
            embedded.remove(folder / ".memory")


def test_an_example_without_its_key_says_which_variable_is_missing(stage: ExampleStage) -> None:
    example = stage.example("openai_tools")
    environment = {name: value for name, value in example.environment.items() if name != "MEMORY_API_KEY"}
    with pytest.raises(AssertionError, match="MEMORY_API_KEY"):
        replace(example, environment=environment).say("monday", STATEMENT)


def test_every_example_says_how_to_run_it_and_what_it_needs() -> None:
    folders = sorted(folder for folder in EXAMPLES.iterdir() if folder.is_dir())
    assert folders
    for folder in folders:
        (program,) = [*folder.glob("main.py"), *folder.glob("main.mjs"), *folder.glob("main.ts")]
        head = program.read_text(encoding="utf-8")[:1000]
        assert "_API_KEY" in head and f"{folder.name}" in (ROOT / "docs/frameworks.md").read_text()
        needs = [*folder.glob("requirements.txt"), *folder.glob("package-lock.json")]
        assert needs or program.name == "main.mjs", folder.name


def test_the_page_shows_the_typescript_client_as_it_is() -> None:
    files = [
        (EXAMPLES / "typescript" / name).read_text(encoding="utf-8") for name in ("memory.ts", "main.ts")
    ]
    shown = [block.code for block in blocks(ROOT / "docs/typescript.md") if block.language == "ts"]
    assert shown[0] == files[0]
    assert len(shown) == 3 and all(code in files[1] for code in shown[1:])
