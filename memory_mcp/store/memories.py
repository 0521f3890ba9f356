"""The table of memories: inserts drafts, changes rows, and reads them as `Memory` objects."""

import hashlib
import itertools
import json
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import astuple, replace
from datetime import datetime, time, timedelta
from string import ascii_lowercase
from typing import Any
from zoneinfo import ZoneInfo

import apsw

from memory_mcp.dates.statements import SPANS_LIMIT
from memory_mcp.domain import ROLE, ROLES, Draft, Expiry, Filters, Memory, Origin, PrivacyLevel
from memory_mcp.language.budget import PREVIEW_CHARACTERS, preview
from memory_mcp.language.sentences import micro_summary
from memory_mcp.store import feedback, tombstones
from memory_mcp.store.expiry import expiry_text
from memory_mcp.store.memory_dates import NAMED_IN
from memory_mcp.store.memory_rows import COLUMNS, SUCCESSOR, columns_with_beginnings, memory_of, unreadable
from memory_mcp.store.sqlite.reading import bulk_rows, json_ids
from memory_mcp.store.timestamps import from_text, optional_to_text, to_text

# A memory has up to 200,000 characters.
EXPORT_CHARACTERS = 1_000_000
# A longer turn that ends in a question is a statement, too.
QUESTION_CHARACTERS = 100.0

EVENT_TIME = "coalesce(m.occurred_at, m.created_at)"
# The role that an importer told; what an assistant keeps in mind about the user is the user's.
_ROLE_TOLD = (
    f"iif(json_valid(m.metadata), coalesce(m.metadata ->> '$.{ROLE}', iif(m.metadata ->> '$.origin.memory' IS NULL, NULL, 'user')), NULL)"
)
# What lasts longer, such as a year, is not upcoming any more once it has begun.
LONGEST_UNDER_WAY = timedelta(days=35)
# The memory's place in the timeline: when it was stored, or when it happened if that was earlier. So a plan is listed on the day of
# planning, an imported diary on its own days.
TOLD_TIME = "min(coalesce(m.occurred_at, m.created_at), m.created_at)"
# The tag of what must never be forgotten, and what may be such a memory.
_KEPT = "instr(m.tags, '\"keep\"') > 0"
THAT_MATTER = "(m.importance > 0.5 OR instr(m.tags, '\"keep\"') > 0)"
# A current memory: neither in the trash nor replaced by another.
CURRENT = f"m.deleted_at IS NULL AND {SUCCESSOR} IS NULL"
# The same as `m.deleted_at IS NULL AND NOT (CURRENT)`, by the index of what is replaced.
_SUPERSEDED = f"m.deleted_at IS NULL AND m.key IN (SELECT supersedes FROM memories WHERE supersedes IS NOT NULL) AND NOT ({CURRENT})"


_INSERT = (
    "INSERT INTO memories(id, key, content, created_at, updated_at, tags, occurred_at, importance, source, session_id, kind, state, "
    "questions, revision, supersedes, deleted_at, usage_count, last_used_at, write_digest, metadata, category, privacy_level, micro_summary, "
    f"expires_at) VALUES ((SELECT coalesce(max(id), 0) + 1 FROM memories){', ?' * 23}) RETURNING id"
)


def write_digest(draft: Draft) -> str:
    """The digest by which repeated writes are recognized: of content, source, session, and event time if given."""
    occurred_at = optional_to_text(draft.occurred_at)
    same = _json([draft.content, draft.source, draft.session_id, occurred_at])
    return hashlib.sha256(same.encode()).hexdigest()


def set_predecessor(connection: apsw.Connection, memory_id: int, key: str | None) -> None:
    """Notes that a memory replaces the one with this key; None: none."""
    connection.execute("UPDATE memories SET supersedes = ? WHERE id = ?", (key, memory_id))


def find_same_write(connection: apsw.Connection, draft: Draft, since: datetime | None) -> str | None:
    """The key of a memory outside the trash that was stored by the same write, at `since` or later; None if there is none.

    A memory that was replaced since is another write's if the draft replaces something else: the fact has changed back.
    """
    row = connection.execute(
        f"SELECT m.key FROM memories m WHERE m.write_digest = ?1 AND m.deleted_at IS NULL AND m.created_at >= ?2 "
        f"AND (m.supersedes IS ?3 OR ?3 IS NULL OR {SUCCESSOR} IS NULL) ORDER BY m.supersedes IS ?3 DESC, m.id LIMIT 1",
        (write_digest(draft), to_text(since) if since else "", draft.supersedes),
    ).fetchone()
    return row[0] if row else None


