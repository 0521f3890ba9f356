"""How many calls a caller has left: a bucket for each, filled by the minute, emptied by the call."""

import math
from collections import OrderedDict

from memory_mcp.config.settings import RateLimit
from memory_mcp.errors import TooManyCalls

CALLERS_KEPT = 4_096


class RateLimits:
    """The buckets of all callers. Only the event loop uses it, so that it needs no lock."""

    def __init__(self) -> None:
        # Calls left, and as of when. The least recently used is dropped: whoever comes back after it begins with a full one.
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, caller: str, limit: RateLimit, now: float) -> None:
        """Counts a call at `now` (seconds of a clock that never goes back) under the limit that is in force then.

        Raises:
            TooManyCalls: the caller has none left.
        """
        if not limit.per_minute:
            self._buckets.clear()
            return
        left, since = self._buckets.pop(caller, (float(limit.burst), now))
        left = min(float(limit.burst), left + (now - since) * limit.per_minute / 60)
        taken = left >= 1
        self._buckets[caller] = (left - 1 if taken else left, now)
        if len(self._buckets) > CALLERS_KEPT:
            self._buckets.popitem(last=False)
        if not taken:
            raise TooManyCalls(
                "too many calls",
                f"{limit.per_minute} a minute are the limit, and {limit.burst} at once",
                max(1, math.ceil((1 - left) * 60 / limit.per_minute)),
            )
