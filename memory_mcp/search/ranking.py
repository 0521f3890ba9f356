"""The candidates of one store in one order: by meaning, words, and named dates; then with the memories that the graph associates; and what was read of
the best.

The database is read in one snapshot.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any, NamedTuple

import apsw

from memory_mcp import time_limit
from memory_mcp.config.settings import Fusion, Settings
from memory_mcp.domain import Candidate, Confirmation, Memory, Origin, Question
from memory_mcp.encoders.models import Models
from memory_mcp.graph.query.entities_by_meaning import EntitiesByMeaning
from memory_mcp.graph.query.retrieval import GraphEvidence, QueryEntities, entities_in_query, graph_evidence, memories_near_entities
from memory_mcp.language.excerpt import Span, best_window
from memory_mcp.language.speakers import asks_assistant, named_speakers
from memory_mcp.personas.registry import Persona
from memory_mcp.search.candidates import CANDIDATES_PER_NAMED_DATE, from_named_dates, from_words, from_written_dates, terms_of, union
from memory_mcp.search.fuse import Hints, freshness, fuse, judged
from memory_mcp.search.meaning import Meaning, from_meaning
from memory_mcp.search.page import floor_for
from memory_mcp.search.reading import Read, Statement, read
from memory_mcp.search.roles import assistants_among
from memory_mcp.search.support import supported
from memory_mcp.search.time_asked import TimeAsked
from memory_mcp.search.unmatched import unmatched, unmatched_dates
from memory_mcp.store import memories, memory_dates
from memory_mcp.store.lexical import bm25_index
from memory_mcp.store.session_order import adjacent_turns
from memory_mcp.store.timestamps import from_text, to_text
from memory_mcp.store.vectors import chunks, stored_vectors

POOL_FACTOR = 3
# `mode=graph`: the words of the query count once, the nearness of a memory in the graph half as much (docs/graph.md#in-a-search).
NEARNESS_WEIGHT = 0.5
# Further candidates that are read, in case some say the same as others.
SPARE_FOR_REPEATED = 5
# Modes that the time or the graph orders, and no cross-encoder.
NOT_RERANKED = ("recent", "graph")


@dataclass(frozen=True, slots=True)
class Search:
    """A question to one store, what is known of it before the store is searched, and a connection to that."""

    persona: Persona
    connection: apsw.Connection
    question: Question
    asked: TimeAsked
    meaning: Meaning
    models: Models
    settings: Settings
    now: datetime

    @property
    def is_by_meaning_alone(self) -> bool:
        return self.question.mode == "semantic" and self.meaning.index is not None


class Ranking(NamedTuple):
    """Candidates in order, and the hints of that order."""

    hints: Hints
    candidates: list[Candidate]


@dataclass(frozen=True, slots=True)
class Ranked:
    """All candidates in order, with the `hints` of that order, and what the later steps need of the best. `certain`: the candidates that the graph alone
    makes hits."""

    candidates: list[Candidate]
    pool: list[Candidate]
    memories: dict[int, Memory]
    statements: dict[int, Statement]
    confirmations: dict[int, Confirmation]
    spans: dict[int, Span]
    index_lag: int
    hints: Hints
    certain: frozenset[int] = frozenset()
    in_small_store: bool = False
    relations: tuple[str, ...] = ()
    unmatched: tuple[str, ...] = ()

    def best_part(self, words: Sequence[str]) -> Callable[[Memory], Span]:
        """The span of a memory to show: within its nearest chunk, if it has several, where the query's words are."""
        nearest = {candidate.memory_id: self.spans.get(candidate.best_chunk or 0) for candidate in self.pool}

        def best_part(memory: Memory) -> Span:
            time_limit.check()
            return best_window(memory.content, words, nearest.get(memory.id) or (0, len(memory.content)))

        return best_part


