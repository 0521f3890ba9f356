"""Communities: groups of entities with more relations among themselves than with the rest."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memory_mcp.store.graph.network import Network

_SEED = 1
# The randomness of steps without gain (Traag, Waltman and van Eck 2019 use a value as small).
_RANDOMNESS = 0.001


@dataclass(frozen=True, slots=True)
class Communities:
    """`groups`: groups of two or more entities, as indexes into the network's `ids`, the one with the most weight within the group first; the
    largest group first. `modularity`: the share of weight within groups beyond the expected one, below 1."""

    groups: tuple[NDArray[np.int64], ...]
    modularity: float

    @property
    def nbytes(self) -> int:
        return sum(group.nbytes for group in self.groups)


def communities(network: Network) -> Communities:
    """The groups by the Leiden algorithm; deterministic for a network."""
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
