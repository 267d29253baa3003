"""A receipt as a line: nothing is lost, nobody is named, and what is wrong with a line is said."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from uuid import UUID

import pytest

from memory_app.errors import InvalidInput
from memory_app.forget.receipt import (
    Receipt,
    Seal,
    Subject,
    parse_receipt,
    receipt_line,
    seal_of,
)
from memory_app.tenancy.digests import Digests, session_name

PLAIN, SEALED = Digests(), Digests((b"secret",))
RECEIPT = Receipt(
    id=UUID("0197aaaa-0000-7000-8000-000000000001"),
    tenant_id=3,
    tenant="acme",
    of=Subject.USER,
    digests=(Digests().new(3, "user", "mira"),),
    erased_at=datetime(2026, 3, 2, 10, 30, tzinfo=UTC),
    counts={"turns": 4},
)


def test_a_line_gives_the_receipt_back() -> None:
    assert parse_receipt(receipt_line(RECEIPT, PLAIN)) == RECEIPT


def test_a_line_names_nobody() -> None:
    assert "mira" not in receipt_line(RECEIPT, PLAIN)


def test_a_sealed_line_is_valid_until_anything_in_it_changes() -> None:
    line = receipt_line(RECEIPT, SEALED)

    assert parse_receipt(line) == RECEIPT
    assert seal_of(line, SEALED) is seal_of(line, Digests((b"new", b"secret"))) is Seal.VALID
    # Whoever keeps it may spell it in another way.
    assert seal_of(json.dumps(dict(reversed(json.loads(line).items()))), SEALED) is Seal.VALID
    for field, value in json.loads(line).items():
        changed = json.loads(line) | {field: value + 1 if isinstance(value, int) else "other"}
        assert seal_of(json.dumps(changed), SEALED) is Seal.WRONG, field


def test_a_seal_of_another_secret_or_none_is_told() -> None:
    line = receipt_line(RECEIPT, SEALED)

    assert seal_of(line, Digests((b"other",))) is seal_of(line, PLAIN) is Seal.WRONG
    assert seal_of(json.dumps(json.loads(line) | {"seal": 7}), SEALED) is Seal.WRONG
    assert seal_of(receipt_line(RECEIPT, PLAIN), SEALED) is Seal.ABSENT


def test_the_digest_of_a_name_differs_by_kind_and_by_tenant() -> None:
    for made in (Digests(), Digests((b"secret",))):
        digests = {made.new(tenant, of, "mira") for tenant in (1, 2) for of in ("user", "session")}
        assert len(digests) == 4


def test_a_digest_with_a_secret_is_not_that_of_the_name_alone() -> None:
    assert Digests((b"one",)).new(1, "user", "mira") != Digests((b"two",)).new(1, "user", "mira")
    assert Digests().new(1, "user", "mira") not in Digests((b"one",)).possible(1, "user", "mira")[:1]


def test_what_was_made_under_an_older_secret_or_none_is_known_still() -> None:
    possible = Digests((b"new", b"old")).possible(1, "user", "mira")

    assert possible[0] == Digests((b"new", b"old")).new(1, "user", "mira")
    for earlier in (Digests((b"old",)), Digests()):
        assert earlier.new(1, "user", "mira") in possible


def test_a_secret_is_never_shown() -> None:
    assert "hidden" not in repr(Digests((b"hidden",)))


def test_sessions_of_two_users_have_other_names() -> None:
    assert session_name("ada", "mira", "x") != session_name("ada", "mirax", "")


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ('{"format": "memory-era', "not JSON"),
        ("[]", "no receipt"),
        ('{"format": "memory-snapshot"}', "no receipt"),
        (json.dumps(json.loads(receipt_line(RECEIPT, PLAIN)) | {"version": 2}), "version 2"),
        (json.dumps(json.loads(receipt_line(RECEIPT, PLAIN)) | {"of": "planet"}), "planet"),
        (json.dumps(json.loads(receipt_line(RECEIPT, PLAIN)) | {"digests": []}), "digests"),
        (json.dumps(json.loads(receipt_line(RECEIPT, PLAIN)) | {"erased_at": "2026-03-02T10:30:00"}), "zone"),
        (json.dumps({"format": "memory-erasure", "version": 1}), "missing"),
    ],
)
def test_a_line_that_is_no_receipt_is_refused_with_the_reason(line: str, part: str) -> None:
    with pytest.raises(InvalidInput, match=part):
        parse_receipt(line)
