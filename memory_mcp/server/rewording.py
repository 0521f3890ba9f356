"""Refusals of libraries in our words."""

import json
from collections.abc import Callable

from starlette.types import Message, Send

from memory_mcp.server.call_record import CallRecord

REWORDED = {
    400: "This is no call that MCP knows. Send JSON-RPC 2.0 as JSON, with Content-Type: application/json.",
    403: "This origin may not call this server: web pages of other sites must not reach a local memory. Call it from the same host.",
    404: "There is nothing here. MCP is at /mcp (or /p/{persona}/mcp), the rest under /api, /health and /ready.",
    405: "This address does not take that HTTP method. MCP calls are POST; this server keeps no sessions and no event stream.",
    406: "This server answers MCP calls as JSON. Send Accept: application/json, text/event-stream, or no Accept header.",
    421: "The Host header names a host that this server does not answer for. Use 127.0.0.1 or localhost, or add the name to allowed_hosts in config.json.",
    500: "The server failed in a way that it did not foresee. Its log says how. What was acknowledged before is stored.",
}


class Rewording:
    """Replaces a library's plain-text refusal by ours, as JSON, where `is_ours` what is answered; adds the missing scopes for a client of
    OAuth, and notes the status.
    """

    def __init__(self, send: Send, record: CallRecord, end: Callable[[], None], *, is_ours: bool = True) -> None:
        self._send = send
        self._record = record
        self._end = end
        self._is_ours = is_ours
        self._words: bytes | None = None
        self.step_up: Callable[[], str | None] = lambda: None

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            if wanted := self.step_up():
                message = {**message, "status": 403, "headers": [*message["headers"], (b"www-authenticate", wanted.encode())]}
            self._record.status = max(self._record.status, message["status"])  # a refusal of a tool is answered with 200
            kind = next((value for name, value in message["headers"] if name == b"content-type"), b"")
            if self._is_ours and message["status"] in REWORDED and not kind.startswith((b"application/json", b"text/html")):
                self._words = json.dumps({"error": REWORDED[message["status"]]}).encode()
                kept = [(name, value) for name, value in message["headers"] if name not in (b"content-type", b"content-length")]
                length = str(len(self._words)).encode()
                message = {**message, "headers": [*kept, (b"content-type", b"application/json"), (b"content-length", length)]}
        elif message["type"] == "http.response.body" and self._words is not None:
            message = {"type": "http.response.body", "body": self._words}
        if message["type"] == "http.response.body" and not message.get("more_body"):
            self._end()
        await self._send(message)
