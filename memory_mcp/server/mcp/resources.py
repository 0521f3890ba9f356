"""The memory:// resources: what a host may show or insert without a tool call."""

import functools
import json
from collections.abc import Callable
from typing import Any

from fastmcp import FastMCP
from fastmcp.dependencies import Depends
from fastmcp.exceptions import ResourceError

from memory_mcp import __version__
from memory_mcp.errors import MemoryMCPError
from memory_mcp.server.call import Call, current_call
from memory_mcp.server.status import readiness, statistics
from memory_mcp.server.views import heading

RESOURCES = ("info", "stats", "status")


def register(mcp: FastMCP) -> None:
    """Add the resources to a server."""
    for name, description, function in (
        ("info", "Whose memory this is, and which server keeps it.", info),
        ("stats", "How much this persona remembers, and from when to when.", stats),
        ("status", "What works now: models, index, configuration.", status),
    ):
        mcp.resource(f"memory://{name}", name=name, description=description, mime_type="application/json")(_json(function))


def info(call: Call = Depends(current_call)) -> dict[str, Any]:
    with call.reading() as persona:
        return {**heading(call, persona), "server": "Memory MCP", "version": __version__, "timezone": call.settings.timezone}


def stats(call: Call = Depends(current_call)) -> dict[str, Any]:
    with call.reading() as persona:
        return statistics(call, persona)


def status(call: Call = Depends(current_call)) -> dict[str, Any]:
    with call.reading() as persona:
        return {**heading(call, persona), **readiness(call.runtime, call.admission)}


def _json(function: Callable[..., dict[str, Any]]) -> Callable[..., str]:
    @functools.wraps(function)
    def resource(*args: Any, **kwargs: Any) -> str:
        try:
            return json.dumps(function(*args, **kwargs), ensure_ascii=False)
        except MemoryMCPError as error:
            raise ResourceError(str(error)) from error

    resource.__annotations__ = {**function.__annotations__, "return": str}
    return resource
