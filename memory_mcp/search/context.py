"""What a conversation starts with, in layers and within a budget: the latest, what fits the topic, the summaries."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

import apsw

from memory_mcp.config.settings import Settings
from memory_mcp.domain import Filters, Hit, Memory, Question, Recalled
from memory_mcp.encoders.models import Models
from memory_mcp.personas.registry import Persona
from memory_mcp.search.layers import Layered, shared
from memory_mcp.search.pipeline import recall
from memory_mcp.store import memories
from memory_mcp.store.vectors.index_cache import IndexShelf
from memory_mcp.text.low_value import low_value
from memory_mcp.text.tokens import jaccard, query_tokens, tokens

AT_MOST = 10
# So many more matches than places for them: the most diverse are chosen. Each costs the cross-encoder three pairs.
SPARE_MATCHES = 3
# Among so many of the latest those are looked for that say something: among more where the first few don't say enough. And among so many
# summaries those that are of different things.
LATEST_POOLS, SUMMARIES_POOL = (20, 60), 20
SAME_SUMMARY = 0.6


@dataclass(frozen=True, slots=True)
class Context:
    """The layers, each hit with the one it came from, and what recall said of the topical layer (None without a query)."""

    hits: tuple[Layered, ...]
    recalled: Recalled | None


def context(
    persona: Persona,
    query: str,
    *,
    max_tokens: int,
    models: Models,
    settings: Settings,
    now: datetime,
    indexes: IndexShelf | None = None,
    deadline: float | None = None,
) -> Context:
    """At most 10 memories for a new conversation, none twice. Topical ones come first: they are the reason for the query.

    The places that no summary takes are the topic's: docs/decisions/0017-layers-of-a-context.md.
    """
    layers = settings.context
    with persona.database.read_briefly() as connection:
        fresh = _telling(connection, AT_MOST + layers.recent)
        summaries = _unlike(memories.recent(connection, Filters(kind="summary"), SUMMARIES_POOL), layers.summaries)
    places = layers.semantic + layers.summaries - len(summaries)
    recalled = None
    if query and places:
        question = Question(query=query, top_k=places + SPARE_MATCHES, max_tokens=100_000)
        recalled = recall(persona, question, models=models, settings=settings, now=now, indexes=indexes, deadline=deadline)
    telling = [hit for hit in recalled.hits if not low_value(hit.memory.content)] if recalled else []
    topical = diverse(telling, places, layers.mmr_lambda)
    layered = _distinct(topical, summaries, fresh, layers.recent)[:AT_MOST]
    return Context(shared(layered, max_tokens, query_tokens(query)), recalled)


def diverse(hits: Sequence[Hit], count: int, relevance_weight: float) -> list[Hit]:
    """The `count` hits that are relevant and unlike each other: maximal marginal relevance (Carbonell & Goldstein 1998).

    `relevance_weight` is its λ, from 0 to 1; likeness is the share of the tokens that two contents have in common.
    """
    words = {hit.memory.id: set(tokens(hit.memory.content)) for hit in hits}
    top = max((hit.score for hit in hits), default=0.0) or 1.0
    chosen: list[Hit] = []
    waiting = list(hits)

    def marginal(hit: Hit) -> float:
        sameness = max((jaccard(words[hit.memory.id], words[other.memory.id]) for other in chosen), default=0.0)
        return relevance_weight * hit.score / top - (1 - relevance_weight) * sameness

    while waiting and len(chosen) < count:
        best = max(waiting, key=marginal)
        chosen.append(best)
        waiting.remove(best)
    return chosen


def _telling(connection: apsw.Connection, wanted: int) -> list[Memory]:
    """The latest memories that say something: so many as are `wanted`, or as there are among the latest."""
    telling: list[Memory] = []
    for pool in LATEST_POOLS:
        latest = memories.recent(connection, Filters(), pool, without_summaries=True)
        telling = [memory for memory in latest if not low_value(memory.content)]
        if len(telling) >= wanted or len(latest) < pool:
            break
    return telling


def _unlike(summaries: Sequence[Memory], count: int) -> list[Memory]:
    """The latest summaries, without those that say what a later one says: a day may consist of one conversation."""
    chosen: list[Memory] = []
    for summary in summaries:
        words = set(tokens(summary.content))
        if all(jaccard(words, set(tokens(other.content))) < SAME_SUMMARY for other in chosen):
            chosen.append(summary)
    return chosen[:count]


def _distinct(topical: Iterable[Hit], summaries: Iterable[Memory], latest: Iterable[Memory], recent: int) -> list[Layered]:
    """Each memory once and whole, in the first layer that has it; `recent` of the latest."""
    seen: dict[int, Layered] = {}
    for hit in topical:
        seen.setdefault(hit.memory.id, ("semantic", hit))
    for memory in summaries:
        seen.setdefault(memory.id, ("summary", _whole(memory)))
    fresh = [memory for memory in latest if memory.id not in seen]
    return [*seen.values(), *(("recent", _whole(memory)) for memory in fresh[:recent])]


def _whole(memory: Memory) -> Hit:
    return Hit(memory, 1.0, {}, memory.content)
