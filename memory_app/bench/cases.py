"""Case files of extraction: what people say in one language, and what is to be kept of it.

A file is TOML: ``language`` and a list of chats, each of one person. A turn names the facts to keep, or why there is
nothing to keep; facts under ``may`` count neither way. Where turns correct or end something, ``now`` and ``not_now``
say what must and must not hold after the last of them. docs/extraction-cases.md describes every field.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

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
    "retired": ("is", "marital_status"),
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

FIRST_TURN = datetime(2026, 6, 10, 8, tzinfo=UTC)

_PART_OF_DATE = re.compile(r"\d{4}(-\d{2}){0,2}")
_FACT_FIELDS = frozenset(
    {"relation", "object", "words", "about", "from", "until", "ended", "negated", "what"}
)
_TURN_FIELDS = frozenset({"text", "keep", "nothing", "may", "role", "name", "at"})
_CHAT_FIELDS = frozenset({"group", "at", "turns", "now", "not_now"})


@dataclass(frozen=True, slots=True)
class Fact:
    """What should be kept. Either a relation and the forms that its object may have, or words of the text.

    ``about`` is None for the speaker. ``since`` and ``until`` are dates, months or years in ISO form.
    """

    relation: str | None
    objects: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    about: str | None = None
    since: str | None = None
    until: str | None = None
    has_ended: bool = False
    is_negated: bool = False
    what: str | None = None

    @property
    def relations(self) -> frozenset[str]:
        """Names under which it may be stored."""
        if self.relation is None:
            return frozenset()
        own = f"{self.relation}:{self.what}" if self.what and self.relation == "favourite" else self.relation
        return frozenset({own, *RELATIONS[self.relation]})

    def __str__(self) -> str:
        about = f"{self.about}: " if self.about else ""
        negation = "not " if self.is_negated else ""
        ending = " (ended)" if self.has_ended else ""
        return f"{about}{negation}{self.relation or 'text with'} {' / '.join(self.objects or self.words)}{ending}"


@dataclass(frozen=True, slots=True)
class CaseTurn:
    """One turn. ``nothing`` says why nothing is to be kept; None where ``keep`` has facts, and for assistants."""

    text: str
    at: datetime
    role: Role = Role.USER
    name: str | None = None
    keep: tuple[Fact, ...] = ()
    may: tuple[Fact, ...] = ()
    nothing: str | None = None


@dataclass(frozen=True, slots=True)
class CaseChat:
    """Turns of one person, in order, and what must and must not hold after the last."""

    group: str
    turns: tuple[CaseTurn, ...]
    now: tuple[Fact, ...] = ()
    not_now: tuple[Fact, ...] = ()


@dataclass(frozen=True, slots=True)
class CaseFile:
    """All chats of one language."""

    language: str
    chats: tuple[CaseChat, ...] = field(repr=False)


def load(path: Path) -> tuple[CaseFile, ...]:
    """The case files at ``path``, a file or a folder. `InvalidInput` names file, chat, turn and field."""
    files = sorted(path.glob("*.toml")) if path.is_dir() else [path]
    if not files:
        raise InvalidInput(f"{path}: no case files (*.toml) in this folder", field="path")
    return tuple(_file(file) for file in files)


def _file(path: Path) -> CaseFile:
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidInput(f"{path}: cannot be read ({error.strerror})", field="path") from error
    except ValueError as error:
        raise InvalidInput(f"{path}: is not TOML ({error})", field="path") from error
    where = str(path)
    language = _text(content, "language", where)
    chats = _list(content, "chat", where)
    if not chats:
        raise InvalidInput(f"{where}: chat: at least one is required", field="chat")
    return CaseFile(
        language, tuple(_chat(chat, f"{where}: chat {place}") for place, chat in enumerate(chats, start=1))
    )


def _chat(content: Mapping[str, Any], where: str) -> CaseChat:
    _check_fields(content, _CHAT_FIELDS, where)
    turns = _list(content, "turns", where)
    if not turns:
        raise InvalidInput(f"{where}: turns: at least one is required", field="turns")
    return CaseChat(
        group=_text(content, "group", where),
        turns=tuple(_turns(turns, _moment(content, where) or FIRST_TURN, where)),
        now=_facts(content, "now", where),
        not_now=_facts(content, "not_now", where),
    )


def _turns(contents: Sequence[Mapping[str, Any]], begin: datetime, where: str) -> Iterator[CaseTurn]:
    at = begin
    for place, content in enumerate(contents, start=1):
        turn = _turn(content, at, f"{where}, turn {place}")
        yield turn
        at = turn.at + PACE


def _turn(content: Mapping[str, Any], at: datetime, where: str) -> CaseTurn:
    _check_fields(content, _TURN_FIELDS, where)
    role = content.get("role", Role.USER.value)
    if role not in {Role.USER.value, Role.ASSISTANT.value}:
        raise InvalidInput(f"{where}: role: user or assistant", field="role")
    keep, nothing = _facts(content, "keep", where), content.get("nothing")
    if role == Role.USER.value and bool(keep) == bool(nothing):
        raise InvalidInput(f"{where}: either keep or nothing is required", field="keep")
    return CaseTurn(
        text=_text(content, "text", where),
        at=_moment(content, where) or at,
        role=Role(role),
        name=content.get("name"),
        keep=keep,
        may=_facts(content, "may", where),
        nothing=nothing,
    )


def _facts(content: Mapping[str, Any], name: str, where: str) -> tuple[Fact, ...]:
    facts = _list(content, name, where)
    return tuple(_fact(fact, f"{where}, {name} {place}") for place, fact in enumerate(facts, start=1))


def _fact(content: Mapping[str, Any], where: str) -> Fact:
    _check_fields(content, _FACT_FIELDS, where)
    relation, objects, words = (content.get("relation"), _forms(content, "object"), _forms(content, "words"))
    if bool(words) == (relation is not None):
        raise InvalidInput(f"{where}: either relation or words is required", field="relation")
    if relation is not None and relation not in RELATIONS:
        raise InvalidInput(
            f"{where}: relation: {relation!r} is unknown; docs/extraction-cases.md lists them",
            field="relation",
        )
    if relation is not None and not objects:
        raise InvalidInput(f"{where}: object: required beside a relation", field="object")
    for name in ("from", "until"):
        if name in content and not _PART_OF_DATE.fullmatch(str(content[name])):
            raise InvalidInput(f"{where}: {name}: a date, a month or a year in ISO form", field=name)
    return Fact(
        relation=relation,
        objects=objects,
        words=words,
        about=content.get("about"),
        since=content.get("from"),
        until=content.get("until"),
        has_ended=bool(content.get("ended")),
        is_negated=bool(content.get("negated")),
        what=content.get("what"),
    )


def _forms(content: Mapping[str, Any], name: str) -> tuple[str, ...]:
    value = content.get(name, ())
    return (value,) if isinstance(value, str) else tuple(value)


def _moment(content: Mapping[str, Any], where: str) -> datetime | None:
    at = content.get("at")
    if at is None:
        return None
    if not isinstance(at, datetime) or at.tzinfo is None:
        raise InvalidInput(f"{where}: at: a time with its offset, as 2026-01-08T09:00:00+01:00", field="at")
    return at


def _text(content: Mapping[str, Any], name: str, where: str) -> str:
    value = content.get(name)
    if not isinstance(value, str) or not value.strip():
        raise InvalidInput(f"{where}: {name}: a text is required", field=name)
    return value


def _list(content: Mapping[str, Any], name: str, where: str) -> Sequence[Mapping[str, Any]]:
    value = content.get(name, [])
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise InvalidInput(f"{where}: {name}: a list of tables is required", field=name)
    return value


def _check_fields(content: Mapping[str, Any], known: frozenset[str], where: str) -> None:
    if unknown := sorted(set(content) - known):
        raise InvalidInput(
            f"{where}: {unknown[0]}: unknown; known are {', '.join(sorted(known))}", field=unknown[0]
        )