def stored_writes(connection: apsw.Connection, digests: Sequence[str]) -> set[str]:
    """Those of these digests of writes that a memory has, wherever it is."""
    rows = connection.execute("SELECT write_digest FROM memories WHERE write_digest IN (SELECT value FROM json_each(?))", (_json(digests),))
    return {digest for (digest,) in rows}


def insert(connection: apsw.Connection, draft: Draft, now: datetime, write: str | None = None) -> tuple[int, str]:
    """Insert a draft, whose digest is `write`. Returns its id and key."""
    restored = draft.restored
    key = restored.key or _fresh_key(connection)
    inserted = connection.execute(
        _INSERT,
        (
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
            write or write_digest(draft),
            _json(draft.metadata) if draft.metadata else None,
            draft.category,
            draft.privacy_level,
            micro_summary(draft.content),
            optional_to_text(draft.expires_at),
        ),
    )
    memory_id = int(inserted.get)
    if restored.feedback:
        feedback.add(connection, memory_id, restored.feedback)
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
    source: str | None = None,
    occurred_at: datetime | None = None,
) -> int:
    """Change a memory. None keeps a category, privacy level, expiry, speaker or time; an empty category removes it. Returns the new revision."""
    revision = memory.revision + 1
    source, occurred_at = source or memory.source, occurred_at or memory.occurred_at
    draft = Draft(content=content, source=source, session_id=memory.session_id, occurred_at=occurred_at)
    connection.execute(
        "UPDATE memories SET content = ?, tags = ?, importance = ?, updated_at = ?, revision = ?, write_digest = ?, category = ?, "
        "privacy_level = ?, micro_summary = ?, expires_at = ?, source = ?, occurred_at = ? WHERE id = ?",
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
            source,
            optional_to_text(occurred_at),
            memory.id,
        ),
    )
    return revision


def set_questions(connection: apsw.Connection, memory_id: int, questions: Sequence[str]) -> None:
    """Replace the questions that a memory answers."""
    connection.execute("UPDATE memories SET questions = ? WHERE id = ?", (_json(questions) if questions else None, memory_id))


def set_deleted(connection: apsw.Connection, memory_id: int, deleted_at: datetime | None) -> None:
    """Move a memory to the trash, or restore it."""
    connection.execute("UPDATE memories SET deleted_at = ? WHERE id = ?", (optional_to_text(deleted_at), memory_id))


def by_keys(connection: apsw.Connection, keys: Sequence[str]) -> dict[str, Memory]:
    """The memories with these keys, including deleted and replaced ones."""
    rows = connection.execute(f"SELECT {COLUMNS} FROM memories m WHERE m.key IN (SELECT value FROM json_each(?))", (_json(keys),))
    return {memory.key: memory for memory in map(memory_of, rows)}


def stored_keys(connection: apsw.Connection, keys: Sequence[str]) -> set[str]:
    """Those of these keys that a memory has, wherever it is."""
    return {key for (key,) in connection.execute("SELECT key FROM memories WHERE key IN (SELECT value FROM json_each(?))", (_json(keys),))}


def ids_of_keys(connection: apsw.Connection, keys: Sequence[str]) -> list[int]:
    """The ids of the memories with these keys, including deleted and replaced ones."""
    return [row[0] for row in connection.execute("SELECT id FROM memories WHERE key IN (SELECT value FROM json_each(?))", (_json(keys),))]


def keys_with_prefix(connection: apsw.Connection, prefix: str) -> list[str]:
    """The keys that begin with `prefix`."""
    last = prefix + "\U0010ffff"
    return [row[0] for row in connection.execute("SELECT key FROM memories WHERE key >= ? AND key < ? ORDER BY key", (prefix, last))]


