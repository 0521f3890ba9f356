"""How much each entity counts: by how many it is related to, by whom, and by what leads over it."""

from collections.abc import Callable

import numpy as np

from memory_mcp.graph.analytics.betweenness import Between, adjacency, between
from memory_mcp.store.graph.network import Network, Scores

_TOLERANCE = 1e-8
_DAMPING = 0.85


def degree(network: Network) -> Scores:
    """To how many others each is related, (n,)."""
    ends = np.concatenate([network.one, network.other])
    return np.bincount(ends, minlength=len(network.ids)).astype(np.float64)


def pagerank(network: Network) -> Scores:
    """How often one comes to each who walks from one to another along the relations, the heavier the likelier, and begins anew every
    seventh step or so (Page and Brin 1998); sums to 1, (n,). By the power method; from whom nothing leads on, one walks to anybody."""
    n = len(network.ids)
    if not n:
        return np.zeros(0)
    near = adjacency(network, weighted=True)
    weight = near.sum(axis=1)
    alone = weight == 0

    def step(before: Scores) -> Scores:
        walked: Scores = near @ np.divide(before, weight, out=np.zeros(n), where=~alone) + before[alone].sum() / n
        return _DAMPING * walked + (1 - _DAMPING) / n

    return _at_rest(step, np.full(n, 1 / n), _TOLERANCE)


def eigenvector(network: Network) -> Scores:
    """How much each counts where it counts to be related to who counts (Bonacich 1972); the squares sum to 1, (n,). Each step of the
    power method adds what one had before, so that it comes to rest in a graph of two sides, too."""
    n = len(network.ids)
    if not len(network.one):
        return np.zeros(n)
    near = adjacency(network, weighted=True)

    def step(before: Scores) -> Scores:
        found: Scores = near @ before + before
        return found / np.linalg.norm(found)

    return _at_rest(step, np.full(n, 1 / np.sqrt(n)), _TOLERANCE * n)


def _at_rest(step: Callable[[Scores], Scores], found: Scores, tolerance: float) -> Scores:
    """What a step changes no more, all scores together, than by `tolerance`."""
    before = np.zeros_like(found)
    while np.abs(found - before).sum() > tolerance:
        before, found = found, step(found)
    return found


MEASURES: dict[str, Callable[[Network], Scores | Between]] = {
    "pagerank": pagerank,
    "degree": degree,
    "eigenvector": eigenvector,
    "betweenness": between,
}
