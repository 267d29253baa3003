"""A form with a file is read from the body itself, whatever stands in the file and however it is cut."""

from __future__ import annotations

import io
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_app.errors import InvalidInput
from memory_app.page import multipart

BOUNDARY = "----WebKitFormBoundaryx7"
TYPE = f"multipart/form-data; boundary={BOUNDARY}"


def body(*parts: tuple[str, bytes]) -> bytes:
    """A form as browsers write it; a value for ``file`` is that of a file."""
    lines = b""
    for name, value in parts:
        file = '; filename="chat “1”.txt"\r\nContent-Type: text/plain' if name == "file" else ""
        head = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"{file}\r\n\r\n'
        lines += head.encode() + value + b"\r\n"
    return lines + f"--{BOUNDARY}--\r\n".encode()


@given(
    content=st.binary(max_size=400)
    | st.sampled_from([b"", b"\r\n", b"--", b"\r\n--" + BOUNDARY[:-1].encode()]),
    chunk=st.integers(1, 90),
)
def test_the_file_comes_out_as_it_went_in(content: bytes, chunk: int) -> None:
    usual, multipart.CHUNK_BYTES = multipart.CHUNK_BYTES, chunk
    try:
        stream = io.BytesIO(body(("token", b"x"), ("file", content), ("session", "a\r\nü".encode())))
        form, file = multipart.read_form(stream, TYPE)
        assert file.read() == content
    finally:
        multipart.CHUNK_BYTES = usual
    assert form.fields == {"token": ["x"], "session": ["a\nü"]}


def test_a_form_without_a_file_has_an_empty_one() -> None:
    form, file = multipart.read_form(io.BytesIO(body(("token", b"x"))), TYPE)

    assert form.text("token") == "x" and file.read() == b""


WHOLE = body(("token", b"x"), ("file", b"content"))


@pytest.mark.parametrize(
    ("content", "type"),
    [
        (b"", TYPE),
        (WHOLE[:-4], TYPE),
        (WHOLE[:40], TYPE),
        (b"token=x", TYPE),
        (WHOLE, "application/x-www-form-urlencoded"),
        (WHOLE, "multipart/form-data"),
        (WHOLE, "multipart/form-data; boundary=other"),
        (WHOLE, "multipart/form-data; boundary=ü"),
        (body(("token", b"\xff")), TYPE),
        (body(*[("token", b"x")] * 600), TYPE),
        (WHOLE.replace(b"\r\n\r\n", b"\r\n"), TYPE),
    ],
    ids=["empty", "cut", "cut in a head", "no parts", "urlencoded", "no boundary", "other boundary", "odd boundary",
         "no text", "too many", "no blank line"],
)  # fmt: skip
def test_another_body_is_refused(content: bytes, type: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        multipart.read_form(io.BytesIO(content), type)
    assert refusal.value.field == "body"


def test_a_field_that_is_too_long_is_named() -> None:
    long: Any = body(("speakers", b"x" * (multipart.FIELD_BYTES + 1)))
    with pytest.raises(InvalidInput, match="speakers") as refusal:
        multipart.read_form(io.BytesIO(long), TYPE)
    assert refusal.value.field == "speakers"
