"""Doctor finds what is wrong, says it in words, and leaves every byte as it was."""

import json
import os
import stat
from collections.abc import Callable
from contextlib import closing
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import apsw
import pytest

from memory_mcp import cli
from memory_mcp.cli import doctor_checks
from memory_mcp.config.settings import Privacy
from memory_mcp.domain import Remembered
from memory_mcp.personas import cells, lifecycle
from memory_mcp.personas.cells import Cell
from memory_mcp.personas.names import directory_name
from memory_mcp.personas.registry import Personas
from memory_mcp.personas.server_lock import LOCK_OWNER_NAME
from memory_mcp.remember.pipeline import remember
from memory_mcp.remember.validation import draft
from memory_mcp.store.files.access_tokens import read_tokens
from memory_mcp.store.vectors.index_cache import IndexCache

Examine = Callable[..., tuple[int, str]]

GOOD_CONFIG = {"embeddings_model": None, "reranker_model": None}


@pytest.fixture
def examine(data_directory: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Examine:
    """Runs doctor on the data directory. Returns its status and what it says."""
    config = tmp_path / "config.json"
    config.write_text(json.dumps(GOOD_CONFIG))

    def examine(*arguments: str) -> tuple[int, str]:
        status = cli.run(["doctor", "--config", str(config), "--data", str(data_directory), *arguments])
        return status, capsys.readouterr().out

    return examine


@pytest.fixture
def served(personas: Personas, say: Callable[..., Remembered]) -> Personas:
    """A server's registry with one persona that has a memory."""
    say("抹茶が好き")
    return personas


@pytest.fixture
def left(served: Personas) -> Personas:
    """The same after the server has stopped."""
    served.close()
    return served


def snapshot(directory: Path) -> dict[str, tuple[bytes, int]]:
    return {str(path): (path.read_bytes(), path.stat().st_mtime_ns) for path in directory.rglob("*") if path.is_file()}


def wrong(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("wrong")]


def test_a_new_installation_is_well(examine: Examine) -> None:
    status, text = examine()
    assert (status, wrong(text)) == (0, [])
    assert "there is none yet" in text
    assert "Nothing is wrong." in text


def test_a_healthy_store_is_well_and_untouched(examine: Examine, left: Personas, data_directory: Path) -> None:
    before = snapshot(data_directory)
    status, text = examine()
    assert (status, wrong(text)) == (0, [])
    assert "nilou: 1 memory; database and lexical index are sound" in text
    assert "none is serving this data" in text
    assert snapshot(data_directory) == before


def test_memories_wait_for_a_vector_only_where_a_model_makes_them(examine: Examine, left: Personas, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({**GOOD_CONFIG, "embeddings_model": "static-ja"}))
    assert "nilou: 1 memory, 1 waiting for a vector; database" in examine()[1]


def test_it_names_the_process_of_a_running_server_and_leaves_its_lock_alone(examine: Examine, served: Personas) -> None:
    status, text = examine()
    assert (status, wrong(text)) == (0, [])
    assert f"process {os.getpid()} is serving this data" in text
    with served.writing("nilou") as nilou, nilou.database.read() as connection:
        assert connection.execute("SELECT count(*) FROM memories").get == 1


def test_it_leaves_no_file_beside_the_database_of_a_persona_that_is_not_open(
    examine: Examine, left: Personas, data_directory: Path
) -> None:
    (data_directory / LOCK_OWNER_NAME).write_text(json.dumps({"process": os.getpid()}))
    before = snapshot(data_directory)
    assert examine()[0] == 0
    assert snapshot(data_directory) == before


def test_the_mark_of_a_server_that_is_no_more_is_no_server(examine: Examine, data_directory: Path) -> None:
    with_no_process = 2**22 + 1  # above the highest process id that Linux gives
    (data_directory / LOCK_OWNER_NAME).write_text(json.dumps({"process": with_no_process}))
    assert "none is serving this data" in examine()[1]


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ("{broken", "is not valid JSON"),
        ('{"server_port": "eight"}', "server_port"),
        ('{"timezone": "Asia/Tokio"}', "IANA time zone"),
    ],
)
def test_a_config_that_can_not_be_used_is_wrong(examine: Examine, tmp_path: Path, config: str, reason: str) -> None:
    (tmp_path / "config.json").write_text(config)
    status, text = examine()
    assert status == 1
    assert reason in wrong(text)[0]


def test_an_unknown_key_is_noted_with_its_nearest(examine: Examine, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({**GOOD_CONFIG, "timezon": "UTC"}))
    status, text = examine()
    assert status == 0
    assert "did you mean 'timezone'?" in text


