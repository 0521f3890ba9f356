"""What older servers left behind, made by hand: databases of every shape, whole data directories, and a server's start over them."""

import json
import pickle
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from places import SUPPORT

from memory_mcp.features.adoption import moving
from memory_mcp.features.adoption.layout import LegacyItem
from memory_mcp.personas.names import directory_name
from memory_mcp.personas.registry import Personas
from memory_mcp.transfer.jsonlines import ExportOptions, export_lines

TOKYO = ZoneInfo("Asia/Tokyo")
NOON = datetime(2026, 1, 2, 3, tzinfo=UTC)

FIRST = "key TEXT PRIMARY KEY, content TEXT NOT NULL, created_at TEXT NOT NULL, updated_at TEXT NOT NULL"
CURRY = {
    "key": "memory_20251030120000",
    "content": "夕飯はカレーだった",
    "created_at": "2025-10-30T12:00:00",
    "updated_at": "2025-10-30T12:30:00",
}
TEMPLE = {
    "key": "memory_20251031090000",
    "content": "京都で 'お寺' を見た 🍁",
    "created_at": "2025-10-31T09:00:00+09:00",
    "updated_at": "2025-10-31T09:00:00+09:00",
}
# The double quotes are those of the server that wrote them: SQLite takes such a default for a text.
FEELINGS = """
    importance REAL DEFAULT 0.5, emotion TEXT DEFAULT "neutral", emotion_intensity REAL DEFAULT 0.0,
    physical_state TEXT DEFAULT "normal", mental_state TEXT DEFAULT "calm", environment TEXT DEFAULT "unknown",
    relationship_status TEXT DEFAULT "normal", action_tag TEXT DEFAULT NULL, related_keys TEXT DEFAULT "[]",
    summary_ref TEXT DEFAULT NULL, equipped_items TEXT DEFAULT NULL, access_count INTEGER DEFAULT 0, last_accessed TEXT DEFAULT NULL"""
FELT = {
    "tags": '["食事", "夜"]',
    "importance": 0.9,
    "emotion": "joy",
    "emotion_intensity": 0.75,
    "physical_state": "tired",
    "mental_state": "満足",
    "environment": "home",
    "relationship_status": "close",
    "action_tag": "cooking",
    "related_keys": '["memory_20251029120000"]',
    "summary_ref": "summary_2025_10",
    "equipped_items": '{"top": "apron"}',
    "access_count": 7,
    "last_accessed": "2025-11-02T08:00:00+09:00",
}
LATEST = """
    emotions TEXT, source_context TEXT, privacy_level TEXT DEFAULT 'internal', body_state TEXT, state_snapped_at TEXT,
    lifecycle_status TEXT DEFAULT 'active'"""
