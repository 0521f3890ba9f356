"""Entities as people create, change and delete them by hand: names, type, description, attributes."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import apsw

from memory_mcp.errors import InvalidInput
from memory_mcp.language.names import UNKNOWN_TYPE, fold
from memory_mcp.language.relation_notation import type_of_word
from memory_mcp.store.graph import relation_queue, relations, visibility
from memory_mcp.store.graph.entities import entity_merges, lookup, names, records, type_history
from memory_mcp.store.graph.entities.records import Entity
from memory_mcp.store.lexical import bm25_index
from memory_mcp.store.timestamps import to_text

# `made_by` of an entity that a person created or changed: it stays when no memory mentions it any more.
BY_HAND = "user"


@dataclass(frozen=True, slots=True)
class EntityChange:
    """The new values of an entity; None keeps the old one. `aliases` and `attributes` replace the whole list or object; an empty
    `description` or `subtype` removes it."""

    name: str | None = None
    type: str | None = None
    description: str | None = None
    aliases: tuple[str, ...] | None = None
    importance: float | None = None
    subtype: str | None = None
    attributes: Mapping[str, Any] | None = None


def create(connection: apsw.Connection, wanted: EntityChange, now: datetime) -> Entity:
    """Creates an entity, which stays whether or not a memory mentions it.

    Raises:
        InvalidInput: there is no such type, or another entity of the type has the name.
    """
    type_ = check_new(connection, wanted)
    hidden = _hidden_namesake(connection, wanted.name or "", type_)
    if hidden:
        records.add_names_by_hand(connection, hidden.id, [wanted.name or ""])
        # The type stays open: the memory in the trash may be restored, and states it.
        return change(connection, replace(hidden, aliases=(), merged_names=()), replace(wanted, aliases=wanted.aliases or ()), now)
    id_ = records.create(connection, wanted.name or "", type_, 1.0, now, description=wanted.description or None, made_by=BY_HAND)
    return change(connection, records.by_ids(connection, [id_])[id_], replace(wanted, name=None, description=None), now)


def check_new(connection: apsw.Connection, wanted: EntityChange) -> str:
    """The type that a new entity would have.

    Raises:
        InvalidInput: there is no such type, or another entity of the type has the name.
    """
    type_ = _resolved_type(connection, wanted.type or UNKNOWN_TYPE)
    _check_names(connection, (wanted.name or "", *(wanted.aliases or ())), type_, [])
    return type_


def change(connection: apsw.Connection, entity: Entity, wanted: EntityChange, now: datetime) -> Entity:
    """Changes an entity and returns it. Its former name stays one of its names unless `aliases` leaves it out.

    Raises:
        InvalidInput: there is no such type, or another entity of the type has the name.
    """
    type_ = _resolved_type(connection, wanted.type) if wanted.type else entity.type
    new_names = [name for name in (wanted.name, *(wanted.aliases or ())) if name]
    _check_names(connection, new_names, type_, entity_merges.group_of(connection, entity.id))
    name, attributes = wanted.name or entity.name, entity.attributes if wanted.attributes is None else wanted.attributes
    if wanted.name and wanted.name != entity.name:
        records.add_names_by_hand(connection, entity.id, [wanted.name])
    if wanted.aliases is not None:
        _set_aliases(connection, entity, name, [alias for alias in wanted.aliases if alias not in entity.merged_names])
    if wanted.type:
        type_history.note_change(connection, entity.id, type_, now)
    connection.execute(
        "UPDATE entities SET name = ?, type = ?, type_from = iif(?, 'hand', type_from), subtype = ?, description = ?, attributes = ?, "
        "importance = ?, made_by = ?, updated_at = ? WHERE id = ?",
        (
            name,
            type_,
            bool(wanted.type),
            entity.subtype if wanted.subtype is None else wanted.subtype or None,
            entity.description if wanted.description is None else wanted.description or None,
            json.dumps(dict(attributes), ensure_ascii=False) if attributes else None,
            entity.importance if wanted.importance is None else wanted.importance,
            BY_HAND,
            to_text(now),
            entity.id,
        ),
    )
    names.mark_changed(connection)
    if name != entity.name:  # keyword search finds stated relations by the entity's name
        bm25_index.refresh(connection, relations.memories_stating(connection, [entity.id]))
    return lookup.without_hidden_names(connection, records.by_ids(connection, [entity.id])[entity.id])


def delete(connection: apsw.Connection, entity: Entity) -> None:
    """Deletes an entity and all that is merged with it: names, mentions, relations. A later text that mentions it creates it again."""
    members = entity_merges.group_of(connection, entity.id)
    stating, group = relations.memories_stating(connection, members), json.dumps(members)
    connection.execute("UPDATE entities SET merged_into = NULL WHERE id IN (SELECT value FROM json_each(?))", (group,))
    connection.execute("DELETE FROM entities WHERE id IN (SELECT value FROM json_each(?))", (group,))
    names.mark_changed(connection)
    bm25_index.refresh(connection, stating)


def _hidden_namesake(connection: apsw.Connection, name: str, type_: str) -> Entity | None:
    """The entity with exactly this name that only the trash supports. A new one takes its place, so that restoring makes no second."""
    candidates = [
        entity
        for entity in records.by_name(connection, name)
        if fold(entity.name) == fold(name) and entity_merges.compatible(type_, entity.type)
    ]
    hidden = visibility.hidden_entities(connection, [entity.id for entity in candidates])
    return next((entity for entity in candidates if entity.id in hidden), None)


def _set_aliases(connection: apsw.Connection, entity: Entity, name: str, aliases: Sequence[str]) -> None:
    """Replaces the further names. Hidden names stay: the caller who sends the list didn't see them."""
    kept = {fold(alias) for alias in (name, *aliases, *visibility.hidden_names(connection, [entity.id]).get(entity.id, ()))}
    known = connection.execute("SELECT id, folded, alias FROM entity_aliases WHERE entity = ?", (entity.id,)).fetchall()
    removed = [(id_, alias) for id_, folded, alias in known if folded not in kept]
    for id_, alias in removed:
        # The memories that contain it mention another entity now, or none.
        read_again = connection.execute(
            "SELECT DISTINCT em.memory FROM entity_mentions em JOIN memories m ON m.id = em.memory WHERE em.entity = ? AND instr(m.content, ?)",
            (entity.id, alias),
        )
        relation_queue.enqueue_unnamed(connection, [row[0] for row in read_again])
        connection.execute("DELETE FROM entity_aliases WHERE id = ?", (id_,))
    # A list repeats the names that the caller saw: those are still the memories' own.
    seen = {fold(alias) for alias in (entity.name, *entity.aliases)}
    records.add_names_by_hand(connection, entity.id, [alias for alias in aliases if fold(alias) not in seen])


