"""The graph as a whole: how much there is, what counts most, everything for the analyses."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import apsw

from memory_mcp.store.graph.entities import records
from memory_mcp.store.graph.entities.records import Entity
from memory_mcp.store.timestamps import from_text

# An entity that something current speaks of, or that somebody made by hand, it or what is merged into it.
PRESENT = (
    "e.merged_into IS NULL AND (e.extraction_count > 0 OR e.made_by <> 'text' "
    "OR EXISTS (SELECT 1 FROM entities g WHERE g.merged_into = e.id AND g.made_by <> 'text') "
    "OR EXISTS (SELECT 1 FROM relations r WHERE r.source = e.id) OR EXISTS (SELECT 1 FROM relations r WHERE r.target = e.id))"
)


@dataclass(frozen=True, slots=True)
class Relation:
    """How two entities are related, summed up over all that speaks for it. `weight` and `confidence` run from 0 to 1."""

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


RELATION = (
    "r.source, r.target, r.type, r.directed, r.weight, r.evidence_count, r.confidence, r.subtype, r.valid_from, r.valid_to, r.method, "
    "r.validation_status, r.notes"
)


@dataclass(frozen=True, slots=True)
class Counts:
    entities: int
    relations: int


def counts(connection: apsw.Connection) -> Counts:
    """How many entities there are now, and how many relations."""
    present = connection.execute(f"SELECT count(*) FROM entities e WHERE {PRESENT}").get
    return Counts(present, connection.execute("SELECT count(*) FROM relations").get)


@dataclass(frozen=True, slots=True)
class Types:
    """How many entities of each type there are, and how many relations of each; the most first."""

    entities: dict[str, int]
    relations: dict[str, int]

    @property
    def nbytes(self) -> int:
        return sum(100 + len(name) for name in (*self.entities, *self.relations))


def counts_by_type(connection: apsw.Connection, min_weight: float = 0.0) -> Types:
    """What there is now, by its type. Relations that are lighter than `min_weight` are left out."""
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
    found = records.by_ids(connection, ids)
    return [found[one] for one in ids]


def relations_among(connection: apsw.Connection, ids: Iterable[int], limit: int) -> list[Relation]:
    """The relations with both ends among these entities, the heaviest first."""
    rows = connection.execute(
        # The plus keeps SQLite from trying every pair: with 500 entities, 4 ms instead of 40.
        f"WITH among AS MATERIALIZED (SELECT value AS id FROM json_each(?)) SELECT {RELATION} FROM relations r "
        "WHERE r.source IN (SELECT id FROM among) AND +r.target IN (SELECT id FROM among) ORDER BY r.weight DESC, r.evidence_count DESC, r.id LIMIT ?",
        (json.dumps(list(ids)), limit),
    )
    return [relation_of(row) for row in rows]


def colors(connection: apsw.Connection) -> dict[str, str]:
    """The colour of each type of entity."""
    return dict(connection.execute("SELECT name, color FROM entity_types WHERE color IS NOT NULL"))


def relation_of(row: Sequence[Any]) -> Relation:
    """A row of the columns `RELATION`."""
    return Relation(row[0], row[1], row[2], bool(row[3]), *row[4:])


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
class CreationTimes:
    """Minutes, aware, UTC, and how many of the entities of today were first spoken of in each (one made by hand: made), and how many of the
    relations of today first told (one that is stated outside of any memory: stated)."""

    entities: Minutes
    relations: Minutes

    @property
    def nbytes(self) -> int:
        return _BYTES_OF_A_MINUTE * (len(self.entities) + len(self.relations))


def creation_times(connection: apsw.Connection) -> CreationTimes:
    """When the graph of today came to be."""
    return CreationTimes(_minutes(connection, _ENTITIES), _minutes(connection, _RELATIONS))


def _minutes(connection: apsw.Connection, query: str) -> Minutes:
    rows: list[tuple[Any, ...]] = connection.execute(query).fetchall()
    return tuple((from_text(f"{minute}:00+00:00"), many) for minute, many in rows)


def revision(connection: apsw.Connection) -> str:
    """The mark of the state that this connection sees; empty in a file that can't be brought up to date."""
    return str(connection.execute("SELECT value FROM properties WHERE name = 'graph_revision'").get or "")
