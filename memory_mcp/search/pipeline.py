"""The steps of a recall: the pool of the best candidates (`ranking`) → rerank → page.

The database is read in one snapshot between the two models; no connection is held while a model works. The answer names the pipeline that ran
and what was missing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from memory_mcp import time_limit
from memory_mcp.config.settings import Settings
from memory_mcp.domain import Memory, Question, Recalled
from memory_mcp.encoders.models import Models
from memory_mcp.encoders.worker_pool import on_behalf_of
from memory_mcp.graph.query.entities_by_meaning import QUESTION_FLOOR, EntitiesByMeaning, entities_by_meaning
from memory_mcp.graph.query.retrieval import entities_in_query
from memory_mcp.language.budget import line_cost
from memory_mcp.language.excerpt import WINDOW_CHARACTERS
from memory_mcp.personas.registry import Persona
from memory_mcp.search.candidates import shown_tokens
from memory_mcp.search.meaning import Meaning, meaning_of
from memory_mcp.search.page import Floor, floor_for, why, within_budget
from memory_mcp.search.ranking import NOT_RERANKED, SPARE_FOR_REPEATED, Ranked, Search, people_first, rank
from memory_mcp.search.reading import distinct
from memory_mcp.search.rerank import Reranked, part, passage, rerank
from memory_mcp.search.roles import by_assistant
from memory_mcp.search.time_asked import TimeAsked, time_asked
from memory_mcp.store import memories
from memory_mcp.store.vectors.index_cache import IndexCache


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
        return recent(question, latest(persona, question, asked, settings))
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
        ranked = rank(Search(persona, connection, question, asked, meaning, models, settings, now), by_meaning, whole_pool=whole_pool)
    return Found(meaning, by_meaning, ranked)


def answer(question: Question, found: Found, models: Models, settings: Settings, deadline: float | None) -> Recalled:
    """The hits among what was found, in the order of the cross-encoder if it has the time."""
    time_limit.check()
    reranked = _reranked(found.ranked, question, models, settings, deadline)
    floor = floor_for(settings, models, found.meaning, reranked=reranked.done)
    return _answer(question, floor, found.meaning, found.ranked, reranked, found.by_meaning)


def _entities_by_meaning(persona: Persona, question: Question, models: Models) -> EntitiesByMeaning:
    """The entities that a query of `mode=graph` means if it names none."""
    if question.mode != "graph":
        return EntitiesByMeaning()
    with persona.database.read() as connection:
        named = entities_in_query(connection, persona.names, question.query)
    return EntitiesByMeaning() if named.shares else entities_by_meaning(persona, question.query, models, QUESTION_FLOOR)


def _reranked(ranked: Ranked, question: Question, models: Models, settings: Settings, deadline: float | None) -> Reranked:
    """The pool with what the cross-encoder adds, unless the mode has another order."""
    if question.mode in NOT_RERANKED:
        return Reranked(ranked.pool)
    words = shown_tokens(question.query) if models.reranker else []
    best_part = ranked.best_part(words)
    passages = {memory_id: passage(memory, best_part) for memory_id, memory in ranked.memories.items()} if models.reranker else {}

    def part_of(memory_id: int) -> str:
        memory = ranked.memories[memory_id]
        return part(memory, words, best_part(memory))

    return rerank(ranked.pool, question, passages, part_of, models, settings, deadline)


def _answer(
    question: Question, floor: Floor, meaning: Meaning, ranked: Ranked, reranked: Reranked, by_meaning: EntitiesByMeaning
) -> Recalled:
    passing = floor.passing(reranked.pool)
    different, repeated = distinct(passing, ranked.statements, question.top_k)
    shown = [(ranked.memories[candidate.memory_id], candidate.score, why(candidate)) for candidate in different]
    words = shown_tokens(question.query) if any(len(memory.content) > WINDOW_CHARACTERS for memory, _, _ in shown) else []
    budget = question.max_tokens - sum(map(line_cost, ranked.relations))
    judged = {candidate.memory_id: candidate.verdict for candidate in different if candidate.verdict}
    confirmed = {
        **ranked.confirmations,
        **{which: replace(ranked.confirmations[which], judged=verdict) for which, verdict in judged.items()},
    }
    hits = within_budget(shown, question.detail, budget, ranked.best_part(words), words=words, confirmed=confirmed)
    rest = len(floor.passing(ranked.candidates[len(reranked.pool) :]))
    lacking = (meaning.replaced.reason if meaning.replaced else None, meaning.skipped, by_meaning.skipped, reranked.skipped)
    return Recalled(
        hits=hits,
        mode=_mode(question, meaning),
        reranked=reranked.done,
        degraded=tuple(dict.fromkeys(filter(None, lacking))),
        index_lag=ranked.index_lag,
        more=len(passing) - repeated + rest - len(hits),
        relations=ranked.relations,
        unmatched=ranked.unmatched,
        meant=tuple((entity.name, near) for entity, near in by_meaning.entities),
        best_score=round(max(map(floor.measure, reranked.pool)), 4) if reranked.pool and not hits else None,
        embedder=meaning.replaced.name if meaning.replaced and meaning.index else None,
    )


def _mode(question: Question, meaning: Meaning) -> str:
    """The pipeline that ran, not the one that was asked for."""
    if question.mode in NOT_RERANKED:
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


def latest(persona: Persona, question: Question, asked: TimeAsked, settings: Settings) -> list[Memory]:
    """The latest memories of one store that pass the filters, one more than are shown."""
    count = question.top_k + 1
    with persona.database.read_briefly() as connection:
        newest = memories.recent(connection, question.filters, (count + SPARE_FOR_REPEATED) * (2 if asked.is_vague else 1))
    return in_order(persona, newest, asked, settings)[:count]


def in_order(persona: Persona, newest: Sequence[Memory], asked: TimeAsked, settings: Settings) -> list[Memory]:
    """The latest memories first; for a question such as 「最近何があった？」 first what people said, then what an assistant said."""
    with_people_first = asked.is_vague and people_first(asked.query, settings)
    return sorted(newest, key=by_assistant(persona, newest)) if with_people_first else list(newest)


def recent(question: Question, shown: Sequence[Memory]) -> Recalled:
    """The answer with the first of these memories."""
    hits = within_budget([(memory, 1.0, {"recent": True}) for memory in shown[: question.top_k]], question.detail, question.max_tokens)
    return Recalled(hits, "recent", False, (), 0, more=len(shown) - len(hits))
