"""The schema as a list of named steps. It only grows: a step that has been released is never edited.

An older server's `memories` table (with or without `tags`, whatever else it has) is taken over in place: its columns and
rows stay, ours are added beside them.
"""

import json
import logging
from collections.abc import Callable
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import apsw

from memory_mcp.store import timestamps

logger = logging.getLogger(__name__)

# The older server wrote local times without an offset, in its default zone.
OLDER_SERVERS_ZONE = ZoneInfo("Asia/Tokyo")

_MEMORIES = """
CREATE TABLE memories (
    key TEXT PRIMARY KEY,
    content TEXT NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    tags TEXT
)
"""

_MEMORY_COLUMNS = {
    "tags": "TEXT",
    "id": "INTEGER",
    "occurred_at": "TEXT",
    "importance": "REAL NOT NULL DEFAULT 0.5",
    "source": "TEXT",
    "session_id": "TEXT",
    "kind": "TEXT NOT NULL DEFAULT 'fact'",
    "state": "TEXT",
    "questions": "TEXT",
    "revision": "INTEGER NOT NULL DEFAULT 1",
    "supersedes": "TEXT",
    "deleted_at": "TEXT",
    "usage_count": "INTEGER NOT NULL DEFAULT 0",
    "last_used_at": "TEXT",
    "write_digest": "TEXT",
}

_TABLES = """
CREATE UNIQUE INDEX memories_by_id ON memories(id);
CREATE INDEX memories_by_digest ON memories(write_digest);
CREATE INDEX memories_by_event_time ON memories(coalesce(occurred_at, created_at), id);
CREATE INDEX memories_by_session ON memories(session_id, coalesce(occurred_at, created_at), id) WHERE session_id IS NOT NULL;
CREATE INDEX memories_by_supersedes ON memories(supersedes) WHERE supersedes IS NOT NULL;

CREATE TABLE memory_versions (
    key TEXT NOT NULL,
    revision INTEGER NOT NULL,
    content TEXT NOT NULL,
    tags TEXT,
    importance REAL NOT NULL,
    updated_at TEXT NOT NULL,
    reason TEXT,
    PRIMARY KEY (key, revision)
);

CREATE TABLE chunks (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    memory_id INTEGER NOT NULL,
    start INTEGER NOT NULL,
    "end" INTEGER NOT NULL
);
CREATE INDEX chunks_by_memory ON chunks(memory_id);

CREATE TABLE vectors (
    chunk INTEGER NOT NULL REFERENCES chunks(id) ON DELETE CASCADE,
    generation TEXT NOT NULL,
    blob BLOB NOT NULL,
    PRIMARY KEY (chunk, generation)
) WITHOUT ROWID;

CREATE VIRTUAL TABLE lexical USING fts5(body, previous, next, tokenize = 'ascii');

CREATE TABLE index_queue (
    sequence INTEGER PRIMARY KEY AUTOINCREMENT,
    memory_id INTEGER NOT NULL UNIQUE
);

CREATE TABLE properties (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
"""

_OPERATIONS = """
CREATE TABLE IF NOT EXISTS operations (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    timestamp TEXT NOT NULL,
    operation_id TEXT NOT NULL,
    operation TEXT NOT NULL,
    key TEXT,
    before TEXT,
    after TEXT,
    success INTEGER NOT NULL,
    error TEXT,
    metadata TEXT
)
"""


def _first_schema(connection: apsw.Connection) -> None:
    if not connection.table_exists(None, "memories"):
        connection.execute(_MEMORIES)
    present = {row[1].lower() for row in connection.execute("PRAGMA table_info(memories)")}
    for name, declaration in _MEMORY_COLUMNS.items():
        if name not in present:
            connection.execute(f'ALTER TABLE memories ADD COLUMN "{name}" {declaration}')
    _adopt_rows(connection)
    connection.execute(_TABLES)
    connection.execute(_OPERATIONS)
    connection.execute(
        'INSERT INTO chunks(memory_id, start, "end") SELECT id, 0, length(content) FROM memories ORDER BY id;'
        "INSERT INTO index_queue(memory_id) SELECT id FROM memories ORDER BY id"
    )


