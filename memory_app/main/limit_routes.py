"""Routes of limits: those of the caller's tenant to be read, those of its keys to be set."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path
from pydantic import Field

from memory_app.main.answers import LimitsAnswer, TenantLimitsAnswer
from memory_app.records.audit import Action
from memory_app.tenancy import keys, quotas
from memory_app.web.call import Admin, errors
from memory_app.web.fields import Body
from memory_app.web.strict import StrictRoute, audited
from memory_app.web.strict_json import LARGEST_INTEGER

router = APIRouter(route_class=StrictRoute, tags=["keys"])

LimitedKey = Annotated[int, Path(ge=1, le=LARGEST_INTEGER, description="Id of the key, as listed.")]


class KeyLimitsBody(Body):
    """The limits of a key; one that is absent or null is none."""

    requests_per_minute: int | None = None
    bytes_per_minute: int | None = Field(None, description="Of the bodies of requests.")


@router.get("/v1/limits", responses=errors())
def get_limits(call: Admin) -> TenantLimitsAnswer:
    """The limits of the tenant, which the operator sets, and how many turns it has stored."""
    standing = quotas.standing(call.runtime, call.tenant_id)
    return TenantLimitsAnswer(limits=standing.limits.as_dict(), turns=standing.turns)


@router.put("/v1/keys/{key}/limits", responses=errors(400, 404, 413))
@audited(Action.LIMIT_KEY)
def limit_key(call: Admin, key: LimitedKey, body: KeyLimitsBody) -> LimitsAnswer:
    """Set the limits of a key of the tenant; processes follow within seconds."""
    new = keys.limit_key(call.runtime, call.tenant_id, key, limits=body.model_dump())
    return LimitsAnswer(limits=new.as_dict())
