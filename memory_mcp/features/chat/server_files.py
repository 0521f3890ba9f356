"""The MCP servers of a settings file as other clients have one: `servers` of VS Code's mcp.json, or `mcpServers` of Claude's and most others."""

import json
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx2

from memory_mcp.config.proxies import used_for
from memory_mcp.config.reading import variable
from memory_mcp.errors import InvalidInput
from memory_mcp.features.chat.tools import MEMORY, ToolServer
from memory_mcp.patterns import bounded
from memory_mcp.wording import sentence

if TYPE_CHECKING:
    from fastmcp.client.transports import ClientTransport

# ${env:NAME} is VS Code's, ${NAME} and ${NAME:-default} are Claude's; ${input:id} would be a question.
_PLACEHOLDER = bounded(r"\$\{(?:(env|input):)?([^${}:]+)(?::-([^}]*))?\}")


def servers_of(path: Path) -> list[ToolServer]:
    """The servers of a file. Faults of one of them are reported when it is connected to.

    Raises:
        InvalidInput: the file can't be read, or has another form.
    """
    try:
        tree = json.loads(path.read_text(encoding="utf-8-sig"))
        table = tree.get("servers") or tree.get("mcpServers") or {}
        return [_server(str(name), dict(entry)) for name, entry in table.items()]
    except (OSError, ValueError, TypeError, AttributeError) as error:
        do = "Write it as VS Code's mcp.json (servers) or Claude's (mcpServers), without comments"
        raise InvalidInput("{} can't be read as a list of MCP servers", "{}", do, path, error) from error


def _server(name: str, entry: Mapping[str, Any]) -> ToolServer:
    name = f"{name}-2" if name == MEMORY else name
    return ToolServer(name, _transport(name, entry), tuple(entry.get("includeTools") or ("*",)), tuple(entry.get("excludeTools") or ()))


def _transport(name: str, entry: Mapping[str, Any]) -> "Callable[[], ClientTransport]":
    def transport() -> "ClientTransport":
        # They take 2 s to import.
        from fastmcp.client.transports import SSETransport, StdioTransport, StreamableHttpTransport  # noqa: PLC0415
        from mcp.shared._httpx_utils import create_mcp_http_client  # noqa: PLC0415  what both use where nothing is given

        filled: dict[str, Any] = _filled(entry, name)
        if command := filled.get("command"):
            # A program's own messages would be drawn over the conversation.
            variables = {key: str(value) for key, value in (filled.get("env") or {}).items()}
            arguments = [*map(str, filled.get("args") or ())]
            return StdioTransport(str(command), arguments, variables, filled.get("cwd"), keep_alive=False, log_file=Path(os.devnull))
        if not (url := filled.get("url")):
            raise InvalidInput("the server {} has neither a command nor a url", "", "Add one", name)
        kind = SSETransport if filled.get("type") == "sse" else StreamableHttpTransport

        def http(
            headers: dict[str, str] | None = None, timeout: httpx2.Timeout | None = None, auth: httpx2.Auth | None = None, **_options: Any
        ) -> httpx2.AsyncClient:
            with used_for(str(url)):
                return create_mcp_http_client(headers=headers, timeout=timeout, auth=auth)

        return kind(str(url), headers=filled.get("headers"), httpx_client_factory=http)

    return transport


def _filled(value: Any, server: str) -> Any:
    """The value with the variables of the environment in the place of their names."""
    if isinstance(value, Mapping):
        return {key: _filled(inner, server) for key, inner in value.items()}
    if isinstance(value, list):
        return [_filled(inner, server) for inner in value]
    return _PLACEHOLDER.sub(lambda match: _value(match, server), value) if isinstance(value, str) else value


def _value(match: re.Match[str], server: str) -> str:
    kind, name, default = match.groups()
    value = variable(name) if kind != "input" else None
    if value is None and default is None:
        why = sentence("{} is not set", name) if kind != "input" else sentence("it asks for the input {}", name)
        raise InvalidInput("the server {} can't be reached", why, "Set it in the environment, and write it as ${env:{}}", server, name)
    return value if value is not None else default
