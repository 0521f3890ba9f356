"""The tables of summaries: one summary per session and day, its sources, and the queue of sessions and days to summarize again.

The text of a summary is a memory of the kind `summary`. These tables refer to it by key.
"""

import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import MAXYEAR, MINYEAR, date, datetime, timedelta
from typing import Literal
from zoneinfo import ZoneInfo

import apsw

from memory_mcp.domain import Draft, Memory, TimeRange
from memory_mcp.store import memories, memory_rows, properties
from memory_mcp.store.memories import CURRENT, TOLD_TIME
from memory_mcp.store.timestamps import from_text, optional_to_text, to_text

Scope = Literal["session", "day"]

_WATERMARK = "summaries_seen_operation"
# Keys in a summary's metadata by which it is recognized after an export and an import.
OF, SUBJECT = "summary_of", "subject"
# How it was made, in the metadata as well; what begins so is made of sentences of its sources.
MADE_BY, EXTRACTIVE = "made_by", "extractive"


@dataclass(frozen=True, slots=True)
class Subject:
    """The subject of a summary: a session by its id, or a day as `2025-10-30`."""

    scope: Scope
    name: str


@dataclass(frozen=True, slots=True)
class Registered:
    """An existing summary. `fingerprint` identifies its sources; None forces it to be made again."""

    key: str
    fingerprint: str | None


@dataclass(frozen=True, slots=True)
class Touched:
    """The subjects affected by writes with the time of the last write, and the number of the last operation considered."""

    subjects: dict[Subject, str]
    last: int


def touched(connection: apsw.Connection, zone: ZoneInfo, limit: int, now: datetime) -> Touched | None:
    """The subjects affected by up to `limit` operations since the last call of `note_touched`; None if there is nothing new.

    The first call for a persona returns all subjects.
    """
    seen = properties.value(connection, _WATERMARK)
    newest = connection.execute("SELECT coalesce(max(id), 0) FROM operations").get
    if seen is None:
        return Touched(_everything(connection, zone, now), newest)
    if newest <= int(seen):
        return None
    rows = list(connection.execute("SELECT id, key, timestamp FROM operations WHERE id > ? ORDER BY id LIMIT ?", (int(seen), limit)))
    at = {key: timestamp for _, key, timestamp in rows if key}
    return Touched(_subjects(connection, at, zone), rows[-1][0])


def note_touched(connection: apsw.Connection, touched: Touched, now: datetime) -> None:
    """Queue the affected subjects and advance the watermark. Idempotent."""
    note_due(connection, touched.subjects)
    properties.put(connection, _WATERMARK, str(touched.last))
    _adopt(connection, now)


def _adopt(connection: apsw.Connection, now: datetime) -> None:
    """Register summaries from an import or another persona. If the subject already has one, the new one goes to the trash."""
    unknown = list(
        connection.execute(
            f"SELECT m.key, json_extract(m.metadata, '$.{OF}'), json_extract(m.metadata, '$.{SUBJECT}'), m.id FROM memories m "
            f"WHERE m.kind = 'summary' AND m.deleted_at IS NULL AND json_valid(m.metadata) AND json_extract(m.metadata, '$.{OF}') "
            f"IN ('session', 'day') AND json_type(m.metadata, '$.{SUBJECT}') = 'text' AND m.key NOT IN (SELECT key FROM summaries)"
        )
    )
    for key, scope, name, memory_id in unknown:
        if scope == "day" and not _is_day(name):
            continue  # not made by this server
        connection.execute("INSERT OR IGNORE INTO summaries(key, scope, subject) VALUES (?, ?, ?)", (key, scope, name))
        if connection.changes():
            note_due(connection, {Subject(scope, name): to_text(now)})
        else:
            memories.set_deleted(connection, memory_id, now)


def _is_day(name: str) -> bool:
    try:
        return date.fromisoformat(name).isoformat() == name and _has_ends(date.fromisoformat(name))
    except ValueError:
        return False


def _has_ends(day: date) -> bool:
    """Whether Python can represent the start and end of the day in every time zone."""
    return MINYEAR < day.year < MAXYEAR


def note_due(connection: apsw.Connection, subjects: dict[Subject, str]) -> None:
    """Puts subjects on the list of what is to be summarised, each with the time of its last write."""
    connection.executemany(
        "INSERT INTO summaries_due VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET touched_at = max(touched_at, excluded.touched_at)",
        [(subject.scope, subject.name, at) for subject, at in subjects.items()],
    )


