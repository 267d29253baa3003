"""Whether a message from the broker is one that the product can handle. Anybody who reaches Redis may put in anything.

Celery and kombu take the form of a message for granted and end the worker over one that lacks it. So a message is
looked at before they see it, and it must be what our own senders and Celery's second protocol write: nothing else is
needed, and a message is only a hint.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from enum import StrEnum
from types import UnionType
from typing import Any

from kombu.utils.json import loads

MESSAGE_LIMIT_BYTES = 8_000_000
"""A larger message is not read. The text of a turn as long as the settings allow by default takes a tenth."""

UNREADABLE = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError)
"""What decoding can end in: JSON that is none or too deep, and values of a type that kombu's decoder knows."""

_ID = re.compile(r"[A-Za-z0-9_.:@-]{1,100}")


class DropReason(StrEnum):
    """Why a message is dropped."""

    TOO_LARGE = "too_large"
    NOT_JSON = "not_json"
    MALFORMED = "malformed"
    """JSON without the fields of a message, or with values of other types."""
    CONTENT_TYPE = "content_type"
    """Pickle, YAML or anything else than JSON, or compressed."""
    BODY = "body"
    """The arguments of the task cannot be read or are none."""
    UNKNOWN_TASK = "unknown_task"
    """A name that is not public; the tasks that come with Celery are none of ours."""
    UNSUPPORTED = "unsupported"
    """A start time, time limits or a follow-up of the sender's own."""
    UNREADABLE = "unreadable"
    """Passed all of the above, and Celery could not read it."""


def task_fault(value: bytes, names: Collection[str]) -> DropReason | None:
    """What is wrong with a message of a queue of tasks, which may be any of ``names``; None if nothing is."""
    return _fault(value, lambda message: _task_fault(message, names))


def command_fault(value: bytes) -> DropReason | None:
    """The same for a command or question to all workers."""
    return _fault(value, _command_fault)


def report_fault(value: bytes) -> DropReason | None:
    """The same for answers of workers and for events."""
    return _fault(value, _report_fault)


# --- checks of single fields --------------------------------------------------------------------------------

Check = Callable[[object], bool]
"""Whether the value of a field may stand there. An absent field is None to it."""

Checks = Mapping[str, Check]


def _is_a(kind: type | UnionType) -> Check:
    return lambda value: isinstance(value, kind)


def _is_among(*values: object) -> Check:
    # A tuple, not a set: what a stranger puts there may be a list or an object, which no set can look up.
    return lambda value: value in values


def _is_object_of(checks: Checks) -> Check:
    return lambda value: isinstance(value, dict) and _passes(value, checks)


def _passes(fields: Mapping[str, Any], checks: Checks) -> bool:
    return all(check(fields.get(name)) for name, check in checks.items())


def _is_id(value: object) -> bool:
    return isinstance(value, str) and _ID.fullmatch(value) is not None


def _is_id_or_absent(value: object) -> bool:
    return value is None or _is_id(value)


def _is_time_or_absent(value: object) -> bool:
    if value is None:
        return True
    if not isinstance(value, str):
        return False
    try:
        datetime.fromisoformat(value)
    except ValueError:
        return False
    return True


# --- the envelope -------------------------------------------------------------------------------------------

_DELIVERY: Checks = {"exchange": _is_a(str), "routing_key": _is_a(str)}

_PROPERTIES: Checks = {
    "delivery_info": _is_object_of(_DELIVERY),
    # Kombu makes a field of a hash in Redis of it.
    "delivery_tag": _is_id,
    "body_encoding": _is_among("base64", None),
}

_ENVELOPE: Checks = {
    "properties": _is_object_of(_PROPERTIES),
    "headers": _is_a(dict | None),
    "content-encoding": _is_among("utf-8", "us-ascii", "binary", None),
}

_is_envelope = _is_object_of(_ENVELOPE)


def _fault(value: bytes, body_fault: Callable[[Mapping[str, Any]], DropReason | None]) -> DropReason | None:
    # The size first: decoding a message takes several times its size in memory.
    if len(value) > MESSAGE_LIMIT_BYTES:
        return DropReason.TOO_LARGE
    try:
        message = loads(value)  # type: ignore[no-untyped-call]
    except UNREADABLE:
        return DropReason.NOT_JSON
    if not _is_envelope(message):
        return DropReason.MALFORMED
    # A compressed body could unpack to any size.
    is_plain_json = message.get("content-type") == "application/json"
    if not is_plain_json or _headers(message).get("compression"):
        return DropReason.CONTENT_TYPE
    return body_fault(message)


