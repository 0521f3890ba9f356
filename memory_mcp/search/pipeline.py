"""A recall, from the question to the answer:

    parse the question → of each store: candidates → first order → what the graph associates with its best
    → all stores in one table: sort → read the best → rerank: one signal more, the head sorted again → page
    → before a hit what says that it no longer holds: a link `newer` (what a memory `supersedes` is never a hit)

Each store, the persona's own and the pools that it reads, is read in short snapshots: one for the candidates, one for the best of them, one
more for the entities of `mode=graph`, and one for how rare words are where there are several stores. No connection is held while a model
works.

The order is that of `signals.py`; only a reranker sorts again, and only the best. What is missing fails no recall; `degraded` names it (a model that
is null in config.json only where `mode` asks for it):

    no model, one that fails, or one that does not know the language   by words, names and dates: `mode` is `keyword`, unless it is `graph`
    a reranker that fails, or has no time                              the order and the scores before it; with little time it reads the first
                                                                       `top_k`, which stay before the rest, or parts of the texts
    a pool that can't be read                                          the other stores; without the persona's own store there is no answer
    a pool with vectors of another model                               its memories count by their words

A memory that is gone since the candidates were found is left out, and the next takes its place. Only the limit of `time_limit.py` ends a
recall, with SearchUnfinished: asked between the steps, and by SQLite within them.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import datetime

from memory_mcp import time_limit
from memory_mcp.config.settings import Settings
from memory_mcp.domain import Hit, Memory, Question, Recalled
from memory_mcp.encoders.models import Models
from memory_mcp.encoders.worker_pool import on_behalf_of
from memory_mcp.graph.query.entities_by_meaning import QUESTION_FLOOR, EntitiesByMeaning, entities_by_meaning
from memory_mcp.graph.query.retrieval import GraphEvidence, QueryEntities, entities_in_query, graph_evidence
from memory_mcp.language.budget import WINDOW_CHARACTERS, line_cost
from memory_mcp.personas.names import key_in
from memory_mcp.personas.registry import Persona
from memory_mcp.search.candidates import Assistants, Candidates, Search, from_sources, joined, near_in_graph, with_associated
from memory_mcp.search.confidence import confidence
from memory_mcp.search.meaning import Meaning, meaning_of
from memory_mcp.search.page import SPARE_FOR_REPEATED, Best, Floor, distinct, floor_for, read_best, with_newer, within_budget
from memory_mcp.search.question import ParsedQuestion, parsed_question
from memory_mcp.search.rerank import Reranked, passage, rerank, short_passage
from memory_mcp.search.signals import Order, Scored, contributions, in_order, why
from memory_mcp.search.stores import NO_POOLS, Pools, Stores, in_pool, on_one_scale, without_vectors
from memory_mcp.search.words import unmatched, unmatched_dates
from memory_mcp.store import memories
from memory_mcp.store.lexical import bm25_index
from memory_mcp.store.vectors import stored_vectors
from memory_mcp.store.vectors.index_cache import IndexCache

# Modes whose order a cross-encoder leaves alone: the time gives it, or the graph.
ORDER_IS_GIVEN = ("recent", "graph")


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
    """The memories of this persona and its pools that answer the question best. The `deadline`, in seconds of `time.monotonic`, is the
    reranker's alone: after it nothing is reranked; as it nears, fewer memories or only parts of them are read.

    Raises:
        StoreError: the persona's own store can't be read.
        SearchUnfinished: the search took too long, or its caller has gone.
    """
    stores = Stores(persona, pools)
    if question.keys:
        return stores.answered(_by_keys(stores, question))
    parsed = parsed_question(question, now, settings)
    if parsed.is_for_latest:
        return stores.answered(_latest_memories(stores, parsed))
    with on_behalf_of(persona.name) if models.loaded or models.reranker else nullcontext():
        by_store = stores.each(lambda number: _search_store(stores, number, parsed, models, indexes))
        reference = _reference_store(by_store)
        order = _order_of_all(stores, by_store, reference, parsed)
        may_rerank = models.reranker is not None and _may_be_reranked(parsed)
        best = read_best(stores, order, floor_for(settings, models, reference.meaning, reranked=False), with_whole_head=may_rerank)
        reranked = _reranked(order, best, models, deadline)
        if reranked.done:
            order = order.sorted_again(reranked.candidates)
        floor = floor_for(settings, models, reference.meaning, reranked=reranked.done)
        page = _page(stores, by_store, reference, order, best, floor, reranked)
        return stores.answered(with_newer(page, best.newer, parsed.question))


@dataclass(frozen=True, slots=True)
class _FoundInStore:
    """What one store has for a question. `order` is that of its candidates; None where the graph added rows or values, so that they are to
    be sorted again. A store that `is_small` has so few memories that one shared word makes a hit. `index_lag` counts the memories that wait
    for a vector, `relations` are those that the graph states of the entities in the query, `unmatched` the words that no memory has.
    """

    candidates: Candidates
    order: Order | None
    meaning: Meaning
    by_meaning: EntitiesByMeaning
    is_small: bool
    index_lag: int
    relations: Sequence[str]
    unmatched: Sequence[str]


# Candidates: those of one store, with the memories that the graph associates with the best of them.


def _search_store(stores: Stores, number: int, parsed: ParsedQuestion, models: Models, indexes: IndexCache | None) -> _FoundInStore:
    """The candidates of one store, in one snapshot, after the models are done. The graph is followed once, from the best of the first order,
    and what it leads to leads on to nothing."""
    persona, question = stores[number], stores.question(number, parsed.question, parsed.now)
    meaning = meaning_of(persona, question, models, indexes)
    named, by_meaning = _entities(persona, question, models) if question.mode == "graph" else (None, EntitiesByMeaning())
    with persona.database.read_briefly() as connection:
        search = Search(number, persona, connection, question, parsed, meaning)
        candidates = from_sources(search) if named is None else near_in_graph(search, named, by_meaning, lambda: _leading(search))
        is_small = len(candidates) < bm25_index.FEW_ROWS and bm25_index.is_small(connection)
        order = in_order(candidates, parsed, meaning, in_small_store=is_small)
        evidence = _associated(search, order, named)
        if evidence.memories:
            candidates = with_associated(search, candidates, evidence)
        return _FoundInStore(
            candidates,
            order=None if evidence.memories else order,
            meaning=meaning,
            by_meaning=by_meaning,
            is_small=is_small,
            index_lag=stored_vectors.waiting(connection, meaning.generation) if meaning.generation else 0,
            relations=evidence.relations,
            unmatched=_unmatched(search, candidates),
        )


def _entities(persona: Persona, question: Question, models: Models) -> tuple[QueryEntities, EntitiesByMeaning]:
    """The entities that a query of `mode=graph` names, else those that it means."""
    with persona.database.read() as connection:
        named = entities_in_query(connection, persona.names, question.query)
    return named, EntitiesByMeaning() if named.shares else entities_by_meaning(persona, question.query, models, QUESTION_FLOOR)


def _leading(search: Search) -> Sequence[tuple[int, float]]:
    """For `mode=graph`, where the query names no entity: the best that words, meaning and dates find, with their scores."""
    return in_order(from_sources(search), search.parsed, search.meaning, in_small_store=False).leading


def _associated(search: Search, order: Order, named: QueryEntities | None) -> GraphEvidence:
    """What the graph associates with the best candidates, and the relations that it states of the entities in the query. Nothing where its
    weight is 0, where the mode gives the order, and by meaning alone."""
    question, fusion = search.question, search.parsed.settings.fusion
    has_vectors = search.meaning.index is not None
    weight = fusion.graph_weight_dense if has_vectors else fusion.graph_weight
    follows_graph = bool(weight) and question.mode not in ORDER_IS_GIVEN and not (question.mode == "semantic" and has_vectors)
    return graph_evidence(
        search.connection,
        search.persona.names,
        question,
        order.leading if follows_graph else (),
        limit=search.limit if follows_graph else 0,
        # Filters do not apply to relations, so with a filter none is shown.
        with_relations=question.mode != "recent" and not question.filters,
        named=named,
    )


def _unmatched(search: Search, candidates: Candidates) -> tuple[str, ...]:
    """The words of the question that no memory has, and the dates of which there is none."""
    filters, time = search.question.filters, search.parsed.time
    # Where expired memories can't be moved to the trash, their words are still in the index.
    has_index = not (time.is_only_time or filters.unexpired_at)
    words = unmatched(search.connection, time.informative, search.in_other_scripts) if has_index else ()
    if time.dates and search.question.mode != "graph" and not filters and not candidates.dates.any():
        return (*unmatched_dates(search.connection, time.date_words), *words)
    return words


# Order: the candidates of all stores in one table.


def _order_of_all(stores: Stores, by_store: Mapping[int, _FoundInStore], reference: _FoundInStore, parsed: ParsedQuestion) -> Order:
    """The hits of all stores in one order: that of a single store, if the graph changed nothing there."""
    if reference.order and len(by_store) == 1:
        return reference.order
    are_small = all(each.is_small for each in by_store.values())
    return in_order(_together(stores, by_store, reference, parsed), parsed, reference.meaning, in_small_store=are_small)


def _together(stores: Stores, by_store: Mapping[int, _FoundInStore], reference: _FoundInStore, parsed: ParsedQuestion) -> Candidates:
    """The candidates of all stores as rows of one table, where they can be compared: without the vectors of another model than the
    reference's, and with each word as rare as it is in all stores together."""
    parts = {
        number: each.candidates if each.meaning.generation == reference.meaning.generation else without_vectors(each.candidates)
        for number, each in by_store.items()
    }
    if len(parts) > 1:
        beside_vectors = any(each.meaning.index is not None for each in by_store.values())
        parts = on_one_scale(stores, parts, parsed.terms(beside_vectors=beside_vectors).tokens)
    return joined(list(parts.values()))