LATER = {
    "emotions": '{"joy": 0.7, "calm": 0.3}',
    "source_context": "chat 12",
    "privacy_level": "private",
    "body_state": '{"fatigue": 0.2}',
    "state_snapped_at": "2025-10-30 03:00:00",
    "lifecycle_status": "archived",
}
LATEST_TABLES = """
    CREATE TABLE operations (id INTEGER PRIMARY KEY AUTOINCREMENT, timestamp TEXT NOT NULL, operation_id TEXT NOT NULL,
        operation TEXT NOT NULL, key TEXT, before TEXT, after TEXT, success INTEGER NOT NULL, error TEXT, metadata TEXT);
    INSERT INTO operations(timestamp, operation_id, operation, key, success) VALUES ('2025-10-30T12:00:00', 'o1', 'create', 'k', 1);
    CREATE TABLE memory_strength (memory_key TEXT PRIMARY KEY, strength REAL, FOREIGN KEY (memory_key) REFERENCES memories(key));
    INSERT INTO memory_strength VALUES ('memory_20251030120000', 0.8);
    CREATE TABLE emotion_history (id INTEGER PRIMARY KEY, emotion TEXT, memory_key TEXT REFERENCES memories(key) ON DELETE CASCADE);
    INSERT INTO emotion_history VALUES (1, 'joy', 'memory_20251030120000');
    CREATE TABLE memory_versions (id INTEGER PRIMARY KEY AUTOINCREMENT, memory_key TEXT NOT NULL, version INTEGER NOT NULL, content TEXT);
    INSERT INTO memory_versions(memory_key, version, content) VALUES ('memory_20251030120000', 1, '夕飯はまだ');
    CREATE TABLE properties (a, b, c);
    INSERT INTO properties VALUES (1, 2, 3);
    CREATE TABLE goals (id TEXT PRIMARY KEY, description TEXT NOT NULL);
    INSERT INTO goals VALUES ('g', '富士山に登る');
    CREATE VIRTUAL TABLE memories_fts USING fts5(content, memories_key UNINDEXED, tokenize = 'trigram');
    INSERT INTO memories_fts(rowid, content, memories_key) SELECT rowid, content, key FROM memories;
    CREATE TRIGGER memories_au AFTER UPDATE ON memories BEGIN
        DELETE FROM memories_fts WHERE rowid = old.rowid;
        INSERT INTO memories_fts(rowid, content, memories_key) VALUES (new.rowid, new.content, new.key);
    END;
    CREATE TRIGGER memories_ad AFTER DELETE ON memories BEGIN DELETE FROM memories_fts WHERE rowid = old.rowid; END;
    CREATE VIEW lately AS SELECT * FROM memories ORDER BY created_at DESC;
    CREATE INDEX idx_memories_created_at ON memories(created_at DESC);
"""


@dataclass(frozen=True)
class OlderStore:
    """A form that an older database has: the columns of `memories`, its rows, and what else is in the file."""

    columns: str
    rows: Sequence[Mapping[str, Any]]
    further: str = ""


