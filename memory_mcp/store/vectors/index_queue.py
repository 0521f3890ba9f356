"""The to-do list of the vector index: rows written in the same transaction as the memory."""

from collections.abc import Iterable, Mapping

import apsw


def enqueue(connection: apsw.Connection, ids: Iterable[int]) -> None:
    """Notes that the vectors of these memories must be looked at. Noting again moves a memory to the end with a new number,
    so that whoever is working on the older note does not strike out the newer one."""
    connection.executemany("INSERT OR REPLACE INTO index_queue(memory_id) VALUES (?)", [(memory_id,) for memory_id in ids])


def oldest(connection: apsw.Connection, limit: int) -> dict[int, int]:
    """The memories that have waited longest, with the numbers of their notes."""
    return dict(connection.execute("SELECT memory_id, sequence FROM index_queue ORDER BY sequence LIMIT ?", (limit,)))


def newest(connection: apsw.Connection, limit: int) -> dict[int, int]:
    """The memories that were noted last, with the numbers of their notes."""
    return dict(connection.execute("SELECT memory_id, sequence FROM index_queue ORDER BY sequence DESC LIMIT ?", (limit,)))


def strike_off(connection: apsw.Connection, notes: Mapping[int, int]) -> None:
    """Takes these notes away. A memory that was noted again meanwhile has another number and stays."""
    connection.executemany("DELETE FROM index_queue WHERE memory_id = ? AND sequence = ?", list(notes.items()))


def length(connection: apsw.Connection) -> int:
    """How many memories wait."""
    waiting: int = connection.execute("SELECT count(*) FROM index_queue").get
    return waiting
