"""One answer out of a persona's store and the pools that it reads: each store is searched by itself, and what they found is ranked together.

No store is asked on behalf of another, and nothing that a pool says is kept. The memories of the stores have the same numbers: until the answer is
made, those of the second are moved by one `STORE`, and so on.
"""

import logging
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain
from typing import TypeVar

import apsw

from memory_mcp.config.settings import Settings
from memory_mcp.domain import Candidate, Hit, Memory, Question, Recalled
from memory_mcp.encoders.models import Models
from memory_mcp.encoders.worker_pool import on_behalf_of
from memory_mcp.errors import Overloaded, StoreError
from memory_mcp.language.synonyms import synonyms
from memory_mcp.personas.names import key_in, pool_of
from memory_mcp.personas.registry import Persona
from memory_mcp.search import pipeline
from memory_mcp.search.candidates import search_tokens
from memory_mcp.search.fuse import Hints, fuse
from memory_mcp.search.pipeline import Found
from memory_mcp.search.ranking import POOL_FACTOR, Ranked, all_are_hits, by_time, dense_weight, weights_of
from memory_mcp.search.reading import statement_of
from memory_mcp.search.support import supported
from memory_mcp.search.time_asked import TimeAsked
from memory_mcp.store import memories
from memory_mcp.store.lexical import bm25_index
from memory_mcp.store.vectors.index_cache import IndexCache

STORE = 1 << 48

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


def recall(
    persona: Persona,
    question: Question,
    pools: Pools = NO_POOLS,
    *,
    models: Models,
    settings: Settings,
    now: datetime,
    indexes: IndexCache | None = None,
    deadline: float | None = None,
) -> Recalled:
    """The memories of this persona and its pools that answer the question best; without pools what `pipeline.recall` answers."""
    if not pools:
        return pipeline.recall(persona, question, models=models, settings=settings, now=now, indexes=indexes, deadline=deadline)
    stores = _Stores(persona, pools)
    if question.keys:
        return stores.shown(_fetched(stores, question))
    question, asked = pipeline.with_time(question, now, settings)
    if question.mode == "recent" and not question.query:
        return stores.shown(_latest(stores, question, asked, settings))

    def search(store: Persona) -> Found:
        return pipeline.search(
            store, stores.asked(store, question, now), asked, models=models, settings=settings, now=now, indexes=indexes, whole_pool=True
        )

    with on_behalf_of(persona.name):
        found = stores.each(search)
        joined = _joined(stores, found, question, asked, settings)
        recalled = pipeline.answer(question, joined, models, settings, deadline)
    return stores.shown(replace(recalled, degraded=tuple(dict.fromkeys([*recalled.degraded, *_degraded(found, joined)]))))


def latest_of_pools(persona: Persona, pools: Pools, latest: Callable[[apsw.Connection], Sequence[Memory]]) -> list[Hit]:
    """The memories that `latest` reads from each pool, the latest first."""
    stores = _Stores(persona, pools)

    def read(store: Persona) -> Sequence[Memory]:
        if not pool_of(store.name):
            return ()
        with store.database.read_briefly() as connection:
            return latest(connection)

    found = [(pool_of(stores[number].name), memory) for number, newest in stores.each(read).items() for memory in newest]
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


class _Stores:
    """The stores of one answer by their number, 0 the persona's own; pools that fail meanwhile become unavailable."""

    def __init__(self, persona: Persona, pools: Pools) -> None:
        self._all = dict(enumerate((persona, *pools.stores)))
        self._unavailable = list(pools.unavailable)

    def __getitem__(self, number: int) -> Persona:
        return self._all[number]

    def each(self, work: Callable[[Persona], T]) -> dict[int, T]:
        """The results of this for every store. A pool that can't be read takes nothing from the answer of the others."""
        results = {}
        for number, store in list(self._all.items()):
            try:
                results[number] = work(store)
            except (StoreError, Overloaded) as error:
                if not number:
                    raise
                logger.warning("the pool %s can't be read: %s", pool_of(store.name), error)
                self._unavailable.append(pool_of(store.name))
                del self._all[number]
        return results

    def asked(self, store: Persona, question: Question, now: datetime) -> Question:
        """The question for one store: without what has expired, where that can't be moved to the trash."""
        return replace(question, filters=replace(question.filters, unexpired_at=now)) if store.has_expired else question

    def moved(self, number: int, memory: Memory) -> Memory:
        """A memory by its number in the answer, and by the keys that a persona uses."""
        if not number:
            return memory
        return replace(in_pool(pool_of(self[number].name), memory), id=memory.id + number * STORE)

    def shown(self, recalled: Recalled) -> Recalled:
        """The answer with the numbers that the memories have in their stores."""
        missing = Pools(unavailable=tuple(self._unavailable)).degraded
        return replace(recalled, hits=tuple(map(self._shown, recalled.hits)), degraded=(*recalled.degraded, *missing))

    def _shown(self, hit: Hit) -> Hit:
        number, memory_id = divmod(hit.memory.id, STORE)
        return replace(hit, memory=replace(hit.memory, id=memory_id), pool=pool_of(self[number].name)) if number else hit


