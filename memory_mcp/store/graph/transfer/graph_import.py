"""Importing the graph's rows of an export: what is stored here stays, empty fields are filled; of a stranger's rows, none is. And merging
another persona's graph: what follows from texts is not copied, as the texts are read again in the persona that they are merged into.

Rows are those of `graph_export`, validated. Entities are found by name and type, or created.
"""

import json
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import apsw

from memory_mcp.domain import Memory
from memory_mcp.errors import InvalidInput
from memory_mcp.language.names import UNKNOWN_TYPE, fold
from memory_mcp.store import memories
from memory_mcp.store.graph import mentions, types, visibility
from memory_mcp.store.graph.entities import entity_merges, names, records, type_history
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
    rebuild_sums,
    sum_up,
    supporters,
)
from memory_mcp.store.graph.types import Kind
from memory_mcp.store.timestamps import to_text

Row = Mapping[str, Any]
# The kinds of rows that can add something without a change of what is stored.
ADDED = ("entity_type", "relation_type", "entity", "relation")


class GraphImport:
    """Imports one batch of rows; `finish` sums up what follows from them. Call both in one transaction."""

    def __init__(self, connection: apsw.Connection, now: datetime) -> None:
        self._connection, self._now = connection, now
        self._pairs: set[Pair] = set()
        self._merged: set[int] = set()
        self._mentioned: set[int] = set()

    def add(self, kind: str, row: Row) -> bool:
        """Stores a row. Returns whether it changed anything.

        Raises:
            InvalidInput: it refers to a memory that this persona doesn't have. Nothing of it was stored.
        """
        by_kind = {
            "entity_type": self._type,
            "relation_type": self._type,
            "entity": self._entity,
            "relation": self._relation,
            "merged_entity": self._merge,
            "distinct_entity": self._distinguish,
            "link": self._link,
            "mention": self._mention,
        }
        return by_kind[kind](row)

    def finish(self) -> None:
        """Updates relations, counters and names."""
        if self._merged:
            entity_merges.regroup(self._connection)
            entity_merges.update_merged_types(self._connection, self._merged)
            rebuild_sums(self._connection, sorted(self._merged), self._now)
            mentions.recount(self._connection, self._merged)
            names.mark_changed(self._connection)
        mentions.recount(self._connection, self._mentioned)
        sum_up(self._connection, self._pairs, self._now)

    def _type(self, row: Row) -> bool:
        kind: Kind = "entity" if "entity_type" in row else "relation"
        name = row[f"{kind}_type"]
        own = row.get("color") if kind == "entity" else int(row.get("directed", True))
        return types.insert(self._connection, kind, (name, row.get("display_name") or name, row.get("description"), own))

    def _entity(self, row: Row) -> bool:
        if row.get("type_by_hand") and "type" in row:
            type_history.adopt_type(self._connection, row["entity"], row["type"], row.get("former_types", ()))
        id_ = self._own(row["entity"], row.get("type"))
        if id_ is None:
            self._create(row)
            return True
        before = self._fields(id_)
        self._fill(id_, row)
        return self._fields(id_) != before

    def _create(self, row: Row) -> int:
        id_ = records.create(
            self._connection,
            row["entity"],
            row.get("type") or UNKNOWN_TYPE,
            row.get("confidence", 1.0),
            self._now,
            subtype=row.get("subtype"),
        )
        self._connection.execute(
            "UPDATE OR IGNORE entities SET entity_id = coalesce(?, entity_id), created_at = coalesce(?, created_at), importance = 0 WHERE id = ?",
            (row.get("entity_id"), row.get("created_at"), id_),
        )
        self._fill(id_, row)
        return id_

    def _fill(self, id_: int, row: Row) -> None:
        imported = records.Entity(
            id=id_,
            entity_id="",
            type=row.get("type") or UNKNOWN_TYPE,
            name=row["entity"],
            subtype=row.get("subtype"),
            description=row.get("description"),
            attributes=row.get("attributes", {}),
            importance=row.get("importance", 0.5),
            aliases=tuple(row.get("aliases", ())),
        )
        made_by = row.get("made_by", "text")
        # Older exports don't contain which names persons wrote.
        by_hand = row.get("names_by_hand", () if made_by == "text" else (imported.name, *imported.aliases))
        fill_entity(self._connection, id_, imported, made_by, by_hand, self._now, type_by_hand=row.get("type_by_hand", False))
        type_history.add(self._connection, id_, row.get("former_types", ()))

    def _fields(self, id_: int) -> object:
        entity = records.by_ids(self._connection, [id_])[id_]
        made_by = self._connection.execute("SELECT made_by, type_from, types_told FROM entities WHERE id = ?", (id_,)).get
        by_hand = records.names_by_hand(self._connection, id_)
        return entity.type, entity.subtype, entity.description, entity.attributes, entity.importance, entity.aliases, made_by, by_hand

    def _relation(self, row: Row) -> bool:
        source, target = (self._end(row[end], row.get(f"{end}_type")) for end in ("source", "target"))
        before = self._connection.total_changes()
        values = [
            row.get(name) for name in ("subtype", "weight", "confidence", "valid_from", "valid_to", "method", "validation_status", "notes")
        ]
        pairs = add_stated_relations(self._connection, [(None, source, target, None, None, row["relation"], *values, row["created_at"])])
        if self._connection.total_changes() == before:
            return False
        self._pairs |= pairs
        return True

    def _merge(self, row: Row) -> bool:
        merged, kept = self._end(row["merged_entity"], row.get("type")), self._end(row["into_entity"], row.get("into_type"))
        known = self._connection.execute(
            "SELECT 1 FROM entity_merges WHERE kept = ? AND merged = ? AND (merged_at = ? OR undone_at IS NULL)",
            (kept, merged, row["merged_at"]),
        ).get
        if kept == merged or known:
            return False
        if not row.get("undone_at"):
            # An entity that is merged already brings its group: none is merged into two, nor into itself.
            merged, root = entity_merges.root_by_merges(self._connection, merged), entity_merges.root_by_merges(self._connection, kept)
            if merged == root or entity_merges.are_distinct(self._connection, merged, root):
                return False
        self._connection.execute(
            "INSERT INTO entity_merges(kept, merged, reason, merged_at, undone_at) VALUES (?,?,?,?,?)",
            (kept, merged, row.get("reason"), row["merged_at"], row.get("undone_at")),
        )
        self._merged |= {kept, merged}
        return True

    def _distinguish(self, row: Row) -> bool:
        ends = (row["distinct_entity"], row.get("type")), (row["from_entity"], row.get("from_type"))
        entity, other = (self._end(*end) for end in ends)
        if entity_merges.root_by_merges(self._connection, entity) == entity_merges.root_by_merges(self._connection, other):
            return False
        entity_merges.note_distinct(self._connection, entity, other, row.get("reason"), row["decided_at"], "IGNORE")
        return self._connection.changes() > 0

    def _mention(self, row: Row) -> bool:
        memory = self._memories("mention", row["memory"])[row["memory"]]
        entity = self._end(row["mention"], row.get("type"))
        start = max(memory.content.find(row["mention"]), 0)
        end = start + len(row["mention"]) if memory.content.startswith(row["mention"], start) else start
        # Found by another program: kept like what a chat model finds, until the text changes.
        values = memory.id, entity, start, end, row.get("link_type", "mentions"), row.get("relevance", 0.5), row.get("confidence", 0.5)
        self._connection.execute(
            'INSERT INTO entity_mentions(memory, entity, start, "end", link_type, relevance, confidence, created_at, method) '
            "SELECT ?1,?2,?3,?4,?5,?6,?7,?8,'model' WHERE NOT EXISTS "
            "(SELECT 1 FROM entity_mentions WHERE memory = ?1 AND entity = ?2 AND method = 'model') "
            "ON CONFLICT DO UPDATE SET link_type = excluded.link_type, method = excluded.method",
            (*values, row["created_at"]),
        )
        self._mentioned.add(entity)
        return self._connection.changes() > 0

    def _memories(self, kind: str, *keys: str) -> Mapping[str, Memory]:
        stored = memories.by_keys(self._connection, keys)
        missing = set(keys) - stored.keys()
        if missing:
            raise InvalidInput(
                "the {} can't be stored", "this persona has no memory with the key {}", "Import the memories with it", kind, min(missing)
            )
        return stored

    def _link(self, row: Row) -> bool:
        ends = self._memories("link", row["source"], row["target"])
        self._connection.execute(
            f"INSERT INTO memory_links(source, target, type, weight, confidence, method, created_at) VALUES (?,?,?,?,?,?,?) {UNLESS_UNDONE}",
            (
                ends[row["source"]].id,
                ends[row["target"]].id,
                row["link"],
                row.get("weight", 1.0),
                row.get("confidence", 1.0),
                row["method"],
                row["created_at"],
            ),
        )
        return self._connection.changes() > 0

    def _end(self, name: str, type_: str | None) -> int:
        return self._own(name, type_) or self._create({"entity": name, "type": type_})

    def _own(self, name: str, type_: str | None) -> int | None:
        """The entity of this name and type, ignoring merges and types that a person set since."""
        had = type_history.HAD.format("?3")
        own = records.OWN_TYPE.format(e="e")
        match = self._connection.execute(
            f"SELECT e.id, {own}, e.name FROM entity_aliases a JOIN entities e ON e.id = a.entity WHERE a.folded = ?1 "
            f"AND (?3 IS NULL OR {own} IN (?3, ?4) OR {had}) ORDER BY e.name = ?2 DESC, {own} = ?3 DESC, {had} DESC, e.id LIMIT 1",
            (fold(name), name, type_, UNKNOWN_TYPE),
        ).fetchone()
        if match is None or (match[2] != name and records.is_day_without_year(name)):
            return None
        if type_ not in (None, match[1]) and match[1] == UNKNOWN_TYPE:
            self._connection.execute(
                f"UPDATE entities SET type = ?, type_from = NULL, types_told = {type_history.WAS_UNKNOWN} WHERE id = ? AND type_from IS NOT 'hand'",
                (type_, match[0]),
            )
        return int(match[0])


