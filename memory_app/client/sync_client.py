"""The client for threads. Its twin for asyncio is `async_client`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from copy import copy
from itertools import count
from types import TracebackType
from typing import Concatenate, ParamSpec, TypeVar

import httpx2

from memory_app.client import events as event_calls
from memory_app.client import jobs as job_calls
from memory_app.client import memories as memory_calls
from memory_app.client import operations as operation_calls
from memory_app.client import people as people_calls
from memory_app.client import recall as recall_calls
from memory_app.client import transfer as transfer_calls
from memory_app.client import turns as turn_calls
from memory_app.client import webhooks as webhook_calls
from memory_app.client.call import Call
from memory_app.client.failure import error_of, transport_error
from memory_app.client.retries import Retries
from memory_app.client.wire import (
    CONNECT_SECONDS,
    READ_SECONDS,
    Lines,
    base_url,
    describe,
    headers_of,
    request_of,
    timeout_of,
)
from memory_app.errors import MemoryAppError, Transient
from memory_app.events.answers import EventAnswer

P = ParamSpec("P")
T = TypeVar("T")


def _sent(build: Callable[P, Call[T]]) -> Callable[Concatenate[MemoryClient, P], T]:
    """The method that sends the call which ``build`` makes of its parameters."""

    def method(client: MemoryClient, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return client.send(build(*args, **kwargs))

    describe(method, build)
    return method


class MemoryClient:
    """The HTTP API with the names of `MemoryApp`. Threads may share it; close it, or use it with ``with``.

    ``timeout_seconds`` is the longest time between two pieces of an answer. ``proxy`` and ``transport`` are httpx2's.
    Raises the errors of `memory_app.errors`.
    """

    def __init__(
        self,
        url: str,
        key: str | None = None,
        *,
        timeout_seconds: float | None = READ_SECONDS,
        connect_seconds: float = CONNECT_SECONDS,
        retries: Retries | None = None,
        proxy: httpx2.Proxy | str | None = None,
        transport: httpx2.BaseTransport | None = None,
    ) -> None:
        self.url = base_url(url)
        self.retries = retries or Retries()
        self._timeout = timeout_of(timeout_seconds, connect_seconds)
        self._http = httpx2.Client(
            headers=headers_of(key),
            timeout=self._timeout,
            proxy=proxy,
            transport=transport,
            # A redirect would carry the key and what people said to an address that nobody named.
            follow_redirects=False,
        )

    def limited(self, *, timeout_seconds: float, retries: Retries) -> MemoryClient:
        """The same client with less patience, over the same connections; close only one of them."""
        twin = copy(self)
        twin.retries = retries
        twin._timeout = timeout_of(timeout_seconds, min(timeout_seconds, CONNECT_SECONDS))
        return twin

    def __repr__(self) -> str:
        return f"MemoryClient({self.url!r})"

    record = _sent(turn_calls.record)
    record_all = _sent(turn_calls.record_all)
    ticket = _sent(turn_calls.ticket)
    turns = _sent(turn_calls.turns)
    sessions = _sent(turn_calls.sessions)
    clear_session = _sent(turn_calls.clear_session)
    failed = _sent(turn_calls.failed)
    refused = _sent(turn_calls.refused)
    replay = _sent(turn_calls.replay)
    discard = _sent(turn_calls.discard)

    recall = _sent(recall_calls.recall)
    context = _sent(recall_calls.context)
    ask = _sent(recall_calls.ask)
    similar_queries = _sent(recall_calls.similar_queries)
    feedback = _sent(recall_calls.feedback)
    stats = _sent(recall_calls.stats)
    expression = _sent(recall_calls.expression)

    remember = _sent(memory_calls.remember)
    correct = _sent(memory_calls.correct)
    memory = _sent(memory_calls.memory)
    memories = _sent(memory_calls.memories)
    why = _sent(memory_calls.why)
    versions = _sent(memory_calls.versions)
    pin = _sent(memory_calls.pin)
    unpin = _sent(memory_calls.unpin)
    add_link = _sent(memory_calls.add_link)
    links = _sent(memory_calls.links)
    remove_link = _sent(memory_calls.remove_link)
    invalidate = _sent(memory_calls.invalidate)
    revive = _sent(memory_calls.revive)
    unmerge = _sent(memory_calls.unmerge)
    forget_memory = _sent(memory_calls.forget_memory)
    add_fact = _sent(memory_calls.add_fact)
    facts = _sent(memory_calls.facts)
    entity = _sent(memory_calls.entity)
    entities = _sent(memory_calls.entities)
    merge_entities = _sent(memory_calls.merge_entities)

    sleep = _sent(job_calls.sleep)
    consolidate = _sent(job_calls.consolidate)
    decay = _sent(job_calls.decay)
    synthesize = _sent(job_calls.synthesize)
    end_session = _sent(job_calls.end_session)
    run = _sent(job_calls.run)
    undo = _sent(job_calls.undo)
    forget = _sent(job_calls.forget)
    forget_agent = _sent(job_calls.forget_agent)
    forget_session = _sent(job_calls.forget_session)
    forget_turn = _sent(job_calls.forget_turn)
    erasure = _sent(job_calls.erasure)

    agent = _sent(people_calls.agent)
    change_agent = _sent(people_calls.change_agent)
    amend_agent = _sent(people_calls.amend_agent)
    user = _sent(people_calls.user)
    change_user = _sent(people_calls.change_user)
    agents = _sent(people_calls.agents)
    users = _sent(people_calls.users)
    set_grant = _sent(people_calls.set_grant)
    grants = _sent(people_calls.grants)
    revoke_grant = _sent(people_calls.revoke_grant)
    report_user = _sent(people_calls.report_user)

    export = _sent(transfer_calls.export)
    load = _sent(transfer_calls.load)
    import_file = _sent(transfer_calls.import_file)
    checkpoint = _sent(transfer_calls.checkpoint)
    checkpoints = _sent(transfer_calls.checkpoints)
    read_checkpoint = _sent(transfer_calls.read_checkpoint)

    event_page = _sent(event_calls.event_page)

    webhooks = _sent(webhook_calls.webhooks)
    make_webhook = _sent(webhook_calls.make_webhook)
    change_webhook = _sent(webhook_calls.change_webhook)
    rotate_webhook = _sent(webhook_calls.rotate_webhook)
    delete_webhook = _sent(webhook_calls.delete_webhook)
    webhook_deliveries = _sent(webhook_calls.webhook_deliveries)
    resend_webhook = _sent(webhook_calls.resend_webhook)
    ping_webhook = _sent(webhook_calls.ping_webhook)

    tools = _sent(operation_calls.tools)
    call_tool = _sent(operation_calls.call_tool)
    trace = _sent(operation_calls.trace)
    usage = _sent(operation_calls.usage)
    audit = _sent(operation_calls.audit)
    verify_audit = _sent(operation_calls.verify_audit)
    keys = _sent(operation_calls.keys)
    make_key = _sent(operation_calls.make_key)
    rotate_key = _sent(operation_calls.rotate_key)
    revoke_key = _sent(operation_calls.revoke_key)
    limits = _sent(operation_calls.limits)
    limit_key = _sent(operation_calls.limit_key)

    def events(
        self,
        *,
        after: str | None = None,
        types: str | None = None,
        agent: str | None = None,
        user: str | None = None,
    ) -> Iterator[EventAnswer]:
        """Events as they come, without an end; goes on where it was when the server was away. Keep the ``id`` of the
        last one that you are done with, and begin after it the next time."""
        following = event_calls.Following(after, types, agent, user)
        while True:
            try:
                page = self.send(following.call())
            except Transient as error:
                time.sleep(following.pause(error))
                continue
            yield from following.read(page)

    def export_lines(
        self, *, agent: str | None = None, user: str | None = None, with_vectors: bool = False
    ) -> Iterator[str]:
        """Everything of a user, an agent or the tenant as lines of JSON; names that are absent widen it.

        The lines come while they are read; read them to the end, or close the iterator. The last one has the counts;
        without it the export was cut. A fault in the middle is not tried again.
        """
        call = transfer_calls.export_lines(agent=agent, user=user, with_vectors=with_vectors)
        response = self._answered(call, is_streamed=True)
        try:
            lines = Lines()
            for chunk in response.iter_bytes():
                yield from lines.of(chunk)
            yield from lines.rest()
        except httpx2.HTTPError as error:
            raise transport_error(error) from None
        finally:
            response.close()

    def send(self, call: Call[T]) -> T:
        """Send a call and read its answer; tries again as ``retries`` says."""
        return call.read(self._answered(call).content)

    def _answered(self, call: Call[T], *, is_streamed: bool = False) -> httpx2.Response:
        for attempt in count(1):
            try:
                return self._answer(call, is_streamed=is_streamed)
            except MemoryAppError as error:
                pause = self.retries.pause(error, call, attempt=attempt)
                if pause is None:
                    raise
            time.sleep(pause)
        raise AssertionError("an endless loop has ended")

    def _answer(self, call: Call[T], *, is_streamed: bool) -> httpx2.Response:
        try:
            request = request_of(self._http, self.url, call, usual=self._timeout)
            response = self._http.send(request, stream=is_streamed)
            if response.is_success:
                return response
            content = response.read()
            response.close()
        except httpx2.HTTPError as error:
            # Without the cause, whose request holds the key and what was said.
            raise transport_error(error) from None
        raise error_of(response, content)

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> MemoryClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
