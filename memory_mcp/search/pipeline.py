"""The steps of a recall: candidates (meaning · words · named dates) → fuse → memories associated by the graph → fuse → pool of top_k×3 → rerank
→ page.

The database is read in one snapshot between the two models; no connection is held while a model works. The answer names the pipeline that ran
and what was missing.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

import apsw

from memory_mcp.config.settings import Fusion, Settings
from memory_mcp.dates.resolve import words_of_dates
from memory_mcp.domain import Candidate, Confirmation, Memory, Origin, Question, Recalled, TimeRange
from memory_mcp.encoders.models import Models
from memory_mcp.encoders.worker_pool import on_behalf_of
from memory_mcp.graph.query.entities_by_meaning import QUESTION_FLOOR, EntitiesByMeaning, entities_by_meaning
from memory_mcp.graph.query.retrieval import QueryEntities, entities_in_query, graph_evidence, memories_near_entities
from memory_mcp.personas.registry import Persona
from memory_mcp.search.candidates import CANDIDATES_PER_NAMED_DATE, from_named_dates, from_words, from_written_dates, shown_tokens, union
from memory_mcp.search.changes import changes_first, changes_of
from memory_mcp.search.fuse import Hints, best_first, freshness, fuse, judged
from memory_mcp.search.meaning import Meaning, from_meaning, meaning_of
from memory_mcp.search.moved_plans import changes_of_plans, with_changes_first
from memory_mcp.search.outdated import outdated
from memory_mcp.search.owners import mark_other_owners
from memory_mcp.search.page import Floor, floor_for, why, within_budget
from memory_mcp.search.rerank import Reranked, part, passage, rerank
from memory_mcp.search.support import supported
from memory_mcp.search.time_asked import TimeAsked, time_asked
from memory_mcp.search.unmatched import unmatched
from memory_mcp.store import memories, memory_dates
from memory_mcp.store.lexical import bm25_index
from memory_mcp.store.lexical.token_frequencies import TokenCounts
from memory_mcp.store.replacements import confirmed_memories
from memory_mcp.store.session_order import adjacent_turns
from memory_mcp.store.timestamps import from_text, to_text
from memory_mcp.store.vectors import chunks, stored_vectors
from memory_mcp.store.vectors.index_cache import IndexCache
from memory_mcp.text.budget import line_cost
from memory_mcp.text.changes import asks_time
from memory_mcp.text.excerpt import WINDOW_CHARACTERS, Span, best_window
from memory_mcp.text.speakers import asks_assistant, is_assistant, named_speakers
from memory_mcp.text.tokens import normalise

POOL_FACTOR = 3
# `mode=graph`: the words of the query count once, the nearness of a memory in the graph half as much (docs/graph.md#in-a-search).
NEARNESS_WEIGHT = 0.5
# Further candidates that are read, in case some say the same as others.
SPARE_FOR_REPEATED = 5
_NOT_SAID = re.compile(r"[\W_]+")
# Modes that the time or the graph orders, and no cross-encoder.
_NOT_RERANKED = ("recent", "graph")

# What a memory says, and its stated time, or those that its text names.
Statement = tuple[str, object]


@dataclass(frozen=True, slots=True)
class Ranked:
    """The result of one snapshot of the database: all candidates in fused order, with the `hints` of that order, and what the later steps need
    of the best. `certain`: the candidates that the graph alone makes hits. `moved`: plans, with the memories that say that they moved or are off."""

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
    moved: Mapping[int, int] = field(default_factory=dict)

    def best_part(self, words: Sequence[str]) -> Callable[[Memory], Span]:
        """The span of a memory to show: within its nearest chunk, if it has several, where the query's words are."""
        nearest = {candidate.memory_id: self.spans.get(candidate.best_chunk or 0) for candidate in self.pool}
        return lambda memory: best_window(memory.content, words, nearest.get(memory.id) or (0, len(memory.content)))


def recall(
    persona: Persona,
    question: Question,
    *,
    models: Models,
    settings: Settings,
    now: datetime,
    indexes: IndexCache | None = None,
    deadline: float | None = None,
) -> Recalled:
    """The memories of this persona that answer the question best. After `deadline`, in seconds of `time.monotonic`, nothing is reranked."""
    if question.keys:
        return _fetched(persona, question)
    if persona.has_expired:
        question = replace(question, filters=replace(question.filters, unexpired_at=now))
    question, asked = with_time(question, now, settings)
    if question.mode == "recent" and not question.query:
        return recent(question, latest(persona, question))
    with on_behalf_of(persona.name):
        found = search(persona, question, asked, models=models, settings=settings, now=now, indexes=indexes)
        return answer(question, found, models, settings, deadline)


