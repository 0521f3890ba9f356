"""The hits of an answer: those that reach the minimum score and say different things, cut to fit the token budget, each with what is newer."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import apsw
import numpy as np

from memory_mcp import time_limit
from memory_mcp.config.settings import Settings
from memory_mcp.domain import Confirmation, Detail, Filters, Hit, Memory, Question, Recalled
from memory_mcp.encoders.model_families import own_name
from memory_mcp.encoders.models import Models
from memory_mcp.language.budget import WINDOW_CHARACTERS, Span, best_window, cut_to_tokens, estimate_tokens, excerpt
from memory_mcp.language.sentences import CHUNK_CHARACTERS, micro_summary
from memory_mcp.language.tokens import normalise
from memory_mcp.search.candidates import Column
from memory_mcp.search.meaning import Meaning
from memory_mcp.search.signals import Order, Scored
from memory_mcp.search.stores import Stores, in_pool
from memory_mcp.store import memories, memory_dates
from memory_mcp.store.feedback import standing_against
from memory_mcp.store.graph import memory_links
from memory_mcp.store.lexical import bm25_index
from memory_mcp.store.memory_rows import confirmed_memories
from memory_mcp.store.vectors import chunks
from memory_mcp.tracing import spanned

# Further candidates that are read, in case some say the same as others.
SPARE_FOR_REPEATED = 5
# Tokens of a hit besides its text, where an answer is read as text: key, dates and age, and punctuation.
HIT_OVERHEAD_TOKENS = 14
WORTH_CUTTING_TOKENS = 40
# Tokens of the first hit's text that are always shown, whatever its labels cost.
LEAST_TEXT_TOKENS = 12
NOWHERE: Span = (0, 0)
NOT_READ: Mapping[str, Confirmation] = {}
_NOT_SAID = re.compile(r"[\W_]+")


# What a memory says, and its stated time, or those that its text names.
Statement = tuple[str, object]


@dataclass(frozen=True, slots=True)
class Floor:
    """The value that a candidate needs to be a hit, `by` its score, its cosine, or the score of the cross-encoder. 0 passes everything."""

    least: float = 0.0
    by: Literal["score", "cosine", "reranker"] = "score"

    def measure(self, scored: Scored) -> Column:
        """The values to compare with the floor. What is of a named date reaches that of a model. What has no cosine yet does, too;
        what the cross-encoder did not read doesn't."""
        if self.by == "score":
            return scored.score
        candidates = scored.candidates
        measured = np.nan_to_num(candidates.cross_score) if self.by == "reranker" else np.nan_to_num(candidates.dense, nan=1.0)
        return np.where(candidates.dates > 0, 1.0, measured)

    def passing(self, scored: Scored, rows: Sequence[int]) -> Sequence[int]:
        """The rows that reach it, in their order."""
        if not self.least:
            return rows
        measured = self.measure(scored)
        return [row for row in rows if measured[row] >= self.least]


@dataclass(frozen=True, slots=True)
class Best:
    """What was read of the best rows: the memories, the statement of each and what confirms it, the spans of their nearest chunks, the
    rows that are `gone` since they were found, by the keys of memories what is `newer`, and how rare the words of the question are that
    each row has (`held`), all of them in each store (`asked`)."""

    memories: dict[int, Memory] = field(default_factory=dict)
    statements: dict[int, Statement] = field(default_factory=dict)
    confirmations: dict[int, Confirmation] = field(default_factory=dict)
    spans: dict[int, Span] = field(default_factory=dict)
    gone: set[int] = field(default_factory=set)
    newer: dict[str, Memory] = field(default_factory=dict)
    held: dict[int, float] = field(default_factory=dict)
    asked: dict[int, float] = field(default_factory=dict)

    def still_there(self, rows: Sequence[int]) -> list[int]:
        """Those of the rows that are not gone."""
        return [row for row in rows if row not in self.gone]

    def span_to_show(self, row: int, words: Sequence[str]) -> Span:
        """The span of a memory to show: within its nearest chunk, if it has several, where the query's words are."""
        time_limit.check()
        content = self.memories[row].content
        return best_window(content, words, self.spans.get(row) or (0, len(content)))


