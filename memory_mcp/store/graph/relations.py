"""Relations as the sum of their evidence: each memory that supports one adds to its weight, and its removal takes that away.

The weights of independent evidence add up as probabilities do: 1 − Π(1 − wᵢ), so two of 0.2 make 0.36, and the sum stays below 1
(noisy-or, Pearl 1988).
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter
from typing import Any

import apsw

from memory_mcp.domain import StatedRelation
from memory_mcp.language.names import UNKNOWN_TYPE
from memory_mcp.store.graph.entities.records import OWN_TYPE
from memory_mcp.store.memories import CURRENT
from memory_mcp.store.sqlite.reading import bulk_rows, json_ids
from memory_mcp.store.timestamps import to_text

Pair = tuple[int, int]
# Methods that derive relations from a memory's text, again when it changes.
FROM_TEXT = ("co_occurrence", "model")
REJECTED = "rejected"
STATED = "stated"


EVIDENCE = (
    "memory, source, target, source_said, target_said, type, subtype, weight, confidence, valid_from, valid_to, method, validation_status, "
    "notes, created_at"
)
INTO_EVIDENCE = f"INTO relation_evidence({EVIDENCE}) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"
# Source and target, and the name by which a memory refers to each.
Ends = tuple[int, int, str | None, str | None]


@dataclass(frozen=True, slots=True)
class Evidence:
    """`memory` supports that `source` is in relation `type` to `target`; `memory` is None where a person stated it outside of any memory.

    `weight` is the strength of the relation without other evidence, (0, 1]; `confidence` how certain it is, 0 to 1. `source_name` and
    `target_name` are the names by which the memory states it.
    """

    source: int
    target: int
    type: str
    weight: float
    confidence: float
    method: str
    memory: int | None = None
    subtype: str | None = None
    valid_from: str | None = None
    valid_to: str | None = None
    validation_status: str = "unvalidated"
    notes: str | None = None
    source_name: str | None = None
    target_name: str | None = None


def ordered_ends(ends: Ends, *, is_directed: bool) -> Ends:
    """The ends as they are stored: of a relation without a direction, the smaller id first."""
    source, target, source_name, target_name = ends
    return ends if is_directed or source <= target else (target, source, target_name, source_name)


def add(connection: apsw.Connection, evidence: Sequence[Evidence], now: datetime) -> set[Pair]:
    """Stores evidence; the same evidence of the same memory is replaced. Returns the pairs to sum up."""
    directed = directed_types(connection)
    moment = to_text(now)
    values = attrgetter("subtype", "weight", "confidence", "valid_from", "valid_to", "method", "validation_status", "notes")
    rows = []
    for item in evidence:
        ends = ordered_ends((item.source, item.target, item.source_name, item.target_name), is_directed=directed.get(item.type, True))
        rows.append((item.memory, *ends, item.type, *values(item), moment))
    connection.executemany(f"INSERT OR REPLACE {INTO_EVIDENCE}", rows)
    return {(item.source, item.target) for item in evidence}


def remove_of_memory(connection: apsw.Connection, memory_id: int, methods: Sequence[str]) -> set[Pair]:
    """Deletes the evidence of this memory by these methods. Returns the pairs to sum up."""
    rows = connection.execute(
        "DELETE FROM relation_evidence WHERE memory = ? AND method IN (SELECT value FROM json_each(?)) RETURNING source, target",
        (memory_id, json.dumps(list(methods))),
    )
    return {(source, target) for source, target in list(rows)}


def pairs_of_memories(connection: apsw.Connection, memory_ids: Iterable[int]) -> set[Pair]:
    """The pairs that these memories are evidence for."""
    rows = connection.execute(
        "SELECT source, target FROM relation_evidence WHERE memory IN (SELECT value FROM json_each(?))", (json_ids(memory_ids),)
    )
    return {(source, target) for source, target in rows}


def stated_in(connection: apsw.Connection, memory_ids: Iterable[int], names: Mapping[int, str]) -> dict[int, list[StatedRelation]]:
    """The relations that these memories state, by memory. Ends of relations without a direction are in the order of their names; types are
    given where they are known. `names` replaces the own names of entities."""
    rows = connection.execute(
        f"SELECT v.memory, s.name, v.type, t.name, nullif({OWN_TYPE.format(e='s')}, ?), nullif({OWN_TYPE.format(e='t')}, ?), coalesce(y.directed, 1), s.id, t.id FROM relation_evidence v "
        "JOIN entities s ON s.id = v.source JOIN entities t ON t.id = v.target LEFT JOIN relation_types y ON y.name = v.type "
        "WHERE v.method = ? AND v.memory IN (SELECT value FROM json_each(?)) ORDER BY v.memory, v.id",
        (UNKNOWN_TYPE, UNKNOWN_TYPE, STATED, json_ids(memory_ids)),
    )
    by_memory: dict[int, list[StatedRelation]] = {}
    for memory, source, type_, target, source_type, target_type, directed, source_id, target_id in rows:
        ends = [(names.get(source_id, source), source_type or ""), (names.get(target_id, target), target_type or "")]
        (first, first_type), (second, second_type) = ends if directed else sorted(ends)
        by_memory.setdefault(memory, []).append(StatedRelation(first, type_, second, first_type or None, second_type or None))
    return by_memory


def memories_stating(connection: apsw.Connection, entities: Iterable[int]) -> list[int]:
    """The memories that state a relation of one of these entities, without merged ones."""
    rows = connection.execute(
        "SELECT DISTINCT memory FROM relation_evidence WHERE method = ?1 AND memory IS NOT NULL "
        "AND (source IN (SELECT value FROM json_each(?2)) OR target IN (SELECT value FROM json_each(?2)))",
        (STATED, json_ids(entities)),
    )
    return [row[0] for row in rows]


def stated_by_hand_about(connection: apsw.Connection, memory_ids: Iterable[int]) -> list[StatedRelation]:
    """The relations that a person stated outside of any memory about entities which only these memories mention."""
    rows = connection.execute(
        "WITH given AS (SELECT value AS memory FROM json_each(?1)), named(entity) AS ("
        "SELECT entity FROM entity_mentions WHERE memory IN given UNION SELECT source FROM relation_evidence WHERE memory IN given "
        "UNION SELECT target FROM relation_evidence WHERE memory IN given), alone AS (SELECT entity FROM named n WHERE NOT EXISTS "
        "(SELECT 1 FROM entity_mentions m WHERE m.entity = n.entity AND m.memory NOT IN given)) "
        "SELECT s.name, v.type, t.name FROM relation_evidence v JOIN entities s ON s.id = v.source JOIN entities t ON t.id = v.target "
        "WHERE v.memory IS NULL AND v.method = ?2 AND (v.source IN alone OR v.target IN alone) ORDER BY v.id",
        (json_ids(memory_ids), STATED),
    )
    return [StatedRelation(source, type_, target) for source, type_, target in rows]


def pairs_of_entities(connection: apsw.Connection, entities: Iterable[int]) -> set[Pair]:
    """The pairs with one of these entities or one that is merged with it."""
    rows = connection.execute(
        "WITH wanted AS (SELECT g.id FROM entities e JOIN entities g ON coalesce(g.merged_into, g.id) = coalesce(e.merged_into, e.id) "
        "WHERE e.id IN (SELECT value FROM json_each(?))) "
        "SELECT source, target FROM relation_evidence WHERE source IN wanted UNION SELECT source, target FROM relation_evidence WHERE target IN wanted",
        (json_ids(entities),),
    )
    return {(source, target) for source, target in rows}


# The pairs of the entities that are kept, each once whatever its order.
_PAIRS = """
roots AS (
    SELECT coalesce(s.merged_into, s.id) AS a, coalesce(t.merged_into, t.id) AS b FROM json_each(?1) p
    JOIN entities s ON s.id = p.value ->> 0 JOIN entities t ON t.id = p.value ->> 1),