def test_a_configured_model_that_is_not_there_is_noted(examine: Examine, tmp_path: Path) -> None:
    nowhere = str(tmp_path / "nowhere" / "model")
    (tmp_path / "config.json").write_text(json.dumps({"embeddings_model": nowhere, "reranker_model": None}))
    status, text = examine()
    assert status == 0
    assert f" note  embedder: there is no directory {nowhere}" in text
    assert "   ok  reranker: none, as configured" in text


def test_a_data_directory_that_is_not_there_is_wrong(examine: Examine, data_directory: Path) -> None:
    data_directory.rmdir()
    status, text = examine()
    assert status == 1
    assert "does not exist" in wrong(text)[0]
    data_directory.write_text("a file")
    assert "is not a directory" in wrong(examine()[1])[0]


@pytest.mark.skipif(hasattr(os, "geteuid") and os.geteuid() == 0, reason="root may write everywhere")
def test_a_data_directory_that_can_not_be_written_is_wrong(examine: Examine, data_directory: Path) -> None:
    data_directory.chmod(stat.S_IRUSR | stat.S_IXUSR)
    status, text = examine()
    data_directory.chmod(stat.S_IRWXU)
    assert status == 1
    assert "not writable" in wrong(text)[0]


def test_a_file_that_is_no_database_is_wrong(examine: Examine, left: Personas, data_directory: Path) -> None:
    (data_directory / "nilou" / "memory.sqlite").write_bytes(b"not a database" * 1_000)
    status, text = examine()
    assert status == 1
    assert "nilou: memory.sqlite is damaged" in wrong(text)[0]


def test_a_page_that_was_overwritten_is_wrong(
    examine: Examine, served: Personas, say: Callable[..., Remembered], data_directory: Path
) -> None:
    for number in range(20):
        say(f"{number}番目の日記 " + "長い一日だった。" * 200)
    served.close()
    file = data_directory / "nilou" / "memory.sqlite"
    content = bytearray(file.read_bytes())
    place = content.index("7番目の日記".encode()) // 4096 * 4096
    content[place : place + 4096] = b"\0" * 4096
    file.write_bytes(content)
    status, text = examine()
    assert status == 1
    assert "nilou: memory.sqlite is damaged" in wrong(text)[0]


def test_writes_that_went_with_the_write_ahead_log_are_wrong_until_the_next_write(
    examine: Examine, served: Personas, say: Callable[..., Remembered], data_directory: Path, now: datetime, zone: ZoneInfo
) -> None:
    database = data_directory / "nilou" / "memory.sqlite"
    with served.writing("nilou") as nilou:
        nilou.database.prepare(lambda connection: connection.wal_checkpoint(None, apsw.SQLITE_CHECKPOINT_TRUNCATE))
    say("苺が好き")
    without_log = database.read_bytes()
    served.close()
    assert examine()[0] == 0
    database.write_bytes(without_log)
    status, text = examine()
    assert status == 1
    assert "nilou: the last operation in memory_operations.log is not in memory.sqlite." in wrong(text)[0]
    with closing(Personas(data_directory)) as later, later.writing("nilou") as nilou:
        remember(nilou, draft("桃が好き", now=now, zone=zone), now=now, zone=zone, privacy=Privacy())
    assert examine()[0] == 0


@pytest.mark.parametrize("line", ["{", '{"persona": "nilou"}', "[]", '{"persona": ["nilou"], "operation": "create", "operation_id": "x"}'])
def test_a_log_line_that_can_not_be_read_is_no_lost_write(examine: Examine, left: Personas, data_directory: Path, line: str) -> None:
    with (data_directory / "memory_operations.log").open("a", encoding="utf-8") as log:
        log.write(line)
    assert examine()[0] == 0


def test_a_persona_that_began_anew_after_it_was_erased_lost_nothing(
    examine: Examine, left: Personas, data_directory: Path, now: datetime
) -> None:
    with closing(Personas(data_directory)) as later:
        lifecycle.erase(later, "nilou", IndexCache(), now)
        with later.writing("nilou"):
            pass
    assert examine()[0] == 0


def test_a_directory_that_is_another_cell_or_being_split_is_wrong(examine: Examine, left: Personas, data_directory: Path) -> None:
    assert "cell:" not in examine()[1]
    cells.write(data_directory, Cell(3, 8))
    status, text = examine()
    assert (status, len(wrong(text))) == (1, 1)
    assert "is cell 3 of 8: the configuration says the only cell" in text
    cells.write(data_directory, Cell(), split={"id": "x", "phase": "copying"})
    assert "is being split" in wrong(examine()[1])[0]


def test_a_persona_that_an_earlier_version_made_for_a_placeholder_is_told_how_to_be_reached(examine: Examine, data_directory: Path) -> None:
    with closing(Personas(data_directory)) as earlier, earlier.writing("{{user}}"):
        pass
    status, text = examine()
    assert status == 0
    assert "memory-mcp persona rename '{{user}}' NAME" in text


