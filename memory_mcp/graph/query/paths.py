"""How two entities hang together: the shortest way, the strongest, or several."""

import heapq
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

import apsw

from memory_mcp.store.graph import neighbors
from memory_mcp.store.graph.entities import records
from memory_mcp.store.graph.entities.lookup import find_all
from memory_mcp.store.graph.entities.records import Entity
from memory_mcp.store.graph.neighbors import Rules, Step

Algorithm = Literal["shortest", "strongest", "all"]
ALGORITHMS: tuple[Algorithm, ...] = get_args(Algorithm)
PATHS_LIMIT = 10
# A search looks at so many entities and so long at most; what it has found by then is the answer, and it says that it stopped.
EXPANDED_LIMIT = 20_000
DEADLINE_SECONDS = 0.8
_BATCH = 64
# From so many hops around the target the best way to it is looked up, for all at once.
LOOK_BACK = 2
# What a way costs at least, how many came before it, what it costs so far, where it is, and its steps.
Way = tuple[float, int, float, int, "tuple[Step, ...]"]


@dataclass(frozen=True, slots=True)
class Path:
    """The steps from one to the other. `strength` is the product of their weights, 0 to 1."""

    steps: tuple[Step, ...]

    @property
    def strength(self) -> float:
        return round(math.prod(step.weight for step in self.steps), 4)


@dataclass(frozen=True, slots=True)
class Paths:
    """Ways from `source` to `target`, the best first. `complete` is False where the search ended before it had seen all;
    `namesakes` are others who are called as one of the two. Where there is none, `types_there` tells of which types the relations of `source`
    are, and how many of each, and `alone` which of the two have no relations at all."""

    source: Entity
    target: Entity
    paths: tuple[Path, ...]
    named: dict[int, str]
    complete: bool = True
    namesakes: tuple[Entity, ...] = ()
    types_there: Mapping[str, int] = field(default_factory=dict)
    alone: tuple[str, ...] = ()


def find_path(
    connection: apsw.Connection,
    source: str,
    target: str,
    algorithm: Algorithm = "shortest",
    max_depth: int = 4,
    types: Sequence[str] = (),
    min_confidence: float = 0.0,
) -> Paths:
    """Ways of at most `max_depth` hops between the entities of these names; of several the one that is mentioned most. Only relations of
    these `types` are walked, where some are named, and only such that are so sure.

    Raises:
        EntityNotFound: nobody is called so.
    """
    (one, *like_one), (other, *like_other) = find_all(connection, source), find_all(connection, target)
    depth, rules = min(max_depth, neighbors.HOPS_LIMIT), Rules(types, min_confidence)
    search = _Search(connection, other.id, depth, rules)
    if one.id == other.id:  # by two of its names
        found: list[tuple[Step, ...]] = [()]
    elif algorithm == "shortest":
        way = neighbors.shortest_path(connection, one.id, other.id, depth, rules)
        found = [] if way is None else [tuple(way)]
    elif algorithm == "strongest":
        found = search.strongest(one.id, 1)
    else:
        found = search.strongest(one.id, PATHS_LIMIT, simple=True)
    met = {end for way in found for step in way for end in (step.here, step.there)}
    named = {entity.id: entity.name for entity in (*records.by_ids(connection, met).values(), one, other)}
    ways = tuple(Path(tuple(way)) for way in found)
    found_out = Paths(one, other, ways, named, not search.stopped, (*like_one, *like_other))
    if ways:
        return found_out
    there, beyond = (neighbors.types_at(connection, end.id) for end in (one, other))
    alone = tuple(end.name for end, types in ((one, there), (other, beyond)) if not types)
    return replace(found_out, types_there=there, alone=alone)


class _Search:
    """Best-first over ways from the start, the strongest first: Dijkstra on −log weight where one way to each entity is enough. Whoever is
    near the target is known beforehand, so that of the last hops only those are looked at that can arrive (A*, Hart 1968)."""

    def __init__(self, connection: apsw.Connection, target: int, depth: int, rules: Rules) -> None:
        self._connection, self._target, self._depth, self._rules = connection, target, depth, rules
        self._left: list[dict[int, float]] = []
        self._steps: dict[int, list[Step]] = {}
        self._ends_at = time.monotonic() + DEADLINE_SECONDS
        self.stopped = False

    def strongest(self, source: int, limit: int, *, simple: bool = False) -> list[tuple[Step, ...]]:
        """The strongest ways, at most `limit`. With `simple` all that visit nobody twice are looked at, else the best to each entity."""
        self._look_back()
        found: list[tuple[Step, ...]] = []
        best: dict[tuple[int, int], float] = {}
        line: list[Way] = [(0.0, 0, 0.0, source, ())]
        pushed = 0
        while line and len(found) < limit:
            if pushed > EXPANDED_LIMIT or time.monotonic() > self._ends_at:
                self.stopped = True
                break
            _, _, cost, here, way = heapq.heappop(line)
            if here == self._target and way:
                found.append(way)
                continue
            visited = {source, *(step.there for step in way)}
            for step in self._from(here, line):
                still = self._still(step.there, self._depth - len(way) - 1)
                if step.there in visited or step.weight <= 0 or still is None:
                    continue
                further = cost - math.log(step.weight)
                place = (step.there, len(way) + 1)
                if not simple and further >= best.get(place, math.inf):
                    continue
                best[place] = further
                pushed += 1
                heapq.heappush(line, (further + still, pushed, further, step.there, (*way, step)))
        return found

    def _look_back(self) -> None:
        """How strong the best way to the target can be from everybody within so many hops of it."""
        self._left = [{self._target: 1.0}]
        for _ in range(min(LOOK_BACK, self._depth - 1)):
            before = self._left[-1]
            steps, _ = neighbors.hop(self._connection, before, self._rules)
            self._left.append({**before, **{step.there: max(best, before.get(step.there, 0.0)) for step, best in steps}})

    def _still(self, entity: int, hops_left: int) -> float | None:
        """What the rest of a way costs at least; None where none arrives with so many hops."""
        if hops_left >= len(self._left):
            return 0.0
        best = self._left[hops_left].get(entity, 0.0)
        return -math.log(best) if best > 0 else None

    def _from(self, here: int, line: Sequence[Way]) -> list[Step]:
        """The steps from an entity; those of the next in line are fetched with it."""
        if here not in self._steps:
            coming = {here, *(entity for _, _, _, entity, _ in line[:_BATCH] if entity not in self._steps)}
            self._steps |= {entity: [] for entity in coming}
            for step in neighbors.steps_from(self._connection, coming, self._rules):
                self._steps[step.here].append(step)
        return self._steps[here]
