"""Erasing memories for good (purge): which are due, deleting their rows everywhere, and removing the traces from the file.

Rows are deleted in one transaction, with a tombstone per key and a note that the file must be swept. `sweep_file` then removes what
deleted rows leave in SQLite's pages; a crash may delay this step but can't prevent it. `secure_delete`, on in every connection,
overwrites deleted cells and pages with zeros, but FTS5 keeps the tokens of deleted rows until its segments are merged, and the
write-ahead log keeps older copies of pages until it is truncated.
"""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import apsw

from memory_mcp.domain import Kind, Memory
from memory_mcp.errors import Overloaded
from memory_mcp.store import conversations, feedback, memories, memory_merges, operations, properties, summary_rows, tombstones
from memory_mcp.store.graph import graph_erasure as graph_erasing
from memory_mcp.store.legacy import quotations
from memory_mcp.store.lexical import bm25_index
from memory_mcp.store.operations import CONFIRM, Operation
from memory_mcp.store.sqlite.database import BUSY_TIMEOUT_MS, Database
from memory_mcp.store.sqlite.reading import grouped
from memory_mcp.store.timestamps import from_text, to_text
from memory_mcp.store.vectors import chunks

# Shorter texts occur in many memories, so finding one elsewhere doesn't mean that a memory is quoted.
QUOTABLE_CHARACTERS = 8
# Operations on the one memory in `key`: another memory with the same text keeps its own.
_SINGLE_MEMORY_OPERATIONS = ("create", "update", "delete", "restore", CONFIRM)
_SWEEP = "sweep_due"
_COMPACTED = "compacted_for_erasing"
CHECKPOINT_TIMEOUT_MS = 1_000
_UNPROTECTED = """
m.deleted_at IS NULL AND m.kind = ? AND m.importance < ?
AND NOT EXISTS (SELECT 1 FROM json_each(iif(json_valid(m.tags), m.tags, '[]')) t WHERE t.value COLLATE NOCASE IN (SELECT value FROM json_each(?)))
AND NOT EXISTS (SELECT 1 FROM memories p WHERE p.key = m.supersedes AND p.deleted_at IS NULL)
"""


@dataclass(frozen=True, slots=True)
class DueMemories:
    """The first memories that are due, in order, with the beginnings of their texts (`memories.beginnings`), and their total number."""

    memories: tuple[Memory, ...]
    total: int


def expired(
    connection: apsw.Connection, kind: Kind, before: datetime, keep_importance: float | None, keep_tags: Collection[str], limit: int
) -> DueMemories:
    """Unprotected memories of a kind that weren't changed or restored since `before`.

    A memory that replaced another isn't due while that one is outside the trash, because it would become current again.
    """
    condition = (
        f"{_UNPROTECTED} AND m.updated_at < ? AND NOT EXISTS ("
        "SELECT 1 FROM operations o WHERE o.key = m.key AND o.operation = 'restore' AND o.timestamp >= ?)"
    )
    values = (*_protected_by(kind, keep_importance, keep_tags), to_text(before), to_text(before))
    return _due(connection, condition, values, "m.updated_at, m.id", limit)


def past_expiry(connection: apsw.Connection, now: datetime, limit: int) -> DueMemories:
    """Memories outside the trash that have expired."""
    return _due(connection, "m.deleted_at IS NULL AND m.expires_at <= ?", (to_text(now),), "m.expires_at, m.id", limit)


def oldest_unprotected(
    connection: apsw.Connection, kind: Kind, keep_importance: float | None, keep_tags: Collection[str]
) -> datetime | None:
    """The time of the least recent change among the unprotected memories of a kind; None if there are none."""
    values = _protected_by(kind, keep_importance, keep_tags)
    oldest: str | None = connection.execute(f"SELECT min(m.updated_at) FROM memories m WHERE {_UNPROTECTED}", values).get
    return from_text(oldest) if oldest else None


def longest_in_trash(connection: apsw.Connection) -> datetime | None:
    """When the oldest memory in the trash was deleted; None if the trash is empty."""
    oldest: str | None = connection.execute("SELECT min(deleted_at) FROM memories WHERE deleted_at IS NOT NULL").get
    return from_text(oldest) if oldest else None


def long_in_trash(connection: apsw.Connection, before: datetime, limit: int) -> DueMemories:
    """Memories that were deleted before a moment."""
    return _due(connection, "m.deleted_at < ?", (to_text(before),), "m.deleted_at, m.id", limit)


def erase(connection: apsw.Connection, erased: Sequence[Memory], now: datetime, rule: str) -> tuple[list[Operation], list[str]]:
    """Purge memories from every table, with the summaries made from them. Returns the operations to log, and the foreign tables that
    couldn't be searched."""
    keys, unsearched = _delete_everywhere(connection, erased, now)
    tombstones.add(connection, keys, now)
    done = [Operation("purge", key, now, metadata={"rule": rule}) for key in keys]
    operations.record(connection, *done)
    note_sweep_due(connection, done[-1].operation_id if done else "")
    return done, unsearched


