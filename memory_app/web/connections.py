"""What a connection may cost: how many there are, and how long each may keep us waiting.

uvicorn gives an idle connection its time, but none that sends its headers byte by byte, sends on a body that was
answered already, or does not read its answer. Here each of these has an end, and when there are as many connections as
there may be, one that keeps us waiting makes room for a new one.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import h11
from starlette.responses import Response
from uvicorn.protocols.http.h11_impl import H11Protocol

from memory_app.errors import RequestTooSlow, Transient
from memory_app.settings import Http
from memory_app.web.errors import answer, error_answer


@dataclass(slots=True)
class Connections:
    """The open connections of a process, oldest first."""

    settings: Http
    members: dict[Connection, None] = field(default_factory=dict)
    addresses: Counter[str] = field(default_factory=Counter)
    is_stopping: bool = False
    """The server ends. A connection that was accepted in this moment would not be told otherwise."""

    def admit(self, connection: Connection) -> bool:
        """Whether there is room for one more; makes room if need be and if somebody keeps us waiting."""
        if self.is_stopping:
            return False
        limit = self.settings.connections_per_address
        if limit and self.addresses[connection.address] >= limit:
            return False
        if len(self.members) >= self.settings.connections:
            idle = self._least_useful()
            if idle is None:
                return False
            idle.drop()
        self.members[connection] = None
        self.addresses[connection.address] += 1
        return True

    def forget(self, connection: Connection) -> None:
        """Harmless for a connection that was not admitted or is forgotten already."""
        if connection in self.members:
            del self.members[connection]
            self.addresses[connection.address] -= 1
            if not self.addresses[connection.address]:
                del self.addresses[connection.address]

    def _least_useful(self) -> Connection | None:
        """The oldest that never sent a whole request; else the oldest that has none under way."""
        idle = [member for member in self.members if not member.is_at_work]
        return next((member for member in idle if not member.was_useful), idle[0] if idle else None)


class Connection(H11Protocol):
    """One connection, with its deadlines."""

    def __init__(self, *given: Any, connections: Connections, **named: Any) -> None:
        super().__init__(*given, **named)
        self.all = connections
        self.address = ""
        self._patience: asyncio.TimerHandle | None = None
        self._writing: asyncio.TimerHandle | None = None
        self._unread_bytes = 0

    @property
    def was_useful(self) -> bool:
        """Whether a request has come whole, at least its headers."""
        return self.cycle is not None

    @property
    def is_at_work(self) -> bool:
        """Whether it waits for us and not we for it."""
        return self.cycle is not None and not self.cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.address = self.client[0] if self.client else ""
        if self.all.admit(self):
            self._watch_patience()
        else:
            error = Transient("no more connections are taken here; try again", retry_after=1)
            self._refuse(error_answer(error))

    def connection_lost(self, exc: Exception | None) -> None:
        self.all.forget(self)
        self._patience = _cancelled(self._patience)
        self._writing = _cancelled(self._writing)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if not self.transport.is_closing():  # What comes after a refusal is not looked at.
            super().data_received(data)
            self._watch_patience()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._watch_patience()
        self._watch_reader()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch_reader()

    def resume_writing(self) -> None:
        """Most of what was written has been read: the time begins anew."""
        super().resume_writing()
        self._writing = _cancelled(self._writing)

    def timeout_keep_alive_handler(self) -> None:
        self._end()

    def shutdown(self) -> None:
        if not self.transport.is_closing():
            super().shutdown()
            self._watch_reader()

    def send_400_response(self, msg: str) -> None:
        message = "this is not HTTP/1.1; see /docs"
        self._refuse(answer(400, "invalid_input", message))

    def drop(self) -> None:
        """End at once, without a word."""
        self.all.forget(self)
        self.transport.abort()

    def _watch_patience(self) -> None:
        """One deadline from the first byte that is missing; bytes that come meanwhile do not prolong it."""
        is_new = self.cycle is None
        is_midway = bool(self.conn.trailing_data[0]) or self.conn.their_state is h11.SEND_BODY
        if self.is_at_work or self.transport.is_closing() or not (is_new or is_midway):
            self._patience = _cancelled(self._patience)
        elif self._patience is None:
            self._patience = self.loop.call_later(self.all.settings.header_seconds, self._lose_patience)

    def _lose_patience(self) -> None:
        self._patience = None
        if self.is_at_work or self.transport.is_closing():
            return
        if self.conn.trailing_data[0] and self.conn.our_state is h11.IDLE:
            seconds = self.all.settings.header_seconds
            error = RequestTooSlow(f"the headers did not arrive within {seconds:g} s; send the request again")
            self._refuse(error_answer(error))
        else:
            self._end()

    def _watch_reader(self) -> None:
        """As long as the caller has not read what we wrote, he must go on reading."""
        if self._writing is None and self.transport.get_write_buffer_size():
            self._unread_bytes = self.transport.get_write_buffer_size()
            self._writing = self.loop.call_later(self.all.settings.body_seconds, self._check_reader)

    def _check_reader(self) -> None:
        self._writing = None
        settings = self.all.settings
        unread = self.transport.get_write_buffer_size()
        if unread and self._unread_bytes - unread < settings.body_seconds * settings.body_rate_bytes:
            self.drop()
        else:
            self._watch_reader()

    def _refuse(self, response: Response) -> None:
        """Answer without a request, and close."""
        head = h11.Response(
            status_code=response.status_code,
            headers=[*response.raw_headers, (b"connection", b"close")],
        )
        for event in (head, h11.Data(data=bytes(response.body)), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        self._end()

    def _end(self) -> None:
        """Close. What was written and is not read yet gets its time."""
        self.transport.close()
        self._patience = _cancelled(self._patience)
        self._watch_reader()


def _cancelled(timer: asyncio.TimerHandle | None) -> asyncio.TimerHandle | None:
    """None, for the place where the timer stood."""
    if timer is not None:
        timer.cancel()
    return None
