"""The graph's part of writing: whom a memory names and what it says of them, in the transaction that stores it.

What is made of it later (who is named together, what follows what) waits in the graph's queue: `weaving` does it while nobody calls.
`now` is in the zone in which its caller lives: the year of 10月17日, and 今年, are reckoned from the local day.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, replace
from datetime import date, datetime

import apsw

from memory_mcp.dates.mentions import NamedDay, day_called
from memory_mcp.domain import Draft, RelationValidity, StatedRelation
from memory_mcp.errors import InvalidInput
from memory_mcp.graph.extract.extraction import TEXT_LIMIT, found_in, likely_type
from memory_mcp.store import memories
from memory_mcp.store.graph import mentions, relation_queue, relations
from memory_mcp.store.graph.entities import records
from memory_mcp.store.graph.entities.names import KnownNames
from memory_mcp.store.graph.relations import Evidence
from memory_mcp.text.mention import TRUST, Mention
from memory_mcp.text.relation_notation import with_types

# Without it a text marks nothing, and nobody has to know the types.
MARK = "[["
# How strong a relation is that a caller states, if nothing else speaks for it.
STATED_WEIGHT = 0.8


def name_entities(connection: apsw.Connection, names: KnownNames, memory_id: int, draft: Draft, now: datetime) -> None:
    """Puts down whom a new memory names, and the relations that its writer states."""
    happened = draft.occurred_at or draft.restored.created_at or now
    named = _named(connection, names, draft.content, _day(happened, now), now)
    mentions.add(connection, memory_id, named, now)
    if draft.restored.deleted_at is None:
        mentions.count_new_memory(connection, {entity for entity, _ in named}, happened)
    state_relations(connection, memory_id, draft.relations, now)
    relation_queue.enqueue(connection, [memory_id])


def state_relations(
    connection: apsw.Connection,
    memory_id: int | None,
    stated: Sequence[StatedRelation],
    now: datetime,
    lasting: RelationValidity | None = None,
) -> list[StatedRelation]:
    """Relations in their writer's words, and when they hold; entities that they name and nobody knows yet are made. Returns those that say
    nothing, as both their ends are names of one."""
    if not stated:
        return []
    evidence, of_one = [], []
    types = records.entity_types(connection)
    said_on = _day_of(connection, memory_id, now) if memory_id else now.date()
    for relation in (with_types(one, types) for one in stated):
        source_day, target_day = days_stated(relation, said_on)
        source = _stated_end(connection, relation.source, relation.source_type, source_day, now)
        target = _stated_end(connection, relation.target, relation.target_type, target_day, now)
        if memory_id is None:
            records.mark_names_by_hand(connection, source, [relation.source])
            records.mark_names_by_hand(connection, target, [relation.target])
        if source == target:
            of_one.append(relation)
        else:
            said = Evidence(source, target, relation.relation, STATED_WEIGHT, TRUST["stated"], relations.STATED, memory=memory_id)
            if memory_id is not None:
                said = replace(said, source_said=relation.source, target_said=relation.target)
            evidence.append(replace(said, **asdict(lasting)) if lasting else said)
    relations.sum_up(connection, relations.add(connection, evidence, now), now)
    return of_one


def days_stated(relation: StatedRelation, said_on: date) -> tuple[NamedDay | None, NamedDay | None]:
    """The days that a relation's ends are, as they would be in a text: of the year in which it was said, or, a birthday, of none."""

    def day(name: str, type_: str | None, beside: str) -> NamedDay | None:
        return day_called(name, said_on, relation.relation, beside) if type_ in (None, "TimeUnit") else None

    return day(relation.source, relation.source_type, relation.target), day(relation.target, relation.target_type, relation.source)


def _stated_end(connection: apsw.Connection, name: str, type_: str | None, day: NamedDay | None, now: datetime) -> int:
    """Who or what a relation's end is."""
    if day is None:
        return records.find_or_create(connection, name, type_, TRUST["stated"], now, likely=None if type_ else likely_type(name))
    entity = records.find_or_create(connection, day.name, day.type, TRUST["stated"], now, subtype=day.subtype)
    records.add_aliases(connection, entity, day.aliases)
    return entity


