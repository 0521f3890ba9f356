"""How two entities hang together: the shortest way, the strongest, or several."""

import heapq
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import apsw

from memory_mcp.store.graph import entities, hops
from memory_mcp.store.graph.entities import Entity, known_as
from memory_mcp.store.graph.hops import Step

Algorithm = Literal["shortest", "strongest", "all"]
ALGORITHMS: tuple[Algorithm, ...] = get_args(Algorithm)
PATHS_LIMIT = 10
# A search looks at so many entities and so long at most; what it has found by then is the answer, and it says that it stopped.
EXPANDED_LIMIT = 20_000
DEADLINE_SECONDS = 0.8
_BATCH = 64


@dataclass(frozen=True, slots=True)
class Path:
    """The steps from one to the other. `strength` is the product of their weights, 0 to 1."""

    steps: tuple[Step, ...]

    @property
    def strength(self) -> float:
        return round(math.prod(step.weight for step in self.steps), 4)


@dataclass(frozen=True, slots=True)
class Paths:
    """Ways from `source` to `target`, the best first. `complete` is False where the search ended before it had seen all."""

    source: Entity
    target: Entity
    paths: tuple[Path, ...]
    named: dict[int, str]
    complete: bool = True


def find_path(
    connection: apsw.Connection,
    source: str,
    target: str,
    algorithm: Algorithm = "shortest",
    max_depth: int = 4,
    types: Sequence[str] = (),
    min_confidence: float = 0.0,
) -> Paths:
    """Ways of at most `max_depth` hops between the entities of these names.

    Raises:
        EntityNotFound: nobody is called so.
    """
    one, other = known_as(connection, source)[0], known_as(connection, target)[0]
    search = _Search(connection, other.id, min(max_depth, hops.HOPS_LIMIT), types, min_confidence)
    if algorithm == "shortest":
        way = hops.shortest_path(connection, one.id, other.id, search.depth, types, min_confidence)
        found = [] if way is None else [tuple(way)]
    elif algorithm == "strongest":
        found = search.strongest(one.id, 1)
    else:
        found = search.strongest(one.id, PATHS_LIMIT, simple=True)
    met = {end for way in found for step in way for end in (step.here, step.there)}
    named = {entity.id: entity.name for entity in (*entities.by_ids(connection, met).values(), one, other)}
    return Paths(one, other, tuple(Path(tuple(way)) for way in found), named, complete=not search.stopped)


class _Search:
    """Best-first over ways from the start, the strongest first: Dijkstra on −log weight where one way to each entity is enough."""

    def __init__(self, connection: apsw.Connection, target: int, depth: int, types: Sequence[str], min_confidence: float) -> None:
        self._connection, self._target, self.depth = connection, target, depth
        self._types, self._min_confidence = types, min_confidence
        self._steps: dict[int, list[Step]] = {}
        self._ends_at = time.monotonic() + DEADLINE_SECONDS
        self.stopped = False

    def strongest(self, source: int, limit: int, *, simple: bool = False) -> list[tuple[Step, ...]]:
        """The strongest ways, at most `limit`. With `simple` all that visit nobody twice are looked at, else the best to each entity."""
        found: list[tuple[Step, ...]] = []
        best: dict[tuple[int, int], float] = {}
        line: list[tuple[float, int, int, tuple[Step, ...]]] = [(0.0, 0, source, ())]
        pushed = 0
        while line and len(found) < limit:
            if pushed > EXPANDED_LIMIT or time.monotonic() > self._ends_at:
                self.stopped = True
                break
            cost, _, here, way = heapq.heappop(line)
            if here == self._target and way:
                found.append(way)
                continue
            if len(way) >= self.depth:
                continue
            visited = {source, *(step.there for step in way)}
            for step in self._from(here, line):
                if step.there in visited or step.weight <= 0:
                    continue
                further = cost - math.log(step.weight)
                place = (step.there, len(way) + 1)
                if not simple and further >= best.get(place, math.inf):
                    continue
                best[place] = further
                pushed += 1
                heapq.heappush(line, (further, pushed, step.there, (*way, step)))
        return found

    def _from(self, here: int, line: Sequence[tuple[float, int, int, tuple[Step, ...]]]) -> list[Step]:
        """The steps from an entity; those of the next in line are fetched with it."""
        if here not in self._steps:
            coming = {here, *(entity for _, _, entity, _ in line[:_BATCH] if entity not in self._steps)}
            self._steps |= {entity: [] for entity in coming}
            for step in hops.steps_from(self._connection, coming, self._types, self._min_confidence):
                self._steps[step.here].append(step)
        return self._steps[here]
