"""What a search takes from the graph: the entities in a query, and the memories that share entities with the best hits.

「バンドのボーカルの勤め先が発注した案件は？」 contains no name. Its first hit names the singer, and other memories of the singer name the client:
the search follows entities from one memory to the next (docs/graph-search.md#in-a-search has the measured effect)."""

import math
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from heapq import nlargest

import apsw

from memory_mcp.domain import Question
from memory_mcp.graph.extract.extraction import extract_mentions, relatives_and_days
from memory_mcp.language.analysis import analysis
from memory_mcp.language.budget import line_cost
from memory_mcp.language.names import Mention
from memory_mcp.language.tokens import query_tokens, tokens
from memory_mcp.store.graph import mentions, neighbors, relations
from memory_mcp.store.graph.entities import names as names_table
from memory_mcp.store.graph.entities.entity_merges import distinct_pairs
from memory_mcp.store.graph.entities.names import KnownNames, people_with_shorter_or_longer_names
from memory_mcp.store.graph.relations import Statement
from memory_mcp.store.graph.visibility import visible_and_hidden
from memory_mcp.tracing import spanned

# The number of best candidates whose entities lead to further memories.
LEADERS = 3
# `mode=graph`: the distance from the named entities, the number of entities reached, and the number of memories that the rest of the
# query ranks.
HOPS, NEAREST, REACHED = 3, 500, 500
# `田中` may be `田中誠`: a mention of one counts this much for the other, divided among all people who may be meant.
NAMESAKE_SHARE = 0.5
# A name that is a part of more names than this is no evidence about any of them.
NAMESAKES_LIMIT = 20
# The least score of an association that makes a memory a hit though its words do not (docs/decisions/0026-support.md). A memory that names
# one entity of one of the three best candidates, and no other one, has a third of the entity's rarity.
LEAST_ASSOCIATION = 0.15
# For that, rarity counts by this power: an entity of half of the memories makes no hit.
RARITY_POWER = 1.5
# Adding and subtracting the same terms leaves a rounding error; equal scores have to stay equal.
DIGITS, EPSILON = 6, 1e-9


# A memory with its score.
Scored = tuple[int, float]


@dataclass(frozen=True, slots=True)
class QueryEntities:
    """The known entities that a query names, each with its weight, 0 to 1, and the rest of the query without their names."""

    shares: Mapping[int, float] = field(default_factory=dict)
    rest: str = ""


@dataclass(frozen=True, slots=True)
class GraphEvidence:
    """What the graph adds to a search: memories with their share of the highest score, 0 to 1, those of them that are hits for this
    alone (`certain`), and stated relations as lines."""

    memories: Mapping[int, float] = field(default_factory=dict)
    relations: tuple[str, ...] = ()
    certain: frozenset[int] = frozenset()


@spanned("graph")
def graph_evidence(
    connection: apsw.Connection,
    names: KnownNames,
    question: Question,
    best: Sequence[Scored],
    *,
    limit: int,
    with_relations: bool,
    named: QueryEntities | None = None,
) -> GraphEvidence:
    """At most `limit` memories associated with the best candidates, and the relations of the entities that the query names, found before
    or now.
    """
    associated, certain = associated_memories(connection, question, best, limit) if limit else ({}, frozenset())
    query = (named or entities_in_query(connection, names, question.query)) if with_relations else QueryEntities()
    lines = relation_lines(connection, query.shares, query.rest, question.max_tokens) if query.shares else ()
    return GraphEvidence(associated, lines, certain)


def entities_in_query(connection: apsw.Connection, names: KnownNames, query: str) -> QueryEntities:
    """The entities that a query names, with equal weights: by a known name, as a relative of the writer, or as a day. Names that only
    memories in the trash have are ignored.
    """
    by_rules = relatives_and_days(analysis(query))
    by_name = known_entities(connection, names, query)
    if not (by_rules or by_name):
        return QueryEntities(rest=query)
    lookup = cache(partial(visible_and_hidden, connection))  # a long query repeats names
    matches = [(entity, mention, lookup(query[mention.start : mention.end])) for entity, mention in by_name]
    called = {mention: visible for entity, mention, (visible, hidden) in matches if visible or entity not in hidden}
    called |= {mention: visible for mention in by_rules if (visible := lookup(mention.name)[0])}
    known = (entity for entity, _, (_, hidden) in matches if entity not in hidden)
    ids = [*known, *(namesake.id for namesakes in called.values() for namesake in namesakes)]
    return QueryEntities(dict.fromkeys(ids, 1.0), _without(query, called))