def floor_for(settings: Settings, models: Models, meaning: Meaning, *, reranked: bool) -> Floor:
    """The floor of an answer, on the scale of the model that judges its hits.

    It is that of `min_scores`, or `min_score`, for the cross-encoder if it read the hits, or that of the embedding model if that
    was used, else `min_score`.
    """
    embedder = models.of_generation(meaning.generation) if meaning.index else None
    if reranked and models.reranker:
        return Floor(_of_model(settings, models.reranker.name, settings.min_score), by="reranker")
    by_cosine = _of_model(settings, embedder.name) if embedder else 0.0
    return Floor(by_cosine, by="cosine") if by_cosine else Floor(settings.min_score)


def _of_model(settings: Settings, name: str, otherwise: float = 0.0) -> float:
    """The value in `min_scores` for the model's name, with or without its organization or directory."""
    floors = settings.min_scores
    return floors.get(name, next((least for model, least in floors.items() if own_name(model) == own_name(name)), otherwise))


def read_best(stores: Stores, order: Order, floor: Floor, *, with_whole_head: bool) -> Best:
    """The memories that may be shown, or the whole head of the order, which only a cross-encoder needs: first as many as are shown, then others,
    if some say the same."""
    best, keys, count = Best(), order.scored.candidates.keys, order.scored.parsed.question.top_k
    wanted = order.head if with_whole_head else floor.passing(order.scored, order.head)[: count + SPARE_FOR_REPEATED]
    for some in (wanted,) if with_whole_head else (wanted[:count], wanted[count:]):
        time_limit.check()
        stores.each(lambda number, some=some: _read_from(stores, number, order, some, best), {keys[row][0] for row in some})  # type: ignore[misc]
        best.gone.update(row for row in some if row not in best.memories)
        if len(distinct([row for row in some if row not in best.gone], best.statements, count)[0]) == count:
            break
    return best


def _read_from(stores: Stores, number: int, order: Order, rows: Sequence[int], best: Best) -> None:
    candidates, parsed, pool = order.scored.candidates, order.scored.parsed, stores.pool(number)
    by_id = {candidates.keys[row][1]: row for row in rows if candidates.keys[row][0] == number}
    with stores[number].database.read_briefly() as connection:
        found, confirmed = confirmed_memories(connection, list(by_id), parsed.now)
        current = {memory_id: memory for memory_id, memory in found.items() if not (memory.deleted_at or memory.superseded_by)}
        said = {memory_id: statement_of(memory) for memory_id, memory in current.items()}
        if len(set(said.values())) < len(said):  # 「今日は走った」 of another day is another statement
            times = memory_dates.of_memories(connection, [memory_id for memory_id, (_, stated) in said.items() if stated is None])
            said |= {memory_id: (said[memory_id][0], tuple(named)) for memory_id, named in times.items()}
        nearest = [chunk for row in by_id.values() if (chunk := candidates.chunks[row]) is not None]
        spans = chunks.spans(connection, nearest) if nearest else {}
        newer = _newer(connection, list(current), stores.question(number, parsed.question, parsed.now).filters)
        if parsed.is_judged:
            held, best.asked[number] = bm25_index.held(connection, parsed.telling_tokens, list(current), stores[number].words)
            best.held.update((by_id[memory_id], share) for memory_id, share in held.items())
    for memory_id, memory in current.items():
        row = by_id[memory_id]
        best.memories[row], best.statements[row] = in_pool(pool, memory), said[memory_id]
        if memory_id in newer:
            best.newer[best.memories[row].key] = in_pool(pool, newer[memory_id])
        judged = candidates.verdicts[row]
        best.confirmations[row] = replace(confirmed[memory_id], judged=judged) if judged else confirmed[memory_id]
        if (chunk := candidates.chunks[row]) in spans:
            best.spans[row] = spans[chunk]


