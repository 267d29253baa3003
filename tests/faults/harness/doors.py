"""Requests to every operation of the API, made from its own description, with given words in every field of text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode

Request = tuple[str, str, Any]
"""Method, path with its query, and body."""

DEPTH = 6
"""Of a body, below which nothing is filled in."""

ORDER = ("post", "get", "put", "patch", "delete")
"""What stores comes first, and what takes away last."""


@dataclass(frozen=True, slots=True)
class Doors:
    """How the operations of a description are called: with ``words`` for texts, and names and ids of what is there.

    ``names`` are parameters, and fields of bodies whose name is theirs. ``ids`` are by a part of the path,
    such as ``/memories/``; a path that none of them fits gets ``names["id"]``.
    """

    description: Mapping[str, Any]
    words: str
    names: Mapping[str, str]
    ids: Mapping[str, str] = field(default_factory=dict)

    def operations(self) -> Iterator[tuple[str, str]]:
        """Method and template of each operation whose answer comes to an end."""
        for method in ORDER:
            for path, operations in self.description["paths"].items():
                if method in operations and not _is_stream(operations[method]):
                    yield method, path

    def requests(self, method: str, template: str) -> Iterator[Request]:
        """An operation as it wants to be called, and wrongly: with words for a choice, a time or a number, with an
        unknown field, with words for the whole body."""
        operation = self.description["paths"][template][method]
        path = self._path(template, operation)
        queries = [parameter for parameter in operation.get("parameters", []) if parameter["in"] == "query"]
        schema = _body(operation)
        if schema is None:
            yield method.upper(), path, None
        for is_wrong in (False, True):
            query = {
                parameter["name"]: self.names.get(parameter["name"])
                or _text(self._fill(parameter["schema"], is_wrong))
                for parameter in queries
                if is_wrong or parameter.get("required")
            }
            address = f"{path}?{urlencode(query)}" if query else path
            if schema is not None:
                yield method.upper(), address, self._fill(schema, is_wrong)
            elif query:
                yield method.upper(), address, None
        if schema is not None:
            body = self._fill(schema, False)
            if isinstance(body, dict):
                yield method.upper(), path, body | {"surprise": self.words}
            yield method.upper(), path, self.words

    def _path(self, template: str, operation: Mapping[str, Any]) -> str:
        path = template
        for parameter in operation.get("parameters", []):
            if parameter["in"] == "path":
                name = parameter["name"]
                value = self._id(template) if name == "id" else self._key(template, name)
                path = path.replace(f"{{{name}}}", quote(value, safe=""))
        return path

    def _id(self, template: str) -> str:
        return next((id for part, id in self.ids.items() if part in template), self.names["id"])

    def _key(self, template: str, name: str) -> str:
        return next((id for part, id in self.ids.items() if part + "{" + name in template), self.names[name])

    def _fill(self, schema: Mapping[str, Any], is_wrong: bool, depth: int = 0) -> Any:
        """A value for a schema; where ``is_wrong``, words also where they do not fit."""
        if "$ref" in schema:
            name = schema["$ref"].rpartition("/")[2]
            return self._fill(self.description["components"]["schemas"][name], is_wrong, depth)
        for choice in ("anyOf", "oneOf", "allOf"):
            if choice in schema:
                first = next(part for part in schema[choice] if part.get("type") != "null")
                return self._fill(first, is_wrong, depth)
        if depth > DEPTH:
            return None
        match schema.get("type"):
            case "object":
                return self._object(schema, is_wrong, depth)
            case "array":
                return [self._fill(schema.get("items", {}), is_wrong, depth + 1)]
            case "string" | None:
                return self._string(schema, is_wrong)
            case kind:
                if is_wrong:
                    return self.words
                return False if kind == "boolean" else schema.get("minimum", 1)

    def _object(self, schema: Mapping[str, Any], is_wrong: bool, depth: int) -> dict[str, Any]:
        fields = schema.get("properties", {})
        if not fields:
            return {"note": self.words}
        return {
            name: self.names.get(name) or self._fill(part, is_wrong, depth + 1)
            for name, part in fields.items()
        }

    def _string(self, schema: Mapping[str, Any], is_wrong: bool) -> Any:
        if not is_wrong:
            if "const" in schema or "enum" in schema:
                return schema.get("const", schema.get("enum", [None])[0])
            if schema.get("format") == "date-time":
                return "2026-01-31T09:00:00+00:00"
        return self.words[: schema.get("maxLength", len(self.words))]


def _is_stream(operation: Mapping[str, Any]) -> bool:
    """Whether there is an answer that is a stream and nothing else."""
    contents = [answer.get("content", {}).keys() for answer in operation["responses"].values()]
    return any(types == {"text/event-stream"} for types in contents)


def _body(operation: Mapping[str, Any]) -> Mapping[str, Any] | None:
    content = operation.get("requestBody", {}).get("content", {})
    schema: Mapping[str, Any] | None = content.get("application/json", {}).get("schema")
    return schema


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