def known_entities(connection: apsw.Connection, names: KnownNames, text: str) -> list[tuple[int, Mention]]:
    """Each known entity that a query names, with its mention, in the order of the text. A merged entity is the one that it is merged
    into.
    """
    matches = names.matches(connection, text)
    if not matches:
        return []
    in_text = extract_mentions(text, (), matches, is_question=True)
    known = [(mention.entity, mention) for mention in in_text if mention.entity]
    roots = names_table.roots(connection, [entity for entity, _ in known])
    return [(roots[entity], mention) for entity, mention in known]


def associated_memories(
    connection: apsw.Connection, question: Question, best: Sequence[Scored], limit: int
) -> tuple[dict[int, float], frozenset[int]]:
    """Memories that share entities with the best candidates: by id, with their share of the highest score, 0 to 1; and those of them that
    are hits for this alone. No memory supports itself.

    Entities that the query itself names lead nowhere: its words have found their memories already, and counting them twice was measured to
    hurt.
    """
    leaders = _leaders(best)
    relevances = mentions.relevances(connection, leaders)
    if not relevances:
        return {}, frozenset()
    weights = _with_possible_namesakes(connection, _entity_weights(leaders, relevances))
    rarity = _rarity(connection, weights)
    weighed = {entity: weights[entity] * rarity[entity] for entity in weights}
    powers = {entity: rarity[entity] ** (RARITY_POWER - 1) for entity in weights}
    sums = mentions.memories_of(connection, weighed, question.filters, limit, powers)
    scores = {memory_id: score for memory_id, (score, _) in sums.items()}
    for memory_id in scores.keys() & leaders.keys():
        scores[memory_id] -= sum(leaders[memory_id] * rarity[entity] * relevance for entity, relevance in relevances[memory_id].items())
    return _scaled(scores), frozenset(memory_id for memory_id, (_, total) in sums.items() if total >= LEAST_ASSOCIATION)


@spanned("graph")
def memories_near_entities(
    connection: apsw.Connection, question: Question, shares: Mapping[int, float], fallback: Callable[[], Sequence[Scored]]
) -> dict[int, float]:
    """Memories that name these entities or others within three hops, or state a relation of theirs: by id, with their share of the highest
    score, 0 to 1. `shares`: the weight of each entity, 0 to 1; where there are none, the entities of the best candidates of `fallback`."""
    start = shares or _entities_of_leaders(connection, fallback())
    reached = neighbors.reached(connection, start, HOPS, limit=NEAREST)
    nearest = nlargest(max(NEAREST - len(start), 0), reached.items(), key=lambda item: item[1].nearness)
    weights = {**start, **{entity: step.nearness for entity, step in nearest}}
    if not weights:
        return {}
    scores = {memory_id: score for memory_id, (score, _) in mentions.memories_of(connection, weights, question.filters, REACHED).items()}
    for memory_id, score in mentions.memories_stating(connection, start, question.filters, REACHED).items():
        scores.setdefault(memory_id, score)
    return dict(nlargest(REACHED, _scaled(scores).items(), key=lambda item: item[1]))


def _entities_of_leaders(connection: apsw.Connection, best: Sequence[Scored]) -> dict[int, float]:
    """The entities that the best candidates name, each with its weight, 0 to 1."""
    leaders = _leaders(best)
    weights = _entity_weights(leaders, mentions.relevances(connection, leaders))
    rarity = _rarity(connection, weights)
    return _scaled({entity: weight * rarity[entity] for entity, weight in weights.items()})


def _without(query: str, named: Iterable[Mention]) -> str:
    """The query with blanks instead of these names."""
    characters = list(query)
    for mention in named:
        characters[mention.start : mention.end] = " " * (mention.end - mention.start)
    return "".join(characters)


