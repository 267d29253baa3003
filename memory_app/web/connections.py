"""Limit the number of connections, and the time that each may keep the server waiting.

uvicorn ends an idle connection, but none that sends its headers byte by byte, sends on a body that was answered
already, or does not read its answer. Here each of these has a deadline. At the limit of connections, one that keeps
the server waiting makes room for a new one.
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

    def admit(self, connection: Connection) -> bool:
        """Whether there is room for one more; makes room if need be and if a connection is idle."""
        # uvicorn ends the connections that it knows when it stops; one that was just accepted is not among them.
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
        if connection not in self.members:
            return
        del self.members[connection]
        self.addresses[connection.address] -= 1
        # Else the counter would grow with every address that was ever seen.
        if not self.addresses[connection.address]:
            del self.addresses[connection.address]

    def _least_useful(self) -> Connection | None:
        """The oldest that never sent a whole request; else the oldest that has none under way."""
        idle = [member for member in self.members if not member.is_at_work]
        # False sorts before True, and of equals min() takes the first, which is the oldest.
        return min(idle, key=lambda member: member.was_useful, default=None)


class Connection(H11Protocol):
    """One connection, with its deadlines."""

    def __init__(self, *arguments: Any, connections: Connections, **options: Any) -> None:
        super().__init__(*arguments, **options)
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
        """Whether the caller waits for the server, and not the other way round."""
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
        # What comes after a refusal is not looked at.
        if self.transport.is_closing():
            return
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
        super().resume_writing()
        # Most of what was written has been read, so the next deadline counts from here.
        self._writing = _cancelled(self._writing)

    def timeout_keep_alive_handler(self) -> None:
        # uvicorn's own closes as well, but leaves a caller that does not read without a deadline.
        self._end()

    def shutdown(self) -> None:
        if not self.transport.is_closing():
            super().shutdown()
            self._watch_reader()

    def send_400_response(self, msg: str) -> None:
        # Not uvicorn's message, which is plain text: every error has the same shape.
        self._refuse(answer(400, "invalid_input", "this is not HTTP/1.1; see /docs"))

    def drop(self) -> None:
        """End at once, without a word."""
        self.all.forget(self)
        self.transport.abort()

    def _watch_patience(self) -> None:
        """Set or clear the deadline of headers, and of a body whose request was answered already."""
        is_new = self.cycle is None
        is_midway = bool(self.conn.trailing_data[0]) or self.conn.their_state is h11.SEND_BODY
        must_send = is_new or is_midway
        if self.is_at_work or self.transport.is_closing() or not must_send:
            self._patience = _cancelled(self._patience)
        # One deadline from the first byte that is missing: bytes that come in drops do not prolong it.
        elif self._patience is None:
            self._patience = self.loop.call_later(self.all.settings.header_seconds, self._lose_patience)

    def _lose_patience(self) -> None:
        self._patience = None
        if self.is_at_work or self.transport.is_closing():
            return
        # Only to a request that has begun and has no answer yet can one be sent.
        if self.conn.trailing_data[0] and self.conn.our_state is h11.IDLE:
            seconds = self.all.settings.header_seconds
            error = RequestTooSlow(f"the headers did not arrive within {seconds:g} s; send the request again")
            self._refuse(error_answer(error))
        else:
            self._end()

    def _watch_reader(self) -> None:
        """Set a deadline while the caller has not read all of its answers."""
        if self._writing is None and self.transport.get_write_buffer_size():
            self._unread_bytes = self.transport.get_write_buffer_size()
            self._writing = self.loop.call_later(self.all.settings.body_seconds, self._check_reader)

    def _check_reader(self) -> None:
        self._writing = None
        settings = self.all.settings
        unread = self.transport.get_write_buffer_size()
        # A slow reader is fine as long as it reads at the pace that a body must have.
        if unread and self._unread_bytes - unread < settings.body_seconds * settings.body_rate_bytes:
            self.drop()
        else:
            self._watch_reader()

    def _refuse(self, response: Response) -> None:
        """Answer a request that never reaches the application, and close."""
        head = h11.Response(
            status_code=response.status_code,
            headers=[*response.raw_headers, (b"connection", b"close")],
        )
        for event in (head, h11.Data(data=bytes(response.body)), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        self._end()

    def _end(self) -> None:
        """Close. The caller still has its time to read what was written."""
        self.transport.close()
        self._patience = _cancelled(self._patience)
        self._watch_reader()


def _cancelled(timer: asyncio.TimerHandle | None) -> asyncio.TimerHandle | None:
    """None, for the place where the timer stood."""
    if timer is not None:
        timer.cancel()
    return None
