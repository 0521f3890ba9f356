"""SIGKILL between two given lines: of a write, the index, a rebuild, a change of model, a migration, an import, an export."""

import itertools
import json
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx2
import pytest
from crashing import BY_WORDS, INDEXED, MOMENTS, SUMMARISED, crashing, died
from figures import FIGURES
from processes import RunningServer, command
from soundness import faults, index_differences
from writers import Caller, Expected, judged, retry_unanswered, settle, write_until_it_dies

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300), pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")]

LINES = 1_000
OLD_ROWS = 3_000
OTHER_MODEL = {**INDEXED, "embeddings_arguments": {"dimension": 48}}


@pytest.fixture(scope="module", autouse=True)
def counted(request: pytest.FixtureRequest) -> Iterator[None]:
    """The figure of this file: how many moments there are. A test for each stands below."""
    yield
    request.config.stash[FIGURES].append(("moments between two lines at which it was killed", len(MOMENTS)))


def lines(count: int = LINES) -> bytes:
    return "".join(json.dumps({"content": f"海辺の散歩 {number}"}) + "\n" for number in range(count)).encode()


def sound(server: RunningServer, dimension: int = 32) -> None:
    """After a while and a stop: SQLite finds no fault, and the index is what the database has."""
    settle(server, dimension)
    assert faults(server.data) == []
    assert server.stop() == 0
    assert index_differences(server.data) == {}


@pytest.mark.parametrize(
    ("moment", "ordinal"),
    [
        ("before a new persona's identity", 1),
        ("after a new persona's identity", 1),
        ("inside a write", 40),
        ("after the commit, before the answer", 40),
        ("after the commit, before the log", 40),
        ("before the context file is replaced", 2),
        ("vectors stored, the index not yet told", 4),
        ("the index told, the queue not yet", 4),
        ("inside the file of the index", 2),
        ("between index.faiss and manifest.json", 2),
    ],
)
def test_a_kill_in_the_midst_of_writing_loses_nothing_acknowledged(tmp_path: Path, moment: str, ordinal: int) -> None:
    expected, numbers = Expected(), itertools.count()
    with crashing(tmp_path, INDEXED, moment, ordinal) as server, ThreadPoolExecutor(4) as threads:
        for writer in [threads.submit(write_until_it_dies, server, "nilou", expected, numbers, seed) for seed in range(4)]:
            writer.result()
        assert died(server)
    with crashing(tmp_path, INDEXED) as server, Caller(server, "nilou") as caller:
        retry_unanswered(caller, expected)
        assert not judged(caller.exported(), expected)
        sound(server)
    assert list((tmp_path / "memory").glob("*/.*.json.*")) == []


@pytest.fixture(scope="module")
def filled_once(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[dict[str, Any]]]:
    """A data directory with memories, vectors and a saved index, and its rows. Nobody changes it."""
    with crashing(tmp_path_factory.mktemp("filled"), INDEXED) as server, Caller(server, "nilou") as caller:
        caller.imported(lines())
        settle(server)
        rows = caller.exported()
        assert server.stop() == 0
    return server.data, rows


@pytest.fixture
def filled(filled_once: tuple[Path, list[dict[str, Any]]], tmp_path: Path) -> list[dict[str, Any]]:
    """The same in the test's own directory."""
    data, rows = filled_once
    shutil.copytree(data, tmp_path / "memory")
    return rows


def holds(directory: Path, settings: Mapping[str, Any], rows: list[dict[str, Any]]) -> None:
    """Nothing is missing, both ways of searching answer, and everything is sound."""
    dimension = settings["embeddings_arguments"]["dimension"]
    with crashing(directory, settings) as server, Caller(server, "nilou") as caller:
        settle(server, dimension)
        assert caller.exported() == rows
        answer = caller("recall", query="海辺の散歩 7")
        assert (answer["mode"], answer["degraded"], answer["hits"][0]["content"]) == ("hybrid", [], "海辺の散歩 7")
        sound(server, dimension)


@pytest.mark.parametrize("moment", ["inside a rebuild", "inside the file of the index"])
def test_a_kill_inside_a_rebuild_costs_only_time(tmp_path: Path, filled: list[dict[str, Any]], moment: str) -> None:
    shutil.rmtree(tmp_path / "memory" / "nilou" / "vector_store")
    with crashing(tmp_path, INDEXED, moment) as server:
        assert died(server)
    holds(tmp_path, INDEXED, filled)


