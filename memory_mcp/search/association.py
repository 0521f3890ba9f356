"""Memories that speak of the same people, places and things: as the question, or as what answers it best. The graph's part of a search.

「バンドのボーカルの勤め先が発注した案件は？」 names nobody. What it finds first names the singer, and what else names the singer
names the client: so a question is led from one memory to the next (docs/graph.md#in-a-search has what it brings).
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence

import apsw

from memory_mcp.domain import Candidate, Question
from memory_mcp.store.graph import hops, mentions
from memory_mcp.store.graph.names import KnownNames

# How many of the best candidates lead to further ones.
LEADERS = 3
# `mode=graph`: how far from whom the question names, and what a hop costs.
HOPS, DECAY = 3, 0.8


def led_to(connection: apsw.Connection, names: KnownNames, question: Question, ranked: Sequence[Candidate], limit: int) -> dict[int, float]:
    """Memories that name whom the query names, or one of the best candidates: by id, with their share of the best one, 0 to 1."""
    weights: dict[int, float] = defaultdict(float)
    for entity, _ in names.find(connection, question.query):
        weights[entity] += 1.0
    leaders = ranked[:LEADERS]
    top = leaders[0].score if leaders else 0.0
    named = mentions.of_memories(connection, [leader.memory_id for leader in leaders])
    for leader in leaders:
        for entity in named.get(leader.memory_id, ()):
            weights[entity] += leader.score / top / len(leaders) if top > 0 else 0.0
    return _shares(connection, _telling(connection, weights), question, limit)


def along_the_graph(connection: apsw.Connection, names: KnownNames, question: Question, limit: int) -> dict[int, float]:
    """Memories that name whom the query names, or who is related to those within three hops: by id, with their share of the best, 0 to 1."""
    start = {entity: 1.0 for entity, _ in names.find(connection, question.query)}
    near = {entity: score for entity, (score, _) in hops.reached(connection, start, HOPS, DECAY).items()} if start else {}
    return _shares(connection, near, question, limit)


def _telling(connection: apsw.Connection, weights: Mapping[int, float]) -> dict[int, float]:
    """Who is named in every memory leads everywhere: the rarer an entity, the more it tells (inverse document frequency)."""
    often, memories = mentions.frequencies(connection, weights)
    return {
        entity: weight * math.log1p(memories / max(often.get(entity, 1), 1)) / math.log1p(max(memories, 1))
        for entity, weight in weights.items()
    }


def _shares(connection: apsw.Connection, weights: Mapping[int, float], question: Question, limit: int) -> dict[int, float]:
    found = mentions.memories_of(connection, weights, question.filters, limit) if weights else {}
    top = max(found.values(), default=0.0)
    return {memory_id: score / top for memory_id, score in found.items()} if top > 0 else {}
