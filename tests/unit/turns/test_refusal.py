"""Which messages come too late: those that were sent before what they carry was erased."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from memory_app.records.erased import UNTIMED, Refusal, refusal_of
from memory_app.records.statement import CLOCK_MARGIN
from memory_app.settings import Erasure

NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)
HOUR, SECOND = timedelta(hours=1), timedelta(seconds=1)


@pytest.mark.parametrize(
    ("sent_at", "erased_at", "expected"),
    [
        (None, None, None),
        (NOW - HOUR, None, None),
        (NOW - 2 * HOUR, NOW - HOUR, Refusal.SENT_BEFORE),
        (NOW - HOUR, NOW - HOUR, Refusal.SENT_BEFORE),
        (NOW - HOUR + SECOND, NOW - HOUR, None),
        (NOW, NOW - HOUR, None),
        (NOW - 400 * UNTIMED, NOW - 300 * UNTIMED, Refusal.SENT_BEFORE),
        (None, NOW - UNTIMED + SECOND, Refusal.UNTIMED),
        (None, NOW - UNTIMED, None),
        (NOW + CLOCK_MARGIN, NOW - HOUR, None),
        (NOW + CLOCK_MARGIN + SECOND, NOW - HOUR, Refusal.UNTIMED),
        (NOW + CLOCK_MARGIN + SECOND, NOW - UNTIMED, None),
    ],
)
def test_a_message_is_refused_when_it_is_older_than_the_erasure(
    sent_at: datetime | None, erased_at: datetime | None, expected: Refusal | None
) -> None:
    assert refusal_of(sent_at=sent_at, erased_at=erased_at, now=NOW) is expected


@given(
    st.integers(-10_000_000, 10_000_000),
    st.integers(0, 10_000_000),
)
def test_nothing_that_says_it_was_sent_before_is_ever_let_in(sent: int, erased: int) -> None:
    sent_at, erased_at = NOW + timedelta(seconds=sent), NOW - timedelta(seconds=erased)
    if sent_at <= erased_at:
        assert refusal_of(sent_at=sent_at, erased_at=erased_at, now=NOW) is Refusal.SENT_BEFORE


def test_secrets_are_read_newest_first_and_short_ones_refused() -> None:
    old, new = "o" * 32, "n" * 32

    assert Erasure(secret=f"{new}, {old}").secrets == (new.encode(), old.encode())  # type: ignore[arg-type]
    assert Erasure().secrets == Erasure(secret="").secrets == ()  # type: ignore[arg-type]
    with pytest.raises(ValidationError, match="at least 32"):
        Erasure(secret=f"{new},short")  # type: ignore[arg-type]
