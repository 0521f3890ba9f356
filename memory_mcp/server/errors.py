"""How errors reach callers: the HTTP status, the headers and the words of each, for MCP and HTTP alike."""

import difflib
import json
from collections.abc import Mapping, Sequence
from typing import Any

import pydantic

from memory_mcp import errors
from memory_mcp.config.settings import Privacy
from memory_mcp.errors import (
    AnalysisUnfinished,
    IssuerUnreachable,
    MemoryMCPError,
    Overloaded,
    PersonaElsewhere,
    SearchUnfinished,
    SettingsRefused,
    TokenRefused,
    TooManyCalls,
)
from memory_mcp.language.privacy.redaction import Redaction
from memory_mcp.personas.cells import OWNER_HEADER, OWNER_URL_HEADER
from memory_mcp.server.sentences import Answer
from memory_mcp.wording import masked, sentence

RETRY_AFTER_SECONDS = 1
# An error quotes the input, which may have megabytes.
REFUSAL_LIMIT, REFUSAL_END = 1_500, 300
QUOTED_LIMIT = 2_000

# A kind that is not here has the status of the nearest one that it is a kind of.
_KINDS: Mapping[int, tuple[type[MemoryMCPError], ...]] = {
    400: (errors.InvalidInput, errors.PersonaConflict, errors.PersonaRequired, errors.GrantRefused),
    401: (TokenRefused,),
    403: (errors.NotAllowed,),
    404: (errors.MemoryNotFound, errors.EntityNotFound, errors.ConversationNotFound, errors.PersonaUnknown),
    408: (errors.BodyLate,),
    413: (errors.BodyTooLong,),
    415: (errors.WrongMediaType,),
    421: (PersonaElsewhere,),
    429: (TooManyCalls, errors.PersonaOverloaded),
    500: (errors.ClockUnusable, errors.StoreError, MemoryMCPError),
    501: (errors.NotInstalled, errors.ProxyUnusable),
    503: (errors.EncoderFailed, errors.ChatFailed, IssuerUnreachable, AnalysisUnfinished, SearchUnfinished, Overloaded),
    507: (errors.StoreFull,),
}
_STATUS = {kind: status for status, kinds in _KINDS.items() for kind in kinds}


def status_of(error: MemoryMCPError) -> int:
    """Return the HTTP status of an error."""
    return next(_STATUS[kind] for kind in type(error).__mro__ if kind in _STATUS)


def wording(words: str, rules: Privacy) -> str:
    """Return an error's words with private data redacted. Very long ones keep their beginning and their end with the advice."""
    private = Redaction(rules)
    return masked(words, lambda text: _shortened(text, private))


def _shortened(words: str, private: Redaction) -> str:
    if len(words) <= REFUSAL_LIMIT + QUOTED_LIMIT:
        words = private.text(words)
        return words if len(words) <= REFUSAL_LIMIT else f"{words[: REFUSAL_LIMIT - REFUSAL_END]} … {words[-REFUSAL_END:]}"
    # Private data may cross either cut, so the redaction sees as much more text as the longest match has.
    begin, end = private.text(words[: REFUSAL_LIMIT + QUOTED_LIMIT]), private.text(words[-REFUSAL_END - QUOTED_LIMIT :])
    return f"{begin[: REFUSAL_LIMIT - REFUSAL_END]} … {end[-REFUSAL_END:]}"


def http_refusal(error: MemoryMCPError, so_far: Mapping[str, Any] | None = None, *, rules: Privacy) -> Answer:
    """Return the answer of a route that failed, with what it had done before (`so_far`)."""
    problems = {"problems": dict(error.problems)} if isinstance(error, SettingsRefused) else {}
    return Answer(
        {"error": wording(str(error), rules), **problems, **(so_far or {})},
        status_code=status_of(error),
        headers=refusal_headers(error),
    )


def refusal_headers(error: MemoryMCPError) -> dict[str, str]:
    """Return the headers of an error: when to try again, that a token is required, and where the persona is."""
    match error:
        case Overloaded() | AnalysisUnfinished() | IssuerUnreachable() | SearchUnfinished():
            return {"Retry-After": str(RETRY_AFTER_SECONDS)}
        case TooManyCalls():
            return {"Retry-After": str(error.retry_after_seconds)}
        case PersonaElsewhere(owner=owner, url=url):
            return {OWNER_HEADER: str(owner), **({OWNER_URL_HEADER: url} if url else {})}
        case TokenRefused():
            return {"WWW-Authenticate": "Bearer"}
    return {}


# So many of the arguments that don't fit are named: to look for the name that each was meant for takes time.
PROBLEMS_NAMED = 5


def argument_problems(error: pydantic.ValidationError, known: Sequence[str]) -> list[str]:
    """Say of each argument that doesn't fit why, in our words: no links of a library, no echo of a whole input."""
    return [_argument_problem(problem, known) for problem in error.errors(include_url=False)[:PROBLEMS_NAMED]]


def _argument_problem(problem: Any, known: Sequence[str]) -> str:
    argument = ".".join(str(part) for part in problem["loc"])[:80]
    if problem["type"] in ("unexpected_keyword_argument", "extra_forbidden"):
        near = difflib.get_close_matches(argument, known, n=1)
        hint = sentence("did you mean {}?", near[0]) if near else f"it takes {', '.join(known)}"
        return f"it has no argument {argument!r} ({hint})"
    if problem["type"] in ("missing", "missing_argument"):
        return f"the argument {argument!r} is missing"
    problem_words = problem["msg"].removeprefix("Value error, ").removeprefix("Input ")
    return f"{argument} {problem_words}, not {json.dumps(problem['input'], ensure_ascii=False, default=str)[:80]}"
