"""MCP without a client library, in both eras: one POST, one answer. A tenth of the work, which leaves it to the server."""

import itertools
from dataclasses import dataclass, field
from typing import Any

import httpx2

EARLIER, LATER = "2025-11-25", "2026-07-28"
_META = {
    "io.modelcontextprotocol/protocolVersion": LATER,
    "io.modelcontextprotocol/clientInfo": {"name": "plain", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


@dataclass
class Result:
    """What fastmcp's client tells of a tool's answer."""

    structured_content: dict[str, Any]
    is_error: bool


@dataclass
class PlainMcp:
    """The few methods of fastmcp's client that these tests use."""

    http: httpx2.AsyncClient
    url: str
    era: str = LATER
    headers: dict[str, str] = field(default_factory=dict)
    numbers: Any = field(default_factory=lambda: itertools.count(1))

    async def ask(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """The result of a request. The later era repeats what is asked for in headers."""
        params = dict(params or {})
        name = params.get("name") or params.get("uri")
        headers = {"accept": "application/json, text/event-stream", "mcp-protocol-version": self.era, **self.headers}
        if self.era == LATER:
            headers |= {"mcp-method": method, **({"mcp-name": name} if name else {})}
            params["_meta"] = _META
        call = {"jsonrpc": "2.0", "id": next(self.numbers), "method": method, "params": params}
        answer = await self.http.post(self.url, json=call, headers=headers)
        told = answer.json()
        assert "result" in told, told
        assert told["id"] == call["id"]
        return dict(told["result"])

    async def call_tool(self, name: str, arguments: dict[str, Any], raise_on_error: bool = False) -> Result:
        assert not raise_on_error
        told = await self.ask("tools/call", {"name": name, "arguments": arguments})
        return Result(told.get("structuredContent", {}), bool(told.get("isError")))

    async def read_resource(self, uri: str) -> dict[str, Any]:
        return await self.ask("resources/read", {"uri": uri})

    async def get_prompt(self, name: str) -> dict[str, Any]:
        return await self.ask("prompts/get", {"name": name})

    async def list_tools(self) -> dict[str, Any]:
        return await self.ask("tools/list")

    async def list_resources(self) -> dict[str, Any]:
        return await self.ask("resources/list")

    async def list_resource_templates(self) -> dict[str, Any]:
        return await self.ask("resources/templates/list")

    async def list_prompts(self) -> dict[str, Any]:
        return await self.ask("prompts/list")
