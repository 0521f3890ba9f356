"""Bodies of calls: how long they may take to arrive."""

import asyncio
import time
from collections import deque
from collections.abc import Iterable

from starlette.types import Message, Receive, Scope

from memory_mcp.errors import BodyLate, BodyTooLong, InvalidInput
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


def too_long(path: str, limit_bytes: int) -> InvalidInput:
    """The refusal of a body that has more bytes than may be sent to this path."""
    if path.startswith("/api/"):
        return InvalidInput(
            "the body is too long", "4 MiB are the limit", "Send less at once, or many memories as JSON lines to POST /api/import"
        )
    most = f"{limit_bytes // 1_048_576} MiB" if limit_bytes >= 1_048_576 else f"{limit_bytes // 1024} KiB"
    return BodyTooLong("the form is too long", "{} are the limit", "Send less at once", most)


class InTime:
    """A `receive` that gives a body up: if nothing of it arrives for `silence_seconds`, or less than `least_bytes_per_second` for longer.

    Only the time counts in which somebody waits for the client.
    """

    def __init__(self, receive: Receive, bounds: Bounds) -> None:
        self._receive = receive
        self._bounds = bounds
        self._size = 0
        self._waited = 0.0
        self._late: BodyLate | None = None
        self.is_complete = False

    async def __call__(self) -> Message:
        if self.is_complete:
            return await self._receive()
        if self._late:
            raise self._late
        silence, least = self._bounds.silence_seconds, self._bounds.least_bytes_per_second
        left = silence + self._size / least - self._waited
        began = time.monotonic()
        try:
            async with asyncio.timeout(min(silence, max(left, 0))):
                message = await self._receive()
        except TimeoutError:
            self._late = BodyLate(
                "the rest of the call did not come",
                "nothing of its body arrived for {} seconds, or less than {} KiB a second",
                "Send it again; what is there already isn't stored twice",
                f"{silence:g}",
                least // 1024,
            )
            raise self._late from None
        self._waited += time.monotonic() - began
        self._size += len(message.get("body", b""))
        self.is_complete = message["type"] != "http.request" or not message.get("more_body")
        return message
