"""Merging entities: which are one, undoing a merge, declaring two distinct, and the history.

A merge moves nothing. Each name, mention and piece of evidence stays with its own entity and counts for the one that is kept. So undoing
a merge restores the state before it, including what was written since under the merged name.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

import apsw

from memory_mcp.errors import InvalidInput
from memory_mcp.language.names import UNKNOWN_TYPE
from memory_mcp.store.graph import mentions, relation_queue, relations, visibility
from memory_mcp.store.graph.entities import names
from memory_mcp.store.sqlite.reading import json_ids
from memory_mcp.store.timestamps import optional_from_text, to_text

# The entity ?1 with all entities that are merged with it.
_GROUP = "SELECT id FROM entities WHERE coalesce(merged_into, id) = (SELECT coalesce(merged_into, id) FROM entities WHERE id = ?1)"


@dataclass(frozen=True, slots=True)
class Merge:
    """`merged` was merged into `kept`; both names are the entities' own. `undone_at` is None while the merge holds."""

    number: int
    kept: int
    merged: int
    kept_name: str
    merged_name: str
    reason: str | None
    merged_at: datetime
    undone_at: datetime | None = None


def merge(connection: apsw.Connection, kept: int, merged: int, reason: str | None, now: datetime) -> int:
    """Merges an entity into another: what supports `merged` counts for `kept` from now on. Returns the number to undo it by.

    Raises:
        InvalidInput: they are one entity already.
    """
    root, lost = root_of(connection, kept), root_of(connection, merged)
    if root == lost:
        raise InvalidInput("these two are one already", "", "Name two different entities")
    for member in group_of(connection, root):
        connection.execute(
            "DELETE FROM entity_distinctions WHERE (one = ?1 AND other IN (SELECT value FROM json_each(?2))) "
            "OR (other = ?1 AND one IN (SELECT value FROM json_each(?2)))",
            (member, json.dumps(group_of(connection, lost))),
        )
    connection.execute("UPDATE entities SET merged_into = ?1 WHERE id = ?2 OR merged_into = ?2", (root, lost))
    connection.execute("INSERT INTO entity_merges(kept, merged, reason, merged_at) VALUES (?,?,?,?)", (root, lost, reason, to_text(now)))
    number = connection.last_insert_rowid()
    _recount(connection, [root, lost], now)
    return number


def undo(connection: apsw.Connection, number: int, now: datetime) -> tuple[int, int]:
    """Undoes a merge, with all that was merged into the entity before, and declares the two distinct. Returns the ids of the entity that is
    kept and of the one that is separate again.

    Memories that were read since are read again in the background.

    Raises:
        InvalidInput: there is no such merge, or it is undone.
    """
    row = connection.execute("SELECT kept, merged, merged_at FROM entity_merges WHERE id = ? AND undone_at IS NULL", (number,)).fetchone()
    if row is None:
        raise InvalidInput(
            "there is no merge {} to undo", "it does not exist, or was undone already", "Look at the merges of merge_entities", number
        )
    kept, merged, merged_at = row
    relation_queue.enqueue(connection, _memories_since(connection, kept, merged_at))
    connection.execute("UPDATE entity_merges SET undone_at = ? WHERE id = ?", (to_text(now), number))
    regroup(connection)
    root = root_of(connection, kept)
    distinguish(connection, kept, merged, "taken apart", now)
    _recount(connection, [root, merged], now)
    return root, int(merged)


def distinguish(connection: apsw.Connection, entity: int, other: int, reason: str | None, now: datetime) -> None:
    """Declares two entities distinct.

    Raises:
        InvalidInput: they are merged.
    """
    if root_of(connection, entity) == root_of(connection, other):
        raise InvalidInput("these two are one now", "", "Undo their merge first")
    note_distinct(connection, entity, other, reason, to_text(now), "REPLACE")


