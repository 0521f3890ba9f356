"""Connections of clients, which are given up when nothing comes, and when nothing is taken: uvicorn keeps them as long as the client
does.
"""

import asyncio
import socket
import struct
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import h11
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.h11_impl import H11Protocol

from memory_mcp.server.bounds import Bounds
from memory_mcp.server.public_path import FROM_PROXY

# An answer is written while fewer bytes than the first number wait in the connection, and then again once there are fewer than the second.
MOST_WAITING, FEW_WAITING = 64 * 1024, 16 * 1024
# What a client must take of an answer within `silence_seconds`.
LEAST_TAKEN = MOST_WAITING - FEW_WAITING
UNSENT_BYTES = 128 * 1024
# What a chunk of a body must have on average, and how many smaller ones may follow one another: each takes as long as kilobytes of a
# large one.
LEAST_CHUNK_BYTES, SMALL_CHUNKS = 12, 512


class Connection(H11Protocol):
    """A connection that is given up if within `silence_seconds` the headers of a request don't arrive, `LEAST_TAKEN` of an answer isn't
    taken, or the rest of a call that is answered already does not come.

    A thousand of them may take all file descriptors that a process has, and what they don't take fills its memory.
    """

    def __init__(self, *arguments: Any, bounds: Bounds, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.conn: RequestParser = RequestParser(h11.SERVER)
        self._bounds = bounds
        self._headers, self._answer, self._rest = (_Patience(self.loop, bounds) for _ in range(3))

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Wait for the first request."""
        super().connection_made(transport)
        # uvicorn puts the client's address in the place of a proxy's, so that it is not known any more who has sent the headers.
        trusted = getattr(self.config.loaded_app, "trusted_hosts", ())
        self.app_state = {**self.app_state, FROM_PROXY: (self.client or (None,))[0] in trusted}
        transport.set_write_buffer_limits(MOST_WAITING, FEW_WAITING)
        _bound_unsent(transport)
        self.flow = _Flow(transport, self._bounds)
        self._headers.begin(transport.close)

    def data_received(self, data: bytes) -> None:
        """Stop waiting when the headers are complete, and wait for those of a further request from their first byte."""
        super().data_received(data)
        if self.conn.is_deaf and self.transport.can_write_eof():
            self.transport.write_eof()  # the client can still read its answer, and sees that no further request is taken
        if self.conn.their_state is not h11.SEND_BODY:
            self._rest.end()
        if self.conn.their_state is not h11.IDLE:
            self._headers.end()
        elif not self._headers.is_waiting:
            self._headers.begin(self.transport.close)

    def on_response_complete(self) -> None:
        """Wait for the client to take the end of the answer, and to send the end of a call that was answered before it was there."""
        self._wait_for_reader(self.transport.get_write_buffer_size())
        if self.conn.their_state is h11.SEND_BODY and not self._rest.is_waiting:
            self._rest.begin(self.transport.close)
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP and end its call, which would otherwise still answer; if it has begun to, only the connection is
        closed.
        """
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            super().send_400_response(msg)
        else:
            self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        for patience in (self._headers, self._answer, self._rest):
            patience.end()
        super().connection_lost(exc)

    def _wait_for_reader(self, left: int) -> None:
        if left:
            self._answer.begin(self._check_reader, left)
        else:
            self._answer.end()

    def _check_reader(self, before: int) -> None:
        left = self.transport.get_write_buffer_size()
        if left > max(before - LEAST_TAKEN, 0):
            _give_up(self.transport)
        else:
            self._wait_for_reader(left)


class RequestParser(h11.Connection):
    """Parses requests, but no flood of tiny chunks: they would hold the event loop, and with it everybody.

    While nobody has answered, such a body is refused. What follows an answer is of no use to anybody: after `SMALL_CHUNKS` of it, all else
    is dropped unread.
    """

    def __init__(self, role: type[h11.SERVER]) -> None:
        super().__init__(role)
        self._credit_bytes = 0
        self._headers: list[bytes] = []
        self.is_deaf = False

    def receive_data(self, data: bytes) -> None:
        """Take what has arrived."""
        if not self.is_deaf:
            super().receive_data(data)

    def next_event(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        """Parse what comes next.

        Raises:
            h11.RemoteProtocolError: it is no HTTP, or in too many chunks.
        """
        event = h11.NEED_DATA if self.is_deaf else super().next_event()
        if isinstance(event, h11.Request):
            self._credit_bytes = SMALL_CHUNKS * LEAST_CHUNK_BYTES
        elif isinstance(event, h11.Data):
            self._count(event)
        return h11.NEED_DATA if self.is_deaf else event

    def send_with_data_passthrough(self, event: h11.Event) -> list[bytes] | None:
        """What is to be written. The headers of an answer that has a length wait for its first bytes: they are one packet."""
        written = super().send_with_data_passthrough(event)
        if written is None:
            return None
        if isinstance(event, h11.Response) and any(name == b"content-length" for name, _ in event.headers):
            self._headers = written
            return []
        headers, self._headers = self._headers, []
        return [*headers, *written]

    def _count(self, data: h11.Data) -> None:
        is_wanted = self.our_state in (h11.SEND_RESPONSE, h11.SEND_BODY)
        if is_wanted:
            self._credit_bytes = min(self._credit_bytes + len(data.data), SMALL_CHUNKS * LEAST_CHUNK_BYTES)
        if data.chunk_end:
            self._credit_bytes -= LEAST_CHUNK_BYTES
        if self._credit_bytes < 0 and is_wanted:
            raise h11.RemoteProtocolError("the chunks of the body are too small")
        self.is_deaf = self._credit_bytes < 0


class _Patience:
    """Does something once `silence_seconds` have passed, unless what is waited for comes before."""

    def __init__(self, loop: asyncio.AbstractEventLoop, bounds: Bounds) -> None:
        self._loop, self._bounds = loop, bounds
        self._timer: asyncio.TimerHandle | None = None

    @property
    def is_waiting(self) -> bool:
        return self._timer is not None

    def begin(self, act: Callable[..., None], *arguments: Any) -> None:
        """Wait anew."""
        self.end()
        self._timer = self._loop.call_later(self._bounds.silence_seconds, act, *arguments)

    def end(self) -> None:
        """Wait no longer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class _Flow(FlowControl):
    """Waits for the client to take what was written, but no longer than `silence_seconds`; then the connection is given up."""

    def __init__(self, transport: asyncio.Transport, bounds: Bounds) -> None:
        super().__init__(transport)
        self._bounds = bounds

    async def drain(self) -> None:
        try:
            async with asyncio.timeout(self._bounds.silence_seconds):
                await super().drain()
        except TimeoutError:
            _give_up(self._transport)
            await super().drain()  # the loop says at once that the connection is lost


def _give_up(transport: asyncio.Transport) -> None:
    """Close a connection with all that it hasn't sent: the system, too, would otherwise keep its part for minutes."""
    opened: socket.socket | None = transport.get_extra_info("socket")
    if opened is not None:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("hh" if sys.platform == "win32" else "ii", 1, 0))
    transport.abort()


def _bound_unsent(transport: asyncio.Transport) -> None:
    """Has the system take no more of an answer than it can soon send: it would take megabytes, and hide for as long what a client takes."""
    opened: socket.socket | None = transport.get_extra_info("socket")
    if opened is not None and opened.family in (socket.AF_INET, socket.AF_INET6) and hasattr(socket, "TCP_NOTSENT_LOWAT"):
        with suppress(OSError):  # some sandboxes know the option by name alone
            opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, UNSENT_BYTES)
