"""The routes: a call is read, gets what the persona remembers, and passes through to its vendor; what it answers passes back, and is kept."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from memory_mcp.config.settings import ModelVendor, setting_schemas, value_of
from memory_mcp.domain import TokenScope
from memory_mcp.errors import InvalidInput, MemoryMCPError
from memory_mcp.features.gateway import transcript
from memory_mcp.features.gateway.body import Body, parsed
from memory_mcp.features.gateway.passing import Passing, Relay, refused
from memory_mcp.features.gateway.putting_in import Asked, put_in
from memory_mcp.features.gateway.refusals import UnknownAddress, UnknownModel
from memory_mcp.features.gateway.settings import Gateway
from memory_mcp.features.gateway.spending import Spending
from memory_mcp.features.gateway.upstream import Upstream
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


async def complete(request: Request) -> Response:
    """Pass a call on to the vendor that its model names."""
    try:
        call = await run_in_threadpool(_admitted, request)
        spending: Spending = request.app.state.spending
        spending.require(call.admission, call.settings.of(Gateway), call.local_now)
        body = parsed(await body_within(request, BODY_LIMIT_BYTES, too_long()))
        name, vendor, model = _vendor(call, body.get("model"))
        asked = await _asked(request, call, body)
    except MemoryMCPError as error:
        return refused(request, error)
    except ClientDisconnect:
        return Response(status_code=400)  # it is not read
    return Relay(Passing(request, call, name, vendor, body, model, asked))


async def models(request: Request) -> Response:
    """List the models of all vendors, or return one of them, to whichever persona: some clients ask before they know for whom."""
    try:
        call = await run_in_threadpool(_allowed, request)
    except MemoryMCPError as error:
        return refused(request, error)
    upstream: Upstream = request.app.state.upstream
    listed = await upstream.models(call.settings.llm.vendors)
    wanted = request.path_params.get("model")
    if wanted is None:
        return JSONResponse({"object": "list", "data": listed})
    found = next((model for model in listed if model["id"] == wanted), None)
    return JSONResponse(found) if found else refused(request, _unknown(call, wanted))


async def nowhere(request: Request) -> Response:
    """Say what there is."""
    return refused(request, UnknownAddress("there is nothing here", "", "POST {}, or GET {}", CHAT, MODELS))


METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"]
ROUTES = (
    Route(CHAT, complete, methods=["POST"]),
    Route(MODELS, models, methods=["GET"]),
    Route(f"{MODELS}/{{model:path}}", models, methods=["GET"]),
    Route(f"{PREFIX}{{path:path}}", nowhere, methods=METHODS),
    # A base URL in a browser, and what clients call whose base URL lacks its end.
    *(Route(path, nowhere, methods=METHODS) for path in ("/v1", "/chat/completions", "/models")),
)


def needed(call: Call) -> tuple[TokenScope, ...]:
    """The scopes of a call: it reads and writes memories, and spends the server's keys as the chat does."""
    spends: TokenScope = value_of(call.settings, CHAT_SCOPE) if CHAT_SCOPE in setting_schemas() else "admin"
    return ("read", "write", spends)


def too_long() -> InvalidInput:
    return InvalidInput("the body is too long", "{} MiB are the limit", "Send less at once", BODY_LIMIT_BYTES // 1048576)


def _allowed(request: Request) -> Call:
    """The call of a request whose token has the scopes."""
    call = call_of(request)
    call.admission.require(needed(call), "the gateway")
    return call


def _admitted(request: Request) -> Call:
    """The same for a persona that the token may write to."""
    call = _allowed(request)
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
    if not vendors:
        return UnknownModel("no vendor of models is configured", "", "Name one in llm.vendors of config.json")
    return UnknownModel("there is no model {}", "", "Write it as VENDOR/MODEL, where VENDOR is {}", f"{named!r:.200}", ", ".join(vendors))


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
    with suppress(UnicodeDecodeError):  # any other encoding names it as well, since nobody reads it
        named = named.encode("latin-1").decode()
    return label(UNSTORABLE.sub("", named), "X-Session")