def rank(search: Search, by_meaning: EntitiesByMeaning, *, whole_pool: bool) -> Ranked:
    """The candidates in order. `whole_pool`: every memory of the pool is read, because others will change the order."""
    question, asked, connection = search.question, search.asked, search.connection
    named = entities_in_query(connection, search.persona.names, question.query) if question.mode == "graph" else None
    ranking = _fused(search) if named is None else _by_graph(search, by_meaning, named)
    in_small_store = len(ranking.candidates) < bm25_index.FEW_ROWS and bm25_index.is_small(connection)
    weight = search.settings.fusion.graph_weight_dense if search.meaning.index else search.settings.fusion.graph_weight
    leads_on = bool(weight) and question.mode not in NOT_RERANKED and not search.is_by_meaning_alone
    ranking, evidence = _with_associated(search, ranking, named, in_small_store=in_small_store, leads_on=leads_on)
    if question.mode == "recent":
        ranking.candidates.sort(key=by_time(ranking.hints, asked))
    # Only a cross-encoder needs the whole pool.
    best = _Best(search, ranking, is_whole=whole_pool or may_rerank(question, search.models))
    return Ranked(
        ranking.candidates,
        best.pool,
        best.read.memories,
        best.read.statements,
        best.read.confirmations,
        chunks.spans(connection, best.chunks),
        stored_vectors.waiting(connection, search.meaning.generation) if search.meaning.generation else 0,
        ranking.hints,
        evidence.certain,
        in_small_store,
        evidence.relations,
        _missing(search, ranking),
    )


class _Best:
    """The pool of a ranking, the best `POOL_FACTOR` × as many as an answer shows, and what was read of it: all if it `is_whole`, else what may be shown."""

    def __init__(self, search: Search, ranking: Ranking, *, is_whole: bool) -> None:
        self.pool = ranking.candidates[: search.question.top_k * POOL_FACTOR]
        limit = search.question.top_k
        floor = floor_for(search.settings, search.models, search.meaning, reranked=False)
        self._wanted = self.pool if is_whole else floor.passing(self.pool)[: limit + SPARE_FOR_REPEATED]
        time_limit.check()
        self.read: Read = read(search.connection, self._wanted, len(self._wanted) if is_whole else limit, search.now)

    @property
    def chunks(self) -> list[int]:
        """The nearest chunks of what was read."""
        return [chunk for each in self._wanted if (chunk := each.best_chunk) is not None and each.memory_id in self.read.memories]


def _with_associated(
    search: Search, ranking: Ranking, named: QueryEntities | None, *, in_small_store: bool, leads_on: bool
) -> tuple[Ranking, GraphEvidence]:
    """The candidates that something supports, with the memories that the graph associates with them."""
    question, hints = search.question, ranking.hints
    is_supported = partial(supported, in_small_store=in_small_store, are_apart=search.meaning.centers is not None)
    are_all_hits = all_are_hits(question)
    leaders = ranking.candidates if are_all_hits else is_supported(ranking.candidates, hints.questions)
    limit = search.settings.fusion.candidates_per_source if leads_on else 0
    # What a judgement stands against leads to nothing that would stand before it.
    leading = [candidate for candidate in leaders if not candidate.verdict]
    evidence = graph_evidence(
        search.connection, search.persona.names, question, leading, limit=limit, with_relations=_has_relations(question), named=named
    )
    if not evidence.memories:
        return Ranking(hints, leaders), evidence
    ranking = _with_added(search, ranking, evidence.memories, graph=evidence.memories)
    if are_all_hits:
        return ranking, evidence
    return Ranking(ranking.hints, is_supported(ranking.candidates, ranking.hints.questions, evidence.certain)), evidence


def _missing(search: Search, ranking: Ranking) -> tuple[str, ...]:
    """The words of the question that the store lacks, and those for dates of which it has nothing."""
    question, asked = search.question, search.asked
    # Where expired memories can't be moved to the trash, their words are still in the index.
    is_told = not asked.is_vague and not question.filters.unexpired_at
    missing = unmatched(search.connection, search.persona.words.stored, asked.informative) if is_told else ()
    is_of_dates = bool(asked.dates) and question.mode != "graph" and not question.filters
    if is_of_dates and not any(candidate.date_share for candidate in ranking.candidates):
        missing = (*unmatched_dates(search.connection, asked.date_words), *missing)
    return missing


