"""What goes wrong inside of a tool is answered, and logged by its type and places, without the words of a call."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

CANARY = "canary-4711"

RUNTIME = """
from memory_app.log import configure
from memory_app.records.scope import Scope

configure(level="INFO", form="json")


class Broken:
    def __getattr__(self, name):
        raise ZeroDivisionError(f"{name} of {CANARY}")
"""

CALL = """
from memory_app.tools.calls import call_tool

answer = call_tool(Broken(), 1, Scope("ada", "mira"), name="search_memory", arguments={"query": CANARY})
print(answer.text)
"""

READ = """
from types import SimpleNamespace

import anyio
import mcp_types
from mcp import MCPError

from memory_app.tenancy.rows.keys import Caller
from memory_app.tools.bounds import Bounds
from memory_app.tools.mcp_server import McpHandlers

caller = Caller(key_id=1, tenant_id=1, tenant="acme", rights=frozenset({"read"}))
uri = f"memory://agents/ada/users/mira/entities/person:{CANARY}"


class BrokenWithSettings(Broken):
    settings = SimpleNamespace(http=SimpleNamespace(wait_seconds=1))


async def read():
    handlers = McpHandlers(BrokenWithSettings(), Bounds(), lambda context: caller)
    await handlers.read_resource(None, mcp_types.ReadResourceRequestParams(uri=uri))


try:
    anyio.run(read)
except MCPError as error:
    print(error)
"""


def run(program: str) -> tuple[str, dict[str, Any]]:
    """What the program prints, and the one line that it logs."""
    done = subprocess.run(
        [sys.executable, "-c", f"CANARY = {CANARY!r}\n{RUNTIME}{program}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert CANARY not in done.stdout + done.stderr
    (line,) = done.stderr.splitlines()
    return done.stdout, json.loads(line)


def functions(entry: dict[str, Any]) -> list[str]:
    """The places of an entry without their lines: ``module function``."""
    places = [place.partition(":") for place in entry["at"]]
    return [f"{module} {rest.partition(' ')[2]}" for module, _, rest in places]


def test_a_fault_inside_of_a_tool_is_logged_with_its_places() -> None:
    answer, entry = run(CALL)

    assert "go on without it" in answer
    assert (entry["event"], entry["tool"]) == ("tool_failed", "search_memory")
    assert entry["error"] == "ZeroDivisionError"
    assert "memory_app.tools.calls call_tool" in functions(entry)
    assert "memory_app.tools.search search_memory" in functions(entry)


def test_a_fault_inside_of_a_resource_is_logged_with_its_places() -> None:
    answer, entry = run(READ)

    assert "the resource could not be read" in answer
    assert (entry["event"], entry["error"]) == ("resource_failed", "ZeroDivisionError")
    assert "memory_app.tools.mcp_server _card" in functions(entry)
