"""Routes of API keys: list, make, rotate and revoke those of the caller's tenant. They need the right `admin`."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated, Literal

from fastapi import APIRouter, Path, Response
from pydantic import Field

from memory_app.db.db import transaction
from memory_app.db.shards import HOME
from memory_app.records.audit import Action
from memory_app.tenancy.rows import keys
from memory_app.web.answers import Answer
from memory_app.web.call import Admin, errors
from memory_app.web.fields import Body, Name
from memory_app.web.strict import LARGEST_INTEGER, StrictRoute, audited

router = APIRouter(route_class=StrictRoute, tags=["keys"])

KeyId = Annotated[int, Path(ge=1, le=LARGEST_INTEGER, description="Id of the key, as listed.")]
Right = Literal["read", "record", "write", "erase", "admin"]


class KeyBody(Body):
    """A key to make."""

    rights: list[Right] = Field(["read", "record", "write", "erase"], min_length=1, max_length=5)
    label: Name | None = Field(None, description="What it is for.")
    days: int | None = Field(None, ge=1, le=36_500, description="Days until it expires; absent: never.")
    agent: Name | None = Field(None, description="Only for this agent.")
    user: Name | None = Field(None, description="Only for this person, as on their device.")


class RotationBody(Body):
    """How a key is replaced."""

    overlap_hours: float = Field(
        24, ge=0, le=8_760, description="Hours for which the old key goes on beside the new one."
    )


class KeyAnswer(Answer):
    id: int
    prefix: str = Field(description="The first characters, by which its holder recognises it.")
    rights: list[str]
    label: str | None
    agent: str | None = Field(validation_alias="agent_name")
    user: str | None = Field(validation_alias="user_name")
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None


class KeysAnswer(Answer):
    keys: list[KeyAnswer]


class NewKeyAnswer(Answer):
    id: int
    key: str = Field(description="Shown this once; only a digest is stored.")
    expires_at: datetime | None


@router.get("/v1/keys", responses=errors())
def list_keys(call: Admin) -> KeysAnswer:
    """The keys of the tenant, ended ones too; never the keys themselves."""
    with transaction(call.runtime.at(HOME).engine, call.tenant_id) as connection:
        rows = keys.listed(connection, None)
    return KeysAnswer(keys=[KeyAnswer.model_validate(row) for row in rows])


@router.post("/v1/keys", status_code=201, responses=errors(400, 413))
@audited(Action.KEY_CREATE)
def make_key(call: Admin, body: KeyBody) -> NewKeyAnswer:
    """Make a key of the tenant."""
    expires_at = None if body.days is None else datetime.now(UTC) + timedelta(days=body.days)
    with transaction(call.runtime.at(HOME).engine, call.tenant_id) as connection:
        new = keys.add(
            connection,
            rights=body.rights,
            label=body.label,
            expires_at=expires_at,
            agent=body.agent,
            user=body.user,
        )
    return NewKeyAnswer.model_validate(new)


@router.post("/v1/keys/{key}/rotate", status_code=201, responses=errors(400, 404, 409, 413))
@audited(Action.KEY_ROTATE)
def rotate_key(call: Admin, key: KeyId, body: RotationBody) -> NewKeyAnswer:
    """Make a key like this one, which ends after the overlap."""
    with transaction(call.runtime.at(HOME).engine, call.tenant_id) as connection:
        new = keys.rotate(connection, key, overlap=timedelta(hours=body.overlap_hours))
    return NewKeyAnswer.model_validate(new)


@router.delete("/v1/keys/{key}", status_code=204, responses=errors(404))
@audited(Action.KEY_REVOKE)
def revoke_key(call: Admin, key: KeyId) -> Response:
    """End a key at once; processes that know it follow within seconds."""
    with transaction(call.runtime.at(HOME).engine, call.tenant_id) as connection:
        keys.revoke(connection, key)
    return Response(status_code=204)
