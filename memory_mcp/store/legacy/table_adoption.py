"""Adopts the tables of an older server: renames tables that are in the way, and converts its memories.

Tables whose names we need are renamed `legacy_…`; all others stay. The older `memories` table isn't kept: each value goes into a
column or into the memory's `metadata.legacy`, so that erasing a memory erases everything about it.
"""

import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import apsw

from memory_mcp.domain import Draft
from memory_mcp.errors import StoreError
from memory_mcp.language.sentences import micro_summary
from memory_mcp.store import timestamps
from memory_mcp.store.graph import relation_queue
from memory_mcp.store.legacy import further_rows, row_conversion, row_reading
from memory_mcp.store.legacy.foreign_schemas import OURS, Schema
from memory_mcp.store.legacy.row_reading import TooLong, quoted
from memory_mcp.store.memories import write_digest

MEMORIES = "memories"
PREFIX = "legacy_"
# Up to so many memories without a usable time are listed by key; further ones are only counted.
UNDATED_LISTED = 5
NAME_CHARACTERS = 200


logger = logging.getLogger(__name__)


def tables(connection: apsw.Connection) -> list[str]:
    """The names of a file's tables in lowercase, without SQLite's own and the shadow tables of virtual ones."""
    names = connection.execute("SELECT lower(name) FROM pragma_table_list WHERE schema = 'main' AND type IN ('table', 'virtual')")
    return [name for (name,) in names if not name.startswith("sqlite_")]


def rename_conflicting(connection: apsw.Connection, needed: Collection[str]) -> dict[str, str]:
    """Rename existing tables with one of the `needed` names. Returns old name → new name.

    Raises:
        StoreError: a table can't be renamed.
    """
    renamed: dict[str, str] = {}
    for name in tables(connection):
        if name in needed and not (name == "operations" and _is_our_operations(connection)):
            renamed[name] = _unused(connection, PREFIX + name)
            try:
                connection.execute(f"ALTER TABLE {quoted(name)} RENAME TO {quoted(renamed[name])}")
            except apsw.SQLError as error:  # a virtual table of a missing extension
                raise StoreError(
                    "the table {} of an older server can't be renamed", "{}", "Rename it with that server's SQLite", name, error
                ) from error
    return renamed


def drop_views_and_triggers(connection: apsw.Connection) -> list[str]:
    """Drop every view and trigger, because they may depend on the older memories, and broken ones block all later schema changes.

    Returns their definitions.
    """
    definitions = connection.execute(
        "SELECT type, name, sql FROM sqlite_schema WHERE type IN ('view', 'trigger') ORDER BY type, name"
    ).fetchall()
    for kind, name, _ in definitions:
        connection.execute(f"DROP {kind} IF EXISTS {quoted(str(name))}")
    return [str(sql) for _, _, sql in definitions]


@dataclass(frozen=True, slots=True)
class Converted:
    """The number of memories that can be recalled and of those in the trash, the names of the rows without text, which aren't memories,
    and the names of rows about the graph that can't be stored.
    """

    memories: int = 0
    in_trash: int = 0
    without_text: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()


def convert_memories(
    connection: apsw.Connection,
    table: str,
    schema: Schema = OURS,
    further: Sequence[tuple[str, further_rows.Row]] = (),
) -> Converted:
    """Move every row of an older table of memories into `memories`. Rows without text stay in the older table; without any, it is dropped.

    `further` are rows of the graph, read before the tables were renamed.
    """
    columns = [row[0] for row in connection.execute("SELECT name FROM pragma_table_info(?)", (MEMORIES,))]
    sql = f"INSERT INTO memories({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"
    keys: dict[str, str] = {}
    undated: list[str] = []
    without_text: list[tuple[str, dict[str, Any]]] = []
    now, taken, in_trash = datetime.now(UTC), set[str](), 0
    for number, row in enumerate(rows(connection, table, schema), start=1):
        if problem := row_reading.too_long(row):
            raise StoreError(
                "the older memories can't be taken over", "{}: {}{}", "", name_of(row, schema, number), problem[0].lower(), problem[1:-1]
            )
        identity = identity_of(row, schema)
        converted = row_conversion.convert(row, taken, number, now, columns, schema)
        if not converted.values["content"].strip():
            without_text.append((name_of(row, schema, number), row))
            continue
        said = {name: converted.values[name] for name in ("content", "source", "session_id")}
        draft = Draft(**said, occurred_at=timestamps.optional_from_text(converted.values["occurred_at"]))
        made = {"write_digest": write_digest(draft), "micro_summary": micro_summary(draft.content)}
        values = {**made, **converted.values, "id": number}
        in_trash += values["deleted_at"] is not None
        taken.add(values["key"])
        keys[identity] = values["key"]
        undated += [] if converted.dated else [values["key"]]
        connection.execute(sql, [values.get(column) for column in columns])
    _keep_only(connection, table, [row for _, row in without_text])
    if undated:
        named = ", ".join(undated[:UNDATED_LISTED])
        rest = f" and {len(undated) - UNDATED_LISTED:,} more" if len(undated) > UNDATED_LISTED else ""
        logger.warning("no usable time in the older store for %s%s: %s is taken instead", named, rest, timestamps.to_text(now))
    _queue(connection)
    return Converted(
        len(taken) - in_trash, in_trash, tuple(name for name, _ in without_text), tuple(further_rows.adopt(connection, further, keys, now))
    )


