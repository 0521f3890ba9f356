"""The whole graph as arrays: who is in it, and which two are related how strongly."""

from collections.abc import Iterator
from dataclasses import dataclass

import apsw
import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]
Scores = NDArray[np.float64]

# More of one relation than this counts as all of it: the logarithm of nothing is no number.
_NEARLY_CERTAIN = 0.999
# Weights are kept to so many parts of one.
_PARTS = 10_000
_LOW_BITS = (1 << 31) - 1


@dataclass(frozen=True, slots=True)
class Network:
    """Entities and the pairs of them that are related, each pair once, whatever the direction and however many relations it has.

    `ids`: the entities' numbers, ascending, n of them. `one`, `other`: for each of m pairs the places of both in `ids`, one before
    other. `weight`: (0, 1], several relations of a pair taken together as independent evidence. `relations`: how many there are.
    """

    ids: Numbers
    one: Numbers
    other: Numbers
    weight: Scores
    relations: int = 0

    @property
    def nbytes(self) -> int:
        """What it takes of the memory, in bytes."""
        return self.ids.nbytes + self.one.nbytes + self.other.nbytes + self.weight.nbytes

    def edges(self) -> Iterator[tuple[int, int, float]]:
        """Each pair by places, with its weight."""
        return zip(self.one.tolist(), self.other.tolist(), self.weight.tolist(), strict=True)


# One long text each instead of many rows: between two rows other threads have their turn, and while many call, a turn takes long.
# Both ends in one number and weights as whole ones are read ten times faster than fractions.
_PRESENT = (
    "SELECT group_concat(e.id, ' ') FROM entities e WHERE e.merged_into IS NULL AND (e.extraction_count > 0 OR e.made_by <> 'text' "
    "OR EXISTS (SELECT 1 FROM entities g WHERE g.merged_into = e.id AND g.made_by <> 'text'))"
)
_ENDS = "SELECT group_concat((source << 31) + target, ' ') FROM relations"
_WEIGHTS = f"SELECT group_concat(CAST(round(weight * {_PARTS}) AS INTEGER), ' ') FROM relations"


def read(connection: apsw.Connection, min_weight: float = 0.0) -> Network:
    """The graph as it is now. Relations lighter than `min_weight` are left out; their ends stay."""
    present, both, parts = (_numbers(connection.execute(sql).get) for sql in (_PRESENT, _ENDS, _WEIGHTS))
    ids = np.unique(np.concatenate([present, both >> 31, both & _LOW_BITS]))
    counted = (parts > 0) & (parts >= min_weight * _PARTS)
    source, target = np.searchsorted(ids, both[counted] >> 31), np.searchsorted(ids, both[counted] & _LOW_BITS)
    pairs, which = np.unique((np.minimum(source, target) << 31) + np.maximum(source, target), return_inverse=True)
    unsaid = np.bincount(which, np.log1p(-np.minimum(parts[counted] / _PARTS, _NEARLY_CERTAIN)), len(pairs))
    return Network(ids, pairs >> 31, pairs & _LOW_BITS, -np.expm1(unsaid), relations=int(counted.sum()))


def _numbers(text: str | None) -> Numbers:
    return np.fromstring(text or "", dtype=np.int64, sep=" ")
