"""The lines of an export that hold what somebody said of the graph beside the memories, and which memory was merged into which.

Each is told by its first field. Types and entities stand before the memories, so that these are read with them known; relations,
merges, decisions that two are not the same, and links stand after.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import apsw

from memory_mcp.config.settings import Privacy
from memory_mcp.errors import InvalidInput
from memory_mcp.personas.registry import Persona
from memory_mcp.remember.dry_run import Foreseen
from memory_mcp.remember.forget import refresh_after_trash
from memory_mcp.store import memories, memory_merges
from memory_mcp.store.graph.entities.editing import BY_HAND
from memory_mcp.store.graph.transfer import graph_export
from memory_mcp.store.graph.transfer.graph_import import GraphImport
from memory_mcp.store.timestamps import to_text
from memory_mcp.text.privacy.redaction import Redaction
from memory_mcp.text.unstorable import storable
from memory_mcp.transfer.line_fields import FLAG, OBJECT, SHARE, TEXT, TEXTS, Check, check_fields, moment_of

NAME_LIMIT, ALIASES_LIMIT, TEXT_LIMIT = 300, 100, 10_000
MERGED_MEMORY = "merged_memory"
# What a line may say, by what tells its kind; those that must be there are marked in _NEEDED.
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
    MERGED_MEMORY: {MERGED_MEMORY: TEXT, "into_memory": TEXT},
}
_NEEDED = {
    "relation": ("source", "target"),
    "merged_entity": ("into_entity",),
    "distinct_entity": ("from_entity",),
    "link": ("source", "target"),
    MERGED_MEMORY: ("into_memory",),
}
# Which fields name memories.
_KEYS = {"link": ("source", "target"), MERGED_MEMORY: (MERGED_MEMORY, "into_memory")}
_EARLY = frozenset({"entity_type", "relation_type", "entity"})
_LONG = frozenset({"description", "notes", "reason"})
_TIMES = frozenset({"created_at", "merged_at", "undone_at", "decided_at"})
_UUID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
# Who is made by texts goes with the last of them.
_MAKERS = ("text", BY_HAND)
# A relation weighs something, or it is none.
_LEAST_WEIGHT = 0.001


@dataclass(frozen=True, slots=True)
class Said:
    """One such line: its kind, and its fields, checked."""

    kind: str
    row: Mapping[str, Any]

    @property
    def is_early(self) -> bool:
        """Whether the memories of its batch are to be read with it known."""
        return self.kind in _EARLY


def kind_of(row: Mapping[str, Any]) -> str | None:
    """The kind of a line, None where it is another one."""
    return next((kind for kind in GRAPH_FIELDS if kind in row), None)


def checked(kind: str, row: Mapping[str, Any], zone: ZoneInfo, now: datetime) -> Said:
    """What a line of this kind says, with what it leaves open filled.

    Raises:
        InvalidInput: something in it can't be stored; says what.
    """
    check_fields(row, GRAPH_FIELDS[kind])
    lacking = [name for name in _NEEDED.get(kind, ()) if name not in row]
    if lacking:
        raise InvalidInput(f"{lacking[0]} is missing", f"a line of {kind} has it", "Take the line as the export wrote it")
    told = {name: _value(name, value, zone) for name, value in row.items()}
    if "entity_id" in told and not _UUID.fullmatch(told["entity_id"]):
        raise InvalidInput(f"entity_id is {told['entity_id'][:80]!r}", "names are looked up as ids too", "Leave it out, or send a UUID")
    if told.get("made_by", "text") not in _MAKERS:
        raise InvalidInput(f"made_by is {told['made_by'][:80]!r}", f"it is one of {', '.join(_MAKERS)}", "Leave it out for text")
    if kind in ("relation", "link") and told["source"] == told["target"] and not _are_namesakes(told):
        raise InvalidInput("source and target are the same", f"a {kind} is between two", "Leave the line out")
    if kind == "relation":
        usual = {"weight": 0.8, "confidence": 1.0, "method": "stated", "validation_status": "unvalidated", "created_at": to_text(now)}
        told = {**usual, **told, "weight": max(told.get("weight", 0.8), _LEAST_WEIGHT)}
    if kind == "merged_entity":
        told = {"merged_at": to_text(now), **told}
    if kind == "distinct_entity":
        told = {"decided_at": to_text(now), **told}
    if kind == "link":
        told = {"method": "stated", "created_at": to_text(now), **told}
    return Said(kind, told)


def redacted(said: Said, rules: Privacy) -> Said:
    """The same without what is not stored here. Keys of memories are as they are."""
    return said if said.kind in _KEYS else replace(said, row=Redaction(rules).tree(said.row))


def take(persona: Persona, lines: Sequence[Said], now: datetime, foreseen: Foreseen | None) -> list[bool | InvalidInput]:
    """Puts the lines down in one commit, or in a dry run takes it back. For each: whether it said anything new, or why it can't be
    stored."""

    def work(connection: apsw.Connection) -> list[bool | InvalidInput]:
        arrivals = GraphImport(connection, now)
        taken = [_taken(connection, arrivals, one, now, foreseen) for one in lines]
        arrivals.settle()
        if foreseen:
            raise _Undone(taken)
        return taken

    if not lines:
        return []
    try:
        return persona.database.write(work)
    except _Undone as done:
        return done.taken


def before(persona: Persona, *, deleted: bool, secret: bool) -> Iterator[str]:
    """The types of somebody's own, and the entities of which something was said by hand."""
    with persona.database.read() as connection:
        rows = [*graph_export.type_rows(connection), *graph_export.entity_rows(connection, deleted, secret)]
    yield from map(_line, rows)


