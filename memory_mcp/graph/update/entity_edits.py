"""What somebody does to the graph's entities by hand: make, change, delete, take for one, tell apart; each with a row in the operations."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, TypeVar

import apsw

from memory_mcp.config.settings import Privacy
from memory_mcp.errors import InvalidInput
from memory_mcp.personas.registry import Persona
from memory_mcp.store import operations
from memory_mcp.store.graph import types
from memory_mcp.store.graph.entities import editing, entity_merges, lookup, records
from memory_mcp.store.graph.entities.editing import EntityChange
from memory_mcp.store.graph.entities.records import Entity
from memory_mcp.store.operations import Operation
from memory_mcp.text.labels import LIST_LIMIT, json_object, label
from memory_mcp.text.names import NAME_LIMIT, is_invisible
from memory_mcp.text.privacy.redaction import Redaction
from memory_mcp.text.relation_notation import RELATION_TYPE_LIMIT
from memory_mcp.text.unstorable import storable

DESCRIPTION_LIMIT, SUBTYPE_LIMIT = 2_000, 100

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class MadeOne:
    """The one that is kept, as it is now, and the number that undoes it."""

    kept: Entity
    number: int


@dataclass(frozen=True, slots=True)
class NewType:
    """A type of entities (`kind` is `entity`) or of relations (`relation`); `color` is for the first, `directed` for the second."""

    kind: str
    name: str
    display_name: str | None = None
    description: str | None = None
    color: str | None = None
    directed: bool = True


def create(persona: Persona, wanted: EntityChange, *, now: datetime, privacy: Privacy) -> Entity:
    """Makes an entity that stays whether or not a memory names it.

    Raises:
        InvalidInput: a name, its type or something else of it can't be used, or belongs to another.
    """
    ready = check_new(persona, wanted, privacy=privacy)

    def work(connection: apsw.Connection) -> tuple[Entity, Operation]:
        made = editing.create(connection, ready, now)
        return made, Operation("create_entity", None, now, after=_told(made))

    return _done(persona, work)


def check_new(persona: Persona, wanted: EntityChange, *, privacy: Privacy) -> EntityChange:
    """What a new entity would be stored as.

    Raises:
        InvalidInput: it can't be.
    """
    ready = checked(wanted, privacy)
    if not ready.name:
        raise InvalidInput("name is missing", "", "Say what it is called")
    with persona.database.read() as connection:
        editing.check_new(connection, ready)
    return ready


def change(persona: Persona, name: str, wanted: EntityChange, *, now: datetime, privacy: Privacy) -> Entity:
    """Changes an entity; from then on it stays whether or not a memory names it.

    Raises:
        EntityNotFound, InvalidInput: there is none, or there are several; a name, its type or something else can't be used.
    """
    ready = checked(wanted, privacy)

    def work(connection: apsw.Connection) -> tuple[Entity, Operation]:
        before = lookup.find_only(connection, name)
        after = editing.change(connection, before, ready, now)
        return after, Operation("change_entity", None, now, _told(before), _told(after))

    return _done(persona, work)


def delete(persona: Persona, name: str, *, now: datetime) -> Entity:
    """Takes an entity and all that is one with it away; a text that names it again makes it anew. Returns what it was.

    Raises:
        EntityNotFound, InvalidInput: there is none, or there are several.
    """

    def work(connection: apsw.Connection) -> tuple[Entity, Operation]:
        entity = lookup.find_only(connection, name)
        editing.delete(connection, entity)
        return entity, Operation("delete_entity", None, now, before=_told(entity))

    return _done(persona, work)


def make_one(persona: Persona, name: str, into: str, *, reason: str | None, now: datetime, privacy: Privacy) -> MadeOne:
    """Takes two entities for one, the one called `into`.

    Raises:
        EntityNotFound, InvalidInput: one is not known, or several are called so; they are one already; they are of two kinds.
    """
    said = Redaction(privacy).optional(reason)

    def work(connection: apsw.Connection) -> tuple[MadeOne, Operation]:
        merged, kept = lookup.find_only(connection, name), lookup.find_only(connection, into)
        if not entity_merges.compatible(merged.type, kept.type):
            raise InvalidInput(
                f"{merged.name!r} and {kept.name!r} can't be one",
                f"one is a {merged.type}, the other a {kept.type}",
                "If both are one all the same, correct the type of one first (PATCH /api/graph/entity)",
            )
        number = entity_merges.merge(connection, kept.id, merged.id, said, now)
        told = {"names": [merged.name, kept.name], "number": number}
        metadata = {"reason": said} if said else {}
        one = lookup.without_hidden_names(connection, records.by_ids(connection, [kept.id])[kept.id])
        return MadeOne(one, number), Operation("merge_entities", None, now, after=told, metadata=metadata)

    return _done(persona, work)


def take_apart(persona: Persona, number: int, *, now: datetime) -> tuple[Entity | None, Entity | None]:
    """Undoes a merge. Returns the one that was kept and the one that is itself again, None for whom only memories in the trash name.

    Raises:
        InvalidInput: there is no such merge, or it is undone.
    """

    def work(connection: apsw.Connection) -> tuple[tuple[Entity | None, Entity | None], Operation]:
        kept, merged = entity_merges.undo(connection, number, now)
        found = records.by_ids(connection, [kept, merged])
        told = {"names": [found[merged].name, found[kept].name], "number": number}
        there = {entity.id: entity for entity in lookup.visible(connection, [found[kept], found[merged]])}
        return (there.get(kept), there.get(merged)), Operation("unmerge_entities", None, now, after=told)

    return _done(persona, work)


def keep_apart(persona: Persona, name: str, other: str, *, reason: str | None, now: datetime, privacy: Privacy) -> None:
    """Puts down that two entities are not the same: they are not proposed again.

    Raises:
        EntityNotFound, InvalidInput: one is not known, or several are called so; they are one now.
    """
    said = Redaction(privacy).optional(reason)

    def work(connection: apsw.Connection) -> tuple[None, Operation]:
        found = [lookup.find_only(connection, one) for one in (name, other)]
        entity_merges.distinguish(connection, found[0].id, found[1].id, said, now)
        told = {"names": [entity.name for entity in found]}
        return None, Operation("distinguish_entities", None, now, after=told, metadata={"reason": said} if said else {})

    return _done(persona, work)


def create_type(persona: Persona, wanted: NewType, *, now: datetime, privacy: Privacy) -> None:
    """Adds a type.

    Raises:
        InvalidInput: it can't be used, or is there already.
    """
    ready = checked_type(wanted, privacy)

    def work(connection: apsw.Connection) -> tuple[None, Operation]:
        shown = ready.display_name or ready.name
        if ready.kind == "entity":
            types.create_of_entities(connection, ready.name, shown, ready.description, ready.color)
        else:
            types.create_of_relations(connection, ready.name, shown, ready.description, ready.directed, now)
        return None, Operation("create_type", None, now, metadata={"kind": ready.kind, "type": ready.name})

    _done(persona, work)


def delete_type(persona: Persona, kind: str, name: str, *, now: datetime) -> None:
    """Takes a type away that somebody added and nothing uses.

    Raises:
        InvalidInput: there is none, it is one of every persona's, or it is used.
    """

    def work(connection: apsw.Connection) -> tuple[None, Operation]:
        if kind == "entity":
            types.delete_of_entities(connection, name)
        else:
            types.delete_of_relations(connection, name)
        return None, Operation("delete_type", None, now, metadata={"kind": kind, "type": name})

    _done(persona, work)


def checked(wanted: EntityChange, privacy: Privacy) -> EntityChange:
    """As it may be stored.

    Raises:
        InvalidInput: it may not.
    """
    found = Redaction(privacy)
    aliases = wanted.aliases
    if aliases is not None and len(aliases) > LIST_LIMIT:
        raise InvalidInput(f"aliases has {len(aliases)} entries", f"{LIST_LIMIT} are the limit", "Send fewer")
    if wanted.importance is not None and not (math.isfinite(wanted.importance) and 0 <= wanted.importance <= 1):
        raise InvalidInput(f"importance is {wanted.importance:g}", "it runs from 0 to 1", "Leave it out to let it be")
    return replace(
        wanted,
        name=None if wanted.name is None else _name(found.text(wanted.name), "name"),
        description=None if wanted.description is None else found.text(_text(wanted.description, "description") or ""),
        subtype=None if wanted.subtype is None else found.text(_short(wanted.subtype, "subtype")),
        attributes=None if wanted.attributes is None else found.tree(json_object(wanted.attributes, "attributes")),
        aliases=None if aliases is None else tuple(dict.fromkeys(_name(found.text(alias), "aliases") for alias in aliases)),
    )


def _done(persona: Persona, work: Callable[[apsw.Connection], tuple[Result, Operation]]) -> Result:
    def recorded(connection: apsw.Connection) -> tuple[Result, Operation]:
        result, operation = work(connection)
        operations.record(connection, operation)
        return result, operation

    result, operation = persona.database.write(recorded)
    persona.log.append(persona.name, operation)
    return result


def checked_type(wanted: NewType, privacy: Privacy) -> NewType:
    """As it may be stored.

    Raises:
        InvalidInput: it may not.
    """
    found = Redaction(privacy)
    return replace(
        wanted,
        name=_type_name(found.text(wanted.name)),
        display_name=found.optional(label(wanted.display_name, "display_name")),
        description=found.optional(_text(wanted.description, "description")),
    )


def _name(name: str, field: str) -> str:
    called = " ".join(storable(name, field).split())
    if is_invisible(called):
        raise InvalidInput(f"{field} has an empty name", "", "Send what it is called")
    if len(called) > NAME_LIMIT:
        raise InvalidInput(
            f"a name in {field} has {len(called)} characters", f"{NAME_LIMIT} are the limit", "Put the rest into description"
        )
    return called


def _type_name(name: str) -> str:
    called = "_".join(storable(name, "name").split())
    if not called or len(called) > RELATION_TYPE_LIMIT or any(sign in called for sign in "|>[]"):
        raise InvalidInput(
            f"{name[:80]!r} can't be the name of a type", f"1 to {RELATION_TYPE_LIMIT} characters, none of | > [ ]", "Choose another"
        )
    return called


def _short(text: str, field: str) -> str:
    said = " ".join(storable(text, field).split())
    if len(said) > SUBTYPE_LIMIT:
        raise InvalidInput(f"{field} has {len(said)} characters", f"{SUBTYPE_LIMIT} are the limit", "Put the rest into description")
    return said


def _text(text: str | None, field: str) -> str | None:
    if text is not None and len(text) > DESCRIPTION_LIMIT:
        raise InvalidInput(
            f"{field} has {len(text):,} characters", f"{DESCRIPTION_LIMIT:,} are the limit", "Shorten it, and remember the rest"
        )
    return None if text is None else storable(text, field).strip()


def _told(entity: Entity) -> dict[str, Any]:
    return {
        "names": [entity.name, *entity.aliases],
        "type": entity.type,
        "subtype": entity.subtype,
        "description": entity.description,
        "attributes": dict(entity.attributes),
        "importance": entity.importance,
    }
