"""``demo --story``: two sessions over two weeks, read by a language model, and what commands show of them.

The model is the one that the environment names; without one, a scripted stand-in on loopback gives the answers that a
good model would.
"""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import typer

from memory_app.console.output import out
from memory_app.demo.story import PLACE, play_story
from memory_app.local.embedded.lifetime import Pause
from memory_app.local.stack import Options, Say, running
from memory_app.local.stack.api import Api, calling
from memory_app.local.stack.folder import temporary_folder
from memory_app.local.stack.parts import NEEDED
from memory_app.memories import commands
from memory_app.settings import Settings
from memory_app.testing import StubProvider
from memory_app.testing.story import AGENT, RULES, USER

QUICK = {"MEMORY_FINDER__EVERY_SECONDS": "0.5"}
"""Nobody waits at a demo for a session to fall silent."""

WHOSE = ("--agent", AGENT, "--user", USER)
KINDS = ("anchor", "artifact", "identity", "expression", "fact", "episode")


def show(data: Path | None, *, say: Say, pause: Pause) -> None:
    """Play the story in ``data``, or in a folder that is gone afterwards, and show what is remembered of it."""
    with temporary_folder(data) as folder, _model(say) as environment:
        life = {"MEMORY_LIFE_FOLDER": str(folder / "life")}
        # Any free port: a demo must not be in the way of what runs on this machine.
        options = Options(folder, port=0, parts=NEEDED, environment={**environment, **QUICK, **life})
        with running(options, say=say, pause=pause) as stack, calling(stack.addresses.api, stack.key) as api:
            play_story(api, say=say)
            for kind in KINDS:
                _run(folder, ["list", *WHOSE, "--kind", kind, "--history"])
            _run(folder, ["why", _trust(api)])
            _run(folder, ["usage"])


@contextlib.contextmanager
def _model(say: Say) -> Iterator[Mapping[str, str]]:
    """What the workers' environment needs to reach a model: nothing where one is set."""
    if Settings().chat.base_url is not None:
        yield {}
        return
    say("no MEMORY_CHAT__BASE_URL is set: the model's answers are scripted")
    with StubProvider(*RULES) as stub:
        yield {"MEMORY_CHAT__BASE_URL": stub.base_url, "MEMORY_CHAT__MODEL": "scripted"}


def _trust(api: Api) -> str:
    """The id of the newest anchor."""
    anchors = api.call("GET", f"{PLACE}/memories?kind=anchor&limit=1")["memories"]
    return str(anchors[0]["id"]) if anchors else ""


def _run(folder: Path, command: Sequence[str]) -> None:
    """Show a command as it is typed, and what it says; ``--data`` is left out of what is shown."""
    out.print(f"\n$ memory {shlex.join(command)}", markup=False, highlight=False)
    # Not standalone: an error of a command is raised to the demo, instead of ending the process here.
    typer.main.get_command(commands.app)([*command, "--data", str(folder)], standalone_mode=False)
