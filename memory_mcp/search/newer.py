"""A hit brings along what says that it no longer holds: both are in the answer, the newer one just before it. A plan of that kind is not upcoming."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from zoneinfo import ZoneInfo

import apsw

from memory_mcp.domain import Filters, Hit, Memory, Question, Recalled
from memory_mcp.language.budget import estimate_tokens
from memory_mcp.search.page import labels_cost, text_of
from memory_mcp.search.pooled import Stores, in_pool
from memory_mcp.store import memories, memory_dates
from memory_mcp.store.feedback import standing_against
from memory_mcp.store.graph import memory_links

# So many plans more than are wanted are read where some no longer hold.
SPARE = 10


def with_newer(recalled: Recalled, question: Question, stores: Stores, now: datetime) -> Recalled:
    """The answer with what is newer than a hit before it, within the limits of the question. A hit names in `superseded_by` what is newer.

    What was judged as outdated or misleading is not brought along.
    """
    if not recalled.hits or question.keys:
        return recalled
    found = stores.each(lambda number: _newer(stores, number, recalled.hits, stores.question(number, question, now)))
    newer = {key: memory for of_store in found.values() for key, memory in of_store.items()}
    if not newer:
        return recalled
    among = {hit.memory.key: hit for hit in recalled.hits}
    ordered: dict[str, Hit] = {}
    for hit in recalled.hits:
        later = newer.get(hit.memory.key)
        if later and later.key not in ordered:
            brought = among.get(later.key) or _brought(later, hit, question)
            ordered[later.key] = replace(brought, score=max(brought.score, hit.score))
        named = replace(hit, memory=replace(hit.memory, superseded_by=later.key)) if later else hit
        ordered.setdefault(hit.memory.key, named)
    hits = _within(list(ordered.values()), recalled, question)
    shown = {hit.memory.key for hit in hits}
    return replace(recalled, hits=hits, more=recalled.more + sum(key not in shown for key in among))


def upcoming(
    connection: apsw.Connection, now: datetime, end: datetime, zone: ZoneInfo, limit: int, characters: int | None = None
) -> list[Memory]:
    """What is to come (`memories.upcoming`) without plans that no longer hold, and without what only names the days of such a plan: 「29日の花見は中止」."""
    plans = memories.upcoming(connection, now, end, zone, limit + SPARE, characters)
    replaced = memory_links.newest(connection, [plan.id for plan in plans], Filters())
    earlier = {plan.id: memory_links.newer_and_earlier(connection, plan.id)[1] for plan in plans}
    days = memory_dates.of_memories(connection, {*earlier, *(old for olds in earlier.values() for old in olds)})

    def holds(plan: Memory) -> bool:
        of_earlier = {span for old in earlier[plan.id] for span in days.get(old, ())}
        return plan.id not in replaced and not (of_earlier and plan.occurred_at is None and {*days.get(plan.id, ())} <= of_earlier)

    return [plan for plan in plans if holds(plan)][:limit]


def _newer(stores: Stores, number: int, hits: Sequence[Hit], question: Question) -> Mapping[str, Memory]:
    """The key of a hit in this store → what is newer, by the keys that the caller uses."""
    pool = stores.pool(number)
    keys = {hit.memory.id: hit.memory.key for hit in hits if hit.pool == pool}
    if not keys:
        return {}
    with stores[number].database.read_briefly() as connection:
        newest = memory_links.newest(connection, keys, question.filters)
        if not newest:
            return {}
        against = standing_against(connection, list(newest.values()))
        by_id = memories.by_ids(connection, newest.values())
    return {keys[earlier]: in_pool(pool, by_id[later]) for earlier, later in newest.items() if later not in against}


def _brought(memory: Memory, hit: Hit, question: Question) -> Hit:
    text = text_of(memory, question.detail)
    return Hit(memory, hit.score, {"newer": True}, text, truncated=text != memory.content, pool=hit.pool)


def _within(hits: Sequence[Hit], recalled: Recalled, question: Question) -> tuple[Hit, ...]:
    """As many of these hits as the question wants, and no more tokens than it allows or the answer had before."""
    costs = {hit.memory.key: labels_cost(hit.memory) + estimate_tokens(hit.text) for hit in (*recalled.hits, *hits)}
    left = max(question.max_tokens, sum(costs[hit.memory.key] for hit in recalled.hits))
    kept: list[Hit] = []
    for hit in hits[: question.top_k]:
        left -= costs[hit.memory.key]
        if kept and left < 0:
            break
        kept.append(hit)
    return tuple(kept)
