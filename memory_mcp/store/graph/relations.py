"""Relations as the sum of their evidence: each memory that speaks for one makes it heavier, and lighter again when it goes.

The weights of independent evidence add up as probabilities do: 1 − Π(1 − wᵢ), so two that say 0.2 make 0.36 and none makes more
than 1 (noisy-or, Pearl 1988).
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import apsw

from memory_mcp.domain import StatedRelation
from memory_mcp.store.graph.entities.records import OWN_TYPE, UNKNOWN_TYPE
from memory_mcp.store.memories import CURRENT
from memory_mcp.store.sqlite.bulk_rows import packed
from memory_mcp.store.timestamps import to_text
from memory_mcp.text.relation_notation import days

Pair = tuple[int, int]
# The ways of finding a relation that follow from a memory's text, and are found anew when that changes.
FROM_TEXT = ("co_occurrence", "model")
REJECTED = "rejected"
STATED = "stated"


# Source and target, and by which name a memory calls each.
Ends = tuple[int, int, str | None, str | None]


@dataclass(frozen=True, slots=True)
class Evidence:
    """`memory` speaks for `source` standing in `type` to `target`; `memory` is None where somebody just says so.

    `weight` is how strong the relation would be if nothing else spoke for it, (0, 1]; `confidence` how sure that is, 0 to 1. `source_said` and
    `target_said` are the names by which the memory states it.
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
    source_said: str | None = None
    target_said: str | None = None


def ordered_ends(ends: Ends, *, is_directed: bool) -> Ends:
    """As they are kept: of a relation without a direction the smaller one first."""
    source, target, source_said, target_said = ends
    return ends if is_directed or source <= target else (target, source, target_said, source_said)


def add(connection: apsw.Connection, evidence: Sequence[Evidence], now: datetime) -> set[Pair]:
    """Puts evidence down; the same said again by the same memory replaces it. Returns the pairs that are to be summed up."""
    directed = directed_types(connection)
    moment = to_text(now)
    rows = []
    for one in evidence:
        ends = ordered_ends((one.source, one.target, one.source_said, one.target_said), is_directed=directed.get(one.type, True))
        said = (one.subtype, one.weight, one.confidence, one.valid_from, one.valid_to, one.method, one.validation_status, one.notes)
        rows.append((one.memory, *ends, one.type, *said, moment))
    connection.executemany(
        "INSERT OR REPLACE INTO relation_evidence(memory, source, target, source_said, target_said, type, subtype, weight, confidence, valid_from, "
        "valid_to, method, validation_status, notes, created_at) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
        rows,
    )
    return {(one.source, one.target) for one in evidence}


def remove_of_memory(connection: apsw.Connection, memory_id: int, methods: Sequence[str]) -> set[Pair]:
    """Takes back what this memory speaks for by these methods. Returns the pairs that are to be summed up."""
    rows = connection.execute(
        "DELETE FROM relation_evidence WHERE memory = ? AND method IN (SELECT value FROM json_each(?)) RETURNING source, target",
        (memory_id, json.dumps(list(methods))),
    )
    return {(source, target) for source, target in list(rows)}


def pairs_of_memories(connection: apsw.Connection, memory_ids: Iterable[int]) -> set[Pair]:
    """The pairs for which these memories speak."""
    rows = connection.execute(
        "SELECT source, target FROM relation_evidence WHERE memory IN (SELECT value FROM json_each(?))", (json.dumps(list(memory_ids)),)
    )
    return {(source, target) for source, target in rows}


def stated_in(connection: apsw.Connection, memory_ids: Iterable[int], called: Mapping[int, str]) -> dict[int, list[StatedRelation]]:
    """The relations that these memories state, by memory, as they were stated. Of those without a direction the ends are in the order
    of their names. Types are told where they are known. `called`: by entity, another name than its own to tell it by."""
    rows = connection.execute(
        f"SELECT v.memory, s.name, v.type, t.name, nullif({OWN_TYPE.format(e='s')}, ?), nullif({OWN_TYPE.format(e='t')}, ?), coalesce(y.directed, 1), s.id, t.id FROM relation_evidence v "
        "JOIN entities s ON s.id = v.source JOIN entities t ON t.id = v.target LEFT JOIN relation_types y ON y.name = v.type "
        "WHERE v.method = ? AND v.memory IN (SELECT value FROM json_each(?)) ORDER BY v.memory, v.id",
        (UNKNOWN_TYPE, UNKNOWN_TYPE, STATED, json.dumps(list(memory_ids))),
    )
    found: dict[int, list[StatedRelation]] = {}
    for memory, source, type_, target, source_type, target_type, directed, one, other in rows:
        named = [(called.get(one, source), source_type or ""), (called.get(other, target), target_type or "")]
        (first, first_type), (second, second_type) = named if directed else sorted(named)
        found.setdefault(memory, []).append(StatedRelation(first, type_, second, first_type or None, second_type or None))
    return found


