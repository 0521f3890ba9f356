"""The MCP servers of a conversation: connecting to them, the tools of all under names of their own,
in the form in which models take them; and calling one."""

import asyncio
import re
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from fnmatch import fnmatchcase
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

import httpx2

from memory_mcp.client.connection import ANSWER_SECONDS, Connection
from memory_mcp.errors import without_passwords
from memory_mcp.features.chat.events import Recalled, Stored
from memory_mcp.features.chat.messages import ToolCall

if TYPE_CHECKING:
    from fastmcp import Client
    from fastmcp.client.transports import ClientTransport
    from mcp.types import Tool as McpTool

MEMORY = "memory"
LONGEST_WRITE_SECONDS = 10.0
LONGEST_ANSWER = 100_000

# Arguments that name whose memory is meant, or which is replaced.
_FAR = ("pool", "persona", "supersedes")

T = TypeVar("T")
# What all vendors allow in the name of a tool.
_NOT_IN_NAME = re.compile(r"[^A-Za-z0-9_-]")
_NAME_LENGTH = 64
# Gemini refuses these, or warns of each.
_NOT_FOR_GEMINI = frozenset({"additionalProperties", "$schema", "title", "default"})
_ALTERNATIVES = ("oneOf", "anyOf", "allOf")
# What follows the path of an address, where some servers want their key.
_AFTER_PATH = re.compile(r"""(?<=://)([^\s?#'"<>]{1,2048})[?#][^\s'"<>]*""")


@dataclass(frozen=True, slots=True)
class ToolServer:
    """An MCP server, and which of its tools a conversation may use: names, or patterns as `get_*`. `transport` may raise why it can't be reached."""

    name: str
    transport: "Callable[[], ClientTransport]"
    tools: tuple[str, ...] = ("*",)
    without: tuple[str, ...] = ()

    def offers(self, tool: str) -> bool:
        """Whether a tool is one of those."""
        return any(fnmatchcase(tool, pattern) for pattern in self.tools) and not any(fnmatchcase(tool, name) for name in self.without)


def memory_server(connection: Connection) -> ToolServer:
    """Our server, as the persona of a connection."""
    return ToolServer(MEMORY, connection.transport)


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool of a server. `name` is what the model knows it by, `own_name` what the server does. Only one that `reads_only` runs unasked."""

    name: str
    own_name: str
    server: str
    description: str
    schema: Mapping[str, Any]
    reads_only: bool

    @property
    def is_memory(self) -> bool:
        return self.server == MEMORY


@dataclass(frozen=True, slots=True)
class Answer:
    """What a tool answers: the text that the model reads, and the same as an object where the server sends one."""

    text: str
    is_error: bool = False
    tree: Mapping[str, Any] | None = None


class Toolbox:
    """The connected servers. `missing` has the reasons why others can't be reached, `faults` the names of the errors; `instructions` are those of the memory's server."""

    def __init__(self) -> None:
        self.tools: dict[str, Tool] = {}
        self.missing: dict[str, str] = {}
        self.faults: dict[str, str] = {}
        self.instructions = ""
        self._clients: dict[str, Client[Any]] = {}
        self._open = AsyncExitStack()

    async def open(self, servers: Iterable[ToolServer]) -> None:
        """Connects to the servers, one after the other. One that fails is missing, the others serve."""
        client_class: type[Client[Any]] = (await asyncio.to_thread(import_module, "fastmcp")).Client  # it takes 2 s to import
        offered: list[tuple[ToolServer, Sequence[McpTool]]] = []
        for server in servers:
            try:
                client = client_class(server.transport(), timeout=ANSWER_SECONDS, init_timeout=ANSWER_SECONDS)
                await self._open.enter_async_context(client)
                offered.append((server, await client.list_tools()))
            except Exception as error:  # noqa: BLE001  each transport has its own errors, a foreign program any
                self.faults[server.name] = type(error.__cause__ or error).__name__
                self.missing[server.name] = _without_secrets(str(error)) or self.faults[server.name]
                continue
            self._clients[server.name] = client
            if server.name == MEMORY:
                self.instructions = client.instructions or ""
        self.tools = _named(offered)

    async def close(self) -> None:
        await self._open.aclose()

    async def call(self, tool: Tool, arguments: Mapping[str, Any]) -> Answer:
        """Calls a tool. What fails is an answer too, which the model reads."""
        from mcp import MCPError  # noqa: PLC0415  it takes a second to import

        try:
            result = await self._clients[tool.server].call_tool_mcp(tool.own_name, dict(arguments))
        except (MCPError, RuntimeError, httpx2.HTTPError, TimeoutError) as error:
            return Answer(f"{tool.server} did not answer: {_without_secrets(str(error))}", is_error=True)
        text = "\n".join(getattr(block, "text", f"[{block.type}]") for block in result.content)
        text = text if len(text) <= LONGEST_ANSWER else f"{text[:LONGEST_ANSWER]}\n[{len(text) - LONGEST_ANSWER:,} characters are left out]"
        return Answer(text, bool(result.is_error), result.structured_content)


async def finished(work: Coroutine[Any, Any, T]) -> T:
    """The result of work that changes something: it ends before a cancellation goes on, so that what it did is known."""
    running = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait({running}, timeout=LONGEST_WRITE_SECONDS)
        raise


def _without_secrets(text: str) -> str:
    """The text with its addresses as they may be shown: up to their path, and without a password."""
    return _AFTER_PATH.sub(r"\1", without_passwords(text))


def _named(offered: Sequence[tuple[ToolServer, Sequence["McpTool"]]]) -> dict[str, Tool]:
    """The tools by the names that the model knows them by: where two servers have the same, those of all but the memory get a prefix."""
    wanted = [(server, tool, _NOT_IN_NAME.sub("_", tool.name)[:_NAME_LENGTH]) for server, tools in offered for tool in tools]
    wanted = [(server, tool, name) for server, tool, name in wanted if server.offers(tool.name)]
    names = [name for _, _, name in wanted]
    by_name: dict[str, Tool] = {}
    for server, tool, plain in wanted:
        clashes = names.count(plain) > 1 and server.name != MEMORY
        name = _NOT_IN_NAME.sub("_", f"{server.name}__{tool.name}")[:_NAME_LENGTH] if clashes else plain
        hints = tool.annotations
        reads_only = bool(hints and hints.read_only_hint)
        by_name[_unused(name, by_name)] = Tool(
            _unused(name, by_name), tool.name, server.name, tool.description or "", tool.input_schema, reads_only
        )
    return by_name


def _unused(name: str, taken: Mapping[str, object]) -> str:
    number = 2
    candidate = name
    while candidate in taken:
        candidate = f"{name[: _NAME_LENGTH - 4]}_{number}"
        number += 1
    return candidate


def specifications(tools: Iterable[Tool], vendor: str) -> list[dict[str, Any]]:
    """The tools as `bind_tools` of all vendors takes them."""
    return [
        {"type": "function", "function": {"name": tool.name, "description": tool.description, "parameters": _fitting(tool.schema, vendor)}}
        for tool in tools
    ]


def _fitting(schema: Mapping[str, Any], vendor: str) -> dict[str, Any]:
    """The schema as an object with all its properties: no vendor takes alternatives at the top. The server checks what is given anyway."""
    properties = dict(schema.get("properties", {}))
    for alternative in (part for name in _ALTERNATIVES for part in schema.get(name, ())):
        properties = {**alternative.get("properties", {}), **properties}
    rest = {name: value for name, value in schema.items() if name not in _ALTERNATIVES}
    whole = {"type": "object", **rest, "properties": properties}
    return dict(_for_gemini(whole)) if vendor == "google" else whole


def _for_gemini(schema: Any, *, is_properties: bool = False) -> Any:
    """The schema without the keywords that Gemini doesn't know. A property of such a name stays."""
    if isinstance(schema, list):
        return [_for_gemini(value) for value in schema]
    if not isinstance(schema, Mapping):
        return schema
    return {
        name: _for_gemini(value, is_properties=name == "properties" and not is_properties)
        for name, value in schema.items()
        if is_properties or not (name in _NOT_FOR_GEMINI or (name == "enum" and not all(isinstance(choice, str) for choice in value)))
    }


