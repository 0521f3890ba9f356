"""From entity to entity along the relations, a hop at a time, in SQL. Merged entities are one; relations have two ends but may be
walked either way: 田中 works_on A tells something of both."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import apsw

HOPS_LIMIT = 6
# What is left of nearness after a hop along a relation of weight 1.
DECAY = 0.8
# An entity that everything is related to leads everywhere and nowhere: only its strongest relations are followed.
DEGREE_LIMIT = 200


@dataclass(frozen=True, slots=True)
class Step:
    """A relation as it is walked from `here` to `there`. `forward` where that is its direction, or it has none."""

    here: int
    there: int
    type: str
    weight: float
    confidence: float
    directed: bool = True
    forward: bool = True

    def turned(self) -> "Step":
        """The same relation walked the other way."""
        return replace(self, here=self.there, there=self.here, forward=not self.forward or not self.directed)


@dataclass(frozen=True, slots=True)
class Reached:
    """How near an entity is (the start's nearness × `DECAY` × the relation's weight, hop by hop), in how many hops, and by which last step."""

    nearness: float
    distance: int
    via: Step


_EDGES = """
WITH here(id) AS (SELECT value FROM json_each(?1)),
wanted(name) AS (SELECT value FROM json_each(?2)),
steps AS (
    SELECT r.source AS here, r.target AS there, r.type, r.weight, r.confidence, r.directed, 1 AS forward FROM relations r WHERE r.source IN here
    UNION ALL
    SELECT r.target, r.source, r.type, r.weight, r.confidence, r.directed, 1 - r.directed FROM relations r WHERE r.target IN here),
ranked AS (
    SELECT *, row_number() OVER (PARTITION BY here ORDER BY weight * confidence DESC, there) AS rank FROM steps
    WHERE confidence >= ?3 AND (?2 = '[]' OR type IN wanted))
SELECT here, there, type, weight, confidence, directed, forward FROM ranked WHERE rank <= ?4 ORDER BY here, rank
"""


def steps_from(
    connection: apsw.Connection,
    entities: Iterable[int],
    types: Sequence[str] = (),
    min_confidence: float = 0.0,
    degree_limit: int = DEGREE_LIMIT,
) -> list[Step]:
    """The relations that begin or end at these entities, the strongest of each first, at most so many of each."""
    rows = connection.execute(_EDGES, (json.dumps(list(entities)), json.dumps(list(types)), min_confidence, degree_limit))
    return [
        Step(here, there, type_, weight, confidence, directed=bool(directed), forward=bool(forward))
        for here, there, type_, weight, confidence, directed, forward in rows
    ]


def reached(
    connection: apsw.Connection,
    start: Mapping[int, float],
    depth: int,
    *,
    types: Sequence[str] = (),
    min_confidence: float = 0.0,
    limit: int | None = None,
) -> dict[int, Reached]:
    """Entities within `depth` hops of the start, beside the start itself: the fewer hops the sooner, then the nearer. Of several ways of
    as many hops the best counts. With a `limit` only so many of a hop lead on, and none where so many are found."""
    nearness = dict(start)
    found: dict[int, Reached] = {}
    frontier: Iterable[int] = start
    for hop in range(1, min(depth, HOPS_LIMIT) + 1):
        coming: dict[int, Reached] = {}
        for step in steps_from(connection, frontier, types, min_confidence):
            near = nearness[step.here] * DECAY * step.weight
            if step.there not in nearness and near > (coming[step.there].nearness if step.there in coming else 0.0):
                coming[step.there] = Reached(near, hop, step)
        nearest = dict(sorted(coming.items(), key=lambda item: (-item[1].nearness, item[0]))[:limit])
        nearness |= {entity: one.nearness for entity, one in nearest.items()}
        found |= nearest
        frontier = list(nearest)
        if not frontier or (limit is not None and len(nearness) >= limit):
            break
    return found


def shortest_path(
    connection: apsw.Connection, source: int, target: int, max_depth: int, types: Sequence[str] = (), min_confidence: float = 0.0
) -> list[Step] | None:
    """A way of the fewest hops between two entities, searched from both ends; None where there is none of at most `max_depth`."""
    if source == target:
        return []
    came: tuple[dict[int, Step | None], dict[int, Step | None]] = ({source: None}, {target: None})
    frontiers: list[set[int]] = [{source}, {target}]
    for _ in range(min(max_depth, HOPS_LIMIT)):
        side = 0 if len(frontiers[0]) <= len(frontiers[1]) else 1
        coming: set[int] = set()
        for step in steps_from(connection, frontiers[side], types, min_confidence):
            if step.there not in came[side]:
                came[side][step.there] = step
                coming.add(step.there)
        meeting = [entity for entity in coming if entity in came[1 - side]]
        if meeting:
            return _joined(came, min(meeting))
        if not coming:
            return None
        frontiers[side] = coming
    return None


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