@pytest.mark.parametrize("moment", ["before the other model answers", "after the other model answers"])
def test_a_kill_inside_a_change_of_model_costs_only_time(tmp_path: Path, filled: list[dict[str, Any]], moment: str) -> None:
    with crashing(tmp_path, INDEXED, moment) as server:
        settle(server)
        server.config.write_text(json.dumps(dict(OTHER_MODEL)))
        assert died(server)
    holds(tmp_path, OTHER_MODEL, filled)


@pytest.mark.parametrize(
    ("moment", "ordinal"),
    [("inside the rows of a migration", OLD_ROWS), ("inside the words of a migration", 2), ("before a migration is committed", 1)],
)
def test_a_kill_inside_a_migration_leaves_the_old_store_as_it_was_and_the_next_start_migrates_it(
    tmp_path: Path, moment: str, ordinal: int
) -> None:
    store = tmp_path / "memory" / "nilou" / "memory.sqlite"
    store.parent.mkdir(parents=True)
    with closing(sqlite3.connect(store)) as old, old:
        old.execute("CREATE TABLE memories (key TEXT PRIMARY KEY, content TEXT, created_at TEXT, updated_at TEXT)")
        old.executemany(
            "INSERT INTO memories VALUES (?, ?, '2025-10-30T12:00:00', '2025-10-30T12:00:00')",
            [(f"memory_{number:04}", f"海辺の散歩 {number}") for number in range(OLD_ROWS)],
        )
    with crashing(tmp_path, BY_WORDS, moment, ordinal) as server:
        with Caller(server, "nilou") as caller, pytest.raises(httpx2.TransportError):
            caller("recall", query="散歩")
        assert died(server)
    with closing(sqlite3.connect(store)) as old:
        assert old.execute("SELECT count(*) FROM memories").fetchone() == (OLD_ROWS,)
        assert [row[1] for row in old.execute("PRAGMA table_info(memories)")] == ["key", "content", "created_at", "updated_at"]
    with crashing(tmp_path, BY_WORDS) as server, Caller(server, "nilou") as caller:
        assert {row["key"]: row["content"] for row in caller.exported()} == {
            f"memory_{number:04}": f"海辺の散歩 {number}" for number in range(OLD_ROWS)
        }
        assert caller("recall", query="散歩 2345")["hits"][0]["key"] == "memory_2345"
        assert faults(server.data) == []


@pytest.mark.parametrize("moment", ["inside an import, a batch not stored", "inside an import, a batch stored"])
def test_an_import_that_was_killed_is_done_once_when_it_is_sent_again(tmp_path: Path, moment: str) -> None:
    with crashing(tmp_path, BY_WORDS, moment, 3) as server:
        with Caller(server, "nilou") as caller, pytest.raises(httpx2.TransportError):
            caller.imported(lines())
        assert died(server)
    with crashing(tmp_path, BY_WORDS) as server, Caller(server, "nilou") as caller:
        counts = caller.imported(lines())
        assert counts["stored"] + counts["already_known"] == LINES
        assert counts["already_known"] == (600 if moment.endswith("batch stored") else 400)
        assert sorted(row["content"] for row in caller.exported()) == sorted(f"海辺の散歩 {number}" for number in range(LINES))
        assert faults(server.data) == []


@pytest.mark.parametrize("moment", ["before a turn of a conversation", "inside a turn of a conversation"])
def test_a_kill_inside_a_turn_leaves_the_conversation_as_it_was_before_it(tmp_path: Path, moment: str) -> None:
    def turn(server: RunningServer, number: int, **fields: Any) -> httpx2.Response:
        sent = {"id": "c", "number": number, "model": "m", "messages": [{"role": "user", "text": f"話 {number}"}], **fields}
        return httpx2.post(f"{server.url}/api/conversation", json=sent, headers={"X-Persona": "nilou"}, timeout=60, trust_env=False)

    with crashing(tmp_path, BY_WORDS, moment, 4) as server:
        assert [turn(server, number).status_code for number in (1, 2, 3)] == [200] * 3
        with pytest.raises(httpx2.TransportError):
            turn(server, 2, replace=True, messages=[{"role": "user", "text": "別の話"}])
        assert died(server)
    with crashing(tmp_path, BY_WORDS) as server:
        read = httpx2.get(f"{server.url}/api/conversation?id=c", headers={"X-Persona": "nilou"}, timeout=60, trust_env=False).json()
        assert [known["messages"][0]["text"] for known in read["turns"]] == ["話 1", "話 2", "話 3"]
        assert faults(server.data) == []


