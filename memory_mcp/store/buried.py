"""What was erased for good, by the digests of the keys: a backup from before must not bring it back."""

import hashlib
from collections.abc import Mapping
from datetime import datetime

import apsw

from memory_mcp.store import chunks, lexical
from memory_mcp.store.graph import mentions, relations
from memory_mcp.store.graph import queue as graph_queue

TABLE = "tombstones"


def digest(key: str) -> str:
    """SHA-256 of a memory's key, in hex."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


def known(connection: apsw.Connection) -> dict[str, str]:
    """Digest → when it was erased, of all that this database has noted."""
    if not connection.table_exists(None, TABLE):
        return {}
    return dict(connection.execute(f"SELECT key_digest, purged_at FROM {TABLE}"))


def bury_again(connection: apsw.Connection, buried: Mapping[str, str], now: datetime) -> int:
    """Takes out of a copy what was erased after it was made, and notes it there. Returns how many memories that were.

    Call it in a transaction. What deleted rows leave in the file stays there: whoever calls writes the file anew.
    """
    if connection.table_exists(None, TABLE):
        connection.executemany(f"INSERT OR IGNORE INTO {TABLE}(key_digest, purged_at) VALUES (?, ?)", list(buried.items()))
    risen = [(memory_id, key) for memory_id, key in connection.execute("SELECT id, key FROM memories") if digest(key) in buried]
    ids = [memory_id for memory_id, _ in risen]
    pairs = relations.pairs_of_memories(connection, ids)
    for memory_id, key in risen:
        mentions.remove(connection, memory_id)
        connection.execute("DELETE FROM relation_evidence WHERE memory = ?", (memory_id,))
        chunks.drop(connection, memory_id)
        connection.execute(
            "UPDATE memories SET supersedes = (SELECT supersedes FROM memories WHERE key = ?1) WHERE supersedes = ?1", (key,)
        )
        for table, column in (("memories", "id"), ("index_queue", "memory_id"), ("lexical", "rowid")):
            connection.execute(f"DELETE FROM {table} WHERE {column} = ?", (memory_id,))
        connection.execute("DELETE FROM memory_versions WHERE key = ?", (key,))
        connection.execute("UPDATE operations SET before = NULL, after = NULL, error = NULL, metadata = NULL WHERE key = ?", (key,))
    if risen:
        graph_queue.done(connection, ids)
        relations.sum_up(connection, pairs, now)
        lexical.rebuild(connection)  # what their neighbours quoted of them goes
        connection.execute("INSERT INTO lexical(lexical) VALUES ('optimize')")  # and what the index keeps of deleted rows
    return len(risen)
