"""The table of memories: inserts drafts, changes rows, and reads them as `Memory` objects."""

import base64
import hashlib
import itertools
import json
import logging
import secrets
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import astuple
from datetime import UTC, datetime
from functools import partial
from typing import Any, Literal

import apsw

from memory_mcp.dates.statements import SPANS_LIMIT
from memory_mcp.domain import NEVER, Draft, Expiry, Filters, Memory, Origin, PrivacyLevel
from memory_mcp.store.memory_dates import NAMED_IN
from memory_mcp.store.sqlite.bulk_rows import bulk_rows
from memory_mcp.store.timestamps import from_text, optional_from_text, optional_to_text, to_text
from memory_mcp.text.micro_summary import micro_summary

logger = logging.getLogger(__name__)

# A longer turn that ends in a question says something, too.
QUESTION_CHARACTERS = 100.0

EVENT_TIME = "coalesce(m.occurred_at, m.created_at)"
# When a memory was told, or happened, if that was earlier: a plan stands where it was told, an imported diary at its own days.
TOLD_TIME = "min(coalesce(m.occurred_at, m.created_at), m.created_at)"
# The key of the memory that replaced another, directly or through replacements in the trash: C for A if B replaced A, C replaced B, and
# B is in the trash. A merge counts as a replacement.
_SUCCESSOR = """(
    WITH RECURSIVE successors(key, deleted_at) AS (
        SELECT s.key, s.deleted_at FROM memories s WHERE s.supersedes = m.key
        UNION SELECT k.key, k.deleted_at FROM merges g JOIN memories k ON k.key = g.into_key WHERE g.key = m.key
        UNION SELECT n.key, n.deleted_at FROM successors p JOIN memories n ON n.supersedes = p.key WHERE p.deleted_at IS NOT NULL
        UNION SELECT k.key, k.deleted_at FROM successors p JOIN merges g ON g.key = p.key JOIN memories k ON k.key = g.into_key
            WHERE p.deleted_at IS NOT NULL)
    SELECT key FROM successors WHERE deleted_at IS NULL LIMIT 1)"""
_COLUMNS = (
    "m.id, m.key, m.content, m.created_at, m.updated_at, m.tags, m.occurred_at, m.importance, m.source, m.session_id, m.kind, "
    f"m.state, m.questions, m.revision, m.supersedes, {_SUCCESSOR}, m.deleted_at, m.usage_count, m.last_used_at, m.metadata, "
    "m.category, m.privacy_level, m.micro_summary, m.expires_at"
)
# A current memory: neither in the trash nor replaced by another.
CURRENT = f"m.deleted_at IS NULL AND {_SUCCESSOR} IS NULL"


def write_digest(draft: Draft) -> str:
    """The digest by which repeated writes are recognized: of content, source, session, and event time if given."""
    occurred_at = optional_to_text(draft.occurred_at)
    same = json.dumps([draft.content, draft.source, draft.session_id, occurred_at], ensure_ascii=False)
    return hashlib.sha256(same.encode()).hexdigest()


def find_same_write(connection: apsw.Connection, draft: Draft, since: datetime | None) -> str | None:
    """The key of a memory outside the trash that was stored by the same write, at `since` or later; None if there is none."""
    row = connection.execute(
        "SELECT key FROM memories WHERE write_digest = ? AND deleted_at IS NULL AND created_at >= ? ORDER BY id LIMIT 1",
        (write_digest(draft), to_text(since) if since else ""),
    ).fetchone()
    return row[0] if row else None


