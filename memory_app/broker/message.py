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
from typing import Any

from kombu.utils.json import loads

MESSAGE_LIMIT_BYTES = 8_000_000
"""A larger message is not read. The text of a turn as long as the settings allow by default takes a tenth."""

UNREADABLE = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError)
"""What decoding can end in: JSON that is none or too deep, and values of a type that kombu's decoder knows."""

COMMAND_FIELDS = frozenset({"method", "arguments", "destination", "pattern", "matcher", "reply_to", "ticket"})

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


def _fault(value: bytes, body_fault: Callable[[Mapping[str, Any]], DropReason | None]) -> DropReason | None:
    if len(value) > MESSAGE_LIMIT_BYTES:
        return DropReason.TOO_LARGE
    try:
        message = loads(value)  # type: ignore[no-untyped-call]
    except UNREADABLE:
        return DropReason.NOT_JSON
    if not _is_envelope(message):
        return DropReason.MALFORMED
    if message.get("content-type") != "application/json" or (message.get("headers") or {}).get("compression"):
        return DropReason.CONTENT_TYPE
    return body_fault(message)


def _is_envelope(message: object) -> bool:
    if not isinstance(message, dict):
        return False
    properties = message.get("properties")
    if not isinstance(properties, dict) or not isinstance(message.get("headers"), dict | None):
        return False
    delivery = properties.get("delivery_info")
    return (
        isinstance(delivery, dict)
        and isinstance(delivery.get("exchange"), str)
        and isinstance(delivery.get("routing_key"), str)
        and _is_id(properties.get("delivery_tag"))
        and properties.get("body_encoding") in ("base64", None)
        and message.get("content-encoding") in ("utf-8", "us-ascii", "binary", None)
    )


def _task_fault(message: Mapping[str, Any], names: Collection[str]) -> DropReason | None:
    headers = message.get("headers") or {}
    if not isinstance(headers.get("task"), str) or not _is_id(headers.get("id")):
        return DropReason.MALFORMED
    if headers["task"] not in names:
        return DropReason.UNKNOWN_TASK
    if not _has_usual_headers(headers):
        return DropReason.UNSUPPORTED
    try:
        args, kwargs, embed = _body(message)
    except UNREADABLE:
        return DropReason.BODY
    if not isinstance(args, list) or not isinstance(kwargs, dict) or not isinstance(embed, dict | None):
        return DropReason.BODY
    return DropReason.UNSUPPORTED if any((embed or {}).values()) else None


USUAL_LIMITS = (None, [None, None], [90, 60], [660, 600])
"""Hard and soft, in seconds: Beat sends those of our tasks along. Others are a stranger's."""


def _has_usual_headers(headers: Mapping[str, Any]) -> bool:
    """Nothing that changes how a task runs, and nothing in the fields that logs and Flower show."""
    return (
        headers.get("eta") is None
        and headers.get("shadow") is None
        and headers.get("timelimit") in USUAL_LIMITS
        and isinstance(headers.get("retries", 0), int)
        and all(
            headers.get(name) is None or _is_id(headers[name]) for name in ("root_id", "parent_id", "group")
        )
        and _is_time(headers.get("expires"))
    )


def _command_fault(message: Mapping[str, Any]) -> DropReason | None:
    clock = (message.get("headers") or {}).get("clock")
    if not isinstance(clock, int | None):
        return DropReason.MALFORMED
    try:
        body = _body(message)
    except UNREADABLE:
        return DropReason.BODY
    return None if _is_command(body) else DropReason.BODY


def _is_command(body: object) -> bool:
    if not isinstance(body, dict) or body.keys() - COMMAND_FIELDS:
        return False
    reply_to = body.get("reply_to")
    return (
        isinstance(body.get("method"), str)
        and isinstance(body.get("arguments"), dict | None)
        and isinstance(body.get("destination"), list | None)
        and isinstance(body.get("pattern"), str | None)
        and body.get("matcher") in (None, "glob", "pcre")
        and (reply_to is None or _is_return_address(reply_to))
    )


def _is_return_address(value: object) -> bool:
    return isinstance(value, dict) and all(
        isinstance(value.get(name), str) for name in ("exchange", "routing_key")
    )


def _report_fault(message: Mapping[str, Any]) -> DropReason | None:
    try:
        body = _body(message)
    except UNREADABLE:
        return DropReason.BODY
    parts = body if isinstance(body, list) else [body]
    return None if all(isinstance(part, dict) for part in parts) else DropReason.BODY


def _body(message: Mapping[str, Any]) -> Any:
    """Raises one of `UNREADABLE`."""
    body = message["body"]
    if message["properties"].get("body_encoding") == "base64":
        try:
            body = base64.b64decode(body, validate=True)
        except binascii.Error as error:
            raise ValueError from error
    return loads(body)  # type: ignore[no-untyped-call]


def _is_id(value: object) -> bool:
    return isinstance(value, str) and _ID.fullmatch(value) is not None


def _is_time(value: object) -> bool:
    if value is None:
        return True
    try:
        return isinstance(value, str) and datetime.fromisoformat(value) is not None
    except ValueError:
        return False