def _leaders(best: Sequence[Scored]) -> dict[int, float]:
    """The best candidates, each with its weight."""
    leaders = [(memory_id, score) for memory_id, score in best[:LEADERS] if score > 0]
    return {memory_id: score / leaders[0][1] / len(leaders) for memory_id, score in leaders}


def _entity_weights(leaders: Mapping[int, float], named: Mapping[int, Iterable[int]]) -> dict[int, float]:
    weights: dict[int, float] = defaultdict(float)
    for memory_id, share in leaders.items():
        for entity in named.get(memory_id, ()):
            weights[entity] += share
    return weights


def _rarity(connection: apsw.Connection, entities: Iterable[int]) -> dict[int, float]:
    """The inverse document frequency, 0 to 1: an entity that every memory names leads everywhere."""
    frequency, memories = mentions.frequencies(connection, entities)
    highest = math.log1p(max(memories, 1))
    return {entity: math.log1p(memories / max(frequency.get(entity, 1), 1)) / highest for entity in entities}


def _scaled(scores: Mapping[int, float]) -> dict[int, float]:
    """The scores as shares of the highest one."""
    top = max(scores.values(), default=0.0)
    return {id_: round(score / top, DIGITS) for id_, score in scores.items() if score > EPSILON} if top > EPSILON else {}


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


# Lines shown, lines shown where none shares a word with the query, and their largest share of the answer's budget.
LINES, LINES_WITHOUT_SHARED_WORD, SHARE_OF_BUDGET = 5, 3, 0.2
# Relations read for each entity of the query, relations read for each of the entities at their other ends, and the number of those
# entities.
PER_ENTITY, PER_FURTHER_ENTITY, FURTHER_ENTITIES = 50, 10, 20
# Pairs of hiragana occur in every sentence and carry little meaning: ている, です.
_HIRAGANA = re.compile("[\u3041-\u309f]+")


def relation_lines(connection: apsw.Connection, entities: Mapping[int, float], rest: str, max_tokens: int) -> tuple[str, ...]:
    """The relations of the query's entities, and one hop further, that share a word with the `rest` of the query, each after the
    relation that leads to it; where none does, the strongest few.
    """
    near = relations.strongest_statements(connection, entities, PER_ENTITY)
    if not near:
        return ()
    words = set(query_tokens(rest))
    further = dict.fromkeys(end for relation in near for end in (relation.source, relation.target) if end not in entities)
    beyond = relations.strongest_statements(connection, list(further)[:FURTHER_ENTITIES], PER_FURTHER_ENTITY)
    overlap = {statement: share for statement in (*near, *beyond) if (share := _overlap(statement, entities, words))}
    best = sorted(overlap, key=lambda statement: -overlap[statement])[:LINES]
    chosen = _with_connections(best, near, entities) if best else near[:LINES_WITHOUT_SHARED_WORD]
    return _within(max_tokens * SHARE_OF_BUDGET, [statement.line for statement in chosen[:LINES]])


def _overlap(statement: Statement, named: Mapping[int, float], words: Collection[str]) -> float:
    """The share of a relation's own words that the query contains, 0 to 1; 2 if the query names both ends."""
    ends = {statement.source: statement.source_name, statement.target: statement.target_name}
    if all(end in named for end in ends):
        return 2.0
    own = tokens(" ".join([statement.type, *(name for end, name in ends.items() if end not in named)]))
    distinctive = [token for token in own if not _HIRAGANA.fullmatch(token)] or own
    return sum(token in words for token in distinctive) / max(len(distinctive), 1)


def _with_connections(best: Sequence[Statement], near: Sequence[Statement], named: Mapping[int, float]) -> list[Statement]:
    """Each statement, after one that connects it with an entity of the query unless it is about one itself."""
    chosen: dict[Statement, None] = {}
    for statement in best:
        ends = {statement.source, statement.target}
        connections = [other for other in near if ends & {other.source, other.target}] if ends.isdisjoint(named) else []
        chosen |= dict.fromkeys([*connections[:1], statement])
    return list(chosen)


def _within(budget: float, lines: Iterable[str]) -> tuple[str, ...]:
    kept: list[str] = []
    for line in lines:
        budget -= line_cost(line)
        if budget < 0:
            break
        kept.append(line)
    return tuple(kept)