@dataclass(frozen=True, slots=True)
class Found:
    """What one store has for a question, before a cross-encoder reads it."""

    meaning: Meaning
    by_meaning: EntitiesByMeaning
    ranked: Ranked


def with_time(question: Question, now: datetime, settings: Settings) -> tuple[Question, TimeAsked]:
    """The time that a question asks for, and the question as it is searched."""
    asked = time_asked(question.query, now, settings.zone)
    if question.mode == "auto" and asked.is_vague:  # no word of it says what is asked for but the time
        question = replace(question, mode="recent", query=asked.words if asked.dates else "")
    return question, asked


def search(
    persona: Persona,
    question: Question,
    asked: TimeAsked,
    *,
    models: Models,
    settings: Settings,
    now: datetime,
    indexes: IndexCache | None,
    whole_pool: bool = False,
) -> Found:
    """The candidates of one store in fused order. `whole_pool`: every memory of its pool is read, because others will change the order."""
    meaning = meaning_of(persona, question, models, indexes)
    by_meaning = _entities_by_meaning(persona, question, models)
    with persona.database.read_briefly() as connection:
        ranked = _ranked(persona, connection, question, asked, models, meaning, settings, now, by_meaning, whole_pool=whole_pool)
    return Found(meaning, by_meaning, ranked)


def answer(question: Question, found: Found, models: Models, settings: Settings, deadline: float | None) -> Recalled:
    """The hits among what was found, in the order of the cross-encoder if it has the time."""
    reranked = _reranked(found.ranked, question, models, settings, deadline)
    floor = floor_for(settings, models, found.meaning, reranked=reranked.done)
    return _answer(question, floor, found.meaning, found.ranked, reranked, found.by_meaning)


def _ranked(
    persona: Persona,
    connection: apsw.Connection,
    question: Question,
    asked: TimeAsked,
    models: Models,
    meaning: Meaning,
    settings: Settings,
    now: datetime,
    by_meaning: EntitiesByMeaning,
    *,
    whole_pool: bool,
) -> Ranked:
    named = entities_in_query(connection, persona.names, question.query) if question.mode == "graph" else None
    hints, ranked = (
        _by_graph(connection, persona.words, question, asked, meaning, settings, now, by_meaning, named)
        if named is not None
        else _fused(connection, persona.words, question, asked, meaning, settings, now)
    )
    by_meaning_alone = question.mode == "semantic" and meaning.index is not None
    graph_weight = settings.fusion.graph_weight_dense if meaning.index else settings.fusion.graph_weight
    leads_on = graph_weight and question.mode not in _NOT_RERANKED and not by_meaning_alone
    limit = settings.fusion.candidates_per_source if leads_on else 0
    are_all_hits = all_are_hits(question)
    in_small_store = len(ranked) < bm25_index.FEW_ROWS and bm25_index.is_small(connection)
    are_apart = meaning.centers is not None
    leaders = ranked if are_all_hits else supported(ranked, hints.questions, in_small_store=in_small_store, are_apart=are_apart)
    evidence = graph_evidence(
        connection, persona.names, question, leaders, limit=limit, with_relations=_has_relations(question), named=named
    )
    if evidence.memories:
        hints, ranked = _with_added(connection, evidence.memories, question, meaning, settings, now, hints, ranked, graph=evidence.memories)
        if not are_all_hits:
            ranked = supported(ranked, hints.questions, evidence.certain, in_small_store=in_small_store, are_apart=are_apart)
    else:
        ranked = leaders
    if question.mode == "recent":
        ranked.sort(key=by_time(hints, asked))
    pool = ranked[: question.top_k * POOL_FACTOR]
    # Only a cross-encoder needs the whole pool.
    is_read = whole_pool or _may_rerank(question, models)
    wanted = pool if is_read else floor_for(settings, models, meaning, reranked=False).passing(pool)[: question.top_k + SPARE_FOR_REPEATED]
    replacing = [memory_id for memory_id, origin in hints.origins.items() if origin.replaces]
    by_id, statements, confirmed, dropped = _read(connection, wanted, len(wanted) if is_read else question.top_k, replacing, now)
    if leads_on and pool and pool[0].memory_id in by_id:
        changes = changes_of(connection, question, by_id[pool[0].memory_id], hints.origins[pool[0].memory_id].told_at)
        if not by_id.keys() >= set(changes):
            hints, ranked = _with_added(connection, changes, question, meaning, settings, now, hints, ranked)
            ranked = _raised(ranked, changes, hints)
            pool, wanted = _with_wanted(ranked, changes, wanted, question, is_read=is_read)
            by_id, statements, confirmed, dropped = _read(connection, wanted, len(wanted), replacing, now)
    moved: dict[int, int] = {}
    if asked.dates or asks_time(normalise(question.query)):
        best = [by_id[candidate.memory_id] for candidate in pool[: question.top_k] if candidate.memory_id in by_id]
        moved = changes_of_plans(connection, best, question.filters, settings.zone)
    if moved:
        hints, ranked = _with_moved(connection, moved, question, meaning, settings, now, hints, ranked)
        pool, wanted = _with_wanted(ranked, moved.values(), wanted, question, is_read=is_read)
        by_id, statements, confirmed, dropped = _read(connection, wanted, len(wanted), replacing, now)
    if dropped:
        ranked, pool = ([candidate for candidate in some if candidate.memory_id not in dropped] for some in (ranked, pool))
    best_chunks = [candidate.best_chunk for candidate in wanted if candidate.best_chunk is not None and candidate.memory_id in by_id]
    spans = chunks.spans(connection, best_chunks)
    lag = stored_vectors.waiting(connection, meaning.generation) if meaning.generation else 0
    # Where expired memories can't be moved to the trash, their words are still in the index.
    missing = () if asked.is_vague or question.filters.unexpired_at else unmatched(connection, persona.words.stored, asked.informative)
    if asked.dates and named is None and not question.filters and not any(candidate.date_share for candidate in ranked):
        missing = (*words_of_dates(asked.query, now, settings.zone), *missing)
    return Ranked(
        ranked, pool, by_id, statements, confirmed, spans, lag, hints, evidence.certain, in_small_store, evidence.relations, missing, moved
    )