@pytest.fixture
def exporting(tmp_path: Path, filled: list[dict[str, Any]]) -> Any:
    """A command that exports a thousand memories of nilou into a file; `server` and `reader` say who kills itself, and when."""

    def exporting(server: str | None = None, reader: str | None = None) -> tuple[subprocess.CompletedProcess[str], Path]:
        with crashing(tmp_path, BY_WORDS, server, 3) as running:
            return _exported(running, tmp_path / "out.jsonl", reader), tmp_path / "out.jsonl"

    return exporting


def _exported(server: RunningServer, file: Path, moment: str | None) -> subprocess.CompletedProcess[str]:
    return command("export", str(file), "-p", "nilou", "--url", server.url, moment=moment)


def test_an_export_whose_server_dies_says_so_and_leaves_no_file(exporting: Any) -> None:
    done, file = exporting(server="inside an export")
    assert done.returncode == 1
    assert done.stderr.startswith("memory-mcp: the connection to")
    assert [path.name for path in file.parent.glob("*.jsonl*")] == []


def test_an_export_that_is_killed_itself_leaves_nothing_that_passes_for_complete(exporting: Any) -> None:
    done, file = exporting(reader="inside the reader of an export")
    assert done.returncode == -9
    assert [path.name for path in file.parent.glob("*.jsonl*")] == ["out.jsonl.part"]


def conversations() -> bytes:
    """Three sessions of six turns on a day that is over."""
    said = [
        {"content": f"{session}番目の旅では{place}に行った。", "session_id": f"s{session}", "occurred_at": "2025-10-01"}
        for session in range(3)
        for place in ("京都", "奈良", "金沢", "松本", "萩", "長崎")
    ]
    return "".join(json.dumps(row) + "\n" for row in said).encode()


@pytest.mark.parametrize(
    ("moment", "ordinal"),
    [
        ("before what was written is listed for summaries", 1),
        ("after what was written is listed for summaries", 1),
        ("inside a summary", 2),
        ("after a summary is struck from the list", 2),
    ],
)
def test_a_kill_in_the_midst_of_summaries_loses_none_and_doubles_none(
    tmp_path: Path, moment: str, ordinal: int, eventually: Callable[[Callable[[], bool]], None]
) -> None:
    with crashing(tmp_path, SUMMARISED, moment, ordinal) as server, Caller(server, "nilou") as caller:
        caller.imported(conversations())
        assert died(server)
    wanted = sorted([("day", "2025-10-01"), *(("session", f"s{number}") for number in range(3))])
    with crashing(tmp_path, SUMMARISED) as server, Caller(server, "nilou") as caller:

        def made() -> list[tuple[str, str]]:
            rows = [row["metadata"] for row in caller.exported() if row["kind"] == "summary"]
            return sorted((row["summary_of"], row["subject"]) for row in rows)

        eventually(lambda: len(made()) >= len(wanted))
        assert made() == wanted
        assert len([row for row in caller.exported() if row["kind"] == "conversation"]) == 18
        assert faults(server.data) == []


@pytest.mark.parametrize("moment", ["inside a merge", "inside the undoing of a merge"])
def test_a_kill_inside_a_merge_or_its_undoing_leaves_all_as_it_was_before(tmp_path: Path, moment: str) -> None:
    settings = {**SUMMARISED, "summaries": {"enabled": False}}
    with crashing(tmp_path, settings, moment) as server, Caller(server, "nilou") as caller:
        keys = [caller("remember", content=f"苺が好き{mark}", tags=[mark])["key"] for mark in "。！～"]
        before = caller.exported()
        if moment == "inside a merge":
            with pytest.raises(httpx2.TransportError):
                caller("organize", merge=keys[1:], into=keys[0])
        else:
            merged = caller("organize", merge=keys[1:], into=keys[0])
            before = caller.exported()
            with pytest.raises(httpx2.TransportError):
                caller("organize", undo=merged["operation_id"])
        assert died(server)
    with crashing(tmp_path, settings) as server, Caller(server, "nilou") as caller:
        assert caller.exported() == before
        assert faults(server.data) == []


def test_every_moment_there_is_is_one_that_the_tests_kill_at() -> None:
    tests = "".join(path.read_text(encoding="utf-8") for path in sorted(Path(__file__).parent.glob("test_kill_*.py")))
    assert {moment for moment in MOMENTS if f'"{moment}"' not in tests} == set()
