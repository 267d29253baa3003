"""Read a chat message of OpenAI's or Anthropic's APIs, as it is, into the fields of a turn. Pure.

The texts of a message become the text of the turn, joined by line ends. What is not text leaves a short mark there
(``[image]``), and what is worth keeping of it goes to the metadata. Nothing that is encoded is copied, however large it
is. What cannot be read is refused with the place in the message.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel

from memory_app.errors import InvalidInput
from memory_app.language.marks import MarkKind, mark
from memory_app.records.scope import check_name
from memory_app.turns import message_media
from memory_app.turns.intake import TOOLS_LIMIT
from memory_app.turns.message_details import Entry, add_details, short
from memory_app.web.validation import refuse

PARTS_LIMIT = 1_000
"""Most parts or tool calls of one message."""

ROLES = {"developer": "system", "function": "tool"}
"""Roles of messages that have another name in turns."""

MESSAGE_FIELDS = frozenset(
    {"tool_calls", "tool_call_id", "function_call", "refusal", "audio", "annotations", "reasoning_content"}
)
"""Fields by which a message is told from a turn, of which an unknown field is an error."""

SUBSTITUTES = ("tool_calls", "function_call", "refusal", "audio")
"""Fields that say what a message without content is about."""

ROLES_WITHOUT_CONTENT = frozenset({"assistant", "tool", "function"})
"""Roles whose messages may have null as content."""

TEXT_FIELDS = {"text": "text", "input_text": "text", "output_text": "text", "refusal": "refusal"}
"""Types of parts that are text, and the field that holds it."""

TOOL_CALLS = frozenset({"tool_use", "server_tool_use", "mcp_tool_use", "function_call", "tool_call"})
TOOL_RESULTS = ("tool_result", "function_call_output")
"""How the types of parts that hold the answer of a tool end."""

THOUGHTS = frozenset({"thinking", "redacted_thinking", "reasoning"})
"""Types of parts that nobody said."""

_TYPE = re.compile(r"[A-Za-z][\w.-]{0,63}")
_FIELD_CHARS = 64
_READ_FIELDS = frozenset({"tool_calls", "function_call", "audio"})
"""Unknown fields of a turn that are read into its text and details."""

Path = tuple[str | int, ...]


@dataclass(slots=True)
class _Contents:
    """What was read of a message so far."""

    texts: list[str] = field(default_factory=list)
    tools: list[str] = field(default_factory=list)
    details: list[Entry] = field(default_factory=list)
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
    turn = dict(message)
    contents = _Contents()
    _read_content(contents, message)
    _read_calls(contents, message)
    _read_results(contents, turn)
    if takes_unknown or _is_message(message):
        _move_unknown(contents, turn, known)
    turn["content"] = "\n".join(contents.texts) or mark(MarkKind.EMPTY)
    role = turn.get("role")
    # What is no text is refused by the turn's own rule.
    if isinstance(role, str):
        turn["role"] = ROLES.get(role, role)
    _add_tools(turn, contents.tools)
    add_details(turn, contents.details)
    return turn


def _is_message(fields: Mapping[str, Any]) -> bool:
    """Whether these are fields of a message, which may have more than turns have."""
    if not MESSAGE_FIELDS.isdisjoint(fields):
        return True
    return not isinstance(fields.get("content"), str)


def as_mapping(value: object) -> object:
    """Return an object of a client library as the dictionary that it stands for, anything else as it is."""
    if not isinstance(value, BaseModel):
        return value
    # Objects of these libraries may hold what their classes do not describe, which is no matter of ours.
    return value.model_dump(warnings=False)


def _read_content(contents: _Contents, message: Mapping[str, Any]) -> None:
    content = message.get("content")
    if content is None:
        _check_absence(message)
    elif isinstance(content, str):
        contents.add(content)
    elif isinstance(content, list | tuple):
        _read_parts(contents, content, ("content",))
    else:
        refuse(("content",), f"text, a list of parts or null is required, not {type(content).__name__}")
    if not contents.texts:
        _read_substitutes(contents, message)


def _check_absence(message: Mapping[str, Any]) -> None:
    """Refuse a message that lacks its content and may not."""
    says_something_else = any(message.get(name) for name in SUBSTITUTES)
    if says_something_else:
        return
    # A null is meant; a content that is left out is a mistake even there.
    may_be_null = message.get("role") in ROLES_WITHOUT_CONTENT
    if may_be_null and "content" in message:
        return
    refuse(("content",), "is required; only a message of the assistant or of a tool may be without")


def _read_substitutes(contents: _Contents, message: Mapping[str, Any]) -> None:
    """What the assistant said in another field than the content."""
    texts = [message.get("refusal")]
    audio = message.get("audio")
    if isinstance(audio, Mapping):
        texts.append(audio.get("transcript"))
    for text in texts:
        if isinstance(text, str):
            contents.add(text)


def _read_parts(contents: _Contents, parts: Sequence[Any], path: Path) -> None:
    if len(parts) > PARTS_LIMIT:
        refuse(path, f"{len(parts)} parts; at most {PARTS_LIMIT}")
    for place, part in enumerate(parts):
        _read_part(contents, as_mapping(part), (*path, place))


def _read_part(contents: _Contents, part: object, path: Path) -> None:
    if not isinstance(part, Mapping):
        refuse(path, f"a part is an object with a type, not {type(part).__name__}")
    kind = _type_of(part, path)
    if kind in TEXT_FIELDS:
        _read_text(contents, part, path, name=TEXT_FIELDS[kind])
    elif kind in TOOL_CALLS:
        _read_call(contents, part, path)
    elif kind.endswith(TOOL_RESULTS):
        contents.results.append((part, path))
    elif kind not in THOUGHTS:
        contents.texts.append(message_media.text_of(part, kind))
        contents.details.append(("parts", message_media.details_of(part, kind)))


def _type_of(part: Mapping[str, Any], path: Path) -> str:
    """The type of the part; one with a text may leave it out."""
    default = "text" if "text" in part else None
    kind = part.get("type", default)
    if not isinstance(kind, str) or not _TYPE.fullmatch(kind):
        refuse((*path, "type"), "the name of a type is required, such as text or image_url")
    return kind


def _read_text(contents: _Contents, part: Mapping[str, Any], path: Path, *, name: str) -> None:
    text = part.get(name)
    if not isinstance(text, str):
        refuse((*path, name), "text is required")
    contents.add(text)


def _read_calls(contents: _Contents, message: Mapping[str, Any]) -> None:
    calls = message.get("tool_calls")
    if calls is not None:
        _check_calls(calls)
        for place, call in enumerate(calls):
            _read_call(contents, as_mapping(call), ("tool_calls", place))
    # The form of earlier releases, which has one call.
    call = message.get("function_call")
    if call is not None:
        _read_call(contents, as_mapping(call), ("function_call",))


def _check_calls(calls: object) -> None:
    if not isinstance(calls, list | tuple):
        refuse(("tool_calls",), "a list is required")
    if len(calls) > PARTS_LIMIT:
        refuse(("tool_calls",), f"{len(calls)} calls; at most {PARTS_LIMIT}")


def _read_call(contents: _Contents, call: object, path: Path) -> None:
    if not isinstance(call, Mapping):
        refuse(path, "an object is required")
    function, path_of_function = _function_of(call, path)
    tool = _tool_name(function, path_of_function)
    details = {
        "id": call.get("id", call.get("call_id")),
        "name": tool,
        "arguments": _arguments(function),
    }
    contents.texts.append(mark(MarkKind.TOOL_CALL, tool))
    contents.tools.append(tool)
    values = {name: short(value) for name, value in details.items() if value is not None}
    contents.details.append(("tool_calls", values))


def _function_of(call: Mapping[str, Any], path: Path) -> tuple[Mapping[str, Any], Path]:
    """The object with the name and the arguments, and its place: in chat completions it is inside of the call."""
    function, place = call, path
    for name in ("function", "custom"):
        inner = call.get(name)
        if isinstance(inner, Mapping):
            function, place = inner, (*path, name)
    return function, place


def _tool_name(function: Mapping[str, Any], path: Path) -> str:
    try:
        return check_name(function.get("name"), field="")
    except InvalidInput:
        refuse((*path, "name"), "the name of the tool is required")


def _arguments(function: Mapping[str, Any]) -> object:
    for name in ("arguments", "input", "args"):
        if name in function:
            return function[name]
    return None


def _read_results(contents: _Contents, turn: dict[str, Any]) -> None:
    """Answers of tools among the parts, which Anthropic's API has in a message of the user."""
    if not contents.results:
        return
    # The user said nothing of it: alone it is the tool's turn, and beside words of the user only a mark.
    is_alone = not contents.texts
    for part, path in contents.results:
        _read_result(contents, part, path, is_alone=is_alone)
    if is_alone and turn.get("role") == "user":
        turn["role"] = "tool"