def insert(connection: apsw.Connection, draft: Draft, now: datetime, local_now: datetime) -> tuple[int, str]:
    """Insert a draft. Returns its id and key."""
    restored = draft.restored
    key = restored.key or _fresh_key(connection, local_now)
    memory_id = connection.execute("SELECT coalesce(max(id), 0) + 1 FROM memories").get
    connection.execute(
        "INSERT INTO memories(id, key, content, created_at, updated_at, tags, occurred_at, importance, source, session_id, kind, state, "
        "questions, revision, supersedes, deleted_at, usage_count, last_used_at, write_digest, metadata, category, privacy_level, micro_summary, "
        f"expires_at) VALUES ({','.join('?' * 24)})",
        (
            memory_id,
            key,
            draft.content,
            to_text(restored.created_at or now),
            to_text(restored.updated_at or restored.created_at or now),
            _json(draft.tags),
            optional_to_text(draft.occurred_at),
            draft.importance,
            draft.source,
            draft.session_id,
            draft.kind,
            _json(draft.state) if draft.state else None,
            _json(draft.questions) if draft.questions else None,
            restored.revision,
            draft.supersedes,
            optional_to_text(restored.deleted_at),
            restored.usage_count,
            optional_to_text(restored.last_used_at),
            write_digest(draft),
            _json(draft.metadata) if draft.metadata else None,
            draft.category,
            draft.privacy_level,
            micro_summary(draft.content),
            optional_to_text(draft.expires_at),
        ),
    )
    return memory_id, key


def change(
    connection: apsw.Connection,
    memory: Memory,
    content: str,
    tags: Sequence[str],
    importance: float,
    now: datetime,
    category: str | None = None,
    privacy_level: PrivacyLevel | None = None,
    expires_at: Expiry | None = None,
) -> int:
    """Change a memory. None keeps the category, privacy level or expiry; an empty category removes it. Returns the new revision."""
    revision = memory.revision + 1
    draft = Draft(content=content, source=memory.source, session_id=memory.session_id, occurred_at=memory.occurred_at)
    connection.execute(
        "UPDATE memories SET content = ?, tags = ?, importance = ?, updated_at = ?, revision = ?, write_digest = ?, category = ?, "
        "privacy_level = ?, micro_summary = ?, expires_at = ? WHERE id = ?",
        (
            content,
            _json(tags),
            importance,
            to_text(now),
            revision,
            write_digest(draft),
            (memory.category if category is None else category) or None,
            privacy_level or memory.privacy_level,
            micro_summary(content),
            optional_to_text(memory.expires_at) if expires_at is None else expiry_text(expires_at),
            memory.id,
        ),
    )
    return revision


def expiry_text(expires_at: Expiry) -> str | None:
    """An expiry as it is stored."""
    return None if expires_at == NEVER else to_text(expires_at)


def set_expiry(connection: apsw.Connection, memory_id: int, expires_at: datetime | None) -> None:
    """Change when a memory expires, without a new revision."""
    connection.execute("UPDATE memories SET expires_at = ? WHERE id = ?", (optional_to_text(expires_at), memory_id))


def set_session_expiry(connection: apsw.Connection, session_id: str, expires_at: Expiry) -> list[tuple[str, str | None]]:
    """Change when the memories of a session expire, without those in the trash and summaries. Returns their keys, each with its earlier expiry."""
    rows: list[Any] = connection.execute(
        "SELECT key, expires_at FROM memories WHERE session_id = ? AND deleted_at IS NULL AND kind <> 'summary' ORDER BY id", (session_id,)
    ).fetchall()
    connection.execute(
        "UPDATE memories SET expires_at = ? WHERE session_id = ? AND deleted_at IS NULL AND kind <> 'summary'",
        (expiry_text(expires_at), session_id),
    )
    return rows


def has_expired(connection: apsw.Connection, now: datetime) -> bool:
    """Whether a memory outside the trash has expired."""
    return (
        connection.execute("SELECT 1 FROM memories WHERE expires_at <= ? AND deleted_at IS NULL LIMIT 1", (to_text(now),)).get is not None
    )


