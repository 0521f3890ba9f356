"""What happens when a model fails: a pause before it is called again, a throttled log line, and an error text that quotes no memory."""

import logging
import threading
import time
from dataclasses import dataclass, field

from memory_mcp.encoders.scheduler import Urgency
from memory_mcp.errors import EncoderFailed

REPEAT_LOG_SECONDS = 600.0
# Of a model that runs elsewhere.
QUERY_SECONDS, BULK_SECONDS, PAUSE_SECONDS = 5.0, 60.0, 5.0

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class CircuitBreaker:
    """Time limits for one model, and the pause after a failure, so that an outage of a service costs one wait and not one per call.

    A limit of None waits without end. During the `pause_seconds` after a failure, the model is not called.
    """

    query_seconds: float | None = None
    bulk_seconds: float | None = None
    pause_seconds: float = 0.0
    _paused_until: float = float("-inf")
    _reason: str = ""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def limit(self, urgency: Urgency) -> float | None:
        """How long to wait for an answer, in seconds."""
        return self.bulk_seconds if urgency is Urgency.BULK else self.query_seconds

    def check(self, name: str) -> None:
        """Returns if the model may be called.

        Raises:
            EncoderFailed: it failed a moment ago.
        """
        with self._lock:
            if time.monotonic() < self._paused_until:
                raise EncoderFailed("{} failed", "{}", "", name, self._reason)

    def failed(self, reason: str, pause_seconds: float | None = None) -> None:
        """Starts the pause, or one of another length."""
        with self._lock:
            self._paused_until, self._reason = time.monotonic() + (self.pause_seconds if pause_seconds is None else pause_seconds), reason


def breaker_of_service() -> CircuitBreaker:
    """The limits for a model that runs elsewhere."""
    return CircuitBreaker(QUERY_SECONDS, BULK_SECONDS, PAUSE_SECONDS)


@dataclass(slots=True)
class LogThrottle:
    """Logs the failures of one model during calls, the same one at most every ten minutes. Thread-safe.

    Such a call goes on without the model, and its answer reports only that: the log must give the reason. A broken model fails at
    every call.
    """

    _last: str = ""
    _logged_at: float = float("-inf")

    def warn(self, error: EncoderFailed) -> None:
        """Logs the error, unless it was logged recently."""
        message, now = str(error).removesuffix("."), time.monotonic()
        if message != self._last or now - self._logged_at >= REPEAT_LOG_SECONDS:
            self._last, self._logged_at = message, now
            logger.warning("%s", message)


def call_error(error: BaseException) -> str:
    """Why a call of a model failed, without its input: a library's error may quote the text, and this goes into the log and into
    the server's status, which other personas see. The error's message is included only if it is about a device, a disk or a network.
    """
    kind, message = type(error).__name__, first_line(error)
    logger.debug("a model call failed", exc_info=error)
    return f"{kind}: {message}" if isinstance(error, OSError | MemoryError | RuntimeError) and message.isascii() else kind


def load_error(name: str, error: BaseException) -> str:
    """The sentence shown when a library raises an error while it loads a model."""
    message = first_line(error, missing="")
    if isinstance(error, MemoryError) or "out of memory" in message.lower() or "can't allocate memory" in message.lower():
        return f"{name} can't be loaded: there is not enough memory for it. Free some, choose a smaller model, or set it to null."
    if isinstance(error, ModuleNotFoundError) and error.name:
        return f"{name} can't be loaded: it needs the package {error.name}, which is not installed. Install it beside this program."
    return (
        f"{name} can't be loaded: {type(error).__name__}: {message}. "
        "See `memory-mcp models check`; to repair a damaged copy, remove it and run `memory-mcp models download`."
    )


def first_line(error: BaseException, missing: str = "it gave no reason") -> str:
    """The first line of an error's message, without its full stop; `missing` if it has none."""
    return next((line.strip().rstrip(".") for line in str(error).splitlines() if line.strip()), missing)
