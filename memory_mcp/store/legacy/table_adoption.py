"""Tables of an older server in a persona's file: room is made for ours, and its memories are taken over into ours.

Tables with a name that we need are renamed `legacy_…`, all others are left as they are. The older `memories` are not kept as
a second table: each value is in a column of ours or under the memory's `metadata.legacy`, so that erasing a memory erases it.
"""

import json
import logging
import shutil
import tempfile
from collections.abc import Collection, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import apsw

from memory_mcp.domain import Draft
from memory_mcp.errors import InvalidInput, StoreError
from memory_mcp.store import timestamps
from memory_mcp.store.legacy import original_files, row_conversion
from memory_mcp.store.legacy.row_conversion import Undecodable
from memory_mcp.store.memories import write_digest
from memory_mcp.text.micro_summary import micro_summary

MEMORIES = "memories"
PREFIX = "legacy_"
# So many memories without a usable time are named one by one; further ones are only counted.
UNDATED_NAMED = 5
_ENCODINGS = {"UTF-8": "utf-8", "UTF-16le": "utf-16-le", "UTF-16be": "utf-16-be"}

_OURS_ALONE = ("id", "write_digest", "micro_summary")
_FURTHER = ("category", "privacy_level")
_AS_JSON = ("tags", "state", "questions", "metadata")

logger = logging.getLogger(__name__)


def tables(connection: apsw.Connection) -> list[str]:
    """The tables of a file, by their names in small letters; SQLite's own and the parts of virtual ones left out."""
    found = connection.execute("SELECT lower(name) FROM pragma_table_list WHERE schema = 'main' AND type IN ('table', 'virtual')")
    return [name for (name,) in found if not name.startswith("sqlite_")]


def make_room(connection: apsw.Connection, needed: Collection[str]) -> dict[str, str]:
    """Renames what stands where these tables will be. Returns the new names by the old ones.

    Raises:
        StoreError: something with such a name can't be renamed.
    """
    renamed: dict[str, str] = {}
    for name in tables(connection):
        if name in needed and not (name == "operations" and _is_our_operations(connection)):
            renamed[name] = _unused(connection, PREFIX + name)
            _rename(connection, name, renamed[name])
    return renamed


def drop_views_and_triggers(connection: apsw.Connection) -> list[str]:
    """Drops every view and trigger: they would break with the older memories, and broken ones stop all later changes of the schema.

    Returns their definitions.
    """
    found = connection.execute("SELECT type, name, sql FROM sqlite_schema WHERE type IN ('view', 'trigger') ORDER BY type, name").fetchall()
    for kind, name, _ in found:
        connection.execute(f"DROP {kind} IF EXISTS {_quoted(str(name))}")
    return [str(sql) for _, _, sql in found]


def take_over(connection: apsw.Connection, table: str, *, ours: bool = False) -> int:
    """Moves every row of an older table of memories into `memories`, and drops the older table. Returns how many there were.

    `ours`: the table was ours, with further columns: its rows keep their ids, and with them their chunks and vectors.
    """
    columns = [row[0] for row in connection.execute("SELECT name FROM pragma_table_info(?)", (MEMORIES,))]
    sql = f"INSERT INTO memories({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"
    taken: set[str] = set()
    undated: list[str] = []
    now = datetime.now(UTC)
    for place, row in enumerate(rows(connection, table), start=1):
        kept = {"id": row.pop("id"), "write_digest": row.pop("write_digest")} if ours else {"id": place}
        one = row_conversion.adopted(row, taken, place, now, columns)
        values = {"write_digest": _digest(one.values), "micro_summary": micro_summary(one.values["content"]), **one.values, **kept}
        taken.add(values["key"])
        undated += [] if one.dated else [values["key"]]
        connection.execute(sql, [values.get(column) for column in columns])
    connection.execute(f"DROP TABLE {_quoted(table)}")
    if undated:
        named = ", ".join(undated[:UNDATED_NAMED])
        further = f" and {len(undated) - UNDATED_NAMED:,} more" if len(undated) > UNDATED_NAMED else ""
        logger.warning("no usable time in the older store for %s%s: %s is taken instead", named, further, timestamps.to_text(now))
    if not ours:
        _await_vectors(connection)
    return len(taken)


