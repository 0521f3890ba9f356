"""The forgetting curve: the retention of a memory over time, used for ranking and suggestions. Nothing is deleted because of it."""

import math
from datetime import datetime

SECONDS_PER_DAY = 86_400.0


def forgetting_curve(last_touched: datetime, importance: float, usage_count: int, now: datetime, half_life_days: float) -> float:
    """The retention from 1 (just used) towards 0: a half after the half-life, which importance and usage extend (after Ebbinghaus 1885).

    Importance 0.5 doesn't change the half-life, 1 doubles it, 0 halves it; each doubling of `usage_count` + 1 adds one half-life.
    """
    days = max((now - last_touched).total_seconds() / SECONDS_PER_DAY, 0.0)
    strength = half_life_days * 4 ** (importance - 0.5) * (1 + math.log2(1 + usage_count))
    return float(2 ** (-days / strength))
