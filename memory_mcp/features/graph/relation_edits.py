"""Relations stated or withdrawn by hand, outside of a memory."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from datetime import date, datetime, timedelta
from itertools import product
from typing import NoReturn
from zoneinfo import ZoneInfo

import apsw

from memory_mcp.config.settings import Privacy
from memory_mcp.dates.resolve import parse_range
from memory_mcp.dates.statements import NamedDay
from memory_mcp.domain import RelationValidity, StatedRelation
from memory_mcp.errors import EntityNotFound, InvalidInput
from memory_mcp.features.graph.entity_edits import because, recorded
from memory_mcp.graph.update.entity_linking import add_stated_relations, stated_days
from memory_mcp.language.labels import label
from memory_mcp.language.privacy.redaction import Redaction, relations_redacted
from memory_mcp.language.relation_notation import with_types
from memory_mcp.store.graph import relations, visibility
from memory_mcp.store.graph.entities import lookup, records
from memory_mcp.store.operations import Operation

# Finds the entities of a name, optionally with a type or as a day.
Find = Callable[[apsw.Connection, str, str | None, NamedDay | None], list[int]]

DATES = "Send 2015-03-31, 2015-03, 2015, or words such as 昨日, last month"


def lasting(valid_from: str, valid_to: str, notes: str, now: datetime, zone: ZoneInfo) -> RelationValidity:
    """The days on which a relation holds, from date expressions: of a longer span its first day, and its last.

    Raises:
        InvalidInput: one is no date, they are in the wrong order, or the notes are too long.
    """
    first = _days("valid_from", valid_from, now, zone)[0] if valid_from.strip() else None
    last = _days("valid_to", valid_to, now, zone)[1] if valid_to.strip() else None
    if first and last and last < first:
        raise InvalidInput("valid_to is before valid_from", "{} is before {}", "Send the earlier day as valid_from", last, first)
    return RelationValidity(first.isoformat() if first else None, last.isoformat() if last else None, label(notes, "notes"))


def _days(name: str, text: str, now: datetime, zone: ZoneInfo) -> tuple[date, date]:
    try:
        span = parse_range(text, now, zone)
    except InvalidInput as error:
        raise InvalidInput("{} {} is no date that can be understood", "", "{}", name, repr(text[:80]), DATES) from error
    if span.start.year == date.min.year or span.end.year == date.max.year:
        raise InvalidInput("{} {} is open at one end", "it is a day, or a span of days", "{}", name, repr(text[:80]), DATES)
    return span.start.astimezone(zone).date(), (span.end - timedelta(microseconds=1)).astimezone(zone).date()


@recorded
def relate(
    connection: apsw.Connection,
    relations_stated: Sequence[StatedRelation],
    *,
    now: datetime,
    privacy: Privacy,
    when: RelationValidity | None = None,
) -> tuple[Sequence[StatedRelation], list[Operation]]:
    """Stores relations, with the days on which they hold. Withdrawn ones hold again; earlier days are replaced. `now` is in the writer's
    time zone. Returns them as they are stored, without private data.

    Raises:
        InvalidInput: both ends of one are names of the same entity. Nothing was stored.
    """
    redaction = Redaction(privacy)
    stated, holds = relations_redacted(relations_stated, redaction), replace(when, notes=redaction.optional(when.notes)) if when else None
    for relation in stated:
        for source, target in product(*_ends(connection, relation, now.date(), _existing)):
            relations.allow(connection, source, target, relation.relation)
    for relation in add_stated_relations(connection, None, stated, now, holds):
        raise InvalidInput("{} and {} are one", "", "Relate two different ones", repr(relation.source[:80]), repr(relation.target[:80]))
    days = {name: value for name, value in asdict(holds).items() if value} if holds else {}
    return stated, [Operation("relate", None, now, after={**_as_json(relation), **days}) for relation in stated]


@recorded
def unrelate(
    connection: apsw.Connection, relation: StatedRelation, *, reason: str | None, now: datetime, privacy: Privacy
) -> tuple[bool, list[Operation]]:
    """Withdraws a relation, whatever evidence it has now or later. Returns whether there was one.

    Raises:
        EntityNotFound: one of the two is not known, or both.
        InvalidInput: several entities have the name as an alias, and none as its own name.
    """
    redaction = Redaction(privacy)
    redacted_reason = redaction.optional(reason)
    (stated,) = relations_redacted([relation], redaction)  # as `relate` stored it
    sources, targets = _ends(connection, stated, now.date(), _visible)
    if not (sources and targets):
        _refuse_unknown(connection, stated, bool(sources), bool(targets))
    if not any(relations.reject(connection, *ends, stated.relation, redacted_reason, now) for ends in product(sources, targets)):
        return False, []
    return True, [Operation("unrelate", None, now, before=_as_json(stated), metadata=because(redacted_reason))]


def _ends(connection: apsw.Connection, stated: StatedRelation, stated_on: date, find: Find) -> tuple[list[int], list[int]]:
    """The entities that may be the source of a relation, and those that may be its target."""
    typed = with_types(stated, records.entity_types(connection))
    source_day, target_day = stated_days(typed, stated_on)
    return find(connection, typed.source, typed.source_type, source_day), find(connection, typed.target, typed.target_type, target_day)


def _existing(connection: apsw.Connection, name: str, type_: str | None, day: NamedDay | None) -> list[int]:
    """The entity that a stated relation would use for this name; none where it would create one."""
    entity = records.find(connection, day.name, day.type) if day else records.find(connection, name, type_)
    return [entity.id] if entity else []


def _visible(connection: apsw.Connection, name: str, type_: str | None, day: NamedDay | None) -> list[int]:
    """The entities that a withdrawn relation may mean: none by a name that only the trash has; by a day without a year also those of
    other years.
    """
    if day is None:
        entity = records.find(connection, name, type_, among=lookup.by_name(connection, name))
        return [entity.id] if entity else []
    of_this_year = records.find(connection, day.name, day.type)
    days = [*([of_this_year] if of_this_year else []), *(entity for entity in records.by_name(connection, name) if entity.type == day.type)]
    return list(dict.fromkeys(entity.id for entity in visibility.visible_as(connection, days, name)))


def _refuse_unknown(connection: apsw.Connection, stated: StatedRelation, source_is_known: bool, target_is_known: bool) -> NoReturn:
    """Raises the error for an unknown end of a relation, or for an alias of several entities."""
    typed = with_types(stated, records.entity_types(connection))
    ends = ((typed.source, typed.source_type, source_is_known), (typed.target, typed.target_type, target_is_known))
    unknown = [(name, type_) for name, type_, is_known in ends if not is_known]
    for name, type_ in unknown:
        fitting = [entity for entity in lookup.by_name(connection, name) if type_ in (None, entity.type)]
        if len(fitting) > 1:
            candidates = ", ".join(f"{entity.name} ({entity.type})" for entity in fitting[: lookup.SUGGESTIONS])
            raise InvalidInput(
                "{} are called {}", "they are {}", "Name the one that you mean by its own name", len(fitting), repr(name[:80]), candidates
            )
    names = [repr(name[:80]) for name, _ in unknown]
    if len(names) > 1:
        raise EntityNotFound("{} are not known", "", "Look at entity_neighbors", " and ".join(names))
    near = lookup.similar_names_text(connection, unknown[0][0])
    raise EntityNotFound("{} is not known", "{}", "Look at entity_neighbors", names[0], near)


def _as_json(stated: StatedRelation) -> dict[str, str]:
    return {"source": stated.source, "relation": stated.relation, "target": stated.target}
