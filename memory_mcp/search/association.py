"""Memories that speak of the same people, places and things: as what answers the question best. The graph's part of a search.

「バンドのボーカルの勤め先が発注した案件は？」 names nobody. What it finds first names the singer, and what else names the singer
names the client: so a question is led from one memory to the next (docs/graph.md#in-a-search has what it brings).
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from heapq import nlargest

import apsw

from memory_mcp.domain import Candidate, Question
from memory_mcp.search.may_be_meant import with_others
from memory_mcp.store.graph import hops, mentions
from memory_mcp.store.graph.entities import by_name
from memory_mcp.store.graph.names import KnownNames
from memory_mcp.text.entities.finding import found_in

# How many of the best candidates lead to further ones.
LEADERS = 3
# `mode=graph`: how far from whom the question names, and how many entities at most.
HOPS, NEAREST = 3, 500
# A sum whose parts were taken away again leaves dust; what is equal has to stay equal.
DIGITS, EPSILON = 6, 1e-9


def led_to(connection: apsw.Connection, question: Question, ranked: Sequence[Candidate], limit: int) -> dict[int, float]:
    """Memories that name whom the best candidates name: by id, with their share of the best one, 0 to 1. None speaks for itself.

    Whom the query itself names is no guide: its words have found those already, and counting them twice was measured to hurt.
    """
    leaders = [candidate for candidate in ranked[:LEADERS] if candidate.score > 0]
    named = mentions.relevances(connection, [leader.memory_id for leader in leaders])
    told = {leader.memory_id: leader.score / leaders[0].score / len(leaders) for leader in leaders}
    weights: dict[int, float] = defaultdict(float)
    for memory_id, share in told.items():
        for entity in named.get(memory_id, ()):
            weights[entity] += share
    weights = with_others(connection, weights)
    telling = _telling(connection, weights)
    found = (
        mentions.memories_of(connection, {entity: weights[entity] * telling[entity] for entity in weights}, question.filters, limit)
        if weights
        else {}
    )
    for memory_id in found.keys() & told.keys():
        found[memory_id] -= sum(told[memory_id] * telling[entity] * relevance for entity, relevance in named[memory_id].items())
    return _shares(found)


def along_the_graph(connection: apsw.Connection, start: Mapping[int, float], question: Question, limit: int) -> dict[int, float]:
    """Memories that name these entities, or who is related to them within three hops, or state a relation of theirs: by id, with their
    share of the best, 0 to 1. `start`: how much each counts, 0 to 1."""
    reached = hops.reached(connection, start, HOPS, limit=NEAREST)
    nearest = nlargest(max(NEAREST - len(start), 0), reached.items(), key=lambda item: item[1].nearness)
    near = {**start, **{entity: one.nearness for entity, one in nearest}}
    if not near:
        return {}
    found = mentions.memories_of(connection, near, question.filters, limit)
    for memory_id, score in mentions.memories_stating(connection, start, question.filters, limit).items():
        found.setdefault(memory_id, score)
    return dict(nlargest(limit, _shares(found).items(), key=lambda item: item[1]))


def named_in(connection: apsw.Connection, names: KnownNames, question: Question) -> dict[int, float]:
    """The known entities that the query names, all alike: whoever is called so, and the writer's own relatives, whom rules alone tell."""
    called = {question.query[mention.start : mention.end]: entity for entity, mention in names.find(connection, question.query)}
    kin = {mention.name for mention in found_in(question.query, ()) if mention.subtype in ("family", "day")}
    namesakes = (namesake.id for name in (*called, *sorted(kin)) for namesake in by_name(connection, name))
    return dict.fromkeys((*called.values(), *namesakes), 1.0)


def _telling(connection: apsw.Connection, entities: Iterable[int]) -> dict[int, float]:
    """Who is named in every memory leads everywhere: the rarer an entity, the more it tells (inverse document frequency), 0 to 1."""
    often, memories = mentions.frequencies(connection, entities)
    most = math.log1p(max(memories, 1))
    return {entity: math.log1p(memories / max(often.get(entity, 1), 1)) / most for entity in entities}


def _shares(found: Mapping[int, float]) -> dict[int, float]:
    top = max(found.values(), default=0.0)
    return {memory_id: round(score / top, DIGITS) for memory_id, score in found.items() if score > EPSILON} if top > EPSILON else {}
