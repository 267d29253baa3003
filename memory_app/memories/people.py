"""Tell the user, who has one id and perhaps many names, from everybody else who is named. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from memory_app.errors import InvalidInput
from memory_app.language.text import slug
from memory_app.records.records import Mention, Role, Statement, Turn


def display_names(turns: Iterable[Turn], user: str) -> dict[str, str]:
    """Slug to name of everything that the user's turns are signed with, besides the id ``user``, the newest last."""
    names: dict[str, str] = {}
    own = _slug(user)
    for turn in turns:
        key = _slug(turn.speaker)
        is_signed = turn.role is Role.USER and turn.speaker.casefold() != Role.USER.value
        if is_signed and key is not None and key != own:
            names.pop(key, None)
            names[key] = turn.speaker
    return names


def about_user(statement: Statement, *, user: str, names: Iterable[str]) -> Statement:
    """The statement with the user's id as its subject, and tied to it, where that is one of their display names.

    "Mirabel's sister" becomes the sister of the user, too. The text stays, and with it the name.
    """
    subject = statement.subject
    if subject is None or _slug(user) is None:
        return statement
    tied = (*statement.mentions, Mention("person", user))
    if _slug(subject) == _slug(user):
        return replace(statement, mentions=tied)
    for name in names:
        if subject.casefold() == name.casefold():
            return replace(statement, subject=user, mentions=tied)
        owner = subject[: len(name)]
        if owner.casefold() == name.casefold() and subject[len(name) :].startswith(("'s ", "’s ")):
            return replace(statement, subject=user + subject[len(name) :])
    return statement


def _slug(name: str) -> str | None:
    try:
        return slug(name)
    except InvalidInput:
        return None  # A name of signs only cannot be the key of anything.
