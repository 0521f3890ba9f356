"""The to-do list of what the graph makes of a memory beside its relations: links to memories like it, what a chat model reads in it."""

import json
from collections.abc import Iterable
from typing import Literal

import apsw

from memory_mcp.store.memories import CURRENT

Task = Literal["links", "model"]

_TABLE = """
CREATE TABLE graph_background (
    task TEXT NOT NULL,
    memory INTEGER NOT NULL REFERENCES memories(id) ON DELETE CASCADE,
    PRIMARY KEY (task, memory)
) WITHOUT ROWID;
CREATE INDEX graph_background_by_memory ON graph_background(memory);
"""


def create(connection: apsw.Connection) -> None:
    """The list, with all memories that there are on it. Released: a change is a further migration."""
    connection.execute(_TABLE)
    connection.execute(
        'INSERT INTO graph_background(task, memory) SELECT t.value, m.id FROM json_each(\'["links", "model"]\') t JOIN memories m'
    )


def enqueue(connection: apsw.Connection, memory_ids: Iterable[int]) -> None:
    """All that is made of these memories is to be made anew."""
    connection.execute(
        'INSERT OR IGNORE INTO graph_background(task, memory) SELECT t.value, m.value FROM json_each(\'["links", "model"]\') t '
        "JOIN json_each(?) m",
        (json.dumps(list(memory_ids)),),
    )


def first(connection: apsw.Connection, task: Task, limit: int) -> list[int]:
    """The latest memories that wait for this, of those that are current and no summaries."""
    rows = connection.execute(
        f"SELECT q.memory FROM graph_background q JOIN memories m ON m.id = q.memory WHERE q.task = ? AND m.kind <> 'summary' AND {CURRENT} "
        "ORDER BY q.memory DESC LIMIT ?",
        (task, limit),
    )
    return [int(row[0]) for row in rows]


def done(connection: apsw.Connection, task: Task, memory_ids: Iterable[int]) -> None:
    connection.execute(
        "DELETE FROM graph_background WHERE task = ? AND memory IN (SELECT value FROM json_each(?))", (task, json.dumps(list(memory_ids)))
    )
