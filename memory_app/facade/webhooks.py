"""Webhooks of the tenant."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from memory_app.events.webhooks import webhooks as service
from memory_app.events.webhooks.records import Delivery, NewWebhook, Webhook, WebhookChange
from memory_app.facade.base import Facade, cursor_of
from memory_app.records.audit import Action
from memory_app.records.ids import checked_id
from memory_app.records.unchanged import UNCHANGED, Unchanged


class Webhooks(Facade):
    """See `MemoryApp`."""

    __slots__ = ()

    def webhooks(self) -> tuple[Webhook, ...]:
        """The webhooks of the tenant, and how far each has come; never their secrets."""
        return service.list_webhooks(self.runtime, self.tenant_id)

    def make_webhook(
        self,
        url: str,
        *,
        types: Sequence[str] | None = None,
        agent: str | None = None,
        user: str | None = None,
        description: str | None = None,
        after: str | None = None,
    ) -> NewWebhook:
        """Have events after ``after`` posted to ``url`` (``oldest``: from the first that is kept; None: from now on).

        ``types`` are those of events or their groups; None: all. The secret is shown this once.
        """
        with self._noting(Action.WEBHOOK_CREATE):
            return service.make_webhook(
                self.runtime,
                self.tenant_id,
                url=url,
                types=types,
                agent=agent,
                user=user,
                description=description,
                after=after,
            )

    def change_webhook(
        self,
        webhook: UUID | str,
        *,
        url: str | Unchanged = UNCHANGED,
        types: Sequence[str] | Unchanged | None = UNCHANGED,
        agent: str | Unchanged | None = UNCHANGED,
        user: str | Unchanged | None = UNCHANGED,
        description: str | Unchanged | None = UNCHANGED,
        paused: bool | Unchanged = UNCHANGED,
    ) -> Webhook:
        """Change a webhook; what is not given stays. ``paused`` False goes on where it was."""
        change = WebhookChange(
            url=url, types=types, agent=agent, user=user, description=description, paused=paused
        )
        id = checked_id(webhook, field="webhook")
        with self._noting(Action.WEBHOOK_CHANGE, target=id):
            return service.change_webhook(self.runtime, self.tenant_id, id, change=change)

    def rotate_webhook(self, webhook: UUID | str, *, overlap_hours: float = 24) -> NewWebhook:
        """Give it another secret; messages have a signature with the old one, too, for ``overlap_hours``."""
        id = checked_id(webhook, field="webhook")
        with self._noting(Action.WEBHOOK_ROTATE, target=id):
            return service.rotate_webhook(self.runtime, self.tenant_id, id, overlap_hours=overlap_hours)

    def delete_webhook(self, webhook: UUID | str) -> None:
        """Delete a webhook and its log."""
        id = checked_id(webhook, field="webhook")
        with self._noting(Action.WEBHOOK_DELETE, target=id):
            service.delete_webhook(self.runtime, self.tenant_id, id)

    def webhook_deliveries(
        self, webhook: UUID | str, *, limit: int = 50, cursor: UUID | str | None = None
    ) -> tuple[Delivery, ...]:
        """The latest tries of deliveries, the newest first; those before the id ``cursor``."""
        id = checked_id(webhook, field="webhook")
        return service.list_deliveries(
            self.runtime, self.tenant_id, id, limit=limit, cursor=cursor_of(cursor)
        )

    def resend_webhook(self, webhook: UUID | str, *, after: str) -> Webhook:
        """Send again what came after an event (``oldest``: everything that is kept), in messages with new ids."""
        id = checked_id(webhook, field="webhook")
        with self._noting(Action.WEBHOOK_CHANGE, target=id):
            return service.resend_webhook(self.runtime, self.tenant_id, id, after=after)

    def ping_webhook(self, webhook: UUID | str) -> Delivery:
        """Send a message of the type ``ping`` now, also while it is paused; what came of it."""
        return service.ping_webhook(self.runtime, self.tenant_id, checked_id(webhook, field="webhook"))