def _with_wanted(
    ranked: list[Candidate], added: Collection[int], wanted: Sequence[Candidate], question: Question, *, is_read: bool
) -> tuple[list[Candidate], list[Candidate]]:
    """The pool once these memories were added, and the candidates to read: all of it, or those of the added in it and what was wanted before."""
    pool = ranked[: question.top_k * POOL_FACTOR]
    return pool, pool if is_read else [*(candidate for candidate in pool if candidate.memory_id in added), *wanted]


def _with_moved(
    connection: apsw.Connection,
    moved: Mapping[int, int],
    question: Question,
    meaning: Meaning,
    settings: Settings,
    now: datetime,
    hints: Hints,
    ranked: list[Candidate],
) -> tuple[Hints, list[Candidate]]:
    """The candidates in their order, each plan that moved just behind the memory that says so, if that isn't before it already."""
    scores = {candidate.memory_id: candidate.score for candidate in ranked}
    hints, fused = _with_added(connection, moved.values(), question, meaning, settings, now, hints, ranked)
    pool = {candidate.memory_id: candidate for candidate in fused}
    for memory_id, score in scores.items():
        pool[memory_id].score = score
    return hints, with_changes_first([pool[memory_id] for memory_id in scores], fused, moved)


def _raised(ranked: Sequence[Candidate], changes: Sequence[int], hints: Hints) -> list[Candidate]:
    """The candidates with these memories first, which tell a change of the first one."""
    for candidate in ranked:
        if candidate.memory_id in changes:
            candidate.score = max(candidate.score, ranked[0].score)
    return best_first(ranked, hints.origins)


def _read(
    connection: apsw.Connection, wanted: Sequence[Candidate], count: int, replacing: Sequence[int], now: datetime
) -> tuple[dict[int, Memory], dict[int, Statement], dict[int, Confirmation], set[int]]:
    """The memories of the first `count` of these candidates, of all where some of those would not be shown; what they say, what confirms them, and
    which are outdated."""
    by_id: dict[int, Memory] = {}
    statements: dict[int, Statement] = {}
    confirmations: dict[int, Confirmation] = {}
    dropped: set[int] = set()
    for some in (wanted[:count], wanted[count:]):
        read, confirmed = confirmed_memories(connection, [candidate.memory_id for candidate in some], now)
        by_id |= read
        confirmations |= confirmed
        statements |= {memory_id: statement_of(memory) for memory_id, memory in read.items()}
        if len(set(statements.values())) < len(statements):  # 「今日は走った」 of another day is another statement
            times = memory_dates.of_memories(connection, [memory_id for memory_id, (_, stated) in statements.items() if stated is None])
            statements |= {memory_id: (statements[memory_id][0], tuple(named)) for memory_id, named in times.items()}
        dropped = outdated(connection, by_id.values(), replacing) if replacing else dropped
        shown, _ = _distinct([candidate for candidate in some if candidate.memory_id not in dropped], statements, count)
        if len(shown) == count or not wanted[count:]:
            break
    return by_id, statements, confirmations, dropped


