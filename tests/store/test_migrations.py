"""The schema on blank files, on older servers' files, and on files that are up to date."""

import json
import logging
from contextlib import closing, contextmanager
from zipfile import ZipFile

import apsw
import pytest
from places import DATA
from unloaded_models import unloaded_models

from memory_mcp.config.settings import Privacy, Settings
from memory_mcp.domain import Filters, Question
from memory_mcp.errors import MemoryMCPError, StoreError
from memory_mcp.personas.registry import Personas
from memory_mcp.remember.pipeline import remember
from memory_mcp.remember.revise import Revision, revise
from memory_mcp.remember.validation import draft
from memory_mcp.search.pipeline import recall
from memory_mcp.store import memories, migrations, timestamps
from memory_mcp.store.graph import mentions
from memory_mcp.store.session_order import adjacent_turns
from memory_mcp.store.sqlite.database import DATABASE_NAME

SEED = "key TEXT PRIMARY KEY, content TEXT NOT NULL, created_at TEXT NOT NULL, updated_at TEXT NOT NULL"
ROW = ("memory_20251030120000", "夕飯はカレーだった", "2025-10-30T12:00:00", "2025-10-30T12:30:00")
OPERATIONS = """
CREATE TABLE operations (
    id INTEGER PRIMARY KEY AUTOINCREMENT, timestamp TEXT NOT NULL, operation_id TEXT NOT NULL, operation TEXT NOT NULL, key TEXT,
    before TEXT, after TEXT, success INTEGER NOT NULL, error TEXT, metadata TEXT
)
"""
FURTHER = "emotion_type TEXT DEFAULT 'neutral', importance REAL DEFAULT 0.5, environment TEXT, physical_state TEXT"


@pytest.fixture
def older(data_directory):
    """Makes the file that an older server left for nilou."""

    def make(columns: str, *rows: tuple) -> None:
        (data_directory / "nilou").mkdir()
        connection = apsw.Connection(str(data_directory / "nilou" / DATABASE_NAME))
        connection.execute(f"CREATE TABLE memories ({columns})")
        for row in rows:
            connection.execute(f"INSERT INTO memories VALUES ({', '.join('?' * len(row))})", row)
        connection.close()

    return make


@pytest.fixture
def brought_up_to_date(data_directory, now, zone):
    """brought_up_to_date(step, before): a reader of nilou's file, which had not seen this step and was as the SQL of `before` makes it, and was opened then."""

    @contextmanager
    def opened(step, before):
        first = Personas(data_directory)
        with first.writing("nilou") as persona:
            remember(persona, draft("あっくんと遊んだ", now=now, zone=zone), now=now, zone=zone, privacy=Privacy())
            persona.database.write(lambda connection: connection.execute("DELETE FROM migrations WHERE name = ?", (step,)))
            persona.database.write(lambda connection: connection.execute(before))
        first.close()
        second = Personas(data_directory)
        with second.reading("nilou") as persona, persona.database.read() as connection:
            yield connection
        second.close()

    return opened


@pytest.fixture
def adopted(personas):
    """The older memories after the server opened them, by key."""

    def read(*keys: str):
        with personas.reading("nilou") as persona, persona.database.read() as connection:
            return memories.by_keys(connection, keys)

    return read


def columns_of(path) -> list[str]:
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    names = [row[1] for row in connection.execute("PRAGMA table_info(memories)")]
    connection.close()
    return names


def found(personas, now, query: str) -> list[str]:
    settings = Settings(embeddings_model=None, reranker_model=None)
    with personas.reading("nilou") as persona:
        recalled = recall(persona, Question(query=query), models=unloaded_models(settings), settings=settings, now=now)
    return [hit.memory.key for hit in recalled.hits]


def test_a_blank_file_gets_every_step_once(personas, now, zone):
    with personas.writing("nilou") as persona:
        remember(persona, draft("京都", now=now, zone=zone), now=now, zone=zone, privacy=Privacy())
        with persona.database.read() as connection:
            assert migrations.pending(connection) == []
            assert [row[0] for row in connection.execute("SELECT name FROM migrations")] == [name for name, _ in migrations.MIGRATIONS]


