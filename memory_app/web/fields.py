"""Types for the fields of request models: strict, and with messages that never repeat what was sent."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import (
    AllowInfNan,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    WithJsonSchema,
)
from pydantic_core import PydanticCustomError

from memory_app.errors import InvalidInput
from memory_app.language.text import clean
from memory_app.records.kinds import KINDS, subtypes
from memory_app.records.scope import NAME_LIMIT, check_name

# UUID() also reads braces, "urn:" and 32 digits without hyphens; one form is enough for an address.
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_INSTANT = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d{1,9})?([Zz]|[+-]\d\d:\d\d)", re.ASCII)

NAME_SCHEMA: dict[str, Any] = {
    "minLength": 1,
    "maxLength": NAME_LIMIT,
    "pattern": r"^[^\x00-\x1f\x7f]*\S[^\x00-\x1f\x7f]*$",
}
EARLIEST_YEAR, LATEST_YEAR = 1900, 2200


class Body(BaseModel):
    """A JSON object of a request: unknown fields are errors and nothing is converted."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


def words_of(value: object) -> str:
    """Any text, also with characters that cannot be stored: the route cleans it and says so in its answer."""
    if not isinstance(value, str):
        raise PydanticCustomError("string_type", "text is required")
    return value


def clean_words_of(value: object) -> str:
    """Text without the characters that cannot be stored."""
    return clean(words_of(value))[0]


def metadata_of(value: object) -> dict[str, Any]:
    """A JSON object whose names can be stored; its values are checked when the turn is accepted."""
    if not isinstance(value, dict):
        raise PydanticCustomError("dict_type", "a JSON object is required")
    return {clean(str(name))[0]: inner for name, inner in value.items()}


def name_of(value: object) -> str:
    """A name of a session, a speaker or a tool."""
    try:
        return check_name(words_of(value), field="")
    except InvalidInput:
        raise PydanticCustomError(
            "name", "a name has 1 to {limit} characters and no control characters", {"limit": NAME_LIMIT}
        ) from None


def instant_of(value: object) -> datetime:
    """RFC 3339 with a zone; years 1900 to 2200."""
    # The pattern first: fromisoformat() also reads dates alone and times without a zone.
    if not isinstance(value, str) or not _INSTANT.fullmatch(value):
        raise PydanticCustomError(
            "instant", "a time with its zone is required, as in 2026-01-31T09:00:00+01:00"
        )
    try:
        # RFC 3339 admits small letters for T and Z, which fromisoformat() does not read.
        instant = datetime.fromisoformat(value.upper())
    except ValueError:
        raise PydanticCustomError("instant", "there is no such date or time") from None
    if not EARLIEST_YEAR <= instant.year <= LATEST_YEAR:
        raise PydanticCustomError(
            "instant",
            "the year is out of range ({low} to {high})",
            {"low": EARLIEST_YEAR, "high": LATEST_YEAR},
        )
    return instant


def id_of(value: object) -> UUID:
    """A UUID in its usual form."""
    if isinstance(value, UUID):
        return value
    if not isinstance(value, str) or not _UUID.fullmatch(value):
        raise PydanticCustomError("id", "an id is a UUID, as in 019af0c2-7d1e-7cc3-98c4-dc0c0c07398f")
    return UUID(value)


def _text_schema(**more: Any) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", **more})


Words = Annotated[str, PlainValidator(words_of), _text_schema()]
CleanWords = Annotated[str, PlainValidator(clean_words_of), _text_schema()]
Name = Annotated[str, PlainValidator(name_of), _text_schema(**NAME_SCHEMA)]
Instant = Annotated[datetime, PlainValidator(instant_of), _text_schema(format="date-time")]
Id = Annotated[UUID, BeforeValidator(id_of), Field(strict=False), _text_schema(format="uuid")]
KindName = Annotated[str, PlainValidator(name_of), _text_schema(enum=list(KINDS))]
SubtypeName = Annotated[str, PlainValidator(name_of), _text_schema(enum=list(subtypes()))]
Metadata = Annotated[dict[str, Any], PlainValidator(metadata_of), WithJsonSchema({"type": "object"})]
Number = Annotated[float, AllowInfNan(False)]
ImportanceScale = Annotated[
    Literal["1-10", "0-3"] | None,
    Field(description="The scale of `importance`: `0-3` is spread over 1 to 10; absent, it is 1 to 10."),
]
