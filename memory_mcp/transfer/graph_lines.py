"""The JSON lines for parts of the graph that were stated outside of memories, and for merges of memories.

The first field of a line determines its kind. Types and entities precede the memories of an export, so that memories are read with
them known; relations, merges, decisions that two entities are distinct, and links follow the memories.
"""

import json
import re
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import apsw

from memory_mcp.config.settings import Privacy
from memory_mcp.errors import InvalidInput
from memory_mcp.language.labels import storable
from memory_mcp.language.privacy.redaction import Redaction
from memory_mcp.personas.registry import Persona
from memory_mcp.remember.dry_run import Foreseen
from memory_mcp.store import memories, memory_merges, trash
from memory_mcp.store.graph.entities.editing import BY_HAND
from memory_mcp.store.graph.transfer import graph_export
from memory_mcp.store.graph.transfer.graph_import import GraphAdditions, GraphImport
from memory_mcp.store.timestamps import to_text
from memory_mcp.transfer.line_fields import FLAG, OBJECT, SHARE, TEXT, TEXTS, Check, check_fields, parse_time

NAME_LIMIT, ALIASES_LIMIT, TEXT_LIMIT = 300, 100, 10_000
MERGED_MEMORY = "merged_memory"
# The fields of each kind of line; _REQUIRED lists those that must be present.
GRAPH_FIELDS: Mapping[str, Mapping[str, Check]] = {
    "entity_type": {"entity_type": TEXT, "display_name": TEXT, "description": TEXT, "color": TEXT},
    "relation_type": {"relation_type": TEXT, "display_name": TEXT, "description": TEXT, "directed": FLAG},
    "entity": {
        **dict.fromkeys(("entity", "type", "subtype", "description", "made_by", "entity_id", "created_at"), TEXT),
        **dict.fromkeys(("aliases", "names_by_hand", "former_types"), TEXTS),
        "type_by_hand": FLAG,
        "attributes": OBJECT,
        "importance": SHARE,
        "confidence": SHARE,
    },
    "relation": {
        **dict.fromkeys(("relation", "source", "source_type", "target", "target_type", "subtype", "method", "validation_status"), TEXT),
        **dict.fromkeys(("valid_from", "valid_to", "notes", "created_at"), TEXT),
        "weight": SHARE,
        "confidence": SHARE,
    },
    "merged_entity": dict.fromkeys(("merged_entity", "type", "into_entity", "into_type", "reason", "merged_at", "undone_at"), TEXT),
    "distinct_entity": dict.fromkeys(("distinct_entity", "type", "from_entity", "from_type", "reason", "decided_at"), TEXT),
    "link": {**dict.fromkeys(("link", "source", "target", "method", "created_at"), TEXT), "weight": SHARE, "confidence": SHARE},
    "mention": {
        **dict.fromkeys(("mention", "type", "memory", "link_type", "created_at"), TEXT),
        "relevance": SHARE,
        "confidence": SHARE,
    },
    MERGED_MEMORY: {MERGED_MEMORY: TEXT, "into_memory": TEXT},
}
_REQUIRED = {
    "relation": ("source", "target"),
    "merged_entity": ("into_entity",),
    "distinct_entity": ("from_entity",),
    "link": ("source", "target"),
    "mention": ("memory",),
    MERGED_MEMORY: ("into_memory",),
}
# The fields that are keys of memories.
_MEMORY_KEYS = {"link": ("source", "target"), "mention": ("memory",), MERGED_MEMORY: (MERGED_MEMORY, "into_memory")}
_BEFORE_MEMORIES = frozenset({"entity_type", "relation_type", "entity"})
_LONG = frozenset({"description", "notes", "reason"})
_TIMES = frozenset({"created_at", "merged_at", "undone_at", "decided_at"})
_UUID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
# An entity made by text is removed together with the last memory that mentions it.
_MAKERS = ("text", BY_HAND)
# A relation of weight 0 would count as absent.
_LEAST_WEIGHT = 0.001


@dataclass(frozen=True, slots=True)
class GraphLine:
    """A validated line: its kind and fields."""

    kind: str
    row: Mapping[str, Any]

    @property
    def is_before_memories(self) -> bool:
        """Whether the line must be imported before the memories of its batch."""
        return self.kind in _BEFORE_MEMORIES


def kind_of(row: Mapping[str, Any]) -> str | None:
    """The kind of a line; None if it is not about the graph."""
    return next((kind for kind in GRAPH_FIELDS if kind in row), None)


def checked(kind: str, row: Mapping[str, Any], zone: ZoneInfo, now: datetime) -> GraphLine:
    """Validates a line and fills in defaults.

    Raises:
        InvalidInput: a field can't be stored; the message names it.
    """
    check_fields(row, GRAPH_FIELDS[kind])
    missing = [name for name in _REQUIRED.get(kind, ()) if name not in row]
    if missing:
        raise InvalidInput("{} is missing", "a {} line requires it", "Use the line as the export wrote it", missing[0], kind)
    fields = {name: _value(name, value, zone) for name, value in row.items()}
    if "entity_id" in fields and not _UUID.fullmatch(fields["entity_id"]):
        raise InvalidInput("entity_id is {}", "names are looked up as ids too", "Omit it, or send a UUID", repr(fields["entity_id"][:80]))
    if fields.get("made_by", "text") not in _MAKERS:
        raise InvalidInput("made_by is {}", "it is one of {}", "Omit it for text", repr(fields["made_by"][:80]), ", ".join(_MAKERS))
    if kind in ("relation", "link") and fields["source"] == fields["target"] and not _are_namesakes(fields):
        raise InvalidInput("source and target are the same", "a {} connects two different ones", "Remove the line", kind)
    if kind == "relation":
        defaults = {"weight": 0.8, "confidence": 1.0, "method": "stated", "validation_status": "unvalidated", "created_at": to_text(now)}
        fields = {**defaults, **fields, "weight": max(fields.get("weight", 0.8), _LEAST_WEIGHT)}
    if kind == "merged_entity":
        fields = {"merged_at": to_text(now), **fields}
    if kind == "distinct_entity":
        fields = {"decided_at": to_text(now), **fields}
    if kind == "link":
        fields = {"method": "stated", "created_at": to_text(now), **fields}
    if kind == "mention":
        fields = {"created_at": to_text(now), **fields}
    return GraphLine(kind, fields)


