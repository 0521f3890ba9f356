"""The routes: a call is read, gets what the persona remembers, and passes through to its vendor; what it answers passes back, and is kept."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import anyio
import httpx2
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from memory_mcp.config.settings import ModelVendor, setting_schemas, value_of
from memory_mcp.domain import TokenScope
from memory_mcp.errors import InvalidInput, MemoryMCPError
from memory_mcp.features.gateway import answers, transcript
from memory_mcp.features.gateway.body import Body, parsed
from memory_mcp.features.gateway.keeping import keep
from memory_mcp.features.gateway.putting_in import Asked, put_in
from memory_mcp.features.gateway.refusals import UnknownAddress, UnknownModel, refusal
from memory_mcp.features.gateway.settings import Gateway
from memory_mcp.features.gateway.spending import Spending, tokens_of
from memory_mcp.features.gateway.upstream import Reply, Upstream
from memory_mcp.language.labels import UNSTORABLE, label
from memory_mcp.server.answers import turn_of
from memory_mcp.server.call import Call, call_of
from memory_mcp.server.http.requests import body_within

PREFIX = "/v1/"
CHAT, MODELS = f"{PREFIX}chat/completions", f"{PREFIX}models"
BODY_LIMIT_BYTES = 32 * 1024 * 1024
# Clients name the conversation by the first; Open WebUI has a name of its own for that.
SESSION_HEADERS = ("x-session", "x-openwebui-chat-id")
# The key with the scope that spending the server's keys needs; the chat brings it.
CHAT_SCOPE = "chat.dashboard_scope"
MEMORY_HEADER, OFF = "x-memory", "off"

logger = logging.getLogger(__name__)


async def complete(request: Request) -> Response:
    """Pass a call on to the vendor that its model names."""
    try:
        call = _admitted(request)
        spending: Spending = request.app.state.spending
        spending.require(call.admission, call.settings.of(Gateway), _local_now(call))
        body = parsed(await body_within(request, BODY_LIMIT_BYTES, too_long()))
        name, vendor, model = _vendor(call, body.get("model"))
        asked = await _asked(request, call, body)
        sent = body.sent({"model": model}, _messages(asked))
    except MemoryMCPError as error:
        return await _refused(request, error)
    except ClientDisconnect:
        return Response(status_code=400)  # it is not read
    return Relay(_Passing(request, call, name, vendor, sent, asked))


async def models(request: Request) -> Response:
    """List the models of all vendors, or return one of them."""
    try:
        call = _admitted(request)
    except MemoryMCPError as error:
        return await _refused(request, error)
    upstream: Upstream = request.app.state.upstream
    listed = await upstream.models(call.settings.llm.vendors)
    wanted = request.path_params.get("model")
    if wanted is None:
        return JSONResponse({"object": "list", "data": listed})
    found = next((model for model in listed if model["id"] == wanted), None)
    return JSONResponse(found) if found else await _refused(request, _unknown(call, wanted))


async def nowhere(request: Request) -> Response:
    """Say what there is."""
    return await _refused(request, UnknownAddress("there is nothing here", "", f"POST {CHAT}, or GET {MODELS}"))


METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
ROUTES = (
    Route(CHAT, complete, methods=["POST"]),
    Route(MODELS, models, methods=["GET"]),
    Route(f"{MODELS}/{{model:path}}", models, methods=["GET"]),
    Route(f"{PREFIX}{{path:path}}", nowhere, methods=list(METHODS)),
)


def _local_now(call: Call) -> datetime:
    return call.now.astimezone(call.settings.zone)


def needed(call: Call) -> tuple[TokenScope, ...]:
    """The scopes of a call: it reads and writes memories, and spends the server's keys as the chat does."""
    spends: TokenScope = value_of(call.settings, CHAT_SCOPE) if CHAT_SCOPE in setting_schemas() else "admin"
    return ("read", "write", spends)


