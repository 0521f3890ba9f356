"""The tools in the form in which LangChain's models take them, without what a vendor's dialect of JSON Schema can't express."""

from collections.abc import Iterable, Mapping
from typing import Any

from memory_mcp.features.chat.tools import Tool

# Gemini refuses these, or warns of each.
_NOT_FOR_GEMINI = frozenset({"additionalProperties", "$schema", "title", "default"})
_ALTERNATIVES = ("oneOf", "anyOf", "allOf")


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
