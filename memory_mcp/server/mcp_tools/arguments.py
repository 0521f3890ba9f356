"""Argument types that forgive what clients do: null for a default, and lists, objects and numbers sent as strings.

The JSON schema of each stays flat (no `anyOf`, no `$ref`): Gemini and Ollama choke on those.
"""

import json
from collections.abc import Callable, Iterable
from typing import Annotated, Any

from fastmcp.tools import FunctionTool
from mcp.types import ToolAnnotations
from pydantic import BeforeValidator, Field

from memory_mcp.domain import TOKEN_SCOPES, TokenScope


def _parsed(value: Any) -> Any:
    """A string that holds JSON, as what it holds; anything else as it is."""
    if not isinstance(value, str):
        return value
    try:
        parsed = json.loads(value)
        json.dumps(parsed, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise ValueError("must not hold half of a surrogate pair") from None  # it could be neither stored nor sent back
    except (ValueError, RecursionError):
        return value
    return parsed


def _text(value: Any) -> Any:
    if value is None:
        return ""
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


def _text_or_none(value: Any) -> Any:
    return None if value is None else _text(value)


def _text_list(value: Any) -> list[Any]:
    if value is None or value == "":
        return []
    parsed = _parsed(value) if isinstance(value, str) and value.lstrip().startswith("[") else value
    return [_text(entry) for entry in (parsed if isinstance(parsed, list) else [parsed])]


def _text_list_or_none(value: Any) -> list[Any] | None:
    # An empty text is what clients send that fill in every argument; only an empty list says that nothing is to be left.
    return None if value is None or value == "" else _text_list(value)


def _date_range(value: Any) -> Any:
    """A list of two dates is a range from the first to the second, of which one may be missing."""
    parsed = _parsed(value) if isinstance(value, str) and value.lstrip().startswith("[") else value
    if not isinstance(parsed, list):
        return _text(parsed)
    ends = [_text(end) for end in parsed]
    if len(ends) > 2 or not all(isinstance(end, str) for end in ends):
        raise ValueError("must be one date, or two: where the range begins and where it ends")
    return "..".join(ends) if any(ends) else ""


def _number(value: Any) -> Any:
    parsed = _parsed(value)
    if parsed is None or parsed == "":
        return None
    if isinstance(parsed, bool) or not isinstance(parsed, int | float):
        raise ValueError("must be a number")
    return parsed


def _whole_number(value: Any) -> Any:
    number = _number(value)
    if isinstance(number, float):
        if not number.is_integer():
            raise ValueError("must be a whole number")
        return int(number)
    return number


def _flag(value: Any) -> Any:
    if value is None or value == "":
        return False
    known = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
    found = known.get(str(value).strip().casefold())
    if found is None:
        raise ValueError("must be true or false")
    return found


def _texts_by_name(value: Any) -> dict[str, str]:
    parsed = _parsed(value)
    if parsed is None or parsed == "":
        return {}
    if not isinstance(parsed, dict):
        raise ValueError('must be an object of texts such as {"emotion": "happy"}')
    return {str(name): _text(entry) for name, entry in parsed.items() if entry is not None}


def _object(value: Any) -> dict[str, Any]:
    parsed = _parsed(value)
    if parsed is None or parsed == "":
        return {}
    if not isinstance(parsed, dict):
        raise ValueError('must be an object such as {"device": "phone"}')
    return parsed


Text = Annotated[str, BeforeValidator(_text)]
DateRange = Annotated[str, BeforeValidator(_date_range)]
TextList = Annotated[list[str], BeforeValidator(_text_list)]
# Where an empty value means another thing than none: it clears what is there.
TextOrNone = Annotated[str | None, BeforeValidator(_text_or_none)]
TextListOrNone = Annotated[list[str] | None, BeforeValidator(_text_list_or_none)]
Number = Annotated[float | None, BeforeValidator(_number)]
WholeNumber = Annotated[int | None, BeforeValidator(_whole_number)]
Flag = Annotated[bool, BeforeValidator(_flag)]
TextsByName = Annotated[dict[str, str], BeforeValidator(_texts_by_name)]

Object = Annotated[dict[str, Any], BeforeValidator(_object)]


class ScopedTool(FunctionTool):
    """A tool that says which scopes a token must have for it. Clients are not told: it is no part of what is listed."""

    needs: frozenset[TokenScope] = Field(frozenset(TOKEN_SCOPES), exclude=True)


def tool_of(
    function: Callable[..., Any],
    *,
    title: str,
    needs: Iterable[TokenScope],
    read_only: bool = False,
    destructive: bool = False,
    idempotent: bool = False,
) -> ScopedTool:
    """A tool made of a function: its docstring's first paragraph as description, and a schema without what says nothing.

    `needs`: `read` for an answer that says what memories say, `write` and `delete` for what changes them.
    """
    tool = ScopedTool.from_function(
        function,
        description=" ".join((function.__doc__ or "").split("\n\n")[0].split()),
        annotations=ToolAnnotations(
            title=title, read_only_hint=read_only, destructive_hint=destructive, idempotent_hint=idempotent, open_world_hint=False
        ),
        output_schema=None,
    )
    if not isinstance(tool, ScopedTool):
        raise TypeError(f"fastmcp made a {type(tool).__name__} of {title}")
    tool.parameters = _slim(tool.parameters)
    tool.needs = frozenset(needs)
    return tool


def _slim(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema without titles, without the null that every optional argument takes, and without what only says "left out" or "anything"."""
    slim = {name: value for name, value in schema.items() if name != "title"}
    slim["properties"] = {name: _slim_argument(spec) for name, spec in schema.get("properties", {}).items()}
    return slim


def _slim_argument(spec: dict[str, Any]) -> dict[str, Any]:
    branches = [branch for branch in spec.get("anyOf", []) if branch.get("type") != "null"]
    flat = {**spec, **branches[0]} if len(branches) == 1 else spec
    says_nothing = {
        "title": True,
        "anyOf": True,
        "default": not flat.get("default"),
        "additionalProperties": flat.get("additionalProperties") is True,
    }
    return {word: value for word, value in flat.items() if not says_nothing.get(word)}