def note_distinct(
    connection: apsw.Connection, entity: int, other: int, reason: str | None, decided_at: str, conflict: Literal["REPLACE", "IGNORE"]
) -> None:
    """Stores that two entities are distinct, in place of an earlier statement or unless there is one."""
    connection.execute(
        f"INSERT OR {conflict} INTO entity_distinctions(one, other, reason, decided_at) VALUES (?,?,?,?)",
        (*sorted((entity, other)), reason, decided_at),
    )


def distinct_pairs(connection: apsw.Connection) -> set[tuple[int, int]]:
    """The pairs that are declared distinct, merged entities as the ones that are kept, the smaller id first."""
    rows = connection.execute(
        "SELECT coalesce(a.merged_into, a.id), coalesce(b.merged_into, b.id) FROM entity_distinctions d "
        "JOIN entities a ON a.id = d.one JOIN entities b ON b.id = d.other"
    )
    return {(min(pair), max(pair)) for pair in rows}


def history(connection: apsw.Connection, limit: int, *, of: int | None = None) -> list[Merge]:
    """The last merges, undone ones too, the latest first; with `of`, those of one entity and all that is merged with it. Merges of hidden
    entities are left out, and hidden names replaced by visible ones."""
    rows: list[Any] = connection.execute(
        "SELECT g.id, g.kept, g.merged, k.name, m.name, g.reason, g.merged_at, g.undone_at FROM entity_merges g "
        "JOIN entities k ON k.id = g.kept JOIN entities m ON m.id = g.merged "
        f"WHERE ?1 IS NULL OR g.kept IN ({_GROUP}) OR g.merged IN ({_GROUP}) ORDER BY g.id DESC LIMIT ?2",
        (of, limit),
    ).fetchall()
    entities = {entity for row in rows for entity in row[1:3]}
    hidden, names_of = visibility.hidden_entities(connection, entities, alone=True), _visible_names(connection, entities)
    return [
        Merge(
            number,
            kept,
            merged,
            names_of.get(kept, kept_name),
            names_of.get(merged, merged_name),
            reason,
            datetime.fromisoformat(merged_at),
            optional_from_text(undone_at),
        )
        for number, kept, merged, kept_name, merged_name, reason, merged_at, undone_at in rows
        if hidden.isdisjoint((kept, merged))
    ]


def _visible_names(connection: apsw.Connection, entities: Iterable[int]) -> dict[int, str]:
    """Another name for each merged entity with a hidden own name."""
    above = dict(
        connection.execute(
            "SELECT id, merged_into FROM entities WHERE merged_into IS NOT NULL AND id IN (SELECT value FROM json_each(?))",
            (json_ids(entities),),
        )
    )
    hidden = visibility.hidden_names(connection, set(above.values()))
    return visibility.replacement_names(connection, {entity: hidden.get(root, set()) for entity, root in above.items()})


def root_of(connection: apsw.Connection, entity: int) -> int:
    """The entity itself, or the one that it is merged into."""
    return int(connection.execute("SELECT coalesce(merged_into, id) FROM entities WHERE id = ?", (entity,)).get)


def root_by_merges(connection: apsw.Connection, entity: int) -> int:
    """The entity that it is merged into by the merges that hold, before or after `regroup`; itself where it is in none."""
    return int(
        connection.execute(
            "WITH RECURSIVE up(id) AS (SELECT ?1 UNION SELECT g.kept FROM up JOIN entity_merges g ON g.merged = up.id AND g.undone_at IS NULL) "
            "SELECT id FROM up WHERE NOT EXISTS (SELECT 1 FROM entity_merges g WHERE g.merged = up.id AND g.undone_at IS NULL)",
            (entity,),
        ).get
    )


def are_distinct(connection: apsw.Connection, entity: int, other: int) -> bool:
    """Whether these two, or two entities that are merged with them, are declared distinct."""
    both = {root_by_merges(connection, entity), root_by_merges(connection, other)}
    pairs: list[Any] = connection.execute("SELECT one, other FROM entity_distinctions").fetchall()
    return any({root_by_merges(connection, first), root_by_merges(connection, second)} == both for first, second in pairs)


