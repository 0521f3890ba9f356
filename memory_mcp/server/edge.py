"""The outermost ASGI layer: what must be settled before anybody parses MCP.

It takes the persona out of `/p/{persona}/…`, asks at the door who is let in, and words the refusals that otherwise come from
libraries: a body that is too large, is no UTF-8 or no JSON, a wrong host or origin, an unknown path.
"""

import asyncio
import json
import logging
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any
from urllib.parse import unquote, unquote_to_bytes

import h11
from mcp.types import jsonrpc_message_adapter
from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from memory_mcp.config.settings import Privacy
from memory_mcp.errors import BodyLate, InvalidPersonaName, MemoryMCPError, Overloaded, PersonaElsewhere, TokenRefused
from memory_mcp.personas.names import canonical_name
from memory_mcp.server import call_record
from memory_mcp.server.addressing import HEADER, PATH_PERSONA, from_header, require_own
from memory_mcp.server.auth import ADMISSION, Admission, Authenticator
from memory_mcp.server.call import ARRIVED, TURN
from memory_mcp.server.call_record import CallRecord
from memory_mcp.server.caller_presence import CALLER, watched
from memory_mcp.server.concurrency import ConcurrencyLimiter
from memory_mcp.server.dashboard.frame import refusal_page
from memory_mcp.server.errors import http_refusal, refusal_headers, status_of
from memory_mcp.server.http.requests import BODY_LIMIT_BYTES
from memory_mcp.server.metrics import Metrics
from memory_mcp.server.oauth.resource import ENDPOINTS
from memory_mcp.server.sessions import DASHBOARD, STATIC, is_dashboard

# Bodies of any size: lines and files to import, and the form that sends one.
STREAMED = frozenset({"/api/import", "/api/import/file", f"{DASHBOARD}/house/import"})
# Answers that last as long as a model talks.
CONVERSATION = f"{DASHBOARD}/chat/say"
# A call that stops arriving, as from a laptop that sleeps, is given up.
SILENCE_SECONDS = 20.0
# Bodies that are arriving are not limited. Small ones need none: a thousand connections have as much in their buffers anyway.
SMALL_BODY, BUFFERED_LIMIT = 64 * 1024, 256 * 1024 * 1024
PARSE_ERROR, INVALID_REQUEST, OVERLOADED = -32700, -32600, -32000

logger = logging.getLogger(__name__)

_HALF_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
REWORDED = {
    400: "This is no call that MCP knows. Send JSON-RPC 2.0 as JSON, with Content-Type: application/json.",
    403: "This origin may not call this server: web pages of other sites must not reach a local memory. Call it from the same host.",
    404: "There is nothing here. MCP is at /mcp (or /p/{persona}/mcp), the rest under /api, /health and /ready.",
    405: "This address does not take that HTTP method. MCP calls are POST; this server keeps no sessions and no event stream.",
    421: "The Host header names a host that this server does not answer for. Use 127.0.0.1 or localhost, or add the name to allowed_hosts in config.json.",
    500: "The server failed in a way that it did not foresee. Its log says how. What was acknowledged before is stored.",
}