def next_expiry(connection: apsw.Connection) -> datetime | None:
    """When the next memory outside the trash expires; None for never."""
    earliest: str | None = connection.execute(
        "SELECT min(expires_at) FROM memories WHERE expires_at IS NOT NULL AND deleted_at IS NULL"
    ).get
    return optional_from_text(earliest)


def set_deleted(connection: apsw.Connection, memory_id: int, deleted_at: datetime | None) -> None:
    """Move a memory to the trash, or restore it."""
    connection.execute("UPDATE memories SET deleted_at = ? WHERE id = ?", (optional_to_text(deleted_at), memory_id))


def by_keys(connection: apsw.Connection, keys: Sequence[str]) -> dict[str, Memory]:
    """The memories with these keys, including deleted and replaced ones."""
    rows = connection.execute(f"SELECT {_COLUMNS} FROM memories m WHERE m.key IN (SELECT value FROM json_each(?))", (_json(keys),))
    return {memory.key: memory for memory in map(_memory, rows)}


def keys_with_prefix(connection: apsw.Connection, prefix: str) -> list[str]:
    """The keys that begin with `prefix`."""
    last = prefix + "\U0010ffff"
    return [row[0] for row in connection.execute("SELECT key FROM memories WHERE key >= ? AND key < ? ORDER BY key", (prefix, last))]


def of_vault(connection: apsw.Connection, vault: str) -> list[tuple[str, str]]:
    """The keys of memories outside the trash that an import of notes made from this vault, each with the path of its note, in the order of both."""
    rows = connection.execute(
        "SELECT key, json_extract(metadata, '$.origin.note') FROM memories WHERE key >= 'obsidian_' AND key < 'obsidian`' AND deleted_at IS NULL "
        "AND json_valid(metadata) AND json_extract(metadata, '$.origin.vault') = ? AND json_type(metadata, '$.origin.note') = 'text' ORDER BY 2, 1",
        (vault,),
    )
    return [(key, note) for key, note in rows]


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
        (_json([memory.supersedes for memory in successors if memory.supersedes]), _json([memory.key for memory in successors])),
    )
    return [row[0] for row in rows]


def by_ids(connection: apsw.Connection, ids: Iterable[int]) -> dict[int, Memory]:
    """The memories with these ids."""
    rows = connection.execute(f"SELECT {_COLUMNS} FROM memories m WHERE m.id IN (SELECT value FROM json_each(?))", (_json(list(ids)),))
    return {memory.id: memory for memory in map(_memory, rows)}


def recent(connection: apsw.Connection, filters: Filters, limit: int, *, without_summaries: bool = False) -> list[Memory]:
    """The current memories that match the filters, the latest told or happened first."""
    condition, values = where(filters)
    condition += " AND m.kind <> 'summary'" if without_summaries else ""
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM memories m WHERE {CURRENT} {condition} ORDER BY {TOLD_TIME} DESC, m.id DESC LIMIT ?", (*values, limit)
    )
    return [_memory(row) for row in rows]


def upcoming(connection: apsw.Connection, start: datetime, end: datetime, limit: int) -> list[Memory]:
    """The current memories of a time within this range, of those that happen then or name it, the nearest first; without summaries."""
    span = (to_text(start), to_text(end))
    # Each of the two lists ends where no later entry can be among the nearest: a month may be named by a tenth of all memories.
    current = f"{CURRENT} AND m.kind <> 'summary'"
    rows = connection.execute(
        "WITH dated(id, start) AS ("
        "SELECT * FROM (SELECT m.id, d.start FROM memory_dates d CROSS JOIN memories m ON m.id = d.memory "
        f"WHERE d.start >= ?1 AND d.start < ?2 AND {current} ORDER BY d.start, d.rowid LIMIT ?3 * {SPANS_LIMIT}) UNION ALL "
        f"SELECT * FROM (SELECT m.id, m.occurred_at FROM memories m WHERE {EVENT_TIME} >= ?1 AND {EVENT_TIME} < ?2 "
        f"AND m.occurred_at IS NOT NULL AND {current} ORDER BY {EVENT_TIME}, m.id LIMIT ?3)), "
        "nearest AS (SELECT id, min(start) AS start FROM dated GROUP BY id) "
        f"SELECT {_COLUMNS} FROM nearest n JOIN memories m ON m.id = n.id ORDER BY n.start, m.id LIMIT ?3",
        (*span, limit),
    )
    return [_memory(row) for row in rows]


