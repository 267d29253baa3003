"""Clients over HTTP: a new connection for each request, so that a restart behind a balancer can be seamless."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable, Sequence
from urllib.parse import quote

from harness.load import Receipt, Send
from memory_app.errors import ProviderUnavailable
from memory_app.records.records import NewTurn
from memory_app.records.scope import Scope

REQUEST_SECONDS = 30


def over_http(port: Callable[[], int], key: str) -> Send:
    """Clients of the API on ``port()``; whatever is not 202 counts as unknown and is sent again."""

    def send(scope: Scope, turns: Sequence[NewTurn]) -> Sequence[Receipt]:
        names = (scope.agent, "users", scope.user or "", "sessions", scope.session or "", "turns")
        path = "/v1/agents/" + "/".join(map(quote, names))
        said = [
            {"role": turn.role.value, "content": turn.text, "idempotency_key": turn.idempotency_key}
            for turn in turns
        ]
        status, body = call(port(), "POST", path, key=key, body={"turns": said})
        if status != 202:
            raise ProviderUnavailable(f"the API answered {status}")
        return [(ticket["id"], ticket["seq"]) for ticket in body["tickets"]]

    return send


def call(
    port: int, method: str, path: str, *, key: str | None = None, body: object = None
) -> tuple[int, dict]:
    """Status and body of one request. `OSError` when there was no answer."""
    status, content = ask(port, method, path, key=key, body=body)
    return status, json.loads(content) if content else {}


def ask(port: int, method: str, path: str, *, key: str | None = None, body: object = None) -> tuple[int, str]:
    """Status and text of one request. `OSError` when there was no answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=REQUEST_SECONDS)
    headers = {"Connection": "close", "Content-Type": "application/json"}
    if key:
        headers["Authorization"] = f"Bearer {key}"
    try:
        connection.request(method, path, json.dumps(body) if body is not None else None, headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    except http.client.HTTPException as error:
        raise ConnectionError(f"the answer was cut ({type(error).__name__})") from error
    finally:
        connection.close()


def is_live(port: int) -> bool:
    """Whether the API on this port answers."""
    try:
        return call(port, "GET", "/health/live")[0] == 200
    except OSError:
        return False


def turns_of(port: int) -> str:
    """Path of a session that only calls of the API on this port have turns in."""
    return f"/v1/agents/ada/users/caller-{port}/sessions/s/turns"


def takes_turns(port: int, key: str) -> bool:
    """Whether the API on this port accepts a turn. On a busy machine a new one may ask for another try."""
    said = "I bought clock number 1 in Lima."
    turn = {"role": "user", "content": said, "idempotency_key": f"first-{port}"}
    return call(port, "POST", turns_of(port), key=key, body=turn)[0] == 202
