"""The graph's tables and built-in types, and the migrations of both. Released migrations are never edited."""

import apsw

from memory_mcp.language.names import bare

# What an entity can be: name, Japanese name, description, colour in a drawing.
ENTITY_TYPES = (
    ("Person", "人物", "a person or a character", "#e4572e"),
    ("Location", "場所", "a place, a building, a room", "#29335c"),
    ("Event", "出来事", "something that happens or happened", "#f3a712"),
    ("Concept", "概念", "an idea, a topic", "#a8c686"),
    ("Object", "物体", "a thing, an animal", "#669bbc"),
    ("Organization", "組織", "a company, a school, a group", "#8d5a97"),
    ("TimeUnit", "時間", "a day, a period, a date to keep", "#9aa5b1"),
    ("Task", "タスク", "work to do, a project", "#d4a373"),
    ("Document", "文書", "a file, a book, a record", "#577590"),
    ("Technology", "技術", "a tool, a system", "#43aa8b"),
)
ENTITY_TYPE_NAMES = tuple(name for name, *_ in ENTITY_TYPES)
# How two entities can be related: name, Japanese name, description, whether it has a direction.
RELATION_TYPES = (
    ("mentions", "言及", "one speaks of the other", 1),
    ("relates_to", "関連", "they belong together somehow", 0),
    ("contains", "包含", "the other is a part of it", 1),
    ("located_at", "所在", "it is where the other is", 1),
    ("participates_in", "参加", "it takes part in the other", 1),
    ("causes", "原因", "it brings the other about", 1),
    ("co_occurrence", "共起", "they are named together", 0),
    ("sequence", "連続", "it comes before the other", 1),
    ("similarity", "類似", "they are alike", 0),
    ("opposition", "対立", "they are opposed", 0),
    ("dependency", "依存", "it needs the other", 1),
    ("ownership", "所有", "it owns the other", 1),
)

_TABLES = """
CREATE TABLE entity_types (
    name TEXT PRIMARY KEY, display_name TEXT NOT NULL, description TEXT, color TEXT, user_defined INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;

CREATE TABLE relation_types (
    name TEXT PRIMARY KEY, display_name TEXT NOT NULL, description TEXT, directed INTEGER NOT NULL, user_defined INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;

-- merged_into: it is the same as that one, and everything of it counts for that one. made_by: 'text' goes with its last mention.
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
    updated_at TEXT NOT NULL
);
CREATE INDEX entities_by_type ON entities(type);
CREATE INDEX entities_by_root ON entities(coalesce(merged_into, id));

-- folded: how the name is compared. bare: the same without honorifics. The entity's own name is one of them.
CREATE TABLE entity_aliases (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    folded TEXT NOT NULL,
    entity INTEGER NOT NULL REFERENCES entities(id) ON DELETE CASCADE,
    bare TEXT NOT NULL,
    alias TEXT NOT NULL,
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
CREATE INDEX entity_mentions_by_entity ON entity_mentions(entity, memory);

-- Why a relation is there: one row for each memory that speaks for it; memory NULL where somebody said so outside of any.
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

CREATE TABLE entity_vectors (
    entity INTEGER NOT NULL REFERENCES entities(id) ON DELETE CASCADE,
    generation TEXT NOT NULL,
    made_from TEXT NOT NULL,
    blob BLOB NOT NULL,
    PRIMARY KEY (entity, generation)
);

-- Memories whose relations in the background are still to be made; where `named` is 0, their names are too.
CREATE TABLE graph_queue (memory INTEGER PRIMARY KEY, named INTEGER NOT NULL DEFAULT 1);
"""


def create(connection: apsw.Connection) -> None:
    """Creates the tables with the built-in types, and queues existing memories to be searched for entities."""
    connection.execute(_TABLES)
    connection.executemany("INSERT INTO entity_types(name, display_name, description, color) VALUES (?,?,?,?)", ENTITY_TYPES)
    connection.executemany("INSERT INTO relation_types(name, display_name, description, directed) VALUES (?,?,?,?)", RELATION_TYPES)
    connection.execute("INSERT INTO graph_queue(memory, named) SELECT id, 0 FROM memories")


# mark: random, so that a name that was read but never committed isn't taken for a later one with the same id.
# Adds entities that are declared distinct, and what keeps names and vectors of entities up to date.
MANY_NAMES = """
ALTER TABLE entity_aliases ADD COLUMN mark INTEGER NOT NULL DEFAULT 0;

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

-- What is made of the name alone, so that the model is asked again only when that changes.
ALTER TABLE entity_vectors ADD COLUMN said TEXT NOT NULL DEFAULT '';
ALTER TABLE entity_vectors ADD COLUMN name_blob BLOB;
"""

# Adds an index for the foreign key: without it, deleting an entity reads all others.
MERGED_INTO_INDEX = "CREATE INDEX entities_by_merged_into ON entities(merged_into) WHERE merged_into IS NOT NULL"

