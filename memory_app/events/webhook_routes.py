"""Routes of webhooks. They need the right `admin` of the whole tenant: a key for one agent or person is refused."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Response
from pydantic import Field

from memory_app.events.answers import (
    DeliveriesAnswer,
    DeliveryAnswer,
    NewWebhookAnswer,
    WebhookAnswer,
    WebhooksAnswer,
)
from memory_app.events.webhooks import webhooks
from memory_app.events.webhooks.address import URL_LIMIT
from memory_app.events.webhooks.records import WebhookChange
from memory_app.records.audit import Action
from memory_app.web.call import Admin, Cursor, errors
from memory_app.web.fields import Body, CleanWords, Id, Name
from memory_app.web.strict import StrictRoute, audited

router = APIRouter(route_class=StrictRoute, tags=["events"])

WebhookId = Annotated[Id, Path(description="Id of the webhook, as listed.")]
Types = Annotated[list[Name], Field(min_length=1, max_length=50)]

_URL = "Where messages are posted: https, and a public address unless the operator allows others."
_TYPES = "Only these, such as `turn.extracted` or a group as `memory`; null: all."


class NewWebhookBody(Body):
    """A webhook to make."""

    url: CleanWords = Field(
        description=_URL, max_length=URL_LIMIT, examples=["https://example.com/hooks/memory"]
    )
    types: Types | None = Field(None, description=_TYPES)
    agent: Name | None = Field(None, description="Only of this agent.")
    user: Name | None = Field(None, description="Only of this person; it goes when the person is erased.")
    description: CleanWords | None = Field(
        None, max_length=webhooks.DESCRIPTION_LIMIT, description="What it is for."
    )
    after: CleanWords | None = Field(
        None, max_length=100, description="Begin after this event, or with the `oldest`; null: from now on."
    )


class WebhookBody(Body):
    """What to change about a webhook; what is absent stays."""

    # Never null, but absent: it has no meaning for these.
    url: CleanWords = Field("", description=_URL, max_length=URL_LIMIT)
    types: Types | None = Field(None, description=_TYPES)
    agent: Name | None = Field(None, description="Only of this agent; null: of any.")
    user: Name | None = Field(None, description="Only of this person; null: of anybody.")
    description: CleanWords | None = Field(
        None, max_length=webhooks.DESCRIPTION_LIMIT, description="What it is for."
    )
    paused: bool = Field(
        False, description="True pauses it; false goes on where it was, also after it was given up."
    )


class SecretRotationBody(Body):
    """How the secret is replaced."""

    overlap_hours: float = Field(
        24,
        ge=0,
        le=webhooks.OVERLAP_HOURS_LIMIT,
        description="Hours for which messages have a signature with the old secret, too.",
    )


class ResendBody(Body):
    """From where to send again."""

    after: CleanWords = Field(
        max_length=100, description="Id of the last event that is not wanted again, or `oldest`."
    )


@router.get("/v1/webhooks", responses=errors())
def list_webhooks(call: Admin) -> WebhooksAnswer:
    """The webhooks of the tenant, and how far each has come; never their secrets."""
    rows = webhooks.list_webhooks(call.runtime, call.tenant_id)
    return WebhooksAnswer(webhooks=[WebhookAnswer.model_validate(row) for row in rows])


@router.post("/v1/webhooks", status_code=201, responses=errors(400, 409, 413))
@audited(Action.WEBHOOK_CREATE)
def make_webhook(call: Admin, body: NewWebhookBody) -> NewWebhookAnswer:
    """Have events posted to an address, signed, in their order and at least once."""
    new = webhooks.make_webhook(call.runtime, call.tenant_id, **body.model_dump())
    return NewWebhookAnswer.model_validate(new)


@router.patch("/v1/webhooks/{webhook}", responses=errors(400, 404, 413))
@audited(Action.WEBHOOK_CHANGE)
def change_webhook(call: Admin, webhook: WebhookId, body: WebhookBody) -> WebhookAnswer:
    """Change a webhook, pause it or let it go on. What is absent stays as it is."""
    change = WebhookChange(**{name: getattr(body, name) for name in body.model_fields_set})
    row = webhooks.change_webhook(call.runtime, call.tenant_id, webhook, change=change)
    return WebhookAnswer.model_validate(row)


@router.post("/v1/webhooks/{webhook}/rotate", responses=errors(400, 404, 409, 413))
@audited(Action.WEBHOOK_ROTATE)
def rotate_webhook(call: Admin, webhook: WebhookId, body: SecretRotationBody) -> NewWebhookAnswer:
    """Give it another secret; for a while messages have a signature with each."""
    new = webhooks.rotate_webhook(call.runtime, call.tenant_id, webhook, overlap_hours=body.overlap_hours)
    return NewWebhookAnswer.model_validate(new)


@router.delete("/v1/webhooks/{webhook}", status_code=204, responses=errors(404))
@audited(Action.WEBHOOK_DELETE)
def delete_webhook(call: Admin, webhook: WebhookId) -> Response:
    """Delete a webhook and its log."""
    webhooks.delete_webhook(call.runtime, call.tenant_id, webhook)
    return Response(status_code=204)


@router.get("/v1/webhooks/{webhook}/deliveries", responses=errors(404))
def list_webhook_deliveries(
    call: Admin,
    webhook: WebhookId,
    limit: Annotated[int, Query(ge=1, le=webhooks.PAGE_LIMIT, description="Most tries of a page.")] = 50,
    cursor: Cursor = None,
) -> DeliveriesAnswer:
    """The latest tries of deliveries, the newest first."""
    rows = webhooks.list_deliveries(call.runtime, call.tenant_id, webhook, limit=limit, cursor=cursor)
    return DeliveriesAnswer(
        deliveries=[DeliveryAnswer.model_validate(row) for row in rows],
        cursor=rows[-1].id if len(rows) == limit else None,
    )


@router.post("/v1/webhooks/{webhook}/resend", responses=errors(400, 404, 413))
@audited(Action.WEBHOOK_CHANGE)
def resend_webhook(call: Admin, webhook: WebhookId, body: ResendBody) -> WebhookAnswer:
    """Send again what came after an event, in messages with new ids."""
    row = webhooks.resend_webhook(call.runtime, call.tenant_id, webhook, after=body.after)
    return WebhookAnswer.model_validate(row)


@router.post("/v1/webhooks/{webhook}/ping", responses=errors(404))
def ping_webhook(call: Admin, webhook: WebhookId) -> DeliveryAnswer:
    """Send a message of the type `ping` now, and answer what came of it."""
    return DeliveryAnswer.model_validate(webhooks.ping_webhook(call.runtime, call.tenant_id, webhook))
