"""Play the story of two sessions over two weeks through the HTTP API of a stack whose agent has a language model."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial
from typing import Any

from memory_app.errors import Permanent, StoreUnavailable
from memory_app.local.stack.api import Api, user_path
from memory_app.testing.story import AGENT, SESSIONS, USER, StorySession

PATIENCE_SECONDS = 300.0
"""Longest wait for one session; a real model on a small machine takes its time."""

POLL_SECONDS = 0.2

PLACE = user_path(AGENT, USER)


def play_story(api: Api, *, say: Callable[[str], None]) -> None:
    """Both sessions, each read turn by turn and ended, with the dates at which they were held.

    Raises `Permanent` when a turn fails, `StoreUnavailable` when the model does not get through in time.
    """
    # One second of silence suffices, so that the turns are extracted while somebody watches.
    api.call("PUT", f"/v1/agents/{AGENT}", {"policy": {"extraction": "llm", "idle_seconds": 1}})
    for session in SESSIONS:
        say(f"playing {session.name!r} of {session.begins:%Y-%m-%d}")
        path = f"{PLACE}/sessions/{session.name.replace(' ', '%20')}"
        tickets = api.call("POST", f"{path}/turns", {"turns": _turns(session)})["tickets"]
        # The end would wait for these turns as well, but this wait can say what it waits for.
        _wait(partial(_are_read, api, tickets), "its turns are read")
        say(f"ending {session.name!r}")
        run = api.call("POST", f"{PLACE}/synthesis", {"type": "session", "session": session.name})
        _wait(partial(_is_done, api, run), "the session is summed up")
        run = api.call("POST", f"{path}/end", {})
        _wait(partial(_is_done, api, run), "the session has ended")


def _turns(session: StorySession) -> list[dict[str, str]]:
    return [
        {"role": role, "content": text, "at": (session.begins + timedelta(minutes=place)).isoformat()}
        for place, (role, text) in enumerate(session.turns)
    ]


def _are_read(api: Api, tickets: Sequence[dict[str, Any]]) -> bool:
    return all(_is_read(api, ticket) for ticket in tickets)


def _is_read(api: Api, ticket: dict[str, Any]) -> bool:
    turn = api.call("GET", f"/v1/turns/{ticket['id']}")
    if turn["stage"] == "failed":
        raise Permanent(f"turn {turn['id']} failed: {turn['reason']}")
    return bool(turn["stage"] == "extracted")


def _is_done(api: Api, run: dict[str, Any]) -> bool:
    latest = api.call("GET", f"/v1/runs/{run['id']}")
    if latest["state"] == "failed":
        raise Permanent(f"run {latest['id']} failed: {latest['reason']}")
    return bool(latest["state"] == "done")


def _wait(condition: Callable[[], bool], description: str) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            raise StoreUnavailable(f"waited {PATIENCE_SECONDS:.0f} s in vain until {description}")
        time.sleep(POLL_SECONDS)
