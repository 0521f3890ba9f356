"""Relations that somebody states or takes back outside of any memory."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from datetime import date, datetime, timedelta
from itertools import product
from typing import NoReturn
from zoneinfo import ZoneInfo

import apsw

from memory_mcp.config.settings import Privacy
from memory_mcp.dates.mentions import NamedDay
from memory_mcp.dates.resolve import parse_range
from memory_mcp.domain import RelationValidity, StatedRelation
from memory_mcp.errors import EntityNotFound, InvalidInput
from memory_mcp.graph.update.entity_linking import days_stated, state_relations
from memory_mcp.personas.registry import Persona
from memory_mcp.store import operations
from memory_mcp.store.graph import relations
from memory_mcp.store.graph.entities import lookup, records
from memory_mcp.store.operations import Operation
from memory_mcp.text.labels import label
from memory_mcp.text.privacy.redaction import Redaction, relations_redacted
from memory_mcp.text.relation_notation import with_types

# Finds the entities of a name, and of a type or as a day where it tells one.
Find = Callable[[apsw.Connection, str, str | None, NamedDay | None], list[int]]

DATES = "Send 2015-03-31, 2015-03, 2015, or words such as 昨日, last month"


def lasting(valid_from: str, valid_to: str, notes: str, now: datetime, zone: ZoneInfo) -> RelationValidity:
    """When a relation holds, in words of dates: of a longer span its first day, and its last.

    Raises:
        InvalidInput: one is no date, they are in the wrong order, or the notes are too long.
    """
    first = _days("valid_from", valid_from, now, zone)[0] if valid_from.strip() else None
    last = _days("valid_to", valid_to, now, zone)[1] if valid_to.strip() else None
    if first and last and last < first:
        raise InvalidInput("valid_to is before valid_from", f"{last} is before {first}", "Send the earlier day as valid_from")
    return RelationValidity(first.isoformat() if first else None, last.isoformat() if last else None, label(notes, "notes"))


def _days(name: str, text: str, now: datetime, zone: ZoneInfo) -> tuple[date, date]:
    try:
        span = parse_range(text, now, zone)
    except InvalidInput as error:
        raise InvalidInput(f"{name} {text[:80]!r} is no date that can be understood", "", DATES) from error
    if span.start.year == date.min.year or span.end.year == date.max.year:
        raise InvalidInput(f"{name} {text[:80]!r} is open at one end", "it is a day, or a span of days", DATES)
    return span.start.astimezone(zone).date(), (span.end - timedelta(microseconds=1)).astimezone(zone).date()


def relate(
    persona: Persona, relations_told: Sequence[StatedRelation], *, now: datetime, privacy: Privacy, when: RelationValidity | None = None
) -> None:
    """Puts relations down, with when they hold. What was taken back before is good again, and what was said before of when is not. `now` is in
    the zone in which their writer lives.

    Raises:
        InvalidInput: both ends of one are names of the same entity. Nothing was put down.
    """
    found = Redaction(privacy)
    stated, holds = relations_redacted(relations_told, found), replace(when, notes=found.optional(when.notes)) if when else None

    def work(connection: apsw.Connection) -> list[Operation]:
        for one in stated:
            for source, target in product(*_ends(connection, one, now.date(), _known)):
                relations.allow(connection, source, target, one.relation)
        for one in state_relations(connection, None, stated, now, holds):
            raise InvalidInput(f"{one.source[:80]!r} and {one.target[:80]!r} are one", "", "Relate two different ones")
        done = [Operation("relate", None, now, after={**_told(one), **(_said(holds) if holds else {})}) for one in stated]
        for operation in done:
            operations.record(connection, operation)
        return done

    for operation in persona.database.write(work):
        persona.log.append(persona.name, operation)


def unrelate(persona: Persona, told: StatedRelation, *, reason: str | None, now: datetime, privacy: Privacy) -> bool:
    """Takes a relation back, whatever speaks for it now or later. Returns whether there was one.

    Raises:
        EntityNotFound: one of the two is not known, or both; says which.
        InvalidInput: several are called so, and none by its own name.
    """
    found = Redaction(privacy)
    said = found.optional(reason)
    (stated,) = relations_redacted([told], found)  # as `relate` has put it down

    def work(connection: apsw.Connection) -> Operation | None:
        sources, targets = _ends(connection, stated, now.date(), _told_of)
        if not (sources and targets):
            _refuse_unknown(connection, stated, bool(sources), bool(targets))
        if not any(relations.reject(connection, *ends, stated.relation, said, now) for ends in product(sources, targets)):
            return None
        operation = Operation("unrelate", None, now, before=_told(stated), metadata={"reason": said} if said else {})
        operations.record(connection, operation)
        return operation

    done = persona.database.write(work)
    if done:
        persona.log.append(persona.name, done)
    return done is not None


def _ends(connection: apsw.Connection, stated: StatedRelation, said_on: date, find: Find) -> tuple[list[int], list[int]]:
    """The entities that may be the source of a relation, and those that may be its target."""
    told = with_types(stated, records.entity_types(connection))
    source_day, target_day = days_stated(told, said_on)
    return find(connection, told.source, told.source_type, source_day), find(connection, told.target, told.target_type, target_day)


def _known(connection: apsw.Connection, name: str, type_: str | None, day: NamedDay | None) -> list[int]:
    """Whom stating a relation finds by this name; nobody where it would make one."""
    found = records.find(connection, day.name, day.type) if day else records.find(connection, name, type_)
    return [found.id] if found else []


def _told_of(connection: apsw.Connection, name: str, type_: str | None, day: NamedDay | None) -> list[int]:
    """Whom somebody means who takes a relation back: nobody by what only the trash tells; by a day without its year also those of other years."""
    if day is None:
        found = records.find(connection, name, type_, among=lookup.by_name(connection, name))
        return [found.id] if found else []
    of_this_year = records.find(connection, day.name, day.type)
    days = [*([of_this_year] if of_this_year else []), *(one for one in records.by_name(connection, name) if one.type == day.type)]
    return list(dict.fromkeys(one.id for one in lookup.visible_as(connection, days, name)))


def _refuse_unknown(connection: apsw.Connection, stated: StatedRelation, source_is_known: bool, target_is_known: bool) -> NoReturn:
    """Says which end of a relation is not known, or whom it may mean by a further name of several."""
    told = with_types(stated, records.entity_types(connection))
    ends = ((told.source, told.source_type, source_is_known), (told.target, told.target_type, target_is_known))
    unknown = [(name, type_) for name, type_, is_known in ends if not is_known]
    for name, type_ in unknown:
        fitting = [one for one in lookup.by_name(connection, name) if type_ in (None, one.type)]
        if len(fitting) > 1:
            who = ", ".join(f"{one.name} ({one.type})" for one in fitting[: lookup.SUGGESTIONS])
            raise InvalidInput(f"{len(fitting)} are called {name[:80]!r}", f"they are {who}", "Name the one that you mean by its own name")
    names = [repr(name[:80]) for name, _ in unknown]
    near = "" if len(names) > 1 else lookup.similar_names_text(connection, unknown[0][0])
    raise EntityNotFound(f"{' and '.join(names)} {'are' if len(names) > 1 else 'is'} not known", near, "Look at entity_neighbors")


def _told(stated: StatedRelation) -> dict[str, str]:
    return {"source": stated.source, "relation": stated.relation, "target": stated.target}


def _said(when: RelationValidity) -> dict[str, str]:
    return {name: value for name, value in asdict(when).items() if value}