class GraphAdditions(GraphImport):
    """Adds types, entities and relations that are not known here, and changes none that is. `stored`: keys of memories that came with
    these rows.
    """

    def __init__(self, connection: apsw.Connection, now: datetime, stored: Container[str]) -> None:
        super().__init__(connection, now)
        self._stored = stored

    def add(self, kind: str, row: Row) -> bool:
        """Stores a row of something that is not known. Returns whether it did.

        Raises:
            InvalidInput: rows of this kind change what is stored.
        """
        if kind not in ADDED:
            raise InvalidInput("a {} line changes what is stored", "this import only adds", "Remove the line", kind)
        return super().add(kind, row)

    def _type(self, row: Row) -> bool:
        name = row.get("relation_type")
        # A type that is used without a row has the default direction, which the row would change.
        used = name and self._connection.execute("SELECT 1 FROM relation_evidence WHERE type = ? LIMIT 1", (name,)).get
        return not used and super()._type(row)

    def _entity(self, row: Row) -> bool:
        if records.by_name(self._connection, row["entity"]):
            return False
        aliases = [alias for alias in row.get("aliases", ()) if not records.by_name(self._connection, alias)]
        self._create(
            {**{name: row[name] for name in ("entity", "type", "subtype", "description", "importance") if name in row}, "aliases": aliases}
        )
        return True

    def _relation(self, row: Row) -> bool:
        source, target = (self._end(row[end], row.get(f"{end}_type")) for end in ("source", "target"))
        others = (key for key in supporters(self._connection, source, target, row["relation"]) if key is None or key not in self._stored)
        return not any(True for _ in others) and super()._relation(row)

    def _end(self, name: str, type_: str | None) -> int:
        known = records.by_name(self._connection, name)
        return known[0].id if known else self._create({"entity": name, "type": type_})


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
            entity_merges.note_distinct(here, ours[entity], ours[other], reason, decided_at, "IGNORE")


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