def group_of(connection: apsw.Connection, entity: int) -> list[int]:
    """The entity with all entities that are merged with it."""
    return [row[0] for row in connection.execute(f"{_GROUP} ORDER BY id", (entity,))]


def reattach(connection: apsw.Connection, gone: Iterable[int]) -> None:
    """Before these entities are deleted: attaches what was merged into them to what they were merged into, so that it can still be
    undone.
    """
    for entity in gone:
        above = connection.execute("SELECT kept FROM entity_merges WHERE merged = ? AND undone_at IS NULL", (entity,)).get
        if above is not None:
            connection.execute("UPDATE entity_merges SET kept = ? WHERE kept = ? AND undone_at IS NULL", (above, entity))


def compatible(type_: str, other: str) -> bool:
    """Whether two types may be of one entity: they are equal, or one is unknown."""
    return type_ == other or UNKNOWN_TYPE in (type_, other)


def regroup(connection: apsw.Connection) -> None:
    """Sets `merged_into` from the merges that hold: each entity has at most one above it."""
    above: dict[int, int] = dict(connection.execute("SELECT merged, kept FROM entity_merges WHERE undone_at IS NULL"))

    def top(entity: int) -> int:
        while entity in above:
            entity = above[entity]
        return entity

    was = dict(connection.execute("SELECT id, merged_into FROM entities WHERE merged_into IS NOT NULL"))
    changed = [(above.get(entity) and top(entity), entity) for entity in {*was, *above}]
    connection.executemany("UPDATE entities SET merged_into = ?1 WHERE id = ?2 AND merged_into IS NOT ?1", changed)


def update_merged_types(connection: apsw.Connection, changed: Iterable[int]) -> None:
    """Gives entities of unknown type the type of an entity that is merged into them, while the merge holds. Types set by hand stay."""
    among = json_ids(changed)
    connection.execute(
        "UPDATE entities SET type = ?2, type_from = NULL WHERE type_from = 'merge' AND coalesce(merged_into, id) IN "
        "(SELECT coalesce(merged_into, id) FROM entities WHERE id IN (SELECT value FROM json_each(?1)))",
        (among, UNKNOWN_TYPE),
    )
    connection.execute(
        "UPDATE entities AS k SET type = m.type, type_from = 'merge' FROM (SELECT merged_into, type, min(id) FROM entities "
        "WHERE merged_into IS NOT NULL AND type <> ?2 GROUP BY merged_into) m WHERE m.merged_into = k.id AND k.merged_into IS NULL "
        "AND k.type = ?2 AND k.type_from IS NULL "
        "AND k.id IN (SELECT coalesce(merged_into, id) FROM entities WHERE id IN (SELECT value FROM json_each(?1)))",
        (among, UNKNOWN_TYPE),
    )


def _memories_since(connection: apsw.Connection, entity: int, moment: str) -> list[int]:
    """Memories that mention an entity of the group or are evidence of its relations, and were read since that moment."""
    rows = connection.execute(
        f"SELECT memory FROM entity_mentions WHERE entity IN ({_GROUP}) AND created_at >= ?2 "
        f"UNION SELECT memory FROM relation_evidence WHERE memory IS NOT NULL AND created_at >= ?2 AND method IN (SELECT value FROM json_each(?3)) "
        f"AND (source IN ({_GROUP}) OR target IN ({_GROUP}))",
        (entity, moment, json.dumps(relations.FROM_TEXT)),
    )
    return [row[0] for row in rows]


def _recount(connection: apsw.Connection, changed: Sequence[int], now: datetime) -> None:
    update_merged_types(connection, changed)
    relations.rebuild_sums(connection, changed, now)
    mentions.recount(connection, changed)
    names.mark_changed(connection)
