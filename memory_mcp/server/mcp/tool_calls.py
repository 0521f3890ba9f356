"""Calls of tools: their scopes, their arguments, their answers, and the words of those that can't be made.

fastmcp and the SDK list the tools. On their way to a call of one they make contexts, chains of middleware, connections and several models of
the same call, which took a third of the event loop's time in a recall (docs/decisions/0006-server-edge.md). So calls are answered here, and a
plain call by the current protocol before the SDK sees it.
"""

import json
import logging
from collections.abc import Mapping
from typing import Any

import pydantic
from fastmcp import FastMCP
from fastmcp.server.dependencies import get_http_request
from mcp.server.context import ServerRequestContext
from mcp.server.streamable_http import check_accept_headers
from mcp.shared.inbound import InboundModernRoute, classify_inbound_request, find_duplicated_routing_header
from mcp.types import SERVER_INFO_META_KEY, CallToolRequestParams, methods
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from memory_mcp.errors import MemoryMCPError, StoreError
from memory_mcp.server import call_record
from memory_mcp.server.answer_text import answer_text
from memory_mcp.server.arguments import Arguments
from memory_mcp.server.call import Call, call_of
from memory_mcp.server.errors import argument_problems, status_of, wording
from memory_mcp.server.mcp.access import ScopeCheck
from memory_mcp.server.mcp.bodies import CALL
from memory_mcp.server.operation import Operation

METHOD = "tools/call"
_PLAIN = frozenset({"name", "arguments", "_meta"})

logger = logging.getLogger(__name__)

Result = dict[str, Any]


class ToolCalls:
    """Answers the calls of these tools for a server."""

    def __init__(self, mcp: FastMCP, tools: Mapping[str, Operation], scopes: ScopeCheck) -> None:
        self._mcp, self._scopes = mcp, scopes
        self._tools = tools
        self.about_server = {SERVER_INFO_META_KEY: {"name": mcp.name, "version": mcp.version}}

    def register(self) -> None:
        """Answer the SDK's requests in place of fastmcp. Tools that were added to the server otherwise stay fastmcp's."""
        sdk = self._mcp._mcp_server  # noqa: SLF001  fastmcp has no public way to it
        others = sdk.get_request_handler(METHOD)

        async def handle(context: ServerRequestContext[Any, Any], params: CallToolRequestParams) -> Any:
            if others and params.name not in self and await self._mcp.get_tool(params.name):
                refused = await self._scopes.refusal(params.name, self._mcp.get_tool)
                return _refused(refused) if refused else await others.handler(context, params)
            return await self.result(get_http_request(), params.name, params.arguments or {})

        sdk.add_request_handler(METHOD, CallToolRequestParams, handle)

    def __contains__(self, name: object) -> bool:
        return name in self._tools

    async def result(self, request: Request, name: str, arguments: Mapping[str, Any]) -> Result:
        """The result of a call: structured content and the same as text, or a refusal in our words. How it failed is noted, since MCP
        answers a refusal with the status 200."""
        try:
            if refused := await self._scopes.refusal(name, self._mcp.get_tool):
                return _refused(refused)
            if name not in self:
                known = [tool.name for tool in await self._mcp.list_tools(run_middleware=False)]
                return _refused(_worded(request, f"There is no tool {name[:80]!r}. This server has {', '.join(known)}."))
            try:
                checked = self._tools[name].arguments.model_validate(arguments)
            except pydantic.ValidationError as error:
                listed = await self._mcp.get_tool(name)
                problems = argument_problems(error, list(listed.parameters.get("properties", {})) if listed else [])
                return _refused(_worded(request, f"{name} was not called: {'; '.join(problems)}."))
            return await run_in_threadpool(_answered, self._tools[name], call_of(request), checked)
        except MemoryMCPError as error:
            logger.log(logging.WARNING if isinstance(error, StoreError) else logging.DEBUG, "%s failed: %s", name, type(error).__name__)
            return _refused(_worded(request, str(error)), status_of(error))
        except Exception:
            logger.exception("%s failed", name)
            return _refused(f"Error calling tool {name!r}", 500)


def _answered(operation: Operation, call: Call, arguments: Arguments) -> Result:
    answer = operation(call, arguments)
    return {**_said(answer_text(answer), is_error=False), "structuredContent": answer}


def _refused(words: str, status: int = 400) -> Result:
    if record := call_record.current():
        record.status = status
    return _said(words, is_error=True)


def _said(words: str, *, is_error: bool) -> Result:
    return {"content": [{"text": words, "type": "text"}], "isError": is_error, "resultType": "complete"}


def _worded(request: Request, words: str) -> str:
    return wording(words, request.app.state.runtime.config.current().privacy)


class PlainCalls:
    """An ASGI application in front of the SDK's: it answers plain calls of known tools. The SDK answers everything else, and what is wrong."""

    def __init__(self, sdk: ASGIApp, calls: ToolCalls) -> None:
        self._sdk, self._calls = sdk, calls

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope)
        call = _plain_call(request, scope.get(CALL))
        if call is None or call["params"]["name"] not in self._calls:
            await self._sdk(scope, receive, send)
            return
        result = await self._calls.result(request, call["params"]["name"], call["params"].get("arguments") or {})
        answer = {"jsonrpc": "2.0", "id": call["id"], "result": {**result, "_meta": self._calls.about_server}}
        await Response(json.dumps(answer, separators=(",", ":")), media_type="application/json")(scope, receive, send)


def _plain_call(request: Request, call: Any) -> Any:
    """The call, if it is one of a tool by the current protocol, and everything about it is as the SDK wants it; else None."""
    is_json = request.headers.get("content-type", "").lower().startswith("application/json")
    if not is_json or not check_accept_headers(request)[0]:
        return None
    try:
        if call["method"] != METHOD or "id" not in call or not call["params"].keys() <= _PLAIN:
            return None
        if find_duplicated_routing_header(request.headers.items()):
            return None
        route = classify_inbound_request(call, headers=dict(request.headers))
        if not isinstance(route, InboundModernRoute):
            return None
        methods.validate_client_request(METHOD, route.protocol_version, call["params"])
        CallToolRequestParams.model_validate(call["params"], by_name=False)
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError):
        return None
    return call