STORES = {
    "without tags": OlderStore(FIRST, [CURRY, TEMPLE]),
    "with tags": OlderStore(f"{FIRST}, tags TEXT", [{**CURRY, "tags": '["食事"]'}, {**TEMPLE, "tags": "旅行, 京都"}]),
    "with feelings": OlderStore(f"{FIRST}, tags TEXT, {FEELINGS}", [{**CURRY, **FELT}, TEMPLE]),
    "with the names of the issue": OlderStore(
        f"{FIRST}, tags TEXT, emotion_type TEXT, context_tags TEXT, physical_state TEXT, mental_state TEXT, environment TEXT,"
        "relationship_status TEXT, importance REAL, related_keys TEXT",
        [
            {
                **CURRY,
                "emotion_type": "joy",
                "context_tags": '["食事"]',
                "physical_state": "tired",
                "importance": 0.8,
                "related_keys": "a,b",
            },
            {**TEMPLE, "tags": '["旅行"]', "context_tags": "寺, 秋", "mental_state": "calm", "relationship_status": "friends"},
        ],
    ),
    "the latest": OlderStore(f"{FIRST}, tags TEXT, {FEELINGS}, {LATEST}", [{**CURRY, **FELT, **LATER}, TEMPLE], LATEST_TABLES),
    "with columns that ask for a value": OlderStore(
        f"{FIRST}, persona TEXT NOT NULL, mood INTEGER NOT NULL CHECK (mood > 0), UNIQUE (persona, content)",
        [{**CURRY, "persona": "nilou", "mood": 3}, {**TEMPLE, "persona": "nilou", "mood": 4}],
    ),
    "with our names in other forms": OlderStore(
        f"{FIRST}, tags TEXT, importance TEXT, state TEXT, questions TEXT, metadata TEXT, kind TEXT, source INTEGER, session_id TEXT,"
        "revision TEXT, usage_count TEXT, deleted_at TEXT, supersedes TEXT, occurred_at TEXT, last_used_at TEXT, id TEXT, write_digest TEXT",
        [
            {
                **CURRY,
                "tags": "[",
                "importance": "8",
                "state": "happy",
                "questions": "夕飯は?",
                "metadata": "none",
                "kind": "diary",
                "source": 7,
                "session_id": "  ",
                "revision": "two",
                "usage_count": "many",
                "occurred_at": "last summer",
                "id": "x-1",
                "write_digest": "abc",
            },
            {
                **TEMPLE,
                "tags": '{"place": "京都"}',
                "importance": "high",
                "state": '{"emotion": "joy", "weather": "rain"}',
                "questions": '{"q": 1}',
                "metadata": '{"mood": {"level": 3}}',
                "kind": "fact",
                "deleted_at": "",
                "last_used_at": "1761793200",
            },
        ],
    ),
    "with times of every kind": OlderStore(
        "key, content, created_at, updated_at",
        [
            {"key": "t1", "content": "一", "created_at": 1761793200, "updated_at": 1761793200.5},
            {"key": "t2", "content": "二", "created_at": "1761793200000", "updated_at": "20251030120000"},
            {"key": "t3", "content": "三", "created_at": "2025-10-30 12:00:00", "updated_at": "2025/10/30 12:00"},
            {"key": "t4", "content": "四", "created_at": "2025-10-30T03:00:00Z", "updated_at": "yesterday"},
            {"key": "memory_20251030120000", "content": "五", "created_at": "unknown", "updated_at": None},
        ],
    ),
    "with keys and contents that are none": OlderStore(
        "key TEXT, content, created_at TEXT, updated_at TEXT, importance REAL",
        [
            {**CURRY, "key": None, "importance": 7},
            {**CURRY, "key": "", "content": "二つ目", "importance": -1},
            {**CURRY, "key": "same", "content": None},
            {**CURRY, "key": "same", "content": "四つ目"},
            {**CURRY, "key": " padded ", "content": "五つ目"},
            {**CURRY, "key": "k" * 300, "content": 42},
            {**CURRY, "key": b"\x00\xff", "content": "抹茶\x00ラテ"},
            {**CURRY, "key": "sjis", "content": "京都のお寺".encode("cp932"), "importance": float("inf")},
        ],
        "UPDATE memories SET content = CAST(content AS TEXT) WHERE key = 'sjis'",
    ),
    "in UTF-16": OlderStore(f"{FIRST}, tags TEXT", [{**CURRY, "tags": '["食事"]'}, TEMPLE]),
    "with capitals and no row ids": OlderStore(
        "Key TEXT PRIMARY KEY, Content TEXT, Created_At TEXT, Updated_At TEXT, Mood TEXT) WITHOUT ROWID --",
        [{"Key": "k1", "Content": "朝焼け", "Created_At": "2025-10-30T12:00:00", "Updated_At": "2025-10-30T12:00:00", "Mood": "quiet"}],
    ),
}


def make_store(path: Path, store: OlderStore, *, utf16: bool = False) -> None:
    """Writes the database as an older server would have."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path)) as connection:
        if utf16:
            connection.execute("PRAGMA encoding = 'UTF-16le'")
        connection.execute(f"CREATE TABLE memories ({store.columns}\n)" if "--" not in store.columns else store_sql(store))
        for row in store.rows:
            marks = ", ".join("?" * len(row))
            connection.execute(f"INSERT INTO memories({', '.join(row)}) VALUES ({marks})", list(row.values()))
        connection.executescript(store.further)
        connection.commit()


def store_sql(store: OlderStore) -> str:
    return f"CREATE TABLE memories ({store.columns.removesuffix(' --')}"


def rows_of(path: Path, table: str = "memories") -> list[dict[str, Any]]:
    """Every row of an older table, with text as it is in the file."""
    with closing(sqlite3.connect(path)) as connection:
        connection.text_factory = lambda raw: raw.decode() if _is_utf8(raw) else raw
        found = connection.execute(f"SELECT * FROM {table}")
        names = [column[0] for column in found.description]
        return [dict(zip(names, row, strict=True)) for row in found]


def with_text(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The rows that are memories: those that say something."""
    return [row for row in rows if any(name.casefold() == "content" and str(value or "").strip() for name, value in row.items())]


