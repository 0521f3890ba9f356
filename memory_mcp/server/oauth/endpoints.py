"""What OAuth clients call without a person: metadata, registering, exchanging a code, refreshing and revoking tokens."""

import json
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any
from urllib.parse import parse_qsl

import pydantic
from mcp.shared.auth import OAuthClientMetadata
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from memory_mcp.config.settings import OAuth, RateLimit
from memory_mcp.errors import GrantRefused, InvalidInput, MemoryMCPError
from memory_mcp.server.auth import ADMISSION
from memory_mcp.server.errors import refusal_headers, status_of
from memory_mcp.server.http.requests import body_within
from memory_mcp.server.oauth.clients import NAME_LIMIT, is_usable
from memory_mcp.server.oauth.resource import AUTHORIZE, ENDPOINTS, OAUTH_SCOPES, RESOURCE_METADATA, metadata, own_url
from memory_mcp.server.rate_limits import RateLimits
from memory_mcp.server.runtime import Runtime
from memory_mcp.store.files import oauth_grants
from memory_mcp.store.files.oauth_grants import ACCESS_LIFE, Issued

TOKEN, REGISTER, REVOKE = f"{ENDPOINTS}token", f"{ENDPOINTS}register", f"{ENDPOINTS}revoke"
SERVER_METADATA = "/.well-known/oauth-authorization-server"
PATHS = (TOKEN, REGISTER, REVOKE)
BODY_BYTES = 32 * 1024
ADDRESSES_LIMIT = 10
# Each writes to the disk. Counted for each address, whatever `rate_limit` is.
REGISTRATIONS = RateLimit(per_minute=10, burst=10)
NEVER_STORED = {"Cache-Control": "no-store", "Pragma": "no-cache"}

Endpoint = Callable[[Request, OAuth], Awaitable[Response]]


def routes() -> list[BaseRoute]:
    """The routes of OAuth that clients call; a person grants them something on a page of the dashboard."""
    registrations = RateLimits()
    return [
        Route(RESOURCE_METADATA + "{path:path}", _resource_metadata),
        Route(SERVER_METADATA, _built_in(_server_metadata)),
        Route(TOKEN, _built_in(_token), methods=["POST"]),
        Route(REVOKE, _built_in(_revoke), methods=["POST"]),
        Route(REGISTER, _built_in(partial(_register, registrations)), methods=["POST"]),
    ]


def _built_in(answer: Endpoint) -> Callable[[Request], Awaitable[Response]]:
    """A handler that is there only where this server is the authorization server; it words refusals as RFC 6749 does."""

    async def handle(request: Request) -> Response:
        oauth = _runtime(request).config.current().oauth
        if oauth.authorization_server != "built_in":
            raise HTTPException(404)
        try:
            return await answer(request, oauth)
        except ClientDisconnect:
            return Response(status_code=400)  # it is not read
        except MemoryMCPError as error:
            if isinstance(error, GrantRefused):
                await run_in_threadpool(request.scope[ADMISSION].note, "grant", asked=f"POST {request.url.path}", why=error.what)
            code = (
                error.code if isinstance(error, GrantRefused) else "invalid_request" if isinstance(error, InvalidInput) else "server_error"
            )
            refused = {"error": code, "error_description": str(error)}
            return JSONResponse(refused, status_of(error), headers={**NEVER_STORED, **refusal_headers(error)})

    return handle


async def _resource_metadata(request: Request) -> Response:
    """RFC 9728: for each address of MCP, who issues tokens for it."""
    oauth = _runtime(request).config.current().oauth
    # As it was sent: the client compares the address with its own as text.
    path = request.scope["raw_path"].split(b"?")[0].decode("ascii", "replace").removeprefix(RESOURCE_METADATA)
    described = metadata(oauth, path) if oauth.is_on else None
    if described is None:
        raise HTTPException(404)
    return JSONResponse(described)


async def _server_metadata(_request: Request, oauth: OAuth) -> Response:
    """RFC 8414, with RFC 9207 and client ID metadata documents."""
    registering = {"registration_endpoint": own_url(oauth, REGISTER)} if oauth.dynamic_registration else {}
    return JSONResponse(
        {
            "issuer": own_url(oauth),
            "authorization_endpoint": own_url(oauth, AUTHORIZE),
            "token_endpoint": own_url(oauth, TOKEN),
            "revocation_endpoint": own_url(oauth, REVOKE),
            **registering,
            "scopes_supported": list(OAUTH_SCOPES),
            "response_types_supported": ["code"],
            "response_modes_supported": ["query"],
            "grant_types_supported": ["authorization_code", "refresh_token"],
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none"],
            "revocation_endpoint_auth_methods_supported": ["none"],
            "authorization_response_iss_parameter_supported": True,
            "client_id_metadata_document_supported": True,
            "ui_locales_supported": ["ja", "en"],
        }
    )


