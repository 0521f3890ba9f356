"""The whole graph as arrays: its entities, and which pairs are related how strongly."""

from collections.abc import Iterator
from dataclasses import dataclass

import apsw
import numpy as np
from numpy.typing import NDArray

from memory_mcp.store.graph.visibility import MENTIONED_OR_BY_HAND

Numbers = NDArray[np.int64]
Scores = NDArray[np.float64]

# The highest weight of a relation: the logarithm of 0 is not finite.
_NEARLY_CERTAIN = 0.999
# Weights are read as integers, in this fraction of 1.
_PARTS = 10_000
_LOW_BITS = (1 << 31) - 1


@dataclass(frozen=True, slots=True)
class Network:
    """Entities and the related pairs of them, each pair once, whatever the direction and number of its relations.

    `ids`: the n ids of the entities, ascending. `one`, `other`: for each of m pairs, the indexes of both in `ids`, one < other. `weight`:
    (0, 1], several relations of a pair combined as independent evidence. `relations`: how many there are.
    """

    ids: Numbers
    one: Numbers
    other: Numbers
    weight: Scores
    relations: int = 0

    def edges(self) -> Iterator[tuple[int, int, float]]:
        """Each pair by its indexes, with its weight."""
        return zip(self.one.tolist(), self.other.tolist(), self.weight.tolist(), strict=True)


# One text each instead of many rows: between two rows, other threads take the interpreter lock, which takes long under load. Both ends in
# one number and integer weights are parsed ten times faster than fractions.
_PRESENT = f"SELECT group_concat(e.id, ' ') FROM entities e WHERE {MENTIONED_OR_BY_HAND}"
_ENDS = "SELECT group_concat((source << 31) + target, ' ') FROM relations"
_WEIGHTS = f"SELECT group_concat(CAST(round(weight * {_PARTS}) AS INTEGER), ' ') FROM relations"


def read(connection: apsw.Connection, min_weight: float = 0.0) -> Network:
    """The graph as it is now. Relations below `min_weight` are left out; their ends stay."""
    present, both, parts = (
        np.fromstring(connection.execute(sql).get or "", dtype=np.int64, sep=" ") for sql in (_PRESENT, _ENDS, _WEIGHTS)
    )
    ids = np.unique(np.concatenate([present, both >> 31, both & _LOW_BITS]))
    counted = (parts > 0) & (parts >= min_weight * _PARTS)
    source, target = np.searchsorted(ids, both[counted] >> 31), np.searchsorted(ids, both[counted] & _LOW_BITS)
    pairs, which = np.unique((np.minimum(source, target) << 31) + np.maximum(source, target), return_inverse=True)
    complement = np.bincount(which, np.log1p(-np.minimum(parts[counted] / _PARTS, _NEARLY_CERTAIN)), len(pairs))
    return Network(ids, pairs >> 31, pairs & _LOW_BITS, -np.expm1(complement), relations=int(counted.sum()))
