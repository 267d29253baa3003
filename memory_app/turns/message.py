"""Read a chat message of OpenAI's or Anthropic's APIs, as it is, into the fields of a turn. Pure.

The texts of a message become the text of the turn, joined by line ends. What is not text leaves a short mark there
(``[image]``), and what is worth keeping of it goes to the metadata under `DETAILS`, bounded. Nothing that is encoded is
copied, however large it is. What cannot be read is refused with the place in the message.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel

from memory_app.errors import InvalidInput
from memory_app.language.marks import MarkKind, mark
from memory_app.records.scope import check_name
from memory_app.turns.intake import TOOLS_LIMIT
from memory_app.web.validation import refuse

DETAILS = "message"
"""The name in the metadata under which the details of a message stand."""

DETAILS_BYTES = 2_000
"""Most bytes of the details as JSON; what is beyond is left out, and counted."""

PARTS_LIMIT = 1_000
"""Most parts or tool calls of one message."""

VALUE_CHARS = 300
"""Longest value in the details; a longer one is cut."""

ROLES = {"developer": "system", "function": "tool"}
"""Roles of messages that have another name in turns."""

MESSAGE_FIELDS = frozenset(
    {"tool_calls", "tool_call_id", "function_call", "refusal", "audio", "annotations", "reasoning_content"}
)
"""Fields by which a message is told from a turn, of which an unknown field is an error."""

TEXT_FIELDS = {"text": "text", "input_text": "text", "output_text": "text", "refusal": "refusal"}
"""Types of parts that are text, and the field that holds it."""

MARKS = {
    "image": MarkKind.IMAGE,
    "image_url": MarkKind.IMAGE,
    "image_file": MarkKind.IMAGE,
    "input_image": MarkKind.IMAGE,
    "audio": MarkKind.AUDIO,
    "input_audio": MarkKind.AUDIO,
    "video": MarkKind.VIDEO,
    "video_url": MarkKind.VIDEO,
    "input_video": MarkKind.VIDEO,
    "file": MarkKind.FILE,
    "input_file": MarkKind.FILE,
    "document": MarkKind.FILE,
}
"""Types of parts that are no text, and the mark that stands for them."""

TOOL_CALLS = frozenset({"tool_use", "server_tool_use", "mcp_tool_use", "function_call", "tool_call"})
TOOL_RESULTS = ("tool_result", "function_call_output")
"""How the types of parts that hold the answer of a tool end."""

THOUGHTS = frozenset({"thinking", "redacted_thinking", "reasoning"})
"""Types of parts that nobody said."""

CAPTIONS = ("caption", "alt", "alt_text", "title", "filename", "name")

_TYPE = re.compile(r"[A-Za-z][\w.-]{0,63}")
_DATA_TYPE = re.compile(r"data:([\w.+-]{1,40}/[\w.+-]{1,80})")
_FIELD_CHARS = 64

Path = tuple[str | int, ...]


@dataclass(slots=True)
class _Contents:
    """What was read of a message so far."""

    texts: list[str] = field(default_factory=list)
    tools: list[str] = field(default_factory=list)
    details: list[tuple[str, Any]] = field(default_factory=list)
    results: list[tuple[Mapping[str, Any], Path]] = field(default_factory=list)
    """Answers of tools among the parts, and where they stand."""

    def add(self, text: str) -> None:
        """Add a text unless it is blank."""
        if text.strip():
            self.texts.append(text)


def turn_fields(message: Mapping[str, Any], *, known: Collection[str], takes_unknown: bool) -> dict[str, Any]:
    """Return the fields of a turn; a plain turn comes back as it is.

    ``known`` are the fields of turns. An unknown one goes to the metadata if ``takes_unknown`` or if the message has a
    form that only messages have; else it stays, to be refused. Raises pydantic's `ValidationError`.
    """
    content = message.get("content")
    is_message = not MESSAGE_FIELDS.isdisjoint(message) or not isinstance(content, str)
    turn = dict(message)
    contents = _Contents()
    _read_content(contents, message)
    _read_calls(contents, message)
    _read_results(contents, turn)
    if is_message or takes_unknown:
        _move_unknown(contents, turn, known)
    turn["content"] = "\n".join(contents.texts) or mark(MarkKind.EMPTY)
    if isinstance(turn.get("role"), str):
        turn["role"] = ROLES.get(turn["role"], turn["role"])
    _add_tools(turn, contents.tools)
    _add_details(turn, contents.details)
    return turn


def as_mapping(value: object) -> object:
    """Return an object of a client library as the dictionary that it stands for, anything else as it is."""
    # Objects of these libraries may hold what their classes do not describe, which is no matter of ours.
    return value.model_dump(warnings=False) if isinstance(value, BaseModel) else value


def _read_content(contents: _Contents, message: Mapping[str, Any]) -> None:
    content = message.get("content")
    if isinstance(content, str):
        contents.add(content)
    elif isinstance(content, list | tuple):
        _read_parts(contents, content, ("content",))
    elif content is not None:
        refuse(("content",), f"text, a list of parts or null is required, not {type(content).__name__}")
    elif not _may_be_null(message):
        refuse(("content",), "is required; only a message of the assistant or of a tool may be without")
    if contents.texts:
        return
    audio = message.get("audio")
    for text in (message.get("refusal"), audio.get("transcript") if isinstance(audio, Mapping) else None):
        if isinstance(text, str):
            contents.add(text)


def _may_be_null(message: Mapping[str, Any]) -> bool:
    # Absent is a mistake even there, unless something else says what the message is about.
    has_other = any(message.get(name) for name in ("tool_calls", "function_call", "refusal", "audio"))
    return has_other or ("content" in message and message.get("role") in ("assistant", "tool", "function"))


def _read_parts(contents: _Contents, parts: list[Any] | tuple[Any, ...], path: Path) -> None:
    if len(parts) > PARTS_LIMIT:
        refuse(path, f"{len(parts)} parts; at most {PARTS_LIMIT}")
    for place, part in enumerate(parts):
        _read_part(contents, as_mapping(part), (*path, place))


def _read_part(contents: _Contents, part: object, path: Path) -> None:
    if not isinstance(part, Mapping):
        refuse(path, f"a part is an object with a type, not {type(part).__name__}")
    kind = part.get("type", "text" if "text" in part else None)
    if not isinstance(kind, str) or not _TYPE.fullmatch(kind):
        refuse((*path, "type"), "the name of a type is required, such as text or image_url")
    if kind in TEXT_FIELDS:
        name = TEXT_FIELDS[kind]
        text = part.get(name)
        if not isinstance(text, str):
            refuse((*path, name), "text is required")
        contents.add(text)
    elif kind in TOOL_CALLS:
        _read_call(contents, part, path)
    elif kind.endswith(TOOL_RESULTS):
        contents.results.append((part, path))
    elif kind not in THOUGHTS:
        _read_other(contents, part, kind)


def _read_other(contents: _Contents, part: Mapping[str, Any], kind: str) -> None:
    """A picture, a recording, a file, or what a later release of an API may bring."""
    layers = list(_layers(part, kind))
    # What was said in a recording are words of the speaker.
    words = _first_text(layers, ("transcript", "text"))
    caption = _first_text(layers, CAPTIONS) if kind in MARKS else kind
    contents.texts.append(words or mark(MARKS.get(kind, MarkKind.PART), caption))
    details: dict[str, Any] = {"type": kind}
    for layer in layers:
        for name in ("media_type", "format", "filename", "file_id", "detail"):
            if _is_text(layer.get(name)):
                details[name] = layer[name][:VALUE_CHARS]
    details |= _address(part, layers)
    contents.details.append(("parts", details))


def _layers(part: Mapping[str, Any], kind: str) -> Iterator[Mapping[str, Any]]:
    """The part, and the object in it that says more."""
    yield part
    for name in (kind, "source", "file", "image_url"):
        if isinstance(part.get(name), Mapping):
            yield part[name]


def _first_text(layers: list[Mapping[str, Any]], names: Collection[str]) -> str:
    texts = (layer.get(name) for layer in layers for name in names)
    return next((text for text in texts if isinstance(text, str) and text.strip()), "")


def _address(part: Mapping[str, Any], layers: list[Mapping[str, Any]]) -> dict[str, str]:
    """Where the content lies, if it lies anywhere, or of which type it is if it is in the message itself."""
    for value in (
        part.get("image_url"),
        *(layer.get(name) for layer in layers for name in ("url", "file_data")),
    ):
        if not isinstance(value, str):
            continue
        if value.startswith(("http://", "https://")):
            # What follows the path is often a signature that gives access.
            return {"url": re.split(r"[?#]", value[: 10 * VALUE_CHARS], maxsplit=1)[0][:VALUE_CHARS]}
        if media := _DATA_TYPE.match(value):
            return {"media_type": media[1]}
    return {}


def _read_calls(contents: _Contents, message: Mapping[str, Any]) -> None:
    calls = message.get("tool_calls")
    if calls is not None:
        if not isinstance(calls, list | tuple):
            refuse(("tool_calls",), "a list is required")
        if len(calls) > PARTS_LIMIT:
            refuse(("tool_calls",), f"{len(calls)} calls; at most {PARTS_LIMIT}")
        for place, call in enumerate(calls):
            _read_call(contents, as_mapping(call), ("tool_calls", place))
    if message.get("function_call") is not None:
        _read_call(contents, as_mapping(message["function_call"]), ("function_call",))


def _read_call(contents: _Contents, call: object, path: Path) -> None:
    if not isinstance(call, Mapping):
        refuse(path, "an object is required")
    inner, path_of_name = call, path
    for name in ("function", "custom"):
        if isinstance(call.get(name), Mapping):
            inner, path_of_name = call[name], (*path, name)
    try:
        tool = check_name(inner.get("name"), field="")
    except InvalidInput:
        refuse((*path_of_name, "name"), "the name of the tool is required")
    contents.texts.append(mark(MarkKind.TOOL_CALL, tool))
    contents.tools.append(tool)
    arguments = next((inner[name] for name in ("arguments", "input", "args") if name in inner), None)
    id = call.get("id", call.get("call_id"))
    details = {"id": id, "name": tool, "arguments": arguments}
    contents.details.append(
        ("tool_calls", {name: _cut(value) for name, value in details.items() if value is not None})
    )


def _read_results(contents: _Contents, turn: dict[str, Any]) -> None:
    """Answers of tools among the parts, which Anthropic's API has in a message of the user."""
    if not contents.results:
        return
    # The user said nothing of it: alone it is the tool's turn, and beside words of the user only a mark.
    is_alone = not contents.texts
    for part, path in contents.results:
        details = {name: part.get(name) for name in ("tool_use_id", "call_id", "is_error")}
        text = "\n".join(_result_texts(part.get("content", part.get("output")), (*path, "content")))
        if is_alone:
            contents.texts.append(text.strip() or mark(MarkKind.TOOL_RESULT))
        else:
            contents.texts.append(mark(MarkKind.TOOL_RESULT))
            details["text"] = text
        contents.details.append(
            ("tool_results", {name: _cut(value) for name, value in details.items() if value})
        )
    if is_alone and turn.get("role") == "user":
        turn["role"] = "tool"


