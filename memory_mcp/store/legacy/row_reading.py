"""Reads rows of any table or query, whatever their text is: SQLite doesn't validate its encoding, and a value may be as long as the file.

The limit of the connection on the length of a value holds (foreign_limits.py): a longer value is not read.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import apsw
import apsw.ext

_ENCODINGS = {"UTF-8": "utf-8", "UTF-16le": "utf-16-le", "UTF-16be": "utf-16-be"}


# A row has no more than so many values as long as a value may be: a table may have a thousand columns.
_LONGEST_VALUES = 16
_COMPUTED = (
    "SELECT 1 FROM pragma_table_list t JOIN pragma_table_xinfo(t.name) c "
    "WHERE t.schema = 'main' AND t.type = 'table' AND c.hidden = 2 LIMIT 1"
)


class Undecodable(bytes):
    """Bytes stored as text that aren't valid in the encoding of the file."""


@dataclass(frozen=True, slots=True)
class TooLong:
    """Stands for a value that was not read, because it has more than `limit_bytes`."""

    limit_bytes: int


def quoted(name: str) -> str:
    """A name as a quoted SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def parsed(value: object, type_: type, **options: Any) -> Any:
    """The JSON value of this type in a text; None if it holds no such value."""
    try:
        read = json.loads(value, **options) if isinstance(value, str) else None
    except (ValueError, RecursionError):
        return None
    return read if isinstance(read, type_) else None


def rows(connection: apsw.Connection, query: str) -> Iterator[dict[str, Any]]:
    """The rows of a query in its order, by column."""
    with _reader(connection, query) as read:
        yield from (read.row(row) for row in connection.execute(f"SELECT {read.selected} FROM ({query})"))


def table_rows(connection: apsw.Connection, table: str) -> Iterator[dict[str, Any]]:
    """The rows of a table with rowids, in their order. Of a row with a computed value that is too long, only that is yielded."""
    with _reader(connection, f"SELECT * FROM {quoted(table)}") as read:
        condition, values = "", tuple[Any, ...]()
        while True:
            try:
                for rowid, *row in connection.execute(
                    f"SELECT rowid, {read.selected} FROM {quoted(table)} {condition} ORDER BY rowid", values
                ):
                    condition, values = "WHERE rowid > ?", (rowid,)
                    yield read.row(row)
            except apsw.TooBigError:
                failed = connection.execute(f"SELECT min(rowid) FROM {quoted(table)} {condition}", values).get
                if failed is None:
                    raise
                condition, values = "WHERE rowid > ?", (failed,)
                yield {"": TooLong(read.limit_bytes)}
            else:
                return


def too_long(row: Mapping[str, Any]) -> str | None:
    """Why a row is refused that has a value which was not read; None if all of it was."""
    unread = next(((name, value) for name, value in row.items() if isinstance(value, TooLong)), None)
    if unread is None:
        return None
    name, value = unread
    return f"{f'Its {name}' if name else 'One of its values'} has more than {value.limit_bytes:,} bytes."


@contextmanager
def _reader(connection: apsw.Connection, query: str) -> Iterator["_Reader"]:
    """What reads the rows of a query. Computed values, whose length is known only afterwards, are meanwhile no longer than the others."""
    names = [name for name, _ in apsw.ext.query_info(connection, query).description]
    limit = connection.limit(apsw.SQLITE_LIMIT_LENGTH)
    read = _Reader(names, _ENCODINGS[connection.pragma("encoding")], min(limit, limit * _LONGEST_VALUES // max(len(names), 1)))
    if connection.execute(_COMPUTED).get is not None:
        connection.limit(apsw.SQLITE_LIMIT_LENGTH, read.limit_bytes)
    try:
        yield read
    finally:
        connection.limit(apsw.SQLITE_LIMIT_LENGTH, limit)


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads rows with these columns: what to select, and the values in what was selected."""

    names: list[str]
    encoding: str
    limit_bytes: int

    @property
    def selected(self) -> str:
        """Two results for each column: its type, and its value unless that is too long, of which SQLite then reads no more than the
        length.
        """
        return ", ".join(
            f"iif(octet_length({q}) > {self.limit_bytes}, 'too long', typeof({q})), "
            f"CASE WHEN octet_length({q}) > {self.limit_bytes} THEN NULL WHEN typeof({q}) = 'text' THEN CAST({q} AS BLOB) ELSE {q} END"
            for q in map(quoted, self.names)
        )

    def row(self, row: Any) -> dict[str, Any]:
        return {name: self._value(row[2 * index], row[2 * index + 1]) for index, name in enumerate(self.names)}

    def _value(self, kind: str, value: Any) -> Any:
        return TooLong(self.limit_bytes) if kind == "too long" else _value(kind, value, self.encoding)


def _value(kind: str, value: Any, encoding: str) -> Any:
    if kind != "text":
        return value
    try:
        return bytes(value).decode(encoding)
    except UnicodeDecodeError:
        return Undecodable(value)
