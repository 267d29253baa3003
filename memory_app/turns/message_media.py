"""Read a part of a chat message that is no text: a picture, a recording, a file, or what a later API may bring. Pure.

The words that it holds stand for it, else a mark such as ``[image: a dog]``. Its content is never copied.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from memory_app.language.marks import MarkKind, mark
from memory_app.turns.message_details import VALUE_CHARS, data_type

MARKS = {
    "image": MarkKind.IMAGE,
    "image_url": MarkKind.IMAGE,
    "image_file": MarkKind.IMAGE,
    "input_image": MarkKind.IMAGE,
    "audio": MarkKind.AUDIO,
    "input_audio": MarkKind.AUDIO,
    "video": MarkKind.VIDEO,
    "video_url": MarkKind.VIDEO,
    "input_video": MarkKind.VIDEO,
    "file": MarkKind.FILE,
    "input_file": MarkKind.FILE,
    "document": MarkKind.FILE,
}
"""Types of parts that are no text, and the mark that stands for them."""

CAPTIONS = ("caption", "alt", "alt_text", "title", "filename", "name")
DESCRIPTIONS = ("media_type", "format", "filename", "file_id", "detail")
"""Fields that say what a part is, and go to the details."""

LAYERS = ("source", "file", "image_url")
"""Fields in which a part may hold an object that says more of it, beside the one named like its type."""

Part = Mapping[str, Any]


def text_of(part: Part, kind: str) -> str:
    """The words in the part, or the mark that stands for it."""
    layers = _layers(part, kind)
    # What was said in a recording are words of the speaker.
    words = _first_text(layers, ("transcript", "text"))
    if words:
        return words
    if kind in MARKS:
        return mark(MARKS[kind], _first_text(layers, CAPTIONS))
    return mark(MarkKind.PART, kind)


def details_of(part: Part, kind: str) -> dict[str, Any]:
    """What is worth keeping of the part: its type, what describes it, and where its content lies."""
    details: dict[str, Any] = {"type": kind}
    layers = _layers(part, kind)
    # The inner object comes second: it says it more exactly.
    for layer in layers:
        for name in DESCRIPTIONS:
            text = _text(layer.get(name))
            if text:
                details[name] = text[:VALUE_CHARS]
    return details | _address(part, layers)


def _layers(part: Part, kind: str) -> list[Part]:
    """The part, and the objects in it that say more."""
    inner = [part.get(name) for name in (kind, *LAYERS)]
    return [part, *(layer for layer in inner if isinstance(layer, Mapping))]


def _first_text(layers: Sequence[Part], names: Collection[str]) -> str:
    """The first text under one of the names; empty where there is none."""
    for layer in layers:
        for name in names:
            text = _text(layer.get(name))
            if text:
                return text
    return ""


def _text(value: object) -> str:
    """``value`` if it is a text; empty for a blank one and for anything else."""
    if not isinstance(value, str):
        return ""
    is_blank = not value.strip()
    return "" if is_blank else value


def _address(part: Part, layers: Sequence[Part]) -> dict[str, str]:
    """Where the content lies, if it lies anywhere, or of which type it is if it is in the message itself."""
    for value in _addresses(part, layers):
        if not isinstance(value, str):
            continue
        if value.startswith(("http://", "https://")):
            return {"url": _without_query(value)}
        media_type = data_type(value)
        if media_type is not None:
            return {"media_type": media_type}
    return {}


def _addresses(part: Part, layers: Sequence[Part]) -> Iterator[object]:
    # Some APIs have the address itself where others have an object with it.
    yield part.get("image_url")
    for layer in layers:
        yield layer.get("url")
        yield layer.get("file_data")


def _without_query(url: str) -> str:
    # What follows the path is often a signature that gives access. Cut before, as the text may be large.
    beginning = url[: 10 * VALUE_CHARS]
    path = re.split(r"[?#]", beginning, maxsplit=1)[0]
    return path[:VALUE_CHARS]
