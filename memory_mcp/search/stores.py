"""The stores of one answer: a persona's own and the pools that it reads.

Each store is searched by itself, and the candidates of all of them are rows of one table. No store is asked on behalf of another,
and nothing that a pool says is kept.
"""

import logging
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TypeVar

import apsw
import numpy as np

from memory_mcp.domain import Hit, Memory, Question, Recalled
from memory_mcp.errors import Overloaded, StoreError
from memory_mcp.personas.names import key_in, pool_of
from memory_mcp.personas.registry import Persona
from memory_mcp.search.candidates import Candidates
from memory_mcp.store.lexical import bm25_index

logger = logging.getLogger(__name__)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Pools:
    """The open pools that a persona reads, and the names of those that can't be read now."""

    stores: tuple[Persona, ...] = ()
    unavailable: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.stores or self.unavailable)

    @property
    def degraded(self) -> list[str]:
        """What an answer says of those that can't be read."""
        return [f"pool_unavailable: {name}" for name in self.unavailable]


NO_POOLS = Pools()


class Stores:
    """The stores of one answer by their number, 0 the persona's own; pools that fail meanwhile become unavailable."""

    def __init__(self, persona: Persona, pools: Pools = NO_POOLS) -> None:
        self._all = dict(enumerate((persona, *pools.stores)))
        self._pools = ("", *(pool_of(store.name) for store in pools.stores))
        self._unavailable = list(pools.unavailable)

    def __getitem__(self, number: int) -> Persona:
        return self._all[number]

    def pool(self, number: int) -> str:
        """The pool of this number; empty for the persona's own store."""
        return self._pools[number]

    def each(self, work: Callable[[int], T], among: Collection[int] | None = None) -> dict[int, T]:
        """The results of this for every store, or those `among`. A pool that can't be read takes nothing from the answer of the others."""
        results = {}
        for number in [number for number in self._all if among is None or number in among]:
            try:
                results[number] = work(number)
            except (StoreError, Overloaded) as error:
                if not number:
                    raise
                logger.warning("the pool %s can't be read: %s", self._pools[number], error)
                self._unavailable.append(self._pools[number])
                del self._all[number]
        return results

    def question(self, number: int, question: Question, now: datetime) -> Question:
        """The question to one store: without what has expired, where that can't be moved to the trash."""
        return replace(question, filters=replace(question.filters, unexpired_at=now)) if self[number].has_expired else question

    def answered(self, recalled: Recalled) -> Recalled:
        """The answer, which names the pools that can't be read."""
        missing = Pools(unavailable=tuple(self._unavailable)).degraded
        return replace(recalled, degraded=(*recalled.degraded, *missing)) if missing else recalled


def latest_of_pools(persona: Persona, pools: Pools, latest: Callable[[apsw.Connection], Sequence[Memory]]) -> list[Hit]:
    """The memories that `latest` reads from each pool, the latest first."""
    stores = Stores(persona, pools)

    def read(number: int) -> Sequence[Memory]:
        if not number:
            return ()
        with stores[number].database.read_briefly() as connection:
            return latest(connection)

    found = [(stores.pool(number), memory) for number, newest in stores.each(read).items() for memory in newest]
    found.sort(key=lambda entry: entry[1].told_at, reverse=True)
    return [Hit(in_pool(pool, memory), 1.0, {}, memory.content, pool=pool) for pool, memory in found]


def in_pool(pool: str, memory: Memory) -> Memory:
    """A memory of a pool with the keys by which personas know it; one of no pool as it is."""
    if not pool:
        return memory
    earlier, later = memory.supersedes, memory.superseded_by
    return replace(
        memory,
        key=key_in(pool, memory.key),
        supersedes=key_in(pool, earlier) if earlier else None,
        superseded_by=key_in(pool, later) if later else None,
    )


def on_one_scale(stores: Stores, parts: Mapping[int, Candidates], query: Sequence[str]) -> dict[int, Candidates]:
    """The candidates with BM25 scores on one scale. A word counts by how rare it is in its store: in a pool of ten memories none is
    rare, and the best match would lose against any of a large store. So each score is multiplied by what the words of the `query`
    that the memory has say among all memories, as a ratio to what they say in its store."""
    if len(parts) == 1 or not query:
        return dict(parts)

    def counted(number: int) -> tuple[int, Mapping[str, int], Mapping[int, Sequence[str]]]:
        matching = [memory_id for (_, memory_id), bm25 in zip(parts[number].keys, parts[number].lexical, strict=True) if bm25]
        with stores[number].database.read_briefly() as connection:
            return *bm25_index.frequencies(connection, query), bm25_index.matched(connection, query, matching)

    found = stores.each(counted, parts.keys())
    rows = sum(of_store for of_store, _, _ in found.values())
    together = {token: _information(rows, sum(counts[token] for _, counts, _ in found.values())) for token in set(query)}
    return {
        number: replace(parts[number], lexical=parts[number].lexical * list(_ratios(parts[number], own_rows, counts, words, together)))
        for number, (own_rows, counts, words) in found.items()
    }


def _ratios(
    part: Candidates, rows: int, counts: Mapping[str, int], words: Mapping[int, Sequence[str]], together: Mapping[str, float]
) -> Iterator[float]:
    own = {token: _information(rows, count) for token, count in counts.items()}
    for _, memory_id in part.keys:
        has = words.get(memory_id)
        yield sum(map(together.__getitem__, has)) / sum(map(own.__getitem__, has)) if has else 1.0


def _information(rows: int, count: int) -> float:
    """What FTS5's BM25 weighs a word by that is in `count` of `rows` rows."""
    return max(math.log((rows - count + 0.5) / (count + 0.5)) if count < rows else 0.0, 1e-6)


def without_vectors(candidates: Candidates) -> Candidates:
    """The candidates without the cosines of another model, which can't be compared."""
    unknown = np.full(len(candidates), np.nan)
    return replace(candidates, dense=unknown, nearness=unknown)