def test_a_file_that_is_up_to_date_is_not_written_when_it_is_opened(data_directory, now, zone):
    path = data_directory / "nilou" / DATABASE_NAME
    first = Personas(data_directory)
    with first.writing("nilou") as persona:
        remember(persona, draft("京都", now=now, zone=zone), now=now, zone=zone, privacy=Privacy())
    first.close()
    before = path.read_bytes()
    second = Personas(data_directory)
    assert found(second, now, "京都")
    second.close()
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("columns", "row"),
    [
        (SEED, ROW),
        (f"{SEED}, tags TEXT", (*ROW, '["食事"]')),
        (f"{SEED}, tags TEXT, {FURTHER}", (*ROW, '["食事"]', "joy", 0.9, "home", "tired")),
        (f"{SEED}, Tags TEXT", (*ROW, None)),
    ],
    ids=["without tags", "with tags", "with further columns", "with a capital"],
)
def test_an_older_memory_is_found_changed_and_joined_by_new_ones(older, personas, now, zone, columns, row):
    older(columns, row)
    assert found(personas, now, "カレー") == [ROW[0]]
    with personas.writing("nilou") as persona:
        assert revise(persona, ROW[0], Revision(content="夕飯は寿司だった"), now=now, privacy=Privacy()).revision == 2
        new = remember(persona, draft("朝食は寿司だった", now=now, zone=zone), now=now, zone=zone, privacy=Privacy()).key
    assert set(found(personas, now, "寿司")) == {ROW[0], new}


def test_older_times_without_an_offset_are_local_to_the_older_server(older, adopted):
    older(SEED, ROW)
    memory = adopted(ROW[0])[ROW[0]]
    assert timestamps.to_text(memory.created_at) == "2025-10-30T03:00:00.000000+00:00"
    assert timestamps.to_text(memory.updated_at) == "2025-10-30T03:30:00.000000+00:00"


def test_what_the_older_server_said_of_a_memory_is_kept(older, adopted):
    older(f"{SEED}, tags TEXT, {FURTHER}", (*ROW, '["食事", "夜"]', "joy", 0.9, "home", "tired"))
    memory = adopted(ROW[0])[ROW[0]]
    assert (memory.content, memory.tags, memory.importance, memory.kind, memory.revision) == (ROW[1], ("食事", "夜"), 0.9, "fact", 1)


def test_the_values_of_further_columns_stay_and_the_columns_go(older, adopted, data_directory):
    older(f"{SEED}, tags TEXT, {FURTHER}, height REAL NOT NULL", (*ROW, None, "joy", None, "home", "tired", 1.5))
    memory = adopted(ROW[0])[ROW[0]]
    assert memory.importance == 0.5
    assert memory.state == {"emotion": "joy", "environment": "home", "physical_state": "tired"}
    assert memory.metadata == {"legacy": {"height": 1.5}}
    assert not {"emotion_type", "environment", "height"} & set(columns_of(data_directory / "nilou" / DATABASE_NAME))


@pytest.mark.parametrize(
    ("older_tags", "tags"),
    [
        (None, ()),
        ("", ()),
        ("[]", ()),
        ('["a", "b"]', ("a", "b")),
        ("a, b", ("a", "b")),
        ('"a"', ("a",)),
        ("[1]", ("1",)),
        ("[", ("[",)),
    ],
)
def test_tags_are_read_in_whatever_form_they_were(older, adopted, older_tags, tags):
    older(f"{SEED}, tags TEXT", (*ROW, older_tags))
    assert adopted(ROW[0])[ROW[0]].tags == tags


@pytest.mark.parametrize(("older_importance", "importance"), [(7, 1.0), (-1, 0.0), (None, 0.5), (0.25, 0.25)])
def test_an_older_importance_is_brought_between_0_and_1(older, adopted, older_importance, importance):
    older(f"{SEED}, importance REAL", (*ROW, older_importance))
    assert adopted(ROW[0])[ROW[0]].importance == importance


def test_a_memory_without_a_usable_time_is_adopted_and_reported(older, adopted, caplog):
    older(SEED.replace(" NOT NULL", ""), ("k1", "京都", "unknown", None))
    with caplog.at_level(logging.WARNING):
        memory = adopted("k1")["k1"]
    assert memory.created_at == memory.updated_at
    assert "k1" in caplog.text


def test_one_unusable_time_does_not_cost_the_other(older, adopted):
    older(SEED.replace(" NOT NULL", ""), (*ROW[:3], None))
    memory = adopted(ROW[0])[ROW[0]]
    assert timestamps.to_text(memory.created_at) == timestamps.to_text(memory.updated_at) == "2025-10-30T03:00:00.000000+00:00"


