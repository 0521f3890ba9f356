"""The graph as a whole: counts, the most connected entities, when it was created, the mark of its current state."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import apsw

from memory_mcp.store import properties
from memory_mcp.store.graph.entities import records
from memory_mcp.store.graph.entities.records import Entity
from memory_mcp.store.graph.visibility import PRESENT
from memory_mcp.store.sqlite.reading import json_ids
from memory_mcp.store.timestamps import from_text

RELATION = (
    "r.source, r.target, r.type, r.directed, r.weight, r.evidence_count, r.confidence, r.subtype, r.valid_from, r.valid_to, r.method, "
    "r.validation_status, r.notes"
)
# Times are read to the minute: the days of every time zone begin with one.
_MINUTE = 16
# An entity that is only the end of a relation is as old as the memory with the relation.
_ENTITIES = f"""
SELECT substr(coalesce(e.first_mentioned_at, (
    SELECT min(coalesce(m.occurred_at, m.created_at)) FROM relation_evidence v JOIN memories m ON m.id = v.memory
    WHERE (v.source = e.id OR v.target = e.id) AND m.deleted_at IS NULL
), e.created_at), 1, {_MINUTE}), count(*) FROM entities e WHERE {PRESENT} GROUP BY 1
"""
# Evidence from before a merge has the ids of the merged entities: then the relation's own row has the time.
_RELATIONS = f"""
SELECT substr(coalesce((
    SELECT min(coalesce(m.occurred_at, m.created_at, v.created_at)) FROM relation_evidence v LEFT JOIN memories m ON m.id = v.memory
    WHERE v.source = r.source AND v.target = r.target AND v.type = r.type AND m.deleted_at IS NULL
), r.created_at), 1, {_MINUTE}), count(*) FROM relations r GROUP BY 1
"""
Minutes = tuple[tuple[datetime, int], ...]


@dataclass(frozen=True, slots=True)
class Relation:
    """How two entities are related: the sum of all evidence. `weight` and `confidence` are 0 to 1."""

    source: int
    target: int
    type: str
    directed: bool
    weight: float
    evidence_count: int
    confidence: float
    subtype: str | None = None
    valid_from: str | None = None
    valid_to: str | None = None
    method: str = ""
    validation_status: str = "unvalidated"
    notes: str | None = None


def counts(connection: apsw.Connection) -> tuple[int, int]:
    """How many entities and relations there are now."""
    present = connection.execute(f"SELECT count(*) FROM entities e WHERE {PRESENT}").get
    return int(present), int(connection.execute("SELECT count(*) FROM relations").get)


@dataclass(frozen=True, slots=True)
class Types:
    """How many entities and relations of each type there are, the most frequent first."""

    entities: dict[str, int]
    relations: dict[str, int]


def counts_by_type(connection: apsw.Connection, min_weight: float = 0.0) -> Types:
    """Entities and relations of today by type. Relations below `min_weight` are left out."""
    present = connection.execute(f"SELECT e.type, count(*) FROM entities e WHERE {PRESENT} GROUP BY e.type ORDER BY 2 DESC, 1")
    related = connection.execute("SELECT type, count(*) FROM relations WHERE weight >= ? GROUP BY type ORDER BY 2 DESC, 1", (min_weight,))
    return Types(dict(present), dict(related))


def most_connected(connection: apsw.Connection, limit: int, types: Sequence[str] = ()) -> list[Entity]:
    """The entities with the most mentions and the heaviest relations, at most `limit`."""
    rows = connection.execute(
        f"SELECT e.id FROM entities e WHERE {PRESENT} AND (?1 = '[]' OR e.type IN (SELECT value FROM json_each(?1))) ORDER BY e.extraction_count "
        "+ (SELECT total(weight) FROM relations r WHERE r.source = e.id) + (SELECT total(weight) FROM relations r WHERE r.target = e.id) DESC, e.id LIMIT ?2",
        (json.dumps(list(types)), limit),
    )
    ids = [int(row[0]) for row in rows]
    entities = records.by_ids(connection, ids)
    return [entities[id_] for id_ in ids]


def relations_among(
    connection: apsw.Connection, ids: Iterable[int], limit: int, types: Sequence[str] = (), min_weight: float = 0.0
) -> list[Relation]:
    """The relations with both ends among these entities, of these types if given and of at least `min_weight`, the heaviest first."""
    rows = connection.execute(
        # The plus keeps SQLite from trying every pair: with 500 entities, 4 ms instead of 40.
        f"WITH among AS MATERIALIZED (SELECT value AS id FROM json_each(?1)) SELECT {RELATION} FROM relations r "
        "WHERE r.source IN (SELECT id FROM among) AND +r.target IN (SELECT id FROM among) AND r.weight >= ?2 "
        "AND (?3 = '[]' OR r.type IN (SELECT value FROM json_each(?3))) ORDER BY r.weight DESC, r.evidence_count DESC, r.id LIMIT ?4",
        (json_ids(ids), min_weight, json.dumps(list(types)), limit),
    )
    return [relation_of(row) for row in rows]


def colors(connection: apsw.Connection) -> dict[str, str]:
    """The colour of each type of entity."""
    return dict(connection.execute("SELECT name, color FROM entity_types WHERE color IS NOT NULL"))


def relation_of(row: Sequence[Any]) -> Relation:
    """The relation of a row with the columns `RELATION`."""
    return Relation(row[0], row[1], row[2], bool(row[3]), *row[4:])


@dataclass(frozen=True, slots=True)
class CreationTimes:
    """How many of today's entities were first mentioned (or created by hand) in each minute, and how many of today's relations first
    stated. Minutes are aware, UTC.
    """

    entities: Minutes
    relations: Minutes


def creation_times(connection: apsw.Connection) -> CreationTimes:
    """When the entities and relations of today were created."""
    return CreationTimes(_minutes(connection, _ENTITIES), _minutes(connection, _RELATIONS))


def _minutes(connection: apsw.Connection, query: str) -> Minutes:
    rows: list[tuple[Any, ...]] = connection.execute(query).fetchall()
    return tuple((from_text(f"{minute}:00+00:00"), many) for minute, many in rows)


def revision(connection: apsw.Connection) -> str:
    """A random mark that changes with every entity and relation: results computed for it are valid until then. Never a counter, so that
    a file restored from a backup has no mark of another state. Empty in a file that can't be migrated.
    """
    return properties.value(connection, "graph_revision") or ""
