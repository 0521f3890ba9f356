"""A caller that costs next to nothing: callers and server share the machine, and a client library's time would count as the server's."""

import asyncio
import json
from typing import Any, Self
from urllib.parse import urlsplit


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

    async def post(self, path: str, body: Any, headers: str = "") -> Any:
        """The answer's JSON.

        Raises:
            SystemExit: the answer isn't 200.
        """
        content = json.dumps(body, ensure_ascii=False).encode()
        head = f"POST {path} HTTP/1.1\r\nHost: {self._address.netloc}\r\nContent-Type: application/json\r\n{self._head}{headers}"
        self._writer.write(f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content)
        status, *lines = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        told = dict(line.lower().split(": ", 1) for line in lines if line)
        answer = await self._reader.readexactly(int(told["content-length"]))
        if " 200 " not in status:
            raise SystemExit(f"{path}: {status}: {answer.decode()}")
        return json.loads(answer)