def _fused(search: Search) -> Ranking:
    """The candidates by meaning, words and named dates, each with every score."""
    connection, question, asked, meaning, settings = search.connection, search.question, search.asked, search.meaning, search.settings
    counts, limit = search.persona.words, settings.fusion.candidates_per_source
    near = from_meaning(connection, meaning, question.filters, limit)
    dates = from_named_dates(connection, asked.dates, question.filters, limit if asked.is_vague else CANDIDATES_PER_NAMED_DATE)
    by_meaning_alone = question.mode == "semantic" and near
    lexical_limit = 0 if by_meaning_alone else limit
    words: dict[int, float] = {}
    if not asked.is_vague:
        terms = terms_of(connection, counts, replace(question, query=asked.words), lexical_limit, beside_vectors=meaning.index is not None)
        matches = partial(from_words, connection, counts, asked.words, terms, limit=lexical_limit)
        words = matches(question.filters, others=(*near, *dates))
        if asked.is_recent and lexical_limit and not question.filters.date_range:
            # Of much that has its words, the best matches may all be old.
            words |= matches(replace(question.filters, date_range=asked.dates[0]))
    origins = memories.origins(connection, {*words, *near, *dates})
    best = [origins[memory_id] for memory_id in words] if people_first(question.query, settings) and lexical_limit else []
    if assistants := tuple(assistants_among(search.persona, best)):
        # Where an assistant said some of the best, as many matches of what others said are added.
        words |= matches(replace(question.filters, other_sources=assistants))
        origins |= memories.origins(connection, words.keys() - origins.keys())
    candidates = union(connection, meaning, words, near, dates)
    ranking = _ordered(search, candidates, _hints(search, origins))
    days = asked.written if not any(candidate.date_share == 1.0 for candidate in ranking.candidates) else ()
    if days or asked.years:
        written = from_written_dates(connection, days, asked.years, question.filters, limit)
        if written:
            spans = [(to_text(date.start), to_text(date.end)) for date in asked.dates]
            return _with_added(search, ranking, written, times={**ranking.hints.times, **dict.fromkeys(written, spans)})
    return ranking


def _ordered(search: Search, candidates: Sequence[Candidate], hints: Hints) -> Ranking:
    time_limit.check()
    weight = dense_weight(search.question, search.meaning, search.settings)
    return Ranking(hints, fuse(candidates, weights_of(search.question, search.settings), hints, dense_weight=weight))


def _with_added(
    search: Search,
    ranking: Ranking,
    wanted: Iterable[int],
    *,
    graph: Mapping[int, float] | None = None,
    times: Mapping[int, Sequence[tuple[str, str]]] | None = None,
) -> Ranking:
    """The candidates with these memories, new ones with their cosines, by other hints of the graph or of their times."""
    connection, settings, hints = search.connection, search.settings, ranking.hints
    among = {candidate.memory_id for candidate in ranking.candidates}
    added = [memory_id for memory_id in wanted if memory_id not in among]
    # The lexical matches are among the ranked already; searching these few again would double the work.
    candidates = [*ranking.candidates, *union(connection, search.meaning, {}, added)]
    origins = {**hints.origins, **memories.origins(connection, added)}
    fresh = {**hints.freshness, **freshness(connection, added, settings.decay, search.now)}
    judgements = {**hints.judged, **judged(connection, added, settings.fusion.judged_weight)}
    hints = replace(hints, origins=origins, freshness=fresh, judged=judgements, graph=graph or hints.graph, times=times or hints.times)
    return _ordered(search, candidates, hints)


def _by_graph(search: Search, by_meaning: EntitiesByMeaning, named: QueryEntities) -> Ranking:
    """The memories near the entities that the query names or means, ordered by the rest of the query."""
    connection, question = search.connection, search.question
    near = memories_near_entities(connection, question, named.shares or by_meaning.shares, lambda: _fused(search).candidates)
    counts, rest = search.persona.words, replace(question, query=named.rest)
    words = from_words(connection, counts, rest.query, terms_of(connection, counts, rest, 0), question.filters, 0, list(near))
    hints = replace(_hints(search, memories.origins(connection, near)), graph=near)
    return _ordered(search, union(connection, search.meaning, words, near), hints)


