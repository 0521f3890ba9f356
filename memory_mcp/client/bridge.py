"""The stdio bridge: forwards the messages of a host that only supports stdio to a server, and outlives that server.

The server is stateless, so each message is one HTTP call, in the protocol version in which the host sent it. This module doesn't know
what the messages say, except where the two transports differ: HTTP repeats facts of a message in headers, and cancels by closing.
"""

import asyncio
import json
import logging
import re
import signal
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import httpx2

from memory_mcp.client.connection import ANSWER_SECONDS, BRIDGED_ANSWER_SECONDS, CONNECT_SECONDS, MCP_PATH, Connection
from memory_mcp.client.wire import Wire
from memory_mcp.errors import MemoryMCPError, ServerUnreachable

# How often a message is sent to one server after another, each of which ends before it answers.
ATTEMPTS = 4
TIMEOUT = httpx2.Timeout(ANSWER_SECONDS, connect=CONNECT_SECONDS, read=BRIDGED_ANSWER_SECONDS, pool=None)
NO_ANSWER = -32000
# Where a message of the protocol of 2026 names what it is about, and where each message of that protocol names its version.
_NAMES = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
_VERSION = "io.modelcontextprotocol/protocolVersion"
# The request with an answer that lasts until the server ends.
_ENDLESS = "subscriptions/listen"
_ACCEPTED = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
_LIST_TOOLS = {"jsonrpc": "2.0", "id": "memory-mcp", "method": "tools/list", "params": {}}

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Message:
    """A line of the host: its text, and the JSON object in it, which is empty if the line is something else."""

    text: bytes
    fields: Mapping[str, Any]

    @property
    def method(self) -> str:
        return str(self.fields.get("method", ""))

    @property
    def params(self) -> Mapping[str, Any]:
        params = self.fields.get("params")
        return params if isinstance(params, dict) else {}

    @property
    def id(self) -> str | int | None:
        """The id by which the host expects an answer."""
        identity = self.fields.get("id")
        return identity if isinstance(identity, str | int) and not isinstance(identity, bool) and self.method else None

    def headers(self) -> dict[str, str]:
        """The headers in which HTTP calls of the protocol of 2026 repeat parts of the message."""
        meta = self.params.get("_meta")
        version = meta.get(_VERSION) if isinstance(meta, dict) else None
        if not isinstance(version, str):
            return {}
        name = self.params.get(_NAMES.get(self.method, ""))
        headers = {"MCP-Protocol-Version": version, "Mcp-Method": self.method, **({"Mcp-Name": name} if isinstance(name, str) else {})}
        return {header: _header_value(value) for header, value in headers.items()}


