"""A chat of SillyTavern: a line about the chat, and a line of JSON for each message."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta, tzinfo

from memory_app.language.calendar import MONTHS
from memory_app.records.records import Role
from memory_app.transfer.importers.json_items import lines
from memory_app.transfer.importers.records import (
    Conversation,
    Form,
    Format,
    Item,
    Omission,
    Options,
    Reason,
    Shape,
    Source,
)
from memory_app.transfer.importers.values import (
    checked,
    id_of,
    instant_of,
    list_of,
    mapping_of,
    message,
    name_of,
    text_of,
)

# "2024-1-5 @14h 03m 22s 123ms", and "January 5, 2024 2:03pm".
_HUMAN = re.compile(
    r"(?P<year>\d{4})-(?P<month>\d{1,2})-(?P<day>\d{1,2}) ?@ ?(?P<hour>\d{1,2})h ?(?P<minute>\d{1,2})m ?"
    r"(?P<second>\d{1,2})s(?: ?(?P<ms>\d{1,3})ms)?"
)
_ENGLISH = re.compile(
    r"(?P<month>[A-Z][a-z]{2,8}) (?P<day>\d{1,2}), (?P<year>\d{4}) (?P<hour>\d{1,2}):(?P<minute>\d{2}) ?"
    r"(?P<half>[AaPp])\.?[Mm]\.?"
)
_MONTHS = tuple(name[:3].lower() for name in MONTHS)


def _recognises(shape: Shape) -> bool:
    first = shape.element()
    is_head = "chat_metadata" in first or {"user_name", "character_name"} <= first.keys()
    return shape.form in (Form.LINES, Form.OBJECT) and (is_head or {"mes", "is_user"} <= first.keys())


def _read(source: Source, options: Options) -> Iterator[Item]:
    is_begun = False
    for line in lines(source):
        fields = mapping_of(line.value)
        if not is_begun:
            is_begun = True
            # The date at which the chat began tells it from others with the same character.
            yield Conversation(line.place, id=_chat_id(fields))
        if "mes" in fields:
            yield from _message(line.place, fields, options.time_zone)
        elif "chat_metadata" not in fields and "user_name" not in fields:
            yield Omission(line.place, Reason.UNREADABLE, "mes is missing")


def _chat_id(fields: Mapping[str, object]) -> str | None:
    began = text_of(fields.get("create_date"))
    character = name_of(fields.get("character_name"))
    return f"{character} {began}" if began and character else id_of(fields.get("chat_id"))


def _message(place: str, fields: Mapping[str, object], zone: tzinfo) -> Iterator[Item]:
    if fields.get("is_system") is True:
        yield Omission(place, Reason.HIDDEN)
        return
    # Answers that were generated for this place and not taken.
    for _ in list_of(fields.get("swipes"))[1:]:
        yield Omission(place, Reason.BRANCH)
    is_user = fields.get("is_user") is True
    yield message(
        place,
        role=Role.USER if is_user else Role.ASSISTANT,
        text=text_of(fields.get("mes")),
        at=_instant(fields.get("send_date"), zone),
        speaker=name_of(fields.get("name")),
    )


def _instant(value: object, zone: tzinfo) -> datetime | None:
    text = text_of(value).strip()
    match = _HUMAN.match(text) or _ENGLISH.match(text)
    if match is None:
        return instant_of(value, zone)
    parts = match.groupdict()
    hour = int(parts["hour"])
    if parts.get("half"):
        hour = hour % 12 + (12 if parts["half"].lower() == "p" else 0)
    try:
        at = datetime(
            int(parts["year"]),
            _month(parts["month"]),
            int(parts["day"]),
            hour,
            int(parts["minute"]),
            int(parts.get("second") or 0),
            tzinfo=zone,
        )
    except ValueError:
        return None
    return checked(at + timedelta(milliseconds=int(parts.get("ms") or 0)))


def _month(word: str) -> int:
    """The number of a month; 0, which is none, for a word that names none."""
    if word.isdecimal():
        return int(word)
    short = word[:3].lower()
    return _MONTHS.index(short) + 1 if short in _MONTHS else 0


SILLYTAVERN = Format("sillytavern", _recognises, _read, needs="lines with `mes`")
