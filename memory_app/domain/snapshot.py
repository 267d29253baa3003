"""The form of a snapshot: a JSON document that names its version, its embedder and its normaliser. Pure.

What is wrong with a document is said before anything of it is stored, with the path of the part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any
from uuid import UUID

from memory_app.domain.kinds import KINDS
from memory_app.domain.text import NORMALISER_VERSION, canonical_key
from memory_app.errors import InvalidInput

FORMAT = "memory-snapshot"
VERSION = 1

LISTS = ("nodes", "links", "entities", "mentions", "sessions", "turns", "evidence")
"""Every list of rows. A checkpoint of a session leaves the last three empty."""


def canonical_meta(nodes: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The normaliser's version, and one hash over the keys it gave the nodes."""
    joined = "\n".join(sorted(str(node["canonical_key"]) for node in nodes))
    return {"version": NORMALISER_VERSION, "hash": blake2b(joined.encode(), digest_size=16).hexdigest()}


def embedder_meta(model: str, dimensions: int) -> dict[str, Any]:
    """Kind, model and dimensions: ``hash-256`` is of the kind ``hash``."""
    kind, _, tail = model.rpartition("-")
    return {"kind": kind if tail.isdecimal() else model, "model": model, "dimensions": dimensions}


def check_snapshot(given: Any, *, model: str, dimensions: int) -> None:
    """Raise `InvalidInput` naming the first part of ``given`` that does not fit this system or itself."""
    if not isinstance(given, Mapping):
        raise _wrong("snapshot", "a JSON object is needed")
    if given.get("format") != FORMAT:
        raise _wrong("format", f"this is no snapshot; {FORMAT!r} is needed")
    if given.get("version") != VERSION:
        raise _wrong("version", f"version {VERSION} is needed; export it again with a version that fits")
    _check_embedder(given.get("embedder"), model, dimensions)
    for name in LISTS:
        if not isinstance(given.get(name), list) or not all(isinstance(row, Mapping) for row in given[name]):
            raise _wrong(name, "a list of objects is needed")
    _check_nodes(given["nodes"])
    _check_canonical(given.get("canonical"), given["nodes"])
    _check_references(given)


def _check_embedder(named: Any, model: str, dimensions: int) -> None:
    if not isinstance(named, Mapping):
        raise _wrong("embedder", "kind, model and dimensions are needed")
    wanted = embedder_meta(model, dimensions)
    for part in ("model", "dimensions"):
        if named.get(part) != wanted[part]:
            raise _wrong(
                f"embedder.{part}",
                f"the snapshot was made with another embedder than {model} of {dimensions} dimensions; "
                "start with that one, import, and embed anew afterwards",
            )


def _check_nodes(nodes: Sequence[Mapping[str, Any]]) -> None:
    for place, node in enumerate(nodes):
        path = f"nodes[{place}]"
        _id(node.get("id"), f"{path}.id")
        if not isinstance(node.get("text"), str) or not node["text"].strip():
            raise _wrong(f"{path}.text", "is needed")
        if node.get("kind") not in KINDS:
            raise _wrong(f"{path}.kind", f"one of {', '.join(KINDS)}")
    ids = [node["id"] for node in nodes]
    if len(set(ids)) != len(ids):
        raise _wrong("nodes", "an id stands twice")


def _check_canonical(named: Any, nodes: Sequence[Mapping[str, Any]]) -> None:
    if not isinstance(named, Mapping) or named.get("version") != NORMALISER_VERSION:
        raise _wrong("canonical.version", f"normaliser version {NORMALISER_VERSION} is needed")
    for place, node in enumerate(nodes):
        if node.get("canonical_key") != canonical_key(node["text"]):
            raise _wrong(f"nodes[{place}].canonical_key", "does not belong to the text")
    if named.get("hash") != canonical_meta(nodes)["hash"]:
        raise _wrong("canonical.hash", "does not belong to the nodes; some are missing or were added")


def _check_references(given: Mapping[str, Any]) -> None:
    nodes = {node["id"] for node in given["nodes"]}
    keys = {entity.get("key") for entity in given["entities"]}
    sessions = {session.get("name") for session in given["sessions"]}
    turns = {_id(turn.get("id"), f"turns[{place}].id") for place, turn in enumerate(given["turns"])}
    known: Mapping[str, set[Any]] = {
        "node": nodes,
        "entity": keys,
        "session": sessions | {None},
        "turn": turns,
    }
    for name, row_parts in _REFERENCES.items():
        for place, row in enumerate(given[name]):
            for part, target in row_parts:
                value = row.get(part)
                is_open = value is None and part in ("successor", "merged_into", "session")
                if not is_open and value not in known[target]:
                    raise _wrong(f"{name}[{place}].{part}", f"leads to no {target} of the snapshot")


_REFERENCES: Mapping[str, Sequence[tuple[str, str]]] = {
    "nodes": (("successor", "node"), ("session", "session")),
    "links": (("source_id", "node"), ("target_id", "node")),
    "entities": (("merged_into", "entity"),),
    "mentions": (("memory_id", "node"), ("entity", "entity")),
    "turns": (("session", "session"),),
    "evidence": (("memory_id", "node"), ("turn_id", "turn")),
}


def _id(value: Any, path: str) -> str:
    try:
        return str(UUID(value))
    except (TypeError, ValueError, AttributeError):
        raise _wrong(path, "an id is a UUID") from None


def _wrong(path: str, what: str) -> InvalidInput:
    return InvalidInput(f"{path}: {what}; nothing was imported", field=path)
