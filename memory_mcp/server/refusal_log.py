"""Refused calls in the operations log: who tried what, and never so many lines that a flood fills the disk or hides the rest."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from memory_mcp.store.operations import OperationsLog

WINDOW_SECONDS = 60
LINES_OF_ONE = 5  # a minute: of one caller for one reason
# A minute: of all strangers, and of all that have a token. At some 300 bytes a line that is 17 MB a day; the log keeps 60.
LINES_OF_ALL = 20


class RefusalLog:
    """Any thread may note a refusal."""

    def __init__(self, log: OperationsLog, clock: Callable[[], datetime], monotonic: Callable[[], float] = time.monotonic) -> None:
        self._log = log
        self._clock = clock
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._since = -float(WINDOW_SECONDS)
        self._written: dict[tuple[bool, str, str], int] = {}
        self._suppressed = 0
        self._refused: Counter[str] = Counter()

    def refused(self) -> Mapping[str, int]:
        """How many calls were refused since the start, by reason."""
        with self._lock:
            return dict(self._refused)

    def note(self, *, reason: str, token: str | None, client: str, **facts: Any) -> None:
        """Writes a line, or counts it: the next line that is written has their number (`suppressed`)."""
        with self._lock:
            self._refused[reason] += 1
            suppressed = self._take(token is not None, token or client, reason)
        if suppressed is None:
            return
        fields = {"reason": reason, "token": token, "client": client, **facts}
        self._log.append_event("refused", self._clock(), {**fields, **({"suppressed": suppressed} if suppressed else {})})

    def _take(self, has_token: bool, caller: str, reason: str) -> int | None:
        """How many were suppressed before a line that may be written now; None where it may not."""
        now = self._monotonic()
        if now - self._since >= WINDOW_SECONDS:
            self._since = now
            self._written.clear()
        lines = self._written.get((has_token, caller, reason), 0)
        # Counted apart: a flood from outside must not hide attempts with a token.
        of_all = sum(count for (kind, _, _), count in self._written.items() if kind == has_token)
        if lines >= LINES_OF_ONE or of_all >= LINES_OF_ALL:
            self._suppressed += 1
            return None
        self._written[has_token, caller, reason] = lines + 1
        suppressed, self._suppressed = self._suppressed, 0
        return suppressed
