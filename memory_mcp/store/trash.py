"""The trash: what is in it is found by no search and counts for nothing in the graph, and can be brought back until it is purged."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import apsw

from memory_mcp.domain import Memory
from memory_mcp.store import memories, memory_rows, operations
from memory_mcp.store.graph import mentions, relations
from memory_mcp.store.lexical import bm25_index
from memory_mcp.store.operations import Operation
from memory_mcp.store.vectors import index_queue


def move(
    connection: apsw.Connection, chosen: Sequence[Memory], metadata: Callable[[Memory], Mapping[str, Any]], now: datetime
) -> list[Operation]:
    """Moves memories to the trash. Returns the operations to log, with the `metadata` of each."""
    for memory in chosen:
        memories.set_deleted(connection, memory.id, now)
    refresh(connection, chosen, now)
    done = [Operation("delete", memory.key, now, before={"content": memory.content}, metadata=metadata(memory)) for memory in chosen]
    operations.record(connection, *done)
    return done


def refresh(connection: apsw.Connection, changed: Sequence[Memory], now: datetime) -> None:
    """Updates lexical rows, index queue and graph after memories entered or left the trash, for them, their neighbors and what they
    replace.
    """
    ids = [*(memory.id for memory in changed), *memory_rows.replaced_by(connection, changed)]
    update_indexes(connection, ids)
    update_graph(connection, ids, now)


def update_indexes(connection: apsw.Connection, memory_ids: Sequence[int]) -> None:
    """Updates the lexical rows and queues the vectors of memories that are new, have changed, or are found again or no more."""
    bm25_index.refresh(connection, memory_ids)
    index_queue.enqueue(connection, memory_ids)


def update_graph(connection: apsw.Connection, memory_ids: Iterable[int], now: datetime) -> None:
    """Updates counts and weights after these memories entered or left the trash or were replaced."""
    if ids := list(memory_ids):
        mentions.recount(connection, {entity for of_memory in mentions.of_memories(connection, ids).values() for entity in of_memory})
        relations.sum_up(connection, relations.pairs_of_memories(connection, ids), now)
