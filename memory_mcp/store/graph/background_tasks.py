"""The to-do list of what the graph makes of a memory beside its relations: links to memories like it, what a chat model reads in it."""

import json
from collections.abc import Iterable
from typing import Literal

import apsw

from memory_mcp.store.memories import CURRENT

Task = Literal["links", "model"]


def enqueue(connection: apsw.Connection, memory_ids: Iterable[int]) -> None:
    """What is made of these memories is to be made, where it was not made of what they say now."""
    connection.execute(
        'INSERT INTO graph_background(task, memory) SELECT t.value, m.id FROM json_each(\'["links", "model"]\') t '
        "JOIN memories m ON m.id IN (SELECT value FROM json_each(?)) WHERE true "
        "ON CONFLICT DO UPDATE SET done = NULL WHERE done IS NOT (SELECT revision FROM memories WHERE id = excluded.memory)",
        (json.dumps(list(memory_ids)),),
    )


def first(connection: apsw.Connection, task: Task, limit: int) -> list[int]:
    """The latest memories that wait for this, of those that are current and no summaries."""
    rows = connection.execute(
        f"SELECT q.memory FROM graph_background q JOIN memories m ON m.id = q.memory WHERE q.task = ? AND q.done IS NULL "
        f"AND m.kind <> 'summary' AND {CURRENT} ORDER BY q.tries, q.memory DESC LIMIT ?",
        (task, limit),
    )
    return [int(row[0]) for row in rows]


def done(connection: apsw.Connection, task: Task, memory_ids: Iterable[int]) -> None:
    """This was made of what these memories say now."""
    connection.execute(
        "UPDATE graph_background SET done = (SELECT revision FROM memories WHERE id = memory), tries = 0 "
        "WHERE task = ? AND memory IN (SELECT value FROM json_each(?))",
        (task, json.dumps(list(memory_ids))),
    )


def failed(connection: apsw.Connection, task: Task, memory_id: int) -> None:
    """Others go first the next time."""
    connection.execute("UPDATE graph_background SET tries = tries + 1 WHERE task = ? AND memory = ?", (task, memory_id))
