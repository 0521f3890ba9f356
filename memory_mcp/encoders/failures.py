"""How long to wait for a model, and when not to ask at all: after a failure it is left alone for a while.

So an outage of a service costs one wait, and not every call one.
"""

import threading
import time
from dataclasses import dataclass, field

from memory_mcp.encoders.scheduler import Urgency
from memory_mcp.errors import EncoderFailed


@dataclass(slots=True)
class Patience:
    """Limits for one model; None waits as long as it takes. `rest_seconds` is how long it is left alone after a failure."""

    query_seconds: float | None = None
    bulk_seconds: float | None = None
    rest_seconds: float = 0.0
    _resting_until: float = float("-inf")
    _why: str = ""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def limit(self, urgency: Urgency) -> float | None:
        """How long to wait for an answer, in seconds."""
        return self.bulk_seconds if urgency is Urgency.BULK else self.query_seconds

    def check(self, name: str) -> None:
        """Passes when the model may be asked.

        Raises:
            EncoderFailed: it failed a moment ago.
        """
        with self._lock:
            if time.monotonic() < self._resting_until:
                raise EncoderFailed(f"{name} could not be asked", self._why)

    def failed(self, why: str) -> None:
        """Begins the rest."""
        with self._lock:
            self._resting_until, self._why = time.monotonic() + self.rest_seconds, why
