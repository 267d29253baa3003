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
from memory_app.transfer.snapshot_rows import COUNT, FLAG, INSTANT, LISTS, check_rows, require, wrong

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
    require(isinstance(document, Mapping), "snapshot", "a JSON object is required")
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
    require(document.get("format") == FORMAT, "format", f"this is no snapshot; {FORMAT!r} is required")
    problem = f"version {VERSION} is required; export it again with a version that fits"
    require(document.get("version") == VERSION, "version", problem)
    require(INSTANT.fits(document.get("created_at")), "created_at", f"{INSTANT.description} is required")


def _check_scope(scope: Any) -> None:
    require(isinstance(scope, Mapping), "scope", "agent, user, session and is_seeded are required")
    for part in ("agent", "user", "session", "is_seeded"):
        require(part in scope, f"scope.{part}", "is missing")
    try:
        Scope(scope["agent"], scope["user"], scope["session"])
    except InvalidInput as error:
        # The message of a scope begins with the field, which the path has already.
        raise wrong(f"scope.{error.field}", error.message.partition(": ")[2]) from error
    problem = f"{FLAG.description} is required: whether default memories were stored"
    require(FLAG.fits(scope["is_seeded"]), "scope.is_seeded", problem)


def _check_list(rows: Any, name: str) -> None:
    require(isinstance(rows, list), name, "a list of objects is required")
    for place, row in enumerate(rows):
        require(isinstance(row, Mapping), f"{name}[{place}]", "an object is required")


def _check_counts(counts: Any, document: Row) -> None:
    require(isinstance(counts, Mapping), "counts", "the number of rows of each list is required")
    for name in LISTS:
        count, length = counts.get(name), len(document[name])
        require(COUNT.fits(count), f"counts.{name}", f"{COUNT.description} is required")
        # A document that was cut and closed again by hand is still valid JSON; only the counts tell.
        problem = f"{count} are named, but the list {name} has {length}"
        require(count == length, f"counts.{name}", problem)


def _check_embedder(embedder: Any, model: str, dimensions: int) -> None:
    require(isinstance(embedder, Mapping), "embedder", "kind, model and dimensions are required")
    expected = embedder_meta(model, dimensions)
    problem = (
        f"the snapshot was made with another embedder than {model} of {dimensions} dimensions; "
        "start with that one, import, and embed anew afterwards"
    )
    # The model first: it says most about what to start with.
    for part in ("model", "dimensions", "kind"):
        require(embedder.get(part) == expected[part], f"embedder.{part}", problem)


def _check_canonical(canonical: Any, nodes: Sequence[Row]) -> None:
    problem = f"normaliser version {NORMALISER_VERSION} is required"
    has_version = isinstance(canonical, Mapping) and canonical.get("version") == NORMALISER_VERSION
    require(has_version, "canonical.version", problem)
    for place, node in enumerate(nodes):
        # With a wrong key a repeated statement would not be recognised, and would be stored twice.
        is_own_key = node.get("canonical_key") == canonical_key(node["text"])
        require(is_own_key, f"nodes[{place}].canonical_key", "does not belong to the text")
    problem = "does not belong to the nodes; some are missing or were added"
    require(canonical.get("hash") == canonical_meta(nodes)["hash"], "canonical.hash", problem)


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
        problem = "lies beyond the end of the session, next_seq"
        is_before_end = session["extracted_seq"] < session["next_seq"]
        require(is_before_end, f"sessions[{place}].extracted_seq", problem)
    for place, turn in enumerate(turns):
        # The next turn of the session takes next_seq, which must be free.
        is_before_end = turn["seq"] < ends[turn["session"]]
        require(is_before_end, f"turns[{place}].seq", "lies beyond the end of its session, next_seq")


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