def page_for_export(
    connection: apsw.Connection, after_id: int, limit: int, include_deleted: bool, include_secret: bool = False
) -> list[Memory]:
    """The next memories in the order in which they were stored. Secret ones only on request."""
    condition = ("" if include_deleted else "AND m.deleted_at IS NULL ") + ("" if include_secret else "AND m.privacy_level <> 'secret'")
    rows = connection.execute(f"SELECT {_COLUMNS} FROM memories m WHERE m.id > ? {condition} ORDER BY m.id LIMIT ?", (after_id, limit))
    return [_memory(row) for row in rows]


def secret_count(connection: apsw.Connection, include_deleted: bool) -> int:
    """The number of secret memories, which an export leaves out."""
    condition = "" if include_deleted else "AND deleted_at IS NULL"
    count: int = connection.execute(f"SELECT count(*) FROM memories WHERE privacy_level = 'secret' {condition}").get
    return count


def origins(connection: apsw.Connection, ids: Iterable[int]) -> dict[int, Origin]:
    """Memory → its times, source, and session."""
    sql = (
        f"SELECT m.id, {EVENT_TIME} AS event_time, m.source, m.session_id, {TOLD_TIME} AS told, m.occurred_at IS NOT NULL AS dated, "
        f"min(1.0, {QUESTION_CHARACTERS} / length(m.content)) * (substr(rtrim(m.content), -1) IN ('?', '？')) AS asks FROM memories m WHERE m.id IN (SELECT value FROM json_each(?))"
    )
    rows = bulk_rows(connection, "id, event_time, source, session_id, told, dated, asks", sql, (_json(list(ids)),))
    return {
        memory_id: Origin(event_time, source, session_id, told, bool(dated), asks)
        for memory_id, event_time, source, session_id, told, dated, asks in rows
    }


def adjacent_turns(connection: apsw.Connection, ids: Iterable[int], side: Literal["before", "after"]) -> dict[int, int]:
    """Memory → the turn just before or after it in its session, for those that have one."""
    sign: Literal["<", ">"] = "<" if side == "before" else ">"
    order = "DESC" if side == "before" else "ASC"
    sql = (
        "SELECT m.id AS turn, (SELECT o.id FROM memories o WHERE o.session_id = m.session_id AND o.deleted_at IS NULL "
        f"AND o.kind <> 'summary' AND {session_order('o', sign, 'm')} ORDER BY {event_time_of('o')} {order}, o.id {order} LIMIT 1) AS adjacent "
        "FROM memories m WHERE m.id IN (SELECT value FROM json_each(?)) AND m.session_id IS NOT NULL"
    )
    return {turn: other for turn, other in bulk_rows(connection, "turn, adjacent", sql, (_json(list(ids)),)) if other is not None}


def sources(connection: apsw.Connection, ids: Iterable[int]) -> list[str]:
    """Who said these memories, each once."""
    wanted = _json(list(ids))
    rows = connection.execute(
        "SELECT DISTINCT source FROM memories WHERE source IS NOT NULL AND id IN (SELECT value FROM json_each(?))", (wanted,)
    )
    return [row[0] for row in rows]


def ids_in_range(connection: apsw.Connection, filters: Filters, limit: int) -> list[int]:
    """The ids of the latest current memories that match the filters, without summaries."""
    condition, values = where(filters)
    rows = connection.execute(
        f"SELECT m.id FROM memories m WHERE {CURRENT} AND m.kind <> 'summary' {condition} ORDER BY {EVENT_TIME} DESC, m.id DESC LIMIT ?",
        (*values, limit),
    )
    return [row[0] for row in rows]


