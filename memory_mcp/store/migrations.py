"""The database schema as a list of named migrations, which only grows: a released migration is never edited.

In the file of an older server, conflicting tables are renamed first and its memories are converted last, so that the migrations
themselves only see tables of ours.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing, suppress
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import apsw

from memory_mcp.errors import StoreDamaged, StoreError
from memory_mcp.feature import modules
from memory_mcp.store import operations, timestamps
from memory_mcp.store.graph import schema as graph_schema
from memory_mcp.store.legacy import foreign_schemas, further_rows, row_conversion, table_adoption
from memory_mcp.store.legacy.table_adoption import MEMORIES, Converted
from memory_mcp.store.operations import Operation
from memory_mcp.store.sqlite.errors import shown_name

# How many of the rows that aren't adopted are named.
ROWS_NAMED = 100

# The oldest state that is opened. What was made before it has another record for each of its changes.
FIRST = "0021 few segments of the lexical index"


def _first_schema(connection: apsw.Connection) -> None:
    connection.execute(Path(__file__).with_name("schema.sql").read_text(encoding="utf-8"))
    graph_schema.insert_types(connection)


# Older memories get their dates in the background, when they are searched for names again: those that may contain a date.
# Keep the times that texts name, and order memories by their place in the timeline.
_TIMES = """
CREATE TABLE memory_dates (
    memory INTEGER NOT NULL REFERENCES memories(id) ON DELETE CASCADE,
    start TEXT NOT NULL,
    "end" TEXT NOT NULL
);
CREATE INDEX memory_dates_by_memory ON memory_dates(memory);
CREATE INDEX memory_dates_by_start ON memory_dates(start);
CREATE INDEX memories_by_told_time ON memories(min(coalesce(occurred_at, created_at), created_at), id);
INSERT OR REPLACE INTO graph_queue(memory, named) SELECT id, 0 FROM memories
    WHERE kind <> 'summary' AND deleted_at IS NULL AND (content GLOB '*[0-9０-９日月週曜朝夜晩]*' OR content LIKE '%day%' OR content LIKE '%week%' OR content LIKE '%night%');
"""

# A text that nobody dated names no day by 明日. Those that were stored before count their words from the dates in them, once they are read
# again.
# Note of which memories nobody knows when they were written, and derive the times that texts name again.
_UNDATED = """
CREATE TABLE undated_memories (memory INTEGER PRIMARY KEY REFERENCES memories(id) ON DELETE CASCADE);
INSERT OR REPLACE INTO graph_queue(memory, named) SELECT id, 0 FROM memories
    WHERE kind <> 'summary' AND deleted_at IS NULL AND (content GLOB '*[0-9０-９日月週曜朝夜晩]*' OR content LIKE '%day%' OR content LIKE '%week%' OR content LIKE '%night%');