def identity_of(row: Mapping[str, Any], schema: Schema) -> str:
    """The value by which other tables of a program refer to this memory; empty if they can't."""
    return str(_folded(row).get(schema.id or schema.key_column) or "")


def name_of(row: Mapping[str, Any], schema: Schema, number: int) -> str:
    """The name of a row in messages: its key or title, or else its number."""
    folded = _folded(row)
    named = [folded[column] for column in (schema.key_column, "title") if folded.get(column)]
    return next((str(value)[:NAME_CHARACTERS] for value in named if not isinstance(value, TooLong)), f"row {number}")


def _folded(row: Mapping[str, Any]) -> Mapping[str, Any]:
    return {name.casefold(): value for name, value in row.items()}


def _keep_only(connection: apsw.Connection, table: str, kept: Sequence[Mapping[str, Any]]) -> None:
    """Replace a table by one with these rows only; without any, drop it."""
    copied = _unused(connection, table)
    connection.execute(f"CREATE TABLE {quoted(copied)} AS SELECT * FROM {quoted(table)} LIMIT 0; DROP TABLE {quoted(table)}")
    names = [row[0] for row in connection.execute("SELECT name FROM pragma_table_xinfo(?) WHERE hidden <> 1", (copied,))]
    for row in kept:
        connection.execute(f"INSERT INTO {quoted(copied)} VALUES ({', '.join('?' * len(names))})", [row[name] for name in names])
    connection.execute(f"ALTER TABLE {quoted(copied)} RENAME TO {quoted(table)}" if kept else f"DROP TABLE {quoted(copied)}")


def _queue(connection: apsw.Connection) -> None:
    """Queue all memories for their vectors, and to be searched for entities."""
    connection.execute(
        'INSERT INTO chunks(memory_id, start, "end") SELECT id, 0, length(content) FROM memories ORDER BY id;'
        'INSERT INTO chunks(memory_id, start, "end", question) SELECT m.id, 0, 0, q.value FROM memories m, json_each(m.questions) q '
        "WHERE m.questions IS NOT NULL ORDER BY m.id, q.key;"
        "INSERT INTO index_queue(memory_id) SELECT id FROM memories ORDER BY id"
    )
    relation_queue.enqueue_unnamed(connection, [row[0] for row in connection.execute("SELECT id FROM memories")])


def rows(connection: apsw.Connection, table: str, schema: Schema = OURS) -> Iterator[dict[str, Any]]:
    """The rows of a table of memories in order, by column."""
    without_rowid = connection.execute("SELECT wr FROM pragma_table_list WHERE schema = 'main' AND name = ?", (table,)).get
    if schema.select:
        return row_reading.rows(connection, schema.select.format(table=quoted(table)))
    return row_reading.rows(connection, f"SELECT * FROM {quoted(table)}") if without_rowid else row_reading.table_rows(connection, table)


def _is_our_operations(connection: apsw.Connection) -> bool:
    """Whether an existing table of operations can be used on: it has our columns and requires no others."""
    required = {"timestamp", "operation_id", "operation", "key", "before", "after", "success", "error", "metadata"}
    columns = connection.execute('SELECT lower(name), "notnull", dflt_value, pk FROM pragma_table_info(?)', ("operations",)).fetchall()
    demanding = {name for name, not_null, default, pk in columns if not_null and default is None and not pk}
    return required <= {name for name, *_ in columns} and demanding <= required


def _unused(connection: apsw.Connection, name: str) -> str:
    known = tables(connection)
    return next(candidate for candidate in (name, *(f"{name}_{n}" for n in range(2, len(known) + 3))) if candidate not in known)