def where(filters: Filters) -> tuple[str, tuple[Any, ...]]:
    """The filters as SQL conditions on `memories m`, each beginning with AND, and their values."""
    conditions: list[str] = []
    values: list[Any] = []
    for tag in filters.tags:
        conditions.append("AND EXISTS (SELECT 1 FROM json_each(iif(json_valid(m.tags), m.tags, '[]')) WHERE value = ? COLLATE NOCASE)")
        values.append(tag)
    if filters.date_range:
        start, end, besides = (to_text(moment) if moment else "" for moment in astuple(filters.date_range))
        conditions.append(f"AND (({EVENT_TIME} >= ? AND {EVENT_TIME} < ? AND {EVENT_TIME} <> ?) OR {NAMED_IN})")
        values += [start, end, besides, end, start]
    if filters.kind == "summary":  # summaries are few and have an index of their own, unlike a scan by time
        conditions.append("AND m.id IN (SELECT id FROM memories WHERE kind = 'summary')")
    elif filters.kind:
        conditions.append("AND m.kind = ?")
        values.append(filters.kind)
    compared = {
        "m.importance >= ?": filters.min_importance,
        "m.category = ? COLLATE NOCASE": filters.category,
        "m.id IN (SELECT id FROM memories WHERE session_id = ?)": filters.session_id,  # by its index: a session is few of all matches
        "m.source = ? COLLATE NOCASE": filters.source,
        "coalesce(m.source, '') NOT IN (SELECT value FROM json_each(?))": filters.other_sources and json.dumps(filters.other_sources),
        "(m.expires_at IS NULL OR m.expires_at > ?)": optional_to_text(filters.unexpired_at),
    }
    conditions += [f"AND {condition}" for condition, value in compared.items() if value]
    values += [value for value in compared.values() if value]
    return " ".join(conditions), tuple(values)


def counts(connection: apsw.Connection) -> dict[str, int]:
    """The numbers of memories that are current, replaced, and in the trash."""
    total: int = connection.execute("SELECT count(*) FROM memories").get
    deleted: int = connection.execute("SELECT count(*) FROM memories WHERE deleted_at IS NOT NULL").get
    superseded: int = connection.execute(
        "SELECT count(*) FROM memories m WHERE m.deleted_at IS NULL "
        f"AND m.key IN (SELECT supersedes FROM memories WHERE supersedes IS NOT NULL) AND NOT ({CURRENT})"
    ).get
    return {"memories": total - deleted - superseded, "superseded": superseded, "in_trash": deleted}


def counts_by_kind(connection: apsw.Connection) -> dict[str, int]:
    """Kind → number of current memories."""
    return dict(connection.execute(f"SELECT m.kind, count(*) FROM memories m WHERE {CURRENT} GROUP BY m.kind ORDER BY m.kind"))


def span(connection: apsw.Connection) -> tuple[datetime, datetime] | None:
    """The first and last event time of the memories outside the trash."""
    ends: tuple[str | None, str | None] = connection.execute(
        f"SELECT min({EVENT_TIME}), max({EVENT_TIME}) FROM memories m WHERE m.deleted_at IS NULL"
    ).get
    first, last = ends
    return (from_text(first), from_text(last)) if first and last else None


def _fresh_key(connection: apsw.Connection, local_now: datetime) -> str:
    while True:
        suffix = base64.b32encode(secrets.token_bytes(5)).decode().lower()
        key = f"memory_{local_now:%Y%m%d%H%M%S}_{suffix}"
        if connection.execute("SELECT 1 FROM memories WHERE key = ?", (key,)).get is None:
            return key