def _fused(
    connection: apsw.Connection,
    counts: TokenCounts,
    question: Question,
    asked: TimeAsked,
    meaning: Meaning,
    settings: Settings,
    now: datetime,
) -> tuple[Hints, list[Candidate]]:
    """The candidates by meaning, words and named dates, each with every score, in one order."""
    limit = settings.fusion.candidates_per_source
    near = from_meaning(connection, meaning, question.filters, limit)
    dates = from_named_dates(connection, asked.dates, question.filters, limit if asked.is_vague else CANDIDATES_PER_NAMED_DATE)
    by_meaning_alone = question.mode == "semantic" and near
    people_first = settings.fusion.assistant_weight < 1 and not asks_assistant(question.query)
    lexical_limit = 0 if by_meaning_alone else limit
    undated = replace(question, query=asked.words)
    words = (
        {}
        if asked.is_vague
        else from_words(connection, counts, undated, lexical_limit, (*near, *dates), beside_vectors=meaning.index is not None)
    )
    origins = memories.origins(connection, {*words, *near, *dates})
    speakers = {origins[memory_id].source for memory_id in words} if people_first and lexical_limit else set()
    if assistants := tuple(source for source in speakers if source and is_assistant(source)):
        # Where an assistant said some of the best, as many matches of what others said are added.
        by_people = replace(undated, filters=replace(question.filters, other_sources=assistants))
        words |= from_words(connection, counts, by_people, lexical_limit, beside_vectors=meaning.index is not None)
        origins |= memories.origins(connection, words.keys() - origins.keys())
    candidates = union(connection, meaning, words, near, dates)
    if not asked.dates:
        mark_other_owners(connection, question.query, candidates, origins)
    hints = _hints(connection, question, asked.dates, origins, meaning, settings, now)
    ranked = fuse(candidates, settings.fusion, hints, dense_weight=dense_weight(question, meaning, settings))
    if asked.dates and not any(candidate.date_share == 1.0 for candidate in ranked):
        written = from_written_dates(connection, asked.query, words_of_dates(asked.query, now, settings.zone), question.filters, limit)
        if written:
            spans = [(to_text(date.start), to_text(date.end)) for date in asked.dates]
            times = {**hints.times, **dict.fromkeys(written, spans)}
            return _with_added(connection, written, question, meaning, settings, now, hints, ranked, times=times)
    return hints, ranked


def _with_added(
    connection: apsw.Connection,
    wanted: Iterable[int],
    question: Question,
    meaning: Meaning,
    settings: Settings,
    now: datetime,
    hints: Hints,
    ranked: list[Candidate],
    *,
    graph: Mapping[int, float] | None = None,
    times: Mapping[int, Sequence[tuple[str, str]]] | None = None,
) -> tuple[Hints, list[Candidate]]:
    """The candidates with these memories, new ones with their cosines, by other hints of the graph or of their times."""
    among = {candidate.memory_id for candidate in ranked}
    added = [memory_id for memory_id in wanted if memory_id not in among]
    # The lexical matches are among the ranked already; searching these few again would double the work.
    candidates = [*ranked, *union(connection, meaning, {}, added)]
    origins = {**hints.origins, **memories.origins(connection, added)}
    fresh = {**hints.freshness, **freshness(connection, added, settings.decay, now)}
    judgements = {**hints.judged, **judged(connection, added, settings.fusion.judged_weight)}
    hints = replace(hints, origins=origins, freshness=fresh, judged=judgements, graph=graph or hints.graph, times=times or hints.times)
    return hints, fuse(candidates, settings.fusion, hints, dense_weight=dense_weight(question, meaning, settings))


def _entities_by_meaning(persona: Persona, question: Question, models: Models) -> EntitiesByMeaning:
    """The entities that a query of `mode=graph` means if it names none."""
    if question.mode != "graph":
        return EntitiesByMeaning()
    with persona.database.read() as connection:
        named = entities_in_query(connection, persona.names, question.query)
    return EntitiesByMeaning() if named.shares else entities_by_meaning(persona, question.query, models, QUESTION_FLOOR)


