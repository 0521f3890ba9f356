"""Paths between two entities: the shortest, the strongest, or several."""

import heapq
import math
import time
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, Literal, get_args

import apsw

from memory_mcp.features.graph.views import counted, step_view, unread_note
from memory_mcp.server.views import omit_empty
from memory_mcp.store.graph import neighbors
from memory_mcp.store.graph.entities import records
from memory_mcp.store.graph.entities.lookup import find_all
from memory_mcp.store.graph.entities.records import Entity
from memory_mcp.store.graph.neighbors import HOPS_LIMIT, Rules, Step
from memory_mcp.store.graph.relations import validity
from memory_mcp.wording import clauses, sentence

Algorithm = Literal["shortest", "strongest", "all"]
ALGORITHMS: tuple[Algorithm, ...] = get_args(Algorithm)
PATHS_LIMIT = 10
# The limits of a search, in entities and seconds; the answer then has the paths results so far and is marked incomplete.
EXPANDED_LIMIT = 20_000
DEADLINE_SECONDS = 0.8
_BATCH = 64
# Hops around the target whose best paths to it are computed first, for all at once.
LOOK_BACK = 2
# The least cost of a path, its number, its cost so far, its last entity, and its steps.
PartialPath = tuple[float, int, float, int, "tuple[Step, ...]"]


def find_path(
    connection: apsw.Connection,
    source: str,
    target: str,
    algorithm: Algorithm = "shortest",
    max_depth: int = 4,
    types: Sequence[str] = (),
    min_confidence: float = 0.0,
) -> dict[str, Any]:
    """The view of the paths of at most `max_depth` hops between the entities of these names, the best first; of several with a name the one
    mentioned most. Only relations of these `types`, if given, and of at least this confidence are followed. `strength`: the product of the
    weights, 0 to 1. `namesakes`: others with one of the names. `note`: why there is no path, or that there may be more.

    Raises:
        EntityNotFound: no entity has the name.
    """
    (start, *start_namesakes), (end, *end_namesakes) = find_all(connection, source), find_all(connection, target)
    depth, rules = min(max_depth, HOPS_LIMIT), Rules(types, min_confidence)
    search = _Search(connection, end.id, depth, rules)
    if start.id == end.id:  # by two of its names
        results: list[tuple[Step, ...]] = [()]
    elif algorithm == "shortest":
        path = neighbors.shortest_path(connection, start.id, end.id, depth, rules)
        results = [] if path is None else [tuple(path)]
    elif algorithm == "strongest":
        results = search.strongest(start.id, 1)
    else:
        results = search.strongest(start.id, PATHS_LIMIT, simple=True)
    entity_ids = {entity for path in results for step in path for entity in (step.here, step.there)}
    named = {entity.id: entity.name for entity in (*records.by_ids(connection, entity_ids).values(), start, end)}
    note = None if results else _why_none(connection, (start, end), types, max_depth)
    namesakes = [{"id": entity.entity_id, "name": entity.name, "type": entity.type} for entity in (*start_namesakes, *end_namesakes)]
    return {
        "source": start.name,
        "target": end.name,
        "paths": [
            {
                "length": len(path),
                "strength": round(math.prod(step.weight for step in path), 4),
                "entities": [start.name, *(named[step.there] for step in path)],
                "steps": [f"{step_view(step, named)}{validity(step.valid_from, step.valid_to)}" for step in path],
            }
            for path in results
        ],
        **omit_empty(namesakes=namesakes, note="the search ended before it had seen all paths" if search.stopped else note),
    }


