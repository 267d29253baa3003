"""Routes of users: who there is, by which names they go, and the time zone in which they speak."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import ConfigDict, Field

from memory_app.agents import counts, users
from memory_app.agents.answers import ListedUserAnswer, UserAnswer, UserCountsAnswer, UsersAnswer
from memory_app.agents.counts import UserEntry
from memory_app.agents.rows.users import UserRow
from memory_app.agents.users import UserChange
from memory_app.web.call import NameCursor, Reader, UserName, Writer, errors
from memory_app.web.edge import SLASH
from memory_app.web.fields import Body, CleanWords
from memory_app.web.strict import StrictRoute

router = APIRouter(route_class=StrictRoute, tags=["users"])

PATH = "/v1/users/{user}"


class UserBody(Body):
    """What to change about a user; what is absent stays."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"label": "Mira Novak", "time_zone": "Europe/Lisbon"}]}
    )

    time_zone: CleanWords | None = Field(
        None, description="Such as `Europe/Lisbon`, or an offset as `+09:00`; null takes it back."
    )
    label: CleanWords | None = Field(
        None, description="What your app calls them; signs turns that name nobody. Null takes it back."
    )
    aliases: list[CleanWords] = Field(
        default_factory=list,
        description="Further names of theirs: what is told of any of them is told of this user.",
    )


@router.get("/v1/users", responses=errors())
def list_users(
    call: Reader,
    limit: Annotated[int, Query(ge=1, le=counts.PAGE_MOST, description="Most users of a page.")] = 50,
    cursor: NameCursor = None,
) -> UsersAnswer:
    """The users of the tenant by name with what is stored of them, a page at a time."""
    users = counts.list_users(call.runtime, call.tenant_id, limit=limit, cursor=cursor)
    return UsersAnswer(users=list(map(_entry, users)), cursor=users[-1].name if len(users) == limit else None)


@router.get(PATH, responses=errors(404))
def get_user(call: Reader, user: UserName) -> UserAnswer:
    """A user: by which names they go, and the time zone in which they speak."""
    return _answer(users.user(call.runtime, call.tenant_id, _name(user)))


@router.patch(PATH, responses=errors(400, 413))
def change_user(call: Writer, user: UserName, body: UserBody) -> UserAnswer:
    """Change names and time zone of a user, who is made when new. What is absent stays as it is."""
    change = UserChange(**{name: getattr(body, name) for name in body.model_fields_set})
    return _answer(users.change_user(call.runtime, call.tenant_id, _name(user), change=change))


def _name(segment: str) -> str:
    return segment.replace(SLASH, "/")


def _entry(entry: UserEntry) -> ListedUserAnswer:
    counts = None if entry.counts is None else UserCountsAnswer.model_validate(entry.counts)
    return ListedUserAnswer(
        user=entry.name,
        label=entry.label,
        time_zone=entry.time_zone,
        created_at=entry.created_at,
        counts=counts,
    )


def _answer(row: UserRow) -> UserAnswer:
    return UserAnswer(
        user=row.name,
        label=row.label,
        aliases=list(row.aliases),
        time_zone=row.time_zone,
        zone_is_set=row.zone_is_set,
        created_at=row.created_at,
    )