def _by_graph(
    connection: apsw.Connection,
    counts: TokenCounts,
    question: Question,
    asked: TimeAsked,
    meaning: Meaning,
    settings: Settings,
    now: datetime,
    by_meaning: EntitiesByMeaning,
    named: QueryEntities,
) -> tuple[Hints, list[Candidate]]:
    """The memories near the entities that the query names or means, ordered by the rest of the query."""

    def ranked_by_words() -> list[Candidate]:
        return _fused(connection, counts, question, asked, meaning, settings, now)[1]

    near = memories_near_entities(connection, question, named.shares or by_meaning.shares, ranked_by_words)
    words = from_words(connection, counts, replace(question, query=named.rest), 0, list(near))
    hints = replace(_hints(connection, question, asked.dates, memories.origins(connection, near), meaning, settings, now), graph=near)
    weight = dense_weight(question, meaning, settings)
    return hints, fuse(union(connection, meaning, words, near), weights_of(question, settings), hints, dense_weight=weight)


def weights_of(question: Question, settings: Settings) -> Fusion:
    """The weights of the fusion: in `mode=graph` nearness in the graph has one of its own."""
    if question.mode != "graph":
        return settings.fusion
    return settings.fusion.model_copy(update={"graph_weight": NEARNESS_WEIGHT, "graph_weight_dense": NEARNESS_WEIGHT})


def _hints(
    connection: apsw.Connection,
    question: Question,
    dates: Sequence[TimeRange],
    origins: Mapping[int, Origin],
    meaning: Meaning,
    settings: Settings,
    now: datetime,
) -> Hints:
    """The dates and speakers that the query names, and the origins of the candidates."""
    ids = list(origins)
    sources = {origin.source for origin in origins.values()}
    counting_less = () if asks_assistant(question.query) else filter(is_assistant, sources)
    assistants = frozenset(source for source in counting_less if source)
    times = memory_dates.of_memories(connection, ids) if dates else {}
    return Hints(
        dates,
        named_speakers(question.query, sources),
        origins,
        assistants,
        times,
        freshness=freshness(connection, ids, settings.decay, now),
        judged=judged(connection, ids, settings.fusion.judged_weight),
        questions=_questions(connection, origins),
        are_apart=meaning.centers is not None,
    )


def _questions(connection: apsw.Connection, origins: Mapping[int, Origin]) -> dict[int, int]:
    """Turn → the turn before it, where that asks something."""
    asking = [memory_id for memory_id, origin in origins.items() if origin.asks and origin.session_id]
    return {answer: question for question, answer in adjacent_turns(connection, asking, "after").items()} if asking else {}


def all_are_hits(question: Question) -> bool:
    """Whether nothing else must speak for a candidate: what passes a filter by time is found even if no word fits."""
    return question.mode == "graph" or question.filters.date_range is not None


def by_time(hints: Hints, asked: TimeAsked) -> Callable[[Candidate], Any]:
    """The order of `mode=recent`."""
    return _nearest_time(hints) if asked.looks_ahead else _latest_first(hints)


def _latest_first(hints: Hints) -> Callable[[Candidate], Any]:
    """Sorts the latest first; memories whose text names the date that is asked for before those that were only told on it."""
    moments = sorted({origin.told_at for origin in hints.origins.values()}, reverse=True)
    rank = {moment: index for index, moment in enumerate(moments)}
    return lambda candidate: (-candidate.date_share, rank[hints.origins[candidate.memory_id].told_at], -candidate.memory_id)


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


def _may_rerank(question: Question, models: Models) -> bool:
    return models.reranker is not None and question.mode not in _NOT_RERANKED


def _reranked(ranked: Ranked, question: Question, models: Models, settings: Settings, deadline: float | None) -> Reranked:
    """The pool in the order of the cross-encoder, unless the mode has another order."""
    if question.mode in _NOT_RERANKED:
        return Reranked(ranked.pool)
    pool = changes_first(ranked.pool, ranked.memories, ranked.hints.origins, question.query)
    words = shown_tokens(question.query) if models.reranker else []
    best_part = ranked.best_part(words)
    passages = {memory_id: passage(memory, best_part) for memory_id, memory in ranked.memories.items()} if models.reranker else {}

    def part_of(memory_id: int) -> str:
        memory = ranked.memories[memory_id]
        return part(memory, words, best_part(memory))

    return rerank(pool, question, passages, part_of, models, settings, deadline)