async def _token(request: Request, _oauth: OAuth) -> Response:
    """Exchange a code, or a refresh token, for new tokens."""
    form, runtime = await _form(request), _runtime(request)
    directory, now = runtime.personas.directory, runtime.clock()
    client_id, resource = _field(form, "client_id"), form.get("resource")
    match form.get("grant_type"):
        case "authorization_code":
            code, verifier = _field(form, "code"), _field(form, "code_verifier")
            step = partial(oauth_grants.exchange, directory, code, redirect_uri=_field(form, "redirect_uri"), verifier=verifier)
        case "refresh_token":
            step = partial(oauth_grants.refresh, directory, _field(form, "refresh_token"))
        case _:
            raise GrantRefused("this grant type is not supported", code="unsupported_grant_type")
    issued: Issued = await run_in_threadpool(step, client_id=client_id, resource=resource, now=now)
    tokens = {
        "access_token": issued.access,
        "token_type": "Bearer",
        "expires_in": int(ACCESS_LIFE.total_seconds()),
        "refresh_token": issued.refresh,
        "scope": " ".join(issued.grant.asked.scopes),
    }
    return JSONResponse(tokens, headers=NEVER_STORED)


async def _revoke(request: Request, _oauth: OAuth) -> Response:
    """RFC 7009: the answer doesn't reveal whether there was such a token."""
    form, runtime = await _form(request), _runtime(request)
    ended = await run_in_threadpool(
        oauth_grants.revoke_secret, runtime.personas.directory, _field(form, "token"), _field(form, "client_id"), runtime.clock()
    )
    if ended is not None:
        facts = {"token": f"oauth:{ended.id}", "client": request.scope[ADMISSION].client, "revoked": ended.id}
        await run_in_threadpool(runtime.personas.log.append_event, "revoke_grant", runtime.clock(), facts)
    return Response(headers=NEVER_STORED)


async def _register(registrations: RateLimits, request: Request, oauth: OAuth) -> Response:
    """RFC 7591. Every client is public: a secret that anybody can ask for would prove nothing."""
    if not oauth.dynamic_registration:
        raise HTTPException(404)
    registrations.take(request.scope[ADMISSION].client, REGISTRATIONS, time.monotonic())
    body = await _body(request)
    try:
        # The texts as they were sent: parsed addresses would be other texts.
        tree: Any = json.loads(body)
        metadata = OAuthClientMetadata.model_validate(tree)
        addresses: list[str] = tree["redirect_uris"]
    except (ValueError, RecursionError, pydantic.ValidationError, KeyError, TypeError) as error:
        raise GrantRefused("the client's metadata can't be used", code="invalid_client_metadata") from error
    if not addresses or len(addresses) > ADDRESSES_LIMIT or not all(map(is_usable, addresses)):
        why = "they are https, http on the user's machine, or a scheme of the client's own"
        raise GrantRefused("one of the redirect addresses can't be used", why, code="invalid_redirect_uri")
    runtime = _runtime(request)
    name = "".join(filter(str.isprintable, metadata.client_name or "")).strip()[:NAME_LIMIT]
    client = await run_in_threadpool(
        oauth_grants.register_client, runtime.personas.directory, name=name, redirect_uris=addresses, now=runtime.clock()
    )
    registered = {
        "client_id": client.id,
        "client_id_issued_at": int(client.registered_at.timestamp()),
        "client_name": client.name,
        "redirect_uris": addresses,
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
    }
    return JSONResponse(registered, 201, headers=NEVER_STORED)


async def _form(request: Request) -> dict[str, str]:
    fields = parse_qsl((await _body(request)).decode("utf-8", "replace"), keep_blank_values=True)
    form = dict(fields)
    if len(form) != len(fields):
        raise InvalidInput("a parameter is sent twice")
    return form


def _field(form: dict[str, str], name: str) -> str:
    if not form.get(name):
        raise InvalidInput("{} is missing", "", "", name)
    return form[name]


async def _body(request: Request) -> bytes:
    too_long = InvalidInput("the request is too long", "{} KiB are the limit", "Send less", BODY_BYTES // 1024)
    return await body_within(request, BODY_BYTES, too_long)


def _runtime(request: Request) -> Runtime:
    runtime: Runtime = request.app.state.runtime
    return runtime
