"""Who may be one under two names: by their names, and by whom they know. Proposed, never merged; who was said to be two stays two."""

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import apsw

from memory_mcp.dates.mentions import DAY
from memory_mcp.graph.analytics.deadline import Deadline
from memory_mcp.store.graph import neighbors, overview
from memory_mcp.store.graph.entities import entity_merges
from memory_mcp.store.graph.entities.lookup import visible
from memory_mcp.store.graph.entities.records import Entity
from memory_mcp.text import name_similarity
from memory_mcp.text.name_similarity import AMBIGUOUS, AMBIGUOUS_NAME, SHORTENED_TYPES, SHORTER, TYPO, Similarity, surest
from memory_mcp.text.names import bare

# So many entities are compared, those that count most.
ENTITIES_LIMIT = 20_000
# A form that more names share tells nothing of any two of them: 山田 is a part of many names.
SHARED_BY_MANY = 20
# Somebody whom everybody knows says nothing; whom few know, much.
KNOWN_BY_FEW = 30
# Without a likeness of names: how much of whom they know must be the same, and how many at least.
STRANGERS_SHARE, STRANGERS_SHARED = 0.6, 3
# What sharing neighbours adds to a likeness of names at most, and what being named in one memory takes away.
NEIGHBOURS_ADD, TOGETHER_TAKES = 0.15, 0.3
LEAST_SCORE = 0.4
ENDLESS = Deadline.after(math.inf)

Pair = tuple[int, int]
Name = tuple[int, str, str]  # whose, what, and of which type


@dataclass(frozen=True, slots=True)
class Proposal:
    """Two entities of one type that may be one: how likely, 0 to 1, and why. `kept` is mentioned more often."""

    kept: Entity
    merged: Entity
    score: float
    why: tuple[str, ...]


def proposals(connection: apsw.Connection, limit: int, deadline: Deadline = ENDLESS) -> tuple[list[Proposal], int]:
    """The likeliest proposals, and how many there are in all.

    Raises:
        AnalysisUnfinished: the deadline came first.
    """
    present = {entity.id: entity for entity in visible(connection, overview.most_connected(connection, ENTITIES_LIMIT))}
    deadline.check()
    around = _Around(connection, present)
    deadline.check()
    alike = _by_names(present.values(), deadline)
    apart = entity_merges.distinct_pairs(connection)
    found = []
    for pair in {*alike, *around.strangers(deadline)} - apart:
        deadline.check()
        score, why = _judged(alike.get(pair), around, pair)
        if score >= LEAST_SCORE:
            kept, merged = sorted((present[one] for one in pair), key=lambda entity: (-entity.extraction_count, entity.id))
            found.append(Proposal(kept, merged, score, why))
    found.sort(key=lambda one: (-one.score, one.kept.id, one.merged.id))
    return found[:limit], len(found)


def _judged(similarity: Similarity | None, around: "_Around", pair: Pair) -> tuple[float, tuple[str, ...]]:
    share, names = around.shared(pair)
    why = [similarity.why] if similarity else []
    score = similarity.score if similarity else 0.3 + 0.2 * share
    if names:
        score += NEIGHBOURS_ADD * share if similarity else 0.0
        why.append(f"both are related to {', '.join(names)}")
    if around.together(pair):
        score -= TOGETHER_TAKES
        why.append("but one memory names both")
    return round(min(score, 0.99), 2), tuple(why)


def _by_names(entities: Iterable[Entity], deadline: Deadline) -> dict[Pair, Similarity]:
    """The pairs of one type whose names are alike."""
    names, of_several = _names(entities)
    found: dict[Pair, list[Similarity]] = defaultdict(list)
    for pair, says in (*of_several, *_of_one_form(names), *_one_letter_apart(names), *_shorter(names)):
        deadline.check()
        found[pair].append(says)
    return {pair: surest(says) for pair, says in found.items()}


def _names(entities: Iterable[Entity]) -> tuple[list[Name], list[tuple[Pair, Similarity]]]:
    """The names that tell whose they are; and the pairs that share a further name with each other or with more: ケン, of 健太 and of 健二."""
    own, further = [], []
    # 10月17日 is a name of that day in each year, and no two of them are one.
    for entity in (one for one in entities if one.subtype != DAY):
        own += [(entity.id, name, entity.type) for name in (entity.name, *entity.merged_names)]
        further += [(entity.id, name, entity.type) for name in entity.aliases]
    carriers = _carriers((*own, *further))
    owned = {(type_, bare(name)) for _, name, type_ in own}
    shared = {form for form, who in carriers.items() if len(who) > (2 if form in owned else 1)}
    certain = [*own, *(name for name in further if (name[2], bare(name[1])) not in shared)]
    return certain, [(pair, AMBIGUOUS_NAME) for form in shared for pair in _pairs(carriers[form])]


