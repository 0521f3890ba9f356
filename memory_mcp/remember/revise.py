"""Changing what a memory says, with the earlier states kept, and bringing one back from the trash."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import apsw

from memory_mcp.domain import Memory
from memory_mcp.errors import InvalidInput, MemoryNotFound
from memory_mcp.personas.registry import Persona
from memory_mcp.remember.forget import refresh_after_trash
from memory_mcp.store import chunks, index_queue, lexical, memories, operations
from memory_mcp.store.operations import Operation
from memory_mcp.text.chunk import split


@dataclass(frozen=True, slots=True)
class Revision:
    """What is to change; None leaves a field as it is."""

    content: str | None = None
    tags: tuple[str, ...] | None = None
    importance: float | None = None
    restore: bool = False
    reason: str | None = None


def revise(persona: Persona, key: str, revision: Revision, *, now: datetime) -> Memory:
    """The memory as it is afterwards.

    Raises:
        MemoryNotFound: this persona has no memory with that key.
        InvalidInput: it is in the trash, and `restore` was not asked for; or nothing was asked for.
    """
    if revision.content is None and revision.tags is None and revision.importance is None and not revision.restore:
        raise InvalidInput("nothing to revise", "neither content, tags, importance nor restore was given", "Say what is to change")
    memory, done = persona.database.write(lambda connection: revise_stored(connection, key, revision, now))
    for operation in done:
        persona.log.append(persona.name, operation)
    return memory


def revise_stored(connection: apsw.Connection, key: str, revision: Revision, now: datetime) -> tuple[Memory, Sequence[Operation]]:
    """The same inside a transaction: the memory as it is afterwards, and what is to be logged."""
    memory = memories.by_keys(connection, [key]).get(key)
    if memory is None:
        raise MemoryNotFound(f"no memory has the key {key}", "", "Take the key from a recall")
    done: list[Operation] = []
    if memory.deleted_at is not None:
        if not revision.restore:
            raise InvalidInput(
                f"{key} is in the trash",
                f"it was forgotten at {memory.deleted_at:%Y-%m-%d %H:%M} UTC",
                "Send restore=true to bring it back",
            )
        memories.set_deleted(connection, memory.id, None)
        refresh_after_trash(connection, [memory])
        done.append(Operation("restore", key, now, metadata=_reason(revision)))
    if (revision.content, revision.tags, revision.importance) != (None, None, None):
        done.append(_change(connection, memory, revision, now))
    for operation in done:
        operations.record(connection, operation)
    return memories.by_keys(connection, [key])[key], done


def _change(connection: apsw.Connection, memory: Memory, revision: Revision, now: datetime) -> Operation:
    content = memory.content if revision.content is None else revision.content
    tags = memory.tags if revision.tags is None else revision.tags
    importance = memory.importance if revision.importance is None else revision.importance
    memories.keep_version(connection, memory, revision.reason)
    memories.change(connection, memory, content=content, tags=tags, importance=importance, now=now)
    if content != memory.content:
        chunks.replace(connection, memory.id, split(content), memory.questions)
        lexical.refresh(connection, [memory.id])
        index_queue.enqueue(connection, [memory.id])
    return Operation(
        "update",
        memory.key,
        now,
        before={"content": memory.content, "tags": list(memory.tags), "importance": memory.importance},
        after={"content": content, "tags": list(tags), "importance": importance},
        metadata=_reason(revision),
    )


def _reason(revision: Revision) -> dict[str, str]:
    return {"reason": revision.reason} if revision.reason else {}
