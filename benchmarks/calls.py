"""Clients with minimal overhead: they share the machine with the server, and a client library's time would count as the server's."""

import asyncio
import itertools
import json
from typing import Any, Self
from urllib.parse import urlsplit

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


class Caller:
    """One kept-alive connection that sends JSON and reads answers with a Content-Length. Only for a server of one's own."""

    def __init__(self, url: str, headers: dict[str, str]) -> None:
        self._address = urlsplit(url)
        self._head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())

    async def __aenter__(self) -> Self:
        self._reader, self._writer = await asyncio.open_connection(self._address.hostname, self._address.port)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._writer.close()
        await self._writer.wait_closed()

    async def get(self, path: str) -> Any:
        """The answer's JSON.

        Raises:
            SystemExit: the answer isn't 200.
        """
        self._writer.write(f"GET {path} HTTP/1.1\r\nHost: {self._address.netloc}\r\n{self._head}\r\n".encode())
        return await self._answer(path)

    async def post(self, path: str, body: Any, headers: str = "") -> Any:
        """The answer's JSON.

        Raises:
            SystemExit: the answer isn't 200.
        """
        content = json.dumps(body, ensure_ascii=False).encode()
        head = f"POST {path} HTTP/1.1\r\nHost: {self._address.netloc}\r\nContent-Type: application/json\r\n{self._head}{headers}"
        self._writer.write(f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content)
        return await self._answer(path)

    async def _answer(self, path: str) -> Any:
        status, *lines = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in lines if line)
        answer = await self._reader.readexactly(int(headers["content-length"]))
        if " 200 " not in status:
            raise SystemExit(f"{path}: {status}: {answer.decode()}")
        return json.loads(answer)


class Tools:
    """Tool calls of one persona over one connection, as a client of the current protocol makes them."""

    def __init__(self, url: str, persona: str) -> None:
        self._caller = Caller(
            url, {"X-Persona": persona, "Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2026-07-28"}
        )
        self._ids = itertools.count()

    async def __aenter__(self) -> Self:
        await self._caller.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._caller.__aexit__()

    async def call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """What the tool answers.

        Raises:
            SystemExit: it refuses.
        """
        params = {"name": name, "arguments": arguments, "_meta": META}
        body = {"jsonrpc": "2.0", "id": next(self._ids), "method": "tools/call", "params": params}
        result = (await self._caller.post("/mcp", body, f"Mcp-Method: tools/call\r\nMcp-Name: {name}\r\n"))["result"]
        if result.get("isError"):
            raise SystemExit(f"{name} was refused: {result['content'][0]['text']}")
        content: dict[str, Any] = result["structuredContent"]
        return content