def _delete_everywhere(connection: apsw.Connection, erased: Sequence[Memory], now: datetime) -> tuple[list[str], list[str]]:
    """Delete memories in the trash from every table, without recording it. Returns all deleted keys, including those of summaries made
    from them, and the foreign tables that couldn't be searched."""
    summaries = release_derived(connection, [memory.key for memory in erased])
    erased = list({memory.key: memory for memory in (*erased, *memories.by_keys(connection, summaries).values())}.values())
    keys, ids = [memory.key for memory in erased], [memory.id for memory in erased]
    texts = texts_of(connection, erased)
    bm25_index.refresh(connection, ids)  # the rows of neighbors quote these memories
    with graph_erasing.of_memories(connection, ids, now):
        for memory in erased:
            _delete(connection, memory)
    summary_rows.remove_empty_sessions(connection)
    graph_erasing.empty_notes(connection, texts)
    _empty_operations(connection, keys, texts)
    conversations.erase_turns(connection, keys, texts)
    feedback.forget_queries(connection, [memory.content for memory in erased] + texts)
    return keys, quotations.erase(connection, keys, texts)


def erase_conversation(connection: apsw.Connection, conversation: str, done: Operation) -> None:
    """Delete a conversation for good, and record it as `done`. A backup or an import doesn't bring it back."""
    conversations.delete(connection, conversation)
    tombstones.add(connection, [conversations.tombstone(conversation)], done.timestamp)
    operations.record(connection, done)
    note_sweep_due(connection, done.operation_id)


def erase_again(connection: apsw.Connection, purged: Mapping[str, str], now: datetime) -> int:
    """Delete from a restored copy what was purged after the copy was made, with the summaries made from it, and add the tombstones.

    `purged`: as returned by `tombstones.read_all`. Returns the number of memories deleted again, without summaries. Call it in a
    transaction; the caller must rewrite the file afterwards, because deleted rows leave traces in it.
    """
    tombstones.merge(connection, purged)
    for conversation in conversations.page(connection, -1):
        if tombstones.digest(conversations.tombstone(conversation.id)) in purged:
            conversations.delete(connection, conversation.id)
    stored = [str(key) for (key,) in connection.execute("SELECT key FROM memories").fetchall()]
    restored = [key for key in stored if tombstones.digest(key) in purged]
    if not restored:
        return 0
    deleted = list(memories.by_keys(connection, restored).values())
    for memory in deleted:
        memories.set_deleted(connection, memory.id, now)
    _delete_everywhere(connection, deleted, now)
    bm25_index.rebuild(connection)  # the rows of neighbors quote these memories
    connection.execute("INSERT INTO lexical(lexical) VALUES ('optimize')")  # removes the tokens of deleted rows
    return len(restored)


def _delete(connection: apsw.Connection, memory: Memory) -> None:
    chunks.drop(connection, memory.id)
    # Close the chain of replacements, or what this memory had replaced would become current.
    connection.execute(
        "UPDATE memories SET supersedes = (SELECT supersedes FROM memories WHERE key = ?1) WHERE supersedes = ?1", (memory.key,)
    )
    connection.execute("DELETE FROM memories WHERE id = ?", (memory.id,))
    connection.execute("DELETE FROM index_queue WHERE memory_id = ?", (memory.id,))
    connection.execute("DELETE FROM memory_versions WHERE key = ?", (memory.key,))
    connection.execute("DELETE FROM lexical WHERE rowid = ?", (memory.id,))


def texts_of(connection: apsw.Connection, quoted: Sequence[Memory]) -> list[str]:
    """The current and earlier contents of these memories that are long enough to recognize quotations."""
    earlier = connection.execute(
        "SELECT content FROM memory_versions WHERE key IN (SELECT value FROM json_each(?))",
        (json.dumps([memory.key for memory in quoted]),),
    )
    contents = [*(memory.content for memory in quoted), *(row[0] for row in earlier)]
    return [text for text in dict.fromkeys(contents) if len(text) >= QUOTABLE_CHARACTERS]


def states_only_of(connection: apsw.Connection, keys: Sequence[str]) -> dict[str, set[str]]:
    """State part → values that only these memories have stated, now or in an earlier revision."""
    rows = connection.execute(
        "WITH keys AS (SELECT value AS key FROM json_each(?1)), states(state) AS ("
        "SELECT state FROM memories WHERE key IN keys UNION ALL SELECT further ->> '$.state' FROM memory_versions "
        "WHERE key IN keys AND json_valid(further)) "
        "SELECT DISTINCT p.key, p.value FROM states, json_each(states.state) p WHERE json_valid(states.state) AND p.type = 'text' "
        "AND NOT EXISTS (SELECT 1 FROM memories m, json_each(m.state) o WHERE m.key NOT IN keys AND json_valid(m.state) "
        "AND o.key = p.key AND o.value = p.value)",
        (json.dumps(list(keys)),),
    )
    return {part: set(values) for part, values in grouped(rows).items()}


