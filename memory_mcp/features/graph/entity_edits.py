"""Entities edited by hand: create, change, delete, merge, undo a merge, keep apart; each recorded as an operation."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

import apsw

from memory_mcp.config.settings import Privacy
from memory_mcp.errors import InvalidInput
from memory_mcp.language.labels import LIST_LIMIT, json_object, label, storable
from memory_mcp.language.names import NAME_LIMIT, is_invisible
from memory_mcp.language.privacy.redaction import Redaction
from memory_mcp.language.relation_notation import RELATION_TYPE_LIMIT
from memory_mcp.personas.registry import Persona
from memory_mcp.store import operations
from memory_mcp.store.graph import types
from memory_mcp.store.graph.entities import editing, entity_merges, lookup, records
from memory_mcp.store.graph.entities.editing import EntityChange
from memory_mcp.store.graph.entities.records import Entity
from memory_mcp.store.graph.types import Kind
from memory_mcp.store.operations import Operation

DESCRIPTION_LIMIT, SUBTYPE_LIMIT = 2_000, 100

Result = TypeVar("Result")
Arguments = ParamSpec("Arguments")


def recorded(
    edit: Callable[Concatenate[apsw.Connection, Arguments], tuple[Result, list[Operation]]],
) -> Callable[Concatenate[Persona, Arguments], Result]:
    """Makes an edit of a persona out of one in a transaction: its operations are recorded in the same one, and logged after it."""

    @wraps(edit)
    def of_persona(persona: Persona, /, *arguments: Arguments.args, **named: Arguments.kwargs) -> Result:
        def work(connection: apsw.Connection) -> tuple[Result, list[Operation]]:
            result, done = edit(connection, *arguments, **named)
            operations.record(connection, *done)
            return result, done

        result, done = persona.database.write(work)
        persona.log.append(persona.name, *done)
        return result

    return of_persona


@dataclass(frozen=True, slots=True)
class EntityMerge:
    """The entity that is kept, as it is now, and the number that undoes the merge."""

    kept: Entity
    number: int


@dataclass(frozen=True, slots=True)
class NewType:
    """A type of entities (`kind` is `entity`) or of relations (`relation`); `color` is for the first, `directed` for the second."""

    kind: Kind
    name: str
    display_name: str | None = None
    description: str | None = None
    color: str | None = None
    directed: bool = True


@recorded
def create(connection: apsw.Connection, wanted: EntityChange, *, now: datetime, privacy: Privacy) -> tuple[Entity, list[Operation]]:
    """Creates an entity that stays whether or not a memory names it.

    Raises:
        InvalidInput: a field can't be used, or a name belongs to another entity.
    """
    created = editing.create(connection, _checked_new(wanted, privacy), now)
    return created, [Operation("create_entity", None, now, after=_as_json(created))]


def check_new(persona: Persona, wanted: EntityChange, *, privacy: Privacy) -> None:
    """Checks the fields of a new entity.

    Raises:
        InvalidInput: it can't be.
    """
    ready = _checked_new(wanted, privacy)
    with persona.database.read() as connection:
        editing.check_new(connection, ready)


@recorded
def change(
    connection: apsw.Connection, name: str, wanted: EntityChange, *, now: datetime, privacy: Privacy
) -> tuple[Entity, list[Operation]]:
    """Changes an entity; from then on it stays whether or not a memory names it.

    Raises:
        EntityNotFound, InvalidInput: there is none, or there are several; a field can't be used.
    """
    ready, before = checked(wanted, privacy), lookup.find_only(connection, name)
    after = editing.change(connection, before, ready, now)
    return after, [Operation("change_entity", None, now, _as_json(before), _as_json(after))]


@recorded
def delete(connection: apsw.Connection, name: str, *, now: datetime) -> tuple[Entity, list[Operation]]:
    """Deletes an entity and all that are merged into it; a text that names it again creates it anew. Returns the deleted entity.

    Raises:
        EntityNotFound, InvalidInput: there is none, or there are several.
    """
    entity = lookup.find_only(connection, name)
    editing.delete(connection, entity)
    return entity, [Operation("delete_entity", None, now, before=_as_json(entity))]


@recorded
def merge_entities(
    connection: apsw.Connection, name: str, into: str, *, reason: str | None, now: datetime, privacy: Privacy
) -> tuple[EntityMerge, list[Operation]]:
    """Merges an entity into the one called `into`.

    Raises:
        EntityNotFound, InvalidInput: one is unknown, or the name is ambiguous; they are one already; their types are incompatible.
    """
    redacted_reason = Redaction(privacy).optional(reason)
    merged, kept = lookup.find_only(connection, name), lookup.find_only(connection, into)
    if not entity_merges.compatible(merged.type, kept.type):
        raise InvalidInput(
            "{} and {} can't be one",
            "one is a {}, the other a {}",
            "If both are one all the same, correct the type of one first (PATCH /api/graph/entity)",
            repr(merged.name),
            repr(kept.name),
            merged.type,
            kept.type,
        )
    number = entity_merges.merge(connection, kept.id, merged.id, redacted_reason, now)
    after = {"names": [merged.name, kept.name], "number": number}
    entity = lookup.without_hidden_names(connection, records.by_ids(connection, [kept.id])[kept.id])
    return EntityMerge(entity, number), [Operation("merge_entities", None, now, after=after, metadata=because(redacted_reason))]


@recorded
def undo_merge(connection: apsw.Connection, number: int, *, now: datetime) -> tuple[tuple[Entity | None, Entity | None], list[Operation]]:
    """Undoes a merge. Returns the entity that was kept and the restored one; None for one that only memories in the trash name.

    Raises:
        InvalidInput: there is no such merge, or it is undone.
    """
    kept, merged = entity_merges.undo(connection, number, now)
    by_id = records.by_ids(connection, [kept, merged])
    after = {"names": [by_id[merged].name, by_id[kept].name], "number": number}
    visible = {entity.id: entity for entity in lookup.visible(connection, [by_id[kept], by_id[merged]])}
    return (visible.get(kept), visible.get(merged)), [Operation("unmerge_entities", None, now, after=after)]


@recorded
def mark_distinct(
    connection: apsw.Connection, name: str, other: str, *, reason: str | None, now: datetime, privacy: Privacy
) -> tuple[None, list[Operation]]:
    """Records that two entities are different: their merge is not proposed again.

    Raises:
        EntityNotFound, InvalidInput: one is unknown, or the name is ambiguous; they are merged.
    """
    redacted_reason = Redaction(privacy).optional(reason)
    pair = [lookup.find_only(connection, entity_name) for entity_name in (name, other)]
    entity_merges.distinguish(connection, pair[0].id, pair[1].id, redacted_reason, now)
    after = {"names": [entity.name for entity in pair]}
    return None, [Operation("distinguish_entities", None, now, after=after, metadata=because(redacted_reason))]


@recorded
def create_type(connection: apsw.Connection, wanted: NewType, *, now: datetime, privacy: Privacy) -> tuple[None, list[Operation]]:
    """Adds a type.

    Raises:
        InvalidInput: it can't be used, or is there already.
    """
    ready = checked_type(wanted, privacy)
    own = ready.color if ready.kind == "entity" else ready.directed
    types.create(connection, ready.kind, (ready.name, ready.display_name or ready.name, ready.description, own), now)
    return None, [Operation("create_type", None, now, metadata={"kind": ready.kind, "type": ready.name})]


@recorded
def delete_type(connection: apsw.Connection, kind: Kind, name: str, *, now: datetime) -> tuple[None, list[Operation]]:
    """Deletes a type that was added by hand and is not used.

    Raises:
        InvalidInput: there is none, it is built in, or it is used.
    """
    types.delete(connection, kind, name)
    return None, [Operation("delete_type", None, now, metadata={"kind": kind, "type": name})]


def because(reason: str | None) -> dict[str, str]:
    """The metadata of an operation with a reason."""
    return {"reason": reason} if reason else {}


def _checked_new(wanted: EntityChange, privacy: Privacy) -> EntityChange:
    ready = checked(wanted, privacy)
    if not ready.name:
        raise InvalidInput("name is missing", "", "Say what it is called")
    return ready


def checked(wanted: EntityChange, privacy: Privacy) -> EntityChange:
    """The checked and redacted fields.

    Raises:
        InvalidInput: a field can't be stored.
    """
    redaction = Redaction(privacy)
    aliases = wanted.aliases
    if aliases is not None and len(aliases) > LIST_LIMIT:
        raise InvalidInput("aliases has {} entries", "{} are the limit", "Send fewer", len(aliases), LIST_LIMIT)
    if wanted.importance is not None and not (math.isfinite(wanted.importance) and 0 <= wanted.importance <= 1):
        raise InvalidInput("importance is {}", "it runs from 0 to 1", "Leave it out to let it be", f"{wanted.importance:g}")
    return replace(
        wanted,
        name=None if wanted.name is None else _name(redaction.text(wanted.name), "name"),
        description=None if wanted.description is None else redaction.text(_text(wanted.description, "description") or ""),
        subtype=None if wanted.subtype is None else redaction.text(_short(wanted.subtype, "subtype")),
        attributes=None if wanted.attributes is None else redaction.tree(json_object(wanted.attributes, "attributes")),
        aliases=None if aliases is None else tuple(dict.fromkeys(_name(redaction.text(alias), "aliases") for alias in aliases)),
    )


def checked_type(wanted: NewType, privacy: Privacy) -> NewType:
    """The checked and redacted fields.

    Raises:
        InvalidInput: a field can't be stored.
    """
    redaction = Redaction(privacy)
    return replace(
        wanted,
        name=_type_name(redaction.text(wanted.name)),
        display_name=redaction.optional(label(wanted.display_name, "display_name")),
        description=redaction.optional(_text(wanted.description, "description")),
    )


def _name(name: str, field: str) -> str:
    cleaned = " ".join(storable(name, field).split())
    if is_invisible(cleaned):
        raise InvalidInput("{} has an empty name", "", "Send what it is called", field)
    if len(cleaned) > NAME_LIMIT:
        raise InvalidInput(
            "a name in {} has {} characters", "{} are the limit", "Put the rest into description", field, len(cleaned), NAME_LIMIT
        )
    return cleaned


def _type_name(name: str) -> str:
    cleaned = "_".join(storable(name, "name").split())
    if not cleaned or len(cleaned) > RELATION_TYPE_LIMIT or any(sign in cleaned for sign in "|>[]"):
        raise InvalidInput(
            "{} can't be the name of a type", "1 to {} characters, none of | > [ ]", "Choose another", repr(name[:80]), RELATION_TYPE_LIMIT
        )
    return cleaned


def _short(text: str, field: str) -> str:
    cleaned = " ".join(storable(text, field).split())
    if len(cleaned) > SUBTYPE_LIMIT:
        raise InvalidInput("{} has {} characters", "{} are the limit", "Put the rest into description", field, len(cleaned), SUBTYPE_LIMIT)
    return cleaned


def _text(text: str | None, field: str) -> str | None:
    if text is not None and len(text) > DESCRIPTION_LIMIT:
        raise InvalidInput(
            "{} has {} characters",
            "{} are the limit",
            "Shorten it, and remember the rest",
            field,
            f"{len(text):,}",
            f"{DESCRIPTION_LIMIT:,}",
        )
    return None if text is None else storable(text, field).strip()


def _as_json(entity: Entity) -> dict[str, Any]:
    return {
        "names": [entity.name, *entity.aliases],
        "type": entity.type,
        "subtype": entity.subtype,
        "description": entity.description,
        "attributes": dict(entity.attributes),
        "importance": entity.importance,
    }
