"""Neighbors, walks and paths along relations, a hop at a time, in SQL. Merged entities count as one; a relation can be walked in both
directions, as 田中 works_on A is a fact about both."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import apsw
from pydantic_core import from_json

from memory_mcp.store.sqlite.reading import json_ids

HOPS_LIMIT = 6
# How many types of an entity's relations are listed.
TYPES_LIMIT = 20
# The nearness that remains after a hop along a relation of weight 1.
DECAY = 0.8
# An entity that is related to everything is no evidence: only its strongest relations are followed.
DEGREE_LIMIT = 200
# The same for entities that `nearest` only passes.
PASSING_DEGREE_LIMIT = 50
# So many entities of a hop of `nearest` are walked on from: the others are further than all that is shown.
LEADING_LIMIT = 200


@dataclass(frozen=True, slots=True)
class Step:
    """A relation as it is walked from `here` to `there`. `forward` where that is its direction, or it has none. `valid_from` and `valid_to`
    are the first and the last day on which it holds, None where unknown."""

    here: int
    there: int
    type: str
    weight: float
    confidence: float
    directed: bool = True
    forward: bool = True
    valid_from: str | None = None
    valid_to: str | None = None

    def turned(self) -> "Step":
        """The same relation walked in the other direction."""
        return replace(self, here=self.there, there=self.here, forward=not self.forward or not self.directed)


@dataclass(frozen=True, slots=True)
class Reached:
    """How near an entity is (the start's nearness × `DECAY` × the relation's weight for each hop), in how many hops, and by which last
    step.
    """

    nearness: float
    distance: int
    via: Step


# The strongest relations of every entity in either direction, from an index: a hub's other thousands are never read.
_STRONGEST = """SELECT x.id FROM relations x WHERE x.{end} = h.id AND x.confidence >= :min_confidence
        AND (:types = '[]' OR x.type IN (SELECT value FROM json_each(:types))) ORDER BY x.weight * x.confidence DESC LIMIT :degree"""
_STEPS = f"""
WITH here(id, near) AS (SELECT CAST(key AS INTEGER), value FROM json_each(:here)),
steps AS (
    SELECT h.near, h.id AS here, r.target AS there, r.type, r.weight, r.confidence, r.directed, 1 AS forward, r.valid_from, r.valid_to
    FROM here h JOIN relations r ON r.id IN ({_STRONGEST.format(end="source")})
    UNION ALL SELECT h.near, h.id, r.source, r.type, r.weight, r.confidence, r.directed, 1 - r.directed, r.valid_from, r.valid_to
    FROM here h JOIN relations r ON r.id IN ({_STRONGEST.format(end="target")}))
"""
# One row of JSON: between two rows, other threads take the interpreter lock, which takes long under load.
_EDGES = f"""SELECT json_group_array(json_array(here, there, type, weight, confidence, directed, forward, valid_from, valid_to)) FROM (
{_STEPS} SELECT * FROM steps ORDER BY here, weight * confidence DESC, there)"""
_PAIRS = f"SELECT json_group_array(json_array(here, there, type <> 'similarity')) FROM ({_STEPS} SELECT here, there, type FROM steps)"
# The best of several steps to an entity: SQLite takes the other columns from the row with the maximum.
_HOP = f"""SELECT json_group_array(json_array(here, there, type, weight, confidence, directed, forward, valid_from, valid_to, nearness)), max(total) FROM (
{_STEPS}
SELECT here, there, type, weight, confidence, directed, forward, valid_from, valid_to, max(near * weight) * :decay AS nearness,
    count(*) OVER () AS total FROM steps
WHERE there NOT IN (SELECT value FROM json_each(:known)) GROUP BY there ORDER BY nearness DESC, there LIMIT :most)
"""

# In how many ways each pair is related; co-occurrence is not counted.
_STATED = """
SELECT p.value ->> 0, p.value ->> 1, count(*) FROM json_each(:pairs) p
JOIN relations r ON (r.source = p.value ->> 0 AND r.target = p.value ->> 1) OR (r.source = p.value ->> 1 AND r.target = p.value ->> 0)
WHERE r.type <> 'co_occurrence' AND r.confidence >= :min_confidence AND (:types = '[]' OR r.type IN (SELECT value FROM json_each(:types)))
GROUP BY p.key
"""


@dataclass(frozen=True, slots=True)
class Rules:
    """Which relations are walked: of these types where some are given, of this confidence at least, so many of an entity in each
    direction.
    """

    types: Sequence[str] = ()
    min_confidence: float = 0.0
    degree_limit: int = DEGREE_LIMIT

    def bound(self, here: Mapping[int, float]) -> dict[str, Any]:
        """The parameters of a query that begins at these entities."""
        return {
            "here": json.dumps(here),
            "types": json.dumps(list(self.types)),
            "min_confidence": self.min_confidence,
            "degree": self.degree_limit,
        }


def steps_from(connection: apsw.Connection, entities: Iterable[int], rules: Rules = Rules()) -> list[Step]:
    """The relations that begin or end at these entities, the strongest of each first."""
    rows = connection.execute(_EDGES, rules.bound(dict.fromkeys(entities, 1.0))).get
    return [_step(row) for row in from_json(rows)]


def pairs_from(connection: apsw.Connection, entities: Iterable[int]) -> list[tuple[int, int, bool]]:
    """The same relations as their two ends, and whether they were told: not only because of alike names."""
    rows: list[tuple[int, int, bool]] = from_json(connection.execute(_PAIRS, Rules().bound(dict.fromkeys(entities, 1.0))).get)
    return rows


def further(connection: apsw.Connection, steps: Iterable[Step], rules: Rules = Rules()) -> dict[tuple[int, int], int]:
    """By the ends of each step, how many other relations the two have; co-occurrence is not counted."""
    walked = {(step.here, step.there): step.type != "co_occurrence" for step in steps}
    rows = connection.execute(_STATED, {**rules.bound({}), "pairs": json.dumps(list(walked))})
    return {(here, there): many - walked[here, there] for here, there, many in rows}


def types_at(connection: apsw.Connection, entity: int) -> dict[str, int]:
    """The types of an entity's relations with how many there are of each, the most frequent first."""
    return dict(
        connection.execute(
            "SELECT type, count(*) FROM (SELECT type FROM relations WHERE source = ?1 UNION ALL SELECT type FROM relations WHERE target = ?1) "
            "GROUP BY type ORDER BY 2 DESC, 1 LIMIT ?2",
            (entity, TYPES_LIMIT),
        )
    )


