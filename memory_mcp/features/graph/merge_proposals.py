"""Proposes merges of entities that may be the same, by their names and their neighbors. Pairs marked as distinct are not proposed."""

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import apsw

from memory_mcp.dates.statements import DAY
from memory_mcp.features.graph.analytics.analyses import Deadline
from memory_mcp.language.names import bare
from memory_mcp.store.graph import neighbors, overview
from memory_mcp.store.graph.entities import entity_merges, name_similarity
from memory_mcp.store.graph.entities.lookup import visible
from memory_mcp.store.graph.entities.name_similarity import AMBIGUOUS, AMBIGUOUS_NAME, SHORTER, TYPO, Similarity, surest
from memory_mcp.store.graph.entities.names import SHORTENED_TYPES, shorter_forms
from memory_mcp.store.graph.entities.records import Entity
from memory_mcp.wording import sentence

# The most connected entities are compared, up to this number.
ENTITIES_LIMIT = 20_000
# A form that more names share is no evidence about any two of them: 山田 is a part of many names.
SHARED_BY_MANY = 20
# A common neighbor with many neighbors is no evidence, one with few is much.
FEW_NEIGHBORS = 30
# Without similar names: the least share and the least number of common neighbors.
STRANGERS_SHARE, STRANGERS_SHARED = 0.6, 3
# The most that common neighbors add to the similarity of names, and what a common memory subtracts.
NEIGHBORS_BONUS, COOCCURRENCE_PENALTY = 0.15, 0.3
LEAST_SCORE = 0.4
NO_DEADLINE = Deadline.after(math.inf)

Pair = tuple[int, int]
Name = tuple[int, str, str]  # entity, name without honorifics, and type


@dataclass(frozen=True, slots=True)
class Proposal:
    """Two entities of one type that may be the same: how likely, 0 to 1, and why. `kept` is mentioned more often."""

    kept: Entity
    merged: Entity
    score: float
    why: tuple[str, ...]


def merge_proposals(connection: apsw.Connection, limit: int, deadline: Deadline = NO_DEADLINE) -> tuple[list[Proposal], int]:
    """The likeliest proposals, and how many there are in all.

    Raises:
        AnalysisUnfinished: the deadline came first.
    """
    present = {entity.id: entity for entity in visible(connection, overview.most_connected(connection, ENTITIES_LIMIT))}
    deadline.check()
    around = _Neighborhoods(connection, present)
    deadline.check()
    alike = _by_names(present.values(), deadline)
    apart = entity_merges.distinct_pairs(connection)
    proposed = []
    for pair in {*alike, *around.strangers(deadline)} - apart:
        deadline.check()
        score, why = _scored(alike.get(pair), around, pair)
        if score >= LEAST_SCORE:
            kept, merged = sorted((present[entity] for entity in pair), key=lambda entity: (-entity.extraction_count, entity.id))
            proposed.append(Proposal(kept, merged, score, why))
    proposed.sort(key=lambda proposal: (-proposal.score, proposal.kept.id, proposal.merged.id))
    return proposed[:limit], len(proposed)


def _scored(similarity: Similarity | None, around: "_Neighborhoods", pair: Pair) -> tuple[float, tuple[str, ...]]:
    share, names = around.shared(pair)
    why = [similarity.why] if similarity else []
    score = similarity.score if similarity else 0.3 + 0.2 * share
    if names:
        score += NEIGHBORS_BONUS * share if similarity else 0.0
        why.append(sentence("both are related to {}", ", ".join(names)))
    if around.related(pair):
        score -= COOCCURRENCE_PENALTY
        why.append("but one memory names both")
    return round(min(score, 0.99), 2), tuple(why)


def _by_names(entities: Iterable[Entity], deadline: Deadline) -> dict[Pair, Similarity]:
    """The pairs of one type with similar names."""
    names, of_several = _names(entities)
    by_pair: dict[Pair, list[Similarity]] = defaultdict(list)
    for pair, similarity in (*of_several, *_of_one_form(names), *_one_letter_apart(names), *_shorter(names)):
        deadline.check()
        by_pair[pair].append(similarity)
    return {pair: surest(similarities) for pair, similarities in by_pair.items()}


