"""The context of a conversation, in layers and within a budget: what matters most, the topic, summaries, what is to come, the latest memories."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial

import apsw

from memory_mcp.config.settings import Settings
from memory_mcp.domain import Filters, Hit, Memory, Question, Recalled
from memory_mcp.encoders.models import Models
from memory_mcp.language.low_value import low_value
from memory_mcp.language.tokens import jaccard, query_tokens, tokens
from memory_mcp.personas.registry import Persona
from memory_mcp.search import newer
from memory_mcp.search.context_budget import Layered, shared
from memory_mcp.search.pooled import NO_POOLS, Pools, latest_of_pools, recall
from memory_mcp.search.reading import statement_of
from memory_mcp.search.roles import by_assistant
from memory_mcp.search.time_asked import shifted
from memory_mcp.store import memories
from memory_mcp.store.graph import memory_links
from memory_mcp.store.summary_rows import EXTRACTIVE, MADE_BY
from memory_mcp.store.vectors.index_cache import IndexCache

AT_MOST = 10
# Extra matches from which the most diverse are chosen. Each costs the cross-encoder three pairs.
SPARE_MATCHES = 3
# The number of latest memories among which informative ones are looked for, more where the first few are not enough; and the number of
# summaries among which different ones are looked for.
LATEST_POOLS, SUMMARIES_POOL = (20, 60), 20
# From which share of common tokens on two summaries are alike, and two of the latest memories: 「今日の昼は鮭弁当」, 「今日の昼はのり弁当」.
SAME_SUMMARY, SAME_LATEST = 0.6, 0.5
# So many of an assistant's lines are among the latest memories.
ASSISTANTS_LINES = 1

# What tells an assistant's lines among some memories.
Assistants = Callable[[Sequence[Memory]], Callable[[Memory], bool]]


@dataclass(frozen=True, slots=True)
class Context:
    """The hits with their layers, and the recall of the topical layer (None without a query)."""

    hits: tuple[Layered, ...]
    recalled: Recalled | None


def context(
    persona: Persona,
    query: str,
    pools: Pools = NO_POOLS,
    *,
    session_id: str | None = None,
    max_tokens: int,
    models: Models,
    settings: Settings,
    now: datetime,
    indexes: IndexCache | None = None,
    deadline: float | None = None,
) -> Context:
    """At most 10 memories for a conversation, none twice. Those that matter most come first, then the topical ones: they are the reason for the query.
    With a `session_id` the latest are those of that conversation.

    The topic gets the hits that summaries leave: docs/decisions/0017-layers-of-a-context.md. Of pools it shows what fits the topic, and their
    latest memories where the persona has too few of its own: docs/decisions/0038-pools-and-packs.md.
    """
    layers = settings.context
    # Where expired memories can't be moved to the trash, nothing is shown that may repeat one.
    filters = Filters(unexpired_at=now if persona.has_expired else None)
    with persona.database.read_briefly() as connection:
        core = memories.core(connection, layers.core_importance, filters, layers.core) if layers.core else []
        told = replace(filters, session_id=session_id)
        current = _latest_current(connection, told, AT_MOST + layers.recent, partial(by_assistant, persona))
        upcoming = (
            newer.upcoming(connection, now, shifted(now, timedelta(days=layers.upcoming_days)), settings.zone, layers.upcoming)
            if layers.upcoming and not filters
            else []
        )
        latest_summaries = memories.recent(connection, Filters(kind="summary"), SUMMARIES_POOL) if not filters else []
    shown = "\n".join(memory.content for memory in (*core, *upcoming, *current[: layers.recent]))
    summaries = _dissimilar((summary for summary in latest_summaries if _adds(summary, shown)), layers.summaries)
    if query:  # plans take the places of all summaries but one first, then those of the topic
        summaries = summaries[: max(layers.summaries - len(upcoming), min(layers.summaries, 1))]
    spare = layers.summaries - len(summaries) - len(upcoming)
    topical_count = max(layers.semantic + spare, min(layers.semantic, 1))
    recalled = None
    if query and topical_count:
        question = Question(query=query, top_k=topical_count + SPARE_MATCHES, max_tokens=100_000)
        recalled = recall(persona, question, pools, models=models, settings=settings, now=now, indexes=indexes, deadline=deadline)
    informative = [hit for hit in recalled.hits if not low_value(hit.memory.content)] if recalled else []
    topical = diverse(informative, topical_count, layers.mmr_lambda)
    latest = [_whole(memory) for memory in current]
    if pools and len(latest) < layers.recent and not session_id:
        latest += latest_of_pools(
            persona,
            pools,
            lambda connection: _latest_current(connection, Filters(unexpired_at=now), AT_MOST, partial(by_assistant, persona)),
        )
    layered = _distinct(core, topical, summaries, upcoming, latest, layers.recent)[:AT_MOST]
    return Context(shared(layered, max_tokens, query_tokens(query)), recalled)


def diverse(hits: Sequence[Hit], count: int, relevance_weight: float) -> list[Hit]:
    """The `count` hits that are relevant and different from each other: maximal marginal relevance (Carbonell & Goldstein 1998).

    `relevance_weight` is its λ, from 0 to 1; similarity is the share of the tokens that two contents have in common.
    """
    words = {hit.memory.key: set(tokens(hit.memory.content)) for hit in hits}
    top = max((hit.score for hit in hits), default=0.0) or 1.0
    chosen: list[Hit] = []
    waiting = list(hits)

    def marginal(hit: Hit) -> float:
        similarity = max((jaccard(words[hit.memory.key], words[other.memory.key]) for other in chosen), default=0.0)
        return relevance_weight * hit.score / top - (1 - relevance_weight) * similarity

    while waiting and len(chosen) < count:
        best = max(waiting, key=marginal)
        chosen.append(best)
        waiting.remove(best)
    return chosen


def _latest_current(connection: apsw.Connection, filters: Filters, wanted: int, assistants: Assistants) -> list[Memory]:
    """The latest informative memories without those that no longer hold because of another, and of assistants' lines only the latest."""
    fresh = _latest_informative(connection, filters, wanted, assistants)
    dropped = memory_links.newest(connection, [memory.id for memory in fresh], Filters())
    return [memory for memory in fresh if memory.id not in dropped]


