"""A recall, from the question to the answer: read the question → candidates → signals → one sort → read the best → rerank → page.

Each store is read in two short snapshots, one for the candidates and one for the best of them; no connection is held while a model
works. The answer names the pipeline that ran and what was missing.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from memory_mcp import time_limit
from memory_mcp.config.settings import Settings
from memory_mcp.domain import Memory, Question, Recalled
from memory_mcp.encoders.models import Models
from memory_mcp.encoders.worker_pool import on_behalf_of
from memory_mcp.graph.query.entities_by_meaning import QUESTION_FLOOR, EntitiesByMeaning, entities_by_meaning
from memory_mcp.graph.query.retrieval import GraphEvidence, QueryEntities, entities_in_query, graph_evidence
from memory_mcp.language.budget import WINDOW_CHARACTERS, line_cost
from memory_mcp.personas.names import key_in
from memory_mcp.personas.registry import Persona
from memory_mcp.search.candidates import Assistants, Candidates, Search, from_sources, joined, near_in_graph, with_associated
from memory_mcp.search.meaning import Meaning, meaning_of
from memory_mcp.search.page import SPARE_FOR_REPEATED, Best, Floor, distinct, floor_for, read_best, with_newer, within_budget
from memory_mcp.search.question import Asked, asked_by
from memory_mcp.search.rerank import Reranked, part, passage, rerank
from memory_mcp.search.signals import Order, in_order, why
from memory_mcp.search.stores import NO_POOLS, Pools, Stores, in_pool, on_one_scale, without_vectors
from memory_mcp.search.words import unmatched, unmatched_dates
from memory_mcp.store import memories
from memory_mcp.store.lexical import bm25_index
from memory_mcp.store.vectors import stored_vectors
from memory_mcp.store.vectors.index_cache import IndexCache

# Modes that the time or the graph orders, and no cross-encoder.
NOT_RERANKED = ("recent", "graph")


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
    """The memories of this persona and its pools that answer the question best. After `deadline`, in seconds of `time.monotonic`,
    nothing is reranked."""
    stores = Stores(persona, pools)
    if question.keys:
        return stores.answered(_by_keys(stores, question))
    asked = asked_by(question, now, settings)
    if asked.is_for_latest:
        return stores.answered(_latest(stores, asked))
    with on_behalf_of(persona.name):
        found = stores.each(lambda number: _search(stores, number, asked, models, indexes))
        lead = _lead(found)
        order = _ordered(stores, found, lead, asked)
        best = read_best(stores, order, floor_for(settings, models, lead.meaning, reranked=False), is_whole=_may_rerank(asked, models))
        reranked = _reranked(order, best, models, deadline)
        if reranked.done:
            order = order.sorted_again(reranked.candidates)
        floor = floor_for(settings, models, lead.meaning, reranked=reranked.done)
        page = _page(stores, found, lead, order, best, floor, reranked)
        return stores.answered(with_newer(page, best.newer, asked.question))


@dataclass(frozen=True, slots=True)
class _Found:
    """What one store has for a question, and the `order` of that, unless it changed since. `in_small_store`: it has so few memories
    that none of their words is common."""

    candidates: Candidates
    order: Order | None
    meaning: Meaning
    by_meaning: EntitiesByMeaning
    in_small_store: bool
    index_lag: int
    relations: Sequence[str]
    unmatched: Sequence[str]


# Reading: the candidates of one store, with the memories that the graph associates with the best of them.


def _search(stores: Stores, number: int, asked: Asked, models: Models, indexes: IndexCache | None) -> _Found:
    persona, question = stores[number], stores.question(number, asked.question, asked.now)
    meaning = meaning_of(persona, question, models, indexes)
    named, by_meaning = _entities(persona, question, models) if question.mode == "graph" else (None, EntitiesByMeaning())
    with persona.database.read_briefly() as connection:
        search = Search(number, persona, connection, question, asked, meaning)
        if named is None:
            candidates = from_sources(search)
        else:
            candidates = near_in_graph(
                search, named, by_meaning, lambda: in_order(from_sources(search), asked, meaning, in_small_store=False).leading
            )
        in_small_store = len(candidates) < bm25_index.FEW_ROWS and bm25_index.is_small(connection)
        order = in_order(candidates, asked, meaning, in_small_store=in_small_store)
        evidence = _associated(search, order, named)
        if evidence.memories:
            candidates = with_associated(search, candidates, evidence)
        waiting = stored_vectors.waiting(connection, meaning.generation) if meaning.generation else 0
        missing = _missing(search, candidates)
    return _Found(
        candidates, None if evidence.memories else order, meaning, by_meaning, in_small_store, waiting, evidence.relations, missing
    )


def _entities(persona: Persona, question: Question, models: Models) -> tuple[QueryEntities, EntitiesByMeaning]:
    """The entities that a query of `mode=graph` names, else those that it means."""
    with persona.database.read() as connection:
        named = entities_in_query(connection, persona.names, question.query)
    return named, EntitiesByMeaning() if named.shares else entities_by_meaning(persona, question.query, models, QUESTION_FLOOR)


def _associated(search: Search, order: Order, named: QueryEntities | None) -> GraphEvidence:
    """What the graph associates with the best candidates, and what it states of the entities that the query names."""
    question, fusion = search.question, search.asked.settings.fusion
    weight = fusion.graph_weight_dense if search.meaning.index else fusion.graph_weight
    is_by_meaning_alone = question.mode == "semantic" and search.meaning.index is not None
    leads_on = bool(weight) and question.mode not in NOT_RERANKED and not is_by_meaning_alone
    return graph_evidence(
        search.connection,
        search.persona.names,
        question,
        order.leading if leads_on else (),
        limit=search.limit if leads_on else 0,
        # Filters do not apply to relations, so with a filter none is shown.
        with_relations=question.mode != "recent" and not question.filters,
        named=named,
    )


def _missing(search: Search, candidates: Candidates) -> tuple[str, ...]:
    """The words of the question that the store lacks, and those for dates of which it has nothing."""
    question, asked = search.question, search.asked
    # Where expired memories can't be moved to the trash, their words are still in the index.
    is_told = not asked.time.is_vague and not question.filters.unexpired_at
    missing = unmatched(search.connection, asked.time.informative, search.in_other_scripts) if is_told else ()
    is_of_dates = bool(asked.time.dates) and question.mode != "graph" and not question.filters
    if is_of_dates and not candidates.dates.any():
        return (*unmatched_dates(search.connection, asked.time.date_words), *missing)
    return missing


# Ordering: the candidates of all stores in one table.


def _ordered(stores: Stores, found: Mapping[int, _Found], lead: _Found, asked: Asked) -> Order:
    if lead.order and len(found) == 1:
        return lead.order
    are_small = all(each.in_small_store for each in found.values())
    return in_order(_together(stores, found, lead, asked), asked, lead.meaning, in_small_store=are_small)


def _together(stores: Stores, found: Mapping[int, _Found], lead: _Found, asked: Asked) -> Candidates:
    parts = {
        number: each.candidates if each.meaning.generation == lead.meaning.generation else without_vectors(each.candidates)
        for number, each in found.items()
    }
    if len(parts) > 1:
        beside_vectors = any(each.meaning.index is not None for each in found.values())
        parts = on_one_scale(stores, parts, asked.terms(beside_vectors=beside_vectors).tokens)
    return joined(list(parts.values()))


def _lead(found: Mapping[int, _Found]) -> _Found:
    """The first store whose vectors were searched: its model names the pipeline that ran, and is what the others are compared by."""
    lead = next((each for each in found.values() if each.meaning.index), found[0])
    by_meaning = next((each.by_meaning for each in found.values() if each.by_meaning.entities), lead.by_meaning)
    return replace(lead, by_meaning=by_meaning)


# Answering: what is read of the best, and what of that is shown.


def _may_rerank(asked: Asked, models: Models) -> bool:
    return models.reranker is not None and asked.question.mode not in NOT_RERANKED


def _reranked(order: Order, best: Best, models: Models, deadline: float | None) -> Reranked:
    """The candidates with the signal of the cross-encoder, unless the mode has another order."""
    time_limit.check()
    asked = order.scored.asked
    if asked.question.mode in NOT_RERANKED:
        return Reranked(order.scored.candidates)
    if models.reranker is None:
        state = models.reranker_state.state
        return Reranked(order.scored.candidates, skipped=None if state == "off" else f"reranker_{state}")

    def passage_of(row: int) -> str:
        return passage(best.memories[row], lambda _: best.part(row, asked.shown_words))

    def part_of(row: int) -> str:
        return part(best.memories[row], asked.shown_words, best.part(row, asked.shown_words))

    return rerank(order.scored, [row for row in order.pool if row not in best.gone], passage_of, part_of, models.reranker, deadline)


def _page(
    stores: Stores, found: Mapping[int, _Found], lead: _Found, order: Order, best: Best, floor: Floor, reranked: Reranked
) -> Recalled:
    asked, meaning = order.scored.asked, lead.meaning
    question = asked.question
    pool = [row for row in order.pool if row not in best.gone]
    passing = floor.passing(order.scored, pool)
    rows, repeated = distinct(passing, best.statements, question.top_k)
    shown = [
        (best.memories[row], float(order.scored.score[row]), reasons) for row, reasons in zip(rows, why(order.scored, rows), strict=True)
    ]
    words = asked.shown_words if any(len(memory.content) > WINDOW_CHARACTERS for memory, _, _ in shown) else ()
    by_key = {best.memories[row].key: row for row in rows}
    relations = tuple(line for number, each in found.items() for line in _of_pool(stores.pool(number), each.relations))
    hits = within_budget(
        shown,
        question.detail,
        question.max_tokens - sum(map(line_cost, relations)),
        lambda memory: best.part(by_key[memory.key], words),
        words=words,
        confirmed={key: best.confirmations[row] for key, row in by_key.items()},
    )
    lacking = (meaning.replaced.reason if meaning.replaced else None, meaning.skipped, lead.by_meaning.skipped, reranked.skipped)
    return Recalled(
        hits=tuple(
            replace(hit, pool=name) if (name := stores.pool(order.scored.candidates.keys[row][0])) else hit
            for hit, row in zip(hits, rows, strict=False)
        ),
        mode=_mode(question, meaning),
        reranked=reranked.done,
        degraded=tuple(dict.fromkeys(filter(None, (*lacking, *_degraded(found, lead))))),
        index_lag=sum(each.index_lag for each in found.values()),
        more=len(passing) - repeated + len(floor.passing(order.scored, order.rest)) - len(hits),
        relations=relations,
        unmatched=tuple(word for word in found[0].unmatched if all(word in each.unmatched for each in found.values())),
        meant=tuple((entity.name, near) for entity, near in lead.by_meaning.entities),
        best_score=round(float(floor.measure(order.scored)[pool].max()), 4) if pool and not hits else None,
        embedder=meaning.replaced.name if meaning.replaced and meaning.index else None,
    )


def _of_pool(pool: str, relations: Sequence[str]) -> Iterator[str]:
    return (key_in(pool, f"{line} ") if pool else line for line in relations)


def _mode(question: Question, meaning: Meaning) -> str:
    """The pipeline that ran, not the one that was asked for."""
    if question.mode in NOT_RERANKED:
        return question.mode
    if meaning.index is None:
        return "keyword"
    return "semantic" if question.mode == "semantic" else "hybrid"


def _degraded(found: Mapping[int, _Found], lead: _Found) -> Iterator[str]:
    """Why the vectors of a pool were not searched, or are of another model than the others' or than the configured one."""
    for each in found.values() if len(found) > 1 else ():
        if each.meaning.index and each.meaning.replaced:
            yield each.meaning.replaced.reason
        if each.meaning.skipped and len(each.candidates):
            yield each.meaning.skipped
        elif each.meaning.index and each.meaning.generation != lead.meaning.generation:
            yield "reembedding"