def of_vault(connection: apsw.Connection, vault: str) -> list[tuple[str, str]]:
    """The keys of memories outside the trash that an import of notes made from this vault, each with the path of its note, in the order
    of both.
    """
    rows = connection.execute(
        "SELECT key, json_extract(metadata, '$.origin.note') FROM memories WHERE key >= 'obsidian_' AND key < 'obsidian`' AND deleted_at IS NULL "
        "AND json_valid(metadata) AND json_extract(metadata, '$.origin.vault') = ? AND json_type(metadata, '$.origin.note') = 'text' ORDER BY 2, 1",
        (vault,),
    )
    return [(key, note) for key, note in rows]


def by_ids(connection: apsw.Connection, ids: Iterable[int]) -> dict[int, Memory]:
    """The memories with these ids."""
    rows = connection.execute(f"SELECT {COLUMNS} FROM memories m WHERE m.id IN (SELECT value FROM json_each(?))", (json_ids(ids),))
    return {memory.id: memory for memory in map(memory_of, rows)}


def beginnings(connection: apsw.Connection, ids: Iterable[int], characters: int = PREVIEW_CHARACTERS) -> dict[int, Memory]:
    """The memories with these ids for a list, each with only the beginning of its content, of which `preview` shows the same."""
    read_characters = 2 * characters
    columns = columns_with_beginnings(read_characters)
    rows = connection.execute(f"SELECT {columns} FROM memories m WHERE m.id IN (SELECT value FROM json_each(?))", (json_ids(ids),))
    begun = [memory_of(row) for row in rows]
    for index, memory in enumerate(begun):
        if len(memory.content) >= read_characters and len(preview(memory.content, characters + 1)) <= characters:  # much of it is blank
            begun[index] = replace(memory, content=preview(by_ids(connection, [memory.id])[memory.id].content, characters))
    return {memory.id: memory for memory in begun}


def contents(connection: apsw.Connection, ids: Iterable[int]) -> dict[int, str]:
    """Memory → its content."""
    rows = connection.execute("SELECT id, content FROM memories WHERE id IN (SELECT value FROM json_each(?))", (json_ids(ids),))
    return dict(rows)


def recent(connection: apsw.Connection, filters: Filters, limit: int) -> list[Memory]:
    """The current memories that match the filters, the latest in the timeline first; summaries and documents, which nobody said, only if
    that kind is asked for.
    """
    condition, values = where(filters)
    condition += "" if filters.kind else " AND m.kind NOT IN ('summary', 'document')"
    latest_first = f"ORDER BY {TOLD_TIME} DESC, m.id DESC"
    chosen = f"{CURRENT} {condition} {latest_first} LIMIT ?"
    if filters.kind == "summary":  # all of them are sorted, which is cheaper without their contents
        chosen = f"m.id IN (SELECT m.id FROM memories m WHERE {chosen}) {latest_first}"
    rows = connection.execute(f"SELECT {COLUMNS} FROM memories m WHERE {chosen}", (*values, limit))
    return [memory_of(row) for row in rows]


def core(connection: apsw.Connection, importance: float, filters: Filters, limit: int) -> list[Memory]:
    """The current memories of at least this importance, which is above 0.5, and those with the tag `keep`, the most important and then the
    latest first.

    Neither summaries nor experiences, which are found by their tasks.
    """
    condition, values = where(filters)
    rows = connection.execute(
        # The first condition is that of the index, word for word.
        f"SELECT {COLUMNS} FROM memories m WHERE {THAT_MATTER} AND (m.importance >= ? OR {_KEPT}) AND {CURRENT} "
        f"AND m.kind NOT IN ('summary', 'experience') {condition} "
        f"ORDER BY iif({_KEPT}, 1.0, m.importance) DESC, {TOLD_TIME} DESC, m.id DESC LIMIT ?",
        (importance, *values, limit),
    )
    return [memory_of(row) for row in rows]


