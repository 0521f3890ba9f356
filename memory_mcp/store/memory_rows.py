"""Reads rows of the table of memories, also those that a person or another program has changed: each as a `Memory`, with what replaced it and what
confirms it.
"""

import json
import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

import apsw

from memory_mcp.domain import Confirmation, Memory
from memory_mcp.store.feedback import standing_against
from memory_mcp.store.operations import CONFIRM
from memory_mcp.store.sqlite.reading import json_ids
from memory_mcp.store.timestamps import from_text, optional_from_text, to_text

logger = logging.getLogger(__name__)

# The key of the memory that replaced another, directly or through replacements in the trash: C for A if B replaced A, C replaced B, and
# B is in the trash. A merge counts as a replacement. Most memories have none, which two lookups tell.
SUCCESSOR = """iif(
    EXISTS (SELECT 1 FROM memories s WHERE s.supersedes = m.key) OR EXISTS (SELECT 1 FROM merges g WHERE g.key = m.key), (
    WITH RECURSIVE successors(key, deleted_at) AS (
        SELECT s.key, s.deleted_at FROM memories s WHERE s.supersedes = m.key
        UNION SELECT k.key, k.deleted_at FROM merges g JOIN memories k ON k.key = g.into_key WHERE g.key = m.key
        UNION SELECT n.key, n.deleted_at FROM successors p JOIN memories n ON n.supersedes = p.key WHERE p.deleted_at IS NOT NULL
        UNION SELECT k.key, k.deleted_at FROM successors p JOIN merges g ON g.key = p.key JOIN memories k ON k.key = g.into_key
            WHERE p.deleted_at IS NOT NULL)
    SELECT key FROM successors WHERE deleted_at IS NULL LIMIT 1), NULL)"""
COLUMNS = (
    "m.id, m.key, m.content, m.created_at, m.updated_at, m.tags, m.occurred_at, m.importance, m.source, m.session_id, m.kind, "
    f"m.state, m.questions, m.revision, m.supersedes, {SUCCESSOR}, m.deleted_at, m.usage_count, m.last_used_at, m.metadata, "
    "m.category, m.privacy_level, m.micro_summary, m.expires_at"
)


def columns_with_beginnings(characters: int) -> str:
    """`COLUMNS` with no more than so many characters of each content. What is no text, in a row edited by hand, is read as it is."""
    return COLUMNS.replace("m.content", f"iif(typeof(m.content) = 'text', substr(m.content, 1, {characters}), m.content)")


def memory_of(row: tuple[Any, ...]) -> Memory:
    """The memory of a row. Unreadable values of a row edited by hand are left out: a slip hides no memory."""
    try:
        memory = _as_memory(row)
        if isinstance(row[2], str) and isinstance(memory.state, dict) and isinstance(memory.metadata, dict) and memory.created_at.tzinfo:
            return memory
    except (ValueError, TypeError):
        pass
    if columns := unreadable(row):
        logger.warning("the memory %s is read without its %s, which can't be read; see `memory-mcp doctor`", row[1], ", ".join(columns))
        row = tuple(_MENDED[index](row) if name in columns else value for index, (name, value) in enumerate(zip(_NAMES, row, strict=True)))
    return _as_memory(row)


def _as_memory(row: tuple[Any, ...]) -> Memory:
    values = list(row)
    for index, read in _READ.items():
        values[index] = read(values[index])
    return Memory(*values)


def unreadable(row: tuple[Any, ...]) -> list[str]:
    """The columns of a row that can't be read."""
    return [_NAMES[index] for index, is_readable in _READABLE.items() if row[index] is not None and not is_readable(row[index])]


def _is_moment(value: object) -> bool:
    try:
        return isinstance(value, str) and from_text(value).tzinfo is not None
    except ValueError:
        return False


def _is_json(kind: type, value: object) -> bool:
    try:
        return isinstance(value, str) and (not value or isinstance(json.loads(value), kind))
    except (ValueError, RecursionError):
        return False


def _some_moment(row: tuple[Any, ...]) -> str:
    return next((row[index] for index in (3, 4) if _is_moment(row[index])), to_text(datetime.fromtimestamp(0, UTC)))


