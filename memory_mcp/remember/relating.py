"""Relations that somebody states or takes back outside of any memory."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

import apsw

from memory_mcp.config.settings import Privacy
from memory_mcp.domain import Lasting, Stated
from memory_mcp.errors import EntityNotFound, InvalidInput
from memory_mcp.personas.registry import Persona
from memory_mcp.remember.drafts import label
from memory_mcp.remember.naming import days_stated, state_relations
from memory_mcp.remember.redact import relations_redacted
from memory_mcp.store import operations
from memory_mcp.store.graph import entities, relations, telling
from memory_mcp.store.operations import Operation
from memory_mcp.text.entities.mention import Mention
from memory_mcp.text.entities.stated import with_types
from memory_mcp.text.privacy.redaction import Redaction
from memory_mcp.text.timewords import parse_range

DATES = "Send 2015-03-31, 2015-03, 2015, or words such as 昨日, last month"


def lasting(valid_from: str, valid_to: str, notes: str, now: datetime, zone: ZoneInfo) -> Lasting:
    """When a relation holds, in words of dates: of a longer span its first day, and its last.

    Raises:
        InvalidInput: one is no date, they are in the wrong order, or the notes are too long.
    """
    first = _days("valid_from", valid_from, now, zone)[0] if valid_from.strip() else None
    last = _days("valid_to", valid_to, now, zone)[1] if valid_to.strip() else None
    if first and last and last < first:
        raise InvalidInput("valid_to is before valid_from", f"{last} is before {first}", "Send the earlier day as valid_from")
    return Lasting(first.isoformat() if first else None, last.isoformat() if last else None, label(notes, "notes"))


def _days(name: str, text: str, now: datetime, zone: ZoneInfo) -> tuple[date, date]:
    try:
        span = parse_range(text, now, zone)
    except InvalidInput as error:
        raise InvalidInput(f"{name} {text[:80]!r} is no date that can be understood", "", DATES) from error
    if span.start.year == date.min.year or span.end.year == date.max.year:
        raise InvalidInput(f"{name} {text[:80]!r} is open at one end", "it is a day, or a span of days", DATES)
    return span.start.astimezone(zone).date(), (span.end - timedelta(microseconds=1)).astimezone(zone).date()


def relate(persona: Persona, relations_told: Sequence[Stated], *, now: datetime, privacy: Privacy, when: Lasting | None = None) -> None:
    """Puts relations down, with when they hold. What was taken back before is good again, and what was said before of when is not. `now` is in
    the zone in which their writer lives.

    Raises:
        InvalidInput: both ends of one are names of the same entity. Nothing was put down.
    """
    found = Redaction(privacy)
    stated, holds = relations_redacted(relations_told, found), replace(when, notes=found.optional(when.notes)) if when else None

    def work(connection: apsw.Connection) -> list[Operation]:
        for one in stated:
            for ends in _meant(connection, one, now.date())[:1]:
                relations.allow(connection, *ends, one.relation)
        for one in state_relations(connection, None, stated, now, holds):
            raise InvalidInput(f"{one.source[:80]!r} and {one.target[:80]!r} are one", "", "Relate two different ones")
        done = [Operation("relate", None, now, after={**_told(one), **(_said(holds) if holds else {})}) for one in stated]
        for operation in done:
            operations.record(connection, operation)
        return done

    for operation in persona.database.write(work):
        persona.log.append(persona.name, operation)


def unrelate(persona: Persona, told: Stated, *, reason: str | None, now: datetime, privacy: Privacy) -> bool:
    """Takes a relation back, whatever speaks for it now or later. Returns whether there was one.

    Raises:
        EntityNotFound: one of the two is not known.
        InvalidInput: several are called so, and none by its own name.
    """
    found = Redaction(privacy)
    said = found.optional(reason)
    (stated,) = relations_redacted([told], found)  # as `relate` has put it down

    def work(connection: apsw.Connection) -> Operation | None:
        there = _meant(connection, stated, now.date(), to_take_back=True)
        if not there:
            _refuse_ambiguous(connection, stated)
            raise EntityNotFound(
                "one of the two is not known", f"{stated.source[:80]!r} or {stated.target[:80]!r}", "Look at entity_neighbors"
            )
        if not any(relations.reject(connection, *ends, stated.relation, said, now) for ends in there):
            return None
        operation = Operation("unrelate", None, now, before=_told(stated), metadata={"reason": said} if said else {})
        operations.record(connection, operation)
        return operation

    done = persona.database.write(work)
    if done:
        persona.log.append(persona.name, done)
    return done is not None


def _meant(connection: apsw.Connection, stated: Stated, said_on: date, *, to_take_back: bool = False) -> list[tuple[int, int]]:
    """The known entities that a relation is between, as stating it would find them. `to_take_back`: of a day without its year also those of
    other years, and nobody by what only the trash tells."""
    told = with_types(stated, entities.types(connection))
    first_day, second_day = days_stated(told, said_on)

    def known(name: str, type_: str | None, day: Mention | None) -> list[int]:
        among = telling.told_by_name(connection, name) if to_take_back else None
        one = entities.find(connection, day.name, day.type) if day else entities.find(connection, name, type_, among=among)
        others = [other for other in entities.by_name(connection, name) if other.type == day.type] if day and to_take_back else []
        found = list({entity.id: entity for entity in (one, *others) if entity}.values())
        return [entity.id for entity in (telling.told_as(connection, found, name) if to_take_back else found)]

    sources, targets = known(told.source, told.source_type, first_day), known(told.target, told.target_type, second_day)
    return [(source, target) for source in sources for target in targets]


def _refuse_ambiguous(connection: apsw.Connection, stated: Stated) -> None:
    """Says whom a relation may mean that names one end by a further name of several."""
    told = with_types(stated, entities.types(connection))
    for name, type_ in ((told.source, told.source_type), (told.target, told.target_type)):
        called = telling.told_by_name(connection, name)
        fitting = [one for one in called if type_ in (None, one.type)]
        if len(fitting) > 1 and entities.find(connection, name, type_, among=called) is None:
            who = ", ".join(f"{one.name} ({one.type})" for one in fitting[: telling.SUGGESTIONS])
            raise InvalidInput(f"{len(fitting)} are called {name[:80]!r}", f"they are {who}", "Name the one that you mean by its own name")


def _told(stated: Stated) -> dict[str, str]:
    return {"source": stated.source, "relation": stated.relation, "target": stated.target}


def _said(when: Lasting) -> dict[str, str]:
    return {name: value for name, value in asdict(when).items() if value}