pairs AS (SELECT DISTINCT min(a, b) AS a, max(a, b) AS b FROM roots WHERE a <> b)
"""
# By pair and type, the evidence of current memories and what persons stated; merged entities count as one. CROSS JOIN: left to itself,
# SQLite reads all evidence there is.
_FOLD = f"""
WITH {_PAIRS},
ends AS (
    SELECT p.a AS source, p.b AS target, s.id AS s, t.id AS t FROM pairs p
    JOIN entities s ON coalesce(s.merged_into, s.id) = p.a JOIN entities t ON coalesce(t.merged_into, t.id) = p.b),
both AS (SELECT source, target, s, t FROM ends UNION ALL SELECT target, source, t, s FROM ends),
valid AS (
    SELECT b.source AS source, b.target AS target, coalesce(rt.directed, 1) AS directed, v.type, v.subtype, v.weight, v.confidence,
        v.valid_from, v.valid_to, v.method, v.validation_status, v.notes, v.created_at
    FROM both b CROSS JOIN relation_evidence v ON v.source = b.s AND v.target = b.t
    LEFT JOIN relation_types rt ON rt.name = v.type LEFT JOIN memories m ON m.id = v.memory
    WHERE (v.memory IS NULL OR ({CURRENT}))),
placed AS (
    SELECT *, CASE WHEN directed THEN source ELSE min(source, target) END AS a,
        CASE WHEN directed THEN target ELSE max(source, target) END AS b FROM valid)