def weights_of(question: Question, settings: Settings) -> Fusion:
    """The weights of the fusion: in `mode=graph` nearness in the graph has one of its own."""
    if question.mode != "graph":
        return settings.fusion
    return settings.fusion.model_copy(update={"graph_weight": NEARNESS_WEIGHT, "graph_weight_dense": NEARNESS_WEIGHT})


def _hints(search: Search, origins: Mapping[int, Origin]) -> Hints:
    """The dates and speakers that the query names, and the origins of the candidates."""
    connection, question, settings, dates = search.connection, search.question, search.settings, search.asked.dates
    ids = list(origins)
    sources = {origin.source for origin in origins.values()}
    speakers = named_speakers(question.query, sources)
    assistants = assistants_among(search.persona, origins.values()) - speakers if people_first(question.query, settings) else frozenset()
    times = memory_dates.of_memories(connection, ids) if dates else {}
    return Hints(
        dates,
        speakers,
        origins,
        assistants,
        times,
        freshness=freshness(connection, ids, settings.decay, search.now),
        judged=judged(connection, ids, settings.fusion.judged_weight),
        questions=_questions(connection, origins),
        are_apart=search.meaning.centers is not None,
        is_recent=search.asked.is_recent,
        of_telling=search.asked.of_telling,
    )


def _questions(connection: apsw.Connection, origins: Mapping[int, Origin]) -> dict[int, int]:
    """Turn → the turn before it, where that asks something."""
    asking = [memory_id for memory_id, origin in origins.items() if origin.asks and origin.session_id]
    return {answer: question for question, answer in adjacent_turns(connection, asking, "after").items()} if asking else {}


def people_first(query: str, settings: Settings) -> bool:
    """Whether what an assistant said counts less than what people said."""
    return settings.fusion.assistant_weight < 1 and not asks_assistant(query)


def all_are_hits(question: Question) -> bool:
    """Whether nothing else must speak for a candidate: what passes a filter by time is found even if no word fits."""
    return question.mode == "graph" or question.filters.date_range is not None


def by_time(hints: Hints, asked: TimeAsked) -> Callable[[Candidate], Any]:
    """The order of `mode=recent`."""
    return _nearest_time(hints) if asked.looks_ahead else _latest_first(hints)


def _latest_first(hints: Hints) -> Callable[[Candidate], Any]:
    """Sorts the latest first; memories whose text names the date that is asked for before those that were only told on it, and of both what people said
    before what an assistant said."""
    moments = sorted({origin.told_at for origin in hints.origins.values()}, reverse=True)
    rank = {moment: index for index, moment in enumerate(moments)}

    def order(candidate: Candidate) -> tuple[float, bool, int, int]:
        origin = hints.origins[candidate.memory_id]
        return -candidate.date_share, hints.is_assistants(origin), rank[origin.told_at], -candidate.memory_id

    return order


def _nearest_time(hints: Hints) -> Callable[[Candidate], Any]:
    """Sorts by the first of a memory's times that is to come, of those under way the shortest first; those that only name a longer time last."""
    start = min((to_text(date.start) for date in hints.dates), default="")

    def nearest(candidate: Candidate) -> tuple[float, str, timedelta, int]:
        times = [
            (max(time, start), from_text(end) - from_text(time)) for time, end in hints.times.get(candidate.memory_id, ()) if end > start
        ]
        time, lasts = min(times, default=(hints.origins[candidate.memory_id].happened, timedelta()))
        return -candidate.date_share, time, lasts, candidate.memory_id

    return nearest


def dense_weight(question: Question, meaning: Meaning, settings: Settings) -> float:
    if question.mode == "semantic":
        return 1.0
    return meaning.weight if settings.fusion.dense_weight is None else settings.fusion.dense_weight


def _has_relations(question: Question) -> bool:
    """Whether an answer has relations beside its hits: filters do not apply to relations, so with a filter none is shown."""
    return question.mode != "recent" and not question.filters


def may_rerank(question: Question, models: Models) -> bool:
    """Whether a cross-encoder reads the pool."""
    return models.reranker is not None and question.mode not in NOT_RERANKED
