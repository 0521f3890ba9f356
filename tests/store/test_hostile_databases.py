"""Databases of others whose tables compute: what is too long is refused by its row, and nothing is read before its length is known."""

import sqlite3
import tracemalloc

import apsw
import pytest

from memory_mcp.errors import InvalidInput, StoreError
from memory_mcp.personas.registry import Personas
from memory_mcp.store.legacy import foreign_limits, lines
from memory_mcp.store.legacy.foreign_limits import OWN_VALUE_LIMIT_BYTES, VALUE_LIMIT_BYTES
from memory_mcp.transfer.formats.readers import database

# Making the file computes it, too.
LONG = OWN_VALUE_LIMIT_BYTES + 1
DEFINITION = "key TEXT, created_at TEXT DEFAULT '2025-01-01', times INT DEFAULT 1, content TEXT AS (printf('%.*c', times, 'x')), further"


def made(path, *rows, definition=DEFINITION, sql=""):
    connection = sqlite3.connect(path)
    connection.execute(f"CREATE TABLE memories ({definition})")
    for row in rows:
        connection.execute(f"INSERT INTO memories ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})", list(row.values()))
    connection.executescript(sql)
    connection.commit()
    connection.close()
    return path


def read(path):
    """What is stored of each row, and the reasons of the others."""
    items = list(database(path))
    return [item.row["key"] for item in items if item.row], [f"{item.where}: {item.refused}" for item in items if item.refused]


def test_a_row_with_a_value_that_is_too_long_is_refused_and_the_others_are_read(tmp_path):
    rows = [
        {"key": "a"},
        {"key": "computed", "times": LONG},
        {"key": "b"},
        {"key": "plain", "further": b"x" * (VALUE_LIMIT_BYTES + 1)},
        {"key": "text", "further": "あ" * VALUE_LIMIT_BYTES},
        {"key": "c" * VALUE_LIMIT_BYTES + "c"},
        {"key": "last", "times": LONG},
    ]
    stored, refused = read(made(tmp_path / "a.sqlite", *rows))
    assert stored == ["a", "b"]
    limit = f"has more than {VALUE_LIMIT_BYTES:,} bytes."
    assert refused == [
        f"a.sqlite, row 2: One of its values {limit}",
        f"a.sqlite, plain: Its further {limit}",
        f"a.sqlite, text: Its further {limit}",
        f"a.sqlite, row 6: Its key {limit}",
        f"a.sqlite, row 7: One of its values {limit}",
    ]


def test_what_is_too_long_is_not_read(tmp_path):
    rows = [{"key": str(number), "further": bytes(30_000_000)} for number in range(3)]
    path = made(tmp_path / "a.sqlite", {"key": "a", "times": LONG}, *rows)
    highest = apsw.memory_high_water(True)
    tracemalloc.start()
    assert not read(path)[0]
    python = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert max(python, apsw.memory_high_water() - highest) < 30_000_000


@pytest.mark.parametrize(
    ("definition", "sql"),
    [
        ("id INT, user_id TEXT, created_at TEXT, content TEXT AS (printf('%.*c', 70000000, 'x'))", "INSERT INTO memories (id) VALUES (1)"),
        ("id INT, user_id TEXT AS (printf('%.*c', 70000000, 'x')), content TEXT", "INSERT INTO memories (id, content) VALUES (1, 'a')"),
        (
            "content_hash TEXT, memory_type TEXT, content TEXT AS (hex(zeroblob(40000000)))",
            "INSERT INTO memories (content_hash) VALUES ('a')",
        ),
    ],
)
def test_a_computed_value_of_any_program_is_bounded(tmp_path, definition, sql):
    stored, refused = read(made(tmp_path / "a.sqlite", definition=definition, sql=sql))
    assert (stored, len(refused)) == ([], 1)


def test_a_row_of_many_long_values_is_bounded_too(tmp_path):
    columns = ", ".join(f"c{number} TEXT AS (printf('%.*c', 3000000, 'x'))" for number in range(60))
    path = made(
        tmp_path / "a.sqlite", definition=f"key TEXT, content TEXT, {columns}", sql="INSERT INTO memories (key, content) VALUES ('a', 'b')"
    )
    apsw.memory_high_water(True)
    before = apsw.memory_used()
    assert read(path)[0] == []
    assert apsw.memory_high_water() - before < 2 * 16 * VALUE_LIMIT_BYTES


def test_a_table_that_is_endless_is_given_up(tmp_path):
    path = made(
        tmp_path / "a.sqlite",
        definition="id INTEGER, user_id TEXT, content TEXT, importance_score REAL",
        sql="WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000) INSERT INTO memories SELECT i, 'a', 'b', 1 FROM n;"
        "CREATE TABLE memory_links (id INT, src_memory_id INT, dst_memory_id INT, relation_type TEXT, weight REAL, confidence_score REAL,"
        "created_at TEXT)",
    )
    with pytest.raises(InvalidInput, match="take too long"):
        list(lines.read(path, steps=-foreign_limits.STEPS_PER_BYTE * path.stat().st_size))


def test_views_and_triggers_of_a_foreign_file_are_not_run(tmp_path):
    connection = sqlite3.connect(tmp_path / "a.sqlite")
    connection.execute(
        "CREATE VIEW memories AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i FROM n) SELECT i AS key, i AS content FROM n"
    )
    connection.close()
    stored, refused = read(tmp_path / "a.sqlite")
    assert (stored, len(refused)) == ([], 1)


def test_an_older_store_with_a_value_that_cannot_be_taken_over_says_so_and_is_left_as_it_is(tmp_path):
    directory = tmp_path / "nilou"
    directory.mkdir()
    path = made(directory / "memory.sqlite", {"key": "a"}, {"key": "b", "times": LONG})
    personas = Personas(tmp_path)
    with pytest.raises(StoreError, match="row 2: one of its values has more than"), personas.reading("nilou"):
        pass
    personas.close()
    connection = sqlite3.connect(path)
    assert connection.execute("SELECT count(*) FROM memories").fetchone() == (2,)
    connection.close()
