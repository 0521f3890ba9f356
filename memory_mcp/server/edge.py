"""The outermost ASGI layer: what must be settled before anybody parses MCP.

It takes the persona out of `/p/{persona}/…`, asks at the door who is let in, and words the refusals that otherwise come from
libraries: a body that is too large, is no UTF-8 or no JSON, a wrong host or origin, an unknown path.
"""

import logging
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack, suppress
from functools import partial
from urllib.parse import unquote, unquote_to_bytes

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from memory_mcp.config.settings import Calls, Privacy
from memory_mcp.errors import BodyLate, InvalidInput, InvalidPersonaName, MemoryMCPError, Overloaded, PersonaElsewhere, TokenRefused
from memory_mcp.personas.names import addressed_name
from memory_mcp.process import usable_cores
from memory_mcp.server import call_record
from memory_mcp.server.addressing import HEADER, PATH_PERSONA, from_header, require_own
from memory_mcp.server.answers import AnswerOfTurn, in_blocks
from memory_mcp.server.auth import ADMISSION, Admission, Authenticator
from memory_mcp.server.bodies import InTime, declared_length, replayed, too_long
from memory_mcp.server.bounds import SMALL_BYTES, Bounds, WaitingBytes
from memory_mcp.server.call import ARRIVED, TURN
from memory_mcp.server.call_record import CallRecord
from memory_mcp.server.caller_presence import CALLER, watched
from memory_mcp.server.concurrency import WORKER_THREADS, ConcurrencyLimiter
from memory_mcp.server.errors import http_refusal, refusal_headers, status_of
from memory_mcp.server.feature import Stream, features
from memory_mcp.server.http.requests import BODY_LIMIT_BYTES
from memory_mcp.server.mcp.bodies import INVALID_REQUEST, OVERLOADED, json_rpc_refusal, refused_body
from memory_mcp.server.metrics import Metrics
from memory_mcp.server.oauth.resource import ENDPOINTS
from memory_mcp.server.public_path import with_public_path
from memory_mcp.server.rewording import Rewording
from memory_mcp.server.sessions import DASHBOARD, SIGN_IN, STATIC, is_dashboard

# Paths with bodies or answers of any size, or that last as long as a model talks. A file of a form lies on the disk until it is whole.
STREAMS: Mapping[str, Stream] = {
    **dict.fromkeys(("/api/import", "/api/import/file"), "import"),
    "/api/export": "export",
    **{path: stream for feature in features() for path, stream in feature.streams.items()},
}
FILES_OF_ONE = 2
EXPORTS_OF_ONE = 8  # of one persona, and of one token
# Under these paths calls wait for their turn.
WORK = ("/api/", ENDPOINTS, *(path for feature in features() for path in feature.work))
# Paths at which another API than ours is spoken, and how long a body may be that is no import.
WIRES = {path: refused for feature in features() for path, refused in feature.wires.items()}
BODY_LIMITS = {path: limit for feature in features() for path, limit in feature.body_limits.items()}
# Those who sign in, clients of OAuth, and all others without a token have shares of their own; one address has half of each.
STRANGERS, FROM = "strangers", "from"
PART_OF_STRANGERS, PART_OF_ADDRESS = 5, 10

logger = logging.getLogger(__name__)