def hop(
    connection: apsw.Connection,
    here: Mapping[int, float],
    rules: Rules = Rules(),
    *,
    known: Iterable[int] = (),
    decay: float = 1.0,
    most: int | None = None,
) -> tuple[list[tuple[Step, float]], int]:
    """The entities one step away, without those that are `known`: each once, by the best step, with the nearness of its start × the
    relation's weight × `decay`; the nearest `most` first. Also returns how many there are."""
    wanted = {**rules.bound(here), "known": json_ids(known), "decay": decay, "most": -1 if most is None else max(most, 1)}
    rows, total = connection.execute(_HOP, wanted).get
    return [(_step(row), row[-1]) for row in from_json(rows)[:most]], total or 0


def reached(
    connection: apsw.Connection, start: Mapping[int, float], depth: int, rules: Rules = Rules(), *, limit: int | None = None
) -> dict[int, Reached]:
    """Entities within `depth` hops of the start, without the start itself: by hops, then by nearness. Of several walks of the same
    length the best counts. With a `limit`, only so many of a hop are walked on from, and no further hop is made once so many are
    reached.
    """
    entities: dict[int, Reached] = {}
    here = start
    for distance in range(1, min(depth, HOPS_LIMIT) + 1):
        nearest, _ = hop(connection, here, rules, known=[*start, *entities], decay=DECAY, most=limit)
        here = {step.there: nearness for step, nearness in nearest}
        entities |= {step.there: Reached(nearness, distance, step) for step, nearness in nearest}
        if not here or (limit is not None and len(start) + len(entities) >= limit):
            break
    return entities


def nearest(connection: apsw.Connection, start: int, depth: int, rules: Rules = Rules(), *, limit: int) -> tuple[dict[int, Reached], int]:
    """The same from one entity: the first `limit`, and how many more there are. Of each hop, the `LEADING_LIMIT` nearest are walked on
    from.
    """
    entities: dict[int, Reached] = {}
    here, total = {start: 1.0}, 0
    for distance in range(1, min(depth, HOPS_LIMIT) + 1):
        most = max(limit - len(entities), 0) if distance == depth else None
        walked = rules if distance == 1 else replace(rules, degree_limit=min(rules.degree_limit, PASSING_DEGREE_LIMIT))
        coming, many = hop(connection, here, walked, known=[start, *entities], decay=DECAY, most=most)
        entities |= {step.there: Reached(nearness, distance, step) for step, nearness in coming}
        total += many
        here = {step.there: nearness for step, nearness in coming[:LEADING_LIMIT]}
        if not here:
            break
    return dict(list(entities.items())[:limit]), max(total - limit, 0)


def shortest_path(connection: apsw.Connection, source: int, target: int, max_depth: int, rules: Rules = Rules()) -> list[Step] | None:
    """A path of the fewest hops between two entities, searched from both ends; None where there is none of at most `max_depth`."""
    if source == target:
        return []
    came: tuple[dict[int, Step | None], dict[int, Step | None]] = ({source: None}, {target: None})
    frontiers: list[set[int]] = [{source}, {target}]
    for _ in range(min(max_depth, HOPS_LIMIT)):
        side = 0 if len(frontiers[0]) <= len(frontiers[1]) else 1
        steps, _ = hop(connection, dict.fromkeys(frontiers[side], 1.0), rules, known=came[side])
        coming = {step.there: step for step, _ in steps}
        came[side].update(coming)
        meeting = [entity for entity in coming if entity in came[1 - side]]
        if meeting:
            return _joined(came, meeting[0])
        if not coming:
            return None
        frontiers[side] = set(coming)
    return None


def _step(row: Sequence[Any]) -> Step:
    here, there, type_, weight, confidence, directed, forward, begins, ends, *_ = row
    return Step(here, there, type_, weight, confidence, bool(directed), bool(forward), begins, ends)


def _joined(came: tuple[dict[int, Step | None], dict[int, Step | None]], meeting: int) -> list[Step]:
    path: list[Step] = []
    here = meeting
    while (step := came[0][here]) is not None:
        path.insert(0, step)
        here = step.here
    here = meeting
    while (step := came[1][here]) is not None:
        path.append(step.turned())
        here = step.here
    return path
