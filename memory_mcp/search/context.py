"""The context of a conversation, in layers and within a budget: what matters most, the topic, summaries, what is to come, the latest
memories."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from itertools import islice, zip_longest
from typing import Literal, get_args
from zoneinfo import ZoneInfo

import apsw

from memory_mcp.config.settings import Settings
from memory_mcp.domain import Filters, Hit, Memory, Question, Recalled
from memory_mcp.encoders.models import Models
from memory_mcp.language.budget import estimate_tokens
from memory_mcp.language.low_value import low_value
from memory_mcp.language.tokens import jaccard, query_tokens, tokens
from memory_mcp.personas.registry import Persona
from memory_mcp.search.candidates import Assistants
from memory_mcp.search.page import HIT_OVERHEAD_TOKENS, LEAST_TEXT_TOKENS, WORTH_CUTTING_TOKENS, cut_to, labels_cost, statement_of
from memory_mcp.search.pipeline import recall
from memory_mcp.search.question import shifted
from memory_mcp.search.stores import NO_POOLS, Pools, latest_of_pools
from memory_mcp.store import memories, memory_dates
from memory_mcp.store.graph import memory_links
from memory_mcp.store.summary_rows import EXTRACTIVE, MADE_BY
from memory_mcp.store.vectors.index_cache import IndexCache

Layer = Literal["core", "semantic", "summary", "upcoming", "recent"]
# The order in which they are shown.
ORDER: tuple[Layer, ...] = get_args(Layer)
Layered = tuple[Layer, Hit]

AT_MOST = 10
# So many plans more than are wanted are read where some no longer hold.
SPARE_PLANS = 10
# Extra matches from which the most diverse are chosen. Each costs the cross-encoder three pairs.
SPARE_MATCHES = 3
# The number of latest memories among which informative ones are looked for, more where the first few are not enough; and the number of
# summaries among which different ones are looked for.
LATEST_POOLS, SUMMARIES_POOL = (20, 60), 20
# From which share of common tokens on two summaries are alike, and two of the latest memories: 「今日の昼は鮭弁当」, 「今日の昼はのり弁当」.
SAME_SUMMARY, SAME_LATEST = 0.6, 0.5
# So many of an assistant's lines are among the latest memories.
ASSISTANTS_LINES = 1
# So many of the latest memories have a place whatever else there is, and so many places that nobody takes are the topic's.
KEPT_FOR_LATEST, SPARE_FOR_TOPIC = 2, 2


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
    """At most 10 memories for a conversation, none twice: one that two layers have takes the place of the first, and the other layer has
    its next.

    Those that matter most come first, then the topical ones: they are the reason for the query, and get the places that nobody else takes
    (docs/decisions/0017-layers-of-a-context.md). With a `session_id` the latest are those of that conversation. Of pools it shows what fits
    the topic, and their latest memories where the persona has too few of its own (docs/decisions/0038-pools-and-packs.md).
    """
    layers = settings.context
    # Where expired memories can't be moved to the trash, nothing is shown that may repeat one.
    filters = Filters(unexpired_at=now if persona.has_expired else None)
    until = shifted(now, timedelta(days=layers.upcoming_days))
    latest_of = partial(_latest, Assistants(persona), wanted=AT_MOST + layers.recent)
    with persona.database.read_briefly() as connection:
        core = memories.core(connection, layers.core_importance, filters, layers.core) if layers.core else []
        latest = list(map(_whole, latest_of(connection, replace(filters, session_id=session_id))))
        plans, summaries = list[Memory](), list[Memory]()
        if not filters:
            plans = upcoming(connection, now, until, settings.zone, AT_MOST) if layers.upcoming else []
            summaries = memories.recent(connection, Filters(kind="summary"), SUMMARIES_POOL) if layers.summaries else []
    recalled = None
    if query and layers.semantic:
        question = Question(query=query, top_k=layers.semantic + SPARE_FOR_TOPIC + SPARE_MATCHES, max_tokens=100_000)
        recalled = recall(persona, question, pools, models=models, settings=settings, now=now, indexes=indexes, deadline=deadline)
    if pools and len(latest) < layers.recent and not session_id:
        latest += latest_of_pools(persona, pools, lambda connection: latest_of(connection, Filters(unexpired_at=now)))
    places = _Places()
    kept = min(KEPT_FOR_LATEST, layers.recent)
    places.take("core", map(_whole, core), places.left - kept)
    holding = [hit for hit in recalled.hits if not hit.memory.superseded_by] if recalled else []
    informative = [hit for hit in holding if places.has_none(hit) and not low_value(hit.memory.content)]
    topical = diverse(informative, len(informative), layers.mmr_lambda)
    places.take("semantic", topical, min(layers.semantic, places.left - kept))
    places.take("upcoming", map(_whole, plans), min(layers.upcoming, places.left - kept))
    for_summaries = min(layers.summaries, places.left - kept)
    fresh = _different_first(places.unsaid(latest), layers.recent)
    places.take("summary", _adding(summaries, [*places.hits, *fresh[: places.left - for_summaries]]), for_summaries)
    places.take("semantic", topical, min(SPARE_FOR_TOPIC, places.left - len(fresh)))
    places.take("recent", _different_first(places.unsaid(latest), min(layers.recent, places.left)), layers.recent)
    return Context(shared(places.in_order, max_tokens, query_tokens(query)), recalled)


@dataclass(slots=True)
class _Places:
    """The memories of a context by key, each in the first layer that took it."""

    layered: dict[str, Layered] = field(default_factory=dict)

    @property
    def left(self) -> int:
        return AT_MOST - len(self.layered)

    @property
    def hits(self) -> list[Hit]:
        return [hit for _, hit in self.layered.values()]

    @property
    def in_order(self) -> list[Layered]:
        return sorted(self.layered.values(), key=lambda layered: ORDER.index(layered[0]))

    def has_none(self, hit: Hit) -> bool:
        return hit.memory.key not in self.layered

    def take(self, layer: Layer, hits: Iterable[Hit], count: int) -> None:
        """Gives places to the first `count` of these that have none."""
        self.layered.update({hit.memory.key: (layer, hit) for hit in islice(filter(self.has_none, hits), max(count, 0))})

    def unsaid(self, hits: Iterable[Hit]) -> list[Hit]:
        """Those that say nothing that another with a place says, or one before."""
        new = {statement_of(hit.memory): hit for hit in self.hits}
        for hit in hits:
            new.setdefault(statement_of(hit.memory), hit)
        return [hit for hit in new.values() if self.has_none(hit)]


def diverse(hits: Sequence[Hit], count: int, relevance_weight: float) -> list[Hit]:
    """The `count` hits that are relevant and different from each other: maximal marginal relevance (Carbonell & Goldstein 1998).

    `relevance_weight` is its λ, from 0 to 1; similarity is the share of the tokens that two contents have in common.
    """
    words = {hit.memory.key: set(tokens(hit.memory.content)) for hit in hits}
    top = max((hit.score for hit in hits), default=0.0) or 1.0
    similarity = dict.fromkeys(words, 0.0)
    chosen: list[Hit] = []
    waiting = list(hits)

    def marginal(hit: Hit) -> float:
        return relevance_weight * hit.score / top - (1 - relevance_weight) * similarity[hit.memory.key]

    while waiting and len(chosen) < count:
        best = max(waiting, key=marginal)
        chosen.append(best)
        waiting.remove(best)
        for hit in waiting:
            key = hit.memory.key
            similarity[key] = max(similarity[key], jaccard(words[key], words[best.memory.key]))
    return chosen


def upcoming(
    connection: apsw.Connection, now: datetime, end: datetime, zone: ZoneInfo, limit: int, characters: int | None = None
) -> list[Memory]:
    """What is to come (`memories.upcoming`) without plans that no longer hold, and without what only names the days of such a plan:
    「29日の花見は中止」."""
    plans = memories.upcoming(connection, now, end, zone, limit + SPARE_PLANS, characters)
    replaced = memory_links.newest(connection, [plan.id for plan in plans], Filters())
    earlier = {plan.id: memory_links.newer_and_earlier(connection, plan.id)[1] for plan in plans}
    days = memory_dates.of_memories(connection, {*earlier, *(old for olds in earlier.values() for old in olds)})

    def holds(plan: Memory) -> bool:
        of_earlier = {span for old in earlier[plan.id] for span in days.get(old, ())}
        return plan.id not in replaced and not (of_earlier and plan.occurred_at is None and {*days.get(plan.id, ())} <= of_earlier)

    return [plan for plan in plans if holds(plan)][:limit]


def _latest(assistants: Assistants, connection: apsw.Connection, filters: Filters, wanted: int) -> list[Memory]:
    """The latest informative memories, as many as are `wanted` or as there are among the latest, without those that no longer hold because
    of another.

    Agents say a lot while they work: of the lines of assistants only the `ASSISTANTS_LINES` latest, unless nobody else spoke.
    """
    for pool in LATEST_POOLS:
        latest = memories.recent(connection, filters, pool)
        informative = [memory for memory in latest if not low_value(memory.content)]
        further = {memory.id for memory in list(filter(assistants.wrote, informative))[ASSISTANTS_LINES:]}
        shown = [memory for memory in informative if memory.id not in further]
        if len(shown) >= wanted or len(latest) < pool:
            break
    shown = shown if len(shown) > ASSISTANTS_LINES else informative
    dropped = memory_links.newest(connection, [memory.id for memory in shown], Filters())
    return [memory for memory in shown if memory.id not in dropped]


def _adding(summaries: Iterable[Memory], shown: Iterable[Hit]) -> Iterator[Hit]:
    """The latest summaries that say something else than these hits and than a later summary: a day may consist of one conversation."""
    text = "\n".join(hit.memory.content for hit in shown)
    adding = [summary for summary in summaries if _adds(summary, text)]
    return (_whole(adding[number]) for number in _unlike((summary.content for summary in adding), SAME_SUMMARY))


def _adds(summary: Memory, shown: str) -> bool:
    """False for a summary made of sentences of which most are shown anyway. What a model wrote says it in fewer words."""
    if not str(summary.metadata.get(MADE_BY, "")).startswith(EXTRACTIVE):
        return True
    sentences = [line.removeprefix("- ") for line in summary.content.splitlines()[1:]]
    repeated = [sentence for sentence in sentences if sentence in shown or (sentence.partition(": ")[2] or sentence) in shown]
    return 2 * len(repeated) < len(sentences)


def _different_first(latest: Sequence[Hit], count: int) -> list[Hit]:
    """So many of the latest, in their order: those that are nearly another one only where there is nothing else."""
    different = list(_unlike((hit.memory.content for hit in latest), SAME_LATEST)) if len(latest) > count else []
    alike = (number for number in range(len(latest)) if number not in different)
    return [latest[number] for number in sorted([*different, *alike][:count])]


def _unlike(texts: Iterable[str], same: float) -> Iterator[int]:
    """The numbers of the texts that share less than `same` of their tokens with each of these before them."""
    chosen: list[set[str]] = []
    for number, text in enumerate(texts):
        words = set(tokens(text))
        if all(jaccard(words, others) < same for others in chosen):
            chosen.append(words)
            yield number


def _whole(memory: Memory) -> Hit:
    return Hit(memory, 1.0, {}, memory.content)


# What matters most gets at most half of the budget. One hit gets at most a quarter of the budget while others follow, and the topic three
# quarters; where a quarter is too little to show anything, the first of the others gets what shows it shortened.
CORE_SHARE, LARGEST_SHARE, KEPT_SHARE = 2, 4, 4
# What a summary costs at most, besides its labels.
SUMMARY_TOKENS = 80
LEAST_SHOWN = HIT_OVERHEAD_TOKENS + WORTH_CUTTING_TOKENS


def shared(layered: Sequence[Layered], max_tokens: int, words: Sequence[str]) -> tuple[Layered, ...]:
    """As many of these hits, in order, as fit; at least one. A cut hit shows its best part, where most of `words` are.

    What is left over goes to the hits that were cut, in order.
    """
    largest = max(max_tokens // LARGEST_SHARE, LEAST_SHOWN) if len(layered) > 1 else max_tokens
    core, topical, latest, summaries, upcoming = (
        _indexes(layered, layer) for layer in ("core", "semantic", "recent", "summary", "upcoming")
    )
    others = [index for indexes in zip_longest(latest, summaries, upcoming) for index in indexes if index is not None]
    # Of a small budget the first of the others gets what shows its beginning, unless the topic would then have nothing.
    least = labels_cost(layered[others[0]][1].memory) + LEAST_TEXT_TOKENS if others else 0
    kept = min(max(max_tokens // KEPT_SHARE, least), sum(min(_cost(layered[index][1]), largest) for index in others))
    if topical and max_tokens - kept < labels_cost(layered[topical[0]][1].memory) + LEAST_TEXT_TOKENS:
        kept = 0
    shown = _Shown(layered, words)
    shown.fill(core, max_tokens // CORE_SHARE, largest)
    shown.fill(topical, max_tokens - kept, largest)
    shown.widen(max_tokens - kept)
    half_of_the_rest = max((max_tokens - shown.spent) // 2, LEAST_SHOWN)
    shown.fill(others[:1], max_tokens, min(largest, half_of_the_rest), LEAST_TEXT_TOKENS)
    shown.fill(others, max_tokens, min(largest, half_of_the_rest))
    shown.fill(topical, max_tokens, largest)
    shown.widen(max_tokens)
    texts = ((*layered[index], text) for index, text in sorted(shown.texts.items()))
    return tuple((layer, replace(hit, text=text, truncated=text != hit.memory.content)) for layer, hit, text in texts)


@dataclass(slots=True)
class _Shown:
    """The texts shown so far, by index of the hit, and their cost."""

    layered: Sequence[Layered]
    words: Sequence[str]
    texts: dict[int, str] = field(default_factory=dict)
    spent: int = 0

    def fill(self, indexes: Sequence[int], limit: int, largest: int, least: int = WORTH_CUTTING_TOKENS) -> None:
        """Adds these hits in order, at most `largest` tokens of each, until not even `least` tokens of the next would fit within `limit`."""
        for index in indexes:
            layer, hit = self.layered[index]
            room = min(limit - self.spent, largest) - labels_cost(hit.memory)
            room = min(room, SUMMARY_TOKENS) if layer == "summary" else room
            if index in self.texts:
                continue
            if self.texts and room < min(estimate_tokens(hit.text), least):
                break
            self.texts[index] = cut_to(hit, max(room, 1 if self.texts else LEAST_TEXT_TOKENS), self.words)
            self.spent += labels_cost(hit.memory) + estimate_tokens(self.texts[index])

    def widen(self, limit: int) -> None:
        """Gives the rest up to `limit` to the hits that were cut, in order."""
        for index in sorted(self.texts):
            (layer, hit), before = self.layered[index], estimate_tokens(self.texts[index])
            if self.texts[index] != hit.text and limit > self.spent and layer != "summary":
                self.texts[index] = cut_to(hit, before + limit - self.spent, self.words)
                self.spent += estimate_tokens(self.texts[index]) - before


def _indexes(layered: Sequence[Layered], wanted: str) -> list[int]:
    return [index for index, (layer, _) in enumerate(layered) if layer == wanted]


def _cost(hit: Hit) -> int:
    return labels_cost(hit.memory) + estimate_tokens(hit.text)
