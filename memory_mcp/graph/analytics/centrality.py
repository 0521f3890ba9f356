"""Centrality of entities: degree, PageRank, eigenvector; betweenness has a module of its own."""

from collections.abc import Callable

import numpy as np

from memory_mcp.graph.analytics.betweenness import Between, adjacency, between
from memory_mcp.store.graph.network import Network, Scores

_TOLERANCE = 1e-8
_DAMPING = 0.85


def degree(network: Network) -> Scores:
    """The number of neighbors of each entity, (n,)."""
    ends = np.concatenate([network.one, network.other])
    return np.bincount(ends, minlength=len(network.ids)).astype(np.float64)


def pagerank(network: Network) -> Scores:
    """PageRank with weights and a damping of 0.85 (Page and Brin 1998); sums to 1, (n,). By the power method; an entity without relations leads
    to all."""
    n = len(network.ids)
    if not n:
        return np.zeros(0)
    near = adjacency(network, weighted=True)
    weight = near.sum(axis=1)
    alone = weight == 0

    def step(before: Scores) -> Scores:
        walked: Scores = near @ np.divide(before, weight, out=np.zeros(n), where=~alone) + before[alone].sum() / n
        return _DAMPING * walked + (1 - _DAMPING) / n

    return _converged(step, np.full(n, 1 / n), _TOLERANCE)


def eigenvector(network: Network) -> Scores:
    """Eigenvector centrality (Bonacich 1972); the squares sum to 1, (n,). Each step of the power method adds the previous vector, so that it
    converges on bipartite graphs too."""
    n = len(network.ids)
    if not len(network.one):
        return np.zeros(n)
    near = adjacency(network, weighted=True)

    def step(before: Scores) -> Scores:
        scores: Scores = near @ before + before
        return scores / np.linalg.norm(scores)

    return _converged(step, np.full(n, 1 / np.sqrt(n)), _TOLERANCE * n)


def _converged(step: Callable[[Scores], Scores], scores: Scores, tolerance: float) -> Scores:
    """The scores that a step changes by no more than `tolerance` in sum."""
    before = np.zeros_like(scores)
    while np.abs(scores - before).sum() > tolerance:
        before, scores = scores, step(scores)
    return scores


MEASURES: dict[str, Callable[[Network], Scores | Between]] = {
    "pagerank": pagerank,
    "degree": degree,
    "eigenvector": eigenvector,
    "betweenness": between,
}
