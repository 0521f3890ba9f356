"""The server's own tools by name: fastmcp, where it looks for one, asks every provider in a task of its own, in each call."""

from collections.abc import Iterable

from fastmcp.server.transforms import GetToolNext, Transform
from fastmcp.tools import Tool
from fastmcp.utilities.versions import VersionSpec


class KnownTools(Transform):
    """Finds these tools without asking any provider. What else is asked for, another name or a version, is looked for as ever."""

    def __init__(self, tools: Iterable[Tool]) -> None:
        self._tools = {tool.name: tool for tool in tools}

    async def get_tool(self, name: str, call_next: GetToolNext, *, version: VersionSpec | None = None) -> Tool | None:
        """The tool of that name, or None."""
        known = self._tools.get(name) if version is None else None
        return known or await call_next(name, version=version)