def redacted(line: GraphLine, rules: Privacy) -> GraphLine:
    """A copy without private data. Keys of memories are not changed."""
    keys = {name: line.row[name] for name in _MEMORY_KEYS.get(line.kind, ()) if name in line.row}
    return replace(line, row={**Redaction(rules).tree(line.row), **keys})


def import_graph_lines(
    persona: Persona, lines: Sequence[GraphLine], now: datetime, dry_run: Foreseen | None, only_beside: Container[str] | None = None
) -> list[bool | InvalidInput]:
    """Imports the lines in one commit, which a dry run rolls back. Returns for each line whether it changed anything, or its refusal.

    `only_beside`: change nothing that is stored, except what came with the memories of these keys.
    """

    def work(connection: apsw.Connection) -> list[bool | InvalidInput]:
        graph_import = GraphImport(connection, now) if only_beside is None else GraphAdditions(connection, now, only_beside)
        results = [_import_line(connection, graph_import, line, now, dry_run) for line in lines]
        graph_import.finish()
        if dry_run:
            raise _RolledBack(results)
        return results

    if not lines:
        return []
    try:
        return persona.database.write_apart(work)
    except _RolledBack as error:
        return error.results


def lines_before_memories(persona: Persona, *, deleted: bool, secret: bool) -> Iterator[str]:
    """Yields the custom types, and the entities that were edited by hand."""
    with persona.database.read() as connection:
        rows = [*graph_export.type_rows(connection), *graph_export.entity_rows(connection, deleted, secret)]
    yield from map(_line, rows)


def left_out(persona: Persona, *, deleted: bool, secret: bool) -> int:
    """The number of lines that are left out because only memories support them which the export leaves out."""
    with persona.database.read() as connection:
        return graph_export.withheld_rows(connection, deleted, secret)


def lines_after_memories(persona: Persona, *, deleted: bool, secret: bool) -> Iterator[str]:
    """Yields what was stated about the entities and memories of earlier lines."""
    with persona.database.read() as connection:
        rows = list(graph_export.stated_rows(connection, deleted, secret))
    yield from map(_line, rows)


class _RolledBack(Exception):
    """Rolls back the transaction of a dry run and carries its results."""

    def __init__(self, results: list[bool | InvalidInput]) -> None:
        self.results = results


def _import_line(
    connection: apsw.Connection, graph_import: GraphImport, line: GraphLine, now: datetime, dry_run: Foreseen | None
) -> bool | InvalidInput:
    memory_keys = [line.row[name] for name in _MEMORY_KEYS.get(line.kind, ())]
    if dry_run and any(map(dry_run.would_store, memory_keys)):
        return True
    try:
        return _merge_memory(connection, line.row, now) if line.kind == MERGED_MEMORY else graph_import.add(line.kind, line.row)
    except InvalidInput as error:
        return error


def _merge_memory(connection: apsw.Connection, row: Mapping[str, Any], now: datetime) -> bool:
    """Records a merge of memories. A merged memory is in the trash; one that was restored since is no longer merged."""
    key, into = row[MERGED_MEMORY], row["into_memory"]
    stored = memories.by_keys(connection, [key, into])
    missing = {key, into} - stored.keys()
    if missing:
        raise InvalidInput(
            "the merge can't be stored", "this persona has no memory with the key {}", "Import the memories with it", min(missing)
        )
    if key == into or stored[key].deleted_at is None or key in memory_merges.targets(connection, [key]):
        return False
    memory_merges.note(connection, key, into)
    trash.refresh(connection, [stored[key]], now)
    return True


def _value(name: str, value: Any, zone: ZoneInfo) -> Any:
    if isinstance(value, str):
        return to_text(parse_time(name, value, zone)) if name in _TIMES else _text(name, value)
    if isinstance(value, list):
        if len(value) > ALIASES_LIMIT:
            raise InvalidInput("there are {} {}", "the limit is {}", "Remove some", len(value), name, ALIASES_LIMIT)
        return [_text(name, entry) for entry in value]
    if isinstance(value, dict):
        if len(json.dumps(value, ensure_ascii=False)) > TEXT_LIMIT:
            raise InvalidInput("{} is too long", "the limit is {} characters", "Shorten it", name, f"{TEXT_LIMIT:,}")
        return value
    if not isinstance(value, bool) and not 0 <= value <= 1:
        raise InvalidInput("{} is {}", "it must be from 0 to 1", "Correct it, or omit the field", name, value)
    return value


def _text(name: str, value: str) -> str:
    limit = TEXT_LIMIT if name in _LONG else NAME_LIMIT
    if not value.strip() or len(value) > limit:
        raise InvalidInput("{} is blank or too long", "the limit is {} characters", "Shorten it, or omit the field", name, f"{limit:,}")
    return storable(value, name)


def _line(row: Mapping[str, Any]) -> str:
    return json.dumps({name: value for name, value in row.items() if value is not None}, ensure_ascii=False)


def _are_namesakes(fields: Mapping[str, Any]) -> bool:
    """Whether source and target share a name but have different types."""
    types = {fields.get("source_type"), fields.get("target_type")}
    return len(types) == 2 and None not in types