SELECT a, b, type, max(directed), round(1 - exp(sum(ln(1 - min(weight, 0.999)))), 4), count(*), max(confidence),
    max(subtype), max(valid_from), max(valid_to), min(method), max(validation_status), max(notes), min(created_at), max(created_at)
FROM placed GROUP BY a, b, type HAVING sum(validation_status = 'rejected') = 0
"""
_FORGET = f"""
WITH {_PAIRS}
DELETE FROM relations WHERE id IN (
    SELECT r.id FROM pairs p JOIN relations r ON r.source = p.a AND r.target = p.b
    UNION ALL SELECT r.id FROM pairs p JOIN relations r ON r.source = p.b AND r.target = p.a)
"""


# Evidence from one end to the other, of these entities or any that is merged with them.
_ONE_WITH = "(SELECT g.id FROM entities e JOIN entities g ON coalesce(g.merged_into, g.id) = coalesce(e.merged_into, e.id) WHERE e.id = {})"
_BETWEEN = f"(source IN {_ONE_WITH.format('?1')} AND target IN {_ONE_WITH.format('?2')})"
_THE_OTHER_WAY = f"(source IN {_ONE_WITH.format('?2')} AND target IN {_ONE_WITH.format('?1')})"
_UNDIRECTED = "NOT (SELECT coalesce(max(directed), 1) FROM relation_types WHERE name = ?3)"
_OF_TYPE = f"type = ?3 AND ({_BETWEEN} OR ({_THE_OTHER_WAY} AND {_UNDIRECTED}))"


def supporters(connection: apsw.Connection, source: int, target: int, type_: str) -> list[str | None]:
    """The keys of the memories that are evidence for or against this relation, in whatever order of the ends where it has no direction;
    None for a person.
    """
    keys = f"SELECT (SELECT key FROM memories WHERE id = memory) FROM relation_evidence WHERE {_OF_TYPE}"
    return [row[0] for row in connection.execute(keys, (source, target, type_))]


def sum_up(connection: apsw.Connection, pairs: Iterable[Pair], now: datetime) -> None:
    """Stores the relations of these pairs as the sum of today's evidence; without evidence, there is none."""
    changed = set(pairs)
    if not changed:
        return
    wanted = json.dumps(sorted(changed))
    rows = summed_evidence(connection, changed)
    connection.execute(_FORGET, (wanted,))
    connection.executemany(
        "INSERT INTO relations(source, target, type, directed, weight, evidence_count, confidence, subtype, valid_from, valid_to, method, "
        "validation_status, notes, created_at, last_evidence_at, updated_at) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
        [(*row, to_text(now)) for row in rows],
    )


def summed_evidence(connection: apsw.Connection, pairs: Iterable[Pair]) -> list[tuple[Any, ...]]:
    """The summed relations of these pairs, as rows: source, target, type, directed, weight, evidence_count, confidence, and more."""
    return connection.execute(_FOLD, (json.dumps(sorted(set(pairs))),)).fetchall()


def reject(connection: apsw.Connection, source: int, target: int, type_: str, reason: str | None, now: datetime) -> bool:
    """Removes this relation, whatever memories say now or later, until `allow`. Returns whether there was one."""
    exists = connection.execute(
        "SELECT 1 FROM relations WHERE type = ?3 AND ((source = ?1 AND target = ?2) OR (NOT directed AND source = ?2 AND target = ?1))",
        (source, target, type_),
    ).fetchone()
    if exists is None:
        return False
    # Statements outside of any memory are deleted; a memory's evidence stays as long as the memory.
    connection.execute(f"DELETE FROM relation_evidence WHERE memory IS NULL AND {_OF_TYPE}", (source, target, type_))
    rejection = Evidence(source, target, type_, 1.0, 1.0, REJECTED, validation_status="rejected", notes=reason)
    sum_up(connection, add(connection, [rejection], now), now)
    return True


def allow(connection: apsw.Connection, source: int, target: int, type_: str) -> None:
    """Deletes the rejection of a relation, also of entities that are merged with the two."""
    connection.execute(
        f"DELETE FROM relation_evidence WHERE method = ?4 AND type = ?3 AND ({_BETWEEN} OR {_THE_OTHER_WAY})",
        (source, target, type_, REJECTED),
    )