def _result_texts(content: object, path: Path) -> list[str]:
    if content is None:
        return []
    if isinstance(content, str):
        return [content]
    inner = _Contents()
    if isinstance(content, list | tuple):
        _read_parts(inner, content, path)
    else:
        # Results of a provider's own tools are objects of many forms.
        inner.texts.append(_cut(content))
    return inner.texts


def _move_unknown(contents: _Contents, turn: dict[str, Any], known: Collection[str]) -> None:
    for name in [name for name in turn if name not in known]:
        value = turn.pop(name)
        # The calls are read already, and of a recording its words.
        if name in ("tool_calls", "function_call", "audio") or value in (None, "", [], {}):
            continue
        contents.details.append((str(name)[:_FIELD_CHARS], _cut(as_mapping(value))))


def _add_tools(turn: dict[str, Any], tools: list[str]) -> None:
    own = turn.get("tools_used", [])
    if isinstance(own, list | tuple):
        # The caller's own stay all, so that too many of them are refused as ever.
        fresh = [tool for tool in dict.fromkeys(tools) if tool not in own]
        turn["tools_used"] = [*own, *fresh[: max(0, TOOLS_LIMIT - len(own))]]


def _add_details(turn: dict[str, Any], entries: list[tuple[str, Any]]) -> None:
    metadata = turn.get("metadata", {})
    # A caller who has a field of that name means that one.
    if entries and isinstance(metadata, Mapping) and DETAILS not in metadata:
        turn["metadata"] = {**metadata, DETAILS: _bounded(entries)}


