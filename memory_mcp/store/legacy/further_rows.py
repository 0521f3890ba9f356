"""What another program's database contains besides the memories: entities, mentions, relations, links, earlier versions.

Each row has the fields of a JSON line of its kind, which is named by its first field.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import apsw

from memory_mcp.language.names import NAME_LIMIT
from memory_mcp.store import timestamps
from memory_mcp.store.graph.transfer.graph_import import GraphImport
from memory_mcp.store.legacy import foreign_schemas, row_conversion, row_reading
from memory_mcp.store.legacy.foreign_schemas import Schema

Row = dict[str, Any]
BEFORE_MEMORIES = frozenset({"entity_type", "entity"})
# The fields that are memories.
MEMORY_FIELDS = {"link": ("source", "target"), "mention": ("memory",)}
TEXT_LIMIT, NAMES_LIMIT = 10_000, 100
# A relation of weight 0 would count as absent.
_LEAST_WEIGHT = 0.001
_UUID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_SHARES = frozenset({"weight", "confidence", "importance", "relevance"})
_TIMES = frozenset({"created_at", "updated_at"})
_JSON = {"aliases": list, "attributes": dict, foreign_schemas.CONTEXT: dict}
_LONG = frozenset({"content", "description", "notes"})
_ENDS = {"link": ("source", "target"), "relation": ("source", "target")}


def read(connection: apsw.Connection, schema: Schema) -> Iterator[tuple[str, Row]]:
    """The rows, each with its kind, without empty and unreadable values."""
    present = {f"{table}.{column}" for table, columns in foreign_schemas.columns_of(connection).items() for column in columns}
    for further in schema.further:
        for row in row_reading.rows(connection, further.sql) if present.issuperset(further.needs) else ():
            fields = {name: _value(name, value, schema) for name, value in row.items()}
            yield further.kind, {name: value for name, value in fields.items() if value not in (None, "", [], {})}


def context(connection: apsw.Connection) -> Row:
    """The fields of persona_context.json that another program stored in its database."""
    schema = foreign_schemas.schema_of(connection)
    if schema is None:
        return {}
    rows = read(connection, replace(schema, further=[further for further in schema.further if further.kind == foreign_schemas.CONTEXT]))
    return {name: value for _, row in rows for name, value in row.get(foreign_schemas.CONTEXT, {}).items()}


def with_keys(kind: str, row: Row, keys: Mapping[str, str]) -> Row | None:
    """The row with the keys of its memories; None if one of them wasn't taken over."""
    names = MEMORY_FIELDS.get(kind, ())
    known = {name: keys[str(row.get(name))] for name in names if str(row.get(name)) in keys}
    return {**row, **known} if len(known) == len(names) else None


def adopt(connection: apsw.Connection, rows: Sequence[tuple[str, Row]], keys: Mapping[str, str], now: datetime) -> list[str]:
    """Stores rows of the graph, whose memories have these `keys` now. Returns the names of those that can't be stored."""
    if not rows:
        return []
    graph = GraphImport(connection, now)
    refused: list[str] = []
    for kind, row in rows:
        if kind == foreign_schemas.CONTEXT:
            continue  # it belongs to a file, see `context`
        keyed = with_keys(kind, row, keys)
        if keyed and _is_valid(kind, keyed):
            graph.add(kind, {**_defaults(kind, now), **keyed})
        else:
            refused.append(f"{kind} {row.get(kind, '')}".strip())
    graph.finish()
    return refused


def _value(name: str, value: Any, schema: Schema) -> Any:
    if name in _TIMES:
        return timestamps.optional_to_text(row_conversion.moment(value, schema.zone))
    if name in _SHARES:
        return min(1.0, max(_LEAST_WEIGHT if name == "weight" else 0.0, float(value))) if isinstance(value, int | float) else None
    if name in _JSON:
        read = row_reading.parsed(value, _JSON[name])
        if not isinstance(read, list):
            return read
        return [entry for entry in read if isinstance(entry, str) and 0 < len(entry.strip()) <= NAME_LIMIT][:NAMES_LIMIT]
    if isinstance(value, bytes | row_reading.TooLong) or (name == "entity_id" and not _UUID.fullmatch(str(value))):
        return None
    return value.strip() if isinstance(value, str) and name not in _LONG else value


def _is_valid(kind: str, row: Row) -> bool:
    ends = [row.get(name) for name in _ENDS.get(kind, ())]
    names = [row.get(kind), *ends, *([row.get("memory")] if kind == "mention" else [])]
    fits = all(len(value) <= (TEXT_LIMIT if name in _LONG else NAME_LIMIT) for name, value in row.items() if isinstance(value, str))
    return all(isinstance(name, str) for name in names) and len(set(ends)) == len(ends) and fits


def _defaults(kind: str, now: datetime) -> Row:
    """The values that a JSON line of this kind has if it doesn't name them."""
    stated = {"method": "stated", "created_at": timestamps.to_text(now)}
    relation: Row = {**stated, "weight": 0.8, "confidence": 1.0, "validation_status": "unvalidated"}
    return relation if kind == "relation" else stated if kind in MEMORY_FIELDS else {}
