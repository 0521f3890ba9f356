"""Pages of a list of memories: each begins after the last row of the page before, so that the thousandth costs as much as the first."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import apsw

from memory_mcp.domain import Filters, PrivacyLevel, Shelf
from memory_mcp.store.memories import CURRENT, TOLD_TIME, where
from memory_mcp.store.timestamps import from_text, to_text

_ON_SHELF: Mapping[Shelf, str] = {
    "current": CURRENT,
    "superseded": f"m.deleted_at IS NULL AND NOT ({CURRENT})",
    "trash": "m.deleted_at IS NOT NULL",
    "all": "TRUE",
}


@dataclass(frozen=True, slots=True)
class Position:
    """A position in the list: the memory's time in the timeline, in the format of the store, and its id."""

    told_at: str
    id: int


def positions(
    connection: apsw.Connection,
    filters: Filters,
    limit: int,
    *,
    shelf: Shelf = "current",
    privacy_level: PrivacyLevel | None = None,
    after: Position | None = None,
) -> list[Position]:
    """The memories that match, the latest in the timeline first; those after a position if one is given."""
    conditions, values = ["TRUE"], list[Any]()
    if after:  # the time is also compared alone, because SQLite uses no index for a row value
        conditions.append(f"{TOLD_TIME} <= ? AND ({TOLD_TIME}, m.id) < (?, ?)")
        values += [after.told_at, after.told_at, after.id]
    if privacy_level:
        conditions.append("m.privacy_level = ?")
        values.append(privacy_level)
    filtered, filter_values = where(filters)
    rows = connection.execute(
        f"SELECT {TOLD_TIME}, m.id FROM memories m WHERE {' AND '.join(conditions)} {filtered} AND {_ON_SHELF[shelf]} "
        f"ORDER BY {TOLD_TIME} DESC, m.id DESC LIMIT ?",
        (*values, *filter_values, limit),
    )
    return [Position(told_at, memory_id) for told_at, memory_id in rows]


def stored_since(connection: apsw.Connection, since: datetime) -> list[tuple[datetime, int]]:
    """How many memories outside the trash were stored in each minute from then on."""
    rows: list[Any] = connection.execute(
        "SELECT substr(created_at, 1, 16), count(*) FROM memories WHERE created_at >= ? AND deleted_at IS NULL GROUP BY 1",
        (to_text(since),),
    ).fetchall()
    return [(from_text(f"{minute}:00+00:00"), count) for minute, count in rows]


def timeline_since(connection: apsw.Connection, since: datetime) -> list[tuple[datetime, int]]:
    """How many memories outside the trash have their time in each minute from then on."""
    rows: list[Any] = connection.execute(
        f"SELECT substr({TOLD_TIME}, 1, 16), count(*) FROM memories m WHERE {TOLD_TIME} >= ? AND m.deleted_at IS NULL GROUP BY 1",
        (to_text(since),),
    ).fetchall()
    return [(from_text(f"{minute}:00+00:00"), count) for minute, count in rows]