def arguments_of(tool: Tool, call: ToolCall) -> dict[str, Any]:
    """The arguments of a call. A recall also asks why, so that the user can be shown."""
    if tool.is_memory and tool.own_name == "recall" and call.arguments.get("detail") in (None, "", "full"):
        return {**call.arguments, "detail": "why"}
    return dict(call.arguments)


def reaches_others(tool: Tool, call: ToolCall) -> bool:
    """Whether a call changes what others read, or closes a memory that is there: to a pool, in one (`key@team`), or in place of another memory."""
    given = {name.strip().casefold(): value for name, value in call.arguments.items()}
    keys = [key for name in ("key", "keys", "merge", "into", "used") for key in _texts(given.get(name))]
    return tool.is_memory and (any(any(_texts(given.get(name))) for name in _FAR) or any("@" in key for key in keys))


def _texts(value: Any) -> list[str]:
    """The texts in an argument that is one or a list of them; blank ones count as absent."""
    values = value if isinstance(value, list) else [value]
    return [text for one in values if one is not None and (text := str(one).strip())]


def recalled(tool: Tool, answer: Answer) -> tuple[Recalled, ...]:
    """The memories in a tool's answer."""
    hits = (answer.tree or {}).get("hits") if tool.is_memory else None
    return tuple(map(_hit, hits)) if isinstance(hits, list) else ()


def _hit(hit: Mapping[str, Any]) -> Recalled:
    when = str(hit.get("ago") or hit.get("occurred_at") or hit.get("created_at") or "")
    return Recalled(
        str(hit.get("key", "")),
        str(hit.get("content", "")),
        hit.get("score"),
        when,
        {name: round(part["weight"] * part["value"], 3) for name, part in hit.get("parts", {}).items()},
    )


def stored(tool: Tool, call: ToolCall, answer: Answer) -> Stored | None:
    """The memory that a call has stored; None if it stored none, or it was there before."""
    tree = answer.tree or {}
    if tool.is_memory and tool.own_name == "remember" and tree.get("stored") and not answer.is_error:
        return Stored(str(tree["key"]), str(call.arguments.get("content", "")))
    return None
