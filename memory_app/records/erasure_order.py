"""What the run of an erasure that waits for its turn says of what is to be erased."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def erasure_order(of: str, names: Sequence[str]) -> dict[str, Any]:
    """The options of the run: the kind of thing, and its names or its id. Two orders of the same are equal."""
    return {"of": of, "target": list(names), "dry_run": False}