def _is_utf8(raw: bytes) -> bool:
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True


class Trap:
    """Unpickled, it would leave a file."""

    def __init__(self, sprung: Path) -> None:
        self.sprung = sprung

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.sprung,)


def make_vectors(directory: Path, sprung: Path) -> None:
    """A vector store with an index that is none and a pickle that must not be read."""
    directory.mkdir(parents=True)
    (directory / "index.faiss").write_bytes(b"IxF2 of another library")
    (directory / "index.pkl").write_bytes(pickle.dumps(Trap(sprung)))


def make_everything(data: Path, sprung: Path) -> None:
    """A data directory with one of each: flat files, bare names, vectors, a log, contexts."""
    make_store(data / "nilou" / "memory.sqlite", STORES["the latest"])
    make_store(data / "さくら" / "memory.sqlite", STORES["with feelings"])
    make_store(data / "Yae_Miko.sqlite", STORES["with tags"])
    make_store(data / "default.sqlite", STORES["without tags"])
    make_vectors(data / "vector_store", sprung)
    make_vectors(data / "さくら" / "vector_store", sprung)
    make_vectors(data / "nilou" / "vector_store", sprung)
    context = {"user_info": {"name": "User", "nickname": None}, "current_emotion": "joy", "emotion_history": [{"emotion": "joy"}]}
    (data / "さくら" / "persona_context.json").write_text(json.dumps(context, ensure_ascii=False), encoding="utf-8")
    line = {"timestamp": "2025-10-30T12:00:00", "operation": "create", "key": CURRY["key"], "after": {"content": "x"}, "success": True}
    (data / "memory_operations.log").write_text(json.dumps(line) + "\n", encoding="utf-8")


EVERYONE = {"nilou": "the latest", "さくら": "with feelings", "Yae_Miko": "with tags", "default": "without tags"}


@contextmanager
def started(data: Path) -> Iterator[Personas]:
    """The personas after everything older was adopted, as the server does it when it starts."""
    personas = Personas(data)
    try:
        moving.move_into_place(personas, NOON)
        moving.take_over_tables(personas, threading.Event())
        yield personas
    finally:
        personas.close()


def adopt(data: Path) -> list[LegacyItem]:
    """Start and stop. Returns what was older, and what became of it."""
    personas = Personas(data)
    try:
        moved = moving.move_into_place(personas, NOON)
        moving.take_over_tables(personas, threading.Event())
    finally:
        personas.close()
    return moved


def exported(personas: Personas, name: str) -> list[dict[str, Any]]:
    """Everything that a persona's memories say, as an export has it."""
    with personas.reading(name) as persona:
        return [json.loads(line) for line in export_lines(persona, ExportOptions(deleted=True))]


def database_of(data: Path, name: str) -> Path:
    return data / directory_name(name) / "memory.sqlite"


KILLED_AT = """
import os, signal, sys
import apsw
from pathlib import Path
sys.path.insert(0, {tests!r})
import older_stores
left = int(sys.argv[2])
data = sys.argv[1]
def step():
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
def audit(event, arguments):
    if event in ("os.rename", "os.mkdir", "os.remove", "os.chmod", "shutil.copyfile") or (
        event == "open" and isinstance(arguments[0], str) and arguments[0].startswith(data) and arguments[1] not in (None, "r", "rb")):
        step()
def traced(cursor, sql, bindings):
    step()
    return True
sys.addaudithook(audit)
apsw.connection_hooks.append(lambda connection: setattr(connection, "exec_trace", traced))
older_stores.adopt(Path(data))
print("steps", int(sys.argv[2]) - left)
"""


def run_until(data: Path, number: int) -> subprocess.CompletedProcess[str]:
    """Adopts the directory in a process that kills itself at this step; it prints how many steps there were."""
    code = KILLED_AT.format(tests=str(SUPPORT))
    return subprocess.run([sys.executable, "-c", code, str(data), str(number)], capture_output=True, text=True, check=False, timeout=110)
