"""Whose memory an MCP client may use: what the command line fixes, and what it leaves to the arguments of a call.

A part that is fixed is no argument any more, so a call cannot name another agent, user or session.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from memory_app.errors import InvalidInput
from memory_app.records.scope import Scope, check_name
from memory_app.tools.answers import Json
from memory_app.tools.arguments import schema_of
from memory_app.tools.calls import Tool

_DESCRIPTIONS = {
    "agent": "The agent that remembers.",
    "user": "The person remembered.",
    "session": "The conversation.",
}


@dataclass(frozen=True, slots=True)
class Bounds:
    """The fixed parts of the scope; None leaves a part to the caller."""

    agent: str | None = None
    user: str | None = None
    session: str | None = None

    def __post_init__(self) -> None:
        for name in _DESCRIPTIONS:
            if getattr(self, name) is not None:
                check_name(getattr(self, name), field=name)

    def open_parts(self, tool: Tool) -> dict[str, bool]:
        """The parts that a call of the tool names, and whether it must."""
        parts = {name: True for name in ("agent", "user") if getattr(self, name) is None}
        if self.session is None and tool.takes_session:
            parts["session"] = tool.needs_session
        return parts

    def schema(self, tool: Tool) -> Json:
        """The JSON schema of the tool's arguments with the parts of the scope that are open."""
        schema = schema_of(tool.arguments)
        parts = self.open_parts(tool)
        scope = {name: {"type": "string", "description": _DESCRIPTIONS[name]} for name in parts}
        required = [name for name, is_required in parts.items() if is_required]
        return {
            **schema,
            "properties": {**scope, **schema["properties"]},
            "required": [*required, *schema["required"]],
        }

    def split(self, tool: Tool, arguments: Mapping[str, Any]) -> tuple[Scope, dict[str, Any]]:
        """The scope of a call, and the arguments of the tool itself. Raises `InvalidInput` naming the part."""
        rest = dict(arguments)
        names = {name: getattr(self, name) for name in _DESCRIPTIONS}
        for name, is_required in self.open_parts(tool).items():
            names[name] = rest.pop(name, None)
            if is_required and names[name] is None:
                raise InvalidInput(f"{name}: is required; {_DESCRIPTIONS[name].lower()}", field=name)
        for name in names:
            if name in rest and names[name] is not None:
                raise InvalidInput(f"{name}: is fixed for this server; leave it out", field=name)
        session = names["session"] if tool.takes_session else None
        return Scope(names["agent"], names["user"], session), rest
