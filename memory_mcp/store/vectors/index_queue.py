"""The queue of memories that need new vectors, written in the same transaction as the memory."""

from collections.abc import Iterable, Mapping

import apsw


def enqueue(connection: apsw.Connection, ids: Iterable[int]) -> None:
    """Queue these memories. Queueing a memory again moves it to the end with a new sequence number, so that work on the older entry
    doesn't remove the newer one."""
    connection.executemany("INSERT OR REPLACE INTO index_queue(memory_id) VALUES (?)", [(memory_id,) for memory_id in ids])


def oldest(connection: apsw.Connection, limit: int) -> dict[int, int]:
    """The memories that have waited longest → their sequence numbers."""
    return dict(connection.execute("SELECT memory_id, sequence FROM index_queue ORDER BY sequence LIMIT ?", (limit,)))


def newest(connection: apsw.Connection, limit: int) -> dict[int, int]:
    """The memories that were queued last → their sequence numbers."""
    return dict(connection.execute("SELECT memory_id, sequence FROM index_queue ORDER BY sequence DESC LIMIT ?", (limit,)))


def remove(connection: apsw.Connection, entries: Mapping[int, int]) -> None:
    """Remove these entries. A memory that was queued again meanwhile has a new sequence number and stays."""
    connection.executemany("DELETE FROM index_queue WHERE memory_id = ? AND sequence = ?", list(entries.items()))


def length(connection: apsw.Connection) -> int:
    """The number of queued memories."""
    waiting: int = connection.execute("SELECT count(*) FROM index_queue").get
    return waiting
