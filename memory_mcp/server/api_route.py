"""What a route beside MCP is made of, and the reading of a small JSON body."""

import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from memory_mcp.domain import TokenScope
from memory_mcp.errors import InvalidInput

BODY_LIMIT_BYTES = 256 * 1024

Handler = Callable[[Request], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class ApiRoute:
    """A route, and the scopes that a token must have for it."""

    path: str
    method: str
    handler: Handler
    needs: frozenset[TokenScope] = frozenset()

    @property
    def name(self) -> str:
        """As the documentation has it."""
        return f"{self.method} {self.path}"


def whole_number(request: Request, name: str, allowed: str, otherwise: str = "Leave it out") -> int | None:
    """A whole number from the query, None where it is left out. `allowed` and `otherwise` are what a refusal says.

    Raises:
        InvalidInput: it is something else.
    """
    shown = request.query_params.get(name, "")
    if shown and not (shown.isdecimal() and shown.isascii() and len(shown) < 10):
        raise InvalidInput(f"{name} is {shown[:80]!r}", allowed, otherwise)
    return int(shown) if shown else None


def check_query(request: Request, known: Sequence[str]) -> None:
    """Refuses a query with a parameter that the route does not read: a slip of the pen would else go unnoticed.

    Raises:
        InvalidInput: there is one.
    """
    for name in request.query_params:
        if name not in known:
            read = f"Known parameters are {', '.join(known)}" if known else "Leave it out: this route reads none from the query"
            raise InvalidInput(f"unknown parameter {name[:80]!r}", "", read)


async def object_of(request: Request, **expected: type) -> dict[str, Any]:
    """The JSON object of a request's body; `expected` names its fields, each with its type. An empty body is an empty object.

    Raises:
        InvalidInput: it is something else, too long, or has another field.
    """
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > BODY_LIMIT_BYTES:
            raise InvalidInput("the body is too long", f"{BODY_LIMIT_BYTES // 1024} KiB are the limit", "Send less at once")
    try:
        told = json.loads(body) if body.strip() else {}
        json.dumps(told, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise InvalidInput("the body is no text", "it has half of a character, such as \\ud83d alone", "Send whole characters") from error
    except (ValueError, RecursionError) as error:
        raise InvalidInput("the body is not JSON", "", f"Send an object with {', '.join(expected)}") from error
    if not isinstance(told, dict):
        raise InvalidInput("the body is no JSON object", "", f"Send an object with {', '.join(expected)}")
    for name, value in told.items():
        if name not in expected:
            raise InvalidInput(f"unknown field {name[:80]!r}", "", f"Known fields are {', '.join(expected)}")
        if value is not None and not _is_a(value, expected[name]):
            raise InvalidInput(f"{name} has the wrong type", "", f"Send {_TYPES[expected[name]]}")
    return {name: value for name, value in told.items() if value is not None}


def _is_a(value: object, expected: type) -> bool:
    """To Python true is a whole number, and a whole number is none with a fraction."""
    if isinstance(value, bool):
        return expected is bool
    return isinstance(value, int | float if expected is float else expected)


_TYPES = {str: "a string", int: "a whole number", float: "a number", bool: "true or false", list: "a list of strings", dict: "an object"}
