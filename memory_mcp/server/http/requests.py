"""Reading the arguments of a route from its query or its JSON body, strictly: nothing is converted and no slip goes unnoticed."""

import json
import math
from collections.abc import Callable, Collection, Mapping
from functools import cache
from typing import Any
from urllib.parse import unquote_to_bytes

import pydantic
from pydantic.fields import FieldInfo
from starlette.requests import Request

from memory_mcp.characters import not_utf8
from memory_mcp.errors import InvalidInput
from memory_mcp.server.arguments import Arguments, Between, filled_in, kind_of
from memory_mcp.server.errors import argument_problems
from memory_mcp.server.operation import Route
from memory_mcp.wording import sentence

BODY_LIMIT_BYTES = 4 * 1024 * 1024  # what the MCP SDK accepts; the same for routes
WHOLE_NUMBER_DIGITS = 9


async def arguments_of(request: Request, route: Route, model: type[Arguments]) -> Arguments:
    """Return the arguments that a request sends.

    Raises:
        InvalidInput: one is missing, unknown, of a wrong type or out of range, or the body isn't a JSON object.
    """
    kinds = _kinds_of(model)
    # Probes may add parameters of their own.
    if not route.is_probe:
        _check_query(request, kinds if route.reads_query else ())
    if route.reads_query:
        values = _query_values(request, kinds, model)
    elif kinds:
        values = await _body_values(request, kinds, model)
    else:
        values = {}
    try:
        return model.model_validate(values)
    except pydantic.ValidationError as error:
        missing = [str(problem["loc"][0]) for problem in error.errors() if problem["type"] == "missing"]
        if missing:
            raise InvalidInput("{} is missing", "", "Send {}", missing[0], ", ".join(missing)) from error
        raise InvalidInput("{}", "", "", "; ".join(argument_problems(error, list(kinds)))) from error


@cache
def _kinds_of(model: type[Arguments]) -> Mapping[str, type]:
    return {name: kind_of(field.annotation) for name, field in model.model_fields.items()}


def _check_query(request: Request, known: Collection[str]) -> None:
    query = unquote_to_bytes(request.scope["query_string"])
    if b"\0" not in query and (other := not_utf8(query)):
        raise InvalidInput(
            "the query is not UTF-8 (byte {})", sentence("it seems to be {}", other[1]) if other[1] else "", "Send it as UTF-8", other[0]
        )
    for name in request.query_params:
        if name not in known:
            hint = sentence("Known parameters are {}", ", ".join(known)) if known else "Leave it out: this route reads none from the query"
            raise InvalidInput("unknown parameter {}", "", hint, repr(name[:80]))


def _query_values(request: Request, kinds: Mapping[str, type], model: type[Arguments]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    filled = filled_in(model, request.query_params)
    for name, kind in kinds.items():
        texts = request.query_params.getlist(name)
        if kind is list and texts:
            values[name] = texts
        elif name in filled and (texts[-1] or not model.blank_means_absent):
            values[name] = _QUERY_PARSERS[kind](name, texts[-1], _limits_of(model.model_fields[name]))
    return values


def _limits_of(field: FieldInfo) -> str:
    return next((f" from {part.least} to {part.most}" for part in field.metadata if isinstance(part, Between)), "")


def _whole_number(name: str, text: str, limits: str) -> int:
    if not (text.isdecimal() and text.isascii() and len(text) <= WHOLE_NUMBER_DIGITS):
        raise InvalidInput("{} is {}", "it is a whole number{}", "Leave it out for the default", name, repr(text[:80]), limits)
    return int(text)


def _number(name: str, text: str, limits: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise InvalidInput("{} is {}", "it is a number{}", "Leave it out for the default", name, repr(text[:80]), limits)
    return number


def _flag(name: str, text: str, _limits: str) -> bool:
    if text.casefold() not in ("true", "false"):
        raise InvalidInput("{} is {}", "it is true or false", "Leave it out for false", name, repr(text[:80]))
    return text.casefold() == "true"


_QUERY_PARSERS: dict[type, Callable[[str, str, str], Any]] = {
    str: lambda _name, text, _limits: text,
    int: _whole_number,
    float: _number,
    bool: _flag,
}


# Programs send their clock: the seconds or milliseconds since 1970.
TIMES = frozenset({"occurred_at", "expires_at", "created_at"})


async def _body_values(request: Request, kinds: Mapping[str, type], model: type[Arguments]) -> dict[str, Any]:
    """Return the fields of the JSON object in the body; an empty body is an empty object."""
    too_long = InvalidInput(
        "the body is too long", "4 MiB are the limit", "Send less at once, or many memories as JSON lines to POST /api/import"
    )
    body = await body_within(request, BODY_LIMIT_BYTES, too_long)
    if other := not_utf8(body):
        raise InvalidInput(
            "the body is not UTF-8 (byte {})", sentence("it seems to be {}", other[1]) if other[1] else "", "Send it as UTF-8", other[0]
        )
    fields = sentence("Send an object with {}", ", ".join(kinds))
    try:
        values = json.loads(body) if body.strip() else {}
        json.dumps(values, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise InvalidInput("the body is no text", "it has half of a character, such as \\ud83d alone", "Send whole characters") from error
    except (ValueError, RecursionError) as error:
        raise InvalidInput("the body is not JSON", "", fields) from error
    if not isinstance(values, dict):
        raise InvalidInput("the body is no JSON object", "", fields)
    values = filled_in(model, values)
    if model.blank_means_absent:
        unknown = {name: value for name, value in values.items() if name not in kinds}
        values = {name: value for name, value in values.items() if value is not None} | unknown
    for name, value in values.items():
        if name not in kinds:
            raise InvalidInput("unknown field {}", "", "Known fields are {}", repr(name[:80]), ", ".join(kinds))
        if name in TIMES and isinstance(value, int | float) and not isinstance(value, bool):
            value = values[name] = str(value)  # noqa: PLW2901
        if not _is_of_kind(value, kinds[name]):
            raise InvalidInput("{} has the wrong type", "", "Send {}", name, _KIND_NAMES[kinds[name]])
    return values


async def body_within(request: Request, limit_bytes: int, too_long: InvalidInput) -> bytes:
    """The body of a request, no more of which is read than `limit_bytes`.

    Raises:
        InvalidInput: `too_long`: it is longer.
    """
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > limit_bytes:
            raise too_long
    return bytes(body)


def _is_of_kind(value: object, kind: type) -> bool:
    # To Python true is a whole number, and a number without a fraction may be sent for one with it, but not the reverse.
    if isinstance(value, bool):
        return kind is bool
    if kind is list:
        return isinstance(value, list) and all(isinstance(entry, str | dict) for entry in value)  # the model checks which
    return isinstance(value, int | float if kind is float else kind)


_KIND_NAMES = {
    str: "a string",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    list: "a list of strings",
    dict: "an object",
}
