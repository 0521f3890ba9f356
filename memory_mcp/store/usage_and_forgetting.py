"""How often and when memories were used, the curve by which they are forgotten, and the few columns by which `upkeep/memory_proposals`
compares many memories."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import apsw

from memory_mcp.language.budget import estimate_tokens
from memory_mcp.store.memories import CURRENT, EVENT_TIME
from memory_mcp.store.sqlite.reading import bulk_rows, json_ids
from memory_mcp.store.timestamps import from_text, to_text

SECONDS_PER_DAY = 86_400.0


def forgetting_curve(last_touched: datetime, importance: float, usage_count: int, now: datetime, half_life_days: float) -> float:
    """The retention from 1 (just used) towards 0: a half after the half-life, which importance and usage extend (after Ebbinghaus 1885).

    It ranks and suggests; nothing is deleted because of it. Importance 0.5 doesn't change the half-life, 1 doubles it, 0 halves it; each
    doubling of `usage_count` + 1 adds one half-life.
    """
    days = max((now - last_touched).total_seconds() / SECONDS_PER_DAY, 0.0)
    strength = half_life_days * 4 ** (importance - 0.5) * (1 + math.log2(1 + usage_count))
    return float(2 ** (-days / strength))


@dataclass(frozen=True, slots=True)
class Row:
    """The columns of a memory that proposals compare. `last_touched`: its last use, else its event time."""

    id: int
    content: str
    importance: float
    usage_count: int
    last_touched: datetime


def comparable(connection: apsw.Connection, limit: int, budget: int, longest: int) -> list[Row]:
    """The latest current memories, without summaries and texts of more than `longest` characters: at most `limit`, and together within
    a `budget` of tokens as counted by `estimate_tokens`.
    """
    candidates = connection.execute(
        f"SELECT m.id, m.content, m.importance, m.usage_count, max(coalesce(m.last_used_at, ''), {EVENT_TIME}) FROM memories m "
        f"WHERE {CURRENT} AND m.kind <> 'summary' AND length(m.content) <= ? ORDER BY m.id DESC LIMIT ?",
        (longest, limit),
    )
    rows: list[Row] = []
    for memory_id, content, importance, uses, touched in candidates:
        budget -= estimate_tokens(content)
        if budget < 0:
            break
        rows.append(Row(memory_id, content, importance, uses, from_text(touched)))
    return rows


def usage(connection: apsw.Connection, memory_ids: Sequence[int]) -> dict[int, tuple[datetime, float, int]]:
    """Memory → when it was last used (else its event time), its importance, and its number of uses."""
    sql = (
        f"SELECT m.id AS id, max(coalesce(m.last_used_at, ''), {EVENT_TIME}) AS touched, m.importance AS importance, "
        "m.usage_count AS uses FROM memories m WHERE m.id IN (SELECT value FROM json_each(?))"
    )
    rows = bulk_rows(connection, "id, touched, importance, uses", sql, (json_ids(memory_ids),))
    return {memory_id: (from_text(touched), importance, uses) for memory_id, touched, importance, uses in rows}


def record_uses(connection: apsw.Connection, uses: Mapping[str, tuple[int, datetime]]) -> None:
    """Add to the use counts: key → (number of uses, time of the last one). Nothing else of a memory changes."""
    connection.executemany(
        "UPDATE memories SET usage_count = usage_count + ?, last_used_at = max(coalesce(last_used_at, ''), ?) WHERE key = ?",
        [(count, to_text(at), key) for key, (count, at) in uses.items()],
    )
