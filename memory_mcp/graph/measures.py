"""How much each entity counts: by how many it is related to, by whom, and by what leads over it."""

from collections.abc import Callable

import numpy as np

from memory_mcp.graph.deadline import Deadline
from memory_mcp.graph.waves import Between, adjacency, between
from memory_mcp.store.graph.network import Network, Scores

_TOLERANCE = 1e-8


def degree(network: Network, _deadline: Deadline) -> Scores:
    """To how many others each is related, (n,)."""
    ends = np.concatenate([network.one, network.other])
    return np.bincount(ends, minlength=len(network.ids)).astype(np.float64)


def pagerank(network: Network, _deadline: Deadline) -> Scores:
    """How often one comes to each who walks from one to another along the relations, the heavier the likelier, and begins anew every
    seventh step or so (Page and Brin 1998); sums to 1, (n,)."""
    import rustworkx  # noqa: PLC0415  the start of the server does without it

    if not len(network.ids):
        return np.zeros(0)
    graph = rustworkx.PyGraph()
    graph.add_nodes_from(range(len(network.ids)))
    graph.extend_from_weighted_edge_list(list(network.edges()))
    found = rustworkx.pagerank(graph.to_directed(), weight_fn=float)
    return np.array([found[place] for place in range(len(network.ids))])


def eigenvector(network: Network, deadline: Deadline) -> Scores:
    """How much each counts where it counts to be related to who counts (Bonacich 1972); the squares sum to 1, (n,). Each step of the
    power method adds what one had before, so that it comes to rest in a graph of two sides, too."""
    if not len(network.one):
        return np.zeros(len(network.ids))
    near = adjacency(network, weighted=True)
    before, found = np.zeros(len(network.ids)), np.full(len(network.ids), 1 / np.sqrt(len(network.ids)))
    while np.abs(found - before).sum() > _TOLERANCE * len(found):
        deadline.check()
        before = found
        found = near @ before + before
        found /= np.linalg.norm(found)
    return found


MEASURES: dict[str, Callable[[Network, Deadline], Scores | Between]] = {
    "pagerank": pagerank,
    "degree": degree,
    "eigenvector": eigenvector,
    "betweenness": between,
}