# By the position of a column in COLUMNS: its name, what reads it, whether a value can be read, and the replacement for one that can't.
_NAMES = tuple(column.strip().removeprefix("m.") for column in COLUMNS.replace(SUCCESSOR, "superseded_by").split(","))
_READ: Mapping[int, Callable[[Any], Any]] = {
    **dict.fromkeys((3, 4), from_text),
    **dict.fromkeys((6, 16, 18, 23), optional_from_text),
    **dict.fromkeys((5, 12), lambda text: tuple(json.loads(text)) if text else ()),
    **dict.fromkeys((11, 19), lambda text: json.loads(text) if text else {}),
    22: lambda text: text or "",
}
_READABLE: Mapping[int, Callable[[object], bool]] = {
    2: lambda value: isinstance(value, str),
    **dict.fromkeys((3, 4, 6, 16, 18, 23), _is_moment),
    **dict.fromkeys((5, 12), partial(_is_json, list)),
    **dict.fromkeys((11, 19), partial(_is_json, dict)),
}
_MENDED: Mapping[int, Callable[[tuple[Any, ...]], Any]] = defaultdict(
    lambda: lambda _row: None,
    {
        2: lambda row: row[2].decode("utf-8", "replace") if isinstance(row[2], bytes) else str(row[2]),
        **dict.fromkeys((3, 4, 16), _some_moment),
    },
)


# When a memory was last stored again, and what it replaced.
_CONFIRMATION = """
    nullif(max(
        coalesce((SELECT max(s.created_at) FROM memories s
            WHERE s.write_digest = m.write_digest AND s.created_at > m.created_at AND s.deleted_at IS NULL), ''),
        coalesce((SELECT max(o.timestamp) FROM operations o WHERE o.key = m.key AND o.operation = ?2), '')), ''),
    (SELECT p.content FROM memories p WHERE p.key = m.supersedes AND p.deleted_at IS NULL AND (p.expires_at IS NULL OR p.expires_at > ?3))"""


def successors(connection: apsw.Connection, key: str) -> list[str]:
    """The keys of memories outside the trash that directly replace this one."""
    return [
        row[0] for row in connection.execute("SELECT key FROM memories WHERE supersedes = ? AND deleted_at IS NULL ORDER BY id", (key,))
    ]


def replaced_by(connection: apsw.Connection, successors: Sequence[Memory]) -> list[int]:
    """The ids of the memories that these replace or were merged from, recursively."""
    rows = connection.execute(
        "WITH RECURSIVE replaced(id, key, supersedes) AS ("
        "SELECT id, key, supersedes FROM memories WHERE key IN (SELECT value FROM json_each(?)) "
        "UNION SELECT b.id, b.key, b.supersedes FROM merges g JOIN memories b ON b.key = g.key "
        "WHERE g.into_key IN (SELECT value FROM json_each(?)) "
        "UNION SELECT p.id, p.key, p.supersedes FROM replaced r JOIN memories p ON p.key = r.supersedes "
        "UNION SELECT b.id, b.key, b.supersedes FROM replaced r JOIN merges g ON g.into_key = r.key JOIN memories b ON b.key = g.key) "
        "SELECT id FROM replaced",
        (json.dumps([memory.supersedes for memory in successors if memory.supersedes]), json.dumps([memory.key for memory in successors])),
    )
    return [row[0] for row in rows]


def confirmations(connection: apsw.Connection, ids: Sequence[int], now: datetime) -> Mapping[int, Confirmation]:
    """Memory → what confirms or changes it."""
    rows = _confirmed(connection, "m.id", ids, now)
    against = standing_against(connection, ids)
    return {
        memory_id: Confirmation(optional_from_text(confirmed_at), replaced, against.get(memory_id))
        for memory_id, confirmed_at, replaced in rows
    }


def confirmed_memories(connection: apsw.Connection, ids: Sequence[int], now: datetime) -> tuple[dict[int, Memory], dict[int, Confirmation]]:
    """The memories with these ids, and what confirms or changes them."""
    read = {}
    confirmed = {}
    for *row, confirmed_at, replaced in _confirmed(connection, COLUMNS, ids, now):
        memory = memory_of(tuple(row))
        read[memory.id] = memory
        confirmed[memory.id] = Confirmation(optional_from_text(confirmed_at), replaced)
    return read, confirmed


def _confirmed(connection: apsw.Connection, columns: str, ids: Sequence[int], now: datetime) -> Iterable[Any]:
    sql = f"SELECT {columns}, {_CONFIRMATION} FROM memories m WHERE m.id IN (SELECT value FROM json_each(?1))"
    return connection.execute(sql, (json_ids(ids), CONFIRM, to_text(now)))