def _resolved_type(connection: apsw.Connection, word: str) -> str:
    known = records.entity_types(connection)
    type_ = type_of_word(word, known)
    if type_ is None:
        raise InvalidInput("there is no type {}", "known are {}", "Take one of them, or create it first", repr(word[:80]), ", ".join(known))
    return type_


def _check_names(connection: apsw.Connection, new_names: Sequence[str], type_: str, own: Sequence[int]) -> None:
    """Refuses names of other entities of the type. A hidden name is free: refusing it would reveal it."""
    for name in new_names:
        rows: list[Any] = connection.execute(
            "SELECT k.id, k.name, k.type, k.entity_id FROM entity_aliases a JOIN entities e ON e.id = a.entity "
            "JOIN entities k ON k.id = coalesce(e.merged_into, e.id) WHERE a.folded = ?",
            (fold(name),),
        ).fetchall()
        candidates = list(records.by_ids(connection, [row[0] for row in rows]).values())
        visible = {entity.id for entity in visibility.visible_as(connection, candidates, name)}
        for other, other_name, other_type, entity_id in rows:
            if other not in own and other in visible and entity_merges.compatible(type_, other_type):
                raise InvalidInput(
                    "{} is a name of another entity",
                    "it belongs to {}, a {} with the id {}",
                    "If both are one, merge them; else choose another name",
                    repr(name[:80]),
                    repr(other_name),
                    other_type,
                    entity_id,
                )
