"""A time limit that strikes in the middle of a statement is told as what it is, not as an outage of the database."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from sqlalchemy import text

from memory_app.db.db import transaction
from memory_app.runtime import Runtime


class Struck(Exception):
    """What the signal raises, as a soft time limit does."""


@contextmanager
def struck_after(seconds: float) -> Iterator[None]:
    def strike(*_: object) -> None:
        raise Struck

    before = signal.signal(signal.SIGALRM, strike)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.timeout(0)
def test_what_interrupts_a_statement_goes_on_as_it_is(runtime: Runtime) -> None:
    with pytest.raises(Struck), struck_after(0.3), transaction(runtime.engine, None) as connection:
        connection.execute(text("SELECT pg_sleep(5)"))
    with transaction(runtime.engine, None) as connection:
        assert connection.execute(text("SELECT 1")).scalar_one() == 1
