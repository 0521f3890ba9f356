"""Foreign tables in a persona's database, such as those of an older server: search them and erase quotations of erased memories."""

import json
import logging
from collections.abc import Iterator, Sequence

import apsw

from memory_mcp.store import migrations
from memory_mcp.store.legacy.row_reading import quoted

logger = logging.getLogger(__name__)


def spellings(text: str) -> set[str]:
    """The forms in which a table may contain a text: literally, or inside JSON, with or without escaped characters."""
    return {text, json.dumps(text, ensure_ascii=False)[1:-1], json.dumps(text)[1:-1]}


def erase(connection: apsw.Connection, keys: Sequence[str], texts: Sequence[str]) -> list[str]:
    """Delete rows that contain one of these keys or texts. Returns the tables that couldn't be searched."""
    unsearched: list[str] = []
    for name, kind, sql in _foreign(connection):
        try:
            if kind == "virtual" and "fts5" not in sql.lower():
                raise apsw.SQLError("a virtual table of an unknown kind")
            condition, values = _condition(connection, name, keys, texts)
            if condition:
                connection.execute(f"DELETE FROM {quoted(name)} WHERE {condition}", values)
            if kind == "virtual":
                command = "rebuild" if "content=" in sql.replace(" ", "").lower() else "optimize"
                connection.execute(f"INSERT INTO {quoted(name)}({quoted(name)}) VALUES (?)", (command,))
        except apsw.Error as error:
            if not connection.in_transaction:
                raise
            logger.warning("the foreign table %s can't be searched for erased content: %s", name, type(error).__name__)
            unsearched.append(name)
    return unsearched


def contain_any(connection: apsw.Connection, keys: Sequence[str], texts: Sequence[str]) -> bool:
    """Whether any table of an older server's database contains one of these keys or texts."""
    for (table,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table' AND rootpage > 0").fetchall():
        name = str(table)
        condition, values = _condition(connection, name, keys, texts)
        if condition and connection.execute(f"SELECT 1 FROM {quoted(name)} WHERE {condition} LIMIT 1", values).get is not None:
            return True
    return False


def _condition(connection: apsw.Connection, name: str, keys: Sequence[str], texts: Sequence[str]) -> tuple[str, dict[str, str]]:
    """An SQL condition and its values. Bytes are compared, so that texts inside blobs match too."""
    columns = [row[0] for row in connection.execute("SELECT name FROM pragma_table_info(?)", (name,))]
    parts = [
        f"EXISTS (SELECT 1 FROM json_each(:texts) t WHERE instr(CAST({quoted(column)} AS BLOB), CAST(t.value AS BLOB)))"
        for column in columns
    ]
    parts += [f"{quoted(column)} IN (SELECT value FROM json_each(:keys))" for column in columns if "key" in column.lower()]
    values = {"texts": json.dumps([spelling for text in texts for spelling in spellings(text)]), "keys": json.dumps(list(keys))}
    return " OR ".join(parts), values


def _foreign(connection: apsw.Connection) -> Iterator[tuple[str, str, str]]:
    """(name, kind, definition) of each table that no migration creates."""
    tables = connection.execute(
        "SELECT t.name, t.type, coalesce(s.sql, '') FROM pragma_table_list t JOIN sqlite_schema s ON s.name = t.name AND s.type = 'table' "
        "WHERE t.schema = 'main' AND t.type IN ('table', 'virtual') AND t.name NOT LIKE 'sqlite\\_%' ESCAPE '\\' "
        "ORDER BY t.type = 'virtual', t.name"  # virtual tables last: an index over another table is rebuilt after that table lost its rows
    ).fetchall()
    known = migrations.our_tables() if tables else set()
    yield from ((str(name), str(kind), str(sql)) for name, kind, sql in tables if str(name).lower() not in known)
