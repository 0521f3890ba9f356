"""The queue of memories to derive relations from in the background."""

from collections.abc import Iterable

import apsw

from memory_mcp.store.sqlite.reading import json_ids


def enqueue(connection: apsw.Connection, memory_ids: Iterable[int]) -> None:
    connection.execute("INSERT OR IGNORE INTO graph_queue(memory) SELECT value FROM json_each(?)", (json_ids(memory_ids),))


def enqueue_unnamed(connection: apsw.Connection, memory_ids: Iterable[int]) -> None:
    """Adds memories that are to be searched for entities, too, unless they were erased meanwhile."""
    connection.execute(
        "INSERT OR REPLACE INTO graph_queue(memory, named) SELECT m.id, 0 FROM json_each(?) JOIN memories m ON m.id = value",
        (json_ids(memory_ids),),
    )


def first(connection: apsw.Connection, limit: int) -> list[int]:
    """The first memories of the queue, at most `limit`."""
    return [row[0] for row in connection.execute("SELECT memory FROM graph_queue ORDER BY memory LIMIT ?", (limit,))]


def unnamed(connection: apsw.Connection, memory_ids: Iterable[int]) -> dict[int, str]:
    """Those of these memories that are to be searched for entities, with their text."""
    return dict(
        connection.execute(
            "SELECT q.memory, m.content FROM graph_queue q JOIN memories m ON m.id = q.memory "
            "WHERE q.named = 0 AND q.memory IN (SELECT value FROM json_each(?)) ORDER BY q.memory",
            (json_ids(memory_ids),),
        )
    )


def done(connection: apsw.Connection, memory_ids: Iterable[int]) -> None:
    connection.execute("DELETE FROM graph_queue WHERE memory IN (SELECT value FROM json_each(?))", (json_ids(memory_ids),))


def holds(connection: apsw.Connection, memory_id: int) -> bool:
    """Whether this memory is in the queue."""
    return connection.execute("SELECT 1 FROM graph_queue WHERE memory = ?", (memory_id,)).get is not None


def length(connection: apsw.Connection) -> int:
    return int(connection.execute("SELECT count(*) FROM graph_queue").get)
