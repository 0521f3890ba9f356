"""When memories expire: one of them, or all of a session."""

from datetime import datetime
from typing import Any

import apsw

from memory_mcp.domain import NEVER, Expiry
from memory_mcp.store.timestamps import optional_to_text, to_text


def expiry_text(expires_at: Expiry) -> str | None:
    """An expiry as it is stored."""
    return None if expires_at == NEVER else to_text(expires_at)


def set_expiry(connection: apsw.Connection, memory_id: int, expires_at: datetime | None) -> None:
    """Change when a memory expires, without a new revision."""
    connection.execute("UPDATE memories SET expires_at = ? WHERE id = ?", (optional_to_text(expires_at), memory_id))


def set_session_expiry(connection: apsw.Connection, session_id: str, expires_at: Expiry) -> list[tuple[str, str | None]]:
    """Change when the memories of a session expire, without those in the trash and summaries. Returns their keys, each with its earlier
    expiry.
    """
    rows: list[Any] = connection.execute(
        "SELECT key, expires_at FROM memories WHERE session_id = ? AND deleted_at IS NULL AND kind <> 'summary' ORDER BY id", (session_id,)
    ).fetchall()
    connection.execute(
        "UPDATE memories SET expires_at = ? WHERE session_id = ? AND deleted_at IS NULL AND kind <> 'summary'",
        (expiry_text(expires_at), session_id),
    )
    return rows


def next_expiry(connection: apsw.Connection) -> str | None:
    """When the next memory outside the trash expires, as it is stored; None for never."""
    earliest: str | None = connection.execute(
        "SELECT CAST(min(expires_at) AS TEXT) FROM memories WHERE expires_at IS NOT NULL AND deleted_at IS NULL"
    ).get
    return earliest
