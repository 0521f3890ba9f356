"""What the graph loses when memories are erased: entities and names that nothing else supports, and every trace of them."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import Any

import apsw

from memory_mcp.language.names import bare, fold
from memory_mcp.store.graph import mentions, relations, visibility
from memory_mcp.store.graph.entities import entity_merges, entity_vectors, names
from memory_mcp.store.lexical import bm25_index
from memory_mcp.store.sqlite.reading import json_ids

# Entities from texts without a mention, a relation that isn't rejected, or an entity that is merged into them.
_UNSUPPORTED = """
SELECT e.id FROM entities e WHERE e.made_by = 'text' AND NOT EXISTS (SELECT 1 FROM entity_mentions m WHERE m.entity = e.id)
AND NOT EXISTS (SELECT 1 FROM relation_evidence r WHERE r.validation_status <> 'rejected' AND (r.source = e.id OR r.target = e.id))
AND e.id NOT IN (SELECT merged_into FROM entities WHERE merged_into IS NOT NULL)
"""

# The texts of memories that mention an entity, and the names by which they state relations of it.
_TEXTS = """
SELECT m.content FROM entity_mentions em JOIN memories m ON m.id = em.memory WHERE em.entity = ?1
UNION ALL SELECT coalesce(v.source_said, e.name) FROM relation_evidence v JOIN entities e ON e.id = v.source
WHERE v.source = ?1 AND v.memory IS NOT NULL AND v.method = 'stated'
UNION ALL SELECT coalesce(v.target_said, e.name) FROM relation_evidence v JOIN entities e ON e.id = v.target
WHERE v.target = ?1 AND v.memory IS NOT NULL AND v.method = 'stated'
"""

# Operations with names of entities in their log entries.
_ABOUT_NAMES = (
    *("relate", "unrelate", "create_entity", "change_entity", "delete_entity"),
    *("merge_entities", "unmerge_entities", "distinguish_entities"),
)


@contextmanager
def of_memories(connection: apsw.Connection, memory_ids: Iterable[int], now: datetime) -> Iterator[None]:
    """Around the deletion of these memories: notes before what they mention and support, and updates it after.

    A name can outlive its mentions, in an earlier version or as a label. So all entities without support are deleted.
    """
    ids = json_ids(memory_ids)
    entities = {
        row[0] for row in connection.execute("SELECT entity FROM entity_mentions WHERE memory IN (SELECT value FROM json_each(?))", (ids,))
    }
    pairs = relations.pairs_of_memories(connection, json.loads(ids))
    entities |= {entity for pair in pairs for entity in pair}
    names_contained = _names_in_texts(connection, ids)
    # A vector is stored with its text: the erased memories' part of it goes, and names that only they contained.
    owners = connection.execute(
        "SELECT entity FROM entity_aliases WHERE id IN (SELECT value FROM json_each(?))", (json.dumps(names_contained),)
    )
    entity_vectors.drop(connection, entities | {row[0] for row in owners})
    yield
    connection.execute("DELETE FROM graph_queue WHERE memory IN (SELECT value FROM json_each(?))", (ids,))
    relations.sum_up(connection, pairs, now)
    _delete_unsupported(connection)
    _delete_names(connection, names_contained)
    _empty_operations(connection)
    mentions.recount(connection, entities)
    names.mark_changed(connection)


def empty_notes(connection: apsw.Connection, texts: Sequence[str]) -> None:
    """Deletes the notes of relations that quote one of these texts; the relations stay."""
    for table in ("relation_evidence", "relations"):
        connection.execute(
            f"UPDATE {table} SET notes = NULL WHERE notes IS NOT NULL AND EXISTS (SELECT 1 FROM json_each(?) t WHERE instr(notes, t.value))",
            (json.dumps(list(texts)),),
        )


def _names_in_texts(connection: apsw.Connection, ids: str) -> list[int]:
    """The ids of names that these memories contain, now or in an earlier version, and no person wrote. Relatives and days have theirs by
    rules.
    """
    rows = connection.execute(
        "WITH said(text) AS MATERIALIZED (SELECT content FROM memories WHERE id IN (SELECT value FROM json_each(?1)) UNION ALL "
        "SELECT v.content FROM memory_versions v JOIN memories m ON m.key = v.key WHERE m.id IN (SELECT value FROM json_each(?1))) "
        "SELECT a.id FROM entity_aliases a JOIN entities e ON e.id = a.entity "
        "WHERE NOT a.by_hand AND (a.alias <> e.name OR coalesce(e.subtype, '') NOT IN ('family', 'day')) "
        "AND EXISTS (SELECT 1 FROM said WHERE instr(said.text, a.alias))",
        (ids,),
    )
    return [row[0] for row in rows]


def _delete_unsupported(connection: apsw.Connection) -> None:
    """Deletes entities without support, except those with a label as their name."""
    labels: set[str] | None = None
    while candidates := {row[0] for row in connection.execute(_UNSUPPORTED)}:
        labels = visibility.all_labels(connection) if labels is None else labels
        known = connection.execute(
            "SELECT entity, bare FROM entity_aliases WHERE entity IN (SELECT value FROM json_each(?))", (json.dumps(sorted(candidates)),)
        )
        gone = candidates - {entity for entity, name in known if name in labels}
        if not gone:
            return
        entity_merges.reattach(connection, gone)
        # Then what they were merged into may be without support, too.
        above = [row[0] for row in connection.execute("SELECT id FROM entities WHERE type_from = 'merge'")]
        connection.execute("DELETE FROM entities WHERE id IN (SELECT value FROM json_each(?))", (json.dumps(sorted(gone)),))
        entity_merges.update_merged_types(connection, above)


def _delete_names(connection: apsw.Connection, names_contained: Sequence[int]) -> None:
    """Deletes those of these names that no remaining memory contains. An entity that loses its own name is renamed to the first other name
    with support; without one, it keeps its name."""
    rows: list[Any] = connection.execute(
        "SELECT a.entity, a.id, a.alias, a.alias = e.name FROM entity_aliases a JOIN entities e ON e.id = a.entity "
        "WHERE a.id IN (SELECT value FROM json_each(?)) ORDER BY a.entity, a.id",
        (json.dumps(list(names_contained)),),
    ).fetchall()
    owner_of = {id_: entity for entity, id_, _, is_own in rows if is_own}
    gone: set[int] = set()
    for entity, group in groupby(rows, key=itemgetter(0)):
        gone |= _unsupported_names(connection, entity, {id_: alias for _, id_, alias, _ in group})
    renamed = []
    labels = visibility.all_labels(connection) if gone & owner_of.keys() else set()
    for id_ in gone & owner_of.keys():
        other = _another_name(connection, owner_of[id_], id_, labels)
        if other is None:
            gone.remove(id_)
        else:
            connection.execute("UPDATE entities SET name = ? WHERE id = ?", (other, owner_of[id_]))
            renamed.append(owner_of[id_])
    connection.execute("DELETE FROM entity_aliases WHERE id IN (SELECT value FROM json_each(?))", (json.dumps(sorted(gone)),))
    if renamed:  # keyword search finds stated relations by the entities' names
        bm25_index.refresh(connection, relations.memories_stating(connection, renamed))


def _unsupported_names(connection: apsw.Connection, entity: int, aliases: Mapping[int, str]) -> set[int]:
    """The ids of those names of an entity that no memory which mentions it contains, in any case and width, or states a relation by."""
    remaining = {id_: fold(alias) for id_, alias in aliases.items()}
    for (text,) in connection.execute(_TEXTS, (entity,)):
        folded = fold(text)
        remaining = {id_: alias for id_, alias in remaining.items() if alias not in folded}
        if not remaining:
            break
    return set(remaining)


def _another_name(connection: apsw.Connection, entity: int, own: int, labels: Set[str]) -> str | None:
    """The name of an entity that loses its own; None where there is none, or its own is a label of a memory."""
    rows: list[Any] = connection.execute("SELECT id, alias, by_hand FROM entity_aliases WHERE entity = ? ORDER BY id", (entity,)).fetchall()
    aliases = {id_: alias for id_, alias, _ in rows}
    if bare(aliases.pop(own)) in labels:
        return None
    unsupported = _unsupported_names(connection, entity, aliases)
    return next((alias for id_, alias, by_hand in rows if id_ != own and (by_hand or id_ not in unsupported)), None)


def _empty_operations(connection: apsw.Connection) -> None:
    """Empties log entries about entities of which a name is gone. That there was such an operation stays."""
    known = {row[0] for row in connection.execute("SELECT bare FROM entity_aliases")}
    rows = connection.execute(
        "SELECT id, before, after FROM operations WHERE operation IN (SELECT value FROM json_each(?)) AND coalesce(after, before) IS NOT NULL",
        (json.dumps(_ABOUT_NAMES),),
    )
    emptied = [id_ for id_, *sides in rows if not {bare(name) for side in sides if side for name in _names_in(json.loads(side))} <= known]
    connection.execute(
        "UPDATE operations SET before = NULL, after = NULL, error = NULL, metadata = NULL WHERE id IN (SELECT value FROM json_each(?))",
        (json.dumps(emptied),),
    )


def _names_in(entry: Mapping[str, Any]) -> list[str]:
    """The names in a log entry: of a relation's ends, or of its entities."""
    return entry["names"] if "names" in entry else [entry["source"], entry["target"]]
