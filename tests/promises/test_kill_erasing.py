"""kill -9 while memories are erased, or a whole persona is moved: nothing else is lost, and what was to go has gone or is whole."""

import json
import shutil
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx2
import pytest
from crashing import BY_WORDS, INDEXED, crashing, died
from figures import Figure
from processes import RunningServer
from soundness import contents as stored
from soundness import faults
from writers import Caller, settle

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300), pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")]

SECRET = "鰻鱧鯰の密談は zqxunique です"
TRACES = ("zqxuniqu", "鰻", "鱧", "鯰", "密談")
OTHERS = [f"海辺の散歩 {number}" for number in range(200)]
UPKEEP = {"upkeep": {"idle_seconds": 0}, "toolsets": ["core", "upkeep"]}


def post(server: RunningServer, path: str, persona: str = "nilou", **body: Any) -> dict[str, Any]:
    answer = httpx2.post(f"{server.url}{path}", json=body, headers={"X-Persona": quote(persona)}, timeout=60, trust_env=False)
    return answer.raise_for_status().json()


def fill(server: RunningServer, persona: str = "nilou") -> str:
    """Memories around a secret, in one conversation. Returns the secret's key; it lies in the trash."""
    with Caller(server, persona) as caller:
        rows = [{"content": content, "session_id": "s"} for content in OTHERS]
        caller.imported("\n".join(json.dumps(row) for row in rows[:100]).encode())
        key = caller("remember", content=SECRET, session_id="s", questions=["鰻鱧鯰は？"])["key"]
        caller.imported("\n".join(json.dumps(row) for row in rows[100:]).encode())
        caller("revise", key=key, content=f"{SECRET} 改", reason="鯰")
        caller("forget", keys=[key], reason="密談だから")
        return str(key)


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A data directory with nilou as `fill` leaves it, with vectors, and the key of the secret. Nobody changes it."""
    with crashing(tmp_path_factory.mktemp("indexed"), {**INDEXED, **UPKEEP}) as server:
        key = fill(server)
        settle(server)
        assert server.stop() == 0
    assert traces(server.data / "nilou")
    return server.data, key


@pytest.fixture(scope="module")
def filled_by_words(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory with nilou as `fill` leaves it. Nobody changes it."""
    directory = tmp_path_factory.mktemp("filled")
    with crashing(directory, BY_WORDS) as server:
        fill(server)
        assert server.stop() == 0
    return server.data


@pytest.fixture
def filled(filled_by_words: Path, tmp_path: Path) -> list[str]:
    """The same in the test's own directory. Returns what nilou's memories say."""
    shutil.copytree(filled_by_words, tmp_path / "memory")
    return sorted([*OTHERS, f"{SECRET} 改"])


def traces(directory: Path) -> list[tuple[str, str]]:
    """(file, trace) of everything that is left of the secret."""
    return [
        (file.relative_to(directory).as_posix(), trace)
        for file, content in stored(directory)
        for trace in TRACES
        if trace.encode() in content or json.dumps(trace)[1:-1].encode() in content
    ]


def swept(persona: Path) -> bool:
    with closing(sqlite3.connect(persona / "memory.sqlite")) as plain:
        return plain.execute("SELECT 1 FROM properties WHERE name = 'sweep_due'").fetchone() is None


def contents(server: RunningServer, persona: str = "nilou") -> list[str]:
    with Caller(server, persona) as caller:
        return sorted(row["content"] for row in caller.exported())


@pytest.mark.parametrize(
    "moment",
    [
        "inside a purge",
        "after a purge, before its sweep",
        "inside a sweep, the index gone, the words not yet",
        "inside a sweep, the words gone, the log not yet",
        "inside a sweep, the log gone, the note not yet",
    ],
)
def test_a_purge_that_is_killed_has_not_begun_or_is_finished_by_the_next_start(
    tmp_path: Path, indexed: tuple[Path, str], moment: str, figure: Figure, eventually: Callable[[Callable[[], bool]], None]
) -> None:
    data, settings = tmp_path / "memory", {**INDEXED, **UPKEEP}
    filled, key = indexed
    shutil.copytree(filled, data)
    with crashing(tmp_path, {**settings, "upkeep": {"idle_seconds": 3_600}}, moment) as server:
        code = post(server, "/api/purge", keys=[key])["confirm"]
        with pytest.raises(httpx2.TransportError):
            post(server, "/api/purge", keys=[key], confirm=code)
        assert died(server)
    with crashing(tmp_path, settings) as server:
        if moment == "inside a purge":  # it never happened: nothing of it is missing
            assert SECRET + " 改" in contents(server)
            post(server, "/api/purge", keys=[key], confirm=post(server, "/api/purge", keys=[key])["confirm"])
        eventually(lambda: swept(data / "nilou"))
        settle(server)
        assert contents(server) == sorted(OTHERS)
        assert faults(data) == []
        assert traces(data / "nilou") == []
    assert traces(data / "nilou") == []
    assert [line for line in (data / "memory_operations.log").read_text(encoding="utf-8").splitlines() if SECRET in line] == []
    with closing(sqlite3.connect(f"{(data / 'nilou' / 'memory.sqlite').as_uri()}?mode=ro", uri=True)) as plain:
        assert plain.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    figure(f"bytes of an erased word, killed {moment}", "0")


