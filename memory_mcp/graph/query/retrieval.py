"""Memories that speak of the same people, places and things: as what answers the question best. The graph's part of a search.

「バンドのボーカルの勤め先が発注した案件は？」 names nobody. What it finds first names the singer, and what else names the singer
names the client: so a question is led from one memory to the next (docs/graph.md#in-a-search has what it brings).
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from heapq import nlargest

import apsw

from memory_mcp.domain import Candidate, Question
from memory_mcp.graph.extract.extraction import found_in
from memory_mcp.store.graph import mentions, neighbors
from memory_mcp.store.graph.entities import names as names_table
from memory_mcp.store.graph.entities.entity_merges import distinct_pairs
from memory_mcp.store.graph.entities.lookup import visible_and_hidden
from memory_mcp.store.graph.entities.names import KnownNames, people_with_shorter_or_longer_names
from memory_mcp.text.mention import Mention

# How many of the best candidates lead to further ones.
LEADERS = 3
# `mode=graph`: how far from whom the question names, how many entities at most, and how many memories the rest of the question chooses from.
HOPS, NEAREST, REACHED = 3, 500, 500
# `田中` may be `田中誠`: what names the one counts this much for the others, shared by all who may be meant.
NAMESAKE_SHARE = 0.5
# A name that is a part of more names than this says nothing about any of them.
NAMESAKES_LIMIT = 20
# A sum whose parts were taken away again leaves dust; what is equal has to stay equal.
DIGITS, EPSILON = 6, 1e-9


@dataclass(frozen=True, slots=True)
class Named:
    """The known entities that a query names, each with how much it counts, 0 to 1; and what it says beside their names."""

    shares: Mapping[int, float] = field(default_factory=dict)
    rest: str = ""


def led_to(connection: apsw.Connection, question: Question, ranked: Sequence[Candidate], limit: int) -> dict[int, float]:
    """Memories that name whom the best candidates name: by id, with their share of the best one, 0 to 1. None speaks for itself.

    Whom the query itself names is no guide: its words have found those already, and counting them twice was measured to hurt.
    """
    told = _leaders(ranked)
    named = mentions.relevances(connection, told)
    if not named:
        return {}
    weights = _with_possible_namesakes(connection, _weights(told, named))
    telling = _telling(connection, weights)
    found = mentions.memories_of(connection, {entity: weights[entity] * telling[entity] for entity in weights}, question.filters, limit)
    for memory_id in found.keys() & told.keys():
        found[memory_id] -= sum(told[memory_id] * telling[entity] * relevance for entity, relevance in named[memory_id].items())
    return _shares(found)


def named_by_the_best(connection: apsw.Connection, ranked: Sequence[Candidate]) -> dict[int, float]:
    """Whom the best candidates name, each with how much it counts, 0 to 1."""
    told = _leaders(ranked)
    weights = _weights(told, mentions.relevances(connection, told))
    telling = _telling(connection, weights)
    return _shares({entity: weight * telling[entity] for entity, weight in weights.items()})


def along_the_graph(connection: apsw.Connection, start: Mapping[int, float], question: Question) -> dict[int, float]:
    """Memories that name these entities, or who is related to them within three hops, or state a relation of theirs: by id, with their
    share of the best, 0 to 1. `start`: how much each counts, 0 to 1."""
    reached = neighbors.reached(connection, start, HOPS, limit=NEAREST)
    nearest = nlargest(max(NEAREST - len(start), 0), reached.items(), key=lambda item: item[1].nearness)
    near = {**start, **{entity: one.nearness for entity, one in nearest}}
    if not near:
        return {}
    found = mentions.memories_of(connection, near, question.filters, REACHED)
    for memory_id, score in mentions.memories_stating(connection, start, question.filters, REACHED).items():
        found.setdefault(memory_id, score)
    return dict(nlargest(REACHED, _shares(found).items(), key=lambda item: item[1]))


def named_in(connection: apsw.Connection, names: KnownNames, query: str) -> Named:
    """Whom the query names, all alike: whoever is called so, and the writer's own relatives, whom rules alone tell. Nobody by a name that only
    the trash holds."""
    kin = [mention for mention in found_in(query, ()) if mention.subtype in ("family", "day")]
    asked = cache(partial(visible_and_hidden, connection))  # a long question names somebody many times
    written = [(entity, mention, asked(query[mention.start : mention.end])) for entity, mention in known_entities(connection, names, query)]
    called = {mention: told for entity, mention, (told, untold) in written if told or entity not in untold}
    called |= {mention: told for mention in kin if (told := asked(mention.name)[0])}
    known = (entity for entity, _, (_, untold) in written if entity not in untold)
    ids = [*known, *(namesake.id for namesakes in called.values() for namesake in namesakes)]
    return Named(dict.fromkeys(ids, 1.0), _without(query, called))


def known_entities(connection: apsw.Connection, names: KnownNames, text: str) -> list[tuple[int, Mention]]:
    """Each known entity that a question names, with its id, in the order of the text; merged ones as what they are merged into."""
    called = names.called(connection, text)
    if not called:
        return []
    named = found_in(text, (), called, is_asked=True)
    found = [(mention.entity, mention) for mention in named if mention.entity]
    roots = names_table.roots(connection, [entity for entity, _ in found])
    return [(roots[entity], mention) for entity, mention in found]


def _without(query: str, mentions: Iterable[Mention]) -> str:
    """The query without these names in it."""
    left = list(query)
    for mention in mentions:
        left[mention.start : mention.end] = " " * (mention.end - mention.start)
    return "".join(left)


def _leaders(ranked: Sequence[Candidate]) -> dict[int, float]:
    """The best candidates, each with its part in where they lead."""
    leaders = [candidate for candidate in ranked[:LEADERS] if candidate.score > 0]
    return {leader.memory_id: leader.score / leaders[0].score / len(leaders) for leader in leaders}


def _weights(told: Mapping[int, float], named: Mapping[int, Iterable[int]]) -> dict[int, float]:
    weights: dict[int, float] = defaultdict(float)
    for memory_id, share in told.items():
        for entity in named.get(memory_id, ()):
            weights[entity] += share
    return weights


def _telling(connection: apsw.Connection, entities: Iterable[int]) -> dict[int, float]:
    """Who is named in every memory leads everywhere: the rarer an entity, the more it tells (inverse document frequency), 0 to 1."""
    often, memories = mentions.frequencies(connection, entities)
    most = math.log1p(max(memories, 1))
    return {entity: math.log1p(memories / max(often.get(entity, 1), 1)) / most for entity in entities}


def _shares(found: Mapping[int, float]) -> dict[int, float]:
    top = max(found.values(), default=0.0)
    return {memory_id: round(score / top, DIGITS) for memory_id, score in found.items() if score > EPSILON} if top > EPSILON else {}


def _with_possible_namesakes(connection: apsw.Connection, weights: Mapping[int, float]) -> dict[int, float]:
    """The weights, with a share for each person whose name is a shorter or longer form, unless the two are known to be different."""
    weighted = dict(weights)
    namesakes = people_with_shorter_or_longer_names(connection, weights)
    distinct = distinct_pairs(connection) if namesakes else set()
    for entity, possible in namesakes.items():
        others = [other for other in possible if (min(entity, other), max(entity, other)) not in distinct]
        for other in others if len(others) <= NAMESAKES_LIMIT else ():
            weighted[other] = weighted.get(other, 0.0) + weights[entity] * NAMESAKE_SHARE / len(others)
    return weighted
