"""Which memories are due for the trash or for good, and taking them out of every table.

Rows go in one transaction, with a tombstone for each key and a note that the file has to be swept (`residue`): what a deleted
row leaves behind in SQLite's pages is another step, which a crash may delay and not prevent.
"""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import apsw

from memory_mcp.domain import Kind, Memory
from memory_mcp.errors import Overloaded
from memory_mcp.store import memories, memory_merges, operations, summary_rows, tombstones
from memory_mcp.store.graph import graph_erasure as graph_erasing
from memory_mcp.store.legacy import foreign_tables
from memory_mcp.store.lexical import bm25_index
from memory_mcp.store.operations import Operation
from memory_mcp.store.sqlite.database import BUSY_TIMEOUT_MS, Database
from memory_mcp.store.timestamps import from_text, to_text
from memory_mcp.store.vectors import chunks

# What says so little that it stands in many memories tells nothing about where a memory is quoted.
TELLING_CHARACTERS = 8
# These are about the one memory that they name: another one with the same words keeps its own.
_OF_ONE_MEMORY = ("create", "update", "delete", "restore")
_SWEEP = "sweep_due"
_COMPACTED = "compacted_for_erasing"
CHECKPOINT_TIMEOUT_MS = 1_000
_UNPROTECTED = """
m.deleted_at IS NULL AND m.kind = ? AND m.importance < ?
AND NOT EXISTS (SELECT 1 FROM json_each(m.tags) t WHERE t.value COLLATE NOCASE IN (SELECT value FROM json_each(?)))
AND NOT EXISTS (SELECT 1 FROM memories p WHERE p.key = m.supersedes AND p.deleted_at IS NULL)
"""


@dataclass(frozen=True, slots=True)
class Found:
    """The first of some memories, in order, and how many there are in all."""

    memories: tuple[Memory, ...]
    total: int


def expired(
    connection: apsw.Connection, kind: Kind, before: datetime, keep_importance: float | None, keep_tags: Collection[str], limit: int
) -> Found:
    """Memories of a kind that nobody changed or restored since `before`, and that nothing protects.

    One that replaced another stays as long as that one is outside the trash: it would come to light again.
    """
    condition = (
        f"{_UNPROTECTED} AND m.updated_at < ? AND NOT EXISTS ("
        "SELECT 1 FROM operations o WHERE o.key = m.key AND o.operation = 'restore' AND o.timestamp >= ?)"
    )
    values = (*_protected_by(kind, keep_importance, keep_tags), to_text(before), to_text(before))
    return _found(connection, condition, values, "m.updated_at, m.id", limit)


def oldest_unprotected(
    connection: apsw.Connection, kind: Kind, keep_importance: float | None, keep_tags: Collection[str]
) -> datetime | None:
    """The last change of the memory of this kind that nobody changed for longest and nothing protects; None where there is none."""
    values = _protected_by(kind, keep_importance, keep_tags)
    found: str | None = connection.execute(f"SELECT min(m.updated_at) FROM memories m WHERE {_UNPROTECTED}", values).get
    return from_text(found) if found else None


def longest_in_trash(connection: apsw.Connection) -> datetime | None:
    """When what is in the trash for longest went there; None where it is empty."""
    found: str | None = connection.execute("SELECT min(deleted_at) FROM memories WHERE deleted_at IS NOT NULL").get
    return from_text(found) if found else None


def long_in_trash(connection: apsw.Connection, before: datetime, limit: int) -> Found:
    """Memories that went into the trash before a moment."""
    return _found(connection, "m.deleted_at < ?", (to_text(before),), "m.deleted_at, m.id", limit)


def erase(connection: apsw.Connection, erased: Sequence[Memory], now: datetime, rule: str) -> tuple[list[Operation], list[str]]:
    """Takes memories out of every table, and the summaries that tell of them. Returns what is to be logged, and the older tables that
    could not be searched."""
    keys, unsearched = take_out(connection, erased, now)
    tombstones.add(connection, keys, now)
    done = [Operation("purge", key, now, metadata={"rule": rule}) for key in keys]
    for operation in done:
        operations.record(connection, operation)
    connection.execute("INSERT OR REPLACE INTO properties VALUES (?, ?)", (_SWEEP, done[-1].operation_id if done else ""))
    return done, unsearched


