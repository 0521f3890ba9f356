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
_PRESENT = "SELECT group_concat(id, ' ') FROM entities WHERE merged_into IS NULL AND (extraction_count > 0 OR made_by <> 'text')"
_RELATIONS = "SELECT group_concat(source || ' ' || target || ' ' || weight, ' ') FROM relations WHERE weight > 0 AND weight >= ?"
_ENDS = "SELECT group_concat(source || ' ' || target, ' ') FROM relations"


def read(connection: apsw.Connection, min_weight: float = 0.0) -> Network:
    """The graph as it is now. Relations lighter than `min_weight` are left out; their ends stay."""
    told = _numbers(connection.execute(_RELATIONS, (min_weight,)).get).reshape(-1, 3)
    present, ends = (_numbers(connection.execute(sql).get).astype(np.int64) for sql in (_PRESENT, _ENDS))
    ids = np.unique(np.concatenate([present, ends]))
    places = np.searchsorted(ids, told[:, :2].astype(np.int64))
    low, high = places.min(axis=1, initial=len(ids)), places.max(axis=1, initial=0)
    pairs, which = np.unique(low * max(len(ids), 1) + high, return_inverse=True)
    unsaid = np.bincount(which, np.log1p(-np.minimum(told[:, 2], _NEARLY_CERTAIN)), len(pairs))
    one, other = np.divmod(pairs, max(len(ids), 1))
    return Network(ids, one, other, -np.expm1(unsaid), relations=len(told))


def _numbers(text: str | None) -> Scores:
    return np.fromstring(text or "", sep=" ")