def _fetched(stores: _Stores, question: Question) -> Recalled:
    """The memories with these keys: the persona's own, else those that name their pool."""

    def fetched(store: Persona) -> dict[str, Memory]:
        pool = pool_of(store.name)
        wanted = {key.removesuffix(key_in(pool, "")): key for key in question.keys if key.endswith(key_in(pool, ""))} if pool else None
        with store.database.read_briefly() as connection:
            found = memories.by_keys(connection, list(question.keys if wanted is None else wanted))
        return {wanted[key]: memory for key, memory in found.items()} if wanted is not None else found

    by_store = stores.each(fetched)
    by_key = {key: stores.moved(number, memory) for number in sorted(by_store, reverse=True) for key, memory in by_store[number].items()}
    return pipeline.fetched(question, by_key)


def _latest(stores: _Stores, question: Question, asked: TimeAsked, settings: Settings) -> Recalled:
    newest = stores.each(lambda store: pipeline.latest(store, question, asked, settings))
    moved = [stores.moved(number, memory) for number, of_store in newest.items() for memory in of_store]
    moved.sort(key=lambda memory: memory.told_at, reverse=True)
    return pipeline.recent(question, pipeline.in_order(stores[0], moved, asked, settings)[: question.top_k + 1])


def _joined(stores: _Stores, found: Mapping[int, Found], question: Question, asked: TimeAsked, settings: Settings) -> Found:
    """What all stores found as if it were of one, in one order: every score is computed anew, among all candidates."""
    lead = _lead(found)
    _rescale_words(stores, found, replace(question, query=asked.words))
    for number, of_store in found.items():
        is_comparable = of_store.meaning.generation == lead.meaning.generation
        for candidate in of_store.ranked.candidates:
            _move(candidate, number * STORE, is_comparable=is_comparable)
    ranked = [(number, of_store.ranked) for number, of_store in found.items()]
    hints = _joined_hints([_moved_hints(of_store.hints, number) for number, of_store in ranked])
    weight = dense_weight(question, lead.meaning, settings)
    candidates = list(chain.from_iterable(of_store.candidates for _, of_store in ranked))
    ordered = fuse(candidates, weights_of(question, settings), hints, dense_weight=weight)
    if not all_are_hits(question):
        certain = {memory_id + number * STORE for number, of_store in ranked for memory_id in of_store.certain}
        are_small = all(of_store.in_small_store for _, of_store in ranked)
        ordered = supported(ordered, hints.questions, certain, in_small_store=are_small, are_apart=lead.meaning.centers is not None)
    if question.mode == "recent":
        ordered.sort(key=by_time(hints, asked))
    return replace(lead, ranked=_joined_ranked(stores, ranked, ordered, hints, question))


def _joined_ranked(
    stores: _Stores, ranked: Sequence[tuple[int, Ranked]], ordered: Sequence[Candidate], hints: Hints, question: Question
) -> Ranked:
    read = {
        memory_id + number * STORE: stores.moved(number, memory)
        for number, of_store in ranked
        for memory_id, memory in of_store.memories.items()
    }
    pool = [candidate for candidate in ordered if candidate.memory_id in read][: question.top_k * POOL_FACTOR]
    among = {candidate.memory_id for candidate in pool}
    return Ranked(
        [*pool, *(candidate for candidate in ordered if candidate.memory_id not in among)],
        pool,
        read,
        {memory_id: statement_of(memory) for memory_id, memory in read.items()},
        dict(chain.from_iterable(_moved(of_store.confirmations, number * STORE).items() for number, of_store in ranked)),
        {chunk + number * STORE: span for number, of_store in ranked for chunk, span in of_store.spans.items()},
        sum(of_store.index_lag for _, of_store in ranked),
        hints,
        relations=tuple(chain.from_iterable(_relations(stores[number], of_store) for number, of_store in ranked)),
        unmatched=tuple(word for word in ranked[0][1].unmatched if all(word in of_store.unmatched for _, of_store in ranked)),
    )


def _relations(store: Persona, ranked: Ranked) -> Iterator[str]:
    pool = pool_of(store.name)
    return (key_in(pool, f"{line} ") if pool else line for line in ranked.relations)


