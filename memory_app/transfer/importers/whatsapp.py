"""The text that WhatsApp exports of a chat: a line for each message, which more lines may follow.

A line begins with date, time and name in the form of the phone's language. Dates are read by the order that fits all of
the file; where two orders do, the caller says which. Lines without a name are the program's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, tzinfo

from memory_app.errors import InvalidInput
from memory_app.records.records import Role
from memory_app.transfer.importers.json_items import text_lines
from memory_app.transfer.importers.records import (
    Conversation,
    DateOrder,
    Form,
    Format,
    Item,
    Omission,
    Options,
    Reason,
    Shape,
    Source,
)
from memory_app.transfer.importers.values import checked, message, name_of

_MARKS = str.maketrans("", "", "\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff")
"""Marks of direction, which stand at the beginning of lines and around names."""

_SPACES = str.maketrans("\u00a0\u202f\u2009", "   ")
"""Spaces that may stand before "PM"."""

# "klo", "à", "um" and the like may stand between date and time.
_START = re.compile(
    r"""(?P<bracket>\[)?
    (?P<first>\d{1,4})[./-](?P<second>\d{1,2})[./-](?P<third>\d{1,4})\.?
    ,?[ ]+(?:[^\W\d_]{1,4}[ ])?
    (?P<hour>\d{1,2})[:.](?P<minute>\d{2})(?:[:.](?P<seconds>\d{2}))?
    (?:[ ]?(?P<half>[APap])\.?[ ]?[Mm]\.?)?
    (?(bracket)\]|[ ]-)[ ]
    (?P<rest>.*)""",
    re.VERBOSE,
)
# A line of the program may quote what holds a colon, such as the old name of a group.
_NAMED = re.compile(r"(?P<name>[^:\"“„«]{1,200}): ?(?P<text>.*)")

_ATTACHED = re.compile(r"<[^<>]{1,20}: [^<>]{1,200}>|[^\s<>]{1,120}\.\w{2,5} \([^()]{3,40}\)", re.IGNORECASE)
"""A file that was exported with the text, at the beginning of the message; a caption follows on the next line."""

_OMITTED = re.compile(
    r"<[^<>]{3,60}>|(?:image|video|audio|sticker|GIF|document|contact card|video note)s? omitted"
    r"|(?:Bild|Video|Audio|Sticker|GIF|Dokument|Kontaktkarte) weggelassen"
    r"|(?:image|vidéo|audio|sticker|GIF|document) (?:absente?|omise?)"
    r"|(?:imagen|vídeo|video|audio|sticker|GIF|documento) omitid[oa]"
    r"|(?:immagine|video|audio|sticker|GIF|documento) omess[oa]"
    r"|(?:afbeelding|video|audio|sticker|GIF|document) weggelaten"
    r"|(?:imagem|vídeo|áudio|figurinha|GIF|documento) ocult[oa]",
    re.IGNORECASE,
)
"""What stands for a picture or a recording that was not exported: in angle brackets on Android, in words on iPhones."""

_DELETED = re.compile(
    r"(?:This message was deleted|You deleted this message|Diese Nachricht wurde gelöscht"
    r"|Du hast diese Nachricht gelöscht|Ce message a été supprimé|Vous avez supprimé ce message"
    r"|(?:Se )?[Ee]limin(?:ó|aste) este mensaje|Mensagem apagada|Essa mensagem foi apagada|Você apagou esta mensagem"
    r"|Questo messaggio è stato eliminato|Hai eliminato questo messaggio|Dit bericht is verwijderd"
    r"|U hebt dit bericht verwijderd)\.?",
    re.IGNORECASE,
)
_EDITED = re.compile(
    r" ?<(?:This message was edited|Diese Nachricht wurde bearbeitet|Ce message a été modifié|Se editó este mensaje"
    r"|Questo messaggio è stato modificato|Mensagem editada|Dit bericht is bewerkt)\.?>$",
    re.IGNORECASE,
)
"""A note behind a message that was edited."""

RECOGNISED_LINES = 50
"""Lines at the beginning of a file among which one must be a message."""


@dataclass(slots=True)
class _Draft:
    """A message whose further lines may still come."""

    number: int
    start: re.Match[str]
    lines: list[str]
    is_marked: bool
    """A mark of direction stands before its text, as the program sets it before words of its own."""


def _recognises(shape: Shape) -> bool:
    return shape.form is Form.TEXT and any(_start(line) for line in shape.lines)


def is_chat_line(line: str) -> bool:
    """Whether a line begins as one of a chat does."""
    return _start(line) is not None


def _start(line: str) -> re.Match[str] | None:
    return _START.match(line.translate(_MARKS).translate(_SPACES))


def _read(source: Source, options: Options) -> Iterator[Item]:
    order = _order(source, options.date_order)
    is_begun = False
    for draft in _drafts(source):
        if not is_begun:
            is_begun = True
            yield Conversation("the file")
        yield _item(draft, order, options.time_zone)


def _drafts(source: Source) -> Iterator[_Draft]:
    """The messages with all their lines."""
    draft: _Draft | None = None
    for number, line in text_lines(source):
        start = _start(line)
        if start is not None:
            if draft is not None:
                yield draft
            draft = _Draft(number, start, [], is_marked=": \u200e" in line)
        elif draft is not None:
            draft.lines.append(line)
        elif line.strip():
            raise InvalidInput(
                f"line {number}: begins with no date, time and name; is this the text of a WhatsApp chat? Nothing was "
                "imported",
                field="file",
            )
    if draft is not None:
        yield draft


def _item(draft: _Draft, order: Sequence[str], zone: tzinfo) -> Item:
    place = f"line {draft.number}"
    named = _NAMED.fullmatch(draft.start["rest"])
    speaker = None if named is None else name_of(named["name"])
    if named is None or speaker is None:
        return Omission(place, Reason.INTERNAL)
    at = _instant(draft.start, order, zone)
    if at is None:
        return Omission(place, Reason.UNREADABLE, "the date is none")
    text = "\n".join([named["text"], *draft.lines]).strip()
    if _DELETED.fullmatch(text):
        return Omission(place, Reason.DELETED)
    if _OMITTED.fullmatch(text):
        return Omission(place, Reason.MEDIA)
    attached = _ATTACHED.match(text)
    if attached is not None:
        text = text[attached.end() :].strip()
        if not text:
            return Omission(place, Reason.MEDIA)
    elif draft.is_marked:
        return Omission(place, Reason.INTERNAL)
    return message(
        place, role=Role.USER, text=_EDITED.sub("", text), at=at, speaker=speaker, speaks_freely=True
    )


_ORDERS = {
    DateOrder.DAY_FIRST: ("day", "month", "year"),
    DateOrder.MONTH_FIRST: ("month", "day", "year"),
}
_YEAR_FIRST = ("year", "month", "day")


@dataclass(slots=True)
class _Fit:
    """Whether an order of day and month fits all dates of a file so far, and whether they go forward by it."""

    order: Sequence[str]
    fits: bool = True
    backward: int = 0
    latest: datetime | None = field(default=None)

    def add(self, start: re.Match[str]) -> None:
        at = _instant(start, self.order, None)
        if at is None:
            self.fits = False
            return
        if self.latest is not None and at < self.latest:
            self.backward += 1
        self.latest = at


def _order(source: Source, order: DateOrder | None) -> Sequence[str]:
    """The names of the three parts of a date. Raises `InvalidInput` where the file leaves it open."""
    fits = {name: _Fit(parts) for name, parts in _ORDERS.items()}
    has_dates = False
    for _, line in text_lines(source):
        start = _start(line)
        if start is None:
            continue
        has_dates = True
        if len(start["first"]) == 4:
            return _YEAR_FIRST
        if order is not None:
            return _ORDERS[order]
        for fit in fits.values():
            fit.add(start)
    if not has_dates:
        # Who reads the messages says that there are none.
        return _YEAR_FIRST
    possible = [name for name, fit in fits.items() if fit.fits]
    if len(possible) == 2:
        # Messages stand in the order of time: read the wrong way round, they would jump back at the turn of a month.
        fewest = min(fits[name].backward for name in possible)
        possible = [name for name in possible if fits[name].backward == fewest]
    if len(possible) != 1:
        found = "either way" if possible else "neither way throughout"
        raise InvalidInput(
            f"date_order: the dates of the file can be read {found}, day or month first; say `dmy` or `mdy`; nothing "
            "was imported",
            field="date_order",
        )
    return _ORDERS[possible[0]]


def _instant(start: re.Match[str], order: Sequence[str], zone: tzinfo | None) -> datetime | None:
    values = dict(zip(order, (int(start[name]) for name in ("first", "second", "third")), strict=True))
    hour = int(start["hour"])
    if start["half"]:
        hour = hour % 12 + (12 if start["half"].lower() == "p" else 0)
    year = values["year"] + (2000 if values["year"] < 100 else 0)
    try:
        at = datetime(
            year,
            values["month"],
            values["day"],
            hour,
            int(start["minute"]),
            int(start["seconds"] or 0),
            tzinfo=zone,
        )
    except ValueError:
        return None
    return checked(at)


WHATSAPP = Format("whatsapp", _recognises, _read, needs="lines with date, time and name")
