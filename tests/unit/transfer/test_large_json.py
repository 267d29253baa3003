"""A large object read piece by piece is what `json.loads` reads, and lets others go on."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_app.web.large_json import Reader

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def read(body: bytes, size: int = 7, **limits: int) -> Any:
    return Reader(pieces(body, size), json.JSONDecoder(), **limits).read()


def pieces(body: bytes, size: int) -> Iterator[bytes]:
    return (body[start : start + size] for start in range(0, len(body), size))


@given(
    value=st.dictionaries(st.text(), VALUES, max_size=5),
    size=st.integers(1, 40),
    indent=st.none() | st.integers(0, 2),
    ascii_only=st.booleans(),
)
def test_it_reads_what_json_reads_wherever_the_body_is_cut(
    value: dict[str, Any], size: int, indent: int | None, ascii_only: bool
) -> None:
    body = json.dumps(value, indent=indent, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
    if not ascii_only and any(
        "\ud800" <= letter <= "\udfff" for letter in body.decode("utf-8", "surrogatepass")
    ):
        return
    assert read(body, size) == value


@pytest.mark.parametrize(
    "body",
    [
        b'{"a": [1, 2}',
        b'{"a": [1 2]}',
        b'{"a" 1}',
        b'{"a": 1,}',
        b'{"a": [1,]}',
        b'{"a": 1} x',
        b"{1: 2}",
        b'{"a": tru}',
        b'{"a": "b',
        b'{"a": [1, 2',
        b"{",
        b'{"a": "\xff"}',
        b'{"a": "\xc3',
    ],
)
def test_what_json_refuses_it_refuses(body: bytes) -> None:
    with pytest.raises(ValueError):
        json.loads(body)
    with pytest.raises(ValueError):
        read(body)


@pytest.mark.parametrize("body", [b"[1, 2]", b'"a"', b"1", b"", b"  ", b"null"])
def test_what_is_no_object_is_not_read(body: bytes) -> None:
    assert read(body) == []


def test_a_part_that_is_too_long_is_refused() -> None:
    assert read(json.dumps({"a": ["b" * 50] * 20}).encode(), piece_chars=100) == {"a": ["b" * 50] * 20}
    with pytest.raises(json.JSONDecodeError, match="too long"):
        read(json.dumps({"a": ["b" * 5000]}).encode(), piece_chars=100)


def test_the_event_loop_goes_on_while_a_large_object_is_read() -> None:
    body = json.dumps({"nodes": ["0123456789" * 100] * 30_000}).encode()
    turns = 0

    async def main() -> None:
        nonlocal turns
        reading = asyncio.ensure_future(asyncio.to_thread(read, body, 1_000_000))
        while not reading.done():
            await asyncio.sleep(0)
            turns += 1
        assert len((await reading)["nodes"]) == 30_000

    asyncio.run(main())
    assert turns > 2