def after(persona: Persona, *, deleted: bool, secret: bool) -> Iterator[str]:
    """What was said of entities and memories that stand before."""
    with persona.database.read() as connection:
        rows = list(graph_export.stated_rows(connection, deleted, secret))
    yield from map(_line, rows)


class _Undone(Exception):
    """Takes back what a dry run did, and tells what it was."""

    def __init__(self, taken: list[bool | InvalidInput]) -> None:
        self.taken = taken


def _taken(connection: apsw.Connection, arrivals: GraphImport, said: Said, now: datetime, foreseen: Foreseen | None) -> bool | InvalidInput:
    of_memories = [said.row[name] for name in _KEYS.get(said.kind, ())]
    if foreseen and any(map(foreseen.would_store, of_memories)):
        return True
    try:
        return _merge_memory(connection, said.row, now) if said.kind == MERGED_MEMORY else arrivals.take(said.kind, said.row)
    except InvalidInput as error:
        return error


def _merge_memory(connection: apsw.Connection, row: Mapping[str, Any], now: datetime) -> bool:
    """A memory that was merged lies in the trash; one that was restored since stands for itself."""
    key, into = row[MERGED_MEMORY], row["into_memory"]
    found = memories.by_keys(connection, [key, into])
    missing = {key, into} - found.keys()
    if missing:
        raise InvalidInput(
            "the merge can't be stored", f"this persona has no memory with the key {min(missing)}", "Import the memories with it"
        )
    if key == into or found[key].deleted_at is None or key in memory_merges.standing(connection, [key]):
        return False
    memory_merges.note(connection, key, into)
    refresh_after_trash(connection, [found[key]], now)
    return True


def _value(name: str, value: Any, zone: ZoneInfo) -> Any:
    if isinstance(value, str):
        return to_text(moment_of(name, value, zone)) if name in _TIMES else _text(name, value)
    if isinstance(value, list):
        if len(value) > ALIASES_LIMIT:
            raise InvalidInput(f"there are {len(value)} {name}", f"{ALIASES_LIMIT} are the limit", "Leave some out")
        return [_text(name, entry) for entry in value]
    if isinstance(value, dict):
        if len(json.dumps(value, ensure_ascii=False)) > TEXT_LIMIT:
            raise InvalidInput(f"{name} is too long", f"{TEXT_LIMIT:,} characters are the limit", "Shorten it")
        return value
    if not isinstance(value, bool) and not 0 <= value <= 1:
        raise InvalidInput(f"{name} is {value}", "it runs from 0 to 1", "Correct it, or leave the field out")
    return value


def _text(name: str, value: str) -> str:
    limit = TEXT_LIMIT if name in _LONG else NAME_LIMIT
    if not value.strip() or len(value) > limit:
        raise InvalidInput(f"{name} is blank or too long", f"{limit:,} characters are the limit", "Shorten it, or leave the field out")
    return storable(value, name)


def _line(row: Mapping[str, Any]) -> str:
    return json.dumps({name: value for name, value in row.items() if value is not None}, ensure_ascii=False)


def _are_namesakes(told: Mapping[str, Any]) -> bool:
    """Whether the two that are called alike are of two types."""
    types = {told.get("source_type"), told.get("target_type")}
    return len(types) == 2 and None not in types