@spanned("page")
def within_budget(
    ranked: Sequence[tuple[Memory, float, Mapping[str, Any]]],
    detail: Detail,
    max_tokens: int,
    best_part: Callable[[Memory], Span] | None = None,
    *,
    words: Sequence[str] = (),
    with_metadata: bool = False,
    confirmed: Mapping[str, Confirmation] = NOT_READ,
) -> tuple[Hit, ...]:
    """As many hits, in order, as `max_tokens` allows; at least one, cut if necessary. `detail="index"` shows one line of each.

    A cut memory shows the part around its best span if that is known (of a span that is too long the part with most of `words`), else its
    beginning. A long memory with others after it gets half of the rest. Metadata are shown if wanted and if they fit as a whole.
    `confirmed`: by the keys of the memories, what confirms them.
    """
    hits: list[Hit] = []
    left = max_tokens
    for rank, (memory, score, why) in enumerate(ranked, start=1):
        text = text_of(memory, detail)
        part = best_part(memory) if best_part and detail != "index" and len(text) > WINDOW_CHARACTERS else NOWHERE
        overhead = labels_cost(memory)
        room = left - overhead
        cost = estimate_tokens(text)
        if hits and room < min(cost, WORTH_CUTTING_TOKENS):
            break
        halved = detail != "index" and len(text) > CHUNK_CHARACTERS and rank < len(ranked)
        budget = max(room // 2 if halved else room, 1 if hits else LEAST_TEXT_TOKENS)
        shown = text if cost <= budget else _cut(text, part, budget, words)
        left -= overhead + (cost if shown == text else estimate_tokens(shown))
        metadata_tokens = estimate_tokens(json.dumps(memory.metadata, ensure_ascii=False)) if with_metadata and memory.metadata else 0
        fits = 0 < metadata_tokens <= left
        left -= metadata_tokens if fits else 0
        hits.append(
            Hit(
                memory,
                round(score, 4),
                why,
                shown,
                truncated=shown != memory.content,
                with_metadata=fits,
                best_part=part,
                confirmation=confirmed.get(memory.key),
            )
        )
        if shown != text and not halved:
            break
    return tuple(hits)


def text_of(memory: Memory, detail: Detail) -> str:
    """What an answer shows of a memory if it has the room: its content, or one line of it."""
    return (memory.micro_summary or micro_summary(memory.content)) if detail == "index" else memory.content


def labels_cost(memory: Memory) -> int:
    """The tokens of a hit of this memory besides its text."""
    return HIT_OVERHEAD_TOKENS + estimate_tokens("".join([memory.source or "", memory.category or "", *memory.tags]))


def cut_to(hit: Hit, budget: int, words: Sequence[str]) -> str:
    """The part of a hit's memory that costs at most `budget` tokens: around its best span if that is known, else its beginning."""
    return _cut(hit.memory.content, hit.best_part, budget, words)


def _cut(text: str, around: Span, budget: int, words: Sequence[str]) -> str:
    return excerpt(text, around, budget, words) if any(around) else cut_to_tokens(text, budget)


def distinct(rows: Sequence[int], statements: Mapping[int, Statement], limit: int) -> tuple[list[int], int]:
    """The first of these rows that say different things, and how many before them say the same."""
    chosen: dict[Statement, int] = {}
    repeated = 0
    for row in rows:
        if row not in statements or len(chosen) == limit:
            break
        repeated += (statement := statements[row]) in chosen
        chosen.setdefault(statement, row)
    return list(chosen.values()), repeated


def statement_of(memory: Memory) -> Statement:
    """The content of a memory but for punctuation, width and case, and its stated time: the same of another time is different."""
    return _NOT_SAID.sub("", normalise(memory.content)) or memory.content, memory.occurred_at


def with_newer(recalled: Recalled, newer: Mapping[str, Memory], question: Question) -> Recalled:
    """The answer with what is newer than a hit, just before that hit, within the limits of the question. The hit names it in
    `superseded_by`, in this answer only: both stay current. Within `top_k` what is newer may take the hit's own place."""
    if newer.keys().isdisjoint(hit.memory.key for hit in recalled.hits):
        return recalled
    among = {hit.memory.key: hit for hit in recalled.hits}
    ordered: dict[str, Hit] = {}
    for hit in recalled.hits:
        later = newer.get(hit.memory.key)
        if later and later.key not in ordered:
            text = text_of(later, question.detail)
            brought = among.get(later.key) or Hit(later, hit.score, {"newer": True}, text, truncated=text != later.content, pool=hit.pool)
            ordered[later.key] = replace(brought, score=max(brought.score, hit.score))
        named = replace(hit, memory=replace(hit.memory, superseded_by=later.key)) if later else hit
        ordered.setdefault(hit.memory.key, named)
    hits = _within(list(ordered.values()), recalled, question)
    shown = {hit.memory.key for hit in hits}
    return replace(recalled, hits=hits, more=recalled.more + sum(key not in shown for key in among))


def _newer(connection: apsw.Connection, ids: Sequence[int], filters: Filters) -> dict[int, Memory]:
    """Memory → what says that it no longer holds, unless that was judged as outdated or misleading."""
    newest = memory_links.newest(connection, ids, filters)
    if not newest:
        return {}
    against = standing_against(connection, list(newest.values()))
    by_id = memories.by_ids(connection, newest.values())
    return {earlier: by_id[later] for earlier, later in newest.items() if later not in against}


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