def _await_vectors(connection: apsw.Connection) -> None:
    connection.execute(
        'INSERT INTO chunks(memory_id, start, "end") SELECT id, 0, length(content) FROM memories ORDER BY id;'
        'INSERT INTO chunks(memory_id, start, "end", question) SELECT m.id, 0, 0, q.value FROM memories m, json_each(m.questions) q '
        "WHERE m.questions IS NOT NULL ORDER BY m.id, q.key;"
        "INSERT INTO index_queue(memory_id) SELECT id FROM memories ORDER BY id"
    )


def rows(connection: apsw.Connection, table: str) -> Iterator[dict[str, Any]]:
    """The rows in their order, by column. Text is read as bytes: SQLite does not check that it is text."""
    names = [row[0] for row in connection.execute("SELECT name FROM pragma_table_xinfo(?) WHERE hidden <> 1", (table,))]
    encoding = _ENCODINGS[connection.pragma("encoding")]
    selected = ", ".join(f"typeof({q}), iif(typeof({q}) = 'text', CAST({q} AS BLOB), {q})" for q in map(_quoted, names))
    without_rowid = connection.execute("SELECT wr FROM pragma_table_list WHERE schema = 'main' AND name = ?", (table,)).get
    order = "" if without_rowid else "ORDER BY rowid"
    for row in connection.execute(f"SELECT {selected} FROM {_quoted(table)} {order}"):
        yield {name: _value(row[2 * place], row[2 * place + 1], encoding) for place, name in enumerate(names)}


def _value(kind: str, value: Any, encoding: str) -> Any:
    if kind != "text":
        return value
    try:
        return bytes(value).decode(encoding)
    except UnicodeDecodeError:
        return Undecodable(value)


def _digest(values: Mapping[str, Any]) -> str:
    return write_digest(
        Draft(
            content=values["content"],
            source=values["source"],
            session_id=values["session_id"],
            occurred_at=timestamps.optional_from_text(values["occurred_at"]),
        )
    )


def _is_our_operations(connection: apsw.Connection) -> bool:
    """Whether an older table of operations can be continued: it has our columns, and asks for nothing beyond them."""
    required = {"timestamp", "operation_id", "operation", "key", "before", "after", "success", "error", "metadata"}
    found = connection.execute('SELECT lower(name), "notnull", dflt_value, pk FROM pragma_table_info(?)', ("operations",)).fetchall()
    demanding = {name for name, not_null, default, pk in found if not_null and default is None and not pk}
    return required <= {name for name, *_ in found} and demanding <= required


def _rename(connection: apsw.Connection, name: str, new_name: str) -> None:
    try:
        connection.execute(f"ALTER TABLE {_quoted(name)} RENAME TO {_quoted(new_name)}")
    except apsw.SQLError as error:  # a virtual table of an extension that is not here
        raise StoreError(
            f"the table {name} of an older server can't be renamed", str(error), "Rename it with that server's SQLite"
        ) from error


def _unused(connection: apsw.Connection, name: str) -> str:
    known = tables(connection)
    return next(found for found in (name, *(f"{name}_{n}" for n in range(2, len(known) + 3))) if found not in known)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def read_memories(path: Path) -> Iterator[dict[str, Any]]:
    """Each row of its table `memories` by the fields of a JSON line, in order. Fields without a value are left out.

    Raises:
        InvalidInput: it holds no such table, or is damaged; what came before was good.
    """
    with tempfile.TemporaryDirectory(prefix="memory-mcp-") as place:
        # With what lies beside it: changes that are not in the file yet.
        for file in (path, *original_files.sidecars(path)):
            shutil.copyfile(file, Path(place, file.name))
        connection = apsw.Connection(str(Path(place, path.name)))
        try:
            if not connection.table_exists(None, MEMORIES):
                raise InvalidInput(f"{path.name} has no table of memories", "", "Choose the database of a memory server")
            now = datetime.now(UTC)
            taken: set[str] = set()
            for number, row in enumerate(rows(connection, MEMORIES), start=1):
                # Of our own files: what means something in its file alone, or is made anew.
                for name in _OURS_ALONE if "write_digest" in row else ():
                    row.pop(name, None)
                values = row_conversion.adopted(row, taken, number, now, _FURTHER).values
                taken.add(values["key"])
                yield {name: json.loads(value) if name in _AS_JSON else value for name, value in values.items() if value is not None}
        except apsw.Error as error:
            raise InvalidInput(f"{path.name} can't be read", str(error), "Run `PRAGMA integrity_check` on a copy of it") from error
        finally:
            connection.close()
