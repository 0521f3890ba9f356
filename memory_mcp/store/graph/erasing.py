"""What the graph loses when memories are erased for good: who is named in none that is left is forgotten, and every name with it."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import apsw

from memory_mcp.store.graph import entity_vectors, mentions, merging, names, relations
from memory_mcp.text.entities.folding import bare

# Made of texts, and nothing stands on it any more: no mention, no relation but such as were taken back, no other name for it.
_UNNAMED = """
SELECT e.id FROM entities e WHERE e.made_by = 'text' AND NOT EXISTS (SELECT 1 FROM entity_mentions m WHERE m.entity = e.id)
AND NOT EXISTS (SELECT 1 FROM relation_evidence r WHERE r.validation_status <> 'rejected' AND (r.source = e.id OR r.target = e.id))
AND e.id NOT IN (SELECT merged_into FROM entities WHERE merged_into IS NOT NULL)
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
    aliases = _aliases_in(connection, ids)
    # What a vector was made of stands beside it: the erased memories' share goes, and a name that only they held.
    called = connection.execute("SELECT entity FROM entity_aliases WHERE id IN (SELECT value FROM json_each(?))", (json.dumps(aliases),))
    entity_vectors.drop(connection, named | {row[0] for row in called})
    yield
    connection.execute("DELETE FROM graph_queue WHERE memory IN (SELECT value FROM json_each(?))", (ids,))
    relations.sum_up(connection, pairs, now)
    _forget_unnamed(connection)
    _forget_aliases(connection, aliases)
    _empty_operations(connection)
    mentions.count_again(connection, named)
    names.changed(connection)


def empty_notes(connection: apsw.Connection, said: Sequence[str]) -> None:
    """What somebody noted with a relation outside of any memory goes where it quotes one of these texts; the relation stays."""
    for table in ("relation_evidence", "relations"):
        connection.execute(
            f"UPDATE {table} SET notes = NULL WHERE notes IS NOT NULL AND EXISTS (SELECT 1 FROM json_each(?) t WHERE instr(notes, t.value))",
            (json.dumps(list(said)),),
        )


def _aliases_in(connection: apsw.Connection, ids: str) -> list[int]:
    """The further names that these memories hold, now or in an earlier state, and nobody put down by hand."""
    found = connection.execute(
        "WITH said(text) AS MATERIALIZED (SELECT content FROM memories WHERE id IN (SELECT value FROM json_each(?1)) UNION ALL "
        "SELECT v.content FROM memory_versions v JOIN memories m ON m.key = v.key WHERE m.id IN (SELECT value FROM json_each(?1))) "
        "SELECT a.id FROM entity_aliases a JOIN entities e ON e.id = a.entity "
        "WHERE a.alias <> e.name AND NOT a.by_hand AND EXISTS (SELECT 1 FROM said WHERE instr(said.text, a.alias))",
        (ids,),
    )
    return [row[0] for row in found]


def _forget_unnamed(connection: apsw.Connection) -> None:
    filed: set[str] | None = None
    while found := {row[0] for row in connection.execute(_UNNAMED)}:
        if filed is None:
            every = [row[0] for row in connection.execute("SELECT id FROM memories")]
            filed = {bare(label) for label, _ in names.filed_under(connection, every)}
        known = connection.execute(
            "SELECT entity, bare FROM entity_aliases WHERE entity IN (SELECT value FROM json_each(?))", (json.dumps(sorted(found)),)
        )
        gone = found - {entity for entity, name in known if name in filed}
        if not gone:
            return
        merging.bridge(connection, gone)
        # Then whatever they were merged into may have nothing left either.
        above = [row[0] for row in connection.execute("SELECT id FROM entities WHERE type_from = 'merge'")]
        connection.execute("DELETE FROM entities WHERE id IN (SELECT value FROM json_each(?))", (json.dumps(sorted(gone)),))
        merging.settle_types(connection, above)


def _forget_aliases(connection: apsw.Connection, aliases: Sequence[int]) -> None:
    """Those of these names that no memory which names their entity holds, and by which none states a relation of it."""
    connection.execute(
        "DELETE FROM entity_aliases AS a WHERE a.id IN (SELECT value FROM json_each(?)) AND NOT EXISTS (SELECT 1 FROM entity_mentions em "
        "JOIN memories m ON m.id = em.memory WHERE em.entity = a.entity AND instr(m.content, a.alias)) "
        "AND NOT EXISTS (SELECT 1 FROM relation_evidence v WHERE v.source = a.entity AND v.source_said = a.alias) "
        "AND NOT EXISTS (SELECT 1 FROM relation_evidence v WHERE v.target = a.entity AND v.target_said = a.alias)",
        (json.dumps(list(aliases)),),
    )


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
