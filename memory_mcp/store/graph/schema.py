"""The built-in types of the graph, and the migrations of its tables. Released migrations are never edited."""

import apsw

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


def insert_types(connection: apsw.Connection) -> None:
    """Inserts the built-in types."""
    connection.executemany("INSERT INTO entity_types(name, display_name, description, color) VALUES (?,?,?,?)", ENTITY_TYPES)
    connection.executemany("INSERT INTO relation_types(name, display_name, description, directed) VALUES (?,?,?,?)", RELATION_TYPES)


# Queues what is short enough to be compared with newer memories, and was linked before those were looked for.
COMPARED_WITH_NEWER = """
INSERT OR IGNORE INTO graph_queue(memory, named)
    SELECT id, 1 FROM memories WHERE length(content) <= 120 AND deleted_at IS NULL AND kind <> 'summary';
"""

# Without what only occurs together, of which there is most.
# Adds indexes of stated relations by their type, to find those that contradict each other.
STATED_INDEXES = """
CREATE INDEX relation_evidence_of_type ON relation_evidence(source, type) WHERE type <> 'co_occurrence';
CREATE INDEX relations_of_type ON relations(type, source) WHERE type <> 'co_occurrence';
"""
