"""The views that stand in the navigation, and what is said after an act."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from fastapi import Request

from memory_app.tenancy.rows.keys import Caller

NOTICE_COOKIE: Final = "memory_page_notice"
"""Names what was done last, until it was shown."""

NOTICES: Final[Mapping[str, str]] = {
    "replayed": "The turn is on its way again.",
    "revoked": "The key has ended. Processes that know it follow within seconds.",
    "limited": "The limits of the key are set. Processes follow within seconds.",
    "persona": "The persona is saved.",
    "policy": "The policy is saved. It takes effect with the next turn.",
    "defaults": "The default memories are saved.",
    "asked": "A worker does it as soon as its turn comes.",
    "import": "The file is here. A worker reads it as soon as its turn comes.",
    "undone": "All of it is taken back.",
    "discarded": "The turn was given up. It stays readable and has no effects.",
    "pinned": "Pinned: it never fades and is never evicted.",
    "unpinned": "No longer pinned.",
    "invalidated": "It no longer holds, and stays as history.",
    "revived": "It is current again, as if just seen.",
    "corrected": "This is what is remembered now. The former words stay in its history.",
    "rated": "Noted. What is similar moved half as far.",
    "forgotten": "The memory was deleted for good.",
    "forgetting": "The memory will be deleted as soon as others have finished their work on this person.",
}
"""What is said after an act, by the name that its answer gives it."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A view in the navigation: its name, its segments below the page, and the right that it needs.

    ``is_for_bound``: it is shown to keys for one agent or one person, too; others are about the whole tenant.
    """

    name: str
    segments: tuple[str, ...]
    right: str = "read"
    is_for_bound: bool = False


ENTRIES: Final = (
    Entry("Overview", ("overview",)),
    Entry("People", ("people",), is_for_bound=True),
    Entry("Nights", ("nights",)),
    Entry("Agents", ("agents",)),
    Entry("Keys", ("keys",), "admin"),
    Entry("Audit", ("audit",), "admin"),
    Entry("Erasures", ("erasures",)),
)


def entries(request: Request) -> tuple[Entry, ...]:
    """The views that the caller may open."""
    caller: Caller | None = getattr(request.state, "caller", None)
    if caller is None:
        return ()
    is_bound = caller.agent is not None or caller.user is not None
    return tuple(
        entry for entry in ENTRIES if entry.right in caller.rights and (entry.is_for_bound or not is_bound)
    )


def home_of(caller: Caller) -> tuple[str, ...]:
    """The segments of the view that a caller sees first."""
    if caller.agent is None and caller.user is None:
        return ("overview",)
    if caller.agent is None or caller.user is None:
        return ("people",)
    return ("agents", caller.agent, "users", caller.user)
