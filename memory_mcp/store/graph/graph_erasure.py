"""What the graph loses when memories are erased for good: who is named in none that is left is forgotten, and every name with it."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import Any

import apsw

from memory_mcp.store.graph import mentions, relations, visibility
from memory_mcp.store.graph.entities import entity_merges, entity_vectors, names
from memory_mcp.store.lexical import bm25_index
from memory_mcp.text.names import bare, fold

# Made of texts, and nothing stands on it any more: no mention, no relation but such as were taken back, no other name for it.
_UNNAMED = """
SELECT e.id FROM entities e WHERE e.made_by = 'text' AND NOT EXISTS (SELECT 1 FROM entity_mentions m WHERE m.entity = e.id)
AND NOT EXISTS (SELECT 1 FROM relation_evidence r WHERE r.validation_status <> 'rejected' AND (r.source = e.id OR r.target = e.id))
AND e.id NOT IN (SELECT merged_into FROM entities WHERE merged_into IS NOT NULL)
"""

# What memories that name an entity say, and by which names they state relations of it.
_SAYING = """
SELECT m.content FROM entity_mentions em JOIN memories m ON m.id = em.memory WHERE em.entity = ?1
UNION ALL SELECT coalesce(v.source_said, e.name) FROM relation_evidence v JOIN entities e ON e.id = v.source
WHERE v.source = ?1 AND v.memory IS NOT NULL AND v.method = 'stated'
UNION ALL SELECT coalesce(v.target_said, e.name) FROM relation_evidence v JOIN entities e ON e.id = v.target
WHERE v.target = ?1 AND v.memory IS NOT NULL AND v.method = 'stated'
"""

# Operations that tell of entities by their names.
_ABOUT_NAMES = (
    *("relate", "unrelate", "create_entity", "change_entity", "delete_entity"),
    *("merge_entities", "unmerge_entities", "distinguish_entities"),
)


@contextmanager
def of_memories(connection: apsw.Connection, memory_ids: Iterable[int], now: datetime) -> Iterator[None]:
    """Around deleting the rows of these memories: what they named and spoke for is told before, and set right after.

    A name can outlive its mentions: an earlier text had it, or a memory was only filed under it. So all that nothing stands on goes.
    """
    ids = json.dumps(list(memory_ids))
    named = {
        row[0] for row in connection.execute("SELECT entity FROM entity_mentions WHERE memory IN (SELECT value FROM json_each(?))", (ids,))
    }
    pairs = relations.pairs_of_memories(connection, json.loads(ids))
    named |= {entity for pair in pairs for entity in pair}
    said = _names_said(connection, ids)
    # What a vector was made of stands beside it: the erased memories' share goes, and a name that only they held.
    called = connection.execute("SELECT entity FROM entity_aliases WHERE id IN (SELECT value FROM json_each(?))", (json.dumps(said),))
    entity_vectors.drop(connection, named | {row[0] for row in called})
    yield
    connection.execute("DELETE FROM graph_queue WHERE memory IN (SELECT value FROM json_each(?))", (ids,))
    relations.sum_up(connection, pairs, now)
    _forget_unnamed(connection)
    _forget_names(connection, said)
    _empty_operations(connection)
    mentions.recount(connection, named)
    names.mark_changed(connection)


def empty_notes(connection: apsw.Connection, said: Sequence[str]) -> None:
    """What somebody noted with a relation outside of any memory goes where it quotes one of these texts; the relation stays."""
    for table in ("relation_evidence", "relations"):
        connection.execute(
            f"UPDATE {table} SET notes = NULL WHERE notes IS NOT NULL AND EXISTS (SELECT 1 FROM json_each(?) t WHERE instr(notes, t.value))",
            (json.dumps(list(said)),),
        )


def _names_said(connection: apsw.Connection, ids: str) -> list[int]:
    """The names that these memories hold, now or in an earlier state, and nobody put down by hand. A relative and a day have theirs by rules."""
    found = connection.execute(
        "WITH said(text) AS MATERIALIZED (SELECT content FROM memories WHERE id IN (SELECT value FROM json_each(?1)) UNION ALL "
        "SELECT v.content FROM memory_versions v JOIN memories m ON m.key = v.key WHERE m.id IN (SELECT value FROM json_each(?1))) "
        "SELECT a.id FROM entity_aliases a JOIN entities e ON e.id = a.entity "
        "WHERE NOT a.by_hand AND (a.alias <> e.name OR coalesce(e.subtype, '') NOT IN ('family', 'day')) "
        "AND EXISTS (SELECT 1 FROM said WHERE instr(said.text, a.alias))",
        (ids,),
    )
    return [row[0] for row in found]


def _forget_unnamed(connection: apsw.Connection) -> None:
    filed: set[str] | None = None
    while found := {row[0] for row in connection.execute(_UNNAMED)}:
        filed = visibility.all_labels(connection) if filed is None else filed
        known = connection.execute(
            "SELECT entity, bare FROM entity_aliases WHERE entity IN (SELECT value FROM json_each(?))", (json.dumps(sorted(found)),)
        )
        gone = found - {entity for entity, name in known if name in filed}
        if not gone:
            return
        entity_merges.reattach(connection, gone)
        # Then whatever they were merged into may have nothing left either.
        above = [row[0] for row in connection.execute("SELECT id FROM entities WHERE type_from = 'merge'")]
        connection.execute("DELETE FROM entities WHERE id IN (SELECT value FROM json_each(?))", (json.dumps(sorted(gone)),))
        entity_merges.update_merged_types(connection, above)


def _forget_names(connection: apsw.Connection, said: Sequence[int]) -> None:
    """Those of these names that nothing holds which is left. Whose own goes is called by the first of the others that something holds; where
    nothing does, he keeps it."""
    rows: list[Any] = connection.execute(
        "SELECT a.entity, a.id, a.alias, a.alias = e.name FROM entity_aliases a JOIN entities e ON e.id = a.entity "
        "WHERE a.id IN (SELECT value FROM json_each(?)) ORDER BY a.entity, a.id",
        (json.dumps(list(said)),),
    ).fetchall()
    own = {number: entity for entity, number, _, is_own in rows if is_own}
    gone: set[int] = set()
    for entity, of_one in groupby(rows, key=itemgetter(0)):
        gone |= _unheld(connection, entity, {number: alias for _, number, alias, _ in of_one})
    renamed = []
    filed = visibility.all_labels(connection) if gone & own.keys() else set()
    for number in gone & own.keys():
        other = _another_name(connection, own[number], number, filed)
        if other is None:
            gone.remove(number)
        else:
            connection.execute("UPDATE entities SET name = ? WHERE id = ?", (other, own[number]))
            renamed.append(own[number])
    connection.execute("DELETE FROM entity_aliases WHERE id IN (SELECT value FROM json_each(?))", (json.dumps(sorted(gone)),))
    if renamed:  # the words of what was stated of them are found by their names
        bm25_index.refresh(connection, relations.memories_stating(connection, renamed))


def _unheld(connection: apsw.Connection, entity: int, aliases: Mapping[int, str]) -> set[int]:
    """Those of these names of an entity, by number, that no memory which names it holds, in whatever case and width, or states a relation by."""
    left = {number: fold(alias) for number, alias in aliases.items()}
    for (text,) in connection.execute(_SAYING, (entity,)):
        said = fold(text)
        left = {number: alias for number, alias in left.items() if alias not in said}
        if not left:
            break
    return set(left)


def _another_name(connection: apsw.Connection, entity: int, own: int, filed: Set[str]) -> str | None:
    """What an entity is called when its own name goes; None where it has to keep that, or memories are filed under it."""
    rows: list[Any] = connection.execute("SELECT id, alias, by_hand FROM entity_aliases WHERE entity = ? ORDER BY id", (entity,)).fetchall()
    aliases = {number: alias for number, alias, _ in rows}
    if bare(aliases.pop(own)) in filed:
        return None
    unheld = _unheld(connection, entity, aliases)
    return next((alias for number, alias, by_hand in rows if number != own and (by_hand or number not in unheld)), None)


def _empty_operations(connection: apsw.Connection) -> None:
    """That somebody stated, changed or merged something stays; of whom goes, where one of the names is known no more."""
    known = {row[0] for row in connection.execute("SELECT bare FROM entity_aliases")}
    told = connection.execute(
        "SELECT id, before, after FROM operations WHERE operation IN (SELECT value FROM json_each(?)) AND coalesce(after, before) IS NOT NULL",
        (json.dumps(_ABOUT_NAMES),),
    )
    emptied = [
        number for number, *sides in told if not {bare(name) for side in sides if side for name in _names_in(json.loads(side))} <= known
    ]
    connection.execute(
        "UPDATE operations SET before = NULL, after = NULL, error = NULL, metadata = NULL WHERE id IN (SELECT value FROM json_each(?))",
        (json.dumps(emptied),),
    )


def _names_in(told: Mapping[str, Any]) -> list[str]:
    """The names of a row: of a relation's ends, or of the entities that it is about."""
    return told["names"] if "names" in told else [told["source"], told["target"]]
