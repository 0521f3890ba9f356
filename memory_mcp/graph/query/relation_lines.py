"""Stated relations of the entities in a query, as lines that an answer has besides its hits: no memory's text need contain them."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence

import apsw

from memory_mcp.language.budget import line_cost
from memory_mcp.language.tokens import query_tokens, tokens
from memory_mcp.store.graph import relations
from memory_mcp.store.graph.relations import Statement

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
