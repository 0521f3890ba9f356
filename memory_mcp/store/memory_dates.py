"""The times that the text of a memory names, derived from it when it is stored: 昨日, 12月1日. What the caller states (`occurred_at`) stays
as it is.
"""

from collections.abc import Iterable

import apsw

from memory_mcp.domain import TimeRange
from memory_mcp.store.sqlite.reading import bulk_rows, grouped, json_ids
from memory_mcp.store.timestamps import to_text

# A memory `m` with a derived time that overlaps a range. Values: the end of the range, its start.
NAMED_IN = 'm.id IN (SELECT memory FROM memory_dates WHERE start < ? AND "end" > ?)'


def replace(connection: apsw.Connection, memory_id: int, times: Iterable[TimeRange]) -> None:
    """Replaces the times of a memory."""
    connection.execute("DELETE FROM memory_dates WHERE memory = ?", (memory_id,))
    add(connection, memory_id, times)


def add(connection: apsw.Connection, memory_id: int, times: Iterable[TimeRange]) -> None:
    """Adds the times of a new memory."""
    connection.executemany(
        "INSERT INTO memory_dates VALUES (?, ?, ?)", [(memory_id, to_text(time.start), to_text(time.end)) for time in times]
    )


def note_undated(connection: apsw.Connection, memory_id: int) -> None:
    """Notes that nobody knows when the text of a memory was written, so that its 明日 stays no day whenever it is read again."""
    connection.execute("INSERT OR IGNORE INTO undated_memories VALUES (?)", (memory_id,))


def is_undated(connection: apsw.Connection, memory_id: int) -> bool:
    return connection.execute("SELECT 1 FROM undated_memories WHERE memory = ?", (memory_id,)).get is not None


def of_memories(connection: apsw.Connection, ids: Iterable[int]) -> dict[int, list[tuple[str, str]]]:
    """Memory → the starts and ends of its times, in the format of the store, for those that have any."""
    rows = bulk_rows(
        connection,
        'memory, start, "end"',
        'SELECT memory, start, "end" FROM memory_dates WHERE memory IN (SELECT value FROM json_each(?))',
        (json_ids(ids),),
    )
    return grouped((memory, (start, end)) for memory, start, end in rows)
