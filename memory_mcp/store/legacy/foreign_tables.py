"""Tables in a persona's file that are none of ours, such as those of an older server: finding and erasing what they quote."""

import json
import logging
from collections.abc import Iterator, Sequence

import apsw

from memory_mcp.store import migrations

logger = logging.getLogger(__name__)


def spellings(text: str) -> set[str]:
    """How a text may stand in a table: as it is, or inside JSON, with or without its letters escaped."""
    return {text, json.dumps(text, ensure_ascii=False)[1:-1], json.dumps(text)[1:-1]}


def erase(connection: apsw.Connection, keys: Sequence[str], said: Sequence[str]) -> list[str]:
    """Deletes their rows that name one of these keys or hold one of these texts. Returns the tables that could not be searched."""
    unsearched: list[str] = []
    for name, kind, sql in _foreign(connection):
        try:
            if kind == "virtual" and "fts5" not in sql.lower():
                raise apsw.SQLError("a virtual table of a kind that is not known")
            _delete(connection, name, keys, said)
            if kind == "virtual":
                command = "rebuild" if "content=" in sql.replace(" ", "").lower() else "optimize"
                connection.execute(f"INSERT INTO {_quoted(name)}({_quoted(name)}) VALUES (?)", (command,))
        except apsw.Error as error:
            if not connection.in_transaction:
                raise
            logger.warning("the older table %s can't be searched for what is to be erased: %s", name, type(error).__name__)
            unsearched.append(name)
    return unsearched


def holds(connection: apsw.Connection, keys: Sequence[str], said: Sequence[str]) -> bool:
    """Whether any table of a file of an older server names one of these keys or holds one of these texts."""
    for (found,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table' AND rootpage > 0").fetchall():
        name = str(found)
        condition, values = _condition(connection, name, keys, said)
        if condition and connection.execute(f"SELECT 1 FROM {_quoted(name)} WHERE {condition} LIMIT 1", values).get is not None:
            return True
    return False


def _delete(connection: apsw.Connection, name: str, keys: Sequence[str], said: Sequence[str]) -> None:
    condition, values = _condition(connection, name, keys, said)
    if condition:
        connection.execute(f"DELETE FROM {_quoted(name)} WHERE {condition}", values)


def _condition(connection: apsw.Connection, name: str, keys: Sequence[str], said: Sequence[str]) -> tuple[str, dict[str, str]]:
    """Bytes are compared, so that a text inside a blob is found too."""
    columns = [row[0] for row in connection.execute("SELECT name FROM pragma_table_info(?)", (name,))]
    parts = [
        f"EXISTS (SELECT 1 FROM json_each(:said) t WHERE instr(CAST({_quoted(column)} AS BLOB), CAST(t.value AS BLOB)))"
        for column in columns
    ]
    parts += [f"{_quoted(column)} IN (SELECT value FROM json_each(:keys))" for column in columns if "key" in column.lower()]
    values = {"said": json.dumps([one for text in said for one in spellings(text)]), "keys": json.dumps(list(keys))}
    return " OR ".join(parts), values


def _foreign(connection: apsw.Connection) -> Iterator[tuple[str, str, str]]:
    """(name, kind, definition) of each table that no step of ours makes."""
    found = connection.execute(
        "SELECT t.name, t.type, coalesce(s.sql, '') FROM pragma_table_list t JOIN sqlite_schema s ON s.name = t.name AND s.type = 'table' "
        "WHERE t.schema = 'main' AND t.type IN ('table', 'virtual') AND t.name NOT LIKE 'sqlite\\_%' ESCAPE '\\' "
        "ORDER BY t.type = 'virtual', t.name"  # an index over another table is made anew after that one has lost its rows
    ).fetchall()
    known = migrations.tables_of_ours() if found else set()
    yield from ((str(name), str(kind), str(sql)) for name, kind, sql in found if str(name).lower() not in known)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
