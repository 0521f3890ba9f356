"""How every refusal is worded and numbered on the wire: one place for MCP and HTTP."""

import difflib
import functools
import json
import logging
from collections.abc import Callable, Mapping
from typing import Any, ParamSpec

import pydantic
from fastmcp.exceptions import NotFoundError, ToolError, ValidationError
from fastmcp.server.dependencies import get_http_request
from fastmcp.server.middleware import CallNext, Middleware, MiddlewareContext
from fastmcp.tools import ToolResult
from mcp.types import CallToolRequestParams
from starlette.responses import JSONResponse

from memory_mcp.config.settings import Privacy
from memory_mcp.errors import (
    AnalysisUnfinished,
    ChatFailed,
    EncoderFailed,
    EntityNotFound,
    InvalidInput,
    MemoryMCPError,
    MemoryNotFound,
    NotAllowed,
    Overloaded,
    PersonaConflict,
    PersonaOverloaded,
    PersonaRequired,
    PersonaUnknown,
    StoreError,
    StoreFull,
    TokenRefused,
    TooManyCalls,
)
from memory_mcp.text.privacy.redaction import Redaction

P = ParamSpec("P")

RETRY_AFTER_SECONDS = 1
# A refusal quotes what it refuses, and that may be megabytes.
REFUSAL_LIMIT, REFUSAL_END = 1_500, 300
QUOTED_LIMIT = 2_000

_STATUS: list[tuple[type[MemoryMCPError], int]] = [
    (InvalidInput, 400),
    (PersonaConflict, 400),
    (PersonaRequired, 400),
    (TokenRefused, 401),
    (NotAllowed, 403),
    (TooManyCalls, 429),
    (MemoryNotFound, 404),
    (EntityNotFound, 404),
    (PersonaUnknown, 404),
    (EncoderFailed, 503),
    (ChatFailed, 503),
    (AnalysisUnfinished, 503),
    (PersonaOverloaded, 429),
    (Overloaded, 503),
    (StoreFull, 507),
    (StoreError, 500),
    (MemoryMCPError, 500),
]

logger = logging.getLogger(__name__)


def status_of(error: MemoryMCPError) -> int:
    """The HTTP status that says the same as the error."""
    return next(status for kind, status in _STATUS if isinstance(error, kind))


def wording(words: str, rules: Privacy) -> str:
    """The words of a refusal without what may not be stored; of very long ones the beginning and the end, where it says what to do."""
    private = Redaction(rules)
    if len(words) <= REFUSAL_LIMIT + QUOTED_LIMIT:
        words = private.text(words)
        return words if len(words) <= REFUSAL_LIMIT else f"{words[: REFUSAL_LIMIT - REFUSAL_END]} … {words[-REFUSAL_END:]}"
    # Something private may lie across either cut: as much more as the longest is long is looked at.
    begin, end = private.text(words[: REFUSAL_LIMIT + QUOTED_LIMIT]), private.text(words[-REFUSAL_END - QUOTED_LIMIT :])
    return f"{begin[: REFUSAL_LIMIT - REFUSAL_END]} … {end[-REFUSAL_END:]}"


def http_refusal(error: MemoryMCPError, so_far: Mapping[str, Any] | None = None, *, rules: Privacy) -> JSONResponse:
    """The answer of an HTTP route that can't do what it was asked, with what it had done before."""
    return JSONResponse(
        {"error": wording(str(error), rules), **(so_far or {})}, status_code=status_of(error), headers=refusal_headers(error)
    )


def refusal_headers(error: MemoryMCPError) -> dict[str, str]:
    """The headers that say the same as the error to a program: when to come back, and that a token is wanted."""
    match error:
        case Overloaded() | AnalysisUnfinished():
            return {"Retry-After": str(RETRY_AFTER_SECONDS)}
        case TooManyCalls():
            return {"Retry-After": str(error.retry_after_seconds)}
        case TokenRefused():
            return {"WWW-Authenticate": "Bearer"}
    return {}


def answering(tool: Callable[P, dict[str, Any]]) -> Callable[P, ToolResult]:
    """A tool function made to answer with JSON, as text and as structured content, or with a refusal in our words."""

    @functools.wraps(tool)
    def answer(*args: P.args, **kwargs: P.kwargs) -> ToolResult:
        try:
            told = tool(*args, **kwargs)
        except MemoryMCPError as error:
            call: Any = kwargs.get("call")
            said = wording(str(error), call.settings.privacy if call else Privacy())
            raise ToolError(said, log_level=logging.WARNING if isinstance(error, StoreError) else logging.DEBUG) from error
        return ToolResult(content=json.dumps(told, ensure_ascii=False, separators=(",", ":")), structured_content=told)

    answer.__annotations__ = {**tool.__annotations__, "return": ToolResult}
    return answer


class RefusalWording(Middleware):
    """Arguments that don't fit, and tools that don't exist, in our words: no library links, no echo of a whole input."""

    async def on_call_tool(
        self, context: MiddlewareContext[CallToolRequestParams], call_next: CallNext[CallToolRequestParams, ToolResult]
    ) -> ToolResult:
        name = context.message.name
        try:
            return await call_next(context)
        except ValidationError as error:
            if not isinstance(error.__cause__, pydantic.ValidationError):
                raise
            words = await self._wrong_arguments(context, error.__cause__)
            raise ToolError(wording(words, _rules_in_force()), log_level=logging.DEBUG) from None
        except NotFoundError:
            known = [tool.name for tool in await self._server(context).list_tools(run_middleware=False)]
            words = f"There is no tool {name[:80]!r}. This server has {', '.join(known)}."
            raise ToolError(wording(words, _rules_in_force()), log_level=logging.DEBUG) from None

    async def _wrong_arguments(self, context: MiddlewareContext[CallToolRequestParams], error: pydantic.ValidationError) -> str:
        name = context.message.name
        tool = await self._server(context).get_tool(name)
        known = list(tool.parameters.get("properties", {})) if tool else []
        return f"{name} was not called: {'; '.join(_complaint(problem, known) for problem in error.errors(include_url=False))}."

    @staticmethod
    def _server(context: MiddlewareContext[CallToolRequestParams]) -> Any:
        if context.fastmcp_context is None:
            raise RuntimeError("a tool call without a context")
        return context.fastmcp_context.fastmcp


def _rules_in_force() -> Privacy:
    rules: Privacy = get_http_request().app.state.runtime.config.current().privacy
    return rules


def _complaint(problem: Any, known: list[str]) -> str:
    argument = ".".join(str(part) for part in problem["loc"])[:80]
    if problem["type"] in ("unexpected_keyword_argument", "extra_forbidden"):
        near = difflib.get_close_matches(argument, known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"it takes {', '.join(known)}"
        return f"it has no argument {argument!r} ({hint})"
    if problem["type"] in ("missing", "missing_argument"):
        return f"the argument {argument!r} is missing"
    said = problem["msg"].removeprefix("Value error, ").removeprefix("Input ")
    return f"{argument} {said}, not {json.dumps(problem['input'], ensure_ascii=False, default=str)[:80]}"
