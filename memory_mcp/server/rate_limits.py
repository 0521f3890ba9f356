"""How many calls a caller has left: a bucket for each, filled by the minute, emptied by the call."""

import math
from collections import OrderedDict

from memory_mcp.config.settings import RateLimit
from memory_mcp.errors import TooManyCalls
from memory_mcp.wording import sentence

CALLERS_KEPT = 4_096


class RateLimits:
    """The buckets of all callers. One thread at a time may use it."""

    def __init__(self) -> None:
        # Calls left, and as of when. The least recently used is dropped: a caller that comes back after it begins with a full one.
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def require(self, caller: str, limit: RateLimit, now: float) -> None:
        """Raises TooManyCalls where the caller has none left, and counts nothing."""
        left = self._left(caller, limit, now)
        if left < 1:
            raise _too_many(limit, left)

    def take(self, caller: str, limit: RateLimit, now: float) -> None:
        """Counts a call at `now` (seconds of a clock that never goes back) under the limit that is in force then.

        Raises:
            TooManyCalls: the caller has none left.
        """
        if not limit.per_minute:
            self._buckets.clear()
            return
        left = self._left(caller, limit, now)
        self._buckets[caller] = (left - 1 if left >= 1 else left, now)
        self._buckets.move_to_end(caller)
        if len(self._buckets) > CALLERS_KEPT:
            self._buckets.popitem(last=False)
        if left < 1:
            raise _too_many(limit, left)

    def _left(self, caller: str, limit: RateLimit, now: float) -> float:
        left, since = self._buckets.get(caller, (float(limit.burst), now))
        return min(float(limit.burst), left + (now - since) * limit.per_minute / 60)


def _too_many(limit: RateLimit, left: float) -> TooManyCalls:
    return TooManyCalls(
        "too many calls",
        sentence("{} a minute are the limit, and {} at once", limit.per_minute, limit.burst),
        max(1, math.ceil((1 - left) * 60 / limit.per_minute)),
    )
