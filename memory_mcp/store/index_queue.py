"""The to-do list of the vector index: rows written in the same transaction as the memory."""

from collections.abc import Iterable

import apsw


def enqueue(connection: apsw.Connection, ids: Iterable[int]) -> None:
    """Notes that the vectors of these memories must be looked at. Noting again moves a memory to the end with a new number,
    so that whoever is working on the older note does not strike out the newer one."""
    connection.executemany("INSERT OR REPLACE INTO index_queue(memory_id) VALUES (?)", [(memory_id,) for memory_id in ids])


def length(connection: apsw.Connection) -> int:
    """How many memories wait."""
    waiting: int = connection.execute("SELECT count(*) FROM index_queue").get
    return waiting