def test_a_row_without_content_is_no_memory_and_does_not_lock_the_others_away(older, adopted):
    older(SEED.replace(" NOT NULL", ""), ("k1", None, *ROW[2:]), ROW)
    assert {key: memory.content for key, memory in adopted("k1", ROW[0]).items()} == {ROW[0]: ROW[1]}


def test_every_older_memory_waits_for_its_vectors_in_one_chunk(older, personas):
    older(SEED, ROW, ("k2", "x" * 9, *ROW[2:]))
    with personas.reading("nilou") as persona, persona.database.read() as connection:
        assert connection.execute('SELECT memory_id, start, "end" FROM chunks').fetchall() == [(1, 0, len(ROW[1])), (2, 0, 9)]
        assert connection.execute("SELECT count(*) FROM index_queue").get == 2


def test_an_older_table_of_operations_is_kept_and_continued(older, personas, data_directory, now, zone):
    older(SEED, ROW)
    connection = apsw.Connection(str(data_directory / "nilou" / DATABASE_NAME))
    connection.execute(OPERATIONS)
    connection.execute("INSERT INTO operations(timestamp, operation_id, operation, success) VALUES ('2025-01-01', 'old', 'create', 1)")
    connection.close()
    with personas.writing("nilou") as persona:
        remember(persona, draft("京都", now=now, zone=zone), now=now, zone=zone, privacy=Privacy())
        with persona.database.read() as connection:
            assert [row[0] for row in connection.execute("SELECT operation FROM operations ORDER BY id")] == ["create", "adopt", "create"]
            # The older server wrote the time of its clock in Tokyo.
            assert connection.execute("SELECT timestamp FROM operations ORDER BY id LIMIT 1").get == "2024-12-31T15:00:00.000000+00:00"


def test_a_step_that_fails_leaves_the_file_as_it_was(older, personas, data_directory, monkeypatch):
    def fails(connection):
        connection.execute("CREATE TABLE half (x)")
        raise MemoryMCPError("this step can't be done")

    older(SEED, ROW)
    monkeypatch.setattr(migrations, "MIGRATIONS", [*migrations.MIGRATIONS, ("9999 fails", fails)])
    with pytest.raises(MemoryMCPError, match="can't be done"), personas.reading("nilou"):
        pass
    assert columns_of(data_directory / "nilou" / DATABASE_NAME) == ["key", "content", "created_at", "updated_at"]
    monkeypatch.undo()
    with personas.reading("nilou") as persona, persona.database.read() as connection:
        assert list(memories.by_keys(connection, [ROW[0]])) == [ROW[0]]


def test_a_later_step_is_applied_to_a_file_that_has_the_earlier_ones(data_directory, personas, now, zone, monkeypatch):
    with personas.writing("nilou") as persona:
        key = remember(persona, draft("京都", now=now, zone=zone), now=now, zone=zone, privacy=Privacy()).key
    personas.close()
    later = ("9999 a column", lambda connection: connection.execute("ALTER TABLE memories ADD COLUMN mood TEXT"))
    monkeypatch.setattr(migrations, "MIGRATIONS", [*migrations.MIGRATIONS, later])
    again = Personas(data_directory)
    assert found(again, now, "京都") == [key]
    again.close()
    assert "mood" in columns_of(data_directory / "nilou" / DATABASE_NAME)


def test_tags_are_stored_as_a_json_list_for_other_tools_to_read(older, personas):
    older(f"{SEED}, tags TEXT", (*ROW, "a, 食事"))
    with personas.reading("nilou") as persona, persona.database.read() as connection:
        assert json.loads(connection.execute("SELECT tags FROM memories").get) == ["a", "食事"]


def test_a_file_from_before_the_first_release_is_refused_as_it_is(personas, data_directory, now, zone):
    with personas.writing("nilou") as persona:
        remember(persona, draft("京都", now=now, zone=zone), now=now, zone=zone, privacy=Privacy())
        persona.database.write(
            lambda connection: connection.execute("UPDATE migrations SET name = '0020 names compared anew' WHERE rowid = 1")
        )
        persona.database.write(lambda connection: connection.execute("DELETE FROM migrations WHERE name > '0020 names compared anew'"))
    personas.close()
    path = data_directory / "nilou" / DATABASE_NAME
    before = path.read_bytes()
    with (
        pytest.raises(StoreError, match=r"before the first release.*Start a version of November 2026"),
        Personas(data_directory).reading("nilou"),
    ):
        pass
    assert path.read_bytes() == before


