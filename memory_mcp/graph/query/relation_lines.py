"""What the graph states of whom a question names, as lines beside the hits: it need not stand in any memory's text."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence

import apsw

from memory_mcp.domain import Question
from memory_mcp.graph.query.retrieval import Named
from memory_mcp.store.graph import relations
from memory_mcp.store.graph.relations import Statement
from memory_mcp.text.budget import estimate_tokens
from memory_mcp.text.tokens import query_tokens, tokens

# So many are told, fewer where none of them has a word of the question; and at most such a part of the answer's budget.
SHOWN, SHOWN_AT_A_GUESS, SHARE_OF_BUDGET = 5, 3, 0.2
# So many relations of whom the question names are looked at, and a few of the others at their ends.
LOOKED_AT, LOOKED_AT_BEYOND, BEYOND = 50, 10, 20
# What a line costs beside its text.
LINE_OVERHEAD_TOKENS = 3
# Pairs of hiragana are in every sentence and say little: ている, です.
_HIRAGANA = re.compile("[\u3041-\u309f]+")


def tells_relations(question: Question) -> bool:
    """Whether an answer has relations beside its hits: no filter holds for a relation, so where there is one, none is told."""
    return question.mode != "recent" and not question.filters


def stated_around(connection: apsw.Connection, question: Question, named: Named) -> tuple[str, ...]:
    """The relations of whom the question names that share a word with it, one hop further where they do, and how one gets there; where none
    does, the strongest few."""
    if not named.shares or not tells_relations(question):
        return ()
    near = relations.strongest_statements(connection, named.shares, LOOKED_AT)
    if not near:
        return ()
    asked = set(query_tokens(named.rest))
    ends = dict.fromkeys(end for one in near for end in (one.source, one.target) if end not in named.shares)
    beyond = relations.strongest_statements(connection, list(ends)[:BEYOND], LOOKED_AT_BEYOND)
    shared = {one: found for one in (*near, *beyond) if (found := _shared(one, named.shares, asked))}
    best = sorted(shared, key=lambda one: -shared[one])[:SHOWN]
    chosen = _with_ways(best, near, named.shares) if best else near[:SHOWN_AT_A_GUESS]
    return _within(question.max_tokens * SHARE_OF_BUDGET, [one.line for one in chosen[:SHOWN]])


def budget_beside(question: Question, lines: Iterable[str]) -> int:
    """What of the budget is left for the hits."""
    return question.max_tokens - sum(map(_cost, lines))


def _shared(statement: Statement, named: Mapping[int, float], asked: Collection[str]) -> float:
    """How much of what a relation says beside the entities that the question names the question says too, 0 to 1; 2 if it names both ends."""
    ends = {statement.source: statement.source_name, statement.target: statement.target_name}
    if all(end in named for end in ends):
        return 2.0
    said = tokens(" ".join([statement.type, *(name for end, name in ends.items() if end not in named)]))
    telling = [token for token in said if not _HIRAGANA.fullmatch(token)] or said
    return sum(token in asked for token in telling) / max(len(telling), 1)


def _with_ways(best: Sequence[Statement], near: Sequence[Statement], named: Mapping[int, float]) -> list[Statement]:
    """Each after the relation that leads to it from whom the question names, if it is not such a one's own."""
    chosen: dict[Statement, None] = {}
    for one in best:
        ends = {one.source, one.target}
        ways = [way for way in near if ends & {way.source, way.target}] if ends.isdisjoint(named) else []
        chosen |= dict.fromkeys([*ways[:1], one])
    return list(chosen)


def _within(budget: float, lines: Iterable[str]) -> tuple[str, ...]:
    kept: list[str] = []
    for line in lines:
        budget -= _cost(line)
        if budget < 0:
            break
        kept.append(line)
    return tuple(kept)


def _cost(line: str) -> int:
    return estimate_tokens(line) + LINE_OVERHEAD_TOKENS
