"""Sessions of the page: what a signature stands for, and when it stands for nothing."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from memory_app.page.session import Session, Signer, begin

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
SIGNER = Signer((b"new" * 11, b"old" * 11))


def test_a_session_comes_back_from_its_cookie() -> None:
    session = begin(7, 3, now=NOON, life=HOUR)

    assert SIGNER.session(SIGNER.cookie(session), now=NOON) == session


def test_a_session_ends_with_its_time() -> None:
    cookie = SIGNER.cookie(begin(7, 3, now=NOON, life=HOUR))

    assert SIGNER.session(cookie, now=NOON + timedelta(minutes=59)) is not None
    assert SIGNER.session(cookie, now=NOON + HOUR) is None


def test_two_sessions_of_a_key_are_not_the_same() -> None:
    assert begin(7, 3, now=NOON, life=HOUR) != begin(7, 3, now=NOON, life=HOUR)


@pytest.mark.parametrize("part", range(5))
def test_a_cookie_with_another_part_is_none(part: int) -> None:
    parts = SIGNER.cookie(Session(7, 3, 2_000_000_000, "nonce")).split(".")
    assert SIGNER.session(".".join(parts), now=NOON) is not None

    parts[part] = {0: "8", 1: "4", 2: "2000000001", 3: "other", 4: parts[4][::-1]}[part]

    assert SIGNER.session(".".join(parts), now=NOON) is None


@pytest.mark.parametrize("cookie", ["", ".", "1.2.3", "é", "\ud800.x", "1.2.3.4.5", "x" * 5_000])
def test_what_is_no_cookie_of_ours_is_none(cookie: str) -> None:
    assert SIGNER.session(cookie, now=NOON) is None


def test_the_secret_before_still_counts_and_another_does_not() -> None:
    session = begin(7, 3, now=NOON, life=HOUR)
    before = Signer((b"old" * 11,))
    stranger = Signer((b"none" * 8,))

    assert SIGNER.session(before.cookie(session), now=NOON) == session
    assert before.session(SIGNER.cookie(session), now=NOON) is None
    assert SIGNER.session(stranger.cookie(session), now=NOON) is None


def test_a_token_of_a_form_is_no_signature_of_a_session() -> None:
    session = begin(7, 3, now=NOON, life=HOUR)

    assert SIGNER.is_token(SIGNER.token(str(session)), str(session))
    assert not SIGNER.is_token(SIGNER.token("another"), str(session))
    assert SIGNER.session(f"{session}.{SIGNER.token(str(session))}", now=NOON) is None
