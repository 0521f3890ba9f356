"""A call on its way to its vendor and back: bytes pass as they come, and what was said is kept when it is complete."""

import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from typing import Any

import anyio
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from memory_mcp.config.settings import ModelVendor
from memory_mcp.errors import ChatFailed, MemoryMCPError
from memory_mcp.features.gateway import answers, offered
from memory_mcp.features.gateway.body import Body
from memory_mcp.features.gateway.keeping import keep
from memory_mcp.features.gateway.putting_in import Asked, merged
from memory_mcp.features.gateway.refusals import refusal
from memory_mcp.features.gateway.settings import Gateway
from memory_mcp.features.gateway.spending import tokens_of
from memory_mcp.features.gateway.transcript import digest
from memory_mcp.features.gateway.upstream import Reply, Upstream
from memory_mcp.llm.endings import cut_of
from memory_mcp.server.answers import turn_of
from memory_mcp.server.auth import Authenticator
from memory_mcp.server.call import Call

# How vendors refuse messages that they can't read; some do by a failure, or an error in a stream that has begun, which may be anything else.
REFUSALS = (400, 422)
FAILURE = 500
KEY_OF_A_CALL = "idempotency-key"

logger = logging.getLogger(__name__)


def refused(request: Request, error: MemoryMCPError) -> Response:
    """The answer of a call that failed here."""
    return refusal(error, request.app.state.runtime.config.current().privacy)


