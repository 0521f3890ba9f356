"""What was erased for good, by the digests of the keys: a backup from before must not bring it back."""

import hashlib
from collections.abc import Mapping
from datetime import datetime

import apsw

from memory_mcp.store import erasure, lexical, memories

TABLE = "tombstones"
RULE = "erased after this backup"


def digest(key: str) -> str:
    """SHA-256 of a memory's key, in hex."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


def known(connection: apsw.Connection) -> dict[str, str]:
    """Digest → when it was erased, of all that this database has noted."""
    if not connection.table_exists(None, TABLE):
        return {}
    return dict(connection.execute(f"SELECT key_digest, purged_at FROM {TABLE}"))


def bury_again(connection: apsw.Connection, buried: Mapping[str, str], now: datetime) -> int:
    """Takes out of a copy what was erased after it was made, with all that says it again, and notes it there. Returns how many memories
    that were.

    Call it in a transaction. What deleted rows leave in the file stays there: whoever calls writes the file anew.
    """
    risen = [key for (key,) in connection.execute("SELECT key FROM memories") if digest(key) in buried]
    if risen:
        erasure.erase(connection, list(memories.by_keys(connection, risen).values()), now, rule=RULE)
        lexical.rebuild(connection)  # what their neighbours quoted of them goes
        connection.execute("INSERT INTO lexical(lexical) VALUES ('optimize')")  # and what the index keeps of deleted rows
    connection.executemany(f"INSERT OR REPLACE INTO {TABLE}(key_digest, purged_at) VALUES (?, ?)", list(buried.items()))
    return len(risen)