class Edge:
    """ASGI middleware around everything else."""

    def __init__(
        self, app: ASGIApp, door: Authenticator, limiter: ConcurrencyLimiter, bounds: Bounds, metrics: Metrics | None = None
    ) -> None:
        self._app = app
        self._bounds = bounds
        self._door = door
        self._metrics = metrics
        self._limiter = limiter
        self._exports = limiter.without_waiting(EXPORTS_OF_ONE)
        self._streams: Mapping[Stream, ConcurrencyLimiter] = {
            "import": limiter.without_waiting(),
            "file": limiter.without_waiting(FILES_OF_ONE),
            "export": self._exports,
            "conversation": limiter.without_waiting(),
        }
        # Blocks of exports are computed one after another on each core: calls have the others' turns, and most of the interpreter's time.
        self._blocks = ConcurrencyLimiter(lambda: Calls(at_once=min(usable_cores(), WORKER_THREADS)))
        self._arriving = WaitingBytes(
            bounds, Overloaded("too many long calls are arriving", "their bodies fill the memory", "Try again in a moment")
        )
        self._unread = WaitingBytes(
            bounds,
            Overloaded(
                "too many answers wait to be read", "they fill the memory", "Read them, and ask again; what this call has changed is stored"
            ),
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        scope = _accepting_answers(_without_last_slash(with_path_persona(scope)))
        scope = with_public_path(scope, self._door.runtime.config.current().public_path)
        record = call_record.begin(self._door.address(scope))
        scope = {**scope, ARRIVED: record.began}
        try:
            is_ours = _wire(scope["path"]) is None
            await self._let_in(scope, receive, Rewording(in_blocks(send), record, partial(self._end, record), is_ours=is_ours))
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

    async def _let_in(self, scope: Scope, receive: Receive, send: Rewording) -> None:
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
        receive = InTime(receive, self._bounds)
        try:
            require_own(scope, admission, self._door.runtime)
            if streams := self._streams_of(scope):
                await self._stream(scope, receive, send, streams)
            else:
                await self._answer(scope, receive, send)
        except (BodyLate, InvalidInput, Overloaded, PersonaElsewhere) as error:
            if not isinstance(error, InvalidInput):
                with suppress(BodyLate):
                    await _drain(scope, receive)
            await _turned_away(scope, error)(scope, receive, send)

    def _streams_of(self, scope: Scope) -> ConcurrencyLimiter | None:
        """The limiter of a call whose body or answer may have any size."""
        stream = STREAMS.get(scope["path"])
        return self._streams[stream] if stream and (stream == "export") == (scope["method"] != "POST") else None

    async def _answer(self, scope: Scope, receive: InTime, send: Send) -> None:
        """Answer a call, which has its turn from when its body is there until its answer is: a slow client delays no other."""
        caller = callers_of(scope)
        messages = await self._arrived(scope, receive, caller[-1])
        async with AsyncExitStack() as place:
            place.enter_context(self._limiter.admitted(*caller))
            if scope["path"] == "/mcp" and scope["method"] == "POST" and (refusal := refused_body(scope, messages)):
                await refusal(scope, receive, send)
                return
            await place.enter_async_context(self._limiter.turn(*caller))
            answer = AnswerOfTurn(send, place.aclose, self._unread, caller[-1], partial(_turned_away, scope))
            if not receive.is_complete:  # the application reads on
                await self._app(scope, replayed(messages, receive), answer)
                return
            async with watched(receive) as present:
                await self._app({**scope, CALLER: present}, replayed(messages, receive), answer)

    async def _stream(self, scope: Scope, receive: InTime, send: Send, limiter: ConcurrencyLimiter) -> None:
        """Answer a call that reads its body, or answers, bit by bit. It has a limiter of its own, and takes a turn for each bit."""
        caller = callers_of(scope)
        reads_on = limiter in (self._streams["import"], self._streams["file"])
        messages = () if reads_on else await self._arrived(scope, receive, caller[-1])
        with limiter.admitted(*caller):
            turns = self._blocks if limiter is self._exports else self._limiter
            await self._app({**scope, TURN: partial(turns.turn, *caller)}, replayed(messages, receive), send)

    async def _arrived(self, scope: Scope, receive: InTime, caller: str) -> list[Message]:
        """The messages with the body of a call; of a call of MCP that is too long, as much as shows that it is.

        Raises:
            BodyLate: the client has stopped sending, or sends too slowly.
            InvalidInput: it is too long.
            Overloaded: more bytes of large bodies are waiting than fit.
        """
        messages: list[Message] = []
        limit = self._bounds.stranger_bytes if scope[ADMISSION].is_stranger else BODY_LIMITS.get(scope["path"], BODY_LIMIT_BYTES)
        size = counted = 0
        try:
            while max(size, declared_length(scope) or 0) <= limit:
                messages.append(message := await receive())
                size += len(message.get("body", b""))
                if receive.is_complete and size <= limit:
                    return messages
                if size > SMALL_BYTES:
                    self._arriving.add(caller, size - counted)
                    counted = size
        finally:
            self._arriving.remove(caller, counted)
        if scope["path"] == "/mcp":
            return messages  # refused in the words of JSON-RPC
        raise too_long(scope["path"], limit)


def callers_of(scope: Scope) -> tuple[str, ...]:
    """The callers that a call counts for: the persona that it names, if its token reaches that one, and those of its token.

    Strangers count for what they come for and where from.
    """
    admission: Admission = scope[ADMISSION]
    if admission.is_stranger:
        path = scope["path"]
        kind = f"{STRANGERS} {path if path == SIGN_IN else ENDPOINTS if path.startswith(ENDPOINTS) else DASHBOARD}"
        return (f"{kind} {FROM} {admission.client}", kind)
    headers = Headers(scope=scope)
    named = scope.get(PATH_PERSONA)
    try:
        if named is None and HEADER in headers:
            named = from_header(headers[HEADER])
        name = addressed_name(named) if named is not None else ""
    except InvalidPersonaName:  # refused later, in its own words
        name = ""
    token = (f"token {admission.token}",) if admission.token else ()
    return (f"persona {name}", *token) if admission.reaches(name) else token


def part_of(caller: str) -> int:
    """Which part of the bounds of one persona a caller has: little of strangers, so that they never keep one another from signing in."""
    if not caller.startswith(f"{STRANGERS} "):
        return 1
    return PART_OF_ADDRESS if f" {FROM} " in caller else PART_OF_STRANGERS


def _is_work(scope: Scope) -> bool:
    """Whether it is a call that waits for its turn. Health must be answered when nothing else is."""
    path: str = scope["path"]
    return path == "/mcp" or path.startswith(WORK) or (is_dashboard(path) and not path.startswith(STATIC))


async def _drain(scope: Scope, receive: InTime) -> None:
    """Reads a refused call to its end, unless it is long: a client that is still sending may never see the answer."""
    if (declared_length(scope) or BODY_LIMIT_BYTES) < BODY_LIMIT_BYTES:
        while not receive.is_complete:
            await receive()


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


def _accepting_answers(scope: Scope) -> Scope:
    """The scope of an MCP call without an `Accept` header as that of one that takes any answer, which HTTP says it does; the SDK refuses
    it.
    """
    if scope["path"] != "/mcp" or Headers(scope=scope).get("accept", "").strip():
        return scope
    return {**scope, "headers": [*((name, value) for name, value in scope["headers"] if name != b"accept"), (b"accept", b"*/*")]}


def _wire(path: str) -> Callable[[MemoryMCPError], Response] | None:
    """How a refusal is written where another API than ours is spoken."""
    return next((worded for begin, worded in WIRES.items() if path.startswith(begin)), None)


def _turned_away(scope: Scope, error: MemoryMCPError) -> Response:
    """The refusal of a caller who is not let in. Its body was not read: the id of the call is unknown."""
    page = next((feature.refusal_page for feature in features() if feature.refusal_page), None)
    if page and is_dashboard(scope["path"]):
        return page(scope, error)
    if worded := _wire(scope["path"]):
        return worded(error)
    if scope["path"] != "/mcp":
        return http_refusal(error, rules=Privacy())
    refused = json_rpc_refusal(status_of(error), OVERLOADED if isinstance(error, Overloaded) else INVALID_REQUEST, str(error))
    refused.headers.update(refusal_headers(error))
    return refused
