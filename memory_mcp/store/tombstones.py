"""Digests of the keys of purged memories, so that a restored backup or an import doesn't bring them back."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from datetime import datetime

import apsw

from memory_mcp.store.timestamps import from_text, to_text


def digest(key: str) -> str:
    """SHA-256 of a key, in hex."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


def add(connection: apsw.Connection, keys: Iterable[str], now: datetime) -> None:
    """Record that these memories were purged."""
    rows = [(digest(key), to_text(now)) for key in keys]
    connection.executemany("INSERT OR REPLACE INTO tombstones(key_digest, purged_at) VALUES (?, ?)", rows)


def erased_at(connection: apsw.Connection, key: str) -> datetime | None:
    """When the memory of this key was purged; None if it wasn't."""
    purged_at: str | None = connection.execute("SELECT purged_at FROM tombstones WHERE key_digest = ?", (digest(key),)).get
    return from_text(purged_at) if purged_at else None


def erased_among(connection: apsw.Connection, keys: Iterable[str]) -> set[str]:
    """Those of these keys whose memory was purged."""
    by_digest = {digest(key): key for key in keys}
    rows = connection.execute(
        "SELECT key_digest FROM tombstones WHERE key_digest IN (SELECT value FROM json_each(?))", (json.dumps([*by_digest]),)
    )
    return {by_digest[found] for (found,) in rows}


def read_all(connection: apsw.Connection) -> Mapping[str, str]:
    """Digest → time of the purge. Empty for a database from before tombstones."""
    if not connection.table_exists(None, "tombstones"):
        return {}
    return dict(connection.execute("SELECT key_digest, purged_at FROM tombstones ORDER BY purged_at, key_digest"))


def merge(connection: apsw.Connection, tombstones: Mapping[str, str]) -> None:
    """Add the tombstones of another copy of this persona; existing ones stay."""
    connection.executemany("INSERT OR IGNORE INTO tombstones(key_digest, purged_at) VALUES (?, ?)", list(tombstones.items()))