class Connection(H11Protocol):
    """A connection that is closed if the headers of a request don't arrive within `SILENCE_SECONDS`.

    uvicorn keeps it as long as the client does, and a thousand of them may take all file descriptors that a process has.
    """

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Wait for the first request."""
        super().connection_made(transport)
        self._deadline = self.loop.call_later(SILENCE_SECONDS, transport.close)

    def data_received(self, data: bytes) -> None:
        """Stop waiting when the headers are complete, and wait for those of a further request from their first byte."""
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._stop_waiting()
        elif self._deadline is None:
            self._deadline = self.loop.call_later(SILENCE_SECONDS, self.transport.close)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._stop_waiting()
        super().connection_lost(exc)

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


class Edge:
    """ASGI middleware around everything else."""

    def __init__(self, app: ASGIApp, door: Authenticator, limiter: ConcurrencyLimiter, metrics: Metrics | None = None) -> None:
        self._app = app
        self._door = door
        self._metrics = metrics
        self._limiter = limiter
        self._streams = limiter.without_waiting()
        self._conversations = limiter.without_waiting()
        self._buffered = 0  # bytes of the large bodies that are arriving

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        scope = _without_last_slash(with_path_persona(scope))
        record = call_record.begin(self._door.address(scope))
        scope = {**scope, ARRIVED: record.began}
        try:
            await self._let_in(scope, receive, _Rewording(send, record, partial(self._end, record)))
        finally:
            self._end(record)

    def _end(self, record: CallRecord) -> None:
        """The one place that measures calls: before the last byte goes out, so that a call is counted once its answer is there."""
        if record.is_over:
            return
        record.is_over = True
        if self._metrics:
            self._metrics.observe(record)
        if logger.isEnabledFor(logging.DEBUG):
            facts = {"status": record.status, "duration_ms": round(record.seconds * 1e3, 1)}
            logger.debug("%s: %s", record.operation, record.outcome, extra=facts)

    async def _let_in(self, scope: Scope, receive: Receive, send: "_Rewording") -> None:
        try:
            admission = scope[ADMISSION] = await self._door.admit(scope)
        except MemoryMCPError as error:
            await run_in_threadpool(self._door.note, scope, error)
            refused = _turned_away(scope, error)
            if isinstance(error, TokenRefused) and self._door.oauth.settings.is_on:
                sent = "authorization" in Headers(scope=scope)
                refused.headers["WWW-Authenticate"] = self._door.oauth.challenge(scope.get(PATH_PERSONA), has_token=sent)
            await refused(scope, receive, send)
            return
        if admission.is_oauth:
            send.step_up = partial(self._door.oauth.step_up, scope.get(PATH_PERSONA), admission.scopes, admission.lacking)
        if not _is_work(scope):
            await self._app(scope, receive, send)
            return
        receive = _InTime(receive)
        try:
            require_own(scope, admission, self._door.runtime)
            if scope["path"] in STREAMED and scope["method"] == "POST":
                await self._stream(scope, receive, send, self._streams)
            elif scope["path"] == CONVERSATION and scope["method"] == "POST":
                await self._stream(scope, receive, send, self._conversations)
            else:
                await self._answer(scope, receive, send)
        except (BodyLate, Overloaded, PersonaElsewhere) as error:
            with suppress(BodyLate):
                await _drain(scope, receive)
            await _turned_away(scope, error)(scope, receive, send)

    async def _answer(self, scope: Scope, receive: "_InTime", send: Send) -> None:
        """Answer a call, which takes its turn once its body is there: one that never comes delays no other."""
        messages = await self._arrived(scope, receive)
        caller = callers_of(scope)
        with self._limiter.admitted(*caller):
            if scope["path"] == "/mcp" and scope["method"] == "POST" and (refusal := _refused_body(scope, messages)):
                await refusal(scope, receive, send)
                return
            async with self._limiter.turn(*caller):
                if not receive.is_complete:  # the application reads on
                    await self._app(scope, _replayed(messages, receive), send)
                    return
                async with watched(receive) as present:
                    await self._app({**scope, CALLER: present}, _replayed(messages, receive), send)

    async def _stream(self, scope: Scope, receive: "_InTime", send: Send, limiter: ConcurrencyLimiter) -> None:
        """Answer a call that reads its body, or answers, bit by bit. It has a limiter of its own, and takes a turn for each bit."""
        caller = callers_of(scope)
        with limiter.admitted(*caller):
            await self._app({**scope, TURN: partial(self._limiter.turn, *caller)}, receive, send)

    async def _arrived(self, scope: Scope, receive: "_InTime") -> list[Message]:
        """The messages with the body of a call, or with as much of it as shows that it is too long.

        Raises:
            BodyLate: the client has stopped sending.
            Overloaded: more bytes of large bodies are waiting than fit.
        """
        messages: list[Message] = []
        if (_declared_length(scope) or 0) > BODY_LIMIT_BYTES:
            return messages
        size = counted = 0
        try:
            while True:
                messages.append(message := await receive())
                size += len(message.get("body", b""))
                if receive.is_complete or size > BODY_LIMIT_BYTES:
                    return messages
                if size > SMALL_BODY:
                    self._buffered += size - counted
                    counted = size
                    if self._buffered > BUFFERED_LIMIT:
                        raise Overloaded("too many long calls are arriving", "their bodies fill the memory", "Try again in a moment")
        finally:
            self._buffered -= counted


def callers_of(scope: Scope) -> tuple[str, ...]:
    """The callers that a call counts for: the persona that it names, if its token reaches that one, and those of its token; or strangers'."""
    headers = Headers(scope=scope)
    named = scope.get(PATH_PERSONA)
    try:
        if named is None and HEADER in headers:
            named = from_header(headers[HEADER])
        name = canonical_name(named) if named is not None else ""
    except InvalidPersonaName:  # refused later, in its own words
        name = ""
    admission: Admission = scope[ADMISSION]
    if admission.is_stranger:
        return ("strangers",)
    token = (f"token {admission.token}",) if admission.token else ()
    return (f"persona {name}", *token) if admission.reaches(name) else token