def _names(entities: Iterable[Entity]) -> tuple[list[Name], list[tuple[Pair, Similarity]]]:
    """The names that identify their entity; and the pairs that share an alias with each other or with more: ケン, of 健太 and of 健二."""
    own, further = [], []
    # 10月17日 is a name of that day in each year; no two of them are the same.
    for entity in (entity for entity in entities if entity.subtype != DAY):
        own += [(entity.id, bare(name), entity.type) for name in (entity.name, *entity.merged_names)]
        further += [(entity.id, bare(name), entity.type) for name in entity.aliases]
    carriers = _carriers((*own, *further))
    owned = {(type_, name) for _, name, type_ in own}
    shared = {form for form, who in carriers.items() if len(who) > (2 if form in owned else 1)}
    certain = [*own, *(name for name in further if (name[2], name[1]) not in shared)]
    return certain, [(pair, AMBIGUOUS_NAME) for form in shared for pair in _pairs(carriers[form])]


def _carriers(names: Iterable[Name]) -> dict[tuple[str, str], set[int]]:
    """The entities by type and name."""
    carriers: dict[tuple[str, str], set[int]] = defaultdict(set)
    for entity, name, type_ in names:
        carriers[type_, name].add(entity)
    return carriers


def _of_one_form(names: Sequence[Name]) -> Iterator[tuple[Pair, Similarity]]:
    sharing: dict[tuple[str, str, Similarity], set[int]] = defaultdict(set)
    for entity, name, type_ in names:
        for form, similarity in name_similarity.forms(name, type_):
            sharing[type_, form, similarity].add(entity)
    for (_, _, similarity), entities in sharing.items():
        for pair in _pairs(entities):
            yield pair, similarity


def _one_letter_apart(names: Sequence[Name]) -> Iterator[tuple[Pair, Similarity]]:
    sharing: dict[tuple[str, str], dict[int, str]] = defaultdict(dict)
    for entity, name, type_ in names:
        spelling = name_similarity.spelling(name, type_)
        for slip in name_similarity.typo_keys(spelling):
            sharing[type_, slip][entity] = spelling
    for spellings in sharing.values():
        for first, second in _pairs(spellings):
            if name_similarity.is_typo(spellings[first], spellings[second]):
                yield (first, second), TYPO


def _shorter(names: Sequence[Name]) -> Iterator[tuple[Pair, Similarity]]:
    whole = _carriers(names)
    longer: dict[tuple[str, str], set[int]] = defaultdict(set)
    for entity, name, type_ in names:
        for part in shorter_forms(name, type_):
            if (type_, part) in whole:
                longer[type_, part].add(entity)
    for key, entities in longer.items():
        # 田中 is a shorter form of 田中太郎; with a 田中花子 it may be either.
        similarity = SHORTER if len(entities) == 1 else AMBIGUOUS
        if len(entities) <= SHARED_BY_MANY:
            yield from (((min(first, second), max(first, second)), similarity) for first in whole[key] for second in entities - {first})


def _pairs(entities: Collection[int]) -> Iterator[Pair]:
    return combinations(sorted(entities), 2) if 1 < len(entities) <= SHARED_BY_MANY else iter(())


class _Neighborhoods:
    """The neighbors of each entity, and the pairs that one memory names."""

    def __init__(self, connection: apsw.Connection, present: Mapping[int, Entity]) -> None:
        self._present = present
        self._neighbors: dict[int, set[int]] = defaultdict(set)
        self._related: set[Pair] = set()
        for here, there, is_stated in neighbors.pairs_from(connection, present):
            self._neighbors[here].add(there)
            if is_stated:
                self._related.add((here, there))

    def shared(self, pair: Pair) -> tuple[float, list[str]]:
        """The share of common neighbors, 0 to 1, and the names of some."""
        first, second = (self._neighbors[entity] - set(pair) for entity in pair)
        both = [entity for entity in first & second if len(self._neighbors[entity]) <= FEW_NEIGHBORS and entity in self._present]
        share = len(both) / len(first | second) if both else 0.0
        return share, [self._present[entity].name for entity in sorted(both)[:3]]

    def related(self, pair: Pair) -> bool:
        """Whether a memory names both or relates them; an entity has no relation to itself."""
        return pair in self._related

    def strangers(self, deadline: Deadline) -> Iterator[Pair]:
        """People with nearly the same neighbors that are never named together: one of two names is used at a time."""
        common: Counter[Pair] = Counter()
        people = {id_ for id_, entity in self._present.items() if entity.type in SHORTENED_TYPES}
        for entity, known in self._neighbors.items():
            deadline.check()
            if entity in self._present and len(known) <= FEW_NEIGHBORS:
                common.update(combinations(sorted(known & people), 2))
        for pair in [pair for pair, count in common.items() if count >= STRANGERS_SHARED]:
            same_type = self._present[pair[0]].type == self._present[pair[1]].type
            if same_type and not self.related(pair) and self.shared(pair)[0] >= STRANGERS_SHARE:
                yield pair
