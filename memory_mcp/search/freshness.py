"""The part of a score for age, importance and use, with `decay.weight`: it changes the order and never excludes a candidate."""

from collections.abc import Mapping, Sequence
from datetime import datetime

import apsw

from memory_mcp.config.settings import Decay
from memory_mcp.store import memory_usage
from memory_mcp.text.forgetting_curve import forgetting_curve


def freshness(connection: apsw.Connection, memory_ids: Sequence[int], decay: Decay, now: datetime) -> Mapping[int, float]:
    """For each of these memories `decay.weight` x its retention; nothing, and no query, while the weight is 0."""
    if not decay.weight:
        return {}
    found = memory_usage.touches(connection, memory_ids)
    return {
        memory_id: decay.weight * forgetting_curve(touched, importance, uses, now, decay.half_life_days)
        for memory_id, (touched, importance, uses) in found.items()
    }