def memories_stating(connection: apsw.Connection, entities: Iterable[int]) -> list[int]:
    """The memories that state a relation of one of these entities, merges aside."""
    rows = connection.execute(
        "SELECT DISTINCT memory FROM relation_evidence WHERE method = ?1 AND memory IS NOT NULL "
        "AND (source IN (SELECT value FROM json_each(?2)) OR target IN (SELECT value FROM json_each(?2)))",
        (STATED, json.dumps(list(entities))),
    )
    return [row[0] for row in rows]


def stated_by_hand_about(connection: apsw.Connection, memory_ids: Iterable[int]) -> list[StatedRelation]:
    """What somebody stated outside of any memory about those whom, of all memories, only these name."""
    rows = connection.execute(
        "WITH told AS (SELECT value AS memory FROM json_each(?1)), named(entity) AS ("
        "SELECT entity FROM entity_mentions WHERE memory IN told UNION SELECT source FROM relation_evidence WHERE memory IN told "
        "UNION SELECT target FROM relation_evidence WHERE memory IN told), alone AS (SELECT entity FROM named n WHERE NOT EXISTS "
        "(SELECT 1 FROM entity_mentions m WHERE m.entity = n.entity AND m.memory NOT IN told)) "
        "SELECT s.name, v.type, t.name FROM relation_evidence v JOIN entities s ON s.id = v.source JOIN entities t ON t.id = v.target "
        "WHERE v.memory IS NULL AND v.method = ?2 AND (v.source IN alone OR v.target IN alone) ORDER BY v.id",
        (json.dumps(list(memory_ids)), STATED),
    )
    return [StatedRelation(source, type_, target) for source, type_, target in rows]


def pairs_of_entities(connection: apsw.Connection, entities: Iterable[int]) -> set[Pair]:
    """The pairs that these entities, and what is merged with them, are an end of."""
    rows = connection.execute(
        "WITH wanted AS (SELECT g.id FROM entities e JOIN entities g ON coalesce(g.merged_into, g.id) = coalesce(e.merged_into, e.id) "
        "WHERE e.id IN (SELECT value FROM json_each(?))) "
        "SELECT source, target FROM relation_evidence WHERE source IN wanted UNION SELECT source, target FROM relation_evidence WHERE target IN wanted",
        (json.dumps(list(entities)),),
    )
    return {(source, target) for source, target in rows}


