"""Taking into one persona's graph what somebody said by hand in another's: relations, what was taken back, who is one with whom and who
is not.

What follows from texts is not taken: the texts are read again where they come to.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import apsw

from memory_mcp.store.graph import visibility
from memory_mcp.store.graph.entities import entity_merges, records, type_history
from memory_mcp.store.graph.memory_links import DERIVED
from memory_mcp.store.graph.relations import FROM_TEXT, REJECTED, STATED, Pair, directed_types, ordered_ends, sum_up
from memory_mcp.store.timestamps import to_text

_EVIDENCE = "memory, source, target, source_said, target_said, type, subtype, weight, confidence, valid_from, valid_to, method, validation_status, notes, created_at"
_LINK = "source, target, type, weight, confidence, method, created_at"


def merge_graph(here: apsw.Connection, there: apsw.Connection, memory_ids: Mapping[int, int], now: datetime) -> None:
    """Takes it in; entities are found by their names, or made. `memory_ids`: of the memories that came along, there → here."""
    _take_types(here, there)
    _take_links(here, there, memory_ids)
    said: list[tuple[Any, ...]] = [
        row
        for row in there.execute(
            f"SELECT {_EVIDENCE} FROM relation_evidence WHERE method NOT IN (SELECT value FROM json_each(?)) ORDER BY id",
            (json.dumps(FROM_TEXT),),
        )
        if row[0] is None or row[0] in memory_ids
    ]
    merges: list[tuple[Any, ...]] = there.execute(
        "SELECT kept, merged, reason FROM entity_merges WHERE undone_at IS NULL ORDER BY id"
    ).fetchall()
    apart: list[tuple[Any, ...]] = there.execute("SELECT one, other, reason, decided_at FROM entity_distinctions").fetchall()
    made = [row[0] for row in there.execute("SELECT id FROM entities WHERE made_by <> 'text' ORDER BY id")]
    ends = [end for row in said for end in row[1:3]]
    ours = _ours(here, there, dict.fromkeys([*ends, *(end for one, other, *_ in (*merges, *apart) for end in (one, other)), *made]), now)
    sum_up(here, add_stated_relations(here, [(memory_ids.get(row[0]), ours[row[1]], ours[row[2]], *row[3:]) for row in said]), now)
    for kept, merged, reason in merges:
        found = records.by_ids(here, [ours[kept], ours[merged]])
        roots = sorted({entity.merged_into or entity.id for entity in found.values()})
        if len(roots) == 2 and tuple(roots) not in entity_merges.distinct_pairs(here):
            entity_merges.merge(here, ours[kept], ours[merged], reason, now)
    for one, other, reason, decided_at in apart:
        if entity_merges.root_of(here, ours[one]) != entity_merges.root_of(here, ours[other]):
            here.execute(
                "INSERT OR IGNORE INTO entity_distinctions(one, other, reason, decided_at) VALUES (?,?,?,?)",
                (*sorted((ours[one], ours[other])), reason, decided_at),
            )


def _take_links(here: apsw.Connection, there: apsw.Connection, memory_ids: Mapping[int, int]) -> None:
    """Links of memories that nothing derives."""
    rows: Iterable[tuple[Any, ...]] = there.execute(
        f"SELECT {_LINK} FROM memory_links WHERE method NOT IN (SELECT value FROM json_each(?))", (json.dumps(DERIVED),)
    )
    here.executemany(
        f"INSERT OR IGNORE INTO memory_links({_LINK}) VALUES (?,?,?,?,?,?,?)",
        [(memory_ids[source], memory_ids[target], *rest) for source, target, *rest in rows if {source, target} <= memory_ids.keys()],
    )


def _take_types(here: apsw.Connection, there: apsw.Connection) -> None:
    for table, columns in (
        ("entity_types", "name, display_name, description, color"),
        ("relation_types", "name, display_name, description, directed"),
    ):
        here.executemany(
            f"INSERT OR IGNORE INTO {table}({columns}, user_defined) VALUES (?,?,?,?,1)",
            there.execute(f"SELECT {columns} FROM {table} WHERE user_defined").fetchall(),
        )


def _ours(here: apsw.Connection, there: apsw.Connection, wanted: Iterable[int], now: datetime) -> dict[int, int]:
    """Which of the entities here each of those there is."""
    found: dict[int, int] = {}
    theirs = records.by_ids(there, wanted)
    of_the_trash = visibility.hidden_names(there, {entity.merged_into or entity.id for entity in theirs.values()})
    for id_, entity in theirs.items():
        made_by, type_from = there.execute("SELECT made_by, type_from FROM entities WHERE id = ?", (id_,)).fetchone() or ("text", None)
        type_ = None if entity.type == records.UNKNOWN_TYPE or type_from == "merge" else entity.type
        had = type_history.former_types(there, id_)
        if type_from == "hand":
            type_history.adopt_type(here, entity.name, entity.type, had)
        found[id_] = records.find_or_create(here, entity.name, type_, entity.confidence, now, subtype=entity.subtype)
        if made_by != "text":
            # What only the trash calls it comes with the trash, once that is read here.
            hidden = of_the_trash.get(entity.merged_into or entity.id, set())
            told = replace(entity, aliases=tuple(alias for alias in entity.aliases if alias not in hidden))
            by_hand = records.names_by_hand(there, id_)
            fill_entity(here, found[id_], told, made_by, by_hand, now, type_by_hand=type_from == "hand")
        type_history.add(here, found[id_], had)
    return found


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
    """What is said of an entity here stays, and what is open is filled. Who was made by somebody stays without a mention."""
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
    """What is said here already stays as it is. Of somebody who states a relation and somebody who takes it back, the later one counts; what
    a memory states brings back nothing."""
    directed = directed_types(here)
    changed: set[Pair] = set()
    for memory, one, other, one_said, other_said, type_, *rest in rows:
        source, target, *called = ordered_ends((one, other, one_said, other_said), is_directed=directed.get(type_, True))
        how = rest[5:7]  # method and validation_status: a note may read like them
        contradicted = REJECTED in how and _is_stated_since(here, source, target, type_, rest[-1])
        if source != target and not contradicted:
            here.execute(
                f"INSERT OR IGNORE INTO relation_evidence({_EVIDENCE}) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
                (memory, source, target, *called, type_, *rest),
            )
            if memory is None and STATED in how and here.changes():
                here.execute(
                    "DELETE FROM relation_evidence WHERE source = ? AND target = ? AND type = ? AND method = ? AND created_at < ?",
                    (source, target, type_, REJECTED, rest[-1]),
                )
            changed.add((source, target))
    return changed


def _is_stated_since(here: apsw.Connection, source: int, target: int, type_: str, moment: str) -> bool:
    found = here.execute(
        "SELECT 1 FROM relation_evidence WHERE memory IS NULL AND source = ? AND target = ? AND type = ? AND method = ? AND created_at > ?",
        (source, target, type_, STATED, moment),
    )
    return found.get is not None
