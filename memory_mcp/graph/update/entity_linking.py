"""Links memories to the entities and times that they name and to the relations that they state, in the transaction that stores them.

These are the functions that `remember` calls. Co-occurrence and links between memories wait in the graph's queue for the background
(`cooccurrence`). `now` is in the caller's time zone: the year of 10月17日, and 今年, are reckoned from the local day.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import UTC, date, datetime

import apsw

from memory_mcp.dates.hours import in_utc_spans
from memory_mcp.dates.statements import NamedDay, Statement, day_called, day_of_telling, days_of_statement
from memory_mcp.domain import Draft, Memory, RelationValidity, StatedRelation
from memory_mcp.errors import InvalidInput
from memory_mcp.graph.extract.extraction import MARK_START, TEXT_LIMIT, extract_mentions, likely_type
from memory_mcp.language.names import TRUST, Mention
from memory_mcp.language.relation_notation import with_types
from memory_mcp.store import memories, memory_dates
from memory_mcp.store.graph import mentions, relation_queue, relations
from memory_mcp.store.graph.entities import records
from memory_mcp.store.graph.entities.names import KnownNames
from memory_mcp.store.graph.relations import Evidence

# The weight of a stated relation without other evidence.
STATED_WEIGHT = 0.8


def link_entities(connection: apsw.Connection, names: KnownNames, memory_id: int, draft: Draft, now: datetime) -> None:
    """Stores the mentions of a new memory, and the relations that its writer states. A summary names what its sources name already. The memory is to be
    added to the queue of relations."""
    happened = draft.occurred_at or draft.restored.created_at or now
    told = Statement(draft.content[:TEXT_LIMIT])
    stored_on = _local_day(draft.restored.created_at or now, now)
    stated_on: date | None = None
    if draft.restored.is_undated and not draft.occurred_at:
        memory_dates.note_undated(connection, memory_id)
    else:
        stated_on = day_of_telling(told, _local_day(happened, now), stored_on)
    if draft.kind != "summary":
        linked = _linked(connection, names, told, stated_on, now)
        if times := days_of_statement(told, stated_on, stored_on):
            memory_dates.add(connection, memory_id, in_utc_spans(times, now.tzinfo or UTC))
        if linked:
            mentions.add(connection, memory_id, linked, now)
        if linked and draft.restored.deleted_at is None:
            mentions.count_new_memory(connection, {entity for entity, _ in linked}, happened)
    if draft.relations:
        _add_relations(connection, memory_id, draft.relations, stated_on, now)


def add_stated_relations(
    connection: apsw.Connection,
    memory_id: int | None,
    stated: Sequence[StatedRelation],
    now: datetime,
    lasting: RelationValidity | None = None,
) -> list[StatedRelation]:
    """Adds stated relations, with the days on which they hold; unknown entities are created. Returns those with two names of
    one entity as ends, which are not added."""
    if not stated:
        return []
    stated_on = _day_of_memory(connection, memories.by_ids(connection, [memory_id])[memory_id], now) if memory_id else now.date()
    return _add_relations(connection, memory_id, stated, stated_on, now, lasting)


def _add_relations(
    connection: apsw.Connection,
    memory_id: int | None,
    stated: Sequence[StatedRelation],
    stated_on: date | None,
    now: datetime,
    lasting: RelationValidity | None = None,
) -> list[StatedRelation]:
    evidence, with_equal_ends = [], []
    types = records.entity_types(connection)
    for relation in (with_types(relation, types) for relation in stated):
        source_day, target_day = stated_days(relation, stated_on)
        source = _end_of_relation(connection, relation.source, relation.source_type, source_day, now)
        target = _end_of_relation(connection, relation.target, relation.target_type, target_day, now)
        if memory_id is None:
            records.mark_names_by_hand(connection, source, [relation.source])
            records.mark_names_by_hand(connection, target, [relation.target])
        if source == target:
            with_equal_ends.append(relation)
        else:
            item = Evidence(source, target, relation.relation, STATED_WEIGHT, TRUST["stated"], relations.STATED, memory=memory_id)
            if memory_id is not None:
                item = replace(item, source_name=relation.source, target_name=relation.target)
            evidence.append(replace(item, **asdict(lasting)) if lasting else item)
    relations.sum_up(connection, relations.add(connection, evidence, now), now)
    return with_equal_ends


def stated_days(relation: StatedRelation, stated_on: date | None) -> tuple[NamedDay | None, NamedDay | None]:
    """The days that the ends of a relation name, as in a text: of the year in which it was stated, or, of a birthday, of none."""

    def day(name: str, type_: str | None, other_end: str) -> NamedDay | None:
        return day_called(name, stated_on, relation.relation, other_end) if type_ in (None, "TimeUnit") else None

    return day(relation.source, relation.source_type, relation.target), day(relation.target, relation.target_type, relation.source)


def _end_of_relation(connection: apsw.Connection, name: str, type_: str | None, day: NamedDay | None, now: datetime) -> int:
    """The entity at an end of a relation; created if it is unknown."""
    if day is None:
        return records.find_or_create(connection, name, type_, TRUST["stated"], now, likely=None if type_ else likely_type(name))
    entity = records.find_or_create(connection, day.name, day.type, TRUST["stated"], now, subtype=day.subtype)
    records.add_aliases(connection, entity, day.aliases)
    return entity


def check_relation_types(connection: apsw.Connection, stated: Sequence[StatedRelation]) -> None:
    """Checks the types after bars.

    Raises:
        InvalidInput: there is no such type; the message lists the known ones.
    """
    if not any("|" in name for relation in stated for name in (relation.source, relation.target)):
        return
    types = records.entity_types(connection)
    for relation in (with_types(relation, types) for relation in stated):
        for name in (relation.source, relation.target):
            if "|" in name:
                word = name.rpartition("|")[2].strip()
                raise InvalidInput("there is no type {}", "known are {}", "Take one of them, or none", repr(word[:80]), ", ".join(types))


def add_missing_relations(
    connection: apsw.Connection, memory_id: int, stated: Sequence[StatedRelation], now: datetime
) -> list[StatedRelation]:
    """Adds relations to a stored memory. Returns those that it did not state before."""
    before, added = relations.stated_count(connection, memory_id), []
    stated_on = _day_of_memory(connection, memories.by_ids(connection, [memory_id])[memory_id], now)
    for relation in stated:
        _add_relations(connection, memory_id, [relation], stated_on, now)
        after = relations.stated_count(connection, memory_id)
        if after > before:
            added.append(relation)
        before = after
    if added:
        relation_queue.enqueue(connection, [memory_id])
    return added


def relink_entities(
    connection: apsw.Connection, names: KnownNames, texts: Mapping[int, str], now: datetime, *, changed: bool = True
) -> None:
    """Links memories anew, given their texts, after these have `changed` or more names are known. Stated relations are kept, and so is
    what a chat model found in the same text. Co-occurrences follow when the queue is worked off.
    """
    affected: set[int] = set()
    for memory_id, content in texts.items():
        affected |= _relink(connection, names, memory_id, content, now, changed=changed)
    # Counting reads every memory of an entity, so it is counted once for all these texts.
    mentions.recount(connection, affected)
    if changed:
        for memory_id in texts:
            relations.sum_up(connection, relations.remove_of_memory(connection, memory_id, relations.FROM_TEXT), now)
        relation_queue.enqueue(connection, texts)


def _relink(connection: apsw.Connection, names: KnownNames, memory_id: int, content: str, now: datetime, *, changed: bool) -> set[int]:
    """Returns the entities that it mentions now and did not before, or the other way round: in a text in which more names are known,
    few.
    """
    before = mentions.entities_of(connection, memory_id)
    mentions.remove(connection, memory_id, text_changed=changed)
    told, memory = Statement(content[:TEXT_LIMIT]), memories.by_ids(connection, [memory_id])[memory_id]
    stated_on = _day_of_memory(connection, memory, now, told)
    linked = _linked(connection, names, told, stated_on, now)
    spans = days_of_statement(told, stated_on, _local_day(memory.created_at, now))
    memory_dates.replace(connection, memory_id, in_utc_spans(spans, now.tzinfo or UTC))
    mentions.add(connection, memory_id, linked, now)
    return before ^ mentions.entities_of(connection, memory_id)


def link_dictionary_names(
    connection: apsw.Connection, memory_ids: Sequence[int], find: Callable[[str], Iterable[Mention]], now: datetime
) -> None:
    """Adds the mentions that a dictionary finds in these memories outside of those that they have."""
    for memory in memories.by_ids(connection, memory_ids).values():
        taken = mentions.spans(connection, memory.id)
        free = [mention for mention in find(memory.content) if all(mention.end <= start or mention.start >= end for start, end in taken)]
        linked = [
            (records.find_or_create(connection, mention.name, mention.type, mention.confidence, now), mention)
            for mention in free
            if memory.kind != "summary"
        ]
        if linked:
            mentions.add(connection, memory.id, linked, now)
            mentions.recount(connection, {entity for entity, _ in linked})


def _day_of_memory(connection: apsw.Connection, memory: Memory, now: datetime, told: Statement | None = None) -> date | None:
    """The local day from which the words of a memory are counted, such as the year of a date without one; None where nobody knows it.
    `told`: its text, if it was read already.
    """
    if memory.occurred_at is None and memory_dates.is_undated(connection, memory.id):
        return None
    told = told or Statement(memory.content[:TEXT_LIMIT])
    return day_of_telling(told, _local_day(memory.event_time, now), _local_day(memory.created_at, now))


def _local_day(moment: datetime, now: datetime) -> date:
    """The day of a moment in the time zone of `now`."""
    try:
        return moment.astimezone(now.tzinfo).date()
    except OverflowError:  # in the first or last year of the calendar
        return moment.date()


def _linked(
    connection: apsw.Connection, names: KnownNames, told: Statement, stated_on: date | None, now: datetime
) -> list[tuple[int, Mention]]:
    """The entities that a text names, with their mentions. Unknown entities are created."""
    created: dict[tuple[str, str | None, str | None], int] = {}
    linked: list[tuple[int, Mention]] = []
    types = records.entity_types(connection) if MARK_START in told.text else ()
    for mention in extract_mentions(told.text, types, names.matches(connection, told.text, told.composed), stated_on=stated_on, told=told):
        key = (mention.name, mention.type, mention.likely)
        entity = mention.entity or created.get(key)
        if mention.entity and mention.likely:
            records.fill_type(connection, mention.entity, mention.likely, now)
        if entity is None:
            entity = records.find_or_create(
                connection, mention.name, mention.type, mention.confidence, now, subtype=mention.subtype, likely=mention.likely
            )
            records.add_aliases(connection, entity, mention.aliases)
            created[key] = entity
        linked.append((entity, mention))
    return linked
