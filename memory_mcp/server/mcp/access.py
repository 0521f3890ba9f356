"""Which scopes a token must have for a tool, a resource or a prompt; one that lacks them is refused whatever the arguments say."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from fastmcp.exceptions import PromptError, ResourceError
from fastmcp.prompts import PromptResult
from fastmcp.server.dependencies import get_http_request
from fastmcp.server.middleware import CallNext, Middleware, MiddlewareContext
from mcp.types import GetPromptRequestParams, ReadResourceRequestParams
from starlette.concurrency import run_in_threadpool

from memory_mcp.domain import TokenScope
from memory_mcp.errors import NotAllowed
from memory_mcp.server import call_record
from memory_mcp.server.auth import ADMISSION, Admission

# Without a declaration, only the owner may.
UNDECLARED: frozenset[TokenScope] = frozenset({"admin"})

Needs = Mapping[str, frozenset[TokenScope]]


class ScopeCheck(Middleware):
    """`needs`: the scopes by the names of tools and prompts and the addresses of resources."""

    def __init__(self, needs: Needs) -> None:
        self._needs = needs

    async def check_resource_access(self, context: MiddlewareContext[ReadResourceRequestParams]) -> None:
        """Refuse a resource unless the token has its scopes: fastmcp asks here before it reads or describes one."""
        server = _server_of(context)

        async def either(address: str) -> Any:
            return await server.get_resource(address) or await server.get_resource_template(address)

        if refused := await self.refusal(str(context.message.uri), either):
            raise ResourceError(refused, log_level=logging.DEBUG)

    async def on_get_prompt(
        self, context: MiddlewareContext[GetPromptRequestParams], call_next: CallNext[GetPromptRequestParams, PromptResult]
    ) -> PromptResult:
        """Do the same for a prompt."""
        if refused := await self.refusal(context.message.name, _server_of(context).get_prompt):
            raise PromptError(refused, log_level=logging.DEBUG)
        return await call_next(context)

    async def refusal(self, name: str, lookup: Callable[[str], Awaitable[Any]]) -> str | None:
        """Return why the caller may not use this; None where it may, and for names that don't exist, which are refused later."""
        admission: Admission = get_http_request().scope[ADMISSION]
        if record := call_record.current():
            record.operation = name if name in self._needs else "an unknown name"
        needs = self._needs.get(name, UNDECLARED)
        if needs <= admission.scopes or (name not in self._needs and await lookup(name) is None):
            return None
        try:
            await run_in_threadpool(admission.require, needs, name)  # it writes to a log
        except NotAllowed as error:
            return str(error)
        return None


def _server_of(context: MiddlewareContext[Any]) -> Any:
    """The server that answers a request."""
    if context.fastmcp_context is None:
        raise RuntimeError("a request without a context")
    return context.fastmcp_context.fastmcp
