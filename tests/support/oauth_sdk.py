"""The OAuth client of the MCP SDK, seen from a plain test: it asks a person as a test plays them, and calls tools."""

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import anyio.to_thread
import httpx2
from anyio.from_thread import BlockingPortal
from fastmcp import Client
from fastmcp.client.transports import StreamableHttpTransport
from mcp.client.auth import OAuthClientProvider
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientMetadata
from oauth_person import RETURN_TO, TLS


class Kept:
    """What a client keeps: its tokens, and as whom it registered."""

    def __init__(self) -> None:
        self.tokens: Any = None
        self.client: Any = None

    async def get_tokens(self) -> Any:
        return self.tokens

    async def set_tokens(self, tokens: Any) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> Any:
        return self.client

    async def set_client_info(self, client: Any) -> None:
        self.client = client


class SdkClient:
    """A connected client. `told`: what it was told last at its redirect address."""

    def __init__(
        self,
        stack: ExitStack,
        portal: BlockingPortal,
        url: str,
        answer: Callable[[str], dict[str, Any]],
        *,
        mode: str = "auto",
        document: str | None = None,
    ) -> None:
        """`answer`: from the address where a person is sent to what the client is told afterwards."""
        self.kept, self.told = Kept(), dict[str, Any]()
        self._portal = portal

        async def open_browser(address: str) -> None:
            self.told = await anyio.to_thread.run_sync(answer, address)

        async def returned() -> AuthorizationCodeResult:
            return AuthorizationCodeResult(**{name: self.told.get(name) for name in ("code", "state", "iss")})

        def http(headers: Any = None, auth: Any = None, **options: Any) -> httpx2.AsyncClient:
            return httpx2.AsyncClient(headers=headers, auth=auth, verify=TLS, **options)

        about = OAuthClientMetadata(redirect_uris=[RETURN_TO], client_name="SDK", token_endpoint_auth_method="none")
        self.auth = OAuthClientProvider(url, about, self.kept, open_browser, returned, client_metadata_url=document)
        transport = StreamableHttpTransport(url, auth=self.auth, httpx_client_factory=http)
        self._client = stack.enter_context(portal.wrap_async_context_manager(Client(transport, mode=mode)))

    def __call__(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """A tool's answer."""
        result = self._portal.call(lambda: self._client.call_tool(tool, arguments, raise_on_error=False))
        assert not result.is_error, result.content[0].text
        return result.structured_content
