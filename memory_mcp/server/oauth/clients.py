"""Who a client of OAuth is, by its metadata document on the web or its registration; and where it may be sent back to."""

import json
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

import pydantic
from fastmcp.server.auth.cimd import CIMDDocument
from fastmcp.server.auth.redirect_validation import is_loopback_host, is_redirect_uri_allowed_for_application_type
from fastmcp.server.auth.ssrf import SSRFError, SSRFFetchError, ssrf_safe_fetch

from memory_mcp.errors import InvalidInput
from memory_mcp.store.files.oauth_grants import Client

# Documents of real clients have one to two thousand bytes.
DOCUMENT_BYTES, DOCUMENT_SECONDS = 16 * 1024, 10.0
NAME_LIMIT, ADDRESS_LIMIT = 100, 2_000

# Addresses are written into headers, and compared as text.
# Schemes of programs that speak MCP. Others use a domain of theirs, reversed (RFC 8252, 7.1): com.example.app.
APP_SCHEMES = frozenset(
    "cursor cursor-nightly vscode vscode-insiders vscodium code-oss windsurf windsurf-next kiro trae trae-cn void positron antigravity devin zed "
    "jetbrains idea claude claude-desktop chatgpt codex opencode goose warp warppreview raycast lmstudio jan librechat lobehub cherrystudio "
    "msty boltai anythingllm obsidian amp continue cline roo-cline kilocode augment gemini qwen postman insomnia mcp mcp-inspector".split()
)
_REVERSED_DOMAIN = re.compile(r"([a-z][a-z0-9-]{0,62})(?:\.[a-z0-9-]{1,63}){1,20}")
# Registered schemes with a dot that are transports or parts of a system.
_NO_DOMAINS = frozenset({"iris", "soap", "xmlrpc", "z39", "microsoft"})
_PLAIN = re.compile(r"[\x21-\x7e]+")
_HOST = re.compile(r"[A-Za-z0-9.:_-]+")


@dataclass(frozen=True, slots=True)
class KnownClient:
    """A client that may ask. `host`: the host that vouches for its metadata, None if there is none."""

    id: str
    name: str
    redirect_uris: tuple[str, ...]
    host: str | None = None

    def may_return_to(self, address: str) -> bool:
        """Whether it named exactly this address; of one on the user's machine the port is the client's to choose (RFC 8252)."""
        return is_usable(address) and any(
            named == address or _without_port(named) == _without_port(address) is not None for named in self.redirect_uris
        )


async def fetch_public(address: str) -> bytes:
    """A small document of the public web: over https, from no private address, without redirects.

    Raises:
        InvalidInput: it can't be had.
    """
    try:
        return await ssrf_safe_fetch(
            address, require_path=True, max_size=DOCUMENT_BYTES, timeout=DOCUMENT_SECONDS, overall_timeout=DOCUMENT_SECONDS
        )
    except (SSRFError, SSRFFetchError) as error:
        raise InvalidInput("the client's metadata document can't be read", "", "Ask the maker of the client") from error


async def client_of(identity: str, registered: Mapping[str, Client], fetch: Callable[[str], Awaitable[bytes]]) -> KnownClient:
    """The client with this id, which is the address of its metadata document or what registering returned.

    Raises:
        InvalidInput: there is none.
    """
    if urlsplit(identity).scheme == "https":
        return _documented(identity, await fetch(identity))
    known = registered.get(identity)
    if known is None:
        raise InvalidInput("this client is not known here", "it has not registered, or too long ago", "Connect it again")
    return KnownClient(known.id, known.name, known.redirect_uris)


def is_usable(address: str) -> bool:
    """Whether a client may name this address to be sent back to: https, a scheme of its own, or http on the user's machine."""
    try:
        parts = urlsplit(address)
        has_port = parts.port is None or parts.port > 0
    except ValueError:
        return False
    if len(address) > ADDRESS_LIMIT or not _PLAIN.fullmatch(address) or not has_port:
        return False
    is_web = parts.scheme in ("http", "https")
    has_host = bool(_HOST.fullmatch(parts.hostname or "")) if is_web else _is_of_an_app(parts.scheme)
    return has_host and "@" not in parts.netloc and not parts.fragment and is_redirect_uri_allowed_for_application_type(address, "native")


def _is_of_an_app(scheme: str) -> bool:
    """Whether a scheme leads to a program on the user's machine, and to nothing that a browser or the system opens itself."""
    reversed_domain = _REVERSED_DOMAIN.fullmatch(scheme)
    return scheme in APP_SCHEMES or (reversed_domain is not None and reversed_domain[1] not in _NO_DOMAINS)


def form_target(address: str) -> str:
    """The source for a content security policy that lets a form lead to this address."""
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https"):
        return f"{parts.scheme}:"
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    return f"{parts.scheme}://{host}{f':{parts.port}' if parts.port else ''}"


def _documented(address: str, content: bytes) -> KnownClient:
    wrong = InvalidInput("the client's metadata document can't be used", "", "Ask the maker of the client")
    try:
        tree = json.loads(content)
        document = CIMDDocument.model_validate(tree)
    except (ValueError, RecursionError, pydantic.ValidationError) as error:
        raise wrong from error
    # Otherwise any document could claim to be this client's. Compared as text: a parser would take different ones for equal.
    is_public = document.token_endpoint_auth_method == "none"  # noqa: S105  the name of a method
    if tree["client_id"] != address or not is_public or not all(map(is_usable, document.redirect_uris)):
        raise wrong
    host = urlsplit(address).hostname or ""
    return KnownClient(address, (document.client_name or host)[:NAME_LIMIT], tuple(document.redirect_uris), host)


def _without_port(address: str) -> str | None:
    """A loopback address without its port, None for all others."""
    parts = urlsplit(address)
    if parts.scheme != "http" or not is_loopback_host(parts.hostname):
        return None
    return parts._replace(netloc=parts.hostname or "").geturl()
