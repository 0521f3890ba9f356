"""What a vendor's failure means for the user: one error for the exceptions of all vendors, and whether asking again may help."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from memory_mcp.config.settings import Privacy
from memory_mcp.errors import ChatFailed
from memory_mcp.language.privacy.redaction import Redaction

TOO_MANY = 429
QUOTED_LENGTH = 200
# What breaks a call off, by the names of the exceptions: each vendor's library has classes of its own, and they agree on these names.
_UNREACHABLE = frozenset({"ConnectError", "ConnectTimeout", "ConnectionRefusedError"})
_LATE = frozenset({"TimeoutException", "TimeoutError", "APITimeoutError"})
_BROKEN_OFF = frozenset({"TransportError", "ConnectionError", "APIConnectionError", "ClientConnectionError", "ClientPayloadError"})
_UNREADABLE = frozenset({"ValueError", "UnknownApiResponseError"})
# The forms in which vendors quote a rejected key: a piece of it, which the general rules for keys may not know.
_QUOTED_KEY = re.compile(r"(?i)\b(?:sk|pk|key|AIza)[-_*A-Za-z0-9.…]{4,}")


@dataclass(frozen=True, slots=True)
class Failure:
    """The error to show. `retry` is whether asking again may help, `after` the seconds that the vendor wants to be left alone."""

    error: ChatFailed
    retry: bool = False
    after: float | None = None


def failure_of(error: Exception, model: str) -> Failure:
    """The failure behind any exception of a model's class."""
    if isinstance(error, ChatFailed):
        return Failure(error)
    chain = tuple(_chain(error))
    status = next(filter(None, map(_status, chain)), None)
    if status:
        return _of_status(status, _quoted(error), model, next(filter(None, map(_retry_after, chain)), None))
    classes = {kind.__name__ for cause in chain for kind in type(cause).__mro__}
    if "Event loop is closed" in str(error):  # a connection that the vendor's class has kept from an earlier asyncio.run
        classes.add("ConnectionError")
    return _of_classes(classes, f"{type(error).__name__}: {_quoted(error)}", model)


def _of_status(status: int, reason: str, model: str, after: float | None) -> Failure:
    if status == TOO_MANY:
        wait = f"in {after:.0f} s" if after else "later"
        error = ChatFailed(
            "{} failed",
            "it has had too many calls, or the account's quota is used up",
            "Try again {}, or choose another model",
            model,
            wait,
        )
        return Failure(error, retry=True, after=after)
    if status in (401, 403):
        return Failure(ChatFailed("{} failed", "it refuses the key ({})", "Check the key", model, status))
    if status == 404:
        return Failure(
            ChatFailed("{} failed", "its vendor does not know it ({})", "Correct its name, or choose another model", model, reason)
        )
    if status < 500 and status != 408:
        error = ChatFailed(
            "{} failed", "it refuses the conversation ({}: {})", "Begin another, or choose another model", model, status, reason
        )
        return Failure(error)
    error = ChatFailed("{} failed", "its vendor has a problem ({})", "Try again later, or choose another model", model, status)
    return Failure(error, retry=True, after=after)


def _of_classes(classes: set[str], reason: str, model: str) -> Failure:
    if classes & _UNREACHABLE:
        error = ChatFailed("{} failed", "nobody answers at its address", "Check the network, and the address if you have set one", model)
    elif classes & _LATE:
        error = ChatFailed("{} failed", "it took too long to answer", "Try again", model)
    elif classes & _BROKEN_OFF:
        error = ChatFailed("{} failed", "the connection broke off", "Try again", model)
    elif classes & _UNREADABLE:
        error = ChatFailed("{} failed", "its answer can't be read", "Try again later, or choose another model", model)
    else:
        return Failure(ChatFailed("{} failed", "{}", "Try again later, or choose another model", model, reason))
    return Failure(error, retry=True)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _status(error: BaseException) -> int | None:
    """The HTTP status in an exception of any vendor's library."""
    for name in ("status_code", "code"):
        status = getattr(error, name, None)
        if isinstance(status, int) and status >= 400:
            return status
    return None


def _retry_after(error: BaseException) -> float | None:
    headers = getattr(getattr(error, "response", None), "headers", None) or {}
    try:
        return max(float(headers.get("retry-after", "")), 0.0)
    except ValueError:
        return None


def _quoted(error: Exception) -> str:
    """The vendor's own words, without keys and short."""
    words = " ".join(str(error).split())
    return Redaction(Privacy()).text(_QUOTED_KEY.sub("…", words))[:QUOTED_LENGTH]
