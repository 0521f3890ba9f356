"""The MCP tools, made from the operations; the toolsets; and the words of calls that can't be made. What a model is told beside them:
`instructions.py`.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pydantic
from fastmcp.apps import AppConfig, app_config_to_meta_dict
from fastmcp.exceptions import NotFoundError, ToolError, ValidationError
from fastmcp.server.dependencies import get_http_request
from fastmcp.server.middleware import CallNext, Middleware, MiddlewareContext
from fastmcp.server.transforms import GetToolNext, Transform
from fastmcp.tools import Tool, ToolResult
from fastmcp.utilities.versions import VersionSpec
from mcp.types import CallToolRequestParams, ToolAnnotations
from pydantic import Field, SkipValidation
from pydantic.json_schema import SkipJsonSchema
from starlette.concurrency import run_in_threadpool

from memory_mcp.config.settings import Privacy
from memory_mcp.errors import InvalidInput, MemoryMCPError, StoreError
from memory_mcp.server import call_record
from memory_mcp.server.actions import context, memories, organize, upkeep
from memory_mcp.server.answer_text import answer_text
from memory_mcp.server.arguments import POOL, Arguments, tool_schema
from memory_mcp.server.call import Call, current_call
from memory_mcp.server.errors import argument_problems, status_of, wording
from memory_mcp.server.feature import features
from memory_mcp.server.mcp import apps
from memory_mcp.server.mcp.access import server_of
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
    """The tool of an operation. It answers with structured content and the same as text, or with a refusal in our words."""

    operation: SkipJsonSchema[SkipValidation[Operation]] = Field(exclude=True)

    async def run(self, arguments: dict[str, Any]) -> ToolResult:
        """Check the arguments, and call the operation on a worker thread, so that nothing blocks the event loop."""
        try:
            checked = self.operation.arguments.model_validate(arguments)
        except pydantic.ValidationError as error:
            raise ValidationError(str(error), log_level=logging.DEBUG) from error
        except InvalidInput as error:
            raise ToolError(wording(str(error), _privacy_rules()), log_level=logging.DEBUG) from error
        return await run_in_threadpool(self._answer, current_call(), checked)

    def _answer(self, call: Call, arguments: Arguments) -> ToolResult:
        try:
            answer = self.operation(call, arguments)
        except MemoryMCPError as error:
            level = logging.WARNING if isinstance(error, StoreError) else logging.DEBUG
            raise ToolError(wording(str(error), call.settings.privacy), log_level=level) from error
        return ToolResult(content=answer_text(answer), structured_content=answer)


def tools_of(toolsets: Iterable[str], *, with_pools: bool = False) -> list[OperationTool]:
    """Return the tools of these toolsets, each toolset once. Without pools no tool has an argument for one: every word costs tokens."""
    return [_tool(action, with_pools=with_pools) for toolset in dict.fromkeys(toolsets) for action in TOOLSETS.get(toolset, ())]


def apps_of(toolsets: Iterable[str]) -> list[str]:
    """Return the names of the apps that the tools of these toolsets have."""
    tools = [action.tool for toolset in toolsets for action in TOOLSETS.get(toolset, ())]
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


class ToolLookup(Transform):
    """Finds tools by name at once. To look for one, fastmcp asks every provider in a task of its own, in each call."""

    def __init__(self, tools: Iterable[Tool]) -> None:
        self._tools = {tool.name: tool for tool in tools}

    async def get_tool(self, name: str, call_next: GetToolNext, *, version: VersionSpec | None = None) -> Tool | None:
        """Return the tool of that name. Unknown names and versions go to fastmcp."""
        known = self._tools.get(name) if version is None else None
        return known or await call_next(name, version=version)


class ToolErrors(Middleware):
    """Words the errors of arguments that don't fit and of tools that don't exist: no library links, no echo of a whole input."""

    async def on_call_tool(
        self, context: MiddlewareContext[CallToolRequestParams], call_next: CallNext[CallToolRequestParams, ToolResult]
    ) -> ToolResult:
        """Call the tool, and note how that failed: MCP answers a refusal with the status 200."""
        try:
            return await self._worded(context, call_next)
        except Exception as error:
            if record := call_record.current():
                record.status = _status(error)
            raise

    async def _worded(
        self, context: MiddlewareContext[CallToolRequestParams], call_next: CallNext[CallToolRequestParams, ToolResult]
    ) -> ToolResult:
        name = context.message.name
        try:
            return await call_next(context)
        except ValidationError as error:
            if not isinstance(error.__cause__, pydantic.ValidationError):
                raise
            words = await self._wrong_arguments(context, error.__cause__)
            raise ToolError(wording(words, _privacy_rules()), log_level=logging.DEBUG) from None
        except NotFoundError:
            known = [tool.name for tool in await server_of(context).list_tools(run_middleware=False)]
            words = f"There is no tool {name[:80]!r}. This server has {', '.join(known)}."
            raise ToolError(wording(words, _privacy_rules()), log_level=logging.DEBUG) from None

    async def _wrong_arguments(self, context: MiddlewareContext[CallToolRequestParams], error: pydantic.ValidationError) -> str:
        name = context.message.name
        tool = await server_of(context).get_tool(name)
        known = list(tool.parameters.get("properties", {})) if tool else []
        return f"{name} was not called: {'; '.join(argument_problems(error, known))}."


def _status(error: Exception) -> int:
    """The status with which a route would answer an error."""
    cause = error.__cause__
    if isinstance(cause, MemoryMCPError):
        return status_of(cause)
    return 400 if isinstance(error, ToolError) else 500


def _privacy_rules() -> Privacy:
    rules: Privacy = get_http_request().app.state.runtime.config.current().privacy
    return rules
