"""When the graph came to what it is: the minutes in which entities were first spoken of, and relations first told."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import apsw

from memory_mcp.store.graph.overview import PRESENT
from memory_mcp.store.timestamps import from_text

# Of a minute nobody asks more, and every zone's days begin at the beginning of one.
_MINUTE = 16
_BYTES_OF_A_MINUTE = 150
# Who is only an end of a relation was first spoken of by whoever told that.
_ENTITIES = f"""
SELECT substr(coalesce(e.first_mentioned_at, (
    SELECT min(coalesce(m.occurred_at, m.created_at)) FROM relation_evidence v JOIN memories m ON m.id = v.memory
    WHERE (v.source = e.id OR v.target = e.id) AND m.deleted_at IS NULL
), e.created_at), 1, {_MINUTE}), count(*) FROM entities e WHERE {PRESENT} GROUP BY 1
"""
# What is told of one pair before a merge stands under other numbers: then the relation's own row says when.
_RELATIONS = f"""
SELECT substr(coalesce((
    SELECT min(coalesce(m.occurred_at, m.created_at, v.created_at)) FROM relation_evidence v LEFT JOIN memories m ON m.id = v.memory
    WHERE v.source = r.source AND v.target = r.target AND v.type = r.type AND m.deleted_at IS NULL
), r.created_at), 1, {_MINUTE}), count(*) FROM relations r GROUP BY 1
"""

Minutes = tuple[tuple[datetime, int], ...]


@dataclass(frozen=True, slots=True)
class Came:
    """Minutes, aware, UTC, and how many of the entities of today were first spoken of in each (one made by hand: made), and how many of the
    relations of today first told (one that is stated outside of any memory: stated)."""

    entities: Minutes
    relations: Minutes

    @property
    def nbytes(self) -> int:
        return _BYTES_OF_A_MINUTE * (len(self.entities) + len(self.relations))


def came(connection: apsw.Connection) -> Came:
    """When the graph of today came to be."""
    return Came(_minutes(connection, _ENTITIES), _minutes(connection, _RELATIONS))


def _minutes(connection: apsw.Connection, query: str) -> Minutes:
    rows: list[tuple[Any, ...]] = connection.execute(query).fetchall()
    return tuple((from_text(f"{minute}:00+00:00"), many) for minute, many in rows)
