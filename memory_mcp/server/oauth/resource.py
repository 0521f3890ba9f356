"""What this server is called in OAuth: its addresses as a protected resource (RFC 9728), and which audiences mean it (RFC 8707)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote_to_bytes

from memory_mcp.config.settings import OAuth
from memory_mcp.domain import TOKEN_SCOPES, TokenScope
from memory_mcp.errors import InvalidPersonaName
from memory_mcp.personas.names import addressed_name
from memory_mcp.server.sessions import DASHBOARD

MCP = "/mcp"
ENDPOINTS = "/oauth/"
# The page on which a person grants a client something.
AUTHORIZE = f"{DASHBOARD}/authorize"
RESOURCE_METADATA = "/.well-known/oauth-protected-resource"
# What a client gets that asks for nothing in particular.
USUAL_SCOPES: tuple[TokenScope, ...] = ("read", "write")
# `admin` changes the server itself, its tokens too: that remains with tokens that were made at the machine.
OAUTH_SCOPES: tuple[TokenScope, ...] = tuple(scope for scope in TOKEN_SCOPES if scope != "admin")


@dataclass(frozen=True, slots=True)
class Rights:
    """What a token of OAuth allows. `id`: its name in the log; `personas`: canonical names, None for all."""

    id: str
    personas: frozenset[str] | None
    scopes: frozenset[TokenScope]


def own_url(oauth: OAuth, path: str = "") -> str:
    """The public address of a path of this server."""
    return f"{(oauth.public_url or '').rstrip('/')}{path}"


def mcp_path(persona: str | None) -> str:
    """Where MCP is for a persona of the URL."""
    return MCP if persona is None else f"/p/{quote(persona.encode('utf-8', 'surrogateescape'), safe='')}{MCP}"


def persona_in(path: str) -> str | None:
    """The canonical persona of the path `/p/{persona}/mcp`; None for any other path.

    Raises:
        InvalidPersonaName: no persona can have this name.
    """
    parts = path.split("/")
    if len(parts) != 4 or parts[:2] != ["", "p"] or f"/{parts[3]}" != MCP:
        return None
    return addressed_name(unquote_to_bytes(parts[2]).decode("utf-8", "surrogateescape"))


def metadata(oauth: OAuth, path: str) -> dict[str, Any] | None:
    """The metadata of the resource at a path, None where there is none. It doesn't reveal which personas exist."""
    try:
        if path not in ("", MCP) and persona_in(path) is None:
            return None
    except InvalidPersonaName:
        return None
    return {
        "resource": own_url(oauth, path or MCP),
        "authorization_servers": [own_url(oauth) if oauth.authorization_server == "built_in" else oauth.issuer],
        "scopes_supported": list(OAUTH_SCOPES),
        "bearer_methods_supported": ["header"],
        "resource_name": "Memory MCP",
    }


def challenge(oauth: OAuth, persona: str | None, *, error: str = "", scopes: Iterable[str] = USUAL_SCOPES) -> str:
    """The `WWW-Authenticate` of a refused call: where the metadata is, and which scopes to ask for."""
    facts: Mapping[str, str] = {
        "error": error,
        "scope": " ".join(scopes),
        "resource_metadata": own_url(oauth, f"{RESOURCE_METADATA}{mcp_path(persona)}"),
    }
    return "Bearer " + ", ".join(f'{name}="{value}"' for name, value in facts.items() if value)


def personas_of_audience(oauth: OAuth, audiences: Iterable[str]) -> frozenset[str] | None:
    """The personas that tokens for these audiences are good for: None for all, empty where they are another server's."""
    whole = (
        {oauth.audience}
        if oauth.audience and oauth.authorization_server == "external"
        else {own_url(oauth, path) for path in ("", "/", MCP)}
    )
    named = set()
    for audience in audiences:
        if audience in whole:
            return None
        path = audience.removeprefix(own_url(oauth))
        try:
            persona = persona_in(path) if path != audience else None
        except InvalidPersonaName:
            continue
        named |= {persona} if persona is not None else set()
    return frozenset(named)


def shared(first: frozenset[str] | None, other: frozenset[str] | None) -> frozenset[str] | None:
    """The personas of both sets, None meaning all."""
    if first is None or other is None:
        return other if first is None else first
    return first & other
