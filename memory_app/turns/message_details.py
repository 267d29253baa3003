"""Keep of a chat message what is no text, in the metadata of its turn: small, in few bytes, nothing encoded. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

DETAILS = "message"
"""The name in the metadata under which the details of a message stand."""

DETAILS_BYTES = 2_000
"""Most bytes of the details as JSON; what is beyond is left out, and counted."""

VALUE_CHARS = 300
"""Longest value in the details; a longer one is cut."""

LISTS = frozenset({"parts", "tool_calls", "tool_results"})
"""Names of which a message may have several."""

_DATA_TYPE = re.compile(r"data:([\w.+-]{1,40}/[\w.+-]{1,80})")
_OMITTED = "…"

Entry = tuple[str, Any]
"""A name in the details and its value."""


def add_details(turn: dict[str, Any], entries: Sequence[Entry]) -> None:
    """Put the entries into the metadata of the turn, as many as there is room for."""
    metadata = turn.get("metadata", {})
    # Metadata of another type is refused later, with the field's name.
    if not entries or not isinstance(metadata, Mapping):
        return
    # A caller who has a field of that name means that one.
    if DETAILS in metadata:
        return
    turn["metadata"] = {**metadata, DETAILS: _bounded(entries)}


def _bounded(entries: Sequence[Entry]) -> dict[str, Any]:
    """The entries by name, as many as fit into `DETAILS_BYTES`."""
    details: dict[str, Any] = {}
    size = 0
    left_out = 0
    for name, value in entries:
        # In ASCII, so that no character counts for less than the bytes it takes.
        size_of_entry = len(json.dumps({name: value}))
        if size + size_of_entry > DETAILS_BYTES:
            left_out += 1
            continue
        size += size_of_entry
        if name in LISTS:
            details.setdefault(name, []).append(value)
        else:
            details[name] = value
    if left_out:
        details["left_out"] = left_out
    return details


def short(value: object) -> Any:
    """A value for the details: as it is if it is small and simple, else the beginning of its text or JSON."""
    if value is None or isinstance(value, bool | int):
        return value
    if not isinstance(value, str):
        return _beginning_of_json(value)
    is_encoded = data_type(value) is not None
    if is_encoded:
        return _OMITTED
    return value[:VALUE_CHARS]


def data_type(value: str) -> str | None:
    """The media type of a ``data:`` address, which holds its content itself; None for any other text."""
    match = _DATA_TYPE.match(value)
    return None if match is None else match[1]


def _beginning_of_json(value: object) -> str:
    # In pieces and only as far as is kept, as the value may be large.
    pieces = json.JSONEncoder(ensure_ascii=False, default=str).iterencode(value)
    text = ""
    try:
        for piece in pieces:
            text += piece[:VALUE_CHARS]
            if len(text) >= VALUE_CHARS:
                break
    # An object of a client library may hold anything, even itself.
    except (RecursionError, TypeError, ValueError):
        return _OMITTED
    return text[:VALUE_CHARS]
