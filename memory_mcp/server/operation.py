"""What an operation is: a function, declared once with its arguments, its answer, its scopes, and the tool and route that call it.

    @operation(needs=["read"], tool=Tool("history", "History of a memory"), route=Route("GET", "/api/history"), answer=History)
    def history(call: Call, arguments: HistoryArguments) -> Json:
        '''Show what a memory said before.'''

The docstring's first paragraph describes the tool and the route. `mcp/tools.py` makes the tools, `http/routes.py` the routes and
`http/openapi.py` the OpenAPI document.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, Literal, get_type_hints

from starlette.datastructures import Headers

from memory_mcp import tracing
from memory_mcp.domain import TokenScope
from memory_mcp.server import call_record
from memory_mcp.server.arguments import Arguments
from memory_mcp.store.operations import called_by

Json = dict[str, Any]

JSON = "application/json"
# What a client without the header learns from its answers. Over MCP every word costs tokens: two tools say it, the one that begins a
# conversation and the one that stores; there are no sessions, in which it could be said once.
PERSONA_NOTE = "no X-Persona header came, so this is the persona default; there are others"
TOLD_IN = frozenset({"get_context", "remember"})


@dataclass(frozen=True, slots=True)
class Tool:
    """The MCP tool of an operation. The hints tell clients which tools they may call without asking. `app`: the name of the page in
    `mcp/apps.py` that hosts with MCP Apps show with the answer.
    """

    name: str
    title: str
    read_only: bool = False
    destructive: bool = False
    idempotent: bool = False
    app: str = ""


@dataclass(frozen=True, slots=True)
class Route:
    """The HTTP route of an operation.

    `of_persona`: it is about the persona of the request. `body_required`: whether a JSON body must be sent; None where a route has none or
    its model has a required field. `body` and `content` are the media types of what is no JSON object, each with its schema.
    """

    method: Literal["GET", "POST", "PATCH", "DELETE"]
    path: str
    summary: str = ""
    of_persona: bool = True
    body_required: bool | None = None
    body: Mapping[str, Any] = field(default_factory=dict)
    content: Mapping[str, Any] = field(default_factory=dict)
    is_probe: bool = False

    @property
    def name(self) -> str:
        """The name in the documentation and in the table of scopes."""
        return f"{self.method} {self.path}"

    @property
    def reads_query(self) -> bool:
        """Whether the arguments come from the query; else from a JSON body."""
        return self.method in ("GET", "DELETE") or bool(self.body)


@dataclass(frozen=True, slots=True)
class Operation:
    """A function with everything that tools, routes and their documentation need to know.

    `function` takes a `Call` and its arguments, and answers with a JSON object; it runs on a worker thread. A coroutine function takes the
    HTTP request and its arguments, and answers with a response: it streams, or it needs no call.
    """

    function: Callable[..., Any]
    arguments: type[Arguments]
    needs: frozenset[TokenScope]
    description: str
    tool: Tool | None = None
    route: Route | None = None
    answer: Any = None

    @property
    def is_asynchronous(self) -> bool:
        """Whether the function takes the HTTP request and answers with a response."""
        return inspect.iscoroutinefunction(self.function)

    @property
    def name(self) -> str:
        """The name by which callers know it."""
        return self.tool.name if self.tool else self.route.name if self.route else self.function.__name__

    @property
    def changes_persona(self) -> bool:
        """Whether it changes the persona of the request."""
        return not self.needs.isdisjoint(("write", "delete")) and (self.route is None or self.route.of_persona)

    def __call__(self, call: Any, arguments: Arguments) -> Json:
        try:
            if call.pool and self.changes_persona:
                call.writable_name()
            with called_by(call.caller), tracing.span(self.name, Headers(scope=call.scope)):
                answer: Json = self.function(call, arguments)
        except Exception as error:
            if self.changes_persona:
                call.note_failure(self.name, error, getattr(arguments, "key", None))
            raise
        if call.pool:
            answer = {**answer, "persona": f"@{call.pool}", "pool": call.pool}
        elif "persona" in answer and (note := note_unnamed(call)) and (call.entry != "mcp" or self.name in TOLD_IN):
            answer = {"persona": answer["persona"], **note, **answer}
        record = call_record.current()
        if record and answer.get("degraded"):
            record.is_degraded = True
        return answer


def note_unnamed(call: Any) -> Json:
    """Count a call that names no persona where there are several, and return what its answer says of that; nothing for any other call."""
    if not call.is_unnamed:
        return {}
    call.runtime.unnamed_calls[call.entry] += 1
    return {"persona_note": PERSONA_NOTE}


def operation(
    *, needs: Iterable[TokenScope] = (), tool: Tool | None = None, route: Route | None = None, answer: Any = None
) -> Callable[[Callable[..., Any]], Operation]:
    """Declare a function as an operation; the annotation of its second parameter is the model of its arguments.

    `needs` are the scopes that a token must have: `read` for an answer with the contents of memories, `write` and `delete` to change them.
    `answer` is a TypedDict of the answer of the route.
    """

    def declared(function: Callable[..., Any]) -> Operation:
        name = list(inspect.signature(function).parameters)[1]
        arguments = get_type_hints(function)[name]
        description = " ".join((function.__doc__ or "").split("\n\n")[0].split())
        return Operation(function, arguments, frozenset(needs), description, tool, route, answer)

    return declared


def operations_of(*modules: ModuleType) -> tuple[Operation, ...]:
    """Return the operations that these modules declare, in their order."""
    return tuple(value for module in modules for value in vars(module).values() if isinstance(value, Operation))