def malformed(connection: apsw.Connection, limit: int) -> list[tuple[str, list[str]]]:
    """Keys of rows that a person or another program has changed so that they can't be read as they are, and the columns that can't."""
    rows = connection.execute(f"SELECT {_COLUMNS} FROM memories m ORDER BY m.id")
    changed = ((str(row[1]), columns) for row in rows if (columns := _unreadable(row)))
    return list(itertools.islice(changed, limit))


def _memory(row: tuple[Any, ...]) -> Memory:
    """The memory of a row. What can't be read of one that somebody has changed is left out: a slip by hand hides no memory."""
    try:
        memory = _as_memory(row)
        if isinstance(row[2], str) and isinstance(memory.state, dict) and isinstance(memory.metadata, dict) and memory.created_at.tzinfo:
            return memory
    except (ValueError, TypeError):
        pass
    if columns := _unreadable(row):
        logger.warning("the memory %s is read without its %s, which can't be read; see `memory-mcp doctor`", row[1], ", ".join(columns))
        row = tuple(_MENDED[index](row) if name in columns else value for index, (name, value) in enumerate(zip(_NAMES, row, strict=True)))
    return _as_memory(row)


def _as_memory(row: tuple[Any, ...]) -> Memory:
    return Memory(
        id=row[0],
        key=row[1],
        content=row[2],
        created_at=from_text(row[3]),
        updated_at=from_text(row[4]),
        tags=tuple(json.loads(row[5])) if row[5] else (),
        occurred_at=optional_from_text(row[6]),
        importance=row[7],
        source=row[8],
        session_id=row[9],
        kind=row[10],
        state=json.loads(row[11]) if row[11] else {},
        questions=tuple(json.loads(row[12])) if row[12] else (),
        revision=row[13],
        supersedes=row[14],
        superseded_by=row[15],
        deleted_at=optional_from_text(row[16]),
        usage_count=row[17],
        last_used_at=optional_from_text(row[18]),
        metadata=json.loads(row[19]) if row[19] else {},
        category=row[20],
        privacy_level=row[21],
        micro_summary=row[22] or "",
        expires_at=optional_from_text(row[23]),
    )


def _unreadable(row: tuple[Any, ...]) -> list[str]:
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


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _text_of(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _some_moment(row: tuple[Any, ...]) -> str:
    return next((row[index] for index in (3, 4) if _is_moment(row[index])), to_text(datetime.fromtimestamp(0, UTC)))


def _nothing(_row: tuple[Any, ...]) -> None:
    return None


# By the place of a column in _COLUMNS: its name, whether a value can be read, and what stands in for one that can't.
_NAMES = tuple(column.strip().removeprefix("m.") for column in _COLUMNS.replace(_SUCCESSOR, "superseded_by").split(","))
_READABLE: Mapping[int, Callable[[object], bool]] = {
    2: _is_text,
    **dict.fromkeys((3, 4, 6, 16, 18, 23), _is_moment),
    **dict.fromkeys((5, 12), partial(_is_json, list)),
    **dict.fromkeys((11, 19), partial(_is_json, dict)),
}
_MENDED: Mapping[int, Callable[[tuple[Any, ...]], Any]] = defaultdict(
    lambda: _nothing, {2: lambda row: _text_of(row[2]), **dict.fromkeys((3, 4, 16), _some_moment)}
)


def _json(value: Sequence[Any] | Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False)


def event_time_of(table: str) -> str:
    """The SQL expression of a memory's event time, as in the index of sessions."""
    return f"coalesce({table}.occurred_at, {table}.created_at)"


def session_order(table: str, sign: Literal["<", ">"], other: str) -> str:
    """The SQL condition that `table` comes before (`<`) or after (`>`) `other` in a session: by event time, then by id.

    The time is also compared alone, because SQLite uses no index for a row value and would scan the whole session.
    """
    return f"{event_time_of(table)} {sign}= {event_time_of(other)} AND ({event_time_of(table)}, {table}.id) {sign} ({event_time_of(other)}, {other}.id)"
