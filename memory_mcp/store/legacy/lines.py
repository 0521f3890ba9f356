"""Reads a database of memories, of this or of another program, as the lines of an import. The file isn't touched."""

import io
import json
import pickle
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import apsw

from memory_mcp.errors import InvalidInput
from memory_mcp.store import migrations
from memory_mcp.store.legacy import foreign_schemas, further_rows, original_files, row_conversion, row_reading, table_adoption
from memory_mcp.store.legacy.foreign_limits import STEPS_LIMIT, distrust
from memory_mcp.store.legacy.foreign_schemas import Schema
from memory_mcp.store.legacy.row_reading import quoted

_INTERNAL_COLUMNS = ("id", "write_digest", "micro_summary")
_OPTIONAL_COLUMNS = ("category", "privacy_level", "expires_at")
_JSON_COLUMNS = ("tags", "state", "questions", "metadata")

Line = dict[str, Any]


def owners(path: Path) -> tuple[str, ...]:
    """The owners of a database's memories, if it names them; empty for a file that can't be read."""
    try:
        with original_files.unchanged(path) as connection:
            distrust(connection)
            return foreign_schemas.recognize(connection, path.name).owners
    except (apsw.Error, UnicodeDecodeError):
        return ()


def read(path: Path, owner: str | None = None, steps: int = STEPS_LIMIT) -> Iterator[tuple[str, Line | str | int]]:
    """Yield the name of each row and its line, or why it has none; of one `owner` if it is given. Entities come first, then memories, then
    what refers to them, and last the names of the tables that aren't read, with the number of their rows.

    Raises:
        InvalidInput: no table is known to contain memories, or the database is damaged; lines returned before are valid.
    """
    try:
        with original_files.unchanged(path) as connection:
            distrust(connection, steps=steps)
            recognized = foreign_schemas.recognize(connection, path.name)
            if recognized.schema is None:
                unknown = recognized.refusal
                raise (
                    InvalidInput(unknown.what, unknown.why, unknown.do)
                    if unknown
                    else InvalidInput("{} contains no table", "", "", path.name)
                )
            register(connection)
            if owner is not None:
                _restrict(connection, recognized.schema, owner)
            yield from _lines(connection, recognized.schema)
            yield from _unread(connection, recognized.schema)
    except apsw.InterruptError as error:
        raise InvalidInput(
            "{} can't be read", "its tables take too long to read", "Copy its memories into a plain table", path.name
        ) from error
    except (apsw.Error, UnicodeDecodeError) as error:
        raise InvalidInput("{} can't be read", "{}", "Run `PRAGMA integrity_check` on a copy of it", path.name, error) from error


def _lines(connection: apsw.Connection, schema: Schema) -> Iterator[tuple[str, Line | str]]:
    yield from ((f"{kind} {row.get(kind)}", row) for kind, row in _further(connection, schema, before_memories=True))
    keys: dict[str, str] = {}
    now, taken = datetime.now(UTC), set[str]()
    for number, row in enumerate(table_adoption.rows(connection, schema.table, schema), start=1):
        name, identity = table_adoption.name_of(row, schema, number), table_adoption.identity_of(row, schema)
        if problem := row_reading.too_long(row):
            yield name, problem
            continue
        # In our own files, drop columns that are meaningful only there or are recomputed.
        for column in _INTERNAL_COLUMNS if "write_digest" in row else ():
            row.pop(column, None)
        values = row_conversion.convert(row, taken, number, now, _OPTIONAL_COLUMNS, schema).values
        if not values["content"].strip():
            yield name, "It has no text."
            continue
        taken.add(values["key"])
        keys[identity] = values["key"]
        yield (
            name,
            {column: json.loads(value) if column in _JSON_COLUMNS else value for column, value in values.items() if value is not None},
        )
    for kind, row in _further(connection, schema, before_memories=False):
        yield f"{kind} {row.get(kind)}", further_rows.with_keys(kind, row, keys) or "Its memory has no text, or is not there."


def _further(connection: apsw.Connection, schema: Schema, *, before_memories: bool) -> Iterator[tuple[str, Line]]:
    """The further rows that come before the memories, or those after them. They are not kept meanwhile: there may be any number."""
    chosen = [further for further in schema.further if (further.kind in further_rows.BEFORE_MEMORIES) == before_memories]
    return further_rows.read(connection, replace(schema, further=chosen))


def _unread(connection: apsw.Connection, schema: Schema) -> Iterator[tuple[str, int]]:
    """The tables of another program that are left out."""
    if migrations.is_migrated(connection):
        return  # in a database of ours, the further tables are derived from the memories
    tables = foreign_schemas.columns_of(connection)
    used = {schema.table, *(column.partition(".")[0] for further in schema.further for column in further.needs)}
    for table in tables.keys() - used - schema.unread:
        if count := connection.execute(f"SELECT count(*) FROM {quoted(table)}").get:
            yield f"table {table}", int(count)


def _restrict(connection: apsw.Connection, schema: Schema, owner: str) -> None:
    """Let every query see the rows of one owner only: temporary views hide the tables that have owners."""
    for table, columns in foreign_schemas.columns_of(connection).items():
        if schema.owner in columns:
            name, literal = quoted(table), apsw.format_sql_value(owner)
            connection.execute(f"CREATE TEMP VIEW {name} AS SELECT * FROM main.{name} WHERE {quoted(schema.owner)} = {literal}")


# The points of a local Qdrant store are pickles: they are read without running anything that they name.
POINT_LIMIT_BYTES = 16 * 1024 * 1024


class _Inert:
    """Replaces any class or function that a pickle names, and ignores its arguments."""

    def __init__(self, *_arguments: object, **_named: object) -> None:
        self.state: object = None

    def __setstate__(self, state: object) -> None:
        self.state = state


class _Reader(pickle.Unpickler):
    def find_class(self, _module: str, _name: str) -> Any:
        return _Inert


def register(connection: apsw.Connection) -> None:
    """Give a connection the SQL function `payload(point)`: the id and the payload of a point as JSON; NULL for anything else."""
    connection.create_scalar_function("payload", _payload, 1, deterministic=True)


def _payload(*values: Any) -> str | None:
    (point,) = values
    if not isinstance(point, bytes) or len(point) > POINT_LIMIT_BYTES:
        return None
    try:
        read = _Reader(io.BytesIO(point)).load()
        state = read.state if isinstance(read, _Inert) else None
        fields = state["__dict__"] if isinstance(state, dict) else {}
        known = isinstance(fields.get("payload"), dict)
        return json.dumps({"id": str(fields["id"]), "payload": fields["payload"]}, ensure_ascii=False, default=str) if known else None
    except Exception:  # noqa: BLE001  a broken pickle can fail in any way; its row is refused by its name
        return None
