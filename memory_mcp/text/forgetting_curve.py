"""How much of a memory is left after a while, as a number for ranking and for suggestions. Nothing is ever lost by it."""

import math
from datetime import datetime

SECONDS_PER_DAY = 86_400.0


def forgetting_curve(last_touched: datetime, importance: float, usage_count: int, now: datetime, half_life_days: float) -> float:
    """From 1, just touched, towards 0: half after the half-life, which importance and use make longer (after Ebbinghaus 1885).

    Importance 0.5 leaves the half-life as it is, 1 doubles it, 0 halves it; each doubling of the uses adds one more.
    """
    days = max((now - last_touched).total_seconds() / SECONDS_PER_DAY, 0.0)
    strength = half_life_days * 4 ** (importance - 0.5) * (1 + math.log2(1 + usage_count))
    return float(2 ** (-days / strength))
