"""The queue of memories that need new vectors, written in the same transaction as the memory."""

from collections.abc import Iterable, Mapping
from typing import Any

import apsw


def enqueue(connection: apsw.Connection, ids: Iterable[int]) -> None:
    """Queue these memories. Queueing a memory again moves it to the end with a new sequence number, so that work on the older entry
    doesn't remove the newer one."""
    connection.executemany("INSERT OR REPLACE INTO index_queue(memory_id) VALUES (?)", [(memory_id,) for memory_id in ids])


def oldest(connection: apsw.Connection, limit: int) -> dict[int, int]:
    """The memories that have waited longest → their sequence numbers."""
    return dict(connection.execute("SELECT memory_id, sequence FROM index_queue ORDER BY sequence LIMIT ?", (limit,)))


def batch(connection: apsw.Connection, pieces: int, piece_characters: int, *, newest: bool = False) -> dict[int, int]:
    """The memories that have waited longest, or those queued last, with about so many pieces in all, of so many characters → their sequence
    numbers.

    What is split and not embedded in a batch would be split again in the next one.
    """
    rows: list[tuple[Any, ...]] = connection.execute(
        "SELECT q.memory_id, q.sequence, coalesce(length(m.content), 0) FROM index_queue q LEFT JOIN memories m ON m.id = q.memory_id "
        f"ORDER BY q.sequence {'DESC' if newest else 'ASC'} LIMIT ?",
        (pieces,),
    ).fetchall()
    chosen: dict[int, int] = {}
    for memory_id, sequence, length in rows:
        if pieces <= 0:
            break
        chosen[memory_id] = sequence
        pieces -= 1 + length // piece_characters
    return chosen


def remove(connection: apsw.Connection, entries: Mapping[int, int]) -> None:
    """Remove these entries. A memory that was queued again meanwhile has a new sequence number and stays."""
    connection.executemany("DELETE FROM index_queue WHERE memory_id = ? AND sequence = ?", list(entries.items()))


def length(connection: apsw.Connection) -> int:
    """The number of queued memories."""
    return int(connection.execute("SELECT count(*) FROM index_queue").get)
