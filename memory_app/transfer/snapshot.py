"""Check the form of a snapshot: a JSON document that names its version, its embedder and its normaliser. Pure.

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
    """Return the normaliser's version, and one hash over the keys it gave the nodes."""
    joined = "\n".join(sorted(str(node["canonical_key"]) for node in nodes))
    return {"version": NORMALISER_VERSION, "hash": blake2b(joined.encode(), digest_size=16).hexdigest()}


def embedder_meta(model: str, dimensions: int) -> dict[str, Any]:
    """Return kind, model and dimensions: ``hash-256`` is of the kind ``hash``."""
    kind, _, tail = model.rpartition("-")
    return {"kind": kind if tail.isdecimal() else model, "model": model, "dimensions": dimensions}


def check_snapshot(document: Any, *, model: str, dimensions: int) -> None:
    """Raise `InvalidInput` naming the first part of ``document`` that does not fit this system or itself."""
    if not isinstance(document, Mapping):
        raise wrong("snapshot", "a JSON object is needed")
    _check_header(document)
    _check_scope(document.get("scope"))
    _check_embedder(document.get("embedder"), model, dimensions)
    # From the outside in: each check relies on the form that those before it have seen.
    for name in LISTS:
        _check_list(document.get(name), name)
    _check_counts(document.get("counts"), document)
    for name in LISTS:
        check_rows(name, document[name])
    _check_canonical(document.get("canonical"), document["nodes"])
    _check_references(document)
    _check_places(document["turns"], document["sessions"])
    for name in ("nodes", "turns"):
        _check_vectors(document[name], name, model=model, dimensions=dimensions)


def heads_first(rows: Sequence[Row], name: str, *, key: str, head: str) -> list[Row]:
    """Return the rows in such an order that the one that ``head`` names stands before the one that names it.

    Raises `InvalidInput` where rows lead back to themselves: who follows them would never come to an end.
    """
    by_key = {row[key]: row for row in rows}
    ordered: dict[Any, Row] = {}
    for place, row in enumerate(rows):
        chain: dict[Any, Row] = {}
        follower: Row | None = row
        while follower is not None and follower[key] not in ordered:
            if follower[key] in chain:
                raise wrong(f"{name}[{place}].{head}", "leads back to where it began")
            chain[follower[key]] = follower
            follower = None if follower[head] is None else by_key[follower[head]]
        ordered.update(reversed(chain.items()))
    return list(ordered.values())


def _check_header(document: Row) -> None:
    if document.get("format") != FORMAT:
        raise wrong("format", f"this is no snapshot; {FORMAT!r} is needed")
    if document.get("version") != VERSION:
        raise wrong("version", f"version {VERSION} is needed; export it again with a version that fits")
    if not INSTANT.fits(document.get("created_at")):
        raise wrong("created_at", f"{INSTANT.said} is needed")


def _check_scope(scope: Any) -> None:
    if not isinstance(scope, Mapping):
        raise wrong("scope", "agent, user, session and is_seeded are needed")
    for part in ("agent", "user", "session", "is_seeded"):
        if part not in scope:
            raise wrong(f"scope.{part}", "is missing")
    try:
        Scope(scope["agent"], scope["user"], scope["session"])
    except InvalidInput as error:
        raise wrong(f"scope.{error.field}", error.message.partition(": ")[2]) from error
    if not FLAG.fits(scope["is_seeded"]):
        raise wrong("scope.is_seeded", f"{FLAG.said} is needed: whether default memories were stored")


def _check_list(rows: Any, name: str) -> None:
    if not isinstance(rows, list):
        raise wrong(name, "a list of objects is needed")
    for place, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise wrong(f"{name}[{place}]", "an object is needed")


def _check_counts(counts: Any, document: Row) -> None:
    if not isinstance(counts, Mapping):
        raise wrong("counts", "how many rows each list has is needed")
    for name in LISTS:
        count, length = counts.get(name), len(document[name])
        if not COUNT.fits(count):
            raise wrong(f"counts.{name}", f"{COUNT.said} is needed")
        if count != length:
            raise wrong(f"counts.{name}", f"{count} are named, but the list {name} has {length}")


def _check_embedder(embedder: Any, model: str, dimensions: int) -> None:
    if not isinstance(embedder, Mapping):
        raise wrong("embedder", "kind, model and dimensions are needed")
    expected = embedder_meta(model, dimensions)
    # The model first: a message about its kind would be less to the point.
    for part in ("model", "dimensions", "kind"):
        if embedder.get(part) != expected[part]:
            raise wrong(
                f"embedder.{part}",
                f"the snapshot was made with another embedder than {model} of {dimensions} dimensions; "
                "start with that one, import, and embed anew afterwards",
            )


def _check_canonical(canonical: Any, nodes: Sequence[Row]) -> None:
    if not isinstance(canonical, Mapping) or canonical.get("version") != NORMALISER_VERSION:
        raise wrong("canonical.version", f"normaliser version {NORMALISER_VERSION} is needed")
    for place, node in enumerate(nodes):
        if node.get("canonical_key") != canonical_key(node["text"]):
            raise wrong(f"nodes[{place}].canonical_key", "does not belong to the text")
    if canonical.get("hash") != canonical_meta(nodes)["hash"]:
        raise wrong("canonical.hash", "does not belong to the nodes; some are missing or were added")


def _check_references(document: Row) -> None:
    targets = {
        "node": {node["id"] for node in document["nodes"]},
        "entity": {entity["key"] for entity in document["entities"]},
        "session": {session["name"] for session in document["sessions"]},
        "turn": {turn["id"] for turn in document["turns"]},
    }
    for name, references in _REFERENCES.items():
        for place, row in enumerate(document[name]):
            for part, target in references:
                # Where null does not fit, `check_rows` has refused it.
                if row[part] is not None and row[part] not in targets[target]:
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


def _check_vectors(rows: Sequence[Row], name: str, *, model: str, dimensions: int) -> None:
    for place, row in enumerate(rows):
        # Rows of another model are embedded again after the import, so their vectors may be of any length.
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
