"""Many small rows in one step.

SQLite hands rows over one by one, and around each the thread lets go of the interpreter. With forty threads that all want it,
a recall that reads five hundred ids waits five hundred times. As one JSON text they come in one step.
"""

import json
from collections.abc import Sequence
from typing import Any

import apsw


def packed(connection: apsw.Connection, columns: str, query: str, values: Sequence[Any] | dict[str, Any] = ()) -> list[list[Any]]:
    """The rows of `query` in its order, as lists of these columns. For numbers and short texts, not for contents."""
    # Materialized, because bm25() works only where its table is searched.
    sql = f"WITH found AS MATERIALIZED ({query}) SELECT json_group_array(json_array({columns})) FROM found"
    text = connection.execute(sql, values if isinstance(values, dict) else tuple(values)).get
    rows: list[list[Any]] = json.loads(text)
    return rows


def count(connection: apsw.Connection, table: str) -> int:
    """How many rows a table of ours has."""
    return int(connection.execute(f'SELECT count(*) FROM "{table}"').get)