# The pairs by what they are merged into, each once whichever way round.
_PAIRS = """
roots AS (
    SELECT coalesce(s.merged_into, s.id) AS a, coalesce(t.merged_into, t.id) AS b FROM json_each(?1) p
    JOIN entities s ON s.id = p.value ->> 0 JOIN entities t ON t.id = p.value ->> 1),
pairs AS (SELECT DISTINCT min(a, b) AS a, max(a, b) AS b FROM roots WHERE a <> b)
"""
# Of one pair and type the evidence of current memories, and what was said outside of any; merged entities are one. CROSS: left to itself,
# SQLite looks at all evidence there is.
_FOLD = f"""
WITH {_PAIRS},
ends AS (
    SELECT p.a AS source, p.b AS target, s.id AS s, t.id AS t FROM pairs p
    JOIN entities s ON coalesce(s.merged_into, s.id) = p.a JOIN entities t ON coalesce(t.merged_into, t.id) = p.b),
both AS (SELECT source, target, s, t FROM ends UNION ALL SELECT target, source, t, s FROM ends),
spoken AS (
    SELECT b.source AS source, b.target AS target, coalesce(rt.directed, 1) AS directed, v.type, v.subtype, v.weight, v.confidence,
        v.valid_from, v.valid_to, v.method, v.validation_status, v.notes, v.created_at
    FROM both b CROSS JOIN relation_evidence v ON v.source = b.s AND v.target = b.t
    LEFT JOIN relation_types rt ON rt.name = v.type LEFT JOIN memories m ON m.id = v.memory
    WHERE (v.memory IS NULL OR ({CURRENT}))),
placed AS (
    SELECT *, CASE WHEN directed THEN source ELSE min(source, target) END AS a,
        CASE WHEN directed THEN target ELSE max(source, target) END AS b FROM spoken)
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


# Evidence from the one end to the other, whoever of those that are merged with them it was written for.
_ONE_WITH = "(SELECT g.id FROM entities e JOIN entities g ON coalesce(g.merged_into, g.id) = coalesce(e.merged_into, e.id) WHERE e.id = {})"
_BETWEEN = f"(source IN {_ONE_WITH.format('?1')} AND target IN {_ONE_WITH.format('?2')})"
_THE_OTHER_WAY = f"(source IN {_ONE_WITH.format('?2')} AND target IN {_ONE_WITH.format('?1')})"


def sum_up(connection: apsw.Connection, pairs: Iterable[Pair], now: datetime) -> None:
    """The relations of these pairs from the evidence that there is now; one that nothing current speaks for is gone."""
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
    """What the relations of these pairs come to, as rows: source, target, type, directed, weight, evidence_count, confidence, and more."""
    return connection.execute(_FOLD, (json.dumps(sorted(set(pairs))),)).fetchall()


def reject(connection: apsw.Connection, source: int, target: int, type_: str, reason: str | None, now: datetime) -> bool:
    """Nothing speaks for this relation any more, now or later, until `allow`. Returns whether there was one."""
    there = connection.execute(
        "SELECT 1 FROM relations WHERE type = ?3 AND ((source = ?1 AND target = ?2) OR (NOT directed AND source = ?2 AND target = ?1))",
        (source, target, type_),
    ).fetchone()
    if there is None:
        return False
    # What was said outside of any memory is taken back with it; what a memory says goes with the memory.
    connection.execute(
        f"DELETE FROM relation_evidence WHERE memory IS NULL AND type = ?3 AND ({_BETWEEN} OR "
        f"({_THE_OTHER_WAY} AND NOT (SELECT coalesce(max(directed), 1) FROM relation_types WHERE name = ?3)))",
        (source, target, type_),
    )
    no = Evidence(source, target, type_, 1.0, 1.0, REJECTED, validation_status="rejected", notes=reason)
    sum_up(connection, add(connection, [no], now), now)
    return True


def allow(connection: apsw.Connection, source: int, target: int, type_: str) -> None:
    """Takes a rejection back, also of what is merged with the two."""
    connection.execute(
        f"DELETE FROM relation_evidence WHERE method = ?4 AND type = ?3 AND ({_BETWEEN} OR {_THE_OTHER_WAY})",
        (source, target, type_, REJECTED),
    )


def rebuild_sums(connection: apsw.Connection, entities: Sequence[int], now: datetime) -> None:
    """All relations of these entities: who is one with whom has changed."""
    connection.execute(
        "DELETE FROM relations WHERE source IN (SELECT value FROM json_each(?1)) OR target IN (SELECT value FROM json_each(?1))",
        (json.dumps(list(entities)),),
    )
    sum_up(connection, pairs_of_entities(connection, entities), now)


def directed_types(connection: apsw.Connection) -> dict[str, bool]:
    """The relation types, and whether each has a direction."""
    return {name: bool(directed) for name, directed in connection.execute("SELECT name, directed FROM relation_types")}


def stated_count(connection: apsw.Connection, memory_id: int) -> int:
    """How many relations this memory states."""
    counted = connection.execute("SELECT count(*) FROM relation_evidence WHERE memory = ? AND method = ?", (memory_id, STATED))
    return int(counted.get)


# Of every entity its strongest relations in either direction, straight from an index. One of a pair that was only named together says nothing.
_STRONGEST = """SELECT x.id FROM json_each(:here) h CROSS JOIN relations x ON x.id IN (
    SELECT y.id FROM relations y WHERE y.{end} = +h.value AND y.type <> 'co_occurrence' ORDER BY y.weight * y.confidence DESC LIMIT :most)"""
_AROUND = f"""
SELECT r.source, s.name AS source_name, r.type, r.target, t.name AS target_name, r.directed, r.valid_from, r.valid_to
FROM ({_STRONGEST.format(end="source")} UNION {_STRONGEST.format(end="target")}) f
JOIN relations r ON r.id = f.id JOIN entities s ON s.id = r.source JOIN entities t ON t.id = r.target
ORDER BY r.weight * r.confidence DESC, r.id
"""
# What a memory states and nobody has taken back. A day goes by its own name: one such as 10月17日 may mean another year by now.
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
    """A relation with the names of its ends. `valid_from` and `valid_to` are the first and the last day on which it holds, None where nobody
    said."""

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
        """As it is told: 健太 > likes > 苺; `—` where it has no direction; its days behind one that holds for a time."""
        arrow = ">" if self.directed else "—"
        return f"{self.source_name} {arrow} {self.type} {arrow} {self.target_name}{days(self.valid_from, self.valid_to)}"


def strongest_statements(connection: apsw.Connection, entities: Iterable[int], most: int) -> list[Statement]:
    """The relations of these entities, the strongest first, at most so many of each in either direction. Only what something current
    speaks for; merged entities are one."""
    here = json.dumps(list(entities))
    columns = "source, source_name, type, target, target_name, directed, valid_from, valid_to"
    rows = packed(connection, columns, _AROUND, {"here": here, "most": most})
    return [
        Statement(source, source_name, type_, target, target_name, bool(directed), valid_from, valid_to)
        for source, source_name, type_, target, target_name, directed, valid_from, valid_to in rows
    ]


def current_statements(connection: apsw.Connection, memory_id: int) -> list[str]:
    """The relations that a memory states and that hold, as `unrelate` takes them."""
    return [" > ".join(row) for row in connection.execute(_STANDING, (memory_id,))]
