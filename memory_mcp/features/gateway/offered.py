"""Tools that a model is offered here, beside those of its client: it recalls and remembers by itself, and the client sees nothing of it."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pydantic

from memory_mcp.errors import MemoryMCPError
from memory_mcp.features.gateway.body import Body
from memory_mcp.server.actions.memories import RecallArguments, RememberArguments, recall, remember
from memory_mcp.server.answer_text import answer_text
from memory_mcp.server.call import Call

# How often a model may call them before it has to answer.
ROUNDS = 4
RECALL_TOKENS = 600


def _tool(name: str, description: str, **parameters: str) -> Mapping[str, Any]:
    properties = {parameter: {"type": "string", "description": text} for parameter, text in parameters.items()}
    schema = {"type": "object", "properties": properties, "required": list(properties)[:1]}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": schema}}


TOOLS = (
    _tool("recall", recall.description, query="question or words, with dates: 昨日"),
    _tool("remember", remember.description, content="self-contained sentences", source="who said it", supersedes="key of what it replaces"),
)
NAMES = frozenset(tool["function"]["name"] for tool in TOOLS)


def may_be(body: Body) -> bool:
    """Whether tools may be added to a call: not where the client forbids or demands some, wants several answers, or has such names itself."""
    tools = body.get("tools") or []
    if not isinstance(tools, list):
        return False  # the vendor says what is wrong
    named = {_name(tool) for tool in tools if isinstance(tool, Mapping)}
    return body.get("tool_choice") in (None, "auto") and body.get("n") in (None, 1) and named.isdisjoint(NAMES)


def run(call: Call, called: Mapping[str, Any], conversation: str) -> Mapping[str, Any]:
    """The message with what a tool answers."""
    return {"role": "tool", "tool_call_id": called.get("id"), "content": _answer(call, called, conversation)}


def _answer(call: Call, called: Mapping[str, Any], conversation: str) -> str:
    try:
        given = json.loads(called["function"]["arguments"] or "{}")
        if _name(called) == "recall":
            return answer_text(recall(call, RecallArguments(**{**given, "max_tokens": RECALL_TOKENS})))
        return answer_text(remember(call, RememberArguments(**{**given, "session_id": conversation, "kind": "fact"})))
    except MemoryMCPError as error:
        return str(error)
    except (pydantic.ValidationError, ValueError, TypeError, KeyError):
        return "The arguments are no JSON object that this tool takes."


def are_ours(calls: Sequence[Mapping[str, Any]]) -> bool | None:
    """Whether these calls are of our tools; None if some are, and others of the client's."""
    ours = [_name(called) in NAMES for called in calls]
    return all(ours) if all(ours) or not any(ours) else None


def _name(called: Mapping[str, Any]) -> str:
    function = called.get("function")
    return str(function.get("name")) if isinstance(function, Mapping) else ""
