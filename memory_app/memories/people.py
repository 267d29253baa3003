"""Tell the user, who has one id and perhaps many names, from everybody else who is named. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from memory_app.errors import InvalidInput
from memory_app.language.text import slug
from memory_app.records.records import Mention, Role, Statement, Turn


def display_names(
    turns: Iterable[Turn], user: str, *, label: str | None = None, aliases: Iterable[str] = ()
) -> dict[str, str]:
    """Slug to name of everything that the user goes by besides the id ``user``.

    The ``aliases`` that the app named come first, then what turns of the user are signed with, the newest later, and
    last the ``label`` by which the app calls them.
    """
    signed = (turn.speaker for turn in turns if turn.role is Role.USER)
    labels = () if label is None else (label,)
    names: dict[str, str] = {}
    own = _slug(user)
    # An id of signs only is the key of no entity that names could lead to.
    if own is None:
        return names
    for name in (*aliases, *signed, *labels):
        key = _slug(name)
        if key is not None and key != own and name.casefold() != Role.USER.value:
            names.pop(key, None)
            names[key] = name
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
