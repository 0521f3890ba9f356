"""Answers on their way to clients: in blocks, without a turn while a client reads, and no more bytes of them than may wait."""

from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext

import anyio
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Message, Receive, Scope, Send

from memory_mcp.errors import Overloaded
from memory_mcp.server.bounds import SMALL_BYTES, WaitingBytes
from memory_mcp.server.call import TURN

# What the connection takes at a time: it waits for the client before it takes more.
SENT_BYTES = 64 * 1024
# Streams are computed in larger blocks, because each costs a worker thread's turn.
BLOCK_BYTES, BLOCK_PARTS = 256 * 1024, 200

Blocks = Generator[bytes, None, None]


def turn_of(scope: Scope) -> AbstractAsyncContextManager[None]:
    """A turn for a part of the work of a call that takes one for each; a call that has its turn needs no other."""
    turn: Callable[[], AbstractAsyncContextManager[None]] = scope.get(TURN, nullcontext)
    return turn()


def in_blocks(send: Send) -> Send:
    """A `send` that hands on a large body in blocks, so that no more of it than one lies in the connection, too."""

    async def send_blocks(message: Message) -> None:
        body = message.get("body", b"")
        while len(body) > SENT_BYTES:
            await send({"type": "http.response.body", "body": bytes(body[:SENT_BYTES]), "more_body": True})
            body = memoryview(body)[SENT_BYTES:]
        await send(message if body is message.get("body", b"") else {**message, "body": bytes(body)})

    return send_blocks


class AnswerOfTurn:
    """A `send` of a call that has a turn, which ends as soon as the answer is there: what the client takes of it is its own affair.

    An answer that would be too much for the memory is replaced by `refused`.
    """

    def __init__(
        self,
        send: Send,
        end_turn: Callable[[], Awaitable[None]],
        waiting: WaitingBytes,
        caller: str,
        refused: Callable[[Overloaded], Response],
    ) -> None:
        self._send = send
        self._end_turn = end_turn
        self._waiting = waiting
        self._caller = caller
        self._refused = refused
        self._start: Message | None = None

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._start = message
            return
        await self._end_turn()
        start, self._start = self._start, None
        size = len(message.get("body", b""))
        if start is None or size <= SMALL_BYTES:
            await self._pass_on(start, message)
            return
        try:
            self._waiting.add(self._caller, size)
        except Overloaded as error:
            await self._replace(self._refused(error))
            return
        try:
            await self._pass_on(start, message)
        finally:
            self._waiting.remove(self._caller, size)

    async def _pass_on(self, start: Message | None, message: Message) -> None:
        if start is not None:
            await self._send(start)
        await self._send(message)

    async def _replace(self, response: Response) -> None:
        await self._send({"type": "http.response.start", "status": response.status_code, "headers": response.raw_headers})
        await self._send({"type": "http.response.body", "body": response.body})


class Streamed(StreamingResponse):
    """An answer that is computed block by block, each on a worker thread in a turn of its own, as fast as the client takes it.

    However it ends, its generator is closed.
    """

    def __init__(self, first: bytes, blocks: Blocks, media_type: str, headers: Mapping[str, str]) -> None:
        super().__init__((), media_type=media_type, headers=headers)
        self._first = first
        self._blocks = blocks

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it. A page that answers with it has lost its turn by then: the turns are those of the request that came in."""
        self.body_iterator = self._parts(scope)
        try:
            await super().__call__(scope, receive, send)
        finally:
            with anyio.CancelScope(shield=True):
                await run_in_threadpool(self._blocks.close)

    async def _parts(self, scope: Scope) -> AsyncIterator[bytes]:
        block: bytes | None = self._first
        while block is not None:
            yield block
            async with turn_of(scope):
                block = await run_in_threadpool(next, self._blocks, None)


async def streamed(request: Request, blocks: Blocks, media_type: str, headers: Mapping[str, str]) -> Response:
    """Begin an answer of any length. Its first block is computed before the status is sent, so that what can't be read is refused."""
    async with turn_of(request.scope):
        first = await run_in_threadpool(next, blocks, b"")
    return Streamed(first, blocks, media_type, headers)


def joined(texts: Iterable[str]) -> Blocks:
    """Many short texts as few blocks."""
    parts, size = list[bytes](), 0
    for text in texts:
        parts.append(text.encode())
        size += len(parts[-1])
        if size >= BLOCK_BYTES or len(parts) == BLOCK_PARTS:
            yield b"".join(parts)
            parts, size = [], 0
    if parts:
        yield b"".join(parts)
