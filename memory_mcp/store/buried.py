"""What was erased for good, by the digests of the keys: a backup from before must not bring it back."""

from collections.abc import Mapping
from datetime import datetime

import apsw

from memory_mcp.store import erasure, lexical, memories, tombstones

TABLE = "tombstones"


def known(connection: apsw.Connection) -> dict[str, str]:
    """Digest → when it was erased, of all that this database has noted. It may be from before there were any."""
    return dict(tombstones.everything(connection)) if connection.table_exists(None, TABLE) else {}


def bury_again(connection: apsw.Connection, buried: Mapping[str, str], now: datetime) -> int:
    """Takes out of a copy what was erased after it was made, with the summaries that tell of it, and notes it there. Returns how many
    memories were erased again; summaries that are made anew don't count.

    Call it in a transaction. What deleted rows leave in the file stays there: whoever calls writes the file anew.
    """
    tombstones.take_over(connection, buried)
    every = [str(key) for (key,) in connection.execute("SELECT key FROM memories").fetchall()]
    risen = [key for key in every if tombstones.digest(key) in buried]
    if not risen:
        return 0
    found = list(memories.by_keys(connection, risen).values())
    for memory in found:
        memories.set_deleted(connection, memory.id, now)
    erasure.take_out(connection, found, now)
    lexical.rebuild(connection)  # what their neighbours quoted of them goes
    connection.execute("INSERT INTO lexical(lexical) VALUES ('optimize')")  # and what the index keeps of deleted rows
    return len(risen)
