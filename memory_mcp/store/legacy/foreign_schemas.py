"""The databases of memories that are known by their tables and columns. Whatever else a database contains is left as it is: a guess would
lose its text.

To add a program, add a `Schema`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, tzinfo
from zoneinfo import ZoneInfo

import apsw

from memory_mcp.errors import StoreError
from memory_mcp.store.sqlite.reading import grouped

TABLES_LISTED, COLUMNS_LISTED, OWNERS_LISTED = 5, 30, 5
OWNER_CHARACTERS = 10_000
# The kind of the rows that are fields of persona_context.json.
CONTEXT = "persona_context"
# The older server wrote local times without an offset, in its default zone.
OLDER_SERVERS_ZONE = ZoneInfo("Asia/Tokyo")


@dataclass(frozen=True, slots=True)
class FurtherRows:
    """A query whose rows have the fields of one kind of JSON line: for the graph, and for earlier versions of memories.

    `needs` are the columns that it reads (`table.column`); without one of them there are no such rows. The columns `memory`, `source` and
    `target` of memories contain the values of `Schema.id`, or keys if there is none.
    """

    kind: str
    needs: Sequence[str]
    sql: str


@dataclass(frozen=True, slots=True)
class Schema:
    """How a program stores memories: a table, its columns with the names of our fields for them, and queries for the rest.

    `needs`: further columns that tell the table from others of this name. `id`: the number of a memory, which distinguishes the keys of
    memories without one. `owner`: the column with a memory's owner; each owner becomes a persona. `select` replaces the plain reading of
    the table. `left_out` are columns with vectors, or with values that other columns have too. `zone` is that of times without an offset.
    `in_place`: the server converts such a database when it finds it; others have to be imported.
    """

    program: str
    table: str
    columns: Mapping[str, str]
    needs: frozenset[str] = frozenset()
    id: str = ""
    owner: str = ""
    select: str = ""
    left_out: frozenset[str] = frozenset()
    zone: tzinfo = UTC
    in_place: bool = True
    further: Sequence[FurtherRows] = ()
    # Tables without owners that the rows of all owners refer to.
    shared: frozenset[str] = frozenset()
    # Tables that follow from the others, such as caches, or that don't concern memories.
    unread: frozenset[str] = frozenset()

    @property
    def all_columns(self) -> frozenset[str]:
        """The columns by which the table is recognized; among them the one with the text."""
        return self.needs | {column for column, name in self.columns.items() if name == "content"}

    @property
    def key_column(self) -> str:
        """The column with the key of a memory."""
        return next((column for column, name in self.columns.items() if name == "key"), "key")


OURS = Schema("Memory MCP", "memories", {"content": "content"}, zone=OLDER_SERVERS_ZONE)

# The owners of memories must not be lost, whatever server wrote them.
_WITH_USERS = Schema(
    "a server with users",
    "memories",
    {"content": "content"},
    needs=frozenset({"user_id"}),
    owner="user_id",
    select="SELECT * FROM {table}",
    zone=OLDER_SERVERS_ZONE,
)

_NOUS = Schema(
    "Nous",
    "memories",
    {"content": "content"},
    needs=frozenset({"key", "lifecycle_status"}),
    select="SELECT *, iif(lifecycle_status = 'tombstoned', updated_at, NULL) AS deleted_at FROM {table} ORDER BY rowid",
    zone=OLDER_SERVERS_ZONE,
    further=(
        FurtherRows(
            "entity",
            ("entities.entity_type", "entities.first_seen"),
            "SELECT id AS entity, entity_type AS type, first_seen AS created_at, 'user' AS made_by FROM entities ORDER BY rowid",
        ),
        FurtherRows(
            "mention",
            ("memory_entities.memory_key", "memory_entities.entity_id"),
            "SELECT entity_id AS mention, memory_key AS memory FROM memory_entities ORDER BY rowid",
        ),
        FurtherRows(
            "relation",
            ("entity_relations.source_entity", "entity_relations.target_entity", "entity_relations.relation_type"),
            "SELECT relation_type AS relation, source_entity AS source, target_entity AS target, confidence, created_at "
            "FROM entity_relations ORDER BY id",
        ),
        FurtherRows(
            CONTEXT,
            ("context_state.key", "context_state.valid_until", "user_info.key", "persona_info.key"),
            "SELECT json_patch((SELECT json_group_object(iif(key = 'emotion', 'current_emotion', key), value) FROM context_state "
            "WHERE valid_until IS NULL), json_object('user_info', json((SELECT json_group_object(key, value) FROM user_info)), "
            "'persona_info', json((SELECT json_group_object(key, value) FROM persona_info)))) AS persona_context",
        ),
    ),
)

_LONG_MEMORY = Schema(
    "long_memory_MCP",
    "memories",
    {"raw_text": "content", "importance_score": "importance", "invalidated_at": "deleted_at", "extra_data": "metadata"},
    needs=frozenset({"id", "user_id", "importance_score"}),
    id="id",
    owner="user_id",
    select="SELECT * FROM {table} ORDER BY id",
    shared=frozenset({"entity_types", "relation_types"}),
    unread=frozenset({"relation_types", "graph_cache", "vector_metadata", "entity_vector_metadata"}),
    further=(
        FurtherRows(
            "entity_type",
            ("entity_types.type_name", "entity_types.is_user_defined"),
            "SELECT type_name AS entity_type, display_name, description, color FROM entity_types WHERE is_user_defined",
        ),
        FurtherRows(
            "entity",
            ("entities.name", "entities.entity_type", "entities.entity_id", "entities.aliases"),
            "SELECT name AS entity, entity_type AS type, entity_subtype AS subtype, description, aliases, attributes, entity_id, "
            "importance_score AS importance, confidence_score AS confidence, created_at, 'user' AS made_by FROM entities ORDER BY id",
        ),
        FurtherRows(
            "mention",
            ("entity_memory_links.memory_id", "entity_memory_links.entity_id", "entities.entity_id", "entities.name"),
            "SELECT e.name AS mention, e.entity_type AS type, l.memory_id AS memory, l.link_type, l.relevance_score AS relevance, "
            "l.extraction_confidence AS confidence, l.created_at "
            "FROM entity_memory_links l JOIN entities e ON e.entity_id = l.entity_id ORDER BY l.id",
        ),
        FurtherRows(
            "link",
            ("memory_links.src_memory_id", "memory_links.dst_memory_id", "memory_links.relation_type"),
            "SELECT relation_type AS link, src_memory_id AS source, dst_memory_id AS target, weight, confidence_score AS confidence, "
            "created_at FROM memory_links ORDER BY id",
        ),
    ),
)

_ENTRIES = Schema(
    "the notes of ingest and recall",
    "entries",
    {"text": "content"},
    needs=frozenset({"id", "source", "created_at"}),
    id="id",
    left_out=frozenset({"id", "dim", "embedding"}),
)

# mcp-memory-service wrote no superseded_by before version 10. Of links in both directions, one is kept.
_MEMORY_SERVICE = Schema(
    "mcp-memory-service",
    "memories",
    {"content": "content", "content_hash": "key", "memory_type": "category"},
    needs=frozenset({"content_hash", "memory_type"}),
    left_out=frozenset({"id", "created_at_iso", "updated_at_iso", "superseded_by"}),
    unread=frozenset({"metadata"}),
    further=(
        FurtherRows(
            "mention",
            ("memory_graph.source_hash", "memory_graph.relationship_type"),
            "SELECT target_hash AS mention, source_hash AS memory FROM memory_graph WHERE relationship_type = 'has_entity' ORDER BY rowid",
        ),
        FurtherRows(
            "link",
            ("memory_graph.source_hash", "memory_graph.relationship_type"),
            "SELECT relationship_type AS link, source_hash AS source, target_hash AS target, similarity AS weight, created_at "
            "FROM memory_graph g WHERE relationship_type <> 'has_entity' AND (source_hash < target_hash OR NOT EXISTS "
            "(SELECT 1 FROM memory_graph o WHERE o.source_hash = g.target_hash AND o.target_hash = g.source_hash)) ORDER BY rowid",
        ),
    ),
)
_MEMORY_SERVICE_10 = replace(
    _MEMORY_SERVICE,
    needs=_MEMORY_SERVICE.needs | {"superseded_by"},
    select="SELECT m.*, (SELECT o.content_hash FROM {table} o WHERE o.superseded_by = m.content_hash LIMIT 1) AS supersedes "
    "FROM {table} m ORDER BY id",
)

# The events of each memory: the last text is the memory, those before it are its versions.
_MEM0_HISTORY = Schema(
    "mem0",
    "history",
    {"new_memory": "content", "memory_id": "key", "actor_id": "source"},
    needs=frozenset({"memory_id", "old_memory", "event", "is_deleted"}),
    select="SELECT memory_id, coalesce(new_memory, old_memory) AS new_memory, actor_id, role, first AS created_at, "
    "coalesce(updated_at, created_at) AS updated_at, iif(event = 'DELETE' OR is_deleted, 1, NULL) AS deleted_at, revision FROM ("
    "SELECT *, row_number() OVER events AS last, sum(event <> 'DELETE') OVER (PARTITION BY memory_id) AS revision, "
    "min(created_at) OVER (PARTITION BY memory_id) AS first, rowid AS number FROM {table} "
    "WINDOW events AS (PARTITION BY memory_id ORDER BY rowid DESC)) WHERE last = 1 ORDER BY number",
    in_place=False,
    further=(
        FurtherRows(
            "version_of",
            ("history.memory_id", "history.new_memory"),
            "SELECT memory_id AS version_of, revision, new_memory AS content, coalesce(updated_at, created_at) AS updated_at FROM ("
            "SELECT *, row_number() OVER (PARTITION BY memory_id ORDER BY rowid) AS revision, count(*) OVER (PARTITION BY memory_id) AS many, "
            "rowid AS number FROM history WHERE event <> 'DELETE') WHERE revision < many AND new_memory <> '' ORDER BY number",
        ),
    ),
)
# A point is a pickle; `payload` reads it as JSON and runs nothing of it.
_MEM0_POINTS = Schema(
    "mem0",
    "points",
    {"point": "content", "id": "key", "user_id": "source", "run_id": "session_id"},
    needs=frozenset({"id"}),
    select="SELECT p ->> 'id' AS id, p ->> '$.payload.data' AS point, p ->> '$.payload.user_id' AS user_id, p ->> '$.payload.run_id' AS run_id, "
    "p ->> '$.payload.agent_id' AS agent_id, p ->> '$.payload.created_at' AS created_at, p ->> '$.payload.updated_at' AS updated_at, "
    "date(p ->> '$.payload.expiration_date', '+1 day') || 'T00:00:00+00:00' AS expires_at, "
    "p -> '$.payload.metadata' AS metadata FROM (SELECT payload(point) AS p FROM {table} ORDER BY rowid)",
    in_place=False,
)

_BASIC_MEMORY_RELATIONS = FurtherRows(
    "relation",
    ("relation.from_id", "relation.to_name", "relation.relation_type", "entity.title"),
    "SELECT r.relation_type AS relation, f.title AS source, coalesce(t.title, r.to_name) AS target, r.context AS notes "
    "FROM relation r JOIN entity f ON f.id = r.from_id LEFT JOIN entity t ON t.id = r.to_id ORDER BY r.id",
)
_BASIC_MEMORY = Schema(
    "basic-memory",
    "note_content",
    {"markdown_content": "content", "permalink": "key", "file_path": "session_id", "title": "source"},
    needs=frozenset({"entity_id", "file_path"}),
    select="SELECT e.title, e.permalink, e.file_path, n.markdown_content, e.created_at, e.updated_at FROM entity e "
    "LEFT JOIN {table} n ON n.entity_id = e.id ORDER BY e.id",
    zone=OLDER_SERVERS_ZONE,
    in_place=False,
    further=(_BASIC_MEMORY_RELATIONS,),
)
# Before it had note_content, the text of a note was only in its file, and the database had the observations.
_BASIC_MEMORY_OBSERVATIONS = replace(
    _BASIC_MEMORY,
    table="observation",
    columns={"content": "content", "file_path": "session_id", "title": "source"},
    needs=frozenset({"entity_id", "category", "context"}),
    id="number",
    select="SELECT o.id AS number, e.title, e.file_path, o.content, o.category, o.context, o.tags, e.created_at, e.updated_at "
    "FROM {table} o JOIN entity e ON e.id = o.entity_id UNION ALL "
    "SELECT NULL, e.title, e.file_path, NULL, NULL, NULL, NULL, e.created_at, e.updated_at FROM entity e "
    "WHERE NOT EXISTS (SELECT 1 FROM {table} o WHERE o.entity_id = e.id) ORDER BY 1 NULLS LAST, 2",
    left_out=frozenset({"number"}),
)

# The first one that fits is taken: the more specific ones come first.
SCHEMAS = (
    _LONG_MEMORY,
    _MEMORY_SERVICE_10,
    _MEMORY_SERVICE,
    _NOUS,
    _WITH_USERS,
    OURS,
    _BASIC_MEMORY,
    _BASIC_MEMORY_OBSERVATIONS,
    _MEM0_HISTORY,
    _ENTRIES,
    _MEM0_POINTS,
)


@dataclass(frozen=True, slots=True)
class Recognized:
    """What a database is: its schema, the owners of its memories if they have any, and why its memories can't be read."""

    schema: Schema | None = None
    owners: tuple[str, ...] = ()
    refusal: StoreError | None = field(default=None, compare=False)


