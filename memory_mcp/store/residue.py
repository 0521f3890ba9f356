"""What deleted rows leave in SQLite's file, and how it gets out: words in the lexical index, pages in the write-ahead log, free pages.

Deleted cells and pages are overwritten with zeros by `secure_delete`, which every connection of ours has on. FTS5 keeps the words of
a deleted row until its segments are merged, and the log keeps older copies of every page until it is emptied.
"""

import apsw

from memory_mcp.errors import Overloaded
from memory_mcp.store.lexical import bm25_index
from memory_mcp.store.sqlite.database import BUSY_TIMEOUT_MS, Database

CHECKPOINT_PATIENCE_MS = 1_000
_COMPACTED = "compacted_for_erasing"


def sweep(database: Database) -> bool:
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
    connection.set_busy_timeout(CHECKPOINT_PATIENCE_MS)
    try:
        connection.wal_checkpoint(None, apsw.SQLITE_CHECKPOINT_TRUNCATE)
    finally:
        connection.set_busy_timeout(BUSY_TIMEOUT_MS)
