"""Check the form of a snapshot: a JSON document that names its version, its embedder and its normaliser. Pure.

A document is checked as a whole before anything of it is stored; an error names the path of the part. The fields of
the rows are in `snapshot_rows`.
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
    # A number at the end is the dimensions, as in hash-256; text-embedding-3-small has none and is its own kind.
    return {"kind": kind if tail.isdecimal() else model, "model": model, "dimensions": dimensions}


def check_snapshot(document: Any, *, model: str, dimensions: int) -> None:
    """Raise `InvalidInput` naming the first part of ``document`` that does not fit this system or itself."""
    if not isinstance(document, Mapping):
        raise wrong("snapshot", "a JSON object is required")
    _check_header(document)
    _check_scope(document.get("scope"))
    _check_embedder(document.get("embedder"), model, dimensions)
    # From the outside in: each check relies on the form that the checks before it have made sure of.
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

    Raises `InvalidInput` where rows lead back to themselves.
    """
    by_key = {row[key]: row for row in rows}
    ordered: dict[Any, Row] = {}
    for place, row in enumerate(rows):
        chain: dict[Any, Row] = {}
        current: Row | None = row
        while current is not None and current[key] not in ordered:
            # A cycle would also keep readers that follow successors from ever coming to an end.
            if current[key] in chain:
                raise wrong(f"{name}[{place}].{head}", "leads back to where it began")
            chain[current[key]] = current
            current = None if current[head] is None else by_key[current[head]]
        ordered.update(reversed(chain.items()))
    return list(ordered.values())


def _check_header(document: Row) -> None:
    if document.get("format") != FORMAT:
        raise wrong("format", f"this is no snapshot; {FORMAT!r} is required")
    if document.get("version") != VERSION:
        raise wrong("version", f"version {VERSION} is required; export it again with a version that fits")
    if not INSTANT.fits(document.get("created_at")):
        raise wrong("created_at", f"{INSTANT.description} is required")


def _check_scope(scope: Any) -> None:
    if not isinstance(scope, Mapping):
        raise wrong("scope", "agent, user, session and is_seeded are required")
    for part in ("agent", "user", "session", "is_seeded"):
        if part not in scope:
            raise wrong(f"scope.{part}", "is missing")
    try:
        Scope(scope["agent"], scope["user"], scope["session"])
    except InvalidInput as error:
        # The message of a scope begins with the field, which the path has already.
        raise wrong(f"scope.{error.field}", error.message.partition(": ")[2]) from error
    if not FLAG.fits(scope["is_seeded"]):
        raise wrong(
            "scope.is_seeded", f"{FLAG.description} is required: whether default memories were stored"
        )


def _check_list(rows: Any, name: str) -> None:
    if not isinstance(rows, list):
        raise wrong(name, "a list of objects is required")
    for place, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise wrong(f"{name}[{place}]", "an object is required")


def _check_counts(counts: Any, document: Row) -> None:
    if not isinstance(counts, Mapping):
        raise wrong("counts", "the number of rows of each list is required")
    for name in LISTS:
        count = counts.get(name)
        length = len(document[name])
        if not COUNT.fits(count):
            raise wrong(f"counts.{name}", f"{COUNT.description} is required")
        # A document that was cut and closed again by hand is still valid JSON; only the counts tell.
        if count != length:
            raise wrong(f"counts.{name}", f"{count} are named, but the list {name} has {length}")


def _check_embedder(embedder: Any, model: str, dimensions: int) -> None:
    if not isinstance(embedder, Mapping):
        raise wrong("embedder", "kind, model and dimensions are required")
    expected = embedder_meta(model, dimensions)
    # The model first: it says most about what to start with.
    for part in ("model", "dimensions", "kind"):
        if embedder.get(part) != expected[part]:
            raise wrong(
                f"embedder.{part}",
                f"the snapshot was made with another embedder than {model} of {dimensions} dimensions; "
                "start with that one, import, and embed anew afterwards",
            )


def _check_canonical(canonical: Any, nodes: Sequence[Row]) -> None:
    if not isinstance(canonical, Mapping) or canonical.get("version") != NORMALISER_VERSION:
        raise wrong("canonical.version", f"normaliser version {NORMALISER_VERSION} is required")
    for place, node in enumerate(nodes):
        # With a wrong key a repeated statement would not be recognised, and would be stored twice.
        if node.get("canonical_key") != canonical_key(node["text"]):
            raise wrong(f"nodes[{place}].canonical_key", "does not belong to the text")
    if canonical.get("hash") != canonical_meta(nodes)["hash"]:
        raise wrong("canonical.hash", "does not belong to the nodes; some are missing or were added")


def _check_references(document: Row) -> None:
    # None is a target everywhere: where null does not fit, `check_rows` has refused it.
    targets = {
        "node": {None, *(node["id"] for node in document["nodes"])},
        "entity": {None, *(entity["key"] for entity in document["entities"])},
        "session": {None, *(session["name"] for session in document["sessions"])},
        "turn": {None, *(turn["id"] for turn in document["turns"])},
    }
    for name, references in _REFERENCES.items():
        for place, row in enumerate(document[name]):
            for part, target in references:
                if row[part] not in targets[target]:
                    raise wrong(f"{name}[{place}].{part}", f"leads to no {target} of the snapshot")


def _check_places(turns: Sequence[Row], sessions: Sequence[Row]) -> None:
    ends = {session["name"]: session["next_seq"] for session in sessions}
    for place, session in enumerate(sessions):
        # Turns up to extracted_seq count as read, so the next turns of the session would never be extracted.
        if session["extracted_seq"] >= session["next_seq"]:
            raise wrong(f"sessions[{place}].extracted_seq", "lies beyond the end of the session, next_seq")
    for place, turn in enumerate(turns):
        # The next turn of the session takes next_seq, which must be free.
        if turn["seq"] >= ends[turn["session"]]:
            raise wrong(f"turns[{place}].seq", "lies beyond the end of its session, next_seq")


def _check_vectors(rows: Sequence[Row], name: str, *, model: str, dimensions: int) -> None:
    for place, row in enumerate(rows):
        # Rows of another model are embedded again after the import, so their vectors may be of any length.
        if row["embedding_model"] == model and row["embedding"].count(",") + 1 != dimensions:
            raise wrong(f"{name}[{place}].embedding", f"a vector of {dimensions} dimensions is required")


_REFERENCES: Mapping[str, Sequence[tuple[str, str]]] = {
    "nodes": (("successor", "node"), ("session", "session")),
    "links": (("source_id", "node"), ("target_id", "node")),
    "entities": (("merged_into", "entity"),),
    "mentions": (("memory_id", "node"), ("entity", "entity")),
    "turns": (("session", "session"),),
    "evidence": (("memory_id", "node"), ("turn_id", "turn")),
}
