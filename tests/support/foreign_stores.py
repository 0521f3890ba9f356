"""Databases as other programs write them: their tables, a few rows, and what of them is a memory."""

import json
import pickle
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# A table of an extension that isn't installed here, with the ordinary table in which it keeps its rows.
VECTORS = """
CREATE TABLE {name}_chunks (chunk_id INTEGER PRIMARY KEY, validity BLOB, rowids BLOB);
INSERT INTO {name}_chunks VALUES (1, x'01', x'01');
PRAGMA writable_schema = ON;
INSERT INTO sqlite_schema VALUES ('table', '{name}', '{name}', 0, 'CREATE VIRTUAL TABLE {name} USING vec0(embedding FLOAT[384])');
PRAGMA writable_schema = RESET;
"""
LONG_MEMORY_TABLES = """
CREATE TABLE memories (id INTEGER PRIMARY KEY AUTOINCREMENT, user_id TEXT NOT NULL, device_id TEXT NOT NULL, session_id TEXT NOT NULL,
    raw_text TEXT NOT NULL, raw_audio BLOB, summary_text TEXT, micro_summary TEXT, importance_score REAL, category TEXT,
    usage_count INTEGER DEFAULT 0, decay_score REAL, consolidated_flag INTEGER DEFAULT 0, relation_labels TEXT, latitude REAL, longitude REAL,
    created_at DATETIME NOT NULL DEFAULT CURRENT_TIMESTAMP, updated_at DATETIME, last_used_at DATETIME, invalidated_at DATETIME, extra_data JSON);
CREATE TABLE memory_links (id INTEGER PRIMARY KEY AUTOINCREMENT, src_memory_id INTEGER NOT NULL, dst_memory_id INTEGER NOT NULL,
    user_id TEXT NOT NULL, relation_type TEXT NOT NULL DEFAULT 'co_occurrence', relation_subtype TEXT, direction TEXT DEFAULT 'bidirectional',
    weight REAL NOT NULL DEFAULT 1.0, evidence_count INTEGER NOT NULL DEFAULT 1, confidence_score REAL DEFAULT 0.5, extraction_method TEXT,
    created_at DATETIME NOT NULL DEFAULT CURRENT_TIMESTAMP, FOREIGN KEY (src_memory_id) REFERENCES memories(id) ON DELETE CASCADE);
CREATE UNIQUE INDEX uq_memory_links_pair ON memory_links(src_memory_id, dst_memory_id, relation_type);
CREATE TABLE entities (id INTEGER PRIMARY KEY AUTOINCREMENT, entity_id TEXT NOT NULL, user_id TEXT NOT NULL, entity_type TEXT NOT NULL,
    entity_subtype TEXT, name TEXT NOT NULL, aliases TEXT, description TEXT, confidence_score REAL DEFAULT 0.5, attributes JSON,
    importance_score REAL DEFAULT 0.5, created_at DATETIME NOT NULL DEFAULT CURRENT_TIMESTAMP, merged_from TEXT);
CREATE TABLE entity_memory_links (id INTEGER PRIMARY KEY AUTOINCREMENT, entity_id TEXT NOT NULL, memory_id INTEGER NOT NULL, user_id TEXT NOT NULL,
    link_type TEXT NOT NULL, relevance_score REAL DEFAULT 0.5, position_in_text INTEGER, extraction_confidence REAL,
    created_at DATETIME NOT NULL DEFAULT CURRENT_TIMESTAMP);
CREATE TABLE entity_types (type_name TEXT PRIMARY KEY, display_name TEXT NOT NULL, description TEXT, color TEXT, is_user_defined BOOLEAN DEFAULT 0);
INSERT INTO entity_types VALUES ('Person', '人物', '個人', NULL, 0), ('Ship', '船', '船', '#123456', 1);
CREATE TABLE relation_types (type_name TEXT PRIMARY KEY, display_name TEXT NOT NULL);
CREATE TABLE graph_cache (id INTEGER PRIMARY KEY, cache_key TEXT NOT NULL, user_id TEXT NOT NULL, path_nodes TEXT NOT NULL);
CREATE VIEW important AS SELECT * FROM memories WHERE importance_score > 0.8;
"""
LONG_MEMORY_ROWS = """
INSERT INTO memories(id, user_id, device_id, session_id, raw_text, summary_text, importance_score, category, usage_count, latitude, longitude,
    created_at, extra_data) VALUES
    (1, 'alice', 'phone', '01J', '田中さんとプロジェクトAの会議をした', '会議', 0.9, 'work', 3, 35.68, 139.76, '2025-08-18 03:00:00', '{"mood": "calm"}');
INSERT INTO memories(id, user_id, device_id, session_id, raw_text, created_at, invalidated_at) VALUES
    (2, 'alice', 'phone', '01J', '締切は8月19日', '2025-08-18 03:05:00', '2025-08-19 00:00:00');
INSERT INTO memories(id, user_id, device_id, session_id, raw_text, created_at) VALUES
    (3, 'alice', 'phone', '01J', '彼は締切を20日に延ばした', '2025-08-18 04:00:00'),
    (4, 'ボブ#work_pack', 'pc', '01K', '佐藤さんは苺が好き', '2025-08-18 05:00:00'),
    (5, 'ボブ#work_pack', 'pc', '01K', ' ', '2025-08-18 06:00:00');
INSERT INTO entities(entity_id, user_id, entity_type, entity_subtype, name, aliases, description, attributes, importance_score) VALUES
    ('0f8fad5b-d9cb-469f-a165-70867728950e', 'alice', 'Person', 'Engineer', '田中太郎', '["田中さん", "Tanaka"]', 'Pythonが得意な同僚', '{"role": "engineer"}', 0.8),
    ('7c9e6679-7425-40de-944b-e07fc1f90ae7', 'ボブ#work_pack', 'Person', NULL, '佐藤さん', NULL, NULL, NULL, 0.5);
INSERT INTO entity_memory_links(entity_id, memory_id, user_id, link_type, relevance_score, extraction_confidence) VALUES
    ('0f8fad5b-d9cb-469f-a165-70867728950e', 1, 'alice', 'involves', 0.9, 0.8),
    ('0f8fad5b-d9cb-469f-a165-70867728950e', 3, 'alice', 'performed_by', 0.7, 0.6),
    ('7c9e6679-7425-40de-944b-e07fc1f90ae7', 4, 'ボブ#work_pack', 'mentions', 0.5, 0.5),
    ('7c9e6679-7425-40de-944b-e07fc1f90ae7', 5, 'ボブ#work_pack', 'mentions', 0.5, 0.5);
INSERT INTO memory_links(src_memory_id, dst_memory_id, user_id, relation_type, weight, confidence_score) VALUES
    (1, 3, 'alice', 'causality', 0.7, 0.6);
INSERT INTO graph_cache VALUES (1, 'x', 'alice', '[1, 3]');
"""
ENTRIES = """
CREATE TABLE entries (id INTEGER PRIMARY KEY AUTOINCREMENT, text TEXT, source TEXT DEFAULT 'unknown',
    created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP, dim INTEGER, embedding BLOB);
INSERT INTO entries VALUES (1, '昨日の夕飯はカレーだった', 'you', '2025-10-17 10:00:00', 2, x'0000803f00000000'),
    (2, '卵を買う', 'unknown', '2025-10-18 10:00:00', 2, x'000000000000803f'), (3, '', 'you', '2025-10-18 11:00:00', 2, x'00');
"""
MEMORY_SERVICE = """
CREATE TABLE metadata (key TEXT PRIMARY KEY, value TEXT NOT NULL);
INSERT INTO metadata VALUES ('distance_metric', 'cosine');
CREATE TABLE memories (id INTEGER PRIMARY KEY AUTOINCREMENT, content_hash TEXT UNIQUE NOT NULL, content TEXT NOT NULL, tags TEXT, memory_type TEXT,
    metadata TEXT, created_at REAL, updated_at REAL, created_at_iso TEXT, updated_at_iso TEXT, deleted_at REAL DEFAULT NULL{further});
CREATE VIRTUAL TABLE memory_content_fts USING fts5(content, content='memories', content_rowid='id');
CREATE TRIGGER memories_fts_ai AFTER INSERT ON memories BEGIN INSERT INTO memory_content_fts(rowid, content) VALUES (new.id, new.content); END;
INSERT INTO memories(content_hash, content, tags, memory_type, metadata, created_at, updated_at, created_at_iso, deleted_at) VALUES
    ('aaa1', '旅人は苺が好き', 'food,旅人', 'preference', '{"author": "paimon"}', 1761793200.5, 1761793200.5, '2025-10-30T03:00:00.5Z', NULL),
    ('bbb2', '旅人は桃が好き', 'food', 'preference', '{}', 1761800000.0, 1761800000.0, NULL, NULL),
    ('ccc3', '消した話', '', 'note', '{}', 1761700000.0, 1761700000.0, NULL, 1761710000.0),
    ('ddd4', '', '', 'note', '{}', 1761700000.0, 1761700000.0, NULL, NULL);
CREATE TABLE memory_graph (source_hash TEXT NOT NULL, target_hash TEXT NOT NULL, similarity REAL NOT NULL, connection_types TEXT NOT NULL,
    metadata TEXT, created_at REAL NOT NULL, relationship_type TEXT DEFAULT 'related', PRIMARY KEY (source_hash, target_hash));
INSERT INTO memory_graph VALUES ('aaa1', 'bbb2', 0.7, '["semantic"]', NULL, 1761800001.0, 'contradicts'),
    ('bbb2', 'aaa1', 0.7, '["semantic"]', NULL, 1761800001.0, 'contradicts'), ('aaa1', '旅人', 1.0, '["entity"]', '{}', 1761800001.0, 'has_entity');
"""
MEM0_HISTORY = """
CREATE TABLE history (id TEXT PRIMARY KEY, memory_id TEXT, old_memory TEXT, new_memory TEXT, event TEXT, created_at DATETIME, updated_at DATETIME,
    is_deleted INTEGER, actor_id TEXT, role TEXT);
CREATE TABLE messages (id TEXT PRIMARY KEY, session_scope TEXT, role TEXT, content TEXT, name TEXT, created_at DATETIME);
INSERT INTO history VALUES
    ('h1', 'm1', NULL, '旅人は苺が好き', 'ADD', '2025-10-30T03:00:00-07:00', NULL, 0, 'alice', 'user'),
    ('h2', 'm2', NULL, '京都に行く', 'ADD', '2025-10-30T04:00:00-07:00', NULL, 0, NULL, NULL),
    ('h3', 'm1', '旅人は苺が好き', '旅人は桃が好き', 'UPDATE', '2025-10-30T03:00:00-07:00', '2025-11-01T03:00:00-07:00', 0, 'alice', 'user'),
    ('h4', 'm2', '京都に行く', NULL, 'DELETE', '2025-10-30T04:00:00-07:00', '2025-11-02T04:00:00-07:00', 1, NULL, NULL),
    ('h5', 'm3', NULL, '', 'ADD', '2025-10-30T05:00:00-07:00', NULL, 0, NULL, NULL);
"""
NOUS = """
CREATE TABLE memories (key TEXT PRIMARY KEY, content TEXT NOT NULL, created_at TEXT NOT NULL, updated_at TEXT NOT NULL, tags TEXT DEFAULT '[]',
    importance REAL DEFAULT 0.5, emotion TEXT DEFAULT 'neutral', emotion_intensity REAL DEFAULT 0.0, physical_state TEXT, mental_state TEXT,
    environment TEXT, relationship_status TEXT, action_tag TEXT, source_context TEXT, related_keys TEXT DEFAULT '[]', summary_ref TEXT,
    equipped_items TEXT, access_count INTEGER DEFAULT 0, last_accessed TEXT, privacy_level TEXT DEFAULT 'internal', body_state TEXT,
    state_snapped_at TEXT, lifecycle_status TEXT DEFAULT 'active');
CREATE TABLE entities (id TEXT PRIMARY KEY, entity_type TEXT NOT NULL DEFAULT 'unknown', first_seen TEXT NOT NULL, last_seen TEXT NOT NULL,
    mention_count INTEGER DEFAULT 1, metadata TEXT DEFAULT '{}');
CREATE TABLE entity_relations (id INTEGER PRIMARY KEY AUTOINCREMENT, source_entity TEXT NOT NULL REFERENCES entities(id),
    target_entity TEXT NOT NULL REFERENCES entities(id), relation_type TEXT NOT NULL, memory_key TEXT, confidence REAL DEFAULT 1.0, created_at TEXT);
CREATE TABLE memory_entities (memory_key TEXT NOT NULL, entity_id TEXT NOT NULL REFERENCES entities(id), role TEXT DEFAULT 'mentioned',
    PRIMARY KEY (memory_key, entity_id));
CREATE TABLE context_state (persona TEXT NOT NULL, key TEXT NOT NULL, value TEXT, valid_from TEXT NOT NULL, valid_until TEXT,
    PRIMARY KEY (persona, key, valid_from));
CREATE TABLE user_info (persona TEXT NOT NULL, key TEXT NOT NULL, value TEXT, updated_at TEXT NOT NULL, PRIMARY KEY (persona, key));
CREATE TABLE persona_info (persona TEXT NOT NULL, key TEXT NOT NULL, value TEXT, updated_at TEXT NOT NULL, PRIMARY KEY (persona, key));
INSERT INTO context_state VALUES ('kept', 'emotion', 'sad', '2026-01', '2026-02'), ('kept', 'emotion', 'joy', '2026-02', NULL),
    ('kept', 'environment', 'beach', '2026-02', NULL), ('kept', 'speech_style', 'polite', '2026-02', NULL);
INSERT INTO user_info VALUES ('kept', 'name', '空', '2026-02'), ('kept', 'preferred_address', '旅人', '2026-02');
INSERT INTO persona_info VALUES ('kept', 'nickname', 'ニィロウ', '2026-02');
CREATE TABLE memory_blocks (block_name TEXT PRIMARY KEY, content TEXT NOT NULL);
INSERT INTO memories(key, content, created_at, updated_at, tags, emotion, lifecycle_status) VALUES
    ('memory_20260301120000', '健太と海に行った', '2026-03-01T12:00:00+09:00', '2026-03-01T12:00:00+09:00', '["海"]', 'joy', 'active'),
    ('memory_20260302120000', '古い話', '2026-03-02T12:00:00+09:00', '2026-03-02T12:00:00+09:00', '[]', 'neutral', 'archived'),
    ('memory_20260303120000', '消した話', '2026-03-03T12:00:00+09:00', '2026-03-03T12:00:00+09:00', '[]', 'neutral', 'tombstoned'),
    ('memory_20260304120000', '', '2026-03-04T12:00:00+09:00', '2026-03-04T12:00:00+09:00', '[]', 'neutral', 'active');
INSERT INTO entities(id, entity_type, first_seen, last_seen) VALUES ('健太', 'Person', '2026-03-01T12:00:00+09:00', ''), ('海辺', 'Location', '2026-03-01', '');
INSERT INTO entity_relations(source_entity, target_entity, relation_type, created_at) VALUES ('健太', '海辺', 'located_at', '2026-03-01T12:00:00+09:00');
INSERT INTO memory_entities(memory_key, entity_id) VALUES ('memory_20260301120000', '健太'), ('memory_20260301120000', '海辺');
"""
_BASIC = """
CREATE TABLE project (id INTEGER PRIMARY KEY, name TEXT);
CREATE TABLE entity (id INTEGER PRIMARY KEY, external_id TEXT, title TEXT NOT NULL, note_type TEXT, entity_metadata JSON, content_type TEXT,
    project_id INTEGER, permalink TEXT, file_path TEXT NOT NULL, checksum TEXT, created_at DATETIME, updated_at DATETIME);
CREATE TABLE observation (id INTEGER PRIMARY KEY, project_id INTEGER, entity_id INTEGER NOT NULL, content TEXT NOT NULL, category TEXT NOT NULL,
    context TEXT, tags JSON DEFAULT '[]');
CREATE TABLE relation (id INTEGER PRIMARY KEY, project_id INTEGER, from_id INTEGER NOT NULL, to_id INTEGER, to_name TEXT NOT NULL,
    relation_type TEXT NOT NULL, context TEXT);
INSERT INTO entity VALUES (1, 'x1', 'コーヒー', 'note', NULL, 'text/markdown', 1, 'notes/coffee', 'notes/コーヒー.md', 'c', '2025-10-30 12:00:00', '2025-10-31 12:00:00'),
    (2, 'x2', '抹茶', 'note', NULL, 'text/markdown', 1, 'notes/matcha', 'notes/抹茶.md', 'c', '2025-10-30 13:00:00', '2025-10-30 13:00:00');
INSERT INTO observation VALUES (1, 1, 1, '浅煎りは酸っぱい', 'taste', '豆の店で', '["豆"]'), (2, 1, 1, '朝に飲む', 'habit', NULL, '[]');
INSERT INTO relation VALUES (1, 1, 1, 2, '抹茶', 'relates_to', NULL), (2, 1, 1, NULL, '紅茶', 'opposition', '苦さ');
"""
BASIC_MEMORY = f"""{_BASIC}
CREATE TABLE note_content (entity_id INTEGER PRIMARY KEY, project_id INTEGER NOT NULL, external_id TEXT NOT NULL, file_path TEXT NOT NULL,
    markdown_content TEXT NOT NULL, db_version INTEGER NOT NULL, db_checksum TEXT NOT NULL);
INSERT INTO note_content VALUES (1, 1, 'x1', 'notes/コーヒー.md', '# コーヒー\n- [taste] 浅煎りは酸っぱい #豆\n- relates_to [[抹茶]]', 1, 'c');
"""