def _headers(message: Mapping[str, Any]) -> Mapping[str, Any]:
    return message.get("headers") or {}


def _body(message: Mapping[str, Any]) -> Any:
    """Raises one of `UNREADABLE`."""
    body = message["body"]
    if message["properties"].get("body_encoding") == "base64":
        # Without validation, characters that are no base64 are skipped in silence.
        try:
            body = base64.b64decode(body, validate=True)
        except binascii.Error as error:
            raise ValueError from error
    return loads(body)  # type: ignore[no-untyped-call]


# --- tasks --------------------------------------------------------------------------------------------------

USUAL_LIMITS = (None, [None, None], [90, 60], [660, 600])
"""Hard and soft, in seconds: Beat sends those of our tasks along. Others are a stranger's."""

_TASK_NAME: Checks = {"task": _is_a(str), "id": _is_id}

# Nothing that changes how a task runs, and nothing in the fields that logs and Flower show.
_USUAL_HEADERS: Checks = {
    "eta": _is_among(None),
    "shadow": _is_among(None),
    "timelimit": _is_among(*USUAL_LIMITS),
    "root_id": _is_id_or_absent,
    "parent_id": _is_id_or_absent,
    "group": _is_id_or_absent,
    "expires": _is_time_or_absent,
    # Celery compares it with a limit, which null does not stand.
    "retries": _is_a(int),
}

_BODY_PARTS: Checks = {"args": _is_a(list), "kwargs": _is_a(dict), "embed": _is_a(dict | None)}
"""In their order in a message of Celery's second protocol."""


def _task_fault(message: Mapping[str, Any], names: Collection[str]) -> DropReason | None:
    headers = _headers(message)
    if not _passes(headers, _TASK_NAME):
        return DropReason.MALFORMED
    if headers["task"] not in names:
        return DropReason.UNKNOWN_TASK
    if not _passes({"retries": 0, **headers}, _USUAL_HEADERS):
        return DropReason.UNSUPPORTED
    try:
        # Three parts, or `zip` raises: anything else is another protocol's.
        body = dict(zip(_BODY_PARTS, _body(message), strict=True))
    except UNREADABLE:
        return DropReason.BODY
    if not _passes(body, _BODY_PARTS):
        return DropReason.BODY
    # Callbacks, chords and chains: tasks that the sender would start through us.
    embedded = body["embed"] or {}
    return DropReason.UNSUPPORTED if any(embedded.values()) else None


# --- commands and reports -----------------------------------------------------------------------------------

_RETURN_ADDRESS: Checks = {"exchange": _is_a(str), "routing_key": _is_a(str)}


def _is_return_address_or_absent(value: object) -> bool:
    return value is None or _is_object_of(_RETURN_ADDRESS)(value)


_COMMAND: Checks = {
    "method": _is_a(str),
    "arguments": _is_a(dict | None),
    "destination": _is_a(list | None),
    "pattern": _is_a(str | None),
    "matcher": _is_among(None, "glob", "pcre"),
    "reply_to": _is_return_address_or_absent,
    "ticket": _is_a(object),
}


def _command_fault(message: Mapping[str, Any]) -> DropReason | None:
    # Kombu advances its own clock to this one and adds 1, which anything but a number breaks.
    if not isinstance(_headers(message).get("clock"), int | None):
        return DropReason.MALFORMED
    try:
        body = _body(message)
    except UNREADABLE:
        return DropReason.BODY
    return None if _is_command(body) else DropReason.BODY


def _is_command(body: object) -> bool:
    # Kombu hands all fields on as keyword arguments, and no sender of ours has others than these.
    return isinstance(body, dict) and body.keys() <= _COMMAND.keys() and _passes(body, _COMMAND)


def _report_fault(message: Mapping[str, Any]) -> DropReason | None:
    try:
        body = _body(message)
    except UNREADABLE:
        return DropReason.BODY
    # Workers send several events as one message.
    parts = body if isinstance(body, list) else [body]
    return None if all(map(_is_a(dict), parts)) else DropReason.BODY
