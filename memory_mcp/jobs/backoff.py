"""What happens after background work fails: a growing pause, a log line for a new failure, and a text for the status."""

import logging
from dataclasses import dataclass
from datetime import datetime, timedelta

from memory_mcp.errors import MemoryMCPError

RETRY_FIRST_SECONDS, RETRY_LONGEST_SECONDS = 1.0, 60.0

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Backoff:
    """The pause after failures, twice as long after each: 1 s, 2 s, … 60 s."""

    failures: int = 0
    until: datetime | None = None
    reason: str = ""

    def failed(self, now: datetime, reason: str = "") -> bool:
        """Starts the next pause. Returns whether the failure is new: the first, or with another reason than the last."""
        is_new = not self.failures or reason != self.reason
        self.reason = reason
        seconds = min(RETRY_FIRST_SECONDS * 2.0 ** min(self.failures, 10), RETRY_LONGEST_SECONDS)
        self.failures += 1
        self.until = now + timedelta(seconds=seconds)
        return is_new

    def over(self, now: datetime) -> bool:
        """Whether the pause has ended."""
        # A clock that was set back must not make the pause longer.
        return self.until is None or not timedelta() < self.until - now <= timedelta(seconds=RETRY_LONGEST_SECONDS)

    def clear(self) -> None:
        """Forgets the failures, after a success."""
        self.failures, self.until, self.reason = 0, None, ""


def record_failure(what: str, backoff: Backoff, error: Exception, now: datetime) -> str:
    """Starts the pause of `what` after a failure, and returns the error text for the status.

    A failure is logged when it is new: one that lasts for days must neither fill the log nor hide others. An unexpected error is logged
    with its traceback, but the status gets only its class, because its message may quote a memory.
    """
    expected = isinstance(error, MemoryMCPError)
    text = str(error) if expected else f"unexpected {_kind(error)}; the log has the details."
    is_new = backoff.failed(now, text)
    if is_new and expected:
        logger.warning("%s is paused: %s", what, text)
    elif is_new:
        logger.error("%s is paused after an unexpected error", what, exc_info=error)
    return text


def elapsed(since: datetime | None, now: datetime, seconds: float) -> bool:
    """Whether at least so many seconds are between the two times, in either direction, because the clock may have been set back."""
    return since is None or abs(now - since) >= timedelta(seconds=seconds)


def _kind(error: Exception) -> str:
    """The class of an error; for one of a disk or a network also the system's message, which quotes nothing."""
    message = error.strerror if isinstance(error, OSError) else None
    return f"{type(error).__name__}: {message}" if message else type(error).__name__
