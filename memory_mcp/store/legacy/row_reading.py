"""Reads rows of any table or query, whatever their text is: SQLite doesn't validate its encoding."""

from collections.abc import Iterator
from typing import Any

import apsw
import apsw.ext

_ENCODINGS = {"UTF-8": "utf-8", "UTF-16le": "utf-16-le", "UTF-16be": "utf-16-be"}


class Undecodable(bytes):
    """Bytes stored as text that aren't valid in the encoding of the file."""


def quoted(name: str) -> str:
    """A name as a quoted SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def rows(connection: apsw.Connection, query: str) -> Iterator[dict[str, Any]]:
    """The rows of a query in its order, by column."""
    names = [name for name, _ in apsw.ext.query_info(connection, query).description]
    encoding = _ENCODINGS[connection.pragma("encoding")]
    selected = ", ".join(f"typeof({q}), iif(typeof({q}) = 'text', CAST({q} AS BLOB), {q})" for q in map(quoted, names))
    for row in connection.execute(f"SELECT {selected} FROM ({query})"):
        yield {name: _value(row[2 * index], row[2 * index + 1], encoding) for index, name in enumerate(names)}


def _value(kind: str, value: Any, encoding: str) -> Any:
    if kind != "text":
        return value
    try:
        return bytes(value).decode(encoding)
    except UnicodeDecodeError:
        return Undecodable(value)
