"""Refusals of ours as OpenAI's API words them, which its SDKs understand."""

from starlette.responses import JSONResponse

from memory_mcp.config.settings import Privacy
from memory_mcp.errors import (
    ChatFailed,
    InvalidInput,
    MemoryMCPError,
    NotAllowed,
    Overloaded,
    PersonaOverloaded,
    PersonaRequired,
    TokenRefused,
    TooManyCalls,
)
from memory_mcp.server.errors import refusal_headers, status_of, wording

# What is read as the vendor's failure, which it is: SDKs ask again.
BAD_GATEWAY = 502
_TYPES: list[tuple[type[MemoryMCPError], str, str | None]] = [
    (TokenRefused, "invalid_request_error", "invalid_api_key"),
    (NotAllowed, "permission_error", "insufficient_permissions"),
    (TooManyCalls, "rate_limit_error", "rate_limit_exceeded"),
    (PersonaOverloaded, "rate_limit_error", "rate_limit_exceeded"),
    (Overloaded, "server_error", "overloaded"),
    (ChatFailed, "server_error", "upstream_unreachable"),
    (PersonaRequired, "invalid_request_error", "persona_required"),
    (InvalidInput, "invalid_request_error", None),
]


class UnknownModel(InvalidInput):
    """No configured vendor has a model of this name."""


class UnknownAddress(InvalidInput):
    """There is nothing at this address."""


def refusal(error: MemoryMCPError, rules: Privacy = Privacy()) -> JSONResponse:  # noqa: B008  frozen
    """The answer of a call that failed here."""
    status = 404 if isinstance(error, UnknownModel | UnknownAddress) else BAD_GATEWAY if isinstance(error, ChatFailed) else status_of(error)
    kind, code = next(((kind, code) for of, kind, code in _TYPES if isinstance(error, of)), ("server_error", None))
    param = None
    if isinstance(error, UnknownModel):
        kind, code, param = "invalid_request_error", "model_not_found", "model"
    elif status < 500 and kind == "server_error":
        kind = "invalid_request_error"
    content = {"error": {"message": wording(str(error), rules), "type": kind, "param": param, "code": code}}
    return JSONResponse(content, status, refusal_headers(error))