def _why_none(connection: apsw.Connection, ends: tuple[Entity, Entity], types: Sequence[str], max_depth: int) -> str:
    """Say why there is no path of so many hops along relations of these `types`, of any type if none is named."""
    there, from_target = (neighbors.types_at(connection, entity.id) for entity in ends)
    if alone := [entity.name for entity, known in zip(ends, (there, from_target), strict=True) if not known]:
        why = [sentence("{} has no relations yet" if len(alone) == 1 else "{} and {} have no relations yet", *alone)]
    else:
        along = sentence(" along relations of the type {}", " or ".join(types)[:200]) if types else ""
        none = "no path of at most {} hops leads from {} to {}{}" if max_depth > 1 else "no path of at most {} hop leads from {} to {}{}"
        why = [sentence(none, max_depth, ends[0].name, ends[1].name, along)]
        if max_depth < HOPS_LIMIT:
            why.append(sentence("a larger max_depth, up to {}, may find one", HOPS_LIMIT))
    if types and there:
        why.append(sentence("the relations of {} are of {}", ends[0].name, counted(there)))
    return clauses([*why, *filter(None, [unread_note(connection, types)])])


class _Search:
    """Best-first search, the strongest path first: Dijkstra on −log weight if one path to each entity is enough. Entities near the
    target are known beforehand, so that only last hops that can reach it are expanded (A*, Hart 1968).
    """

    def __init__(self, connection: apsw.Connection, target: int, depth: int, rules: Rules) -> None:
        self._connection, self._target, self._depth, self._rules = connection, target, depth, rules
        self._left: list[dict[int, float]] = []
        # By entity, the steps towards the target that were found from there: a hub's own steps are its strongest alone.
        self._towards: dict[int, dict[tuple[int, str], Step]] = defaultdict(dict)
        self._steps: dict[int, list[Step]] = {}
        self._ends_at = time.monotonic() + DEADLINE_SECONDS
        self.stopped = False

    def strongest(self, source: int, limit: int, *, simple: bool = False) -> list[tuple[Step, ...]]:
        """The strongest paths, at most `limit`. With `simple` all without repeated entities, else the best one to each entity."""
        self._search_backwards()
        results: list[tuple[Step, ...]] = []
        best: dict[tuple[int, int], float] = {}
        line: list[PartialPath] = [(0.0, 0, 0.0, source, ())]
        pushed = 0
        while line and len(results) < limit:
            if pushed > EXPANDED_LIMIT or time.monotonic() > self._ends_at:
                self.stopped = True
                break
            _, _, cost, here, path = heapq.heappop(line)
            if here == self._target and path:
                results.append(path)
                continue
            visited = {source, *(step.there for step in path)}
            for step in self._from(here, line):
                remaining = self._remaining_cost(step.there, self._depth - len(path) - 1)
                if step.there in visited or step.weight <= 0 or remaining is None:
                    continue
                further = cost - math.log(step.weight)
                state = (step.there, len(path) + 1)
                if not simple and further >= best.get(state, math.inf):
                    continue
                best[state] = further
                pushed += 1
                heapq.heappush(line, (further + remaining, pushed, further, step.there, (*path, step)))
        return results

    def _search_backwards(self) -> None:
        """Computes the strength of the best path to the target from all entities near it."""
        self._left = [{self._target: 1.0}]
        for _ in range(min(LOOK_BACK, self._depth - 1)):
            before = self._left[-1]
            steps, _ = neighbors.hop(self._connection, before, self._rules)
            for step, _ in steps:
                self._towards[step.there][step.here, step.type] = step
            self._left.append({**before, **{step.there: max(best, before.get(step.there, 0.0)) for step, best in steps}})

    def _remaining_cost(self, entity: int, hops_left: int) -> float | None:
        """The least cost of the rest of a path; None if the target is out of reach."""
        if hops_left >= len(self._left):
            return 0.0
        best = self._left[hops_left].get(entity, 0.0)
        return -math.log(best) if best > 0 else None

    def _from(self, here: int, line: Sequence[PartialPath]) -> list[Step]:
        """The steps from an entity; those of the next in line are fetched with it."""
        if here not in self._steps:
            coming = {here, *(entity for _, _, _, entity, _ in line[:_BATCH] if entity not in self._steps)}
            self._steps |= {entity: [] for entity in coming}
            for step in neighbors.steps_from(self._connection, coming, self._rules):
                self._steps[step.here].append(step)
            for entity in coming:
                known = {(step.there, step.type) for step in self._steps[entity]}
                self._steps[entity] += [step.turned() for end, step in self._towards[entity].items() if end not in known]
        return self._steps[here]
