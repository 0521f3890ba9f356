"""The MCP tools, made from the operations, and the toolsets. What a model is told beside them: `instructions.py`."""

from collections.abc import Iterable, Mapping, Sequence

from fastmcp.apps import AppConfig, app_config_to_meta_dict
from fastmcp.tools import Tool
from mcp.types import ToolAnnotations
from pydantic import Field, SkipValidation
from pydantic.json_schema import SkipJsonSchema

from memory_mcp.server.actions import context, memories, organize, upkeep
from memory_mcp.server.arguments import POOL, tool_schema
from memory_mcp.server.feature import features
from memory_mcp.server.mcp import apps
from memory_mcp.server.operation import Operation

_OWN: Mapping[str, tuple[Operation, ...]] = {
    "core": (context.get_context, memories.remember, memories.recall, memories.revise, memories.forget, context.update_context),
    "upkeep": (memories.explain_recall, upkeep.history, upkeep.restore_version, upkeep.purge_memories, organize.organize),
}
_BROUGHT: list[Mapping[str, Sequence[Operation]]] = [feature.toolsets for feature in features()]
# The tools of each toolset, in the order in which clients list them.
TOOLSETS: Mapping[str, tuple[Operation, ...]] = {
    name: (*_OWN.get(name, ()), *(action for toolsets in _BROUGHT for action in toolsets.get(name, ())))
    for name in dict.fromkeys([*_OWN, *(name for toolsets in _BROUGHT for name in toolsets)])
}


class OperationTool(Tool):
    """The tool of an operation as clients list it. `tool_calls.py` calls it."""

    operation: SkipJsonSchema[SkipValidation[Operation]] = Field(exclude=True)


def operations_of(toolsets: Iterable[str]) -> dict[str, Operation]:
    """Return the operations of these toolsets by the names of their tools."""
    return {operation.name: operation for toolset in toolsets for operation in TOOLSETS.get(toolset, ())}


def tools_of(toolsets: Iterable[str], *, with_pools: bool = False) -> list[OperationTool]:
    """Return the tools of these toolsets, each toolset once. Without pools no tool has an argument for one: every word costs tokens."""
    return [_tool(action, with_pools=with_pools) for action in operations_of(toolsets).values()]


def apps_of(toolsets: Iterable[str]) -> list[str]:
    """Return the names of the apps that the tools of these toolsets have."""
    tools = [action.tool for action in operations_of(toolsets).values()]
    return list(dict.fromkeys(tool.app for tool in tools if tool and tool.app in apps.APPS))


def _tool(action: Operation, *, with_pools: bool) -> OperationTool:
    declared = action.tool
    if declared is None:
        raise TypeError(f"{action.function.__name__} has no tool")
    parameters = tool_schema(action.arguments)
    if not with_pools:
        parameters["properties"].pop(POOL, None)
    return OperationTool(
        name=declared.name,
        description=action.description,
        parameters=parameters,
        annotations=ToolAnnotations(
            title=declared.title,
            read_only_hint=declared.read_only,
            destructive_hint=declared.destructive,
            idempotent_hint=declared.idempotent,
            open_world_hint=False,
        ),
        meta={"ui": app_config_to_meta_dict(AppConfig(resource_uri=apps.address(declared.app)))} if declared.app in apps.APPS else None,
        operation=action,
    )
