"""The order of the memories of a session, and a turn's neighbors."""

from collections.abc import Iterable
from typing import Literal

import apsw

from memory_mcp.store.sqlite.reading import bulk_rows, json_ids

# Before or after.
Side = Literal["<", ">"]


def event_time_of(table: str) -> str:
    """The SQL expression of a memory's event time, as in the index of sessions."""
    return f"coalesce({table}.occurred_at, {table}.created_at)"


def session_order(table: str, sign: Side, other: str) -> str:
    """The SQL condition that `table` comes before (`<`) or after (`>`) `other` in a session: by event time, then by id.

    The time is also compared alone, because SQLite uses no index for a row value and would scan the whole session.
    """
    return f"{event_time_of(table)} {sign}= {event_time_of(other)} AND ({event_time_of(table)}, {table}.id) {sign} ({event_time_of(other)}, {other}.id)"


def nearest_in_session(sign: Side, limit: int = 1, *, condition: str = "") -> str:
    """The SQL query of the ids of the nearest memories before (`<`) or after (`>`) `m` in its session, without the trash."""
    order = "DESC" if sign == "<" else "ASC"
    return (
        f"SELECT o.id FROM memories o WHERE o.session_id = m.session_id AND o.deleted_at IS NULL {condition} "
        f"AND {session_order('o', sign, 'm')} ORDER BY {event_time_of('o')} {order}, o.id {order} LIMIT {limit}"
    )


def adjacent_turns(connection: apsw.Connection, ids: Iterable[int], side: Literal["before", "after"]) -> dict[int, int]:
    """Memory → the turn just before or after it in its session, for those that have one."""
    adjacent = nearest_in_session("<" if side == "before" else ">", condition="AND o.kind <> 'summary'")
    sql = (
        f"SELECT m.id AS turn, ({adjacent}) AS adjacent FROM memories m "
        "WHERE m.id IN (SELECT value FROM json_each(?)) AND m.session_id IS NOT NULL"
    )
    return {turn: other for turn, other in bulk_rows(connection, "turn, adjacent", sql, (json_ids(ids),)) if other is not None}
