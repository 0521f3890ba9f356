"""Shortest ways from some entities to all others: who lies between how many, and how far apart they are on average.

Ways are counted in waves that run from many starts at once, as products of sparse matrices (Brandes 2001, and its sampling: Brandes and
Pich 2007): rustworkx's betweenness, which takes no sample, needs 25 s for 10,000 entities.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memory_mcp.store.graph.network import Network, Scores

# From so many starts the ways are looked at; where there are no more entities, from all.
STARTS_LIMIT = 256
_AT_ONCE = 32
_SEED = 0


@dataclass(frozen=True, slots=True)
class Between:
    """`betweenness`: for each entity the share of the shortest ways between two others that lead over it, 0 to 1, (n,). `mean_distance`
    is in hops, over those that a way leads to; None where there is none. `starts`: how many it was measured from."""

    betweenness: Scores
    mean_distance: float | None
    starts: int

    @property
    def nbytes(self) -> int:
        return self.betweenness.nbytes


def between(network: Network, starts_limit: int = STARTS_LIMIT) -> Between:
    """The shortest ways by hops, whatever the weights."""
    n = len(network.ids)
    starts = np.sort(np.random.default_rng(_SEED).choice(n, min(n, starts_limit), replace=False))
    near = adjacency(network, weighted=False)
    passed, hops, reached = np.zeros(n), 0.0, 0
    for begin in range(0, len(starts), _AT_ONCE):
        some = starts[begin : begin + _AT_ONCE]
        distance, ways = _out(near, some)
        passed += _back(near, some, distance, ways)
        hops += float(distance[distance > 0].sum())
        reached += int((distance > 0).sum())
    pairs = (n - 1) * (n - 2) * len(starts) / n if n > 2 else 1.0
    return Between(passed / pairs, hops / reached if reached else None, len(starts))


def adjacency(network: Network, *, weighted: bool) -> Any:
    """The symmetric matrix of who is related to whom, (n, n), scipy's csr_array."""
    from scipy.sparse import csr_array  # noqa: PLC0415  half a second that only analyses need

    n = len(network.ids)
    values = network.weight if weighted else np.ones(len(network.one))
    rows, columns = np.concatenate([network.one, network.other]), np.concatenate([network.other, network.one])
    return csr_array((np.concatenate([values, values]), (rows, columns)), shape=(n, n))


def _out(near: Any, starts: NDArray[Any]) -> tuple[NDArray[np.int32], Scores]:
    """From each of k starts: the distance of every entity in hops (−1: not reached) and the number of shortest ways to it, both (n, k)."""
    place = (starts, np.arange(len(starts)))
    distance = np.full((near.shape[0], len(starts)), -1, dtype=np.int32)
    ways = np.zeros(distance.shape)
    distance[place], ways[place] = 0, 1
    wave, hop = ways.copy(), 0
    while True:
        hop += 1
        wave = near @ wave
        wave[distance >= 0] = 0
        arrived = wave > 0
        if not arrived.any():
            return distance, ways
        distance[arrived] = hop
        ways += wave


def _back(near: Any, starts: NDArray[Any], distance: NDArray[np.int32], ways: Scores) -> Scores:
    """How many of the ways from the starts, each shared among the shortest, lead over every entity, (n,)."""
    passed = np.zeros(distance.shape)
    for hop in range(int(distance.max()), 0, -1):
        here = distance == hop
        share = np.where(here, (1 + passed) / np.where(here, ways, 1), 0)
        passed += np.where(distance == hop - 1, (near @ share) * ways, 0)
    passed[starts, np.arange(len(starts))] = 0
    total: Scores = passed.sum(axis=1)
    return total
