"""The queue of further background tasks: links to similar memories, what a chat model extracts, and what it says no longer holds."""

from collections.abc import Iterable
from typing import Literal

import apsw

from memory_mcp.store.memories import CURRENT
from memory_mcp.store.sqlite.reading import json_ids

Task = Literal["links", "model", "newer"]


def enqueue(connection: apsw.Connection, memory_ids: Iterable[int]) -> None:
    """Adds these memories for every task that wasn't done for their current revision."""
    connection.execute(
        'INSERT INTO graph_background(task, memory) SELECT t.value, m.id FROM json_each(\'["links", "model", "newer"]\') t '
        "JOIN memories m ON m.id IN (SELECT value FROM json_each(?)) WHERE true "
        "ON CONFLICT DO UPDATE SET done = NULL WHERE done IS NOT (SELECT revision FROM memories WHERE id = excluded.memory)",
        (json_ids(memory_ids),),
    )


def first(connection: apsw.Connection, task: Task, limit: int) -> list[int]:
    """The latest memories that wait for a task, without summaries and what is not current."""
    rows = connection.execute(
        f"SELECT q.memory FROM graph_background q JOIN memories m ON m.id = q.memory WHERE q.task = ? AND q.done IS NULL "
        f"AND m.kind <> 'summary' AND {CURRENT} ORDER BY q.tries, q.memory DESC LIMIT ?",
        (task, limit),
    )
    return [int(row[0]) for row in rows]


def done(connection: apsw.Connection, task: Task, memory_ids: Iterable[int]) -> None:
    """Notes that the task was done for the current revision of these memories."""
    connection.execute(
        "UPDATE graph_background SET done = (SELECT revision FROM memories WHERE id = memory), tries = 0 "
        "WHERE task = ? AND memory IN (SELECT value FROM json_each(?))",
        (task, json_ids(memory_ids)),
    )


def failed(connection: apsw.Connection, task: Task, memory_id: int) -> None:
    """Notes that the task failed for a memory: others come first the next time."""
    connection.execute("UPDATE graph_background SET tries = tries + 1 WHERE task = ? AND memory = ?", (task, memory_id))
