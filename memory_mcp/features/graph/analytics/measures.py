"""Measures of a whole graph by rustworkx: centralities, statistics, communities (by graspologic's Leiden algorithm); and its growth.

The libraries are imported by a measure only: the server itself never loads them.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal, get_args
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from memory_mcp.extras import require
from memory_mcp.store.graph.network import Network, Scores

if TYPE_CHECKING:  # a worker imports this module to start, and importing overview takes 0.2 s
    from memory_mcp.store.graph.overview import CreationTimes

Interval = Literal["month", "day", "week", "year"]
INTERVALS: tuple[Interval, ...] = get_args(Interval)

# Shortest paths between all entities take time in proportion to the square of their number: above this, those with the most relations are
# taken.
PATHS_LIMIT = 1_000
_DAMPING, _TOLERANCE, _ROUNDS = 0.85, 1e-8, 10_000
_SEED = 1
# The randomness of steps without gain (Traag, Waltman and van Eck 2019 use a value as small).
_RANDOMNESS = 0.001


def _graph(network: Network) -> tuple[Any, Any]:
    """The library rustworkx, and the network as its PyGraph, whose nodes are the indexes of the entities."""
    require("graph", "the graph can't be analyzed")
    import rustworkx  # noqa: PLC0415  the start of the server does without it

    graph = rustworkx.PyGraph(multigraph=False)
    graph.add_nodes_from(range(len(network.ids)))
    graph.extend_from_weighted_edge_list(list(network.edges()))
    return rustworkx, graph


def _scores(by_index: Mapping[int, float]) -> Scores:
    return np.array([by_index[index] for index in range(len(by_index))], dtype=np.float64)


def degree(network: Network) -> Scores:
    """The number of neighbors of each entity, (n,)."""
    ends = np.concatenate([network.one, network.other])
    return np.bincount(ends, minlength=len(network.ids)).astype(np.float64)


def pagerank(network: Network) -> Scores:
    """PageRank with weights and a damping of 0.85 (Page and Brin 1998); sums to 1, (n,)."""
    rustworkx, graph = _graph(network)
    return _scores(rustworkx.pagerank(graph.to_directed(), alpha=_DAMPING, weight_fn=float, tol=_TOLERANCE, max_iter=_ROUNDS))


def eigenvector(network: Network) -> Scores:
    """Eigenvector centrality (Bonacich 1972); the squares sum to 1, (n,)."""
    rustworkx, graph = _graph(network)
    if not len(network.one):
        return np.zeros(len(network.ids))
    return _scores(rustworkx.eigenvector_centrality(graph, weight_fn=float, tol=_TOLERANCE, max_iter=_ROUNDS))


@dataclass(frozen=True, slots=True)
class Paths:
    """`betweenness`: for each entity the share of the shortest paths between two others through it, 0 to 1, (n,). `mean_distance`: in hops,
    between connected entities; None where there are none. Of a large graph only `sampled` entities and the paths between them count."""

    betweenness: Scores
    mean_distance: float | None
    sampled: int | None = None


def paths(network: Network, limit: int = PATHS_LIMIT) -> Paths:
    """By shortest paths in hops, without regard to weights."""
    (rustworkx, graph), n = _graph(network), len(network.ids)
    best = np.sort(np.argsort(-degree(network), kind="stable")[:limit])
    if len(best) < n:
        graph = graph.subgraph(best.tolist())
    scores = np.zeros(n)
    scores[best] = _scores(rustworkx.betweenness_centrality(graph)) if n else 0.0
    mean = rustworkx.unweighted_average_shortest_path_length(graph, disconnected=True) if graph.num_edges() else None
    return Paths(scores, mean, len(best) if len(best) < n else None)


MEASURES: dict[str, Callable[[Network], Scores | Paths]] = {
    "pagerank": pagerank,
    "degree": degree,
    "eigenvector": eigenvector,
    "betweenness": paths,
}


@dataclass(frozen=True, slots=True)
class Statistics:
    """`pairs`: of related entities. `density`: their share of all pairs, 0 to 1. `components`: connected components; `largest_component`
    and `isolated` count entities. `clustering`: the share of pairs with a common neighbor that are related, 0 to 1. The mean distance:
    see `paths`.
    """

    entities: int
    relations: int
    pairs: int
    density: float
    components: int
    largest_component: int
    isolated: int
    mean_degree: float
    clustering: float


def statistics(network: Network) -> Statistics:
    """Computes all of them."""
    (rustworkx, graph), n, pairs = _graph(network), len(network.ids), len(network.one)
    sizes = [len(component) for component in rustworkx.connected_components(graph)]
    return Statistics(
        entities=n,
        relations=network.relations,
        pairs=pairs,
        density=2 * pairs / (n * (n - 1)) if n > 1 else 0.0,
        components=len(sizes),
        largest_component=max(sizes, default=0),
        isolated=sizes.count(1),
        mean_degree=2 * pairs / n if n else 0.0,
        clustering=rustworkx.transitivity(graph) if pairs else 0.0,
    )


@dataclass(frozen=True, slots=True)
class Communities:
    """`groups`: groups of two or more entities, as indexes into the network's `ids`, the one with the most weight within the group
    first; the largest group first. `modularity`: the share of weight within groups beyond the expected one, below 1.
    """

    groups: tuple[NDArray[np.int64], ...]
    modularity: float


def communities(network: Network) -> Communities:
    """The groups by the Leiden algorithm; deterministic for a network."""
    require("graph", "the graph can't be analyzed")
    from graspologic_native import leiden  # noqa: PLC0415  the start of the server does without it

    if not len(network.one):
        return Communities((), 0.0)
    modularity, group_of = leiden(
        edges=[(str(source), str(target), weight) for source, target, weight in network.edges()],
        starting_communities=None,
        resolution=1.0,
        randomness=_RANDOMNESS,
        iterations=1,
        use_modularity=True,
        seed=_SEED,
        trials=1,
    )
    group = np.full(len(network.ids), -1, dtype=np.int64)
    group[[int(index) for index in group_of]] = list(group_of.values())
    within = np.where(group[network.one] == group[network.other], network.weight, 0)
    weight = np.bincount(network.one, within, len(group)) + np.bincount(network.other, within, len(group))
    # By group, then by weight, then by age.
    order = np.lexsort((np.arange(len(group)), -weight, group))
    order = order[group[order] >= 0]
    groups = np.split(order, np.flatnonzero(np.diff(group[order])) + 1)
    return Communities(
        tuple(sorted((members for members in groups if len(members) > 1), key=lambda members: (-len(members), members[0]))), modularity
    )


def growth(came: "CreationTimes", interval: Interval, zone: ZoneInfo, limit: int) -> tuple[list[dict[str, Any]], int]:
    """The latest `limit` intervals with anything new, the earliest first, and the number of earlier ones. Days are local. Of each the day on
    which it begins, its new entities and relations, and the totals at its end.
    """
    entities, relations = (_counted(dates, interval, zone) for dates in (came.entities, came.relations))
    steps, entities_in_all, relations_in_all = [], 0, 0
    for begins in sorted({*entities, *relations}):
        entities_in_all += entities[begins]
        relations_in_all += relations[begins]
        new = {"begins": begins.isoformat(), "entities": entities[begins], "relations": relations[begins]}
        steps.append({**new, "entities_in_all": entities_in_all, "relations_in_all": relations_in_all})
    return steps[-limit:], max(len(steps) - limit, 0)


def _counted(dates: Iterable[tuple[datetime, int]], interval: Interval, zone: ZoneInfo) -> Counter[date]:
    counted: Counter[date] = Counter()
    for moment, count in dates:
        try:
            day = moment.astimezone(zone).date()
        except OverflowError:  # the first day of the first year, or the last of the last
            day = moment.date()
        counted[_begin(day, interval)] += count
    return counted


def _begin(day: date, interval: Interval) -> date:
    match interval:
        case "day":
            return day
        case "week":
            return day - timedelta(days=day.weekday())
        case "month":
            return day.replace(day=1)
        case "year":
            return day.replace(month=1, day=1)