def next_due(connection: apsw.Connection, quiet_since: datetime, today: date) -> tuple[Subject, str] | None:
    """The longest-waiting session without a write since `quiet_since`, or day before `today`; with the time of its last write."""
    row = connection.execute(
        "SELECT scope, subject, touched_at FROM summaries_due WHERE (scope = 'session' AND touched_at <= ?) OR (scope = 'day' AND subject < ?) "
        "ORDER BY touched_at, scope, subject LIMIT 1",
        (to_text(quiet_since), today.isoformat()),
    ).fetchone()
    return (Subject(row[0], row[1]), row[2]) if row else None


def earliest_due(connection: apsw.Connection, quiet: timedelta, zone: ZoneInfo) -> datetime | None:
    """When the next queued session will have been quiet for `quiet`, or the next queued day ends; None if the queue is empty."""
    touched = connection.execute("SELECT min(touched_at) FROM summaries_due WHERE scope = 'session'").get
    day = connection.execute("SELECT min(subject) FROM summaries_due WHERE scope = 'day'").get
    moments = [from_text(touched) + quiet] if touched else []
    if day:
        over = date.fromisoformat(day) + timedelta(days=1)
        moments.append(datetime(over.year, over.month, over.day, tzinfo=zone))
    return min(moments, default=None)


def remove_due(connection: apsw.Connection, subject: Subject, touched_at: str) -> None:
    """Remove a subject from the queue, unless it was affected again since."""
    connection.execute(
        "DELETE FROM summaries_due WHERE scope = ? AND subject = ? AND touched_at = ?", (subject.scope, subject.name, touched_at)
    )


def members(connection: apsw.Connection, subject: Subject, day: TimeRange | None, limit: int) -> list[Memory]:
    """The current memories of a session, or of a day in the timeline with the range `day`, without summaries and documents: the latest
    `limit`, in order.
    """
    belongs, values = (
        (f"{TOLD_TIME} >= ? AND {TOLD_TIME} < ?", (to_text(day.start), to_text(day.end))) if day else ("m.session_id = ?", (subject.name,))
    )
    ids = connection.execute(
        f"SELECT m.id FROM memories m WHERE {belongs} AND {CURRENT} AND m.kind NOT IN ('summary', 'document') ORDER BY {TOLD_TIME} DESC, m.id DESC LIMIT ?",
        (*values, limit),
    )
    candidates = memories.by_ids(connection, [row[0] for row in ids]).values()
    return sorted(candidates, key=lambda memory: (memory.told_at, memory.id))


def registered(connection: apsw.Connection, subject: Subject) -> Registered | None:
    """The summary of a subject, even if it is in the trash."""
    row = connection.execute(
        "SELECT key, fingerprint FROM summaries WHERE scope = ? AND subject = ?", (subject.scope, subject.name)
    ).fetchone()
    return Registered(*row) if row else None


def register(connection: apsw.Connection, key: str, subject: Subject, fingerprint: str, sources: Iterable[str]) -> None:
    """Record the subject and sources of a summary, replacing earlier ones."""
    unregister(connection, subject)
    connection.execute("INSERT INTO summaries VALUES (?, ?, ?, ?)", (key, subject.scope, subject.name, fingerprint))
    connection.executemany("INSERT INTO memory_sources VALUES (?, ?)", [(key, source) for source in sources])


def unregister(connection: apsw.Connection, subject: Subject) -> None:
    """Delete the record of a subject's summary."""
    connection.execute(
        "DELETE FROM memory_sources WHERE summary IN (SELECT key FROM summaries WHERE scope = ? AND subject = ?)",
        (subject.scope, subject.name),
    )
    connection.execute("DELETE FROM summaries WHERE scope = ? AND subject = ?", (subject.scope, subject.name))


def sources(connection: apsw.Connection, key: str) -> list[str]:
    """The keys of a summary's sources."""
    return [row[0] for row in connection.execute("SELECT source FROM memory_sources WHERE summary = ? ORDER BY source", (key,))]


def citing(connection: apsw.Connection, keys: Collection[str]) -> list[str]:
    """The keys of summaries, even in the trash, that may repeat one of these memories.

    An imported summary has no recorded sources, so it counts until it is made again.
    """
    rows = connection.execute(
        "SELECT summary FROM memory_sources WHERE source IN (SELECT value FROM json_each(?1)) UNION "
        "SELECT s.key FROM memories s WHERE s.kind = 'summary' AND NOT EXISTS (SELECT 1 FROM memory_sources f WHERE f.summary = s.key) "
        f"AND json_valid(s.metadata) AND json_extract(s.metadata, '$.{OF}') IS NOT NULL AND EXISTS (SELECT 1 FROM memories m "
        "WHERE m.key IN (SELECT value FROM json_each(?1)) AND m.kind <> 'summary') ORDER BY 1",
        (json.dumps(list(keys)),),
    )
    return [row[0] for row in rows]


