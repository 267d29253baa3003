"""Memories of mem0, as `get_all` answers them: a list, or an object with ``results``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from memory_app.records.records import Origin, Statement
from memory_app.records.statement import TAG_LIMIT, TAGS_LIMIT
from memory_app.transfer.importers.json_items import elements
from memory_app.transfer.importers.records import (
    Form,
    Format,
    Item,
    Memory,
    Omission,
    Options,
    Reason,
    Shape,
    Source,
)
from memory_app.transfer.importers.values import id_of, instant_of, list_of, mapping_of, text_of

NAME = "mem0"

LISTS = ("results", "memories")


def _recognises(shape: Shape) -> bool:
    if shape.form is Form.LIST:
        return isinstance(shape.element().get("memory"), str)
    return shape.form is Form.OBJECT and any("memory" in shape.element_of(name) for name in LISTS)


def _read(source: Source, options: Options) -> Iterator[Item]:
    for element in elements(source, keys=LISTS):
        yield _memory(element.place, mapping_of(element.value), options)


def _memory(place: str, fields: Mapping[str, object], options: Options) -> Item:
    text = fields.get("memory")
    if not isinstance(text, str):
        return Omission(place, Reason.UNREADABLE, "memory is missing")
    if not text.strip():
        return Omission(place, Reason.EMPTY)
    at = instant_of(fields.get("created_at"), options.time_zone)
    categories = (text_of(value).strip()[:TAG_LIMIT] for value in list_of(fields.get("categories")))
    statement = Statement(
        "fact",
        text,
        origin=Origin.IMPORTED,
        source=NAME,
        tags=tuple(category for category in categories if category)[:TAGS_LIMIT],
        valid_from=at,
        said_at=at,
    )
    return Memory(place, statement, owner=id_of(fields.get("user_id")))


MEM0 = Format(NAME, _recognises, _read, needs="memories with a `memory`")