def _adopt_rows(connection: apsw.Connection) -> None:
    """Gives an older server's rows an id, and values in our form where theirs differ; what can't be read is reported."""
    connection.execute(
        "UPDATE memories SET id = rowid, content = coalesce(content, ''), kind = coalesce(kind, 'fact'), importance = min(1, max(0, coalesce(importance, 0.5)))"
    )
    rows = connection.execute("SELECT key, created_at, updated_at, tags FROM memories").fetchall()
    for key, created_at, updated_at, tags in rows:
        created, updated = _moment(created_at), _moment(updated_at)
        if not (created and updated):
            one = created or updated or timestamps.to_text(datetime.now(UTC))
            logger.warning("%s: no usable time (%r, %r) in the older store; %s is taken instead", key, created_at, updated_at, one)
            created, updated = created or one, updated or one
        connection.execute(
            "UPDATE memories SET created_at = ?, updated_at = ?, tags = ? WHERE key = ?", (created, updated, _tag_list(tags), key)
        )


def _moment(text: object) -> str | None:
    try:
        return timestamps.adopted(str(text), OLDER_SERVERS_ZONE)
    except (ValueError, OverflowError):
        return None


def _tag_list(tags: object) -> str:
    """Tags as a JSON list of strings, whether they were one, a comma-separated line, or nothing."""
    try:
        found = json.loads(str(tags)) if tags else []
    except json.JSONDecodeError:
        found = str(tags).split(",")
    found = found if isinstance(found, list) else [found]
    return json.dumps([str(tag).strip() for tag in found if str(tag).strip()], ensure_ascii=False)


def _questions_as_chunks(connection: apsw.Connection) -> None:
    """A question that a memory answers becomes a chunk of its own; the memories that have some wait for the new vectors."""
    connection.execute("ALTER TABLE chunks ADD COLUMN question TEXT")
    connection.execute(
        'INSERT INTO chunks(memory_id, start, "end", question) SELECT m.id, 0, 0, CAST(q.value AS TEXT) '
        "FROM memories m, json_each(CASE WHEN json_valid(m.questions) THEN m.questions ELSE '[]' END) q WHERE q.value <> '' ORDER BY m.id, q.key;"
        "INSERT OR IGNORE INTO index_queue(memory_id) SELECT DISTINCT memory_id FROM chunks WHERE question IS NOT NULL"
    )


# The first schema kept vectors WITHOUT ROWID: each 1 KB blob spilled into a page of its own and took 4.7 KB instead of 1.4.
_VECTORS = """
CREATE TABLE vectors_by_generation (
    generation TEXT NOT NULL,
    chunk INTEGER NOT NULL REFERENCES chunks(id) ON DELETE CASCADE,
    blob BLOB NOT NULL,
    PRIMARY KEY (generation, chunk)
);
INSERT INTO vectors_by_generation SELECT generation, chunk, blob FROM vectors;
DROP TABLE vectors;
ALTER TABLE vectors_by_generation RENAME TO vectors;
CREATE INDEX vectors_by_chunk ON vectors(chunk);

CREATE TABLE dropped_chunks (chunk INTEGER PRIMARY KEY);
"""


def _vectors_by_generation(connection: apsw.Connection) -> None:
    """Vectors in a table that fits them, and the chunks that are gone but may still stand in an open index."""
    connection.execute(_VECTORS)


MIGRATIONS: list[tuple[str, Callable[[apsw.Connection], None]]] = [
    ("0001 first schema", _first_schema),
    ("0002 questions as chunks", _questions_as_chunks),
    ("0003 vectors by generation", _vectors_by_generation),
]


def pending(connection: apsw.Connection) -> list[str]:
    """The names of the steps that this file has not seen yet."""
    if not connection.table_exists(None, "migrations"):
        return [name for name, _ in MIGRATIONS]
    done = {row[0] for row in connection.execute("SELECT name FROM migrations")}
    return [name for name, _ in MIGRATIONS if name not in done]


def migrate(connection: apsw.Connection) -> None:
    """Applies what is pending, each step in the caller's transaction."""
    connection.execute("CREATE TABLE IF NOT EXISTS migrations (name TEXT PRIMARY KEY, applied_at TEXT NOT NULL)")
    todo = pending(connection)
    for name, step in MIGRATIONS:
        if name in todo:
            step(connection)
            connection.execute("INSERT INTO migrations VALUES (?, ?)", (name, timestamps.to_text(datetime.now(UTC))))