def too_long() -> InvalidInput:
    return InvalidInput("the body is too long", "{} MiB are the limit", "Send less at once", BODY_LIMIT_BYTES // 1048576)


def _admitted(request: Request) -> Call:
    """The call of a request whose token allows it."""
    call = call_of(request)
    call.admission.require(needed(call), "the gateway")
    if call.pool:
        raise InvalidInput("a conversation is with a persona", "the request is about a pool", "Send no X-Pool header")
    call.writable_name()
    return call


def _vendor(call: Call, named: Any) -> tuple[str, ModelVendor, str]:
    """The vendor that a model's name begins with, and the name that the vendor knows."""
    vendor, _, model = named.partition("/") if isinstance(named, str) else ("", "", "")
    vendors = call.settings.llm.vendors
    if vendor not in vendors or not model:
        raise _unknown(call, named)
    return vendor, vendors[vendor], model


def _unknown(call: Call, named: Any) -> UnknownModel:
    vendors = call.settings.llm.vendors
    how = f"Write it as VENDOR/MODEL, where VENDOR is {', '.join(vendors)}" if vendors else "Name a vendor in llm.vendors of config.json"
    return UnknownModel(f"there is no model {named!r:.200}", "", how)


async def _asked(request: Request, call: Call, body: Body) -> Asked | None:
    """What is put into a call; None for one that passes as it is, of which nothing is kept."""
    gateway = call.settings.of(Gateway)
    if request.headers.get(MEMORY_HEADER, "").strip().casefold() == OFF:
        return None
    said = transcript.read([message.value for message in body.messages], call.own_name())
    if not said.exchanges or any(_begins_with(text.text, gateway.off_words) for text in said.newest.said):
        return None
    async with turn_of(request.scope):
        return await run_in_threadpool(put_in, call, gateway, said, _session(request.headers))


def _begins_with(text: str, words: Sequence[str]) -> bool:
    beginning = text.lstrip().casefold()
    return any(beginning.startswith(word.casefold()) for word in words if word.strip())


def _session(headers: Headers) -> str | None:
    """The conversation that a request names."""
    named = next((headers[name] for name in SESSION_HEADERS if headers.get(name, "").strip()), "")
    try:
        named = named.encode("latin-1").decode()
    except UnicodeDecodeError:
        raise InvalidInput("the X-Session header is not UTF-8", "", "Send the name of the conversation as UTF-8") from None
    return label(UNSTORABLE.sub("", named), "X-Session")


def _messages(asked: Asked | None) -> Mapping[int, Sequence[Any]]:
    if asked is None:
        return {}
    return {index: [{"role": "system", "content": text} for text in texts] for index, texts in asked.inserted.items()}


async def _refused(request: Request, error: MemoryMCPError) -> Response:
    return refusal(error, request.app.state.runtime.config.current().privacy)


@dataclass(slots=True)
class _Passing:
    """A call on its way to its vendor and back."""

    request: Request
    call: Call
    name: str
    vendor: ModelVendor
    sent: bytes
    asked: Asked | None

    async def pass_to(self, send: Send) -> None:
        """Send the vendor's answer as it comes. A vendor that breaks off leaves it incomplete here, too."""
        upstream: Upstream = self.request.app.state.upstream
        try:
            async with upstream.asked(self.name, self.vendor, self.request.headers, self.sent) as reply:
                if reply.content_type.startswith(answers.EVENTS):
                    await self._stream(reply, send)
                else:
                    await self._at_once(reply, send)
        except MemoryMCPError as error:
            response = await _refused(self.request, error)
            await response(self.request.scope, self.request.receive, send)
        except httpx2.HTTPError as error:
            logger.warning("%s broke off: %s", self.name, type(error).__name__)

    async def _stream(self, reply: Reply, send: Send) -> None:
        await send({"type": "http.response.start", "status": reply.status, "headers": reply.headers})
        events, is_kept = answers.Events(), reply.status >= 300
        try:
            async for piece in reply.pieces:
                events.feed(piece)
                if not is_kept and events.answer.ended:
                    is_kept = True
                    await self._keep(events.answer)  # before the client learns that it is complete
                await send({"type": "http.response.body", "body": piece, "more_body": True})
        finally:
            self._count(events.answer)
        await send({"type": "http.response.body", "body": b""})

    async def _at_once(self, reply: Reply, send: Send) -> None:
        body = b"".join([piece async for piece in reply.pieces])
        if reply.status < 300:
            answer = answers.whole(body)
            self._count(answer)
            await self._keep(answer)
        length = (b"content-length", str(len(body)).encode())
        await send({"type": "http.response.start", "status": reply.status, "headers": [*reply.headers, length]})
        await send({"type": "http.response.body", "body": body})

    def _count(self, answer: answers.Answer) -> None:
        """Count what the vendor did, whether or not the client waited for it."""
        state = self.request.app.state
        tokens = tokens_of(answer, self.sent)
        state.spending.add(self.call.admission, tokens, _local_now(self.call))
        if state.metrics:
            state.metrics.spent(self.name, *tokens)

    async def _keep(self, answer: answers.Answer) -> None:
        asked = self.asked
        if asked is None or not (answer.is_given or answer.is_call):
            return
        with anyio.CancelScope(shield=True):  # the answer is complete, whether or not the client waits for its last byte
            async with turn_of(self.request.scope):
                await run_in_threadpool(self._kept, asked, answer)

    def _kept(self, asked: Asked, answer: answers.Answer) -> None:
        gateway = self.call.settings.of(Gateway)
        try:
            keep(self.call, asked, answer.text if answer.is_given else None, with_turn=gateway.store == "turns")
        except MemoryMCPError as error:
            logger.warning("a turn of %s is not stored: %s", asked.turn.conversation, error)


class Relay(Response):
    """An answer that ends with its client: what a vendor still does for it is ended, too."""

    def __init__(self, passing: _Passing) -> None:
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