def take_out(connection: apsw.Connection, erased: Sequence[Memory], now: datetime) -> tuple[list[str], list[str]]:
    """Takes memories in the trash out of every table, and notes nothing. Returns the keys, those of the summaries that tell of them
    among them, and the older tables that could not be searched."""
    telling = release_derived(connection, [memory.key for memory in erased])
    erased = list({memory.key: memory for memory in (*erased, *memories.by_keys(connection, telling).values())}.values())
    keys, ids = [memory.key for memory in erased], [memory.id for memory in erased]
    said = texts_of(connection, erased)
    bm25_index.refresh(connection, ids)  # theirs are gone since they are in the trash; what their neighbours quoted goes with it
    with graph_erasing.of_memories(connection, ids, now):
        for memory in erased:
            _delete(connection, memory)
    summary_rows.strike_empty_sessions(connection)
    graph_erasing.empty_notes(connection, said)
    _empty_operations(connection, keys, said)
    return keys, foreign_tables.erase(connection, keys, said)


def erase_again(connection: apsw.Connection, graves: Mapping[str, str], now: datetime) -> int:
    """Takes out of a copy what was erased after it was made, with the summaries that tell of it, and notes it there. `graves`: as
    `tombstones.everything` tells them. Returns how many memories were erased again; summaries that are made anew don't count.

    Call it in a transaction. What deleted rows leave in the file stays there: whoever calls writes the file anew.
    """
    tombstones.take_over(connection, graves)
    every = [str(key) for (key,) in connection.execute("SELECT key FROM memories").fetchall()]
    risen = [key for key in every if tombstones.digest(key) in graves]
    if not risen:
        return 0
    found = list(memories.by_keys(connection, risen).values())
    for memory in found:
        memories.set_deleted(connection, memory.id, now)
    take_out(connection, found, now)
    bm25_index.rebuild(connection)  # what their neighbours quoted of them goes
    connection.execute("INSERT INTO lexical(lexical) VALUES ('optimize')")  # and what the index keeps of deleted rows
    return len(risen)


def _delete(connection: apsw.Connection, memory: Memory) -> None:
    chunks.drop(connection, memory.id)
    # What replaced it takes its place in the chain, or what it had replaced would come to light.
    connection.execute(
        "UPDATE memories SET supersedes = (SELECT supersedes FROM memories WHERE key = ?1) WHERE supersedes = ?1", (memory.key,)
    )
    connection.execute("DELETE FROM memories WHERE id = ?", (memory.id,))
    connection.execute("DELETE FROM index_queue WHERE memory_id = ?", (memory.id,))
    connection.execute("DELETE FROM memory_versions WHERE key = ?", (memory.key,))
    connection.execute("DELETE FROM lexical WHERE rowid = ?", (memory.id,))


def texts_of(connection: apsw.Connection, found: Sequence[Memory]) -> list[str]:
    """What these memories say and ever said, where it is long enough to tell them."""
    earlier = connection.execute(
        "SELECT content FROM memory_versions WHERE key IN (SELECT value FROM json_each(?))",
        (json.dumps([memory.key for memory in found]),),
    )
    every = [*(memory.content for memory in found), *(row[0] for row in earlier)]
    return [text for text in dict.fromkeys(every) if len(text) >= TELLING_CHARACTERS]


def states_told(connection: apsw.Connection, keys: Sequence[str]) -> dict[str, set[str]]:
    """How things stood by these memories, now or in an earlier revision, by part, where no other memory says the same of that part."""
    told = connection.execute(
        "WITH keys AS (SELECT value AS key FROM json_each(?1)), said(state) AS ("
        "SELECT state FROM memories WHERE key IN keys UNION ALL SELECT further ->> '$.state' FROM memory_versions "
        "WHERE key IN keys AND json_valid(further)) "
        "SELECT DISTINCT p.key, p.value FROM said, json_each(said.state) p WHERE json_valid(said.state) AND p.type = 'text' "
        "AND NOT EXISTS (SELECT 1 FROM memories m, json_each(m.state) o WHERE m.key NOT IN keys AND json_valid(m.state) "
        "AND o.key = p.key AND o.value = p.value)",
        (json.dumps(list(keys)),),
    )
    found: dict[str, set[str]] = {}
    for part, value in told:
        found.setdefault(part, set()).add(value)
    return found


def quoting(connection: apsw.Connection, found: Sequence[Memory]) -> list[str]:
    """The keys of other memories that hold the text of one of these, now or earlier, or name its key: a summary, a copy."""
    keys = [memory.key for memory in found]
    rows = connection.execute(
        "SELECT key FROM ("
        "SELECT m.key, m.content AS text, coalesce(m.metadata, '') AS beside FROM memories m "
        "UNION ALL SELECT v.key, v.content, '' FROM memory_versions v) q "
        "WHERE q.key NOT IN (SELECT value FROM json_each(?1)) AND (EXISTS (SELECT 1 FROM json_each(?2) t WHERE instr(q.text, t.value)) "
        "OR (q.beside <> '' AND EXISTS (SELECT 1 FROM json_each(?1) k WHERE instr(q.beside, k.value)))) GROUP BY key ORDER BY key LIMIT 100",
        (json.dumps(keys), json.dumps(texts_of(connection, found))),
    )
    return [row[0] for row in rows]