def _read_result(contents: _Contents, part: Mapping[str, Any], path: Path, *, is_alone: bool) -> None:
    texts = _result_texts(part.get("content", part.get("output")), (*path, "content"))
    text = "\n".join(texts)
    details: dict[str, object] = {name: part.get(name) for name in ("tool_use_id", "call_id", "is_error")}
    if is_alone:
        contents.texts.append(text.strip() or mark(MarkKind.TOOL_RESULT))
    else:
        contents.texts.append(mark(MarkKind.TOOL_RESULT))
        details["text"] = text
    values = {name: short(value) for name, value in details.items() if value}
    contents.details.append(("tool_results", values))


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
        inner.texts.append(short(content))
    return inner.texts


def _move_unknown(contents: _Contents, turn: dict[str, Any], known: Collection[str]) -> None:
    """Move the fields that turns do not have to the details."""
    unknown = [name for name in turn if name not in known]
    for name in unknown:
        value = turn.pop(name)
        if name in _READ_FIELDS:
            continue
        is_empty = value in (None, "", [], {})
        if not is_empty:
            contents.details.append((str(name)[:_FIELD_CHARS], short(as_mapping(value))))


def _add_tools(turn: dict[str, Any], tools: Sequence[str]) -> None:
    own = turn.get("tools_used", [])
    # What is no list is refused by the turn's own rule.
    if not isinstance(own, list | tuple):
        return
    # The caller's own stay all, so that too many of them are refused as ever.
    room = max(0, TOOLS_LIMIT - len(own))
    fresh = [tool for tool in dict.fromkeys(tools) if tool not in own]
    turn["tools_used"] = [*own, *fresh[:room]]