def _is_work(scope: Scope) -> bool:
    """Whether it is a call that waits for its turn. Health must be answered when nothing else is."""
    path: str = scope["path"]
    return path == "/mcp" or path.startswith(("/api/", ENDPOINTS)) or (is_dashboard(path) and not path.startswith(STATIC))


async def _drain(scope: Scope, receive: "_InTime") -> None:
    """Reads a refused call to its end, unless it is long: a client that is still sending may never see the answer."""
    if (_declared_length(scope) or BODY_LIMIT_BYTES) < BODY_LIMIT_BYTES:
        while not receive.is_complete:
            await receive()


def _declared_length(scope: Scope) -> int | None:
    return next((int(value) for name, value in scope["headers"] if name == b"content-length" and value.isdigit()), None)


def with_path_persona(scope: Scope) -> Scope:
    """The scope of `/p/{persona}/rest` as that of `/rest`, the persona noted in it. A slash inside the name is sent as %2F."""
    parts = scope["raw_path"].split(b"?")[0].split(b"/", 3)
    if len(parts) < 4 or parts[:2] != [b"", b"p"]:
        return scope
    rest = b"/" + parts[3]
    # Bytes that are no UTF-8 become half surrogates, which no name may hold: replaced, they would all name one persona.
    name = unquote_to_bytes(parts[2]).decode("utf-8", errors="surrogateescape")
    return {**scope, "path": unquote(rest.decode("latin-1")), "raw_path": rest, PATH_PERSONA: name}


def _without_last_slash(scope: Scope) -> Scope:
    """`/mcp/` as `/mcp`: a redirect would lead to an address without the persona of the path."""
    if not scope["path"].rstrip("/"):
        return scope
    return {**scope, "path": scope["path"].rstrip("/"), "raw_path": scope["raw_path"].rstrip(b"/")}


def _refused_body(scope: Scope, messages: Sequence[Message]) -> JSONResponse | None:
    """The refusal of an MCP call with an unusable body."""
    body = b"".join(message.get("body", b"") for message in messages)
    size = max(_declared_length(scope) or 0, len(body))
    if size > BODY_LIMIT_BYTES:
        return _refusal(
            413,
            INVALID_REQUEST,
            f"The call has {size / 1_048_576:.1f} MiB or more; one call takes at most 4 MiB. Nothing was stored. "
            "Split it, or send many memories as JSON lines to POST /api/import.",
        )
    return _unreadable(body)


def _unreadable(body: bytes) -> JSONResponse | None:
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        return _refusal(400, PARSE_ERROR, f"The call is not UTF-8 (byte {error.start + 1}). Nothing was stored. Send it as UTF-8.")
    try:
        call = json.loads(text)
    except json.JSONDecodeError as error:
        return _refusal(400, PARSE_ERROR, f"The call is not JSON ({error}). Nothing was stored. Send JSON-RPC 2.0.")
    except (ValueError, RecursionError):
        return _refusal(
            400, PARSE_ERROR, "The call holds a number of thousands of digits, or lists within lists without end. Nothing was stored."
        )
    if not _is_json_rpc(call):
        return _refusal(400, INVALID_REQUEST, f"{REWORDED[400]} Nothing was stored.", _identity(call))
    if _HALF_SURROGATE.search(body) and any(_is_half(text) for text in _texts(call)):
        return _refusal(
            400,
            PARSE_ERROR,
            "A text of the call holds half of a surrogate pair, such as \\ud83d alone. Nothing was stored. Send whole characters.",
            _identity(call),
        )
    return None


