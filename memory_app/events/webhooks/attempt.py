"""One try: sign a message, post it, and say what came of it and how long it took."""

from __future__ import annotations

import ssl
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

from memory_app import metrics
from memory_app.errors import InvalidInput
from memory_app.events.event import Event
from memory_app.events.webhooks.address import read_url, rules_of
from memory_app.events.webhooks.message import body_of, headers_of
from memory_app.events.webhooks.records import Work
from memory_app.events.webhooks.secret import Keyring
from memory_app.events.webhooks.send import Answer, Outcome, Post
from memory_app.settings import Webhooks


@dataclass(frozen=True, slots=True)
class Try:
    """What came of a try, and the milliseconds that it took."""

    answer: Answer
    duration_ms: int


def post_of(settings: Webhooks) -> Post:
    """The way out that the settings describe. Reads certificates, so make it once for many messages."""
    trust = ssl.create_default_context()
    if settings.ca_file is not None:
        trust.load_verify_locations(cafile=settings.ca_file)
    return Post(rules_of(settings), settings.connect_seconds, settings.total_seconds, trust)


def attempt(
    post: Post, keyring: Keyring, work: Work, *, type: str, message_id: UUID, events: Sequence[Event] = ()
) -> Try:
    """Post a message to the webhook. Never raises for what the receiver or the network does."""
    started = time.monotonic()
    answer = _answer(post, keyring, work, type=type, message_id=message_id, events=events)
    seconds = time.monotonic() - started
    metrics.webhook_deliveries.labels(answer.outcome).inc()
    metrics.webhook_seconds.observe(seconds)
    return Try(answer, round(seconds * 1_000))


def _answer(
    post: Post, keyring: Keyring, work: Work, *, type: str, message_id: UUID, events: Sequence[Event]
) -> Answer:
    newest, *others = (keyring.secret(source) for source in work.sources)
    if newest is None:
        return Answer(Outcome.NO_SECRET)
    try:
        # The settings may have changed since it was made.
        target = read_url(work.url, post.rules)
    except InvalidInput:
        return Answer(Outcome.ADDRESS_REFUSED)
    now = datetime.now(UTC)
    body = body_of(type, webhook_id=work.id, events=events, now=now)
    secrets = [newest, *(secret for secret in others if secret is not None)]
    return post(target, body, headers_of(secrets, message_id=message_id, body=body, now=now))
