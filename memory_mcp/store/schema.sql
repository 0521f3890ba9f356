-- Frozen: the tables of a persona's file as of the migration 0021, the oldest state that is opened. What is new goes into migrations.py.

CREATE TABLE memories (
    key TEXT PRIMARY KEY,
    content TEXT NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    tags TEXT,
    id INTEGER,
    occurred_at TEXT,
    importance REAL NOT NULL DEFAULT 0.5,
    source TEXT,
    session_id TEXT,
    kind TEXT NOT NULL DEFAULT 'fact',
    state TEXT,
    questions TEXT,
    revision INTEGER NOT NULL DEFAULT 1,
    supersedes TEXT,
    deleted_at TEXT,
    usage_count INTEGER NOT NULL DEFAULT 0,
    last_used_at TEXT,
    write_digest TEXT,
    metadata TEXT,
    category TEXT,
    privacy_level TEXT NOT NULL DEFAULT 'internal',
    micro_summary TEXT
);
CREATE UNIQUE INDEX memories_by_id ON memories(id);
CREATE INDEX memories_by_digest ON memories(write_digest);
CREATE INDEX memories_by_event_time ON memories(coalesce(occurred_at, created_at), id);
CREATE INDEX memories_by_session ON memories(session_id, coalesce(occurred_at, created_at), id) WHERE session_id IS NOT NULL;
CREATE INDEX memories_by_supersedes ON memories(supersedes) WHERE supersedes IS NOT NULL;

-- further: a JSON object with the columns of an earlier state that have no column of their own here.
CREATE TABLE memory_versions (
    key TEXT NOT NULL,
    revision INTEGER NOT NULL,
    content TEXT NOT NULL,
    tags TEXT,
    importance REAL NOT NULL,
    updated_at TEXT NOT NULL,
    reason TEXT,
    category TEXT,
    privacy_level TEXT NOT NULL DEFAULT 'internal',
    further TEXT,
    PRIMARY KEY (key, revision)
);

CREATE TABLE chunks (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    memory_id INTEGER NOT NULL,
    start INTEGER NOT NULL,
    "end" INTEGER NOT NULL,
    question TEXT,
    generation TEXT
);
CREATE INDEX chunks_by_memory ON chunks(memory_id);

CREATE VIRTUAL TABLE lexical USING fts5(body, previous, next, tokenize = 'ascii');

CREATE TABLE index_queue (
    sequence INTEGER PRIMARY KEY AUTOINCREMENT,
    memory_id INTEGER NOT NULL UNIQUE
);

CREATE TABLE properties (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

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
);

CREATE TABLE vectors (
    generation TEXT NOT NULL,
    chunk INTEGER NOT NULL REFERENCES chunks(id) ON DELETE CASCADE,
    blob BLOB NOT NULL,
    PRIMARY KEY (generation, chunk)
);
CREATE INDEX vectors_by_chunk ON vectors(chunk);

-- Deleted chunks that open indexes may still contain.
CREATE TABLE dropped_chunks (chunk INTEGER PRIMARY KEY);

CREATE TABLE merges (key TEXT PRIMARY KEY, into_key TEXT NOT NULL) WITHOUT ROWID;
CREATE INDEX merges_by_into ON merges(into_key);

CREATE TABLE summaries (
    key TEXT PRIMARY KEY,
    scope TEXT NOT NULL,
    subject TEXT NOT NULL,
    fingerprint TEXT,
    UNIQUE (scope, subject)
) WITHOUT ROWID;

CREATE TABLE memory_sources (
    summary TEXT NOT NULL,
    source TEXT NOT NULL,
    PRIMARY KEY (summary, source)
) WITHOUT ROWID;
CREATE INDEX memory_sources_by_source ON memory_sources(source);

CREATE TABLE summaries_due (
    scope TEXT NOT NULL,
    subject TEXT NOT NULL,
    touched_at TEXT NOT NULL,
    PRIMARY KEY (scope, subject)
) WITHOUT ROWID;
CREATE INDEX memories_that_are_summaries ON memories(id) WHERE kind = 'summary';

-- The digests of erased keys.
CREATE TABLE tombstones (key_digest TEXT PRIMARY KEY, purged_at TEXT NOT NULL) WITHOUT ROWID;
CREATE INDEX operations_by_key ON operations(key) WHERE key IS NOT NULL;
CREATE INDEX chunks_by_generation ON chunks(generation, memory_id) WHERE generation IS NOT NULL;
CREATE INDEX memories_in_trash ON memories(deleted_at) WHERE deleted_at IS NOT NULL;

-- Let FTS5 merge segments from two of similar size on (bm25_index.merge_similar_segments).
INSERT INTO lexical(lexical, rank) VALUES ('usermerge', 2);

