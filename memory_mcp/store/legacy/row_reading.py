"""Reads rows of any table or query, whatever their text is: SQLite doesn't validate its encoding, and a value may be as long as the file.

The limit of the connection on the length of a value holds (foreign_limits.py): a longer value is not read.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import apsw
import apsw.ext

_ENCODINGS = {"UTF-8": "utf-8", "UTF-16le": "utf-16-le", "UTF-16be": "utf-16-be"}


class Undecodable(bytes):
    """Bytes stored as text that aren't valid in the encoding of the file."""


@dataclass(frozen=True, slots=True)
class TooLong:
    """Stands for a value that was not read, because it has more than `limit_bytes`."""

    limit_bytes: int


def quoted(name: str) -> str:
    """A name as a quoted SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def rows(connection: apsw.Connection, query: str) -> Iterator[dict[str, Any]]:
    """The rows of a query in its order, by column."""
    names = _names(connection, query)
    read = _Reader(connection)
    yield from (read.row(names, row) for row in connection.execute(f"SELECT {read.selected(names)} FROM ({query})"))


def table_rows(connection: apsw.Connection, table: str) -> Iterator[dict[str, Any]]:
    """The rows of a table with rowids, in their order. Of a row with a computed value that is too long, only that is yielded."""
    names = _names(connection, f"SELECT * FROM {quoted(table)}")
    read = _Reader(connection)
    query = f"SELECT rowid, {read.selected(names)} FROM {quoted(table)} {{}} ORDER BY rowid"
    following, last = query.format(""), None
    while True:
        try:
            for rowid, *row in connection.execute(following, () if last is None else (last,)):
                last = rowid
                yield read.row(names, row)
        except apsw.TooBigError:
            condition, values = ("", ()) if last is None else ("WHERE rowid > ?", (last,))
            last = connection.execute(f"SELECT min(rowid) FROM {quoted(table)} {condition}", values).get
            yield {"": TooLong(read.limit_bytes)}
            following = query.format("WHERE rowid > ?")
        else:
            return


def too_long(row: Mapping[str, Any]) -> str | None:
    """Why a row is refused that has a value which was not read; None if all of it was."""
    unread = next(((name, value) for name, value in row.items() if isinstance(value, TooLong)), None)
    if unread is None:
        return None
    name, value = unread
    return f"{f'Its {name}' if name else 'One of its values'} has more than {value.limit_bytes:,} bytes."


def _names(connection: apsw.Connection, query: str) -> list[str]:
    return [name for name, _ in apsw.ext.query_info(connection, query).description]


class _Reader:
    """Reads values of one connection, with its encoding and its limit on their length."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._encoding = _ENCODINGS[connection.pragma("encoding")]
        self.limit_bytes = connection.limit(apsw.SQLITE_LIMIT_LENGTH)

    def selected(self, names: list[str]) -> str:
        """Two results for each column: its type, and its value unless that is too long, of which SQLite then reads no more than the length."""
        return ", ".join(
            f"iif(octet_length({q}) > {self.limit_bytes}, 'too long', typeof({q})), "
            f"CASE WHEN octet_length({q}) > {self.limit_bytes} THEN NULL WHEN typeof({q}) = 'text' THEN CAST({q} AS BLOB) ELSE {q} END"
            for q in map(quoted, names)
        )

    def row(self, names: list[str], row: Any) -> dict[str, Any]:
        return {name: self._value(row[2 * index], row[2 * index + 1]) for index, name in enumerate(names)}

    def _value(self, kind: str, value: Any) -> Any:
        return TooLong(self.limit_bytes) if kind == "too long" else _value(kind, value, self._encoding)


def _value(kind: str, value: Any, encoding: str) -> Any:
    if kind != "text":
        return value
    try:
        return bytes(value).decode(encoding)
    except UnicodeDecodeError:
        return Undecodable(value)
