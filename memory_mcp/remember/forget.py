"""Putting memories in the trash and taking them out again. Nothing is lost before retention empties the trash."""

from collections.abc import Sequence
from datetime import datetime

import apsw

from memory_mcp.config.settings import Privacy
from memory_mcp.domain import Memory, Outcome
from memory_mcp.graph.update import entity_linking
from memory_mcp.personas.registry import Persona
from memory_mcp.store import memories, operations, summary_rows
from memory_mcp.store.lexical import bm25_index
from memory_mcp.store.operations import Operation
from memory_mcp.store.vectors import index_queue
from memory_mcp.text.privacy.redaction import Redaction


def forget(persona: Persona, keys: Sequence[str], *, reason: str | None, dry_run: bool, now: datetime, privacy: Privacy) -> list[Outcome]:
    """What became of each key: `forgotten` (or `would_forget`), `already_forgotten`, `not_found`."""
    wanted = list(dict.fromkeys(keys))
    if dry_run:
        with persona.database.read() as connection:
            found = memories.by_keys(connection, wanted)
        return [_outcome(key, found.get(key), "would_forget") for key in wanted]
    told = Redaction(privacy).optional(reason)
    found, done = persona.database.write(lambda connection: forget_stored(connection, wanted, told, now))
    persona.words.clear()
    for operation in done:
        persona.log.append(persona.name, operation)
    return [_outcome(key, found.get(key), "forgotten") for key in wanted]


def forget_stored(
    connection: apsw.Connection, keys: Sequence[str], reason: str | None, now: datetime
) -> tuple[dict[str, Memory], list[Operation]]:
    """The same inside a transaction: the memories that were found, as they were before, and what is to be logged."""
    found = memories.by_keys(connection, keys)
    present = [memory for memory in found.values() if memory.deleted_at is None]
    for memory in present:
        memories.set_deleted(connection, memory.id, now)
    refresh_after_trash(connection, present, now)
    withhold_summaries(connection, present, now)
    done = [
        Operation("delete", memory.key, now, before={"content": memory.content}, metadata={"reason": reason} if reason else {})
        for memory in present
    ]
    for operation in done:
        operations.record(connection, operation)
    return found, done


def withhold_summaries(connection: apsw.Connection, present: Sequence[Memory], now: datetime) -> None:
    """What is no longer said must not go on being told by a summary: those that were made of it leave at once, and are made anew."""
    citing = summary_rows.citing(connection, [memory.key for memory in present if memory.kind != "summary"])
    for summary in memories.by_keys(connection, citing).values():
        if summary.deleted_at is None:
            memories.set_deleted(connection, summary.id, now)
    summary_rows.outdate(connection, citing)


def refresh_after_trash(connection: apsw.Connection, changed: Sequence[Memory], now: datetime) -> None:
    """Lexical rows, queue and graph after memories went into the trash or came out: theirs, their neighbours', and of what they replace."""
    ids = [*(memory.id for memory in changed), *memories.replaced_by(connection, changed)]
    bm25_index.refresh(connection, ids)
    index_queue.enqueue(connection, ids)
    entity_linking.update_after_trash(connection, ids, now)


def _outcome(key: str, memory: Memory | None, done: str) -> Outcome:
    if memory is None:
        return Outcome(key, "not_found", "this persona has no memory with that key")
    if memory.deleted_at is not None:
        return Outcome(key, "already_forgotten", "it is in the trash; revise with restore=true brings it back")
    return Outcome(key, done)