class Bridge:
    """One host and the server that it talks to at the moment. `find` returns the server, after it has waited for one or started it."""

    def __init__(self, wire: Wire, find: Callable[[], Connection]) -> None:
        self._wire, self._find = wire, find
        self._finding = asyncio.Lock()
        self._server: httpx2.AsyncClient | None = None
        self._clients: list[httpx2.AsyncClient] = []
        self._repeatable: frozenset[str] | None = None
        self._version: dict[str, str] = {}  # the header that names the version that an older host has agreed on
        self._pending: dict[str | int, asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Forward messages until stdin ends or the process gets a signal to stop; then finish what was asked."""
        stopping = {number: signal.signal(number, self._stop) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            async with asyncio.TaskGroup() as tasks:
                async for line in self._wire.lines():
                    message = _parsed(line)
                    if message.method == "notifications/cancelled":
                        self._cancel(message.params.get("requestId"))
                        continue
                    task = tasks.create_task(self._forward(message), name=message.method)
                    if message.id is not None:
                        self._pending[message.id] = task
                        task.add_done_callback(partial(self._forget, message.id))
                for task in self._pending.values():
                    if task.get_name() == _ENDLESS:
                        task.cancel()
        finally:
            for number, handler in stopping.items():
                signal.signal(number, handler)
            for client in self._clients:
                await client.aclose()

    def _stop(self, _number: int, _frame: object) -> None:
        self._wire.close()

    def _forget(self, identity: str | int, task: asyncio.Task[None]) -> None:
        if self._pending.get(identity) is task:
            del self._pending[identity]

    def _cancel(self, identity: object) -> None:
        if isinstance(identity, str | int) and (task := self._pending.get(identity)):
            task.cancel()

    async def _forward(self, message: Message) -> None:
        try:
            async with aclosing(self._answers(message)) as answers:
                async for answer in answers:
                    self._wire.write(answer)
        except MemoryMCPError as error:
            self._refuse(message, str(error))
        except BrokenPipeError:  # the host is gone
            self._wire.close()

    async def _answers(self, message: Message) -> AsyncGenerator[bytes]:
        """The messages with which the server answers, as they arrive.

        Raises:
            ServerUnreachable: there is no answer.
            MemoryMCPError: there is no server, and none can be started.
        """
        for _ in range(ATTEMPTS):
            server = await self._current()
            try:
                async with aclosing(self._exchange(server, message)) as answers:
                    async for answer in answers:
                        yield answer
            except httpx2.ReadTimeout as error:
                raise ServerUnreachable("no answer within {} seconds", "", "Try again", f"{BRIDGED_ANSWER_SECONDS:.0f}") from error
            except (httpx2.ConnectError, httpx2.ConnectTimeout):  # it was not sent
                self._lost(server)
            except httpx2.TransportError as error:
                self._lost(server)
                if not await self._may_repeat(message):
                    raise ServerUnreachable(
                        "the server ended before it answered",
                        "whether this was done before is not known",
                        "Another server answers now: look whether it was done, before you repeat it",
                    ) from error
            else:
                return
        raise ServerUnreachable("the server ended before it answered", "{} times", "Check its log", ATTEMPTS)

    async def _exchange(self, server: httpx2.AsyncClient, message: Message) -> AsyncGenerator[bytes]:
        headers = {**_ACCEPTED, **self._version, **message.headers()}
        async with server.stream("POST", MCP_PATH, content=message.text, headers=headers) as response:
            if response.headers.get("content-type", "").startswith("text/event-stream"):
                async for line in response.aiter_lines():
                    if line.startswith("data:") and line[5:].strip():
                        yield line[5:].strip().encode()
                return
            answer = await response.aread()
        if message.id is None:
            return
        if message.method == "initialize" and response.is_success:
            self._version = _agreed_version(answer)
        yield _on_one_line(answer, message.id, response.status_code)

    async def _current(self) -> httpx2.AsyncClient:
        async with self._finding:
            if self._server is None:
                connection = await asyncio.to_thread(self._find)
                self._server = connection.http(TIMEOUT)
                self._clients.append(self._server)
            return self._server

    def _lost(self, server: httpx2.AsyncClient) -> None:
        """Look for a server before the next message. Other calls to this one fail by themselves."""
        if self._server is server:
            self._server = None

    async def _may_repeat(self, message: Message) -> bool:
        """Whether it can be sent again although it may have been done: all but tools that don't declare that they are idempotent."""
        if message.method != "tools/call":
            return True
        if self._repeatable is None:
            asked = Message(json.dumps(_LIST_TOOLS).encode(), _LIST_TOOLS)
            try:
                answers = [json.loads(answer) async for answer in self._exchange(await self._current(), asked)]
            except httpx2.HTTPError:
                return False
            tools = answers[0].get("result", {}).get("tools", [])
            hints = {tool["name"]: tool.get("annotations", {}) for tool in tools}
            self._repeatable = frozenset(name for name, hint in hints.items() if hint.get("readOnlyHint") or hint.get("idempotentHint"))
        return message.params.get("name") in self._repeatable

    def _refuse(self, message: Message, sentence: str) -> None:
        logger.warning("%s: %s", message.method or "a message", sentence)
        if message.id is not None:
            with suppress(BrokenPipeError):
                self._wire.write(_error(message.id, sentence))


def _parsed(line: bytes) -> Message:
    """The message of a line. The server refuses what is no message, in its words."""
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):
        fields = {}
    return Message(line.strip(), fields if isinstance(fields, dict) else {})


def _header_value(value: str) -> str:
    if re.fullmatch(r"[!-<>-~]+", value):
        return value
    from mcp.shared.inbound import encode_header_value  # noqa: PLC0415  it takes a second to import, and few names need it

    return encode_header_value(value)


def _agreed_version(answer: bytes) -> dict[str, str]:
    with suppress(ValueError, KeyError, TypeError):
        return {"MCP-Protocol-Version": str(json.loads(answer)["result"]["protocolVersion"])}
    return {}


def _on_one_line(answer: bytes, identity: str | int, status: int) -> bytes:
    """The answer to a request as a message in one line, and with its id, which the server doesn't know if it refuses a body unread."""
    if status == httpx2.codes.OK and b"\n" not in answer:
        return answer
    try:
        fields = json.loads(answer)
        if fields.get("jsonrpc"):
            return json.dumps({**fields, "id": identity}, ensure_ascii=False).encode()
        sentence = str(fields["error"])
    except (ValueError, KeyError, AttributeError):
        sentence = f"the server answers {status}"
    return _error(identity, sentence)


def _error(identity: str | int, sentence: str) -> bytes:
    error = {"code": NO_ANSWER, "message": sentence}
    return json.dumps({"jsonrpc": "2.0", "id": identity, "error": error}, ensure_ascii=False).encode()