# Without a search: memories by their keys, and the latest ones.


def _by_keys(stores: Stores, question: Question) -> Recalled:
    """The memories with these keys, in that order, also from the trash: the persona's own, else those that name their pool."""

    def read(number: int) -> dict[str, Memory]:
        pool = stores.pool(number)
        end = key_in(pool, "") if pool else ""
        wanted = {key.removesuffix(end): key for key in question.keys if key.endswith(end)}
        with stores[number].database.read_briefly() as connection:
            found = memories.by_keys(connection, list(wanted))
        return {wanted[key]: in_pool(pool, memory) for key, memory in found.items()}

    by_store = stores.each(read)
    known = {key: (number, memory) for number in sorted(by_store, reverse=True) for key, memory in by_store[number].items()}
    present = [(known[key][1], 1.0, {"key": True}) for key in question.keys if key in known]
    hits = within_budget(present, question.detail, question.max_tokens, with_metadata=question.detail != "index")
    missing = tuple(key for key in question.keys if key not in known)
    pools = {memory.key: stores.pool(number) for number, memory in known.values()}
    named = tuple(replace(hit, pool=pools[hit.memory.key]) for hit in hits)
    return Recalled(named, "keys", False, (), 0, more=len(present) - len(hits), missing=missing)


def _latest(stores: Stores, asked: Asked) -> Recalled:
    """The latest memories that pass the filters; for a question such as 「最近何があった？」 first what people said, then what an assistant said."""
    people_first = asked.time.is_vague and asked.people_first
    count = asked.question.top_k + 1

    def read(number: int) -> list[Memory]:
        filters = stores.question(number, asked.question, asked.now).filters
        with stores[number].database.read_briefly() as connection:
            return memories.recent(connection, filters, 2 * (count + SPARE_FOR_REPEATED) if people_first else count)

    found = [(stores.pool(number), memory) for number, newest in stores.each(read).items() for memory in newest]
    found.sort(key=lambda entry: entry[1].told_at, reverse=True)
    if people_first:
        assistants = Assistants(stores[0])
        found.sort(key=lambda entry: assistants.wrote(entry[1]))
    shown = [(in_pool(pool, memory), 1.0, {"recent": True}) for pool, memory in found[: asked.question.top_k]]
    hits = within_budget(shown, asked.question.detail, asked.question.max_tokens)
    named = tuple(replace(hit, pool=pool) for hit, (pool, _) in zip(hits, found, strict=False))
    return Recalled(named, "recent", False, (), 0, more=len(found[:count]) - len(hits))
