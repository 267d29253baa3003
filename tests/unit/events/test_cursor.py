"""The place of an event as a text: in the order of places, and read back as it was."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_app.errors import InvalidInput
from memory_app.events.cursor import FIRST_ID, LAST_ID, LAST_SOURCE, Cursor
from memory_app.events.rows.changes import SOURCES

cursors = st.builds(
    Cursor,
    epoch=st.just("0123abcd"),
    number=st.integers(0, 2**63 - 1),
    source=st.integers(0, LAST_SOURCE),
    id=st.uuids(),
)


@given(cursors)
def test_a_cursor_is_read_as_it_was_written(cursor: Cursor) -> None:
    assert Cursor.read(str(cursor)) == cursor


@given(cursors, cursors)
def test_texts_are_in_the_order_of_places(one: Cursor, other: Cursor) -> None:
    places = [(cursor.number, cursor.source, cursor.id.int) for cursor in (one, other)]
    assert (places[0] < places[1]) == (str(one) < str(other))


@pytest.mark.parametrize(
    "text", ["", "oldest", "0123abcd", "0123abcd-0-0-0", "0123ABCD" + str(Cursor("0123abcd", 1))[8:]]
)
def test_what_is_no_cursor_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="after: "):
        Cursor.read(text)


def test_rows_of_the_own_number_are_read_on_from_source_and_id() -> None:
    cursor = Cursor("0123abcd", 7, 2, UUID(int=5))
    assert [cursor.lower_bound(source) for source in (1, 2, 3)] == [LAST_ID, UUID(int=5), FIRST_ID]


def test_every_source_has_a_place_in_a_cursor() -> None:
    # The last place stands for "all of this number".
    assert len(SOURCES) <= LAST_SOURCE
