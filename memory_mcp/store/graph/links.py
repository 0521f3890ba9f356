"""Memory to memory: what follows what in a conversation, what replaces what."""

import json
from collections.abc import Iterable
from datetime import datetime

import apsw

from memory_mcp.store.memories import EVENT_TIME
from memory_mcp.store.timestamps import to_text

# The ways of finding a link that follow from the memories, and are found anew.
DERIVED = ("rule", "vectors", "contradiction")
# The memory before each of these in its session, of those that are not in the trash.
_BEFORE = f"""
SELECT p.id, m.id FROM memories m JOIN memories p ON p.id = (
    SELECT q.id FROM memories q WHERE q.session_id = m.session_id AND q.deleted_at IS NULL
        AND (coalesce(q.occurred_at, q.created_at), q.id) < ({EVENT_TIME}, m.id)
    ORDER BY coalesce(q.occurred_at, q.created_at) DESC, q.id DESC LIMIT 1)
WHERE m.session_id IS NOT NULL AND m.deleted_at IS NULL AND m.id IN (SELECT value FROM json_each(?))
"""
# The memory after each of these: it follows another one now.
_AFTER = """
SELECT n.id FROM memories m JOIN memories n ON n.id = (
    SELECT q.id FROM memories q WHERE q.session_id = m.session_id AND q.deleted_at IS NULL
        AND (coalesce(q.occurred_at, q.created_at), q.id) > (coalesce(m.occurred_at, m.created_at), m.id)
    ORDER BY coalesce(q.occurred_at, q.created_at), q.id LIMIT 1)
WHERE m.session_id IS NOT NULL AND m.id IN (SELECT value FROM json_each(?))
"""
_REPLACED = """
SELECT m.id, p.id FROM memories m JOIN memories p ON p.key = m.supersedes
WHERE m.deleted_at IS NULL AND m.id <> p.id AND m.id IN (SELECT value FROM json_each(?))
"""


def link(connection: apsw.Connection, memory_ids: Iterable[int], now: datetime) -> None:
    """Links these memories to what went before them in their session (`temporal_sequence`) and to what they replace (`reference`)."""
    ids = set(memory_ids)
    ids |= {int(row[0]) for row in connection.execute(_AFTER, (json.dumps(sorted(ids)),))}
    wanted = json.dumps(sorted(ids))
    connection.execute(
        "DELETE FROM memory_links WHERE method = 'rule' AND target IN (SELECT value FROM json_each(?)) AND type = 'temporal_sequence'",
        (wanted,),
    )
    for query, type_ in ((_BEFORE, "temporal_sequence"), (_REPLACED, "reference")):
        connection.executemany(
            "INSERT OR IGNORE INTO memory_links(source, target, type, weight, confidence, method, created_at) VALUES (?,?,?,1,1,'rule',?)",
            [(source, target, type_, to_text(now)) for source, target in connection.execute(query, (wanted,)).fetchall()],
        )
