"""Redact what an import brings, as the policies of the agents say that it is imported for."""

from __future__ import annotations

from typing import Any

from memory_app.db.vectors import sparse_text, vector_text
from memory_app.language.framing import unframed
from memory_app.language.keywords import keyword_weights
from memory_app.language.redaction import Rules, redact
from memory_app.language.text import canonical_key, terms
from memory_app.runtime import Runtime
from memory_app.tenancy.redaction import Redactor, note

Row = dict[str, Any]
Lists = dict[str, list[Any]]


def redacted_lists(runtime: Runtime, lists: Lists, rules: Rules) -> Lists:
    """The lists of a checked snapshot without private parts. Embeds the texts that changed; opens no transaction.

    An entity whose name is a private part is left out, with its mentions.
    """
    if not rules.is_on:
        return lists
    entities = [_with_summary(row, rules) for row in lists["entities"] if not _is_private(row, rules)]
    keys = {row["key"] for row in entities}
    return lists | {
        "nodes": _nodes(runtime, lists["nodes"], rules),
        "turns": [_turn(row, rules) for row in lists["turns"]],
        "sessions": [_with_summary(row, rules) for row in lists["sessions"]],
        "entities": [row if row["merged_into"] in keys else row | {"merged_into": None} for row in entities],
        "mentions": [row for row in lists["mentions"] if row["entity"] in keys],
    }


def _is_private(entity: Row, rules: Rules) -> bool:
    return any(redact(name, rules).counts for name in (entity["label"], *entity["aliases"]))


def _with_summary(row: Row, rules: Rules) -> Row:
    redactor = Redactor(rules)
    summary = redactor.optional(row["summary"])
    note(redactor.by_kind(), "import")
    return row | {"summary": summary}


def _turn(row: Row, rules: Rules) -> Row:
    redactor = Redactor(rules)
    redacted = row | {
        "text": redactor.text(row["text"]),
        "emotional_tone": redactor.optional(row["emotional_tone"]),
        "metadata": redactor.json(row["metadata"]),
    }
    counts = redactor.by_kind()
    if not counts:
        return row
    note(counts, "import")
    before = row.get("redacted") or {}
    redacted["redacted"] = {kind: before.get(kind, 0) + counts.get(kind, 0) for kind in {**before, **counts}}
    # What search reads of it was made of the old text: a worker indexes it as if it were new.
    redacted |= dict.fromkeys(("embedding", "embedding_model", "keywords", "terms"))
    if row["failed_at"] is None:
        redacted["indexed_at"] = None
    return redacted


def _nodes(runtime: Runtime, nodes: list[Row], rules: Rules) -> list[Row]:
    redacted = [_node(row, rules) for row in nodes]
    changed = [place for place, (row, new) in enumerate(zip(nodes, redacted, strict=True)) if row is not new]
    embedded = [place for place in changed if redacted[place]["embedding"] is not None]
    texts = [unframed(redacted[place]["text"]) for place in embedded]
    if texts:
        for place, vector in zip(embedded, runtime.embedder.embed(texts), strict=True):
            redacted[place] |= {
                # As PostgreSQL writes vectors, which a snapshot holds.
                "embedding": vector_text(vector),
                "embedding_model": runtime.embedder.model,
            }
    return redacted


def _node(row: Row, rules: Rules) -> Row:
    """The row itself where nothing of it is private."""
    redactor = Redactor(rules)
    text = redactor.text(row["text"])
    changed = row | {
        "text": text,
        "tags": list(redactor.texts(tuple(row["tags"]))),
        "emotional_state": redactor.json(row["emotional_state"]),
        "relational_context": redactor.json(row["relational_context"]),
    }
    ends = [redactor.optional(row[name]) for name in ("subject", "object")]
    counts = redactor.by_kind()
    if not counts:
        return row
    note(counts, "import")
    if ends != [row["subject"], row["object"]]:
        # Two numbers of one person would be one fact without their digits: what remains is what the text says.
        changed |= dict.fromkeys(("subject", "relation", "object", "subject_key", "object_key"))
        changed["single_valued"] = False
    weights = keyword_weights(terms(text))
    changed |= {"canonical_key": canonical_key(text), "terms": sorted(weights)}
    changed["keywords"] = sparse_text(weights) if row["keywords"] is not None else None
    return changed
