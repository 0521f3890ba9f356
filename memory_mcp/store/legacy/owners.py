"""A database with the memories of several owners: copies the rows of each into a database of its own."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

from memory_mcp.store.legacy import foreign_limits, schemas
from memory_mcp.store.legacy.row_reading import quoted
from memory_mcp.store.legacy.schemas import Schema
from memory_mcp.store.sqlite.errors import translated_errors


def copy_rows(source: Path, schema: Schema, owner: str, target: Path) -> None:
    """Write a new database with the tables that have owners, and the owner's rows in them. `source` must be closed and isn't changed.

    Raises:
        StoreError: it can't be read or written.
    """
    with translated_errors(target), _both(source, target) as (there, here):
        for table, columns in schemas.columns_of(there).items():
            name = quoted(table)
            if schema.owner in columns:
                condition = f"WHERE {quoted(schema.owner)} IS ?"
                here.execute(f"CREATE TABLE {name} AS SELECT * FROM source.{name} {condition}", (owner,))
            elif table in schema.shared:
                here.execute(f"CREATE TABLE {name} AS SELECT * FROM source.{name}")


@contextmanager
def _both(source: Path, target: Path) -> Iterator[tuple[apsw.Connection, apsw.Connection]]:
    location = f"{source.absolute().as_uri()}?immutable=1"
    there = apsw.Connection(location, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
    here = apsw.Connection(str(target), flags=apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE | apsw.SQLITE_OPEN_URI)
    try:
        here.pragma("synchronous", "FULL")
        here.pragma("encoding", there.pragma("encoding"))
        here.limit(apsw.SQLITE_LIMIT_LENGTH, foreign_limits.OWN_VALUE_LIMIT_BYTES)
        here.execute("ATTACH ? AS source", (location,))
        yield there, here
    finally:
        here.close()
        there.close()