"""

# Read at every call, so that nothing that has expired is found.
# Add the time from which a memory is not found any more.
_EXPIRY = """
ALTER TABLE memories ADD COLUMN expires_at TEXT;
CREATE INDEX memories_by_expiry ON memories(expires_at) WHERE expires_at IS NOT NULL AND deleted_at IS NULL;
"""


def _callers(connection: apsw.Connection) -> None:
    """Add through which entry point and with which token an operation was called."""
    if "caller" not in {row[0] for row in connection.execute("SELECT lower(name) FROM pragma_table_info('operations')")}:
        connection.execute("ALTER TABLE operations ADD COLUMN caller TEXT")


# A turn is one row, so that there is never half of one.
# Keep conversations, turn by turn.
_CONVERSATIONS = """
CREATE TABLE conversations (
    id TEXT PRIMARY KEY,
    title TEXT NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    members TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX conversations_by_update ON conversations(updated_at, id);
CREATE TABLE conversation_turns (
    conversation TEXT NOT NULL,
    number INTEGER NOT NULL,
    ended_at TEXT NOT NULL,
    model TEXT NOT NULL,
    messages TEXT NOT NULL,
    recalled TEXT NOT NULL,
    stored TEXT NOT NULL,
    PRIMARY KEY (conversation, number)
);
"""

# Keep the verdicts on memories, their latest showings by caller, and how many searches found something.
_FEEDBACK = """
CREATE TABLE feedback (
    memory INTEGER NOT NULL REFERENCES memories(id) ON DELETE CASCADE,
    verdict TEXT NOT NULL,
    at TEXT NOT NULL,
    caller TEXT NOT NULL,
    run TEXT NOT NULL,
    query TEXT
);
CREATE INDEX feedback_by_memory ON feedback(memory, verdict);
CREATE INDEX feedback_by_run ON feedback(run) WHERE run <> '';
CREATE TABLE showings (
    memory INTEGER NOT NULL REFERENCES memories(id) ON DELETE CASCADE,
    caller TEXT NOT NULL,
    at TEXT NOT NULL,
    PRIMARY KEY (memory, caller)
) WITHOUT ROWID;
CREATE TABLE searches (day TEXT PRIMARY KEY, asked INTEGER NOT NULL, answered INTEGER NOT NULL) WITHOUT ROWID;
"""

_THAT_MATTER = """CREATE INDEX memories_that_matter ON memories(id) WHERE (importance > 0.5 OR instr(tags, '"keep"') > 0)"""
# Find judgements among the outcomes: each search asks whether there are any.
_JUDGED_FEEDBACK = "CREATE INDEX feedback_judged ON feedback(verdict) WHERE verdict IN ('helped', 'hurt', 'stale')"
# The turn before each of 150 memories is read from the index alone, in a third of the time.
_TURNS_IN_ORDER = """
DROP INDEX memories_by_session;
CREATE INDEX memories_by_session ON memories(session_id, coalesce(occurred_at, created_at), id, kind, deleted_at) WHERE session_id IS NOT NULL;
"""
# Let FTS5 merge eight segments of a size at once while it writes, not sixteen: nothing else does before the server is idle.
_FEWER_SEGMENTS_AT_ONCE = "INSERT INTO lexical(lexical, rank) VALUES ('crisismerge', 8)"
# Make summaries again that are dated after they were made: they were dated by the plans in them.
_MISDATED_SUMMARIES = """
INSERT OR IGNORE INTO summaries_due(scope, subject, touched_at)
SELECT s.scope, s.subject, m.updated_at FROM summaries s JOIN memories m ON m.key = s.key WHERE m.occurred_at > m.updated_at
"""


def _local_times_of_operations(connection: apsw.Connection) -> None:
    """Give the operations that an older server recorded in its local time an offset, as ours have."""
    rows = connection.execute(
        "SELECT id, timestamp FROM operations WHERE timestamp NOT LIKE '%+__:__' AND timestamp NOT LIKE '%Z'"
    ).fetchall()
    for id_, text in rows:
        if at := row_conversion.moment(text):
            connection.execute("UPDATE operations SET timestamp = ? WHERE id = ?", (timestamps.to_text(at), id_))


# Each is a script in SQL, or a function for what SQL can't do.
MIGRATIONS: list[tuple[str, str | Callable[[apsw.Connection], None]]] = [
    (FIRST, _first_schema),
    ("0022 times named by texts", _TIMES),
    ("0023 expiry", _EXPIRY),
    ("0024 callers", _callers),
    ("0025 conversations", _CONVERSATIONS),
    ("0026 stated relations by type", graph_schema.STATED_INDEXES),
    ("0027 feedback", _FEEDBACK),
    ("0028 judged feedback", _JUDGED_FEEDBACK),
    ("0029 turns in order", _TURNS_IN_ORDER),
    ("0030 fewer segments while writing", _FEWER_SEGMENTS_AT_ONCE),
    ("0031 misdated summaries", _MISDATED_SUMMARIES),
    ("0032 memories that matter", _THAT_MATTER),
    ("0033 times of adopted operations", _local_times_of_operations),
    ("0034 memories compared with newer ones", graph_schema.COMPARED_WITH_NEWER),
    ("0035 undated memories", _UNDATED),
    *(migration for module in modules("migrations") for migration in module.MIGRATIONS),
]


def run(connection: apsw.Connection, step: str | Callable[[apsw.Connection], None]) -> None:
    """Apply one migration, without a record that it is applied."""
    connection.execute(step) if isinstance(step, str) else step(connection)


def pending(connection: apsw.Connection) -> list[str]:
    """The names of the migrations not yet applied to this file."""
    done = _done(connection)
    return [name for name, _ in MIGRATIONS if name not in done]


def check_schema(connection: apsw.Connection, file_name: str) -> None:
    """Refuse a file that a newer version or an unknown program has written, before anything in it is changed.

    Raises:
        StoreError: it has migrations that this version doesn't know, or no table that is known to contain memories, or lacks what its
            migrations made.
    """
    done = _done(connection)
    if not done and (unknown := foreign_schemas.refusal(connection, file_name)):
        raise unknown
    if done and max(done) < FIRST:
        raise StoreError(
            "the memories were written by a version before the first release",
            "its last change is {}, and the first that can be opened is {}",
            "Start a version of November 2026 on them once, which brings them up to date; nothing was changed",
            repr(max(done)),
            repr(FIRST),
        )
    # A feature's begin with its name. Where its folder is gone, its tables stay.
    if further := sorted(name for name in done - {name for name, _ in MIGRATIONS} if name[:1].isdigit() and name > FIRST):
        raise StoreError(
            "the memories were written by a newer version",
            "it made the change {}, which this one doesn't know",
            "Start that version again; nothing was changed",
            repr(further[0]),
        )
    if done and (altered := _altered(connection, done)):
        raise StoreDamaged(
            "the tables of {} were changed by another program",
            "{}",
            "Restore a backup; nothing was changed",
            shown_name(Path(connection.filename)),
            altered,
        )


def is_migrated(connection: apsw.Connection) -> bool:
    """Whether any migration of ours, or of a newer version, was applied to this file."""
    return bool(_done(connection))


def our_tables() -> set[str]:
    """The lowercase names of all tables that migrations create."""
    return _created_by([name for name, _ in MIGRATIONS])


def touches_older_tables(connection: apsw.Connection) -> bool:
    """Whether `migrate` would rename or convert tables of an older server, so that the file must be copied first."""
    todo = pending(connection)
    tables = table_adoption.tables(connection) if todo else []
    if not tables:
        return False
    if not is_migrated(connection) and foreign_schemas.schema_of(connection):
        return True
    return not _created_by(todo).isdisjoint(tables)


def migrate(connection: apsw.Connection) -> Operation | None:
    """Apply the pending migrations in the caller's transaction. Returns the operation to log if an older store was adopted.

    Foreign keys must be off, because tables of an older server may reference its memories.
    """
    todo = pending(connection)
    older = todo and touches_older_tables(connection)
    schema = None if is_migrated(connection) else foreign_schemas.schema_of(connection)
    further = list(further_rows.read(connection, schema)) if schema else []
    needed = _created_by(todo) if older else set()
    dropped = table_adoption.drop_views_and_triggers(connection) if MEMORIES in needed else []
    renamed = table_adoption.rename_conflicting(connection, needed)
    connection.execute("CREATE TABLE IF NOT EXISTS migrations (name TEXT PRIMARY KEY, applied_at TEXT NOT NULL)")
    now = datetime.now(UTC)
    for name, step in MIGRATIONS:
        if name in todo:
            run(connection, step)
            connection.execute("INSERT INTO migrations VALUES (?, ?)", (name, timestamps.to_text(now)))
    table = renamed.pop(schema.table, schema.table) if schema else ""
    converted = table_adoption.convert_memories(connection, table, schema, further) if schema else Converted()
    if not older:
        return None
    left = {"without_text": _named(converted.without_text), "refused": _named(converted.refused)}
    done = Operation(
        "adopt",
        None,
        now,
        metadata={"memories": converted.memories, "in_trash": converted.in_trash, **left, "renamed_tables": renamed, "dropped": dropped},
    )
    operations.record(connection, done)
    return done


def _named(rows: Sequence[str]) -> dict[str, Any]:
    return {"count": len(rows), "first": list(rows[:ROWS_NAMED])}


def _done(connection: apsw.Connection) -> set[str]:
    """The migrations applied to a file; none if its table `migrations` isn't ours."""
    columns = [row[0] for row in connection.execute("SELECT name FROM pragma_table_info('migrations')")]
    return {row[0] for row in connection.execute("SELECT name FROM migrations")} if columns == ["name", "applied_at"] else set()


def _altered(connection: apsw.Connection, done: Collection[str]) -> str:
    """How a file differs from what its migrations made of it, as far as one look shows; empty if it doesn't."""
    todo = [name for name, _ in MIGRATIONS if name not in done]
    try:
        coming = _created_by(todo) if todo else set()
    except apsw.Error:  # later changes build on it
        return f"the record of the change {todo[0]!r} is lost"
    kinds = {
        name.lower(): kind for kind, name in connection.execute("SELECT type, name FROM sqlite_schema WHERE type IN ('table', 'view')")
    }
    for table, columns in _tables().items():
        if table not in coming and kinds.get(table) != "table":
            return f"{table} is a view" if table in kinds else f"the table {table} is missing"
        # A table of an older server may have the name of one to come, but not all its columns.
        if table in coming and table in kinds and _columns(connection, table) == columns:
            return f"the record of the change that made {table} is lost"
    return _obstacle(connection, done) if todo else ""


def lost_columns(connection: apsw.Connection) -> list[str]:
    """The columns that a file with all migrations lacks, as `table.column`. A server finds that out only when it asks for one."""
    return [f"{table}.{column}" for table, columns in _tables().items() for column in sorted(columns - _columns(connection, table))]


def _obstacle(connection: apsw.Connection, done: Collection[str]) -> str:
    """Why the pending migrations can't be made, tried on empty tables like those of the file; empty if they can."""
    with closing(apsw.Connection(":memory:")) as tried:
        for (sql,) in connection.execute(
            "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY sql LIKE 'CREATE VIRTUAL%' DESC, rowid"
        ):
            with suppress(apsw.Error):  # the tables behind a virtual one are there; other programs have tables that can't be made here
                tried.execute(sql)
        try:
            tried.executemany("INSERT INTO migrations VALUES (?, '')", [(name,) for name in done])
            migrate(tried)
        except apsw.Error as error:
            return f"the change {pending(tried)[0]!r} can't be made: {error}"
    return ""


@cache
def _tables() -> Mapping[str, frozenset[str]]:
    """The tables that all migrations make, each with its columns."""
    with closing(apsw.Connection(":memory:")) as blank:
        for _, step in MIGRATIONS:
            run(blank, step)
        return {table: _columns(blank, table) for table in table_adoption.tables(blank)}


def _columns(connection: apsw.Connection, table: str) -> frozenset[str]:
    return frozenset(row[0] for row in connection.execute("SELECT name FROM pragma_table_info(?)", (table,)))


def _created_by(todo: list[str]) -> set[str]:
    """The names of the tables that these migrations create, determined by running them on an empty database."""
    with closing(apsw.Connection(":memory:")) as blank:
        for name, step in MIGRATIONS:
            if name not in todo:
                run(blank, step)
        earlier = set(table_adoption.tables(blank))
        for name, step in MIGRATIONS:
            if name in todo:
                run(blank, step)
        made = set(table_adoption.tables(blank)) - earlier
    return made if earlier else {*made, "migrations"}