@dataclass(slots=True)
class Passing:
    """A call on its way to its vendor, which knows the model by this name, and back. `asked`: what is put into it, None for one that passes
    as it is. `offers`: the model is offered tools here; `further`: what it called and got of them, and `said` what it said before it did.
    `is_apart`: what is put in are messages of their own, else it is part of the client's. `identity`: of the vendor's model; `headers`: for
    the next call.
    """

    request: Request
    call: Call
    name: str
    vendor: ModelVendor
    body: Body
    model: str
    asked: Asked | None
    further: list[Any] = field(default_factory=list)
    said: str = ""
    upstream: Upstream = field(init=False)
    offers: bool = field(init=False)
    is_apart: bool = field(init=False)
    identity: str = field(init=False)
    headers: Headers = field(init=False)
    has_begun: bool = False

    def __post_init__(self) -> None:
        self.upstream = self.request.app.state.upstream
        self.identity, self.headers = digest(self.vendor.url, self.model), self.request.headers
        self.is_apart = bool(self.asked and self.asked.inserted) and self.identity not in self.upstream.strict
        self.offers = self.asked is not None and self.call.settings.of(Gateway).tools and offered.may_be(self.body)

    async def pass_to(self, send: Send) -> None:
        """Send the vendor's answer as it comes. A vendor that breaks off leaves it incomplete here, too."""
        try:
            for _ in range(offered.ROUNDS):
                if await self._round(send):
                    return
            self.offers = False
            await self._round(send)
        except MemoryMCPError as error:
            if self.has_begun:
                logger.warning("%s", error)
                return
            await refused(self.request, error)(self.request.scope, self.request.receive, send)

    async def _round(self, send: Send) -> bool:
        """Ask once. Returns False where the model called tools that it is offered here: it is to be asked again."""
        sent, is_key_given = self._sent(), KEY_OF_A_CALL in self.headers
        async with self._asking(sent) as reply:
            if not self.is_apart or self.has_begun:
                return await self._passed(reply, sent, send)
            first, refusal = await _looked_at(reply)
            is_clear = first.status in REFUSALS
            if refusal is None or not (is_clear or (first.status in (200, FAILURE) and not is_key_given)):
                return await self._passed(first, sent, send)
        # Templates of many local models take no message of the system but the first. Whether that was it shows when it is asked without.
        self.is_apart = False
        sent = self._sent()
        try:
            async with self._asking(sent) as answer:
                again, failure = await _looked_at(answer)
                if failure is None:
                    if is_clear and self.identity not in self.upstream.strict:
                        self.upstream.strict.append(self.identity)
                    return await self._passed(again, sent, send)
        except ChatFailed:
            if self.has_begun:
                raise
        await self._answer(first, refusal, send)
        return True

    def _asking(self, sent: bytes) -> AbstractAsyncContextManager[Reply]:
        """A call of the vendor. Only the first has the key that the client gave its call: it stands for one body."""
        headers = self.headers
        self.headers = Headers(raw=[(name, value) for name, value in headers.raw if name != KEY_OF_A_CALL.encode()])
        return self.upstream.asked(self.name, self.vendor, headers, sent)

    async def _passed(self, reply: Reply, sent: bytes, send: Send) -> bool:
        if reply.content_type.startswith(answers.EVENTS):
            return await self._stream(reply, sent, send)
        return await self._at_once(reply, sent, send)

    def _sent(self) -> bytes:
        """The body for the vendor."""
        texts = self.asked.inserted if self.asked else {}
        inserted: dict[int, Sequence[Any]] = {}
        replaced: dict[int, Any] = {}
        if self.is_apart:
            inserted = {index: [{"role": "system", "content": text} for text in each] for index, each in texts.items()}
        elif self.asked:
            inserted, replaced = merged(self.body.messages, texts, self.asked.transcript.begins)
        if self.further:
            end = len(self.body.messages)
            inserted[end] = [*inserted.get(end, ()), *self.further]
        own = self.body.get("tools") or ()
        tools: dict[str, Any] = {}
        if self.offers:
            tools = {"tools": [*own, *offered.TOOLS]}
        elif self.further and not own:  # some vendors refuse calls of tools that the request does not name
            tools = {"tools": offered.TOOLS, "tool_choice": "none"}
        return self.body.sent({"model": self.model, **tools}, inserted, replaced)

    async def _stream(self, reply: Reply, sent: bytes, send: Send) -> bool:
        events, is_kept = answers.Events(holds_calls=self.offers), reply.status >= 300
        if not self.has_begun:
            self.has_begun = True
            await send({"type": "http.response.start", "status": reply.status, "headers": reply.headers})
        try:
            async for piece in reply.pieces:
                shown = events.feed(piece)
                if not is_kept and events.answer.ended and not events.answer.calls:
                    is_kept = True
                    await self._keep(events.answer)  # before the client learns that it is complete
                if shown:
                    await send({"type": "http.response.body", "body": shown, "more_body": True})
            rest = events.end()
        finally:
            self._count(events.answer, sent)
        if await self._has_run(events.answer):
            return False
        if not is_kept:
            await self._keep(events.answer)
        await send({"type": "http.response.body", "body": rest})
        return True

    async def _at_once(self, reply: Reply, sent: bytes, send: Send) -> bool:
        body = await _whole(reply)
        if self.has_begun:  # a stream, whose client reads nothing but events
            await send({"type": "http.response.body", "body": b"data: %b\n\n" % b" ".join(body.splitlines())})
            return True
        if reply.status < 300:
            answer = answers.whole(body, are_calls_wanted=self.offers)
            self._count(answer, sent)
            if await self._has_run(answer):
                return False
            await self._keep(answer)
        await self._answer(reply, body, send)
        return True

    async def _answer(self, reply: Reply, body: bytes, send: Send) -> None:
        self.has_begun = True
        length = (b"content-length", str(len(body)).encode())
        await send({"type": "http.response.start", "status": reply.status, "headers": [*reply.headers, length]})
        await send({"type": "http.response.body", "body": body})

    async def _has_run(self, answer: answers.Answer) -> bool:
        """Run calls of tools that are offered here, and return whether there were any. Where a model mixes them with those of its client,
        it is asked again without an offer: a client would have to answer for both.
        """
        calls, text = answer.calls, answer.text
        are_ours = offered.are_ours(calls) if calls else False
        if are_ours is None:
            self.offers = False
        if are_ours:
            self.said += text
            conversation = self.asked.turn.conversation if self.asked else ""
            self.further.append({"role": "assistant", "content": text or None, "tool_calls": calls})
            async with turn_of(self.request.scope):
                self.further += await run_in_threadpool(lambda: [offered.run(self.call, each, conversation) for each in calls])
        return are_ours is not False

    def _count(self, answer: answers.Answer, sent: bytes) -> None:
        """Count what the vendor did, whether or not the client waited for it."""
        state = self.request.app.state
        tokens = tokens_of(answer, sent)
        state.spending.add(self.call.admission, tokens, self.call.local_now)
        if state.metrics:
            state.metrics.spent(self.name, *tokens)

    async def _keep(self, answer: answers.Answer) -> None:
        asked = self.asked
        if asked is None or asked.has_answer or not (answer.is_given or answer.is_call):
            return
        with anyio.CancelScope(shield=True):  # the answer is complete, whether or not the client waits for its last byte
            async with turn_of(self.request.scope):
                await run_in_threadpool(self._kept, asked, answer)

    def _kept(self, asked: Asked, answer: answers.Answer) -> None:
        gateway = self.call.settings.of(Gateway)
        authenticator: Authenticator = self.request.app.state.authenticator
        if not authenticator.still_admits(self.call.admission):
            return
        try:
            said = self.said + answer.text if answer.is_given else None
            keep(self.call, asked, said, with_turn=gateway.store == "turns", is_cut=cut_of(answer.ended) == "limit")
        except MemoryMCPError as error:
            logger.warning("a turn of %s is not stored: %s", asked.turn.conversation, error)


async def _whole(reply: Reply) -> bytes:
    return b"".join([piece async for piece in reply.pieces])


async def _looked_at(reply: Reply) -> tuple[Reply, bytes | None]:
    """An answer as it is, and the whole of it where it is a refusal. Of a stream no more than the first event is waited for."""
    read, event = b"", None
    is_stream = reply.status < 300 and reply.content_type.startswith(answers.EVENTS)
    async for piece in reply.pieces:
        read += piece
        event = answers.first_event(read) if is_stream else None
        if event is not None:
            break
    is_refused = reply.status >= 300 or answers.is_error(event if event is not None else read)
    if is_refused:
        read += await _whole(reply)
    return replace(reply, pieces=_from(read, reply.pieces)), read if is_refused else None


async def _from(read: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield read
    async for piece in rest:
        yield piece


class Relay(Response):
    """An answer that ends with its client: what a vendor still does for it is ended, too."""

    def __init__(self, passing: Passing) -> None:
        super().__init__()
        self._passing = passing

    async def __call__(self, _scope: Scope, receive: Receive, send: Send) -> None:
        async with anyio.create_task_group() as group:

            async def until_gone() -> None:
                while (await receive())["type"] != "http.disconnect":
                    pass
                group.cancel_scope.cancel()

            group.start_soon(until_gone)
            await self._passing.pass_to(send)
            group.cancel_scope.cancel()
