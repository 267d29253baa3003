"""The MCP SDK is an extra: everything else works without it, and the one command that needs it names it."""

from __future__ import annotations

import subprocess
import sys

WITHOUT_SDK = "import sys; sys.modules.update(mcp=None, mcp_types=None)\n"

USE = """
import memory_app.app, memory_app.main.http
from memory_app.tools.calls import definitions
print(len(definitions()))
"""

COMMAND = """
sys.argv = ["memory", "mcp"]
from memory_app.main.cli import main
main()
"""


def run(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", WITHOUT_SDK + program], capture_output=True, text=True, check=False
    )


def test_the_facade_and_the_api_do_without_it() -> None:
    done = run(USE)

    assert (done.returncode, done.stdout.strip()) == (0, "5"), done.stderr


def test_the_command_names_the_extra_in_one_line() -> None:
    done = run(COMMAND)

    assert done.returncode == 1
    assert "memory-app[mcp]" in done.stderr
    assert "Traceback" not in done.stderr