def quoting(connection: apsw.Connection, quoted: Sequence[Memory]) -> list[str]:
    """The keys of other memories, such as summaries and copies, that contain a current or earlier text of these, or one of their keys."""
    keys = [memory.key for memory in quoted]
    rows = connection.execute(
        "SELECT key FROM ("
        "SELECT m.key, m.content AS text, coalesce(m.metadata, '') AS metadata FROM memories m "
        "UNION ALL SELECT v.key, v.content, '' FROM memory_versions v) q "
        "WHERE q.key NOT IN (SELECT value FROM json_each(?1)) AND (EXISTS (SELECT 1 FROM json_each(?2) t WHERE instr(q.text, t.value)) "
        "OR (q.metadata <> '' AND EXISTS (SELECT 1 FROM json_each(?1) k WHERE instr(q.metadata, k.value)))) GROUP BY key ORDER BY key LIMIT 100",
        (json.dumps(keys), json.dumps(texts_of(connection, quoted))),
    )
    return [row[0] for row in rows]


def sweep_due(connection: apsw.Connection) -> str | None:
    """The mark of the last purge whose traces must still be swept; None if there is none."""
    return properties.value(connection, _SWEEP)


def note_sweep_due(connection: apsw.Connection, mark: str) -> None:
    """Record that rows were deleted for good, and that their traces in the file must be swept."""
    properties.put(connection, _SWEEP, mark)


def note_swept(connection: apsw.Connection, mark: str) -> None:
    """Record that the traces of this purge and of all earlier ones are swept. A later purge stays due."""
    connection.execute("DELETE FROM properties WHERE name = ? AND value = ?", (_SWEEP, mark))


def _empty_operations(connection: apsw.Connection, keys: Sequence[str], texts: Iterable[str]) -> None:
    """Erase the content of recorded operations on these memories, but not the operations."""
    emptied = "UPDATE operations SET before = NULL, after = NULL, error = NULL, metadata = NULL"
    connection.execute(f"{emptied} WHERE key IN (SELECT value FROM json_each(?))", (json.dumps(keys),))
    own = ", ".join(f"'{name}'" for name in _SINGLE_MEMORY_OPERATIONS)
    spellings = json.dumps([spelling for text in texts for spelling in quotations.spellings(text)])
    for column in ("before", "after", "error", "metadata"):
        connection.execute(
            f"{emptied} WHERE operation NOT IN ({own}) AND {column} IS NOT NULL "
            f"AND EXISTS (SELECT 1 FROM json_each(?) t WHERE instr({column}, t.value))",
            (spellings,),
        )


def _protected_by(kind: Kind, keep_importance: float | None, keep_tags: Collection[str]) -> tuple[str, float, str]:
    """The values of `_UNPROTECTED`."""
    return kind, 2.0 if keep_importance is None else keep_importance, json.dumps(list(keep_tags), ensure_ascii=False)


def _due(connection: apsw.Connection, condition: str, values: Sequence[object], order: str, limit: int) -> DueMemories:
    total = connection.execute(f"SELECT count(*) FROM memories m WHERE {condition}", values).get
    ids = [
        row[0] for row in connection.execute(f"SELECT m.id FROM memories m WHERE {condition} ORDER BY {order} LIMIT ?", (*values, limit))
    ]
    known = memories.beginnings(connection, ids)
    return DueMemories(tuple(known[memory_id] for memory_id in ids), total)


def release_derived(connection: apsw.Connection, keys: Collection[str]) -> list[str]:
    """Prepare a purge of these memories: returns the keys of the summaries that must be erased with them.

    Call it in the transaction of the purge, before the rows are deleted. The subjects of the summaries are queued to be summarized
    again from what is left, and merges are rewired past the memories.
    """
    summaries = summary_rows.unregister_citing(connection, keys)
    memory_merges.bridge(connection, [*keys, *summaries])
    return summaries


def sweep_file(database: Database) -> bool:
    """Remove the traces of deleted rows from the file. Returns False if a reader was in the way, so that it must be repeated.

    Raises:
        StoreError: the file can't be written.
    """
    if database.write(bm25_index.start_full_merge):
        while database.write(_continue_merge):
            pass
    try:
        database.write_alone(_compact_once)
        database.write_alone(_empty_log)
    except Overloaded:
        return False
    return True


def _continue_merge(connection: apsw.Connection) -> bool:
    """Merge further segments. Returns False once only segments of concurrent writes are left."""
    return bm25_index.merge_similar_segments(connection) and bm25_index.merge_similar_segments(connection)


def _compact_once(connection: apsw.Connection) -> None:
    """Rewrite the file once, because an SQLite without `secure_delete`, as in an older server, left old text in free pages."""
    if properties.value(connection, _COMPACTED) is None:
        connection.execute("VACUUM")
        properties.put(connection, _COMPACTED, "yes")


def _empty_log(connection: apsw.Connection) -> None:
    connection.set_busy_timeout(CHECKPOINT_TIMEOUT_MS)
    try:
        connection.wal_checkpoint(None, apsw.SQLITE_CHECKPOINT_TRUNCATE)
    finally:
        connection.set_busy_timeout(BUSY_TIMEOUT_MS)
