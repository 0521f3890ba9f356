"""Refusals of ours as OpenAI's API words them, which its SDKs understand."""

from starlette.responses import JSONResponse

from memory_mcp import errors
from memory_mcp.config.settings import Privacy
from memory_mcp.server.errors import refusal_headers, status_of, wording

# What is read as the vendor's failure, which it is: SDKs ask again.
BAD_GATEWAY = 502


class UnknownModel(errors.InvalidInput):
    """No configured vendor has a model of this name."""


class UnknownAddress(errors.InvalidInput):
    """There is nothing at this address."""


_TYPES: list[tuple[type[errors.MemoryMCPError], str, str | None]] = [
    (errors.TokenRefused, "invalid_request_error", "invalid_api_key"),
    (errors.NotAllowed, "permission_error", "insufficient_permissions"),
    (errors.TooManyCalls, "rate_limit_error", "rate_limit_exceeded"),
    (errors.PersonaOverloaded, "rate_limit_error", "rate_limit_exceeded"),
    (errors.Overloaded, "server_error", "overloaded"),
    (errors.ChatFailed, "server_error", "upstream_unreachable"),
    (errors.PersonaRequired, "invalid_request_error", "persona_required"),
    (UnknownModel, "invalid_request_error", "model_not_found"),
    (errors.InvalidInput, "invalid_request_error", None),
]


def refusal(error: errors.MemoryMCPError, rules: Privacy = Privacy()) -> JSONResponse:  # noqa: B008  frozen
    """The answer of a call that failed here."""
    is_unknown = isinstance(error, UnknownModel | UnknownAddress)
    status = 404 if is_unknown else BAD_GATEWAY if isinstance(error, errors.ChatFailed) else status_of(error)
    other = "invalid_request_error" if status < 500 else "server_error"
    kind, code = next(((kind, code) for of, kind, code in _TYPES if isinstance(error, of)), (other, None))
    param = "model" if isinstance(error, UnknownModel) else None
    content = {"error": {"message": wording(str(error), rules), "type": kind, "param": param, "code": code}}
    return JSONResponse(content, status, refusal_headers(error))