def upcoming(
    connection: apsw.Connection, now: datetime, end: datetime, zone: ZoneInfo, limit: int, characters: int | None = None
) -> list[Memory]:
    """The current memories of what has not ended and begins before `end`, of those that happen then or name it, the nearest first.

    Without summaries and documents. A week or a month that a text names comes where it ends: it is no day.
    What has begun counts if it was stored before it began, and if it lasts no longer than `LONGEST_UNDER_WAY`: later memories of it are no
    plans. With `characters`, no more of each content is read.
    """
    today = _midnight(now, zone)
    moments = (now, end, now - LONGEST_UNDER_WAY, now + LONGEST_UNDER_WAY, today, today + timedelta(days=1))
    # Each of the lists ends where no later entry can be among the nearest: a month may be named by a tenth of all memories.
    current = f"{CURRENT} AND m.kind NOT IN ('summary', 'document')"
    named = f"FROM memory_dates d CROSS JOIN memories m ON m.id = d.memory AND {current}"
    happening = f"FROM memories m WHERE m.occurred_at IS NOT NULL AND {current}"
    ahead, first = "d.start >= ?1 AND d.start < ?2", f"ORDER BY d.start, d.rowid LIMIT ?7 * {SPANS_LIMIT}"
    is_day = 'julianday(d."end") - julianday(d.start) < 2'
    columns = columns_with_beginnings(characters) if characters else COLUMNS
    rows = connection.execute(
        "WITH dated(id, start) AS ("
        f"SELECT * FROM (SELECT m.id, d.start {named} WHERE {ahead} AND {is_day} {first}) "
        f'UNION ALL SELECT * FROM (SELECT m.id, d."end" {named} WHERE {ahead} AND NOT {is_day} {first}) '
        # What ends today comes first, and what goes on for longer at its end.
        f"""UNION ALL SELECT m.id, iif(d."end" <= ?6, d.start, d."end") {named}
            WHERE d.start >= ?3 AND d.start < ?1 AND d."end" > ?1 AND d."end" <= ?4 AND m.created_at < d.start """
        f"UNION ALL SELECT * FROM (SELECT m.id, m.occurred_at {happening} AND {EVENT_TIME} >= ?1 AND {EVENT_TIME} < ?2 "
        f"ORDER BY {EVENT_TIME}, m.id LIMIT ?7) "
        f"UNION ALL SELECT m.id, m.occurred_at {happening} AND {EVENT_TIME} = ?5 AND m.created_at < ?5), "
        "nearest AS (SELECT id, min(start) AS start FROM dated GROUP BY id) "
        f"SELECT {columns} FROM nearest n JOIN memories m ON m.id = n.id ORDER BY n.start, m.id LIMIT ?7",
        (*map(to_text, moments), limit),
    )
    return [memory_of(row) for row in rows]


def next_time(memory: Memory, named: Iterable[tuple[datetime, datetime]], now: datetime, zone: ZoneInfo) -> datetime | None:
    """When something that `upcoming` returns is next: now if it has begun. `named`: the starts and ends of the times that its text
    names.
    """
    spans = list(named)
    today = _midnight(now, zone)
    if (at := memory.occurred_at) is not None:  # without a time of day, it lasts the day
        spans.append((at, today + timedelta(days=1) if at == today else at))
    return min(
        (
            max(start, now)
            for start, end in spans
            if start >= now or (end > now and memory.created_at < start and end - start <= LONGEST_UNDER_WAY)
        ),
        default=None,
    )


def _midnight(now: datetime, zone: ZoneInfo) -> datetime:
    return datetime.combine(now.astimezone(zone).date(), time(), zone)


def page_for_export(
    connection: apsw.Connection, after_id: int, limit: int, include_deleted: bool, include_secret: bool = False
) -> list[Memory]:
    """The next memories in the order in which they were stored, fewer where they are long. Secret ones only on request."""
    condition = ("" if include_deleted else "AND m.deleted_at IS NULL ") + ("" if include_secret else "AND m.privacy_level <> 'secret'")
    rows = connection.execute(f"SELECT {COLUMNS} FROM memories m WHERE m.id > ? {condition} ORDER BY m.id LIMIT ?", (after_id, limit))
    page, characters = list[Memory](), 0
    for row in rows:
        page.append(memory_of(row))
        characters += len(page[-1].content)
        if characters >= EXPORT_CHARACTERS:
            break
    return page


def page_back(connection: apsw.Connection, before_id: int | None, limit: int) -> list[Memory]:
    """The memories that were stored before one, from the last back; also replaced ones and those in the trash."""
    condition, values = ("m.id < ?", (before_id, limit)) if before_id is not None else ("TRUE", (limit,))
    rows = connection.execute(f"SELECT {COLUMNS} FROM memories m WHERE {condition} ORDER BY m.id DESC LIMIT ?", values)
    return [memory_of(row) for row in rows]


