"""kill -9 in the midst of what makes the graph: afterwards it is what it would be if nothing had happened, and nothing said is lost or there twice."""

import json
import sqlite3
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import httpx2
import pytest
from crashing import WOVEN, crashing, died
from processes import RunningServer
from soundness import faults, graph_faults
from writers import Caller

from memory_mcp.config.settings import Privacy
from memory_mcp.graph.update.cooccurrence import update_graph
from memory_mcp.personas.registry import Persona, Personas
from memory_mcp.transfer.jsonlines import ExportOptions, ImportOptions, export_lines, import_lines

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120), pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")]

PEOPLE = ("佐藤", "鈴木", "高橋", "伊藤", "渡辺")
MEMORIES = [
    {
        "key": f"memory_{number:02d}",
        "content": f"{PEOPLE[number % 5]}さんと{PEOPLE[number // 5 % 5]}さんがダイズを連れて{number}回目の散歩をした",
        "relations": [f"{PEOPLE[number % 5]} > knows > {PEOPLE[(number + 1) % 5]}"] if number % 4 == 0 else [],
    }
    for number in range(20)
]
LEARNED = {"key": "memory_99", "content": "[[ダイズ|Object]]は犬の名前"}
STATED = [f"{one} > likes > {fruit}" for one in PEOPLE for fruit in ("苺", "桃")]
GRAPH_LINES: list[dict[str, Any]] = [
    {"entity": "田中", "type": "Person", "made_by": "user", "description": "隣の人", "aliases": ["たなっち"]},
    *({"entity": name, "type": "Person", "made_by": "user"} for name in ("山本", "ヤマモト")),
    {"relation": "knows", "source": "田中", "source_type": "Person", "target": "佐藤", "target_type": "Person"},
    {"merged_entity": "田中太郎", "type": "Person", "into_entity": "田中", "into_type": "Person"},
]
Graph = tuple[list[Any], list[Any]]


def steps() -> list[tuple[str, dict[str, Any]]]:
    """What a client does, one call after the other; each may be sent again."""
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in MEMORIES)
    return [
        ("import", {"lines": lines}),
        ("import", {"lines": json.dumps(LEARNED, ensure_ascii=False)}),
        ("relate", {"relations": STATED}),
        ("unrelate", {"relation": STATED[0]}),
        ("import", {"lines": "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in GRAPH_LINES)}),
        ("merge_entities", {"entity": "ヤマモト", "into": "山本"}),
    ]


def do(server: RunningServer, todo: list[tuple[str, dict[str, Any]]]) -> None:
    """Takes what is answered off the list."""
    with Caller(server, "nilou") as caller:
        while todo:
            name, arguments = todo[0]
            if name == "import":
                caller.imported(arguments["lines"].encode())
            else:
                caller(name, **arguments)
            todo.pop(0)


def woven(server: RunningServer) -> None:
    """Waits until nothing is left to weave."""
    store, pause = server.data / "nilou" / "memory.sqlite", threading.Event()
    for _ in range(1_200):
        with closing(sqlite3.connect(store)) as plain:
            (waiting,) = plain.execute(
                "SELECT (SELECT count(*) FROM graph_queue) + (SELECT count(*) FROM entity_aliases WHERE id > "
                "coalesce((SELECT CAST(value AS INTEGER) FROM properties WHERE name = 'names_read_until'), 0))"
            ).fetchone()
        if not waiting:
            return
        pause.wait(0.05)
    pytest.fail("the graph was not woven within a minute")


@contextmanager
def opened(data: Path) -> Iterator[Persona]:
    personas = Personas(data)
    try:
        with personas.writing("nilou") as persona:
            yield persona
    finally:
        personas.close()


def graph_of(persona: Persona) -> Graph:
    """Relations and counts, by names."""
    with persona.database.read() as connection:
        rows = connection.execute(
            "SELECT s.name, r.type, t.name, r.directed, r.weight, r.evidence_count FROM relations r "
            "JOIN entities s ON s.id = r.source JOIN entities t ON t.id = r.target"
        )
        relations = sorted(
            (*((one, other) if directed else sorted((one, other))), type_, weight, count)
            for one, type_, other, directed, weight, count in rows
        )
        counted = connection.execute("SELECT name, type, extraction_count FROM entities WHERE merged_into IS NULL ORDER BY 1, 2").fetchall()
    return relations, counted


def woven_anew(persona: Persona, directory: Path) -> Graph:
    """The graph of the same memories and statements in a persona that never died."""
    now = datetime.now(UTC)
    lines = list(enumerate((line.encode() for line in export_lines(persona, ExportOptions(deleted=True, secret=True))), start=1))
    directory.mkdir()
    with opened(directory) as fresh:

        @contextmanager
        def there() -> Iterator[Persona]:
            yield fresh

        assert import_lines(there, lines, ImportOptions(now, ZoneInfo("Asia/Tokyo"), privacy=Privacy())).refused == 0
        while update_graph(fresh, now):
            pass
        return graph_of(fresh)


@pytest.mark.parametrize(
    ("moment", "ordinal"),
    [
        ("whom a memory names put down, the memory not yet", 12),
        ("half of a weave", 1),
        ("half of a weave", 2),
        ("a weave done, not struck from the list", 2),
        ("older memories found that hold a new name", 1),
        ("inside a relate", 1),
        ("inside an unrelate", 1),
        ("inside the lines of a graph", 1),
        ("inside a merge of entities", 1),
    ],
)
def test_a_kill_in_the_midst_of_the_graph_loses_nothing_and_makes_nothing_twice(tmp_path: Path, moment: str, ordinal: int) -> None:
    todo = steps()
    with crashing(tmp_path, WOVEN, moment, ordinal) as server:
        with suppress(httpx2.TransportError):
            do(server, todo)
        assert died(server)
    with crashing(tmp_path, WOVEN) as server:
        do(server, todo)
        woven(server)
        assert faults(server.data) == []
        assert server.stop() == 0
    assert graph_faults(tmp_path / "memory") == {}
    with opened(tmp_path / "memory") as persona:
        found = graph_of(persona)
        assert found == woven_anew(persona, tmp_path / "fresh")
    said = {(row[0], row[1]) for row in found[0] if row[2] == "likes"}
    assert len(said) == len(STATED) - 1
    assert ("ダイズ", "Object", len(MEMORIES) + 1) in found[1]