def _reference_store(by_store: Mapping[int, _FoundInStore]) -> _FoundInStore:
    """The first store whose vectors were searched: its model names the pipeline that ran, and the vectors of others are compared with its
    own."""
    reference = next((each for each in by_store.values() if each.meaning.index), by_store[0])
    by_meaning = next((each.by_meaning for each in by_store.values() if each.by_meaning.entities), reference.by_meaning)
    return reference if by_meaning is reference.by_meaning else replace(reference, by_meaning=by_meaning)


# Answer: what is read of the best, and what of that is shown.


def _may_be_reranked(parsed: ParsedQuestion) -> bool:
    """False where the mode gives the order, or a cross-encoder has no weight."""
    return parsed.question.mode not in ORDER_IS_GIVEN and parsed.settings.fusion.rerank_weight > 0


def _reranked(order: Order, best: Best, models: Models, deadline: float | None) -> Reranked:
    """The candidates with the signal of the cross-encoder, if it may and can read the head of the order; else as they are, with the reason."""
    time_limit.check()
    parsed = order.scored.parsed
    if not _may_be_reranked(parsed):
        return Reranked(order.scored.candidates)
    if models.reranker is None:
        state = models.reranker_state.state
        return Reranked(order.scored.candidates, skipped=None if state == "off" else f"reranker_{state}")

    def passage_of(row: int) -> str:
        return passage(best.memories[row], lambda _: best.span_to_show(row, parsed.shown_words))

    def short_passage_of(row: int) -> str:
        return short_passage(best.memories[row], parsed.shown_words, best.span_to_show(row, parsed.shown_words))

    head = best.still_there(order.head)
    return rerank(order.scored, head, passage_of, short_passage_of, models.reranker, deadline)