# by_hand: a person wrote the name, so that it stays visible when no memory contains it any more.
# Adds which names persons wrote: of entities that were created or changed by hand before, all, as it isn't known which; of entities that
# were related by hand, their own.
NAMES_BY_HAND = """
ALTER TABLE entity_aliases ADD COLUMN by_hand INTEGER NOT NULL DEFAULT 0;
UPDATE entity_aliases SET by_hand = 1 WHERE entity IN (SELECT id FROM entities WHERE made_by <> 'text');
UPDATE entity_aliases SET by_hand = 1 WHERE alias = (SELECT e.name FROM entities e WHERE e.id = entity) AND entity IN (
    SELECT source FROM relation_evidence WHERE memory IS NULL AND validation_status <> 'rejected'
    UNION SELECT target FROM relation_evidence WHERE memory IS NULL AND validation_status <> 'rejected');
"""

# source_said, target_said: the names by which a memory states a relation, where known. type_from: 'hand' where a person set the type,
# 'merge' where it is the type of a merged entity, and the entity's own is unknown.
# Adds the names by which memories state relations, and the origin of a type.
STATED_NAMES = """
ALTER TABLE relation_evidence ADD COLUMN source_said TEXT;
ALTER TABLE relation_evidence ADD COLUMN target_said TEXT;
ALTER TABLE entities ADD COLUMN type_from TEXT;
"""

# Adds the types that an entity had before a person changed it.
TYPE_HISTORY = "ALTER TABLE entities ADD COLUMN types_told TEXT"

# Adds the relevance to the index of mentions: reading each row took a sixth of a search along the graph.
RELEVANCE_IN_INDEX = """
DROP INDEX IF EXISTS entity_mentions_by_entity;
CREATE INDEX entity_mentions_by_entity ON entity_mentions(entity, memory, relevance);
"""


def names_compared_anew(connection: apsw.Connection) -> None:
    """Computes the form for comparison again by changed rules: あっくん is no longer あっ."""
    known = connection.execute("SELECT id, alias, bare FROM entity_aliases").fetchall()
    changed = [(current, id_) for id_, alias, stored in known if (current := bare(str(alias))) != stored]
    connection.executemany("UPDATE entity_aliases SET bare = ? WHERE id = ?", changed)


# done: the revision of the memory that the task was done for. tries: how often it failed; the fewest come first.
# Creates the queue, with all existing memories.
BACKGROUND_TASKS = """
CREATE TABLE graph_background (
    task TEXT NOT NULL,
    memory INTEGER NOT NULL REFERENCES memories(id) ON DELETE CASCADE,
    done INTEGER,
    tries INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (task, memory)
) WITHOUT ROWID;
CREATE INDEX graph_background_by_memory ON graph_background(memory);
CREATE INDEX graph_background_waiting ON graph_background(task, tries, memory) WHERE done IS NULL;
INSERT INTO graph_background(task, memory) SELECT t.value, m.id FROM json_each('["links", "model"]') t JOIN memories m;
"""

# Queues what is short enough to be compared with newer memories, and was linked before those were looked for.
COMPARED_WITH_NEWER = """
INSERT OR IGNORE INTO graph_queue(memory, named)
    SELECT id, 1 FROM memories WHERE length(content) <= 120 AND deleted_at IS NULL AND kind <> 'summary';
"""

_NEW_REVISION = "UPDATE properties SET value = lower(hex(randomblob(16))) WHERE name = 'graph_revision'"
# Creates the mark of the graph's state with the triggers that change it, and the indexes of the strongest relations.
GRAPH_REVISION = f"""
INSERT OR REPLACE INTO properties(name, value) VALUES ('graph_revision', lower(hex(randomblob(16))));
CREATE TRIGGER graph_gains_relation AFTER INSERT ON relations BEGIN {_NEW_REVISION}; END;
CREATE TRIGGER graph_changes_relation AFTER UPDATE ON relations BEGIN {_NEW_REVISION}; END;
CREATE TRIGGER graph_loses_relation AFTER DELETE ON relations BEGIN {_NEW_REVISION}; END;
CREATE TRIGGER graph_gains_entity AFTER INSERT ON entities BEGIN {_NEW_REVISION}; END;
CREATE TRIGGER graph_loses_entity AFTER DELETE ON entities BEGIN {_NEW_REVISION}; END;
CREATE TRIGGER graph_changes_entity AFTER UPDATE OF merged_into, made_by, type, extraction_count, first_mentioned_at ON entities
    WHEN old.merged_into IS NOT new.merged_into OR old.made_by <> new.made_by OR old.type <> new.type
        OR (old.extraction_count > 0) <> (new.extraction_count > 0) OR old.first_mentioned_at IS NOT new.first_mentioned_at
    BEGIN {_NEW_REVISION}; END;

-- The strongest relations of an entity, and the weight of all, without looking at the others' rows.
CREATE INDEX relations_by_source_strength ON relations(source, weight * confidence DESC, weight, confidence, type);
CREATE INDEX relations_by_target_strength ON relations(target, weight * confidence DESC, weight, confidence, type);
"""

# Without what only occurs together, of which there is most.
# Adds indexes of stated relations by their type, to find those that contradict each other.
STATED_INDEXES = """
CREATE INDEX relation_evidence_of_type ON relation_evidence(source, type) WHERE type <> 'co_occurrence';
CREATE INDEX relations_of_type ON relations(type, source) WHERE type <> 'co_occurrence';
"""