def _latest_informative(connection: apsw.Connection, filters: Filters, wanted: int, assistants: Assistants) -> list[Memory]:
    """The latest memories that are informative: as many as are `wanted`, or as there are among the latest. Agents say a lot while they work: of the lines of
    assistants only the `ASSISTANTS_LINES` latest, unless nobody else spoke."""
    informative: list[Memory] = []
    shown: list[Memory] = []
    for pool in LATEST_POOLS:
        latest = memories.recent(connection, filters, pool)
        informative = [memory for memory in latest if not low_value(memory.content)]
        theirs = list(filter(assistants(informative), informative))
        kept = {memory.id for memory in theirs[:ASSISTANTS_LINES]}
        further = {memory.id for memory in theirs} - kept
        shown = [memory for memory in informative if memory.id not in further]
        if len(shown) >= wanted or len(latest) < pool:
            break
    return shown if len(shown) > ASSISTANTS_LINES else informative


def _adds(summary: Memory, shown: str) -> bool:
    """False for a summary made of sentences of which most are shown anyway. What a model wrote says it in fewer words."""
    if not str(summary.metadata.get(MADE_BY, "")).startswith(EXTRACTIVE):
        return True
    sentences = [line.removeprefix("- ") for line in summary.content.splitlines()[1:]]
    repeated = [sentence for sentence in sentences if sentence in shown or (sentence.partition(": ")[2] or sentence) in shown]
    return 2 * len(repeated) < len(sentences)


def _dissimilar(summaries: Iterable[Memory], count: int) -> list[Memory]:
    """The latest summaries without those similar to a later one: a day may consist of one conversation."""
    chosen: list[tuple[Memory, set[str]]] = []
    for summary in summaries:
        if len(chosen) == count:
            break
        words = set(tokens(summary.content))
        if all(jaccard(words, others) < SAME_SUMMARY for _, others in chosen):
            chosen.append((summary, words))
    return [summary for summary, _ in chosen]


def _distinct(
    core: Iterable[Memory],
    topical: Iterable[Hit],
    summaries: Iterable[Memory],
    upcoming: Iterable[Memory],
    latest: Iterable[Hit],
    recent: int,
) -> list[Layered]:
    """Each memory once and whole, in the first layer that has it; `recent` of the latest, which say nothing twice."""
    seen: dict[str, Layered] = {}
    for memory in core:
        seen.setdefault(memory.key, ("core", _whole(memory)))
    for hit in topical:
        seen.setdefault(hit.memory.key, ("semantic", hit))
    for memory in summaries:
        seen.setdefault(memory.key, ("summary", _whole(memory)))
    for memory in upcoming:
        seen.setdefault(memory.key, ("upcoming", _whole(memory)))
    said = {statement_of(hit.memory) for _, hit in seen.values()}
    fresh: list[Hit] = []
    for hit in latest:
        if (statement := statement_of(hit.memory)) not in said:
            said.add(statement)
            fresh.append(hit)
    return [*seen.values(), *(("recent", hit) for hit in _different_first(fresh, recent))]


def _different_first(latest: Sequence[Hit], count: int) -> list[Hit]:
    """So many of the latest, in their order: those that are nearly another one only where there is nothing else."""
    if len(latest) <= count:
        return list(latest)
    words = [set(tokens(hit.memory.content)) for hit in latest]
    different: list[int] = []
    for index, own in enumerate(words):
        if all(jaccard(own, words[other]) < SAME_LATEST for other in different):
            different.append(index)
    alike = (index for index in range(len(latest)) if index not in different)
    return [latest[index] for index in sorted([*different, *alike][:count])]


def _whole(memory: Memory) -> Hit:
    return Hit(memory, 1.0, {}, memory.content)
