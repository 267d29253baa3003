"""The form of a snapshot: a JSON document that names its version, its embedder and its normaliser. Pure.

What is wrong with a document is said before anything of it is stored, with the path of the part. What a row holds
stands in `snapshot_rows`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any

from memory_app.errors import InvalidInput
from memory_app.language.text import NORMALISER_VERSION, canonical_key
from memory_app.records.scope import Scope
from memory_app.transfer.snapshot_rows import COUNT, FLAG, INSTANT, LISTS, check_rows, wrong

Row = Mapping[str, Any]

FORMAT = "memory-snapshot"
VERSION = 1


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
        raise wrong("snapshot", "a JSON object is needed")
    if given.get("format") != FORMAT:
        raise wrong("format", f"this is no snapshot; {FORMAT!r} is needed")
    if given.get("version") != VERSION:
        raise wrong("version", f"version {VERSION} is needed; export it again with a version that fits")
    if not INSTANT.fits(given.get("created_at")):
        raise wrong("created_at", f"{INSTANT.said} is needed")
    _check_scope(given.get("scope"))
    _check_embedder(given.get("embedder"), model, dimensions)
    for name in LISTS:
        _check_list(given.get(name), name)
    _check_counts(given.get("counts"), given)
    for name in LISTS:
        check_rows(name, given[name])
    _check_canonical(given.get("canonical"), given["nodes"])
    _check_references(given)
    _check_places(given["turns"], given["sessions"])
    for name in ("nodes", "turns"):
        _check_vectors(given[name], name, model, dimensions)


def heads_first(rows: Sequence[Row], name: str, *, key: str, head: str) -> list[Row]:
    """The rows in such an order that the one that ``head`` names stands before the one that names it.

    Raises `InvalidInput` where rows lead back to themselves: who follows them would never come to an end.
    """
    by_key = {row[key]: row for row in rows}
    placed: dict[Any, Row] = {}
    for place, row in enumerate(rows):
        chain: dict[Any, Row] = {}
        follower: Row | None = row
        while follower is not None and follower[key] not in placed:
            if follower[key] in chain:
                raise wrong(f"{name}[{place}].{head}", "leads back to where it began")
            chain[follower[key]] = follower
            follower = None if follower[head] is None else by_key[follower[head]]
        placed.update(reversed(chain.items()))
    return list(placed.values())


def _check_scope(named: Any) -> None:
    if not isinstance(named, Mapping):
        raise wrong("scope", "agent, user, session and is_seeded are needed")
    for part in ("agent", "user", "session", "is_seeded"):
        if part not in named:
            raise wrong(f"scope.{part}", "is missing")
    try:
        Scope(named["agent"], named["user"], named["session"])
    except InvalidInput as error:
        raise wrong(f"scope.{error.field}", error.message.partition(": ")[2]) from error
    if not FLAG.fits(named["is_seeded"]):
        raise wrong("scope.is_seeded", f"{FLAG.said} is needed: whether default memories were stored")


def _check_list(rows: Any, name: str) -> None:
    if not isinstance(rows, list):
        raise wrong(name, "a list of objects is needed")
    for place, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise wrong(f"{name}[{place}]", "an object is needed")


def _check_counts(named: Any, given: Row) -> None:
    if not isinstance(named, Mapping):
        raise wrong("counts", "how many rows each list has is needed")
    for name in LISTS:
        if not COUNT.fits(named.get(name)):
            raise wrong(f"counts.{name}", f"{COUNT.said} is needed")
        if named[name] != len(given[name]):
            raise wrong(
                f"counts.{name}", f"{named[name]} are named, but the list {name} has {len(given[name])}"
            )


def _check_embedder(named: Any, model: str, dimensions: int) -> None:
    if not isinstance(named, Mapping):
        raise wrong("embedder", "kind, model and dimensions are needed")
    wanted = embedder_meta(model, dimensions)
    for part in ("model", "dimensions", "kind"):
        if named.get(part) != wanted[part]:
            raise wrong(
                f"embedder.{part}",
                f"the snapshot was made with another embedder than {model} of {dimensions} dimensions; "
                "start with that one, import, and embed anew afterwards",
            )


def _check_canonical(named: Any, nodes: Sequence[Mapping[str, Any]]) -> None:
    if not isinstance(named, Mapping) or named.get("version") != NORMALISER_VERSION:
        raise wrong("canonical.version", f"normaliser version {NORMALISER_VERSION} is needed")
    for place, node in enumerate(nodes):
        if node.get("canonical_key") != canonical_key(node["text"]):
            raise wrong(f"nodes[{place}].canonical_key", "does not belong to the text")
    if named.get("hash") != canonical_meta(nodes)["hash"]:
        raise wrong("canonical.hash", "does not belong to the nodes; some are missing or were added")


def _check_references(given: Row) -> None:
    known = {
        "node": {node["id"] for node in given["nodes"]},
        "entity": {entity["key"] for entity in given["entities"]},
        "session": {session["name"] for session in given["sessions"]},
        "turn": {turn["id"] for turn in given["turns"]},
    }
    for name, row_parts in _REFERENCES.items():
        for place, row in enumerate(given[name]):
            for part, target in row_parts:
                # Where null does not fit, `check_rows` has refused it.
                if row[part] is not None and row[part] not in known[target]:
                    raise wrong(f"{name}[{place}].{part}", f"leads to no {target} of the snapshot")


def _check_places(turns: Sequence[Row], sessions: Sequence[Row]) -> None:
    """A turn beyond the session's end would stand in the way of the next one."""
    ends = {session["name"]: session["next_seq"] for session in sessions}
    for place, session in enumerate(sessions):
        if session["extracted_seq"] >= session["next_seq"]:
            raise wrong(f"sessions[{place}].extracted_seq", "lies beyond the end of the session, next_seq")
    for place, turn in enumerate(turns):
        if turn["seq"] >= ends[turn["session"]]:
            raise wrong(f"turns[{place}].seq", "lies beyond the end of its session, next_seq")


def _check_vectors(rows: Sequence[Row], name: str, model: str, dimensions: int) -> None:
    for place, row in enumerate(rows):
        if row["embedding_model"] == model and row["embedding"].count(",") + 1 != dimensions:
            raise wrong(f"{name}[{place}].embedding", f"a vector of {dimensions} dimensions is needed")


_REFERENCES: Mapping[str, Sequence[tuple[str, str]]] = {
    "nodes": (("successor", "node"), ("session", "session")),
    "links": (("source_id", "node"), ("target_id", "node")),
    "entities": (("merged_into", "entity"),),
    "mentions": (("memory_id", "node"), ("entity", "entity")),
    "turns": (("session", "session"),),
    "evidence": (("memory_id", "node"), ("turn_id", "turn")),
}