CREATE TABLE entity_types (
    name TEXT PRIMARY KEY,
    display_name TEXT NOT NULL,
    description TEXT,
    color TEXT,
    user_defined INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;

CREATE TABLE relation_types (
    name TEXT PRIMARY KEY,
    display_name TEXT NOT NULL,
    description TEXT,
    directed INTEGER NOT NULL,
    user_defined INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;

-- merged_into: it is the same as that one, and everything of it counts for that one. made_by: 'text' goes with its last mention.
-- type_from: 'hand' where a person set the type, 'merge' where it is the type of a merged entity. types_told: the types before a person changed it.
CREATE TABLE entities (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    entity_id TEXT NOT NULL UNIQUE,
    type TEXT NOT NULL,
    subtype TEXT,
    name TEXT NOT NULL,
    description TEXT,
    confidence REAL NOT NULL,
    extraction_count INTEGER NOT NULL DEFAULT 0,
    attributes TEXT,
    importance REAL NOT NULL DEFAULT 0.5,
    first_mentioned_at TEXT,
    last_mentioned_at TEXT,
    merged_into INTEGER REFERENCES entities(id),
    made_by TEXT NOT NULL DEFAULT 'text',
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    type_from TEXT,
    types_told TEXT
);
CREATE INDEX entities_by_type ON entities(type);
CREATE INDEX entities_by_root ON entities(coalesce(merged_into, id));

-- folded: how the name is compared. bare: the same without honorifics. The entity's own name is one of them. mark: random, so that a name
-- that was read but never committed isn't taken for a later one with the same id. by_hand: a person wrote it, so that it stays visible.
CREATE TABLE entity_aliases (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    folded TEXT NOT NULL,
    entity INTEGER NOT NULL REFERENCES entities(id) ON DELETE CASCADE,
    bare TEXT NOT NULL,
    alias TEXT NOT NULL,
    mark INTEGER NOT NULL DEFAULT 0,
    by_hand INTEGER NOT NULL DEFAULT 0,
    UNIQUE (folded, entity)
);
CREATE INDEX entity_aliases_by_entity ON entity_aliases(entity);
CREATE INDEX entity_aliases_by_bare ON entity_aliases(bare);

CREATE TABLE entity_mentions (
    memory INTEGER NOT NULL REFERENCES memories(id) ON DELETE CASCADE,
    entity INTEGER NOT NULL REFERENCES entities(id) ON DELETE CASCADE,
    start INTEGER NOT NULL,
    "end" INTEGER NOT NULL,
    link_type TEXT NOT NULL DEFAULT 'mentions',
    relevance REAL NOT NULL,
    method TEXT NOT NULL,
    confidence REAL NOT NULL,
    created_at TEXT NOT NULL,
    PRIMARY KEY (memory, entity, start)
) WITHOUT ROWID;

-- Why a relation is there: one row for each memory that speaks for it; memory NULL where somebody said so outside of any.
-- source_said, target_said: the names by which a memory states it, where known.
CREATE TABLE relation_evidence (
    id INTEGER PRIMARY KEY,
    memory INTEGER REFERENCES memories(id) ON DELETE CASCADE,
    source INTEGER NOT NULL REFERENCES entities(id) ON DELETE CASCADE,
    target INTEGER NOT NULL REFERENCES entities(id) ON DELETE CASCADE,
    type TEXT NOT NULL,
    subtype TEXT,
    weight REAL NOT NULL CHECK (weight > 0 AND weight <= 1),
    confidence REAL NOT NULL CHECK (confidence >= 0 AND confidence <= 1),
    valid_from TEXT,
    valid_to TEXT,
    method TEXT NOT NULL,
    validation_status TEXT NOT NULL DEFAULT 'unvalidated',
    notes TEXT,
    created_at TEXT NOT NULL,
    source_said TEXT,
    target_said TEXT,
    CHECK (source <> target)
);
CREATE UNIQUE INDEX relation_evidence_once ON relation_evidence(source, target, type, coalesce(memory, 0), method);
CREATE INDEX relation_evidence_by_memory ON relation_evidence(memory);
CREATE INDEX relation_evidence_by_target ON relation_evidence(target);

-- The evidence summed up, merged entities taken as one. Only relations that something current speaks for have a row.
CREATE TABLE relations (
    id INTEGER PRIMARY KEY,
    source INTEGER NOT NULL REFERENCES entities(id) ON DELETE CASCADE,
    target INTEGER NOT NULL REFERENCES entities(id) ON DELETE CASCADE,
    type TEXT NOT NULL,
    subtype TEXT,
    directed INTEGER NOT NULL,
    weight REAL NOT NULL CHECK (weight >= 0 AND weight <= 1),
    evidence_count INTEGER NOT NULL,
    confidence REAL NOT NULL CHECK (confidence >= 0 AND confidence <= 1),
    valid_from TEXT,
    valid_to TEXT,
    method TEXT NOT NULL,
    validation_status TEXT NOT NULL,
    notes TEXT,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    last_evidence_at TEXT NOT NULL,
    UNIQUE (source, target, type),
    CHECK (source <> target)
);
CREATE INDEX relations_by_target ON relations(target, source);

CREATE TABLE memory_links (
    source INTEGER NOT NULL REFERENCES memories(id) ON DELETE CASCADE,
    target INTEGER NOT NULL REFERENCES memories(id) ON DELETE CASCADE,
    type TEXT NOT NULL,
    weight REAL NOT NULL CHECK (weight >= 0 AND weight <= 1),
    confidence REAL NOT NULL CHECK (confidence >= 0 AND confidence <= 1),
    method TEXT NOT NULL,
    created_at TEXT NOT NULL,
    PRIMARY KEY (source, target, type),
    CHECK (source <> target)
) WITHOUT ROWID;
CREATE INDEX memory_links_by_target ON memory_links(target);

-- Who was made one with whom, and when that was undone.
CREATE TABLE entity_merges (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    kept INTEGER NOT NULL REFERENCES entities(id) ON DELETE CASCADE,
    merged INTEGER NOT NULL REFERENCES entities(id) ON DELETE CASCADE,
    reason TEXT,
    merged_at TEXT NOT NULL,
    undone_at TEXT
);

-- said, name_blob: what is made of the name alone, so that the model is asked again only when that changes.
CREATE TABLE entity_vectors (
    entity INTEGER NOT NULL REFERENCES entities(id) ON DELETE CASCADE,
    generation TEXT NOT NULL,
    made_from TEXT NOT NULL,
    blob BLOB NOT NULL,
    said TEXT NOT NULL DEFAULT '',
    name_blob BLOB,
    PRIMARY KEY (entity, generation)
);

-- Memories whose relations in the background are still to be made; where `named` is 0, their names are too.
CREATE TABLE graph_queue (memory INTEGER PRIMARY KEY, named INTEGER NOT NULL DEFAULT 1);

-- Two who are not the same, whatever their names say: one < other. Nobody proposes to merge them.
CREATE TABLE entity_distinctions (
    one INTEGER NOT NULL REFERENCES entities(id) ON DELETE CASCADE,
    other INTEGER NOT NULL REFERENCES entities(id) ON DELETE CASCADE,
    reason TEXT,
    decided_at TEXT NOT NULL,
    PRIMARY KEY (one, other),
    CHECK (one < other)
) WITHOUT ROWID;
CREATE INDEX entity_distinctions_by_other ON entity_distinctions(other);
CREATE INDEX entity_merges_by_kept ON entity_merges(kept);
CREATE INDEX entity_merges_by_merged ON entity_merges(merged);

-- done: the revision of the memory that the task was done for. tries: how often it failed; the fewest come first.
CREATE TABLE graph_background (
    task TEXT NOT NULL,
    memory INTEGER NOT NULL REFERENCES memories(id) ON DELETE CASCADE,
    done INTEGER,
    tries INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (task, memory)
) WITHOUT ROWID;
CREATE INDEX graph_background_by_memory ON graph_background(memory);
CREATE INDEX graph_background_waiting ON graph_background(task, tries, memory) WHERE done IS NULL;
CREATE TRIGGER graph_gains_relation AFTER INSERT ON relations BEGIN UPDATE properties SET value = lower(hex(randomblob(16))) WHERE name = 'graph_revision'; END;
CREATE TRIGGER graph_changes_relation AFTER UPDATE ON relations BEGIN UPDATE properties SET value = lower(hex(randomblob(16))) WHERE name = 'graph_revision'; END;
CREATE TRIGGER graph_loses_relation AFTER DELETE ON relations BEGIN UPDATE properties SET value = lower(hex(randomblob(16))) WHERE name = 'graph_revision'; END;
CREATE TRIGGER graph_gains_entity AFTER INSERT ON entities BEGIN UPDATE properties SET value = lower(hex(randomblob(16))) WHERE name = 'graph_revision'; END;
CREATE TRIGGER graph_loses_entity AFTER DELETE ON entities BEGIN UPDATE properties SET value = lower(hex(randomblob(16))) WHERE name = 'graph_revision'; END;
CREATE TRIGGER graph_changes_entity AFTER UPDATE OF merged_into, made_by, type, extraction_count, first_mentioned_at ON entities
    WHEN old.merged_into IS NOT new.merged_into OR old.made_by <> new.made_by OR old.type <> new.type
        OR (old.extraction_count > 0) <> (new.extraction_count > 0) OR old.first_mentioned_at IS NOT new.first_mentioned_at
    BEGIN UPDATE properties SET value = lower(hex(randomblob(16))) WHERE name = 'graph_revision'; END;
CREATE INDEX relations_by_source_strength ON relations(source, weight * confidence DESC, weight, confidence, type);
CREATE INDEX relations_by_target_strength ON relations(target, weight * confidence DESC, weight, confidence, type);
CREATE INDEX entities_by_merged_into ON entities(merged_into) WHERE merged_into IS NOT NULL;
CREATE INDEX entity_mentions_by_entity ON entity_mentions(entity, memory, relevance);

INSERT OR REPLACE INTO properties(name, value) VALUES ('graph_revision', lower(hex(randomblob(16))));
