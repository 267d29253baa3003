"""What the rows of a snapshot hold, and what those of an older release may lack."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from memory_app.errors import InvalidInput
from memory_app.transfer import snapshot_rows
from memory_app.transfer.snapshot_rows import FIELDS, check_rows, later_fields

LINK = {
    "source_id": "019af0c2-7d1e-7cc3-98c4-dc0c0c07398f",
    "target_id": "019af0c2-7d1e-7cc3-98c4-dc0c0c073990",
    "type": "similar_to",
    "weight": 0.5,
    "created_at": "2026-01-31T09:00:00+00:00",
}


@pytest.fixture
def note(monkeypatch: pytest.MonkeyPatch) -> None:
    """A release in which a link may have a note."""
    fields: Mapping[str, Any] = {**FIELDS["links"], **later_fields({"note": str})}
    monkeypatch.setattr(snapshot_rows, "FIELDS", {**FIELDS, "links": fields})


@pytest.mark.usefixtures("note")
def test_a_later_releases_field_may_be_missing_but_not_of_another_type() -> None:
    check_rows("links", [LINK])
    check_rows("links", [LINK | {"note": None}])
    check_rows("links", [LINK | {"note": "both about sailing"}])
    with pytest.raises(InvalidInput) as refused:
        check_rows("links", [LINK | {"note": 1}])
    assert refused.value.field == "links[0].note"


@pytest.mark.usefixtures("note")
def test_a_field_of_the_first_release_may_not_be_missing() -> None:
    with pytest.raises(InvalidInput) as refused:
        check_rows("links", [{name: value for name, value in LINK.items() if name != "weight"}])
    assert refused.value.field == "links[0].weight"