def _page(
    stores: Stores,
    by_store: Mapping[int, _FoundInStore],
    reference: _FoundInStore,
    order: Order,
    best: Best,
    floor: Floor,
    reranked: Reranked,
) -> Recalled:
    """The answer: the hits that reach the floor and say different things, as many as `top_k` and the tokens allow, which relations use first.
    `more` counts the others that reach the floor, `unmatched` are the words that no store has."""
    question, meaning = order.scored.parsed.question, reference.meaning
    relations = tuple(
        key_in(name, f"{line} ") if (name := stores.pool(number)) else line for number, each in by_store.items() for line in each.relations
    )
    head = best.still_there(order.head)
    passing = floor.passing(order.scored, head)
    rows, repeated = distinct(passing, best.statements, question.top_k)
    hits = _hits(stores, order.scored, rows, best, question.max_tokens - sum(map(line_cost, relations)))
    lacking = (meaning.replaced.reason if meaning.replaced else None, meaning.skipped, reference.by_meaning.skipped, reranked.skipped)
    return Recalled(
        hits=hits,
        mode=_mode(question, meaning),
        reranked=reranked.done,
        degraded=tuple(dict.fromkeys(filter(None, (*lacking, *_degraded(by_store, reference))))),
        index_lag=sum(each.index_lag for each in by_store.values()),
        more=len(passing) - repeated + len(floor.passing(order.scored, order.rest)) - len(hits),
        relations=relations,
        unmatched=tuple(word for word in by_store[0].unmatched if all(word in each.unmatched for each in by_store.values())),
        meant=tuple((entity.name, near) for entity, near in reference.by_meaning.entities),
        best_score=round(float(floor.measure(order.scored)[head].max()), 4) if head and not hits else None,
        embedder=meaning.replaced.name if meaning.replaced and meaning.index else None,
        confidence=confidence(order.scored, rows, best),
    )


