"""Relations that somebody states or takes back outside of any memory."""

from collections.abc import Sequence
from datetime import datetime

import apsw

from memory_mcp.config.settings import Privacy
from memory_mcp.domain import Stated
from memory_mcp.errors import EntityNotFound, InvalidInput
from memory_mcp.personas.registry import Persona
from memory_mcp.remember.naming import state_relations
from memory_mcp.remember.redact import relations_redacted
from memory_mcp.store import operations
from memory_mcp.store.graph import entities, relations
from memory_mcp.store.operations import Operation
from memory_mcp.text.entities.stated import with_types
from memory_mcp.text.privacy.redaction import Redaction


def relate(persona: Persona, relations_told: Sequence[Stated], *, now: datetime, privacy: Privacy) -> None:
    """Puts relations down. What was taken back before is good again.

    Raises:
        InvalidInput: both ends of one are names of the same entity. Nothing was put down.
    """
    stated = relations_redacted(relations_told, Redaction(privacy))

    def work(connection: apsw.Connection) -> list[Operation]:
        for one in stated:
            ends = _ends(connection, one)
            if ends:
                relations.allow(connection, *ends, one.relation)
        for one in state_relations(connection, None, stated, now):
            raise InvalidInput(f"{one.source[:80]!r} and {one.target[:80]!r} are one", "", "Relate two different ones")
        done = [Operation("relate", None, now, after=_told(one)) for one in stated]
        for operation in done:
            operations.record(connection, operation)
        return done

    for operation in persona.database.write(work):
        persona.log.append(persona.name, operation)


def unrelate(persona: Persona, told: Stated, *, reason: str | None, now: datetime, privacy: Privacy) -> bool:
    """Takes a relation back, whatever speaks for it now or later. Returns whether there was one.

    Raises:
        EntityNotFound: one of the two is not known.
    """
    found = Redaction(privacy)
    said = found.optional(reason)
    (stated,) = relations_redacted([told], found)  # as `relate` has put it down

    def work(connection: apsw.Connection) -> Operation | None:
        ends = _ends(connection, stated)
        if ends is None:
            raise EntityNotFound(
                "one of the two is not known", f"{stated.source[:80]!r} or {stated.target[:80]!r}", "Look at entity_neighbors"
            )
        if not relations.reject(connection, *ends, stated.relation, said, now):
            return None
        operation = Operation("unrelate", None, now, before=_told(stated), metadata={"reason": said} if said else {})
        operations.record(connection, operation)
        return operation

    done = persona.database.write(work)
    if done:
        persona.log.append(persona.name, done)
    return done is not None


def _ends(connection: apsw.Connection, stated: Stated) -> tuple[int, int] | None:
    types = entities.types(connection)
    told = with_types(stated, types)
    source = entities.find(connection, told.source, told.source_type)
    target = entities.find(connection, told.target, told.target_type)
    return (source.id, target.id) if source and target else None


def _told(stated: Stated) -> dict[str, str]:
    return {"source": stated.source, "relation": stated.relation, "target": stated.target}
