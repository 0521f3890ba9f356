"""What confirms or changes memories: when they were stored again, and what they replaced."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import apsw

from memory_mcp.store.operations import CONFIRM
from memory_mcp.store.timestamps import optional_from_text, to_text

_OF_MEMORIES = """
SELECT m.id,
    nullif(max(
        coalesce((SELECT max(s.created_at) FROM memories s
            WHERE s.write_digest = m.write_digest AND s.created_at > m.created_at AND s.deleted_at IS NULL), ''),
        coalesce((SELECT max(o.timestamp) FROM operations o WHERE o.key = m.key AND o.operation = ?1), '')), ''),
    (SELECT p.content FROM memories p WHERE p.key = m.supersedes AND p.deleted_at IS NULL AND (p.expires_at IS NULL OR p.expires_at > ?3))
FROM memories m WHERE m.id IN (SELECT value FROM json_each(?2))
"""


@dataclass(frozen=True, slots=True)
class Confirmation:
    """`confirmed_at` is when a memory was last stored again in the same words; `replaced` is the text of the one before it.

    `replaced` is None where that one is in the trash or has expired.
    """

    confirmed_at: datetime | None = None
    replaced: str | None = None


def of_memories(connection: apsw.Connection, ids: Sequence[int], now: datetime) -> Mapping[int, Confirmation]:
    """Memory → what confirms or changes it."""
    rows = connection.execute(_OF_MEMORIES, (CONFIRM, json.dumps(list(ids)), to_text(now)))
    return {memory_id: Confirmation(optional_from_text(confirmed_at), replaced) for memory_id, confirmed_at, replaced in rows}
