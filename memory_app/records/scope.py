"""Who a statement belongs to, and how wide a question may look.

A scope is (tenant, agent, user, session); an absent part widens it. The tenant is never a name given by the
caller: it comes from the credential, so callers build a `Scope` of names and the services pair it with a tenant.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from memory_app.errors import InvalidInput

NAME_LIMIT = 200
"""Longest name of an agent, user or session, in characters."""

# Lone surrogates too: no encoding can store them. Names are not cleaned as texts are, since two different names
# must not become one person.
_CONTROL = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Scope:
    """Names inside one tenant. ``user`` and ``session`` may be absent, which widens the scope.

    Raises `InvalidInput` naming the part when a name is empty, too long, or has control characters.
    """

    agent: str
    user: str | None = None
    session: str | None = None

    def __post_init__(self) -> None:
        check_name(self.agent, field="agent")
        for field in ("user", "session"):
            name = getattr(self, field)
            if name is not None:
                check_name(name, field=field)
        # The same name of a session may be used for several users.
        if self.session is not None and self.user is None:
            raise InvalidInput("user: a session belongs to a user; name the user too", field="user")


def check_name(name: object, *, field: str) -> str:
    """The name itself, or `InvalidInput` naming ``field``."""
    if name is None:
        raise InvalidInput(f"{field}: a name is required", field=field)
    if not isinstance(name, str):
        raise InvalidInput(f"{field}: a name is text", field=field)
    if not name.strip():
        raise InvalidInput(f"{field}: a name cannot be empty", field=field)
    if len(name) > NAME_LIMIT:
        raise InvalidInput(f"{field}: a name has at most {NAME_LIMIT} characters", field=field)
    if _CONTROL.search(name):
        raise InvalidInput(f"{field}: a name has no control characters", field=field)
    return name