def sweep_due(connection: apsw.Connection) -> str | None:
    """A mark of the last purge whose traces are still to be swept out of the file; None where nothing is to be done."""
    found: str | None = connection.execute("SELECT value FROM properties WHERE name = ?", (_SWEEP,)).get
    return found


def note_swept(connection: apsw.Connection, mark: str) -> None:
    """The traces of that purge, and of all before it, are gone. A later one stays noted."""
    connection.execute("DELETE FROM properties WHERE name = ? AND value = ?", (_SWEEP, mark))


def _empty_operations(connection: apsw.Connection, keys: Sequence[str], said: Iterable[str]) -> None:
    """That something was done stays; what it was done to, goes."""
    emptied = "UPDATE operations SET before = NULL, after = NULL, error = NULL, metadata = NULL"
    connection.execute(f"{emptied} WHERE key IN (SELECT value FROM json_each(?))", (json.dumps(keys),))
    own = ", ".join(f"'{name}'" for name in _OF_ONE_MEMORY)
    spellings = json.dumps([spelling for text in said for spelling in foreign_tables.spellings(text)])
    for column in ("before", "after", "error", "metadata"):
        connection.execute(
            f"{emptied} WHERE operation NOT IN ({own}) AND {column} IS NOT NULL "
            f"AND EXISTS (SELECT 1 FROM json_each(?) t WHERE instr({column}, t.value))",
            (spellings,),
        )


def _protected_by(kind: Kind, keep_importance: float | None, keep_tags: Collection[str]) -> tuple[str, float, str]:
    """The values of `_UNPROTECTED`."""
    return kind, 2.0 if keep_importance is None else keep_importance, json.dumps(list(keep_tags), ensure_ascii=False)


def _found(connection: apsw.Connection, condition: str, values: Sequence[object], order: str, limit: int) -> Found:
    total = connection.execute(f"SELECT count(*) FROM memories m WHERE {condition}", values).get
    ids = [
        row[0] for row in connection.execute(f"SELECT m.id FROM memories m WHERE {condition} ORDER BY {order} LIMIT ?", (*values, limit))
    ]
    known = memories.by_ids(connection, ids)
    return Found(tuple(known[memory_id] for memory_id in ids), total)


def release_derived(connection: apsw.Connection, keys: Collection[str]) -> list[str]:
    """For a purge of these memories: returns the keys of the summaries that are to be erased with them.

    Call it in the purge's transaction, while the rows of the memories are still there. The summaries are put on the list to be made
    anew, of what is left; and whatever stood in the place of these memories stands in the place of what they had replaced.
    """
    found = summary_rows.withdraw_citing(connection, keys)
    memory_merges.bridge(connection, [*keys, *found])
    return found


def sweep_file(database: Database) -> bool:
    """Removes from the file what deleted rows have left in it. False: a reader was in the way, and it has to be done again.

    Raises:
        StoreError: the file can't be written.
    """
    if database.write(bm25_index.begin_to_merge_all):
        while database.write(_merge_on):
            pass
    try:
        database.write_alone(_compact_once)
        database.write_alone(_empty_log)
    except Overloaded:
        return False
    return True


def _merge_on(connection: apsw.Connection) -> bool:
    """The next pieces. Whether more than what others have written since the last ones was left."""
    return bm25_index.merge_alike(connection) and bm25_index.merge_alike(connection)


def _compact_once(connection: apsw.Connection) -> None:
    """What an SQLite without `secure_delete` wrote, such as an older server's, has free pages full of old text: written anew, once."""
    if connection.execute("SELECT 1 FROM properties WHERE name = ?", (_COMPACTED,)).get is None:
        connection.execute("VACUUM")
        connection.execute("INSERT OR REPLACE INTO properties VALUES (?, 'yes')", (_COMPACTED,))


def _empty_log(connection: apsw.Connection) -> None:
    connection.set_busy_timeout(CHECKPOINT_TIMEOUT_MS)
    try:
        connection.wal_checkpoint(None, apsw.SQLITE_CHECKPOINT_TRUNCATE)
    finally:
        connection.set_busy_timeout(BUSY_TIMEOUT_MS)