def test_a_lexical_index_that_lost_a_row_is_wrong(examine: Examine, left: Personas, data_directory: Path) -> None:
    connection = apsw.Connection(str(data_directory / "nilou" / "memory.sqlite"))
    connection.execute("DELETE FROM lexical_content")
    connection.close()
    status, text = examine()
    assert status == 1
    assert "lexical" in wrong(text)[0]


@pytest.mark.parametrize("identity", ['{"name": " "}', r'{"name": "\ud83d"}', "[" * 100_000])
def test_context_and_identity_that_can_not_be_read_are_wrong(examine: Examine, left: Personas, data_directory: Path, identity: str) -> None:
    (data_directory / "nilou" / "persona_context.json").write_text("{")
    (data_directory / "nilou" / "persona.json").write_text(identity)
    status, text = examine()
    assert status == 1
    assert ["persona.json can't be used" in wrong(text)[0], "persona_context.json can't be read" in wrong(text)[1]] == [True, True]


def test_a_directory_that_the_server_would_not_find_is_wrong(examine: Examine, left: Personas, data_directory: Path) -> None:
    (data_directory / "nilou").rename(data_directory / "niloo")
    status, text = examine()
    assert status == 1
    assert "its directory niloo should be named nilou" in wrong(text)[0]


def test_a_japanese_persona_is_called_by_its_name(examine: Examine, personas: Personas, data_directory: Path) -> None:
    with personas.writing("さくら"):
        pass
    status, text = examine()
    assert status == 0
    assert "さくら: 0 memories" in text
    assert directory_name("さくら") not in text


def test_a_store_of_an_older_server_is_noted(examine: Examine, data_directory: Path) -> None:
    (data_directory / "old").mkdir()
    connection = apsw.Connection(str(data_directory / "old" / "memory.sqlite"))
    connection.execute("CREATE TABLE memories(key TEXT PRIMARY KEY, content TEXT, created_at TEXT, updated_at TEXT)")
    connection.execute("INSERT INTO memories VALUES ('k', 'c', '2025-10-01', '2025-10-01')")
    connection.close()
    status, text = examine()
    assert status == 0
    assert "old: 1 memory in an older format" in text


def test_quiet_says_only_what_is_wrong(examine: Examine, tmp_path: Path) -> None:
    assert examine("--quiet") == (0, "Nothing is wrong.\n")
    (tmp_path / "config.json").write_text("{")
    status, text = examine("--quiet")
    assert status == 1
    assert len(text.splitlines()) == 3


def test_doctor_says_who_needs_a_token_and_counts_them(examine: Examine, data_directory: Path) -> None:
    assert "there are none: everybody who can reach the server can read and write everything" in examine()[1]
    cli.run(["token", "create", "--all-personas", "--data", str(data_directory)])
    for identity in read_tokens(data_directory) or {}:
        cli.run(["token", "create", "-p", "nilou", "--data", str(data_directory)])
        cli.run(["token", "revoke", identity, "--data", str(data_directory)])
    status, text = examine()
    assert status == 0
    assert "tokens: every call requires one; 1 revoked, 1 in force" in text


def test_doctor_says_that_with_oauth_nobody_gets_in_without_a_token(examine: Examine, tmp_path: Path) -> None:
    oauth = {"authorization_server": "built_in", "public_url": "https://memory.example.org"}
    (tmp_path / "config.json").write_text(json.dumps({**GOOD_CONFIG, "oauth": oauth}))
    assert "tokens: every call requires one, of OAuth" in examine()[1]


def test_doctor_names_tokens_that_can_not_be_read_or_that_others_can(examine: Examine, data_directory: Path) -> None:
    cli.run(["token", "create", "--all-personas", "--data", str(data_directory)])
    path = data_directory / "tokens.json"
    if os.name != "nt":
        path.chmod(0o644)
        assert f"Run: chmod 600 {path}" in examine()[1]
    path.write_text("{", encoding="utf-8")
    status, text = examine()
    assert status == 1
    assert "Until then the server refuses all calls" in wrong(text)[0]


def test_doctor_says_that_a_model_for_a_gpu_waits_for_its_driver(examine: Examine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = tmp_path / "model"
    model.mkdir()
    for name in ("config.json", "model.safetensors"):
        (model / name).write_text("{}")
    (tmp_path / "config.json").write_text(json.dumps({**GOOD_CONFIG, "reranker_model": str(model), "embeddings_device": "cuda"}))
    monkeypatch.setattr(doctor_checks, "has_driver", lambda: False)
    assert f"{model} is available, but embeddings_device is cuda, and no driver of a GPU is installed here" in examine()[1]
    monkeypatch.setattr(doctor_checks, "has_driver", lambda: True)
    assert "driver" not in examine()[1]
