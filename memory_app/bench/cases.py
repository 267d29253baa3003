"""Case files of extraction: what people say in one language, and what is to be kept of it.

A file is TOML: ``language`` and a list of chats, each of one person. A turn names the facts to keep, or why there is
nothing to keep; facts under ``may`` count neither way. Where turns correct or end something, ``now`` and ``not_now``
say what must and must not hold after the last of them. docs/extraction-cases.md describes every field.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)

from memory_app.errors import InvalidInput
from memory_app.records.records import Role

RELATIONS: Mapping[str, tuple[str, ...]] = {
    "name": ("surname",),
    "preferred_name": ("name",),
    "nickname": ("preferred_name",),
    "pronouns": (),
    "age": (),
    "birthday": (),
    "birth_year": (),
    "birthplace": ("from",),
    "nationality": ("from",),
    "native_language": ("speaks",),
    "speaks": ("native_language", "knows"),
    "lives_in": (),
    "lived_in": ("used_to",),
    "moves_to": ("lives_in", "plans_to"),
    "grew_up_in": (),
    "from": ("birthplace", "nationality"),
    "time_zone": (),
    "address_part": ("lives_in",),
    "lives_with": ("household",),
    "marital_status": (),
    "spouse": ("partner", "has_family", "wife", "husband"),
    "partner": ("spouse", "has_family", "boyfriend", "girlfriend", "fiance", "fiancee"),
    "child": ("has_family", "son", "daughter", "stepson", "stepdaughter", "baby"),
    "parent": ("has_family", "mother", "father", "stepmother", "stepfather"),
    "sibling": ("has_family", "brother", "sister"),
    "grandparent": ("has_family", "grandmother", "grandfather"),
    "relative": (
        "has_family",
        "aunt",
        "uncle",
        "cousin",
        "niece",
        "nephew",
        "grandson",
        "granddaughter",
        "mother_in_law",
        "father_in_law",
        "brother_in_law",
        "sister_in_law",
    ),
    "friend": ("knows", "best_friend"),
    "colleague": ("knows",),
    "boss": ("knows",),
    "neighbour": ("knows",),
    "teacher": ("knows",),
    "doctor": ("knows",),
    "pet": ("has_pet", "dog", "cat"),
    "pet_kind": ("has_pet", "is_a"),
    "works_at": ("works_for", "works_in"),
    "works_as": ("job_title", "is_a"),
    "works_in": ("job_title",),
    "worked_at": (),
    "worked_as": ("used_to",),
    "retired": ("is",),
    "unemployed": ("is",),
    "starts_job_at": ("works_at", "plans_to"),
    "studies": (),
    "studies_at": ("studies",),
    "studied": (),
    "studied_at": ("studied",),
    "school": ("studies_at", "attends"),
    "income_side": (),
    "learns": ("is_doing", "studies"),
    "plays": (),
    "member_of": (),
    "volunteers_at": (),
    "hobby": ("likes", "does_regularly"),
    "likes": ("loves",),
    "dislikes": (),
    "loves": ("likes",),
    "prefers": ("likes",),
    "favourite": (),
    "used_to_like": (),
    "fears": ("afraid_of", "struggles_with"),
    "allergic_to": (),
    "intolerant_of": ("does_not_eat", "has_condition", "is"),
    "has_condition": ("has",),
    "takes_medicine": ("takes",),
    "had_operation": ("had", "did"),
    "pregnant": ("is",),
    "due_date": (),
    "diet": ("is",),
    "eats": ("likes", "does_not_eat"),
    "drinks": ("likes", "does_not_drink"),
    "smokes": ("never_does", "stopped"),
    "weight": (),
    "height": (),
    "blood_group": (),
    "owns": ("has", "bought", "got"),
    "drives": ("owns", "has"),
    "phone_model": ("owns", "has"),
    "uses": (),
    "subscribes_to": (),
    "parks_at": ("asked_to_remember",),
    "keeps_at": ("asked_to_remember",),
    "owes": (),
    "saves_for": ("plans_to", "is_doing"),
    "struggles_with": ("has_condition",),
    "worries_about": ("struggles_with",),
    "goal": ("wants_to", "plans_to"),
    "plans_to": ("wants_to", "is_doing"),
    "wants_to": ("plans_to",),
    "did": (),
    "visited": ("did",),
    "attends": ("does_regularly",),
    "does_regularly": ("attends",),
    "never_does": ("does_not",),
    "believes": ("considers",),
    "values": ("considers",),
    "anniversary": (),
    "instruction": ("asked_to_remember", "wants_replies"),
    "reminder": ("asked_to_remember",),
}
"""Relations of case files, and under which other names each may be stored as well; its own name always may."""

PACE = timedelta(minutes=1)
"""Between two turns of a chat that say no time of their own."""

FIRST_TURN = datetime.fromisoformat("2026-06-10T08:00Z")

PARTIAL_DATE = r"^\d{4}(-\d{2}){0,2}$"
"""A year, a month or a day in ISO form."""


def _as_list(value: Any) -> Any:
    """One form as a list of one."""
    return [value] if isinstance(value, str) else value


Forms = Annotated[tuple[str, ...], BeforeValidator(_as_list)]


class _Part(BaseModel):
    """A table of a case file. Unknown fields are refused, so that a misspelt one is never a case without it."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class Fact(_Part):
    """What should be kept. Either a relation and the forms that its object may have, or words of the text.

    ``about`` is None for the speaker. ``since`` and ``until`` are dates, months or years in ISO form.
    """

    relation: str | None = None
    objects: Forms = Field((), alias="object")
    words: Forms = ()
    about: str | None = None
    since: str | None = Field(None, alias="from", pattern=PARTIAL_DATE)
    until: str | None = Field(None, pattern=PARTIAL_DATE)
    has_ended: bool = Field(False, alias="ended")
    is_negated: bool = Field(False, alias="negated")
    what: Forms = ()

    @model_validator(mode="after")
    def _check(self) -> Fact:
        if bool(self.words) == (self.relation is not None):
            raise ValueError("either relation or words is required")
        if self.relation is None:
            return self
        if self.relation not in RELATIONS:
            raise ValueError(
                f"relation {self.relation!r} is unknown; docs/extraction-cases.md says where they are listed"
            )
        if not self.objects:
            raise ValueError("an object is required beside a relation")
        return self

    @property
    def relations(self) -> frozenset[str]:
        """Names under which it may be stored."""
        if self.relation is None:
            return frozenset()
        if self.relation == "favourite" and self.what:
            # What is somebody's favourite is a part of the name under which it is stored.
            return frozenset(f"favourite:{what}" for what in self.what)
        return frozenset({self.relation, *RELATIONS[self.relation]})

    def __str__(self) -> str:
        about = f"{self.about}: " if self.about else ""
        negation = "not " if self.is_negated else ""
        ending = " (ended)" if self.has_ended else ""
        content = " / ".join(self.objects or self.words)
        return f"{about}{negation}{self.relation or 'text with'} {content}{ending}"


