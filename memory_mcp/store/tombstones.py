"""The keys of memories that were erased for good, as digests: so that an older copy does not bring them back."""

import hashlib
from collections.abc import Iterable, Mapping
from datetime import datetime

import apsw

from memory_mcp.store.timestamps import from_text, to_text


def digest(key: str) -> str:
    """SHA-256 of a key, in hex."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


def add(connection: apsw.Connection, keys: Iterable[str], now: datetime) -> None:
    """Notes that these were erased."""
    rows = [(digest(key), to_text(now)) for key in keys]
    connection.executemany("INSERT OR REPLACE INTO tombstones(key_digest, purged_at) VALUES (?, ?)", rows)


def erased_at(connection: apsw.Connection, key: str) -> datetime | None:
    """When the memory of this key was erased; None where none was."""
    found: str | None = connection.execute("SELECT purged_at FROM tombstones WHERE key_digest = ?", (digest(key),)).get
    return from_text(found) if found else None


def everything(connection: apsw.Connection) -> Mapping[str, str]:
    """Digest → time, of all. None where the database is from before there were any."""
    if not connection.table_exists(None, "tombstones"):
        return {}
    return dict(connection.execute("SELECT key_digest, purged_at FROM tombstones ORDER BY purged_at, key_digest"))


def take_over(connection: apsw.Connection, found: Mapping[str, str]) -> None:
    """Adds those of another copy of this persona; what is known already stays as it is."""
    connection.executemany("INSERT OR IGNORE INTO tombstones(key_digest, purged_at) VALUES (?, ?)", list(found.items()))