def _hits(stores: Stores, scored: Scored, rows: Sequence[int], best: Best, max_tokens: int) -> tuple[Hit, ...]:
    """As many of these rows as the tokens allow, each with its score and what the signals say of it."""
    question, shown = scored.parsed.question, [best.memories[row] for row in rows]
    explained = question.detail == "why"
    words = scored.parsed.shown_words if any(len(memory.content) > WINDOW_CHARACTERS for memory in shown) else ()
    by_key = {memory.key: row for memory, row in zip(shown, rows, strict=True)}
    hits = within_budget(
        list(zip(shown, scored.score[list(rows)].tolist(), why(scored, rows) if explained else [{}] * len(rows), strict=True)),
        question.detail,
        max_tokens,
        lambda memory: best.span_to_show(by_key[memory.key], words),
        words=words,
        confirmed={key: best.confirmations[row] for key, row in by_key.items()},
    )
    pools = (stores.pool(scored.candidates.keys[row][0]) for row in rows)
    of_rows = contributions(scored, rows) if explained else itertools.repeat({})
    return tuple(
        replace(hit, pool=pool, parts=of_row) if pool or of_row else hit for hit, pool, of_row in zip(hits, pools, of_rows, strict=False)
    )


def _mode(question: Question, meaning: Meaning) -> str:
    """The pipeline that ran, which may not be the requested one."""
    if question.mode in ORDER_IS_GIVEN:
        return question.mode
    if meaning.index is None:
        return "keyword"
    return "semantic" if question.mode == "semantic" else "hybrid"


def _degraded(by_store: Mapping[int, _FoundInStore], reference: _FoundInStore) -> Iterator[str]:
    """Why the vectors of a pool were not searched, or are of another model than the others' or than the configured one."""
    for each in by_store.values() if len(by_store) > 1 else ():
        if each.meaning.index and each.meaning.replaced:
            yield each.meaning.replaced.reason
        if each.meaning.skipped and len(each.candidates):
            yield each.meaning.skipped
        elif each.meaning.index and each.meaning.generation != reference.meaning.generation:
            yield "reembedding"


# Without a search: memories by their keys, and the latest memories.


def _by_keys(stores: Stores, question: Question) -> Recalled:
    """The memories with these keys, in that order, also from the trash: the persona's own, else those that name their pool."""

    def read(number: int) -> dict[str, Memory]:
        pool = stores.pool(number)
        end = key_in(pool, "") if pool else ""
        own_keys = {key.removesuffix(end): key for key in question.keys if key.endswith(end)}
        with stores[number].database.read_briefly() as connection:
            stored = memories.by_keys(connection, list(own_keys))
        return {own_keys[key]: in_pool(pool, memory) for key, memory in stored.items()}

    by_store = stores.each(read)
    known = {key: (number, memory) for number in sorted(by_store, reverse=True) for key, memory in by_store[number].items()}
    present = [(known[key][1], 1.0, {"key": True}) for key in question.keys if key in known]
    hits = within_budget(present, question.detail, question.max_tokens, with_metadata=question.detail != "index")
    missing = tuple(key for key in question.keys if key not in known)
    pools = {memory.key: stores.pool(number) for number, memory in known.values()}
    named = tuple(replace(hit, pool=pools[hit.memory.key]) for hit in hits)
    return Recalled(named, "keys", reranked=False, degraded=(), index_lag=0, more=len(present) - len(hits), missing=missing)


def _latest_memories(stores: Stores, parsed: ParsedQuestion) -> Recalled:
    """The latest memories that pass the filters; for a question such as 「最近何があった？」 first those of people, then those of an assistant."""
    people_first = parsed.time.is_only_time and parsed.people_first
    count = parsed.question.top_k + 1

    def read(number: int) -> list[Memory]:
        filters = stores.question(number, parsed.question, parsed.now).filters
        with stores[number].database.read_briefly() as connection:
            return memories.recent(connection, filters, 2 * (count + SPARE_FOR_REPEATED) if people_first else count)

    listed = [(stores.pool(number), memory) for number, newest in stores.each(read).items() for memory in newest]
    listed.sort(key=lambda entry: entry[1].told_at, reverse=True)
    if people_first:
        assistants = Assistants(stores[0])
        listed.sort(key=lambda entry: assistants.wrote(entry[1]))
    shown = [(in_pool(pool, memory), 1.0, {"recent": True}) for pool, memory in listed[: parsed.question.top_k]]
    hits = within_budget(shown, parsed.question.detail, parsed.question.max_tokens)
    named = tuple(replace(hit, pool=pool) for hit, (pool, _) in zip(hits, listed, strict=False))
    return Recalled(named, "recent", reranked=False, degraded=(), index_lag=0, more=len(listed[:count]) - len(hits))