def check_types(connection: apsw.Connection, stated: Sequence[StatedRelation]) -> None:
    """Whether each type that a writer puts behind a bar is one.

    Raises:
        InvalidInput: there is no such type; says which there are.
    """
    if not any("|" in name for one in stated for name in (one.source, one.target)):
        return
    types = records.entity_types(connection)
    for relation in (with_types(one, types) for one in stated):
        for name in (relation.source, relation.target):
            if "|" in name:
                word = name.rpartition("|")[2].strip()
                raise InvalidInput(f"there is no type {word[:80]!r}", f"known are {', '.join(types)}", "Take one of them, or none")


def state_further(connection: apsw.Connection, memory_id: int, stated: Sequence[StatedRelation], now: datetime) -> list[StatedRelation]:
    """Adds relations to a memory that is there already. Returns those that it did not state before."""
    before = relations.stated_count(connection, memory_id)
    added = []
    for one in stated:
        state_relations(connection, memory_id, [one], now)
        there = relations.stated_count(connection, memory_id)
        if there > before:
            added.append(one)
        before = there
    if added:
        relation_queue.enqueue(connection, [memory_id])
    return added


def name_again(
    connection: apsw.Connection, names: KnownNames, memory_id: int, content: str, now: datetime, *, changed: bool = True
) -> None:
    """Whom a memory names after its text has `changed`, or more names are known. What its writer stated stands; what a chat model read in
    the same text, too."""
    before = mentions.entities_of(connection, memory_id)
    mentions.remove(connection, memory_id, besides=() if changed else ("model",))
    named = _named(connection, names, content, _day_of(connection, memory_id, now), now)
    mentions.add(connection, memory_id, named, now)
    mentions.recount(connection, before | {entity for entity, _ in named})
    relations.sum_up(
        connection, relations.remove_of_memory(connection, memory_id, relations.FROM_TEXT if changed else ("co_occurrence",)), now
    )
    relation_queue.enqueue(connection, [memory_id])


def name_further(connection: apsw.Connection, memory_ids: Sequence[int], find: Callable[[str], Iterable[Mention]], now: datetime) -> None:
    """Whom these memories name beside what was found when they were stored."""
    for memory in memories.by_ids(connection, memory_ids).values():
        taken = mentions.spans(connection, memory.id)
        free = [one for one in find(memory.content) if all(one.end <= start or one.start >= end for start, end in taken)]
        named = [
            (records.find_or_create(connection, mention.name, mention.type, mention.confidence, now), mention)
            for mention in free
            if memory.kind != "summary"
        ]
        if named:
            mentions.add(connection, memory.id, named, now)
            mentions.recount(connection, {entity for entity, _ in named})


def after_coming_or_going(connection: apsw.Connection, memory_ids: Iterable[int], now: datetime) -> None:
    """What the graph says after these memories went into the trash, came out of it, or were replaced: what they speak for weighs
    less, or more."""
    ids = list(memory_ids)
    if not ids:
        return
    named = {entity for found in mentions.of_memories(connection, ids).values() for entity in found}
    mentions.recount(connection, named)
    relations.sum_up(connection, relations.pairs_of_memories(connection, ids), now)


def _day_of(connection: apsw.Connection, memory_id: int, now: datetime) -> date:
    """The day, where `now` is, on which a memory happened: from it a date is reckoned that its text tells without a year."""
    return _day(datetime.fromisoformat(memories.origins(connection, [memory_id])[memory_id].happened), now)


def _day(moment: datetime, now: datetime) -> date:
    """The day of a moment where `now` is."""
    try:
        return moment.astimezone(now.tzinfo).date()
    except OverflowError:  # at the ends of time
        return moment.date()


def _named(connection: apsw.Connection, names: KnownNames, content: str, said_on: date, now: datetime) -> list[tuple[int, Mention]]:
    """The entities that a text names. One that is new is made."""
    read = content[:TEXT_LIMIT]
    made: dict[tuple[str, str | None, str | None], int] = {}
    named: list[tuple[int, Mention]] = []
    types = records.entity_types(connection) if MARK in read else ()
    for mention in found_in(read, types, names.called(connection, read), said_on=said_on):
        called = (mention.name, mention.type, mention.likely)
        entity = mention.entity or made.get(called)
        if mention.entity and mention.likely:
            records.fill_type(connection, mention.entity, mention.likely, now)
        if entity is None:
            entity = records.find_or_create(
                connection, mention.name, mention.type, mention.confidence, now, subtype=mention.subtype, likely=mention.likely
            )
            records.add_aliases(connection, entity, mention.aliases)
            made[called] = entity
        named.append((entity, mention))
    return named