def rebuild_sums(connection: apsw.Connection, entities: Sequence[int], now: datetime) -> None:
    """Sums up all relations of these entities again, after a merge or its undoing."""
    connection.execute(
        "DELETE FROM relations WHERE source IN (SELECT value FROM json_each(?1)) OR target IN (SELECT value FROM json_each(?1))",
        (json_ids(entities),),
    )
    sum_up(connection, pairs_of_entities(connection, entities), now)


def directed_types(connection: apsw.Connection) -> dict[str, bool]:
    """The relation types, and whether each has a direction."""
    return {name: bool(directed) for name, directed in connection.execute("SELECT name, directed FROM relation_types")}


def stated_count(connection: apsw.Connection, memory_id: int) -> int:
    """How many relations this memory states."""
    counted = connection.execute("SELECT count(*) FROM relation_evidence WHERE memory = ? AND method = ?", (memory_id, STATED))
    return int(counted.get)


# The strongest relations of every entity in either direction, from an index; without co-occurrence, which states nothing.
_STRONGEST = """SELECT x.id FROM json_each(:here) h CROSS JOIN relations x ON x.id IN (
    SELECT y.id FROM relations y WHERE y.{end} = +h.value AND y.type <> 'co_occurrence' ORDER BY y.weight * y.confidence DESC LIMIT :most)"""
_AROUND = f"""
SELECT r.source, s.name AS source_name, r.type, r.target, t.name AS target_name, r.directed, r.valid_from, r.valid_to
FROM ({_STRONGEST.format(end="source")} UNION {_STRONGEST.format(end="target")}) f
JOIN relations r ON r.id = f.id JOIN entities s ON s.id = r.source JOIN entities t ON t.id = r.target
ORDER BY r.weight * r.confidence DESC, r.id
"""
# What a memory states and no person rejected. A day has its own name: one such as 10月17日 may mean another year by now.
_STANDING = """
SELECT iif(s.subtype IS 'day', s.name, coalesce(v.source_said, s.name)), v.type, iif(t.subtype IS 'day', t.name, coalesce(v.target_said, t.name))
FROM relation_evidence v JOIN entities s ON s.id = v.source JOIN entities t ON t.id = v.target
WHERE v.memory = ? AND v.method = 'stated' AND EXISTS (SELECT 1 FROM relations r WHERE r.type = v.type AND (
    (r.source = coalesce(s.merged_into, s.id) AND r.target = coalesce(t.merged_into, t.id))
    OR (NOT r.directed AND r.source = coalesce(t.merged_into, t.id) AND r.target = coalesce(s.merged_into, s.id))))
ORDER BY v.id
"""


@dataclass(frozen=True, slots=True)
class Statement:
    """A relation with the names of its ends. `valid_from` and `valid_to` are the first and the last day on which it holds, None where
    unknown.
    """

    source: int
    source_name: str
    type: str
    target: int
    target_name: str
    directed: bool
    valid_from: str | None = None
    valid_to: str | None = None

    @property
    def line(self) -> str:
        """As a line of text: 健太 > likes > 苺; with `—` where it has no direction, and its days where it holds for a time."""
        arrow = ">" if self.directed else "—"
        return f"{self.source_name} {arrow} {self.type} {arrow} {self.target_name}{validity(self.valid_from, self.valid_to)}"


def strongest_statements(connection: apsw.Connection, entities: Iterable[int], most: int) -> list[Statement]:
    """The relations of these entities, the strongest first, at most `most` of each in either direction; merged entities count as one."""
    columns = "source, source_name, type, target, target_name, directed, valid_from, valid_to"
    rows = bulk_rows(connection, columns, _AROUND, {"here": json_ids(entities), "most": most})
    return [
        Statement(source, source_name, type_, target, target_name, bool(directed), valid_from, valid_to)
        for source, source_name, type_, target, target_name, directed, valid_from, valid_to in rows
    ]


def current_statements(connection: apsw.Connection, memory_id: int) -> list[str]:
    """The relations that a memory states and that hold, in the format of `unrelate`."""
    return [" > ".join(row) for row in connection.execute(_STANDING, (memory_id,))]


def validity(valid_from: str | None, valid_to: str | None) -> str:
    """The suffix for the days on which a relation holds: ` (2010-04-01..2015-03-31)`; empty where none is stated."""
    return f" ({valid_from or ''}..{valid_to or ''})" if valid_from or valid_to else ""
