"""A database of a program that isn't known keeps its text: it is named, and neither read, moved nor changed, and everything else is served."""

import sqlite3
from contextlib import closing

import pytest
from older_stores import CURRY, STORES, adopt, exported, make_store, rows_of, started

from memory_mcp import cli
from memory_mcp.errors import StoreError
from memory_mcp.personas.names import directory_name
from memory_mcp.transfer.formats import Format
from memory_mcp.transfer.formats.import_rows import ReadOptions
from memory_mcp.transfer.formats.table import ROWS

pytestmark = pytest.mark.slow

# Tables as other programs make them, each with a row that nobody may lose.
UNKNOWN = {
    "fact": "CREATE TABLE memories (id INTEGER PRIMARY KEY, project_id TEXT, subject TEXT, fact TEXT, created_at INTEGER);"
    "INSERT INTO memories VALUES (1, 'p', 'slack:1', '旅人は苺が好き', 1761793200)",
    "summary": "CREATE TABLE memories (id INTEGER PRIMARY KEY, at REAL NOT NULL, kind TEXT, summary TEXT, provenance TEXT);"
    "INSERT INTO memories VALUES (1, 1761793200, 'diary', '京都に行った', 'chat')",
    "memory_value": "CREATE TABLE memories (id INTEGER PRIMARY KEY, category TEXT, memory_key TEXT, memory_value TEXT, created_at TEXT);"
    "INSERT INTO memories VALUES (1, 'food', 'dinner', '夕飯はカレー', '2025-10-30')",
    "body": "CREATE TABLE notes (id TEXT PRIMARY KEY, body TEXT, at TEXT); CREATE TABLE tags (note TEXT, tag TEXT);"
    "INSERT INTO notes VALUES ('n1', 'お寺を見た', '2025-10-31')",
    "contents": "CREATE TABLE Memories (Key TEXT PRIMARY KEY, Contents TEXT, Created_At TEXT, Updated_At TEXT);"
    "INSERT INTO Memories VALUES ('k', '抹茶', '2025-10-30', '2025-10-30')",
    "blob": "CREATE TABLE points (id TEXT PRIMARY KEY, blob BLOB); INSERT INTO points VALUES ('p', x'8004')",
}
PLACES = ["albedo.sqlite", "albedo/memory.sqlite", "アルベド/memory.sqlite"]


def make_unknown(path, script):
    """Writes the database of another program."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(script)


def everything(directory):
    """Every file with its bytes and times, and every directory."""
    stats = {path: path.stat() for path in [directory, *directory.rglob("*")]}
    return {path: (stat.st_mtime_ns, stat.st_mode, path.read_bytes() if path.is_file() else b"") for path, stat in stats.items()}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("column", UNKNOWN)
def test_a_store_without_a_column_known_to_hold_the_text_is_named_and_left_as_it_is(data_directory, caplog, figure, column, place):
    path = data_directory / place
    make_unknown(path, UNKNOWN[column])
    make_store(data_directory / "nilou" / "memory.sqlite", STORES["with tags"])
    there = path if path.parent == data_directory else path.parent
    before = everything(there) if there.is_dir() else (there.read_bytes(), there.stat())
    with started(data_directory) as personas:
        assert [line["content"] for line in exported(personas, "nilou")][:1] == [CURRY["content"]]
        if place == "albedo/memory.sqlite":
            with pytest.raises(StoreError, match="left unread"), personas.reading("albedo"):
                pass
    assert (everything(there) if there.is_dir() else (there.read_bytes(), there.stat())) == before
    for said in (path.name, column, "rename the column with the text to `content`"):
        assert said in caplog.text
    assert "albedo" in caplog.text or "アルベド" in caplog.text
    figure("stores of unknown columns refused unread", 1)


@pytest.mark.parametrize("place", PLACES)
def test_doctor_and_adopt_name_it_and_what_to_do(data_directory, tmp_path, capsys, place):
    make_unknown(data_directory / place, UNKNOWN["fact"])
    config = tmp_path / "config.json"
    config.write_text('{"embeddings_model": null, "reranker_model": null}')
    assert cli.run(["doctor", "--config", str(config), "--data", str(data_directory)]) == 1
    doctor = capsys.readouterr().out
    assert cli.run(["adopt", "--dry-run", "--data", str(data_directory)]) == 1
    foreseen = capsys.readouterr().out
    assert cli.run(["adopt", "--data", str(data_directory)]) == 1
    for said in (doctor, foreseen, capsys.readouterr().out):
        assert "memories (id, project_id, subject, fact, created_at)" in said
        assert "rename the column with the text to `content`" in said


@pytest.mark.parametrize("column", UNKNOWN)
def test_an_import_refuses_it_the_same_way(tmp_path, column):
    path = tmp_path / "store.sqlite"
    make_unknown(path, UNKNOWN[column])
    before = path.read_bytes()
    (item,) = ROWS[Format.DATABASE].read(path, ReadOptions(), print)
    assert item.row is None
    assert column in item.refused
    assert "rename the column with the text to `content`" in item.refused
    assert path.read_bytes() == before


def test_it_is_adopted_once_its_column_is_renamed(data_directory):
    path = data_directory / "albedo.sqlite"
    make_unknown(path, UNKNOWN["fact"])
    assert [bool(item.refused) for item in adopt(data_directory)] == [True]
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("ALTER TABLE memories RENAME COLUMN fact TO content")
    assert [bool(item.refused) for item in adopt(data_directory)] == [False]
    with started(data_directory) as personas:
        assert [line["content"] for line in exported(personas, "albedo")] == ["旅人は苺が好き"]


def test_an_unfolded_log_is_looked_at_and_left_too(data_directory, tmp_path):
    live = tmp_path / "live.sqlite"
    with closing(sqlite3.connect(live)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.executescript(UNKNOWN["fact"])
        for place in PLACES:
            path = data_directory / place
            path.parent.mkdir(exist_ok=True)
            for ending in ("", "-wal"):
                path.with_name(path.name + ending).write_bytes(live.with_name(live.name + ending).read_bytes())
    paths = [path for path in data_directory.rglob("*.sqlite*") if path.is_file()]
    before = {path: path.read_bytes() for path in paths}
    adopt(data_directory)
    assert {path: path.read_bytes() for path in paths} == before
    assert not list(data_directory.glob(f"{directory_name('アルベド')}*"))


def test_rows_without_text_are_counted_apart_and_named(data_directory, caplog):
    rows = [CURRY, *[{**CURRY, "key": "silent", "content": " 　"}] * 2, {**CURRY, "key": None, "content": None}]
    make_store(data_directory / "nilou" / "memory.sqlite", type(STORES["with tags"])("key, content, created_at, updated_at", rows))
    caplog.set_level("INFO")
    with started(data_directory) as personas:
        assert [line["content"] for line in exported(personas, "nilou")] == [CURRY["content"]]
    assert rows_of(data_directory / "nilou" / "memory.sqlite", "legacy_memories") == rows[1:]
    assert "nilou: 1 memories of an older server were adopted" in caplog.text
    assert "nilou: 3 rows of an older server have no text and stay in its table: silent, silent, row 4" in caplog.text
