"""Who belongs together: groups that are related more among themselves than to the rest."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memory_mcp.store.graph.network import Network

_SEED = 1
# How readily a step that gains nothing is taken (Traag, Waltman and van Eck 2019 use as little).
_RANDOMNESS = 0.001


@dataclass(frozen=True, slots=True)
class Communities:
    """`groups`: for each of two or more its entities, as places in the network's `ids`, the one with the most weight within it first;
    the largest group first. `modularity`: how much more weight is within groups than chance would put there, below 1."""

    groups: tuple[NDArray[np.int64], ...]
    modularity: float

    @property
    def nbytes(self) -> int:
        return sum(group.nbytes for group in self.groups)


def communities(network: Network) -> Communities:
    """The groups by the Leiden algorithm; the same network always has the same."""
    from graspologic_native import leiden  # noqa: PLC0415  the start of the server does without it

    if not len(network.one):
        return Communities((), 0.0)
    modularity, group_of = leiden(
        edges=[(str(one), str(other), weight) for one, other, weight in network.edges()],
        starting_communities=None,
        resolution=1.0,
        randomness=_RANDOMNESS,
        iterations=1,
        use_modularity=True,
        seed=_SEED,
        trials=1,
    )
    group = np.full(len(network.ids), -1, dtype=np.int64)
    group[[int(place) for place in group_of]] = list(group_of.values())
    within = np.where(group[network.one] == group[network.other], network.weight, 0)
    weight = np.bincount(network.one, within, len(group)) + np.bincount(network.other, within, len(group))
    # By group, then the heaviest first, then the one that has been known longest.
    order = np.lexsort((np.arange(len(group)), -weight, group))
    order = order[group[order] >= 0]
    groups = np.split(order, np.flatnonzero(np.diff(group[order])) + 1)
    return Communities(tuple(sorted((found for found in groups if len(found) > 1), key=lambda found: (-len(found), found[0]))), modularity)
