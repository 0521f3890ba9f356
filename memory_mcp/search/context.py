"""What a conversation starts with, in layers and within a budget: the latest, what fits the topic, the summaries."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from memory_mcp.config.settings import Settings
from memory_mcp.domain import Filters, Hit, Memory, Question, Recalled
from memory_mcp.encoders.models import Models
from memory_mcp.personas.registry import Persona
from memory_mcp.search.page import within_budget
from memory_mcp.search.pipeline import recall
from memory_mcp.store import memories
from memory_mcp.store.index_shelf import IndexShelf
from memory_mcp.text.low_value import low_value
from memory_mcp.text.tokens import jaccard, tokens

RECENT, SEMANTIC, SUMMARIES, AT_MOST = 5, 3, 2, 10
# Among so many of the latest those are looked for that say something, and among so many summaries those that are of different things.
LATEST_POOL, SUMMARIES_POOL = 60, 6
SAME_SUMMARY = 0.6
# How many matches the most diverse are chosen from, and how much relevance counts against sameness (Carbonell & Goldstein 1998).
DIVERSE_POOL = 6
MMR_LAMBDA = 0.7

Layer = Literal["recent", "semantic", "summary"]


@dataclass(frozen=True, slots=True)
class Context:
    """The layers, each hit with the one it came from, and what recall said of the topical layer (None without a query)."""

    hits: tuple[tuple[Layer, Hit], ...]
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
    """At most 10 memories for a new conversation, none twice. Topical ones come first: they are the reason for the query."""
    recalled = None
    if query:
        question = Question(query=query, top_k=DIVERSE_POOL, max_tokens=100_000)
        recalled = recall(persona, question, models=models, settings=settings, now=now, indexes=indexes, deadline=deadline)
    with persona.database.read() as connection:
        latest = memories.recent(connection, Filters(), LATEST_POOL)
        summaries = memories.recent(connection, Filters(kind="summary"), SUMMARIES_POOL)
    telling = [hit for hit in recalled.hits if not low_value(hit.memory.content)] if recalled else []
    topical = [hit.memory for hit in diverse(telling, SEMANTIC)]
    fresh = [memory for memory in latest if memory.kind != "summary" and not low_value(memory.content)]
    layered = _distinct(topical, _unlike(summaries, SUMMARIES), fresh)[:AT_MOST]
    hits = within_budget([(memory, 1.0, {}) for _, memory in layered], "full", max_tokens)
    return Context(tuple((layer, hit) for (layer, _), hit in zip(layered, hits, strict=False)), recalled)


def diverse(hits: Sequence[Hit], count: int) -> list[Hit]:
    """The `count` hits that are relevant and unlike each other (maximal marginal relevance over the tokens they share)."""
    words = {hit.memory.id: set(tokens(hit.memory.content)) for hit in hits}
    top = max((hit.score for hit in hits), default=0.0) or 1.0
    chosen: list[Hit] = []
    waiting = list(hits)

    def marginal(hit: Hit) -> float:
        sameness = max((jaccard(words[hit.memory.id], words[other.memory.id]) for other in chosen), default=0.0)
        return MMR_LAMBDA * hit.score / top - (1 - MMR_LAMBDA) * sameness

    while waiting and len(chosen) < count:
        best = max(waiting, key=marginal)
        chosen.append(best)
        waiting.remove(best)
    return chosen


def _unlike(summaries: Sequence[Memory], count: int) -> list[Memory]:
    """The latest summaries, without those that say what a later one says: a day may consist of one conversation."""
    chosen: list[Memory] = []
    for summary in summaries:
        words = set(tokens(summary.content))
        if all(jaccard(words, set(tokens(other.content))) < SAME_SUMMARY for other in chosen):
            chosen.append(summary)
    return chosen[:count]


def _distinct(topical: Iterable[Memory], summaries: Iterable[Memory], latest: Iterable[Memory]) -> list[tuple[Layer, Memory]]:
    """Each memory once, in the first layer that has it; RECENT of the latest."""
    seen: dict[int, tuple[Layer, Memory]] = {}
    for memory in topical:
        seen.setdefault(memory.id, ("semantic", memory))
    for memory in summaries:
        seen.setdefault(memory.id, ("summary", memory))
    fresh = [memory for memory in latest if memory.id not in seen]
    return [*seen.values(), *(("recent", memory) for memory in fresh[:RECENT])]
