"""Merging another persona's graph: relations and rejections by hand, types, links, merges of entities and distinct ones.

What follows from texts is not copied: the texts are read again in the persona that they are merged into.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import apsw

from memory_mcp.language.names import UNKNOWN_TYPE
from memory_mcp.store.graph import types, visibility
from memory_mcp.store.graph.entities import entity_merges, records, type_history
from memory_mcp.store.graph.memory_links import DERIVED, UNLESS_UNDONE
from memory_mcp.store.graph.relations import (
    EVIDENCE,
    FROM_TEXT,
    INTO_EVIDENCE,
    REJECTED,
    STATED,
    Pair,
    directed_types,
    ordered_ends,
    sum_up,
)
from memory_mcp.store.timestamps import to_text

_STATED_SINCE = (
    "SELECT 1 FROM relation_evidence WHERE memory IS NULL AND source = ? AND target = ? AND type = ? AND method = ? AND created_at > ?"
)
_LINK = "source, target, type, weight, confidence, method, created_at"


def merge_graph(here: apsw.Connection, there: apsw.Connection, memory_ids: Mapping[int, int], now: datetime) -> None:
    """Copies what persons stated from `there` to `here`. Entities are found by name, or created. `memory_ids` maps the copied memories."""
    for kind, tables in types.TABLES.items():
        columns = f"name, display_name, description, {tables.own}"
        for values in there.execute(f"SELECT {columns} FROM {tables.types} WHERE user_defined").fetchall():
            types.insert(here, kind, values)
    _copy_links(here, there, memory_ids)
    evidence: list[tuple[Any, ...]] = [
        row
        for row in there.execute(
            f"SELECT {EVIDENCE} FROM relation_evidence WHERE method NOT IN (SELECT value FROM json_each(?)) ORDER BY id",
            (json.dumps(FROM_TEXT),),
        )
        if row[0] is None or row[0] in memory_ids
    ]
    merges: list[tuple[Any, ...]] = there.execute(
        "SELECT kept, merged, reason FROM entity_merges WHERE undone_at IS NULL ORDER BY id"
    ).fetchall()
    distinct: list[tuple[Any, ...]] = there.execute("SELECT one, other, reason, decided_at FROM entity_distinctions").fetchall()
    made = [row[0] for row in there.execute("SELECT id FROM entities WHERE made_by <> 'text' ORDER BY id")]
    ends = [end for row in evidence for end in row[1:3]]
    wanted = dict.fromkeys([*ends, *(end for row in (*merges, *distinct) for end in row[:2]), *made])
    ours = _entities_here(here, there, wanted, now)
    sum_up(here, add_stated_relations(here, [(memory_ids.get(row[0]), ours[row[1]], ours[row[2]], *row[3:]) for row in evidence]), now)
    for kept, merged, reason in merges:
        both = records.by_ids(here, [ours[kept], ours[merged]])
        roots = sorted({entity.merged_into or entity.id for entity in both.values()})
        if len(roots) == 2 and tuple(roots) not in entity_merges.distinct_pairs(here):
            entity_merges.merge(here, ours[kept], ours[merged], reason, now)
    for entity, other, reason, decided_at in distinct:
        if entity_merges.root_of(here, ours[entity]) != entity_merges.root_of(here, ours[other]):
            here.execute(
                "INSERT OR IGNORE INTO entity_distinctions(one, other, reason, decided_at) VALUES (?,?,?,?)",
                (*sorted((ours[entity], ours[other])), reason, decided_at),
            )


def _copy_links(here: apsw.Connection, there: apsw.Connection, memory_ids: Mapping[int, int]) -> None:
    """Copies links of memories that are not derived, and what is newer, which a person may have taken back."""
    rows: Iterable[tuple[Any, ...]] = there.execute(
        f"SELECT {_LINK} FROM memory_links WHERE type = 'newer' OR method NOT IN (SELECT value FROM json_each(?))", (json.dumps(DERIVED),)
    )
    here.executemany(
        f"INSERT INTO memory_links({_LINK}) VALUES (?,?,?,?,?,?,?) {UNLESS_UNDONE}",
        [(memory_ids[source], memory_ids[target], *rest) for source, target, *rest in rows if {source, target} <= memory_ids.keys()],
    )


def _entities_here(here: apsw.Connection, there: apsw.Connection, wanted: Iterable[int], now: datetime) -> dict[int, int]:
    """The ids of entities, there → here."""
    ids: dict[int, int] = {}
    theirs = records.by_ids(there, wanted)
    hidden_names = visibility.hidden_names(there, {entity.merged_into or entity.id for entity in theirs.values()})
    for id_, entity in theirs.items():
        made_by, type_from = there.execute("SELECT made_by, type_from FROM entities WHERE id = ?", (id_,)).fetchone() or ("text", None)
        type_ = None if entity.type == UNKNOWN_TYPE or type_from == "merge" else entity.type
        former_types = type_history.former_types(there, id_)
        if type_from == "hand":
            type_history.adopt_type(here, entity.name, entity.type, former_types)
        ids[id_] = records.find_or_create(here, entity.name, type_, entity.confidence, now, subtype=entity.subtype)
        if made_by != "text":
            # Hidden names come with the memories in the trash, once those are read here.
            hidden = hidden_names.get(entity.merged_into or entity.id, set())
            copied = replace(entity, aliases=tuple(alias for alias in entity.aliases if alias not in hidden))
            by_hand = records.names_by_hand(there, id_)
            fill_entity(here, ids[id_], copied, made_by, by_hand, now, type_by_hand=type_from == "hand")
        type_history.add(here, ids[id_], former_types)
    return ids


def fill_entity(
    here: apsw.Connection,
    id_: int,
    entity: records.Entity,
    made_by: str,
    names_by_hand: Sequence[str],
    now: datetime,
    *,
    type_by_hand: bool = False,
) -> None:
    """Fills the empty fields of an entity; what is set here stays. An entity created by hand stays without a mention."""
    records.add_aliases(here, id_, entity.aliases)
    records.add_names_by_hand(here, id_, names_by_hand)
    attributes = json.dumps(dict(entity.attributes), ensure_ascii=False) if entity.attributes else None
    here.execute(
        "UPDATE entities SET made_by = iif(?1 = 'text', made_by, ?1), description = coalesce(description, ?2), attributes = coalesce(attributes, ?3), "
        "subtype = coalesce(subtype, ?4), importance = max(importance, ?5), updated_at = ?6, "
        "type_from = iif(?8 AND type = ?9, 'hand', type_from) WHERE id = ?7",
        (made_by, entity.description, attributes, entity.subtype, entity.importance, to_text(now), id_, type_by_hand, entity.type),
    )


def add_stated_relations(here: apsw.Connection, rows: Iterable[tuple[Any, ...]]) -> set[Pair]:
    """Adds relations by hand; existing ones stay as they are. Of a statement and a rejection, the later one counts; a memory's statement
    doesn't undo a rejection. Returns the pairs to sum up."""
    directed = directed_types(here)
    changed: set[Pair] = set()
    for memory, first, second, first_name, second_name, type_, *rest in rows:
        source, target, *names = ordered_ends((first, second, first_name, second_name), is_directed=directed.get(type_, True))
        method_and_status = rest[5:7]  # not all of `rest`: a note may contain the same words
        later = (source, target, type_, STATED, rest[-1])
        if source == target or (REJECTED in method_and_status and here.execute(_STATED_SINCE, later).get is not None):
            continue
        here.execute(f"INSERT OR IGNORE {INTO_EVIDENCE}", (memory, source, target, *names, type_, *rest))
        if memory is None and STATED in method_and_status and here.changes():
            here.execute(
                "DELETE FROM relation_evidence WHERE source = ? AND target = ? AND type = ? AND method = ? AND created_at < ?",
                (source, target, type_, REJECTED, rest[-1]),
            )
        changed.add((source, target))
    return changed