def _lead(found: Mapping[int, Found]) -> Found:
    """The first store whose vectors were searched: its model names the pipeline that ran, and is what the others are compared by."""
    lead = next((of_store for of_store in found.values() if of_store.meaning.index), found[0])
    by_meaning = next((of_store.by_meaning for of_store in found.values() if of_store.by_meaning.entities), lead.by_meaning)
    return replace(lead, by_meaning=by_meaning)


def _degraded(found: Mapping[int, Found], lead: Found) -> Iterator[str]:
    """Why the vectors of a store were not searched, or are of another model than the others' or than the configured one."""
    for of_store in found.values():
        if of_store.meaning.index and of_store.meaning.replaced:
            yield of_store.meaning.replaced.reason
        if of_store.meaning.skipped and of_store.ranked.candidates:
            yield of_store.meaning.skipped
        elif of_store.meaning.index and of_store.meaning.generation != lead.meaning.generation:
            yield "reembedding"


def _rescale_words(stores: _Stores, found: Mapping[int, Found], question: Question) -> None:
    """Brings the BM25 scores of all stores to one scale. A word counts by how rare it is in its store: in a pool of ten memories none is rare, and
    the best match would lose against any of a large store. So each score is multiplied by what the words that the memory has say among all
    memories, as a ratio to what they say in its store."""
    beside_vectors = any(of_store.meaning.index is not None for of_store in found.values())
    query = search_tokens(question, synonyms(question.query), beside_vectors=beside_vectors)
    if not query:
        return
    counted, words = {}, {}
    for number, of_store in found.items():
        with stores[number].database.read_briefly() as connection:
            counted[number] = bm25_index.frequencies(connection, query)
            scored = [candidate.memory_id for candidate in of_store.ranked.candidates if candidate.lexical]
            words[number] = bm25_index.matched(connection, query, scored)
    rows = sum(of_store for of_store, _ in counted.values())
    together = {token: _information(rows, sum(counts[token] for _, counts in counted.values())) for token in set(query)}
    for number, (own_rows, counts) in counted.items():
        own = {token: _information(own_rows, count) for token, count in counts.items()}
        for candidate in found[number].ranked.candidates:
            has = words[number].get(candidate.memory_id)
            if has and candidate.lexical:
                candidate.lexical *= sum(map(together.__getitem__, has)) / sum(map(own.__getitem__, has))


def _information(rows: int, count: int) -> float:
    """What FTS5's BM25 weighs a word by that is in `count` of `rows` rows."""
    return max(math.log((rows - count + 0.5) / (count + 0.5)) if count < rows else 0.0, 1e-6)


def _move(candidate: Candidate, offset: int, *, is_comparable: bool) -> None:
    """Gives a candidate its number in the answer, and takes the scores of another model away."""
    candidate.memory_id += offset
    if candidate.best_chunk is not None:
        candidate.best_chunk += offset
    if not is_comparable:
        candidate.dense = candidate.nearness = candidate.vector = None


def _moved_hints(hints: Hints, number: int) -> Hints:
    if not number:
        return hints
    offset = number * STORE
    return replace(
        hints,
        # Sessions of different stores have nothing to do with each other, whatever their names.
        origins={
            memory_id + offset: origin._replace(session_id=origin.session_id and f"{number} {origin.session_id}")
            for memory_id, origin in hints.origins.items()
        },
        times=_moved(hints.times, offset),
        graph=_moved(hints.graph, offset),
        freshness=_moved(hints.freshness, offset),
        judged=_moved(hints.judged, offset),
        questions={answer + offset: question + offset for answer, question in hints.questions.items()},
    )


def _moved(by_id: Mapping[int, T], offset: int) -> dict[int, T]:
    return {memory_id + offset: value for memory_id, value in by_id.items()}


def _joined_hints(hints: Sequence[Hints]) -> Hints:
    def together(part: Callable[[Hints], Mapping[int, T]]) -> dict[int, T]:
        return {memory_id: value for some in hints for memory_id, value in part(some).items()}

    return Hints(
        hints[0].dates,
        {speaker for some in hints for speaker in some.speakers},
        together(lambda some: some.origins),
        frozenset(chain.from_iterable(some.assistants for some in hints)),
        times=together(lambda some: some.times),
        graph=together(lambda some: some.graph),
        freshness=together(lambda some: some.freshness),
        judged=together(lambda some: some.judged),
        questions=together(lambda some: some.questions),
        are_apart=any(some.are_apart for some in hints),
        is_recent=hints[0].is_recent,
    )
