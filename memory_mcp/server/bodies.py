"""Bodies of calls: how long they may take to arrive."""

import asyncio
from collections import deque
from collections.abc import Iterable

from starlette.types import Message, Receive, Scope

from memory_mcp.errors import BodyLate
from memory_mcp.server.bounds import Bounds


def declared_length(scope: Scope) -> int | None:
    """The bytes that a body has, by its header."""
    return next((int(value) for name, value in scope["headers"] if name == b"content-length" and value.isdigit()), None)


def replayed(messages: Iterable[Message], receive: Receive) -> Receive:
    """A `receive` that hands out these messages once more, and then whatever the client does next."""
    waiting = deque(messages)

    async def replay() -> Message:
        return waiting.popleft() if waiting else await receive()

    return replay


class InTime:
    """A `receive` that waits no longer than `silence_seconds` for the next part of a body."""

    def __init__(self, receive: Receive, bounds: Bounds) -> None:
        self._receive = receive
        self._bounds = bounds
        self._late = False
        self.is_complete = False

    async def __call__(self) -> Message:
        if self.is_complete:
            return await self._receive()
        if self._late:
            raise self._too_late()
        try:
            async with asyncio.timeout(self._bounds.silence_seconds):
                message = await self._receive()
        except TimeoutError:
            self._late = True
            raise self._too_late() from None
        self.is_complete = message["type"] != "http.request" or not message.get("more_body")
        return message

    def _too_late(self) -> BodyLate:
        return BodyLate(
            "the rest of the call did not come",
            f"nothing of its body arrived for {self._bounds.silence_seconds:g} seconds",
            "Send it again; what is there already isn't stored twice",
        )