def _carriers(names: Iterable[Name]) -> dict[tuple[str, str], set[int]]:
    """By type and name, who is called so."""
    found: dict[tuple[str, str], set[int]] = defaultdict(set)
    for entity, name, type_ in names:
        found[type_, bare(name)].add(entity)
    return found


def _of_one_form(names: Sequence[Name]) -> Iterator[tuple[Pair, Similarity]]:
    sharing: dict[tuple[str, str, Similarity], set[int]] = defaultdict(set)
    for entity, name, type_ in names:
        for form, says in name_similarity.forms(name, type_):
            sharing[type_, form, says].add(entity)
    for (_, _, says), who in sharing.items():
        for pair in _pairs(who):
            yield pair, says


def _one_letter_apart(names: Sequence[Name]) -> Iterator[tuple[Pair, Similarity]]:
    sharing: dict[tuple[str, str], dict[int, str]] = defaultdict(dict)
    for entity, name, type_ in names:
        spelled = name_similarity.spelling(name, type_)
        for slip in name_similarity.typo_keys(spelled):
            sharing[type_, slip][entity] = spelled
    for spellings in sharing.values():
        for one, other in _pairs(spellings):
            if name_similarity.is_typo(spellings[one], spellings[other]):
                yield (one, other), TYPO


def _shorter(names: Sequence[Name]) -> Iterator[tuple[Pair, Similarity]]:
    whole: dict[tuple[str, str], set[int]] = defaultdict(set)
    longer: dict[tuple[str, str], set[int]] = defaultdict(set)
    for entity, name, type_ in names:
        whole[type_, bare(name)].add(entity)
        for part in name_similarity.parts(name, type_):
            longer[type_, part].add(entity)
    for place in whole.keys() & longer.keys():
        who = longer[place]
        # 田中 is a shorter 田中太郎; where there is a 田中花子 too, it may be either.
        says = SHORTER if len(who) == 1 else AMBIGUOUS
        if len(who) <= SHARED_BY_MANY:
            yield from (((min(one, other), max(one, other)), says) for one in whole[place] for other in who - {one})


def _pairs(who: Collection[int]) -> Iterator[Pair]:
    return combinations(sorted(who), 2) if 1 < len(who) <= SHARED_BY_MANY else iter(())


class _Around:
    """Whom each entity is related to, and with whom it is named in one memory."""

    def __init__(self, connection: apsw.Connection, present: Mapping[int, Entity]) -> None:
        self._present = present
        self._known: dict[int, set[int]] = defaultdict(set)
        self._related: set[Pair] = set()
        for step in neighbors.steps_from(connection, present):
            self._known[step.here].add(step.there)
            if step.type != "similarity":
                self._related.add((step.here, step.there))

    def shared(self, pair: Pair) -> tuple[float, list[str]]:
        """How much of whom the two know is the same, 0 to 1, and the names of some."""
        one, other = (self._known[entity] - set(pair) for entity in pair)
        both = [entity for entity in one & other if len(self._known[entity]) <= KNOWN_BY_FEW and entity in self._present]
        share = len(both) / len(one | other) if both else 0.0
        return share, [self._present[entity].name for entity in sorted(both)[:3]]

    def together(self, pair: Pair) -> bool:
        """Whether a memory names both, or relates them: nobody knows himself."""
        return pair in self._related

    def strangers(self, deadline: Deadline) -> Iterator[Pair]:
        """People who know nearly the same, and are never named together: who goes by two names is called by one at a time."""
        common: Counter[Pair] = Counter()
        people = {entity for entity, told in self._present.items() if told.type in SHORTENED_TYPES}
        for entity, known in self._known.items():
            deadline.check()
            if entity in self._present and len(known) <= KNOWN_BY_FEW:
                common.update(combinations(sorted(known & people), 2))
        for pair in [pair for pair, many in common.items() if many >= STRANGERS_SHARED]:
            same_type = self._present[pair[0]].type == self._present[pair[1]].type
            if same_type and not self.together(pair) and self.shared(pair)[0] >= STRANGERS_SHARE:
                yield pair
