"""Routes of API keys: list, make, rotate and revoke those of the caller's tenant. They need the right `admin`."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Path, Response
from pydantic import Field

from memory_app.main.answers import KeyAnswer, KeysAnswer, NewKeyAnswer
from memory_app.records.audit import Action
from memory_app.tenancy import keys
from memory_app.web.call import Admin, errors
from memory_app.web.fields import Body, Name
from memory_app.web.strict import StrictRoute, audited
from memory_app.web.strict_json import LARGEST_INTEGER

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


@router.get("/v1/keys", responses=errors())
def list_keys(call: Admin) -> KeysAnswer:
    """The keys of the tenant, ended ones too; never the keys themselves."""
    rows = keys.list_keys(call.runtime, call.tenant_id)
    return KeysAnswer(keys=[KeyAnswer.model_validate(row) for row in rows])


@router.post("/v1/keys", status_code=201, responses=errors(400, 413))
@audited(Action.KEY_CREATE)
def make_key(call: Admin, body: KeyBody) -> NewKeyAnswer:
    """Make a key of the tenant."""
    new = keys.make_key(call.runtime, call.tenant_id, **body.model_dump())
    return NewKeyAnswer.model_validate(new)


@router.post("/v1/keys/{key}/rotate", status_code=201, responses=errors(400, 404, 409, 413))
@audited(Action.KEY_ROTATE)
def rotate_key(call: Admin, key: KeyId, body: RotationBody) -> NewKeyAnswer:
    """Make a key like this one, which ends after the overlap."""
    new = keys.rotate_key(call.runtime, call.tenant_id, key, overlap_hours=body.overlap_hours)
    return NewKeyAnswer.model_validate(new)


@router.delete("/v1/keys/{key}", status_code=204, responses=errors(404))
@audited(Action.KEY_REVOKE)
def revoke_key(call: Admin, key: KeyId) -> Response:
    """End a key at once; processes that know it follow within seconds."""
    keys.revoke_key(call.runtime, call.tenant_id, key)
    return Response(status_code=204)
