"""A stage for `examples/`: a real API with workers, and the stub in the place of the language model.

An example runs as its first lines tell a reader to: a process in its folder, addresses and keys in the environment.
The model of this stage knows nothing of Bruno. It names him only where the request that reaches it does.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from documentation import ROOT
from free_ports import free_port
from own_servers import wait_until
from provider_stage import TEMPLATE, ProviderStage, staged

from memory_app import MemoryApp
from memory_app.client import MemoryClient, Scope
from memory_app.errors import NotFound
from memory_app.local.embedded import Servers
from memory_app.local.stack import commands
from memory_app.tenancy.rows import keys
from memory_app.testing import Rule

EXAMPLES = ROOT / "examples"
EXAMPLE_SECONDS = 120.0
OURS = ("MEMORY_", "OPENAI_", "PYTHONPATH")
"""Beginnings of variables that an example must not find unless it is given them."""

PERSON = Scope("ada", "noa")
STATEMENT = "I have a dog called Bruno."
QUESTION = "What is my dog called?"
REPLY = "Noted."
ANSWER = "Your dog is called Bruno."

MODEL = (
    Rule(contains=(QUESTION, "Bruno"), answer=ANSWER),
    Rule(contains=(STATEMENT, '"role": "tool"'), answer=REPLY),
    Rule(contains=(STATEMENT, '"function_call_output"'), answer=REPLY),
    Rule(
        contains=(QUESTION, '"search_memory"'), call={"name": "search_memory", "arguments": {"query": "dog"}}
    ),
    Rule(
        contains=(STATEMENT, '"store_memory"'),
        call={"name": "store_memory", "arguments": {"text": "Noa has a dog called Bruno."}},
    ),
    Rule(contains=STATEMENT, answer=REPLY),
    Rule(contains=QUESTION, answer="I do not know."),
)
"""What the model says. Where it is offered the tools of memory, it calls them first."""


@dataclass(frozen=True, slots=True)
class Example:
    """One example with a tenant of its own. ``program`` runs its main file."""

    folder: Path
    address: str
    key: str = field(repr=False)
    environment: Mapping[str, str] = field(repr=False)
    program: Sequence[str | Path]
    options: Sequence[str] = ()

    def say(self, session: str, text: str) -> str:
        """What the example prints when it is run with a session and a message."""
        done = subprocess.run(
            [*self.program, session, text, *self.options],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=EXAMPLE_SECONDS,
            check=False,
        )
        assert done.returncode == 0, f"{self.folder.name}: {done.stdout}{done.stderr}"
        return done.stdout.strip()

    def client(self) -> MemoryClient:
        return MemoryClient(self.address, self.key)

    def wait_for_memory(self, scope: Scope = PERSON) -> None:
        """Return once a recall of the person finds what the first session told."""
        with self.client() as memory:
            wait_until(lambda: recalls_bruno(memory, scope), "a recall finds Bruno")

    def assert_remembers(self, person: Scope = PERSON) -> None:
        """What one session is told, another one knows. ``person``: who speaks with which agent."""
        assert REPLY in self.say("monday", STATEMENT)
        self.wait_for_memory(person)
        assert ANSWER in self.say("friday", QUESTION)


@dataclass(frozen=True, slots=True)
class ExampleStage:
    """A served API; see `example`."""

    stage: ProviderStage
    address: str

    def example(self, name: str, program: Sequence[str | Path] = ()) -> Example:
        """An example of `examples/` that no other has told anything; run by our own Python unless told otherwise."""
        with self.stage.owner.begin() as connection:
            _, key = keys.create(connection, f"example-{name}", rights=keys.RIGHTS)
        redis = self.stage.runtime.settings.redis
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(OURS)},
            "MEMORY_URL": self.address,
            "MEMORY_API_KEY": key,
            "OPENAI_BASE_URL": self.stage.stub.base_url,
            "OPENAI_API_KEY": "none",
            "BROKER_URL": redis.url.get_secret_value(),
            "MEMORY_REDIS__PREFIX": redis.prefix,
        }
        if not program:
            program = (sys.executable, "main.py")
            environment["PYTHONPATH"] = str(ROOT)
        return Example(EXAMPLES / name, self.address, key, environment, program)


def recalls_bruno(memory: MemoryClient | MemoryApp, person: Scope) -> bool:
    # Nothing was recorded of the person as long as their first message waits at the broker.
    with contextlib.suppress(NotFound):
        return any("Bruno" in hit.text for hit in memory.recall(person, "dog").memories)
    return False


def is_served(url: str) -> bool:
    """Whether somebody answers there."""
    try:
        with urllib.request.urlopen(url, timeout=10) as response:
            return bool(response.status == 200)
    except urllib.error.URLError:
        return False


@contextlib.contextmanager
def example_stage(servers: Servers, folder: Path) -> Iterator[ExampleStage]:
    """The API, a worker and a finder, once they answer. ``servers`` hold the migrated template."""
    with staged(servers, TEMPLATE, folder, MEMORY_COMPLETIONS__BASE_URL="STUB") as stage:
        stage.stub.follow(*MODEL)
        port = free_port()
        stage.start(commands.serve(), MEMORY_HTTP__PORT=str(port))
        stage.start(commands.finder())
        stage.worker()
        address = f"http://127.0.0.1:{port}"
        wait_until(lambda: is_served(f"{address}/health/live"), "the API answers")
        yield ExampleStage(stage, address)


@contextlib.contextmanager
def running(command: Sequence[str | Path], example: Example) -> Iterator[None]:
    """A server of an example, ended with the block."""
    process = subprocess.Popen(command, cwd=example.folder, env=example.environment, start_new_session=True)
    try:
        yield
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(timeout=60)
