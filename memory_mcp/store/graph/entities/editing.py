"""Entities as somebody makes and changes them by hand: their names, what they are, what is said of them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import apsw

from memory_mcp.errors import InvalidInput
from memory_mcp.store.graph import relation_queue, relations, visibility
from memory_mcp.store.graph.entities import entity_merges, lookup, names, records, type_history
from memory_mcp.store.graph.entities.records import Entity
from memory_mcp.store.graph.overview import PRESENT
from memory_mcp.store.lexical import bm25_index
from memory_mcp.store.timestamps import to_text
from memory_mcp.text.entity_types import type_called
from memory_mcp.text.names import bare, fold

# Made or changed by hand: it stays when no memory names it any more.
BY_HAND = "user"
# A name that holds ?2, or ?3 without honorifics; and who has such a further name and is named by a memory in the trash, or was merged or
# renamed since, so that it may be what only such a memory is filed under.
_SOUGHT = "(instr(a.folded, ?2) OR instr(a.bare, ?3))"
_SOUGHT_IN_THE_TRASH = f"""
SELECT DISTINCT coalesce(g.merged_into, g.id) FROM memories m CROSS JOIN entity_mentions em ON em.memory = m.id
JOIN entities g ON g.id = em.entity JOIN entities k ON k.id = coalesce(g.merged_into, g.id)
JOIN entity_aliases a ON a.entity = g.id AND NOT a.by_hand AND a.alias <> k.name
WHERE m.deleted_at IS NOT NULL AND ?1 = '' AND {_SOUGHT}
UNION SELECT k.id FROM entity_aliases a JOIN entities g ON g.id = a.entity JOIN entities k ON k.id = coalesce(g.merged_into, g.id)
WHERE NOT a.by_hand AND a.alias <> k.name AND (g.id <> k.id OR k.made_by <> 'text') AND {_SOUGHT}
"""


@dataclass(frozen=True, slots=True)
class EntityChange:
    """What an entity is to be; None leaves it as it is. `aliases` are all its further names, `attributes` all that it has; an empty
    `description` or `subtype` is none."""

    name: str | None = None
    type: str | None = None
    description: str | None = None
    aliases: tuple[str, ...] | None = None
    importance: float | None = None
    subtype: str | None = None
    attributes: Mapping[str, Any] | None = None


def listed(connection: apsw.Connection, query: str, type_: str, limit: int, offset: int) -> tuple[list[Entity], int]:
    """Entities that memories speak of, or that somebody made, with a name that holds `query`, of a type where one is given; the most
    mentioned first. And how many there are in all."""
    condition = (
        f"{PRESENT} AND (?1 = '' OR e.type = ?1) AND (?2 = '' OR EXISTS (SELECT 1 FROM entities g JOIN entity_aliases a ON a.entity = g.id "
        f"WHERE coalesce(g.merged_into, g.id) = +e.id AND {_SOUGHT})) AND e.id NOT IN (SELECT value FROM json_each(?4))"
    )
    sought = (type_, fold(query), bare(query), json.dumps(_found_by_the_trash(connection, query)))
    total = int(connection.execute(f"SELECT count(*) FROM entities e WHERE {condition}", sought).get)
    rows = connection.execute(
        f"SELECT e.id FROM entities e WHERE {condition} ORDER BY e.extraction_count DESC, e.id LIMIT ?5 OFFSET ?6", (*sought, limit, offset)
    )
    ids = [int(row[0]) for row in rows]
    found = records.by_ids(connection, ids)
    return lookup.visible(connection, [found[one] for one in ids]), total


def _found_by_the_trash(connection: apsw.Connection, query: str) -> list[int]:
    """The entities with no name that holds `query` but such as only memories in the trash have."""
    folded, bared = fold(query), bare(query)
    rows = connection.execute(_SOUGHT_IN_THE_TRASH, ("", folded, bared)) if query else ()
    found = list(records.by_ids(connection, [row[0] for row in rows]).values())
    open_ = lookup.matched_by_visible_names(connection, found, lambda name: folded in fold(name) or bared in bare(name))
    return sorted({entity.id for entity in found} - {entity.id for entity in open_})


def create(connection: apsw.Connection, wanted: EntityChange, now: datetime) -> Entity:
    """A new entity, which stays whether or not a memory names it.

    Raises:
        InvalidInput: there is no such type, or somebody else of it is called so.
    """
    type_ = check_new(connection, wanted)
    forgotten = _of_the_trash(connection, wanted.name or "", type_)
    if forgotten:
        records.add_names_by_hand(connection, forgotten.id, [wanted.name or ""])
        unsaid = replace(forgotten, aliases=(), merged_names=())
        # Without a type: the memory may come back, and knows better than nobody.
        return change(connection, unsaid, replace(wanted, aliases=wanted.aliases or ()), now)
    made = records.create(connection, wanted.name or "", type_, 1.0, now, description=wanted.description or None, made_by=BY_HAND)
    return change(connection, records.by_ids(connection, [made])[made], replace(wanted, name=None, description=None), now)


def check_new(connection: apsw.Connection, wanted: EntityChange) -> str:
    """The type that a new entity would have.

    Raises:
        InvalidInput: there is no such type, or somebody else of it is called so.
    """
    type_ = _type_called(connection, wanted.type or records.UNKNOWN_TYPE)
    _check_names(connection, (wanted.name or "", *(wanted.aliases or ())), type_, [])
    return type_


def change(connection: apsw.Connection, entity: Entity, wanted: EntityChange, now: datetime) -> Entity:
    """The entity as it is from now on. A name that it had stays one of its names unless `aliases` leaves it out.

    Raises:
        InvalidInput: there is no such type, or somebody else of it is called so.
    """
    type_ = _type_called(connection, wanted.type) if wanted.type else entity.type
    said = [name for name in (wanted.name, *(wanted.aliases or ())) if name]
    _check_names(connection, said, type_, entity_merges.group_of(connection, entity.id))
    name, attributes = wanted.name or entity.name, entity.attributes if wanted.attributes is None else wanted.attributes
    if wanted.name and wanted.name != entity.name:
        records.add_names_by_hand(connection, entity.id, [wanted.name])
    if wanted.aliases is not None:
        _set_aliases(connection, entity, name, [alias for alias in wanted.aliases if alias not in entity.merged_names])
    if wanted.type:
        type_history.note_change(connection, entity.id, type_, now)
    connection.execute(
        "UPDATE entities SET name = ?, type = ?, type_from = iif(?, 'hand', type_from), subtype = ?, description = ?, attributes = ?, importance = ?, made_by = ?, updated_at = ? WHERE id = ?",
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
    if name != entity.name:  # the words of what was stated of it are found by its name
        bm25_index.refresh(connection, relations.memories_stating(connection, [entity.id]))
    return lookup.without_hidden_names(connection, records.by_ids(connection, [entity.id])[entity.id])


def delete(connection: apsw.Connection, entity: Entity) -> None:
    """Takes an entity away, with all that is one with it: names, mentions, relations. A text that names it again makes it anew."""
    members = entity_merges.group_of(connection, entity.id)
    stating, group = relations.memories_stating(connection, members), json.dumps(members)
    connection.execute("UPDATE entities SET merged_into = NULL WHERE id IN (SELECT value FROM json_each(?))", (group,))
    connection.execute("DELETE FROM entities WHERE id IN (SELECT value FROM json_each(?))", (group,))
    names.mark_changed(connection)
    bm25_index.refresh(connection, stating)


def _of_the_trash(connection: apsw.Connection, name: str, type_: str) -> Entity | None:
    """Whom only the trash tells of by this very name: whoever makes one anew takes it over, so that restoring brings no second one."""
    found = [one for one in records.by_name(connection, name) if fold(one.name) == fold(name) and entity_merges.compatible(type_, one.type)]
    untold = visibility.hidden_entities(connection, [one.id for one in found])
    return next((one for one in found if one.id in untold), None)


def _set_aliases(connection: apsw.Connection, entity: Entity, name: str, aliases: Sequence[str]) -> None:
    """What only the trash calls it stays among its names: whoever sends a list was not told of that."""
    kept = {fold(alias) for alias in (name, *aliases, *visibility.hidden_names(connection, [entity.id]).get(entity.id, ()))}
    known = connection.execute("SELECT id, folded, alias FROM entity_aliases WHERE entity = ?", (entity.id,)).fetchall()
    gone = [(number, alias) for number, folded, alias in known if folded not in kept]
    for number, alias in gone:
        # They name somebody else now, or nobody.
        read_again = connection.execute(
            "SELECT DISTINCT em.memory FROM entity_mentions em JOIN memories m ON m.id = em.memory WHERE em.entity = ? AND instr(m.content, ?)",
            (entity.id, alias),
        )
        relation_queue.enqueue_unnamed(connection, [row[0] for row in read_again])
        connection.execute("DELETE FROM entity_aliases WHERE id = ?", (number,))
    # A list repeats the names that were told: those are still their memories'.
    told = {fold(known) for known in (entity.name, *entity.aliases)}
    records.add_names_by_hand(connection, entity.id, [alias for alias in aliases if fold(alias) not in told])


def _type_called(connection: apsw.Connection, word: str) -> str:
    known = records.entity_types(connection)
    type_ = type_called(word, known)
    if type_ is None:
        raise InvalidInput(f"there is no type {word[:80]!r}", f"known are {', '.join(known)}", "Take one of them, or create it first")
    return type_


def _check_names(connection: apsw.Connection, said: Sequence[str], type_: str, own: Sequence[int]) -> None:
    """Nobody else may be called so: one name leads to one entity of a type. What only the trash holds is free, as nobody is told of it."""
    for name in said:
        rows: list[Any] = connection.execute(
            "SELECT k.id, k.name, k.type, k.entity_id FROM entity_aliases a JOIN entities e ON e.id = a.entity "
            "JOIN entities k ON k.id = coalesce(e.merged_into, e.id) WHERE a.folded = ?",
            (fold(name),),
        ).fetchall()
        found = list(records.by_ids(connection, [row[0] for row in rows]).values())
        there = {one.id for one in lookup.visible_as(connection, found, name)}
        for other, called, other_type, entity_id in rows:
            if other not in own and other in there and entity_merges.compatible(type_, other_type):
                raise InvalidInput(
                    f"{name[:80]!r} is a name of another entity",
                    f"it belongs to {called!r}, a {other_type} with the id {entity_id}",
                    "If both are one, merge them; else choose another name",
                )