@pytest.mark.parametrize("archive", ["stored_2026_11.zip", "stored_2026_11_27.zip"])
def test_a_kept_store_has_the_tables_of_a_new_one_once_it_is_opened(personas, data_directory, tmp_path, now, zone, archive):
    with personas.writing("new") as persona:
        remember(persona, draft("京都", now=now, zone=zone), now=now, zone=zone, privacy=Privacy())
        with persona.database.read() as connection:
            new = schema_of(connection)
    with ZipFile(DATA / archive) as kept:
        kept.extractall(tmp_path / "kept")
    with closing(Personas(tmp_path / "kept" / "memory")) as older, older.reading("nilou") as persona, persona.database.read() as connection:
        assert schema_of(connection) == new


def schema_of(connection) -> list[tuple]:
    """The columns of each table in their order, and the other things of a schema as they were written."""
    columns = "SELECT t.name, c.cid, c.name, c.type, c.\"notnull\", c.dflt_value, c.pk FROM sqlite_schema t, pragma_table_info(t.name) c WHERE t.type = 'table' ORDER BY 1, 2"
    others = "SELECT name, tbl_name, type FROM sqlite_schema WHERE type <> 'table' AND sql IS NOT NULL ORDER BY name"
    return [*connection.execute(columns), *connection.execute(others)]


def test_a_file_from_before_has_no_more_than_eight_segments_of_a_size(brought_up_to_date):
    before = "INSERT INTO lexical(lexical, rank) VALUES ('crisismerge', 16)"
    with brought_up_to_date("0030 fewer segments while writing", before) as connection:
        assert connection.execute("SELECT v FROM lexical_config WHERE k = 'crisismerge'").get == 8


@pytest.mark.parametrize(
    ("dated", "due"), [("9999-01-01T00:00:00.000000+00:00", [("day", "2025-10-30")]), ("2025-10-30T03:00:00.000000+00:00", [])]
)
def test_a_summary_that_is_dated_after_it_was_made_is_made_again(brought_up_to_date, dated, due):
    before = f"""
        UPDATE memories SET kind = 'summary', occurred_at = '{dated}';
        INSERT INTO summaries SELECT key, 'day', '2025-10-30', 'of these memories' FROM memories
    """
    with brought_up_to_date("0031 misdated summaries", before) as connection:
        assert connection.execute("SELECT scope, subject FROM summaries_due").fetchall() == due


def plan_of(connection, search, table: str, values: tuple) -> list[str]:
    """How SQLite answers the statement of a search that asks this table."""
    asked = []
    connection.trace_v2(apsw.SQLITE_TRACE_STMT, lambda event: asked.append(event["sql"]))
    search()
    connection.trace_v2(0, None)
    (sql,) = [statement for statement in asked if table in statement]
    return [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", values)]


def test_what_a_search_asks_of_an_entity_stands_in_its_index(brought_up_to_date):
    with brought_up_to_date("0029 turns in order", "") as connection:
        plan = plan_of(connection, lambda: mentions.memories_of(connection, {1: 1.0}, Filters(), 5), "entity_mentions", ("[]",))
    assert any("COVERING INDEX entity_mentions_by_entity" in step for step in plan)


def test_the_turns_beside_a_memory_are_found_in_the_index_of_sessions_alone(brought_up_to_date):
    with brought_up_to_date("0029 turns in order", "") as connection:
        plan = plan_of(connection, lambda: adjacent_turns(connection, [1], "before"), "memories", ("[]",))
    assert any("COVERING INDEX memories_by_session" in step for step in plan)


def test_the_operations_of_an_older_server_that_were_adopted_before_get_their_time_zone(brought_up_to_date):
    before = "INSERT INTO operations(timestamp, operation_id, operation, success) VALUES ('2025-10-30T12:00:00', 'o1', 'create', 1)"
    with brought_up_to_date("0033 times of adopted operations", before) as connection:
        times = dict(connection.execute("SELECT operation_id, timestamp FROM operations").fetchall())
    assert times.pop("o1") == "2025-10-30T03:00:00.000000+00:00"
    assert all(text.endswith("+00:00") for text in times.values())