def _answer(
    question: Question, floor: Floor, meaning: Meaning, ranked: Ranked, reranked: Reranked, by_meaning: EntitiesByMeaning
) -> Recalled:
    passing = floor.passing(reranked.pool)
    if ranked.moved:
        passing = with_changes_first(passing, reranked.pool, ranked.moved)
    distinct, repeated = _distinct(passing, ranked.statements, question.top_k)
    shown = [(ranked.memories[candidate.memory_id], candidate.score, why(candidate)) for candidate in distinct]
    words = shown_tokens(question.query) if any(len(memory.content) > WINDOW_CHARACTERS for memory, _, _ in shown) else []
    budget = question.max_tokens - sum(map(line_cost, ranked.relations))
    hits = within_budget(shown, question.detail, budget, ranked.best_part(words), words=words, confirmed=ranked.confirmations)
    # A floor for reranked scores does not apply to the scores of candidates that were not reranked.
    comparable = not (reranked.done and floor.least)
    rest = len(floor.passing(ranked.candidates[len(reranked.pool) :])) if comparable else 0
    return Recalled(
        hits=hits,
        mode=_mode(question, meaning),
        reranked=reranked.done,
        degraded=tuple(dict.fromkeys(reason for reason in (meaning.skipped, by_meaning.skipped, reranked.skipped) if reason)),
        index_lag=ranked.index_lag,
        more=len(passing) - repeated + rest - len(hits),
        relations=ranked.relations,
        unmatched=ranked.unmatched,
        meant=tuple((entity.name, near) for entity, near in by_meaning.entities),
        best_score=round(max(map(floor.measure, reranked.pool)), 4) if reranked.pool and not hits else None,
    )


def _distinct(candidates: Sequence[Candidate], statements: Mapping[int, Statement], limit: int) -> tuple[list[Candidate], int]:
    """The first of these candidates that say different things, and how many before them say the same."""
    distinct: dict[Statement, Candidate] = {}
    repeated = 0
    for candidate in candidates:
        if candidate.memory_id not in statements or len(distinct) == limit:
            break
        repeated += (statement := statements[candidate.memory_id]) in distinct
        distinct.setdefault(statement, candidate)
    return list(distinct.values()), repeated


def statement_of(memory: Memory) -> Statement:
    """The content of a memory but for punctuation, width and case, and its stated time: the same of another time is different."""
    return _NOT_SAID.sub("", normalise(memory.content)) or memory.content, memory.occurred_at


def _mode(question: Question, meaning: Meaning) -> str:
    """The pipeline that ran, not the one that was asked for."""
    if question.mode in _NOT_RERANKED:
        return question.mode
    if meaning.index is None:
        return "keyword"
    return "semantic" if question.mode == "semantic" else "hybrid"


def _fetched(persona: Persona, question: Question) -> Recalled:
    """The memories with these keys, in that order, also from the trash."""
    with persona.database.read_briefly() as connection:
        return fetched(question, memories.by_keys(connection, question.keys))


def fetched(question: Question, by_key: Mapping[str, Memory]) -> Recalled:
    """The answer with those of the wanted memories that there are."""
    present = [(by_key[key], 1.0, {"key": True}) for key in question.keys if key in by_key]
    hits = within_budget(present, question.detail, question.max_tokens, with_metadata=question.detail != "index")
    missing = tuple(key for key in question.keys if key not in by_key)
    return Recalled(hits, "keys", False, (), 0, more=len(present) - len(hits), missing=missing)


def latest(persona: Persona, question: Question) -> list[Memory]:
    """The latest memories of one store that pass the filters, one more than are shown."""
    with persona.database.read_briefly() as connection:
        newest = memories.recent(connection, question.filters, question.top_k + 1 + SPARE_FOR_REPEATED)
        dropped = outdated(connection, newest, [memory.id for memory in newest if memory.supersedes])
    return [memory for memory in newest if memory.id not in dropped][: question.top_k + 1]


def recent(question: Question, shown: Sequence[Memory]) -> Recalled:
    """The answer with the first of these memories."""
    hits = within_budget([(memory, 1.0, {"recent": True}) for memory in shown[: question.top_k]], question.detail, question.max_tokens)
    return Recalled(hits, "recent", False, (), 0, more=len(shown) - len(hits))
