"""A call of the API: what is sent, and how its answer is read. Nothing here touches the network.

The functions of the modules beside this one make a call out of the parameters of a method; `sync_client` and
`async_client` send it. So each operation is written once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, is_dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar
from urllib.parse import quote
from uuid import UUID

from pydantic import BaseModel, ValidationError

from memory_app.errors import InvalidInput, UnknownAnswer
from memory_app.records.scope import Scope

T = TypeVar("T")
Model = TypeVar("Model", bound=BaseModel)

MODEL_SECONDS = 120.0
"""Further time for a call in which a language model answers."""

TRANSFER_SECONDS = 600.0
"""Further time for a call that carries a whole scope."""


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """``path`` stands below the base URL. ``body`` is JSON unless ``media_type`` says otherwise, or None.

    ``is_repeatable``: sent twice it has the effect of once, so that it may be tried again where nobody knows whether it
    arrived. ``further_seconds`` the server may take beyond the client's time-out.
    """

    method: str
    path: str
    read: Callable[[bytes], T]
    query: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    media_type: str = "application/json"
    is_repeatable: bool = True
    further_seconds: float = 0.0


def in_agent(agent: str, *rest: object) -> str:
    return path("v1", "agents", Scope(agent).agent, *rest)


def in_user(scope: Scope, *rest: object) -> str:
    """A path below an agent and a user. Raises `InvalidInput` for a scope without a user."""
    if scope.user is None:
        raise InvalidInput("user: name the user", field="user")
    return path("v1", "agents", scope.agent, "users", scope.user, *rest)


def in_session(scope: Scope, *rest: object) -> str:
    """A path below a session. Raises `InvalidInput` for a scope without one."""
    if scope.session is None:
        raise InvalidInput("session: name the session", field="session")
    return in_user(scope, "sessions", scope.session, *rest)


def path(*segments: object) -> str:
    """The segments as a path, each of them quoted, whatever it holds."""
    return "".join(f"/{_quoted(str(segment))}" for segment in segments)


def _quoted(segment: str) -> str:
    quoted = quote(segment, safe="")
    # Dots are never quoted, but a segment of "..", which may be a name, leads one step up.
    return quoted.replace(".", "%2E") if quoted in (".", "..") else quoted


def query_of(**parameters: object) -> dict[str, str]:
    """Parameters of a query, without those that are None."""
    return {name: _parameter(value) for name, value in parameters.items() if value is not None}


def _parameter(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return value.isoformat() if isinstance(value, datetime) else str(value)


def body_of(**fields: object) -> bytes:
    """A JSON object, without fields that are None."""
    return json_of({name: value for name, value in fields.items() if value is not None})


def json_of(value: object) -> bytes:
    """Raises `InvalidInput` for what JSON cannot hold."""
    try:
        return json.dumps(value, default=_plain, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(f"body: cannot be written as JSON: {error}", field="body") from error


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", warnings=False)
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"there is no JSON for {type(value).__name__}")


def answer_of(model: type[Model]) -> Callable[[bytes], Model]:
    """Reads an answer; a field that this client does not know is left out."""

    def read(content: bytes) -> Model:
        try:
            # Answers are read from records on the server, where some fields have another name.
            return model.model_validate_json(content, by_alias=True, by_name=True)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            place = ".".join(map(str, first["loc"])) or "the answer"
            raise UnknownAnswer(
                f"{place}: {first['msg']}; are client and server of the same release?"
            ) from None

    return read


def object_of(content: bytes) -> dict[str, Any]:
    """Reads a document as it is."""
    try:
        value = json.loads(content)
    except ValueError:
        raise UnknownAnswer("the answer is not JSON; is this the address of the API?") from None
    if not isinstance(value, dict):
        raise UnknownAnswer("the answer is not a JSON object; is this the address of the API?")
    return value


def nothing(_: bytes) -> None:
    """Reads an answer without content."""