def _bounded(entries: list[tuple[str, Any]]) -> dict[str, Any]:
    """The entries by name, as many as fit into `DETAILS_BYTES`; of some names there may be several."""
    details: dict[str, Any] = {}
    size = left_out = 0
    for name, value in entries:
        # In ASCII, so that no character counts for less than the bytes it takes.
        size_of_entry = len(json.dumps({name: value}))
        if size + size_of_entry > DETAILS_BYTES:
            left_out += 1
            continue
        size += size_of_entry
        if name in ("parts", "tool_calls", "tool_results"):
            details.setdefault(name, []).append(value)
        else:
            details[name] = value
    if left_out:
        details["left_out"] = left_out
    return details


def _cut(value: object) -> Any:
    """A value for the details: as it is if it is small and simple, else the beginning of its text or JSON."""
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, str):
        return "…" if _DATA_TYPE.match(value) else value[:VALUE_CHARS]
    # In pieces and only as far as is kept, as the value may be large.
    text = ""
    try:
        for piece in json.JSONEncoder(ensure_ascii=False, default=str).iterencode(value):
            text += piece[:VALUE_CHARS]
            if len(text) >= VALUE_CHARS:
                break
    except (RecursionError, TypeError, ValueError):
        return "…"
    return text[:VALUE_CHARS]


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())
