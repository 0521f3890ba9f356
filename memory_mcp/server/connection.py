"""Connections of clients, which are closed when nothing comes: uvicorn keeps them as long as the client does."""

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from memory_mcp.server.bounds import Bounds


class Connection(H11Protocol):
    """A connection that is closed if the headers of a request don't arrive within `silence_seconds`.

    A thousand of them may take all file descriptors that a process has.
    """

    def __init__(self, *arguments: Any, bounds: Bounds, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._bounds = bounds
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Wait for the first request."""
        super().connection_made(transport)
        self._deadline = self.loop.call_later(self._bounds.silence_seconds, transport.close)

    def data_received(self, data: bytes) -> None:
        """Stop waiting when the headers are complete, and wait for those of a further request from their first byte."""
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._stop_waiting()
        elif self._deadline is None:
            self._deadline = self.loop.call_later(self._bounds.silence_seconds, self.transport.close)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._stop_waiting()
        super().connection_lost(exc)

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