def secret_count(connection: apsw.Connection, include_deleted: bool) -> int:
    """The number of secret memories, which an export leaves out."""
    condition = "" if include_deleted else "AND deleted_at IS NULL"
    return int(connection.execute(f"SELECT count(*) FROM memories WHERE privacy_level = 'secret' {condition}").get)


def origins(connection: apsw.Connection, ids: Iterable[int]) -> dict[int, Origin]:
    """Memory → its times, source, and session."""
    sql = (
        f"SELECT m.id, {EVENT_TIME} AS event_time, m.source, m.session_id, {TOLD_TIME} AS told_at, m.occurred_at IS NOT NULL AS dated, "
        f"m.supersedes IS NOT NULL AS replaces, iif(rtrim(m.content, ' ?？') = rtrim(m.content), 0.0, min(1.0, {QUESTION_CHARACTERS} / length(m.content))) AS asks, "
        f"{_ROLE_TOLD} AS role FROM memories m WHERE m.id IN (SELECT value FROM json_each(?))"
    )
    rows = bulk_rows(connection, "id, event_time, source, session_id, told_at, dated, asks, replaces, role", sql, (json_ids(ids),))
    return {
        memory_id: Origin(event_time, source, session_id, told_at, bool(dated), asks, bool(replaces), role if role in ROLES else None)
        for memory_id, event_time, source, session_id, told_at, dated, asks, replaces, role in rows
    }


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
    if not filters:
        return "", ()
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
    superseded: int = connection.execute(f"SELECT count(*) FROM memories m WHERE {_SUPERSEDED}").get
    return {"memories": total - deleted - superseded, "superseded": superseded, "in_trash": deleted}


def counts_by_kind(connection: apsw.Connection) -> dict[str, int]:
    """Kind → number of current memories."""
    # The few that aren't current are subtracted: to ask it of each memory would take three times as long.
    numbers = (
        "SELECT m.kind, count(*) AS number FROM memories m WHERE m.deleted_at IS NULL GROUP BY m.kind "
        f"UNION ALL SELECT m.kind, -count(*) FROM memories m WHERE {_SUPERSEDED} GROUP BY m.kind"
    )
    return dict(connection.execute(f"SELECT kind, sum(number) FROM ({numbers}) GROUP BY kind HAVING sum(number) > 0 ORDER BY kind"))


def span(connection: apsw.Connection) -> tuple[datetime, datetime] | None:
    """The times in the timeline of the first and the last memory outside the trash."""
    ends: tuple[str | None, str | None] = connection.execute(
        f"SELECT min({TOLD_TIME}), max({TOLD_TIME}) FROM memories m WHERE m.deleted_at IS NULL"
    ).get
    first, last = ends
    return (from_text(first), from_text(last)) if first and last else None


def _fresh_key(connection: apsw.Connection) -> str:
    """A key that no memory has or is said to replace, and that none had before it was purged."""
    while True:
        key = new_key()
        is_known = connection.execute("SELECT 1 FROM memories WHERE key = ?1 OR supersedes = ?1", (key,)).get is not None
        if not is_known and tombstones.erased_at(connection, key) is None:
            return key


def new_key() -> str:
    """Two letters and three digits, twice: four tokens to a model, and 457 billion keys, so that stores that meet later have none in
    common.
    """
    return "".join(f"{secrets.choice(ascii_lowercase)}{secrets.choice(ascii_lowercase)}{secrets.randbelow(1000):03}" for _ in range(2))


def is_drawn_key(key: str) -> bool:
    """Whether a key looks like one of `new_key`, which holds nothing that anybody wrote."""
    return len(key) == 10 and all(part[:2].isalpha() and part.islower() and part[2:].isdigit() for part in (key[:5], key[5:]))


def malformed(connection: apsw.Connection, limit: int) -> list[tuple[str, list[str]]]:
    """Keys of rows that a person or another program has changed so that they can't be read as they are, and the columns that can't."""
    rows = connection.execute(f"SELECT {COLUMNS} FROM memories m ORDER BY m.id")
    changed = ((str(row[1]), columns) for row in rows if (columns := unreadable(row)))
    return list(itertools.islice(changed, limit))


# `json.dumps` makes an encoder for each call.
_json = json.JSONEncoder(ensure_ascii=False).encode
