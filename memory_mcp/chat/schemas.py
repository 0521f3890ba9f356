"""The tools in the form in which LangChain's models take them, and what a vendor's dialect of JSON Schema can't express taken out."""

from collections.abc import Iterable, Mapping
from typing import Any

from memory_mcp.chat.tools import Tool

# Gemini refuses or warns of these.
_NOT_FOR_GEMINI = frozenset({"additionalProperties", "$schema", "title", "default"})


def specifications(tools: Iterable[Tool], vendor: str) -> list[dict[str, Any]]:
    """The tools as `bind_tools` of all vendors takes them."""
    return [
        {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description,
                "parameters": _without(tool.schema, _NOT_FOR_GEMINI) if vendor == "google" else dict(tool.schema),
            },
        }
        for tool in tools
    ]


def _without(schema: Any, keys: frozenset[str], *, of_properties: bool = False) -> Any:
    """The schema without these keywords. A property of such a name stays."""
    if isinstance(schema, Mapping):
        return {
            key: _without(value, keys, of_properties=key == "properties")
            for key, value in schema.items()
            if of_properties or key not in keys
        }
    return [_without(value, keys) for value in schema] if isinstance(schema, list) else schema