def _is_json_rpc(call: Any) -> bool:
    """Whether the SDK will take it for a message: what it refuses here, it refuses in the words of its validator.

    A call with an id that is no string and no whole number it takes for a notification: acknowledged, and never done.
    """
    if isinstance(call, dict) and "id" in call and "method" in call and not _is_request_id(call["id"]):
        return False
    try:
        jsonrpc_message_adapter.validate_python(call, by_name=False)
    except ValidationError:
        return False
    return True


def _is_request_id(value: object) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool)


def _identity(call: Any) -> Any:
    identity = call.get("id") if isinstance(call, dict) else None
    if isinstance(identity, str):
        return None if _is_half(identity) else identity  # half a character can't be sent back
    return identity if _is_request_id(identity) else None


def _texts(tree: Any) -> Iterator[str]:
    if isinstance(tree, str):
        yield tree
    elif isinstance(tree, dict):
        for name, value in tree.items():
            yield name
            yield from _texts(value)
    elif isinstance(tree, list):
        for value in tree:
            yield from _texts(value)


def _is_half(text: str) -> bool:
    return any("\ud800" <= character <= "\udfff" for character in text)


def _refusal(status: int, code: int, message: str, identity: Any = None) -> JSONResponse:
    return JSONResponse({"jsonrpc": "2.0", "id": identity, "error": {"code": code, "message": message}}, status_code=status)


def _turned_away(scope: Scope, error: MemoryMCPError) -> Response:
    """The refusal of a caller who is not let in. Its body was not read: the id of the call is unknown."""
    if is_dashboard(scope["path"]):
        return refusal_page(scope, error)
    if scope["path"] != "/mcp":
        return http_refusal(error, rules=Privacy())
    refused = _refusal(status_of(error), OVERLOADED if isinstance(error, Overloaded) else INVALID_REQUEST, str(error))
    refused.headers.update(refusal_headers(error))
    return refused


def _replayed(messages: Iterable[Message], receive: Receive) -> Receive:
    """A `receive` that hands out these messages once more, and then whatever the client does next."""
    waiting = deque(messages)

    async def replay() -> Message:
        return waiting.popleft() if waiting else await receive()

    return replay


class _InTime:
    """A `receive` that waits no longer than `SILENCE_SECONDS` for the next part of a body."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._late = False
        self.is_complete = False

    async def __call__(self) -> Message:
        if self.is_complete:
            return await self._receive()
        if self._late:
            raise _late()
        try:
            async with asyncio.timeout(SILENCE_SECONDS):
                message = await self._receive()
        except TimeoutError:
            self._late = True
            raise _late() from None
        self.is_complete = message["type"] != "http.request" or not message.get("more_body")
        return message


def _late() -> BodyLate:
    return BodyLate(
        "the rest of the call did not come",
        f"nothing of its body arrived for {SILENCE_SECONDS:g} seconds",
        "Send it again; what is there already isn't stored twice",
    )


class _Rewording:
    """Replaces a library's plain-text refusal by ours, as JSON, adds the missing scopes for a client of OAuth, and notes the status."""

    def __init__(self, send: Send, record: CallRecord, end: Callable[[], None]) -> None:
        self._send = send
        self._record = record
        self._end = end
        self._words: bytes | None = None
        self.step_up: Callable[[], str | None] = lambda: None

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            if wanted := self.step_up():
                message = {**message, "status": 403, "headers": [*message["headers"], (b"www-authenticate", wanted.encode())]}
            self._record.status = max(self._record.status, message["status"])  # a refusal of a tool is answered with 200
            kind = next((value for name, value in message["headers"] if name == b"content-type"), b"")
            if message["status"] in REWORDED and not kind.startswith((b"application/json", b"text/html")):
                self._words = json.dumps({"error": REWORDED[message["status"]]}).encode()
                kept = [(name, value) for name, value in message["headers"] if name not in (b"content-type", b"content-length")]
                length = str(len(self._words)).encode()
                message = {**message, "headers": [*kept, (b"content-type", b"application/json"), (b"content-length", length)]}
        elif message["type"] == "http.response.body" and self._words is not None:
            message = {"type": "http.response.body", "body": self._words}
        if message["type"] == "http.response.body" and not message.get("more_body"):
            self._end()
        await self._send(message)
