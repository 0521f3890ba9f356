"""Betweenness centrality and the mean distance, from the shortest paths between a sample of entities and all others.

Paths are counted by breadth-first search from many starts at once, as products of sparse matrices (Brandes 2001, and its sampling: Brandes and
Pich 2007): rustworkx's betweenness, which takes no sample, needs 25 s for 10,000 entities.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memory_mcp.extras import require
from memory_mcp.store.graph.network import Network, Scores

# Entities in the sample of starts; a smaller graph is computed exactly.
STARTS_LIMIT = 256
_AT_ONCE = 32
_SEED = 0


@dataclass(frozen=True, slots=True)
class Between:
    """`betweenness`: for each entity the share of the shortest paths between two others through it, 0 to 1, (n,). `mean_distance`: in hops,
    between connected entities; None where there are none. `starts`: the size of the sample."""

    betweenness: Scores
    mean_distance: float | None
    starts: int

    @property
    def nbytes(self) -> int:
        return self.betweenness.nbytes


def between(network: Network, starts_limit: int = STARTS_LIMIT) -> Between:
    """By shortest paths in hops, without regard to weights."""
    n = len(network.ids)
    starts = np.sort(np.random.default_rng(_SEED).choice(n, min(n, starts_limit), replace=False))
    near = adjacency(network, weighted=False)
    passed, hops, reached = np.zeros(n), 0.0, 0
    for begin in range(0, len(starts), _AT_ONCE):
        some = starts[begin : begin + _AT_ONCE]
        distance, paths = _out(near, some)
        passed += _back(near, some, distance, paths)
        hops += float(distance[distance > 0].sum())
        reached += int((distance > 0).sum())
    pairs = (n - 1) * (n - 2) * len(starts) / n if n > 2 else 1.0
    return Between(passed / pairs, hops / reached if reached else None, len(starts))


def adjacency(network: Network, *, weighted: bool) -> Any:
    """The symmetric adjacency matrix, (n, n), a csr_array of scipy."""
    require("graph", "the graph can't be analyzed")
    from scipy.sparse import csr_array  # noqa: PLC0415  half a second that only analyses need

    n = len(network.ids)
    values = network.weight if weighted else np.ones(len(network.one))
    rows, columns = np.concatenate([network.one, network.other]), np.concatenate([network.other, network.one])
    return csr_array((np.concatenate([values, values]), (rows, columns)), shape=(n, n))


def _out(near: Any, starts: NDArray[Any]) -> tuple[NDArray[np.int32], Scores]:
    """From each of k starts: the distance of every entity in hops (−1: not reached) and the number of shortest paths to it, both (n, k)."""
    at_start = (starts, np.arange(len(starts)))
    distance = np.full((near.shape[0], len(starts)), -1, dtype=np.int32)
    paths = np.zeros(distance.shape)
    distance[at_start], paths[at_start] = 0, 1
    frontier, hop = paths.copy(), 0
    while True:
        hop += 1
        frontier = near @ frontier
        frontier[distance >= 0] = 0
        arrived = frontier > 0
        if not arrived.any():
            return distance, paths
        distance[arrived] = hop
        paths += frontier


def _back(near: Any, starts: NDArray[Any], distance: NDArray[np.int32], paths: Scores) -> Scores:
    """The number of shortest paths from the starts through each entity, each divided among equals, (n,)."""
    passed = np.zeros(distance.shape)
    for hop in range(int(distance.max()), 0, -1):
        here = distance == hop
        share = np.where(here, (1 + passed) / np.where(here, paths, 1), 0)
        passed += np.where(distance == hop - 1, (near @ share) * paths, 0)
    passed[starts, np.arange(len(starts))] = 0
    total: Scores = passed.sum(axis=1)
    return total
