"""Calls of vendors: their bytes as they come, with our keys and without anything else of the server's or the client's credentials."""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx2
from starlette.datastructures import Headers

from memory_mcp.config.proxies import used_for
from memory_mcp.config.settings import ModelVendor
from memory_mcp.errors import ChatFailed, ProxyUnusable
from memory_mcp.llm.vendors import authorized, key_of, listed

# A model may think for minutes before it says anything.
TIMES = httpx2.Timeout(600.0, connect=10.0, pool=10.0)
LISTING_SECONDS = 5.0
# Models of which it is remembered that they take one message of the system.
STRICT_LIMIT = 100
LIMITS = httpx2.Limits(max_connections=None, max_keepalive_connections=20, keepalive_expiry=30.0)
# What of a client's headers a vendor gets.
PASSED_ON = frozenset(
    {
        *(b"accept", b"content-type", b"user-agent", b"idempotency-key", b"openai-beta", b"openai-organization", b"openai-project"),
        *(b"anthropic-beta", b"anthropic-version", b"http-referer", b"x-title", b"x-client-request-id", b"traceparent"),
    }
)
# What of a vendor's headers a client doesn't get: those of the connection, of the body's coding, which is taken off, and of its site.
_HELD_BACK = frozenset(
    {
        *(b"connection", b"keep-alive", b"proxy-authenticate", b"proxy-authorization", b"te", b"trailer", b"transfer-encoding"),
        *(b"upgrade", b"content-length", b"content-encoding", b"date", b"server", b"set-cookie", b"alt-svc"),
        *(b"strict-transport-security", b"access-control-allow-origin", b"access-control-allow-credentials"),
        *(b"authorization", b"api-key", b"x-api-key"),
    }
)
HIDDEN = b"[key]"
# A shorter one is what local servers take for a key, and may be a part of any word.
LEAST_HIDDEN = 8

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Reply:
    """A vendor's answer that has begun."""

    status: int
    headers: list[tuple[bytes, bytes]]
    content_type: str
    pieces: AsyncIterator[bytes]


class Upstream:
    """The connections to vendors, of one event loop. `strict`: digests of the addresses and models that refuse further messages of
    the system."""

    def __init__(self) -> None:
        self._clients: dict[str, httpx2.AsyncClient] = {}
        self.strict: deque[str] = deque(maxlen=STRICT_LIMIT)

    async def close(self) -> None:
        """Close all connections."""
        clients, self._clients = self._clients, {}
        for client in clients.values():
            await client.aclose()

    @asynccontextmanager
    async def asked(self, name: str, vendor: ModelVendor, headers: Headers, body: bytes) -> AsyncIterator[Reply]:
        """The answer of a vendor to a body. Leaving the block closes the connection, which ends what the vendor does.

        Raises:
            ChatFailed: it can't be asked, nobody answers there, or it sends on to another address; or the answer breaks off.
        """
        key = await _key(name, vendor)
        sent = {header: value for header, value in headers.raw if header in PASSED_ON}
        ours = {header.encode(): value.encode() for header, value in {**authorized(key), "accept-encoding": "identity"}.items()}
        request = self._client(name, vendor).build_request("POST", f"{vendor.url}/chat/completions", content=body, headers={**sent, **ours})
        try:
            response = await self._client(name, vendor).send(request, stream=True)
        except httpx2.HTTPError as error:
            raise _unreachable(name, error) from error
        try:
            if response.has_redirect_location:  # a client that followed would send what was put in to who knows whom
                raise ChatFailed(
                    "{} can't be asked", "it sends its callers to another address", "Write that one in llm.vendors of config.json", name
                )
            secret = key.encode() if key and len(key) >= LEAST_HIDDEN else b""
            yield Reply(
                response.status_code,
                [(header, _hidden(value, secret)) for header, value in response.headers.raw if header.lower() not in _HELD_BACK],
                response.headers.get("content-type", "").casefold(),
                _without_key(response.aiter_bytes(), secret),
            )
        except httpx2.HTTPError as error:
            raise _unreachable(name, error) from error
        finally:
            await response.aclose()

    async def models(self, vendors: Mapping[str, ModelVendor]) -> list[Any]:
        """The models of all vendors that answer in time, with the vendor's name before each one's."""
        lists = await asyncio.gather(*(self._models(name, vendor) for name, vendor in vendors.items()))
        return [model for models in lists for model in models]

    async def _models(self, name: str, vendor: ModelVendor) -> list[Any]:
        try:
            models = await asyncio.to_thread(listed, name, vendor, LISTING_SECONDS)
        except ChatFailed as error:
            logger.warning("%s", error)
            return []
        return [{**model, "id": f"{name}/{model['id']}"} for model in models]

    def _client(self, name: str, vendor: ModelVendor) -> httpx2.AsyncClient:
        if vendor.url not in self._clients:
            try:
                with used_for(vendor.url):
                    self._clients[vendor.url] = httpx2.AsyncClient(timeout=TIMES, limits=LIMITS)
            except ProxyUnusable as error:
                raise ChatFailed("{} can't be asked: {}", error.why, error.do, name, error.what) from error
        return self._clients[vendor.url]


async def _key(name: str, vendor: ModelVendor) -> str | None:
    """Its key. Only a keyring may take a while."""
    is_slow = (vendor.key or "").startswith("keyring")
    return await asyncio.to_thread(key_of, name, vendor) if is_slow else key_of(name, vendor)


def _unreachable(name: str, error: httpx2.HTTPError) -> ChatFailed:
    why = "it did not answer in time" if isinstance(error, httpx2.TimeoutException) else "the connection broke off"
    why = "nobody answers at its address" if isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout) else why
    return ChatFailed("{} can't be asked", why, "Look whether it runs, and at llm.vendors in config.json", name)


def _hidden(text: bytes, secret: bytes) -> bytes:
    """A text without the key that was sent, should the vendor repeat it: some do where they refuse it."""
    return text.replace(secret, HIDDEN) if secret else text


async def _without_key(pieces: AsyncIterator[bytes], secret: bytes) -> AsyncIterator[bytes]:
    held = b""
    async for piece in pieces:
        text = _hidden(held + piece, secret)
        held = text[len(text) - _begun(text, secret) :]
        if shown := text[: len(text) - len(held)]:
            yield shown
    if held:
        yield held


def _begun(text: bytes, secret: bytes) -> int:
    """How many of the last bytes may be the beginning of the secret."""
    return next((size for size in range(min(len(secret) - 1, len(text)), 0, -1) if text.endswith(secret[:size])), 0)
