"""How a question is answered: candidates (meaning · words · named dates) → fuse → pool of top_k×3 → rerank → page.

Everything happens in one snapshot of the persona's database. The answer names the pipeline that ran and what was missing.
"""

from datetime import datetime

import apsw

from memory_mcp.config.settings import Settings
from memory_mcp.domain import Candidate, Hit, Question, Recalled
from memory_mcp.encoders.models import Models
from memory_mcp.personas.registry import Persona
from memory_mcp.search.candidates import from_meaning, from_named_dates, from_words, union
from memory_mcp.search.fuse import fuse
from memory_mcp.search.page import why, within_budget
from memory_mcp.search.rerank import rerank
from memory_mcp.store import memories
from memory_mcp.text.timewords import named_dates

POOL_FACTOR = 3


def recall(persona: Persona, question: Question, *, models: Models, settings: Settings, now: datetime) -> Recalled:
    """The memories of this persona that answer the question best."""
    with persona.database.read() as connection:
        if question.keys:
            return _fetched(connection, question)
        if question.mode == "recent" and not question.query:
            return _recent(connection, question)
        return _searched(connection, question, models, settings, now)


def _searched(connection: apsw.Connection, question: Question, models: Models, settings: Settings, now: datetime) -> Recalled:
    named = named_dates(question.query, now, settings.zone)
    meaning = from_meaning(question, models)
    words = from_words(connection, question, settings.fusion.candidates_per_source)
    dates = from_named_dates(connection, named, question.filters)
    candidates = union(connection, question, meaning, words, dates)
    happened = memories.event_times(connection, [candidate.memory_id for candidate in candidates])
    ranked = fuse(candidates, settings.fusion, named, happened)
    if question.mode == "recent":
        ranked.sort(key=lambda candidate: happened[candidate.memory_id], reverse=True)
    reranked = rerank(ranked[: question.top_k * POOL_FACTOR], models)
    passing = [candidate for candidate in reranked.pool if candidate.score >= settings.min_score]
    return Recalled(
        hits=(hits := _hits(connection, passing[: question.top_k], question)),
        mode="recent" if question.mode == "recent" else "keyword",
        reranked=reranked.done,
        degraded=tuple(reason for reason in (meaning.skipped, reranked.skipped) if reason),
        index_lag=0,
        more=len([candidate for candidate in ranked if candidate.score >= settings.min_score]) - len(hits),
        best_score=round(ranked[0].score, 4) if ranked and not hits else None,
    )


def _hits(connection: apsw.Connection, candidates: list[Candidate], question: Question) -> tuple[Hit, ...]:
    found = memories.by_ids(connection, [candidate.memory_id for candidate in candidates])
    ranked = [(found[candidate.memory_id], candidate.score, why(candidate)) for candidate in candidates]
    return within_budget(ranked, question.detail, question.max_tokens)


def _fetched(connection: apsw.Connection, question: Question) -> Recalled:
    """The memories with the keys that the caller named, in that order, whatever their state."""
    found = memories.by_keys(connection, question.keys)
    present = [(found[key], 1.0, {"key": True}) for key in question.keys if key in found]
    hits = within_budget(present, question.detail, question.max_tokens)
    missing = tuple(key for key in question.keys if key not in found)
    return Recalled(hits, "keys", False, (), 0, more=len(present) - len(hits), missing=missing)


def _recent(connection: apsw.Connection, question: Question) -> Recalled:
    """The latest memories that pass the filters."""
    found = memories.recent(connection, question.filters, question.top_k + 1)
    hits = within_budget([(memory, 1.0, {"recent": True}) for memory in found[: question.top_k]], question.detail, question.max_tokens)
    return Recalled(hits, "recent", False, (), 0, more=len(found) - len(hits))