class CaseTurn(_Part):
    """One turn. ``nothing`` says why nothing is to be kept; None where ``keep`` has facts, and for assistants."""

    text: str = Field(pattern=r"\S")
    role: Literal[Role.USER, Role.ASSISTANT] = Role.USER
    name: str | None = None
    keep: tuple[Fact, ...] = ()
    may: tuple[Fact, ...] = ()
    nothing: str | None = None
    at: AwareDatetime = FIRST_TURN
    """When it was said. A file may leave it out; the chat then gives each turn its time."""

    @model_validator(mode="after")
    def _check(self) -> CaseTurn:
        if self.role is Role.USER and bool(self.keep) == bool(self.nothing):
            raise ValueError("either keep or nothing is required")
        return self


class CaseChat(_Part):
    """Turns of one person, in order, and what must and must not hold after the last."""

    group: str = Field(min_length=1)
    turns: tuple[CaseTurn, ...] = Field(min_length=1)
    at: AwareDatetime = FIRST_TURN
    now: tuple[Fact, ...] = ()
    not_now: tuple[Fact, ...] = ()

    @model_validator(mode="after")
    def _give_times(self) -> CaseChat:
        turns = []
        at = self.at
        for turn in self.turns:
            if "at" in turn.model_fields_set:
                at = turn.at
            turns.append(turn.model_copy(update={"at": at}))
            at += PACE
        # A frozen model is set this way while it is being made.
        object.__setattr__(self, "turns", tuple(turns))
        return self


class CaseFile(_Part):
    """All chats of one language."""

    language: str = Field(min_length=1)
    chats: tuple[CaseChat, ...] = Field(alias="chat", min_length=1)


def load(path: Path) -> tuple[CaseFile, ...]:
    """The case files at ``path``, a file or a folder. `InvalidInput` names the file and the field."""
    files = sorted(path.glob("*.toml")) if path.is_dir() else [path]
    if not files:
        raise InvalidInput(f"{path}: no case files (*.toml) in this folder", field="path")
    return tuple(map(_file, files))


def _file(path: Path) -> CaseFile:
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidInput(f"{path}: cannot be read ({error.strerror})", field="path") from error
    except ValueError as error:
        raise InvalidInput(f"{path}: is not TOML ({error})", field="path") from error
    try:
        return CaseFile.model_validate(content)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = _place(first["loc"])
        raise InvalidInput(
            f"{path}: {field}: {first['msg'].removeprefix('Value error, ')}", field=field
        ) from error


def _place(location: tuple[int | str, ...]) -> str:
    """As in ``chat[3].turns[1].keep[1].object``, counted from 1 as a reader of the file would."""
    place = ""
    for part in location:
        place += f"[{part + 1}]" if isinstance(part, int) else f".{part}"
    return place.removeprefix(".")