def test_a_round_of_retention_that_is_killed_is_done_again(tmp_path: Path, eventually: Callable[[Callable[[], bool]], None]) -> None:
    rules = {**BY_WORDS, "upkeep": {"idle_seconds": 0}, "retention": {"conversation_days": 30}}
    with crashing(tmp_path, BY_WORDS) as server, Caller(server, "nilou") as caller:
        row = {"kind": "conversation", "created_at": "2020-01-01T00:00:00+09:00"}
        caller.imported("\n".join(json.dumps({"content": content, **row}) for content in OTHERS).encode())
    with crashing(tmp_path, rules, "inside a round of retention") as server:
        assert died(server)
    with crashing(tmp_path, rules) as server, Caller(server, "nilou") as caller:
        eventually(lambda: caller.get("/api/stats").json()["in_trash"] == len(OTHERS))
        assert contents(server) == sorted(OTHERS)
        assert faults(tmp_path / "memory") == []


def test_a_move_of_what_has_expired_that_is_killed_is_done_before_anything_is_read(tmp_path: Path) -> None:
    with crashing(tmp_path, BY_WORDS, "inside the move of what has expired") as server, Caller(server, "nilou") as caller:
        caller.imported("\n".join(json.dumps({"content": content, "expires_at": "2020-01-01"}) for content in OTHERS).encode())
        with pytest.raises(httpx2.TransportError):
            caller.get("/api/stats")
        assert died(server)
    with crashing(tmp_path, BY_WORDS) as server, Caller(server, "nilou") as caller:
        assert caller("recall", query="海辺の散歩")["hits"] == []
        assert caller.get("/api/stats").json()["in_trash"] == len(OTHERS)
        assert faults(tmp_path / "memory") == []


def killed(directory: Path, moment: str, path: str, **body: Any) -> None:
    """Kills a server at a moment of what is done to the persona nilou."""
    with crashing(directory, BY_WORDS, moment) as server:
        with pytest.raises(httpx2.TransportError):
            post(server, path, **body)
        assert died(server)


def personas(server: RunningServer) -> list[str]:
    return [found["name"] for found in httpx2.get(f"{server.url}/api/personas", trust_env=False).json()["personas"]]


@pytest.mark.parametrize(
    ("moment", "name"), [("before a persona's directory is moved", "nilou"), ("after a persona's directory is moved", "ニィロウ")]
)
def test_a_persona_whose_renaming_is_killed_has_one_name_and_everything(tmp_path: Path, filled: list[str], moment: str, name: str) -> None:
    killed(tmp_path, moment, "/api/persona/rename", to="ニィロウ")
    with crashing(tmp_path, BY_WORDS) as server:
        assert personas(server) == [name]
        assert contents(server, name) == filled
        assert faults(tmp_path / "memory") == []


@pytest.mark.parametrize(
    ("moment", "names"),
    [("before a persona's directory is moved", ["nilou"]), ("after a persona's directory is moved", ["collei", "nilou"])],
)
def test_a_copy_that_is_killed_is_whole_or_not_there(tmp_path: Path, filled: list[str], moment: str, names: list[str]) -> None:
    killed(tmp_path, moment, "/api/persona/copy", to="collei")
    with crashing(tmp_path, BY_WORDS) as server:
        assert personas(server) == names
        assert {name: contents(server, name) for name in names} == dict.fromkeys(names, filled)
        assert list((tmp_path / "memory" / ".unfinished").iterdir()) == []


@pytest.mark.parametrize(
    ("moment", "names"), [("before a persona's directory is moved", ["nilou"]), ("before a moved persona is destroyed", [])]
)
def test_a_persona_whose_erasing_is_killed_is_whole_or_without_a_trace(
    tmp_path: Path, filled: list[str], moment: str, names: list[str]
) -> None:
    killed(tmp_path, moment, "/api/persona/erase", confirm="nilou")
    with crashing(tmp_path, BY_WORDS) as server:
        assert personas(server) == names
        assert [contents(server, name) for name in names] == [filled for _ in names]
    assert bool(traces(tmp_path / "memory")) == bool(names)


def test_a_merge_that_is_killed_has_not_happened(tmp_path: Path, filled: list[str]) -> None:
    with crashing(tmp_path, BY_WORDS) as server, Caller(server, "collei") as caller:
        caller("remember", content="桃が好き")
    killed(tmp_path, "inside a merge of personas", "/api/persona/merge", into="collei")
    with crashing(tmp_path, BY_WORDS) as server:
        assert contents(server, "collei") == ["桃が好き"]
        assert post(server, "/api/persona/merge", into="collei")["taken"] == len(filled)
        assert len(contents(server, "collei")) == len(filled) + 1
        assert faults(tmp_path / "memory") == []
