"""The tables of memories that are known by their columns. Whatever else a database contains is left as it is: a guess would lose its text."""

from collections.abc import Mapping
from dataclasses import dataclass

import apsw

from memory_mcp.errors import StoreError

TABLES_LISTED, COLUMNS_LISTED = 5, 30


@dataclass(frozen=True, slots=True)
class Schema:
    """A table of memories: a program that writes it, its name, and the column that contains the text."""

    program: str
    table: str
    text: str


# The first one that fits is taken.
SCHEMAS = (Schema("Memory MCP", "memories", "content"),)


def schema_of(connection: apsw.Connection) -> Schema | None:
    """The schema of the memories in a database; None if no table is known to contain any."""
    found = columns_of(connection)
    return next((schema for schema in SCHEMAS if schema.text in found.get(schema.table, ())), None)


def columns_of(connection: apsw.Connection) -> Mapping[str, list[str]]:
    """The columns of each ordinary table, by its name, both in lowercase."""
    rows = connection.execute(
        "SELECT lower(t.name), lower(c.name) FROM pragma_table_list t JOIN pragma_table_xinfo(t.name) c "
        "WHERE t.schema = 'main' AND t.type = 'table' AND t.name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY t.name, c.cid"
    )
    tables: dict[str, list[str]] = {}
    for table, column in rows:
        tables.setdefault(table, []).append(column)
    return tables


def refusal(connection: apsw.Connection, file_name: str) -> StoreError | None:
    """Why the memories of a database can't be read: None if its schema is known, or if it has no table at all."""
    found = columns_of(connection)
    if not found or schema_of(connection):
        return None
    chosen = {"memories": found["memories"]} if "memories" in found else dict(list(found.items())[:TABLES_LISTED])
    listed = "; ".join(f"{table} ({', '.join(columns[:COLUMNS_LISTED])})" for table, columns in chosen.items())
    return StoreError(
        f"{file_name} is left unread and unchanged",
        f"no column of it is known to contain the text of memories, among {listed}",
        "In a copy, rename the column with the text to `content`, and its table to `memories`",
    )