def unregister_citing(connection: apsw.Connection, keys: Collection[str]) -> list[str]:
    """For a purge: unregister the summaries that cite these memories, queue their subjects, and return the keys to erase as well.

    Call it in the transaction of the purge, before the memories are deleted.
    """
    summaries = citing(connection, keys)
    note_due(connection, _due_again(connection, summaries))
    connection.executemany("DELETE FROM memory_sources WHERE summary = ?", [(key,) for key in summaries])
    connection.executemany("DELETE FROM summaries WHERE key = ?", [(key,) for key in summaries])
    return summaries


def remove_empty_sessions(connection: apsw.Connection) -> None:
    """Remove sessions without memories from the queue, and with them their names."""
    connection.execute(
        "DELETE FROM summaries_due WHERE scope = 'session' AND subject NOT IN (SELECT session_id FROM memories WHERE session_id IS NOT NULL)"
    )


def withhold(connection: apsw.Connection, sources: Sequence[Memory], now: datetime) -> None:
    """Move summaries of these memories to the trash at once, so that none repeats what was forgotten; they are made anew."""
    summaries = citing(connection, [memory.key for memory in sources if memory.kind != "summary"])
    for summary in memories.by_keys(connection, summaries).values():
        if summary.deleted_at is None:
            memories.set_deleted(connection, summary.id, now)
    outdate(connection, summaries)


def outdate(connection: apsw.Connection, keys: Sequence[str]) -> None:
    """Mark summaries to be made again."""
    note_due(connection, _due_again(connection, keys))
    connection.executemany("UPDATE summaries SET fingerprint = NULL WHERE key = ?", [(key,) for key in keys])


def rewrite(connection: apsw.Connection, memory: Memory, draft: Draft, now: datetime) -> None:
    """Replace the text of a summary and restore it from the trash. No version is kept, because its sources are."""
    memories.change(
        connection,
        memory,
        content=draft.content,
        tags=draft.tags,
        importance=memory.importance,
        now=now,
        privacy_level=draft.privacy_level,
    )
    connection.execute(
        "UPDATE memories SET occurred_at = ?, metadata = ?, deleted_at = NULL WHERE id = ?",
        (optional_to_text(draft.occurred_at), json.dumps(dict(draft.metadata), ensure_ascii=False), memory.id),
    )


def _due_again(connection: apsw.Connection, keys: Sequence[str]) -> dict[Subject, str]:
    rows = connection.execute(
        "SELECT s.scope, s.subject, m.updated_at FROM summaries s JOIN memories m ON m.key = s.key "
        "WHERE s.key IN (SELECT value FROM json_each(?))",
        (json.dumps(list(keys)),),
    )
    return {Subject(scope, name): at for scope, name, at in rows}


def _everything(connection: apsw.Connection, zone: ZoneInfo, now: datetime) -> dict[Subject, str]:
    # An imported memory may have a creation time in the future.
    rows = connection.execute(
        f"SELECT m.session_id, {TOLD_TIME}, min(m.created_at, ?) FROM memories m WHERE m.kind NOT IN ('summary', 'document')",
        (to_text(now),),
    )
    return _by_subject(rows, zone)


def _subjects(connection: apsw.Connection, at: dict[str, str], zone: ZoneInfo) -> dict[Subject, str]:
    """The sessions and days of these memories and of those they replace; for purged memories, the subjects of their summaries."""
    current = memories.by_keys(connection, list(at))
    latest = max(at.values(), default="")
    replaced = memories.by_ids(connection, memory_rows.replaced_by(connection, list(current.values()))).values()
    rows = [
        (memory.session_id, to_text(memory.told_at), at.get(memory.key, latest))
        for memory in (*current.values(), *replaced)
        if memory.kind not in ("summary", "document")
    ]
    gone = connection.execute(
        "SELECT DISTINCT s.scope, s.subject FROM memory_sources f JOIN summaries s ON s.key = f.summary "
        "WHERE f.source IN (SELECT value FROM json_each(?))",
        (json.dumps([key for key in at if key not in current]),),
    )
    return {**_by_subject(rows, zone), **{Subject(scope, name): latest for scope, name in gone}}


def _by_subject(rows: Iterable[tuple[str | None, str, str]], zone: ZoneInfo) -> dict[Subject, str]:
    """Rows of (session, time in the timeline, time of the write) → each session and day with its latest write."""
    subjects: dict[Subject, str] = {}
    for session, told_at, at in rows:
        moment = from_text(told_at)
        days = [Subject("day", moment.astimezone(zone).date().isoformat())] if _has_ends(moment.date()) else []
        for subject in (*days, *([Subject("session", session)] if session else [])):
            subjects[subject] = max(at, subjects.get(subject, ""))
    return subjects
