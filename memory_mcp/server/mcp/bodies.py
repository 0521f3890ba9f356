"""What of the body of an MCP call is refused before the SDK sees it, in our words: too long, no UTF-8, no JSON, no JSON-RPC."""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from mcp.types import jsonrpc_message_adapter
from pydantic import ValidationError
from starlette.responses import JSONResponse
from starlette.types import Message, Scope

from memory_mcp.characters import not_utf8
from memory_mcp.server.bodies import declared_length
from memory_mcp.server.http.requests import BODY_LIMIT_BYTES
from memory_mcp.server.rewording import REWORDED

# Each unknown one is looked at before the call is refused.
ARGUMENTS_LIMIT = 100
# In the ASGI scope: the JSON of a call.
CALL = "memory_mcp.call"
PARSE_ERROR, INVALID_REQUEST, OVERLOADED = -32700, -32600, -32000

_HALF_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


def refused_body(scope: Scope, messages: Sequence[Message]) -> JSONResponse | None:
    """The refusal of an MCP call with an unusable body. A usable one is read here alone, and left in the scope."""
    body = b"".join(message.get("body", b"") for message in messages)
    size = max(declared_length(scope) or 0, len(body))
    if size > BODY_LIMIT_BYTES:
        return json_rpc_refusal(
            413,
            INVALID_REQUEST,
            f"The call has {size / 1_048_576:.1f} MiB or more; one call takes at most 4 MiB. Nothing was stored. "
            "Split it, or send many memories as JSON lines to POST /api/import.",
        )
    if other := not_utf8(body):
        seeming = f": it seems to be {other[1]}" if other[1] else ""
        return json_rpc_refusal(
            400, PARSE_ERROR, f"The call is not UTF-8 (byte {other[0]}){seeming}. Nothing was stored. Send it as UTF-8."
        )
    try:
        call = json.loads(body.decode("utf-8"))
    except json.JSONDecodeError as error:
        return json_rpc_refusal(400, PARSE_ERROR, f"The call is not JSON ({error}). Nothing was stored. Send JSON-RPC 2.0.")
    except (ValueError, RecursionError):
        return json_rpc_refusal(
            400, PARSE_ERROR, "The call holds a number of thousands of digits, or lists within lists without end. Nothing was stored."
        )
    scope[CALL] = call
    return _unusable(call, body)


def _unusable(call: Any, body: bytes) -> JSONResponse | None:
    if not _is_json_rpc(call):
        return json_rpc_refusal(400, INVALID_REQUEST, f"{REWORDED[400]} Nothing was stored.", _identity(call))
    if (count := _argument_count(call)) > ARGUMENTS_LIMIT:
        return json_rpc_refusal(
            400, INVALID_REQUEST, f"The call has {count:,} arguments; no tool takes so many. Nothing was stored.", _identity(call)
        )
    if _HALF_SURROGATE.search(body) and any(_is_half(text) for text in _texts(call)):
        return json_rpc_refusal(
            400,
            PARSE_ERROR,
            "A text of the call holds half of a surrogate pair, such as \\ud83d alone. Nothing was stored. Send whole characters.",
            _identity(call),
        )
    return None


def _argument_count(call: Any) -> int:
    params = call.get("params") if isinstance(call, dict) else None
    arguments = params.get("arguments") if isinstance(params, dict) else None
    return len(arguments) if isinstance(arguments, dict) else 0


def _is_json_rpc(call: Any) -> bool:
    """Whether the SDK will take it for a message: what it refuses here, it refuses in the words of its validator.

    A call with an id that is no string and no whole number it takes for a notification: acknowledged, and never done.
    """
    if isinstance(call, dict) and "id" in call and "method" in call and not _is_request_id(call["id"]):
        return False
    try:
        jsonrpc_message_adapter.validate_python(call, by_name=False)
    except ValidationError:
        return False
    return True


def _is_request_id(value: object) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool)


def _identity(call: Any) -> Any:
    identity = call.get("id") if isinstance(call, dict) else None
    if isinstance(identity, str):
        return None if _is_half(identity) else identity  # half a character can't be sent back
    return identity if _is_request_id(identity) else None


def _texts(tree: Any) -> Iterator[str]:
    if isinstance(tree, str):
        yield tree
    elif isinstance(tree, dict):
        for name, value in tree.items():
            yield name
            yield from _texts(value)
    elif isinstance(tree, list):
        for value in tree:
            yield from _texts(value)


def _is_half(text: str) -> bool:
    return any("\ud800" <= character <= "\udfff" for character in text)


def json_rpc_refusal(status: int, code: int, message: str, identity: Any = None) -> JSONResponse:
    return JSONResponse({"jsonrpc": "2.0", "id": identity, "error": {"code": code, "message": message}}, status_code=status)