class PointStruct:
    """Pickled like the class of this name in qdrant-client: an object with its fields and pydantic's own."""

    def __init__(self, id_: str, payload: Mapping[str, Any]) -> None:
        self.fields = {"id": id_, "vector": [0.1, 0.2], "payload": dict(payload)}

    def __getstate__(self) -> dict[str, Any]:
        return {"__dict__": self.fields, "__pydantic_extra__": None, "__pydantic_fields_set__": {"id"}, "__pydantic_private__": None}


@dataclass(frozen=True)
class ForeignStore:
    """A database of another program: what writes it, the texts of each persona's memories (in the trash too), and the rows that are none."""

    script: str
    texts: Mapping[str | None, list[str]]
    refused: tuple[str, ...] = ()
    in_trash: frozenset[str] = frozenset()
    in_place: bool = True
    points: Mapping[str, Any] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """How many rows of memories it has."""
        return sum(map(len, self.texts.values())) + len(self.refused)


FOREIGN = {
    "long_memory_MCP": ForeignStore(
        LONG_MEMORY_TABLES + LONG_MEMORY_ROWS + VECTORS.format(name="vss_memories"),
        {
            "alice": ["田中さんとプロジェクトAの会議をした", "締切は8月19日", "彼は締切を20日に延ばした"],
            "ボブ#work_pack": ["佐藤さんは苺が好き"],
        },
        ("row 2",),
        frozenset({"締切は8月19日"}),
    ),
    "a server with users": ForeignStore(
        "CREATE TABLE memories (id INTEGER PRIMARY KEY, user_id TEXT, content TEXT, created_at TEXT, embedding BLOB);"
        "INSERT INTO memories VALUES (1, 'alice', '苺が好き', '2025-10-30', NULL), (2, 'bob', '桃が好き', '2025-10-30', NULL), (3, 'bob', '', NULL, NULL)",
        {"alice": ["苺が好き"], "bob": ["桃が好き"]},
        ("row 2",),
    ),
    "ingest and recall": ForeignStore(ENTRIES, {None: ["昨日の夕飯はカレーだった", "卵を買う"]}, ("row 3",)),
    "mcp-memory-service 10": ForeignStore(
        MEMORY_SERVICE.replace("{further}", ", superseded_by TEXT")
        + "UPDATE memories SET superseded_by = 'bbb2' WHERE content_hash = 'aaa1';"
        + VECTORS.format(name="memory_embeddings"),
        {None: ["旅人は苺が好き", "旅人は桃が好き", "消した話"]},
        ("ddd4",),
        frozenset({"消した話"}),
    ),
    "mcp-memory-service 8": ForeignStore(
        MEMORY_SERVICE.replace("{further}", ""),
        {None: ["旅人は苺が好き", "旅人は桃が好き", "消した話"]},
        ("ddd4",),
        frozenset({"消した話"}),
    ),
    "Nous": ForeignStore(NOUS, {None: ["健太と海に行った", "古い話", "消した話"]}, ("memory_20260304120000",), frozenset({"消した話"})),
    "mem0's history": ForeignStore(
        MEM0_HISTORY, {None: ["旅人は桃が好き", "京都に行く"]}, ("m3",), frozenset({"京都に行く"}), in_place=False
    ),
    "mem0's points": ForeignStore(
        "CREATE TABLE points (id TEXT PRIMARY KEY, point BLOB)",
        {None: ["旅人は苺が好き", "京都"]},
        ("row 3",),
        in_place=False,
        points={
            "p1": PointStruct("0b0c0d0e", {"data": "旅人は苺が好き", "user_id": "alice", "created_at": "2025-10-30T03:00:00-07:00"}),
            "p2": PointStruct("1b0c0d0e", {"data": "京都", "user_id": "bob", "run_id": "r1", "metadata": {"place": "寺"}}),
            "p3": {"data": "no point"},
        },
    ),
    "basic-memory": ForeignStore(
        BASIC_MEMORY, {None: ["# コーヒー\n- [taste] 浅煎りは酸っぱい #豆\n- relates_to [[抹茶]]"]}, ("notes/matcha",), in_place=False
    ),
    "basic-memory's observations": ForeignStore(_BASIC, {None: ["浅煎りは酸っぱい", "朝に飲む"]}, ("抹茶",), in_place=False),
}


def make_foreign(path: Path, store: ForeignStore) -> None:
    """Writes the database as its program would have."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(store.script)
        for number, point in store.points.items():
            connection.execute("INSERT INTO points VALUES (?, ?)", (json.dumps(number), pickle.dumps(point)))
        connection.commit()
