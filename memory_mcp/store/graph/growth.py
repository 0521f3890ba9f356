"""When the graph came to what it is: the minutes in which entities were first spoken of, and relations first told."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import apsw

from memory_mcp.store.graph.overview import PRESENT
from memory_mcp.store.timestamps import from_text

# Of a minute nobody asks more, and every zone's days begin at the beginning of one.
_MINUTE = 16
_ENTITIES = (
    f"SELECT substr(coalesce(e.first_mentioned_at, e.created_at), 1, {_MINUTE}), count(*) FROM entities e WHERE {PRESENT} GROUP BY 1"
)
# What is told of one pair before a merge stands under other numbers: then the relation's own row says when.
_RELATIONS = f"""
WITH told AS (
    SELECT v.source, v.target, v.type, min(coalesce(m.occurred_at, m.created_at, v.created_at)) AS at
    FROM relation_evidence v LEFT JOIN memories m ON m.id = v.memory WHERE m.deleted_at IS NULL GROUP BY 1, 2, 3)
SELECT substr(coalesce(t.at, r.created_at), 1, {_MINUTE}), count(*) FROM relations r
LEFT JOIN told t ON t.source = r.source AND t.target = r.target AND t.type = r.type GROUP BY 1
"""


def entities(connection: apsw.Connection) -> Iterator[tuple[datetime, int]]:
    """A minute, aware, UTC, and how many of the entities of today were first spoken of then; one made by hand, when it was made."""
    return _minutes(connection, _ENTITIES)


def relations(connection: apsw.Connection) -> Iterator[tuple[datetime, int]]:
    """The same for the relations of today; one that somebody states outside of any memory, when that was."""
    return _minutes(connection, _RELATIONS)


def _minutes(connection: apsw.Connection, query: str) -> Iterator[tuple[datetime, int]]:
    rows: list[tuple[Any, ...]] = connection.execute(query).fetchall()
    return ((from_text(f"{minute}:00+00:00"), many) for minute, many in rows)