def schema_of(connection: apsw.Connection) -> Schema | None:
    """The schema of the memories in a database; None if no table is known to contain any."""
    tables = columns_of(connection)
    return next((schema for schema in SCHEMAS if schema.all_columns <= set(tables.get(schema.table, ()))), None)


def columns_of(connection: apsw.Connection) -> Mapping[str, list[str]]:
    """The columns of each ordinary table, by its name, both in lowercase."""
    rows = connection.execute(
        "SELECT lower(t.name), lower(c.name) FROM pragma_table_list t JOIN pragma_table_xinfo(t.name) c "
        "WHERE t.schema = 'main' AND t.type = 'table' AND t.name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY t.name, c.cid"
    )
    return grouped(rows)


def recognize(connection: apsw.Connection, file_name: str) -> Recognized:
    """The schema of a database. A refusal lists its tables and columns, and what to do."""
    schema = schema_of(connection)
    if schema:
        return Recognized(schema, owners_of(connection, schema))
    tables = columns_of(connection)
    if not tables:
        return Recognized()
    chosen = {"memories": tables["memories"]} if "memories" in tables else dict(list(tables.items())[:TABLES_LISTED])
    listed = "; ".join(f"{table} ({', '.join(columns[:COLUMNS_LISTED])})" for table, columns in chosen.items())
    return Recognized(
        refusal=StoreError(
            "{} is left unread and unchanged",
            "no column of it is known to contain the text of memories, among {}",
            "In a copy, rename the column with the text to `content`, and its table to `memories`",
            file_name,
            listed,
        )
    )


def owners_of(connection: apsw.Connection, schema: Schema) -> tuple[str, ...]:
    """The owners of the memories of a database, sorted."""
    if not schema.owner:
        return ()
    owner = f'substr("{schema.owner}", 1, {OWNER_CHARACTERS})'  # a longer one is no name of a persona, cut off or not
    return tuple(str(row[0] or "") for row in connection.execute(f'SELECT DISTINCT {owner} FROM "{schema.table}" ORDER BY 1'))


def refusal(connection: apsw.Connection, file_name: str) -> StoreError | None:
    """Why a database can't become one persona's: None if it can, or if it has no table at all."""
    recognized = recognize(connection, file_name)
    schema = recognized.schema
    if schema and not schema.in_place:
        return StoreError(
            "{} is left unread and unchanged",
            "it is a database of {}",
            "Import it: `memory-mcp import {}`",
            file_name,
            schema.program,
            file_name,
        )
    if len(recognized.owners) > 1:
        listed = ", ".join(recognized.owners[:OWNERS_LISTED])
        return StoreError(
            "{} is left unread and unchanged",
            "it contains the memories of several, such as {}",
            "Move it into the data directory under a name that ends in .sqlite: each becomes a persona",
            file_name,
            listed,
        )
    return recognized.refusal
