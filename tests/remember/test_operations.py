"""What is noted of every change: a row with its content beside the data, a line without it in the shared log."""

import gzip
import json
import logging

import pytest

from memory_mcp.config.settings import Privacy
from memory_mcp.errors import MemoryNotFound
from memory_mcp.remember.forget import forget
from memory_mcp.remember.pipeline import remember, remember_many
from memory_mcp.remember.revise import Revision, revise
from memory_mcp.remember.validation import draft
from memory_mcp.store import operations
from memory_mcp.store.operations import LOG_NAME, Operation, OperationsLog

SECRET = "誰にも言えない秘密 xyzzy"


@pytest.fixture
def rows(nilou):
    def read():
        with nilou.database.read() as connection:
            found = connection.execute("SELECT operation, key, before, after, success, metadata FROM operations ORDER BY id").fetchall()
        return [
            {"operation": row[0], "key": row[1], "before": load(row[2]), "after": load(row[3]), "success": row[4], "metadata": load(row[5])}
            for row in found
        ]

    return read


def load(text):
    return None if text is None else json.loads(text)


def lines(data_directory):
    return [json.loads(line) for line in (data_directory / LOG_NAME).read_text(encoding="utf-8").splitlines()]


def live_a_life(persona, key, now):
    """Every kind of change, each with the secret wherever text can stand."""
    revise(persona, key, Revision(content=SECRET + "!", tags=(SECRET,), reason=SECRET), now=now, privacy=Privacy())
    forget(persona, [key], reason=SECRET, dry_run=False, now=now, privacy=Privacy())
    revise(persona, key, Revision(restore=True, reason=SECRET), now=now, privacy=Privacy())


def test_every_change_is_a_row_with_what_was_before_and_after(say, nilou, rows, now):
    key = say(SECRET, tags=["t"]).key
    live_a_life(nilou, key, now)
    created, updated, deleted, restored = rows()
    assert (created["operation"], created["after"]) == ("create", {"content": SECRET, "tags": ["t"]})
    assert updated["before"] == {"content": SECRET, "tags": ["t"], "importance": 0.5}
    assert updated["after"] == {"content": SECRET + "!", "tags": [SECRET], "importance": 0.5}
    assert (deleted["operation"], deleted["before"], deleted["metadata"]) == ("delete", {"content": SECRET + "!"}, {"reason": SECRET})
    assert restored["operation"] == "restore"
    assert {row["key"] for row in rows()} == {key}


def test_the_shared_log_says_who_what_and_which_and_never_the_content(say, nilou, data_directory, now, zone):
    key = say(SECRET, tags=[SECRET], source=SECRET, questions=[SECRET], state={"emotion": SECRET}).key
    remember_many(nilou, [draft(SECRET + " 2", now=now, zone=zone)], now=now, zone=zone, privacy=Privacy())
    live_a_life(nilou, key, now)
    written = (data_directory / LOG_NAME).read_text(encoding="utf-8")
    assert "xyzzy" not in written
    assert "秘密" not in written
    assert [line["operation"] for line in lines(data_directory)] == ["create", "create", "update", "delete", "restore"]
    assert all(line.keys() == {"timestamp", "persona", "operation_id", "operation", "key", "success"} for line in lines(data_directory))
    assert lines(data_directory)[0]["persona"] == "nilou"
    assert lines(data_directory)[0]["key"] == key


def test_a_row_and_its_line_share_an_id(say, nilou, data_directory):
    say("京都")
    with nilou.database.read() as connection:
        (row,) = connection.execute("SELECT operation_id, timestamp FROM operations").fetchall()
    (line,) = lines(data_directory)
    assert row == (line["operation_id"], line["timestamp"])


def test_what_did_not_happen_is_in_neither(say, nilou, rows, data_directory, now):
    key = say("京都").key
    say("京都")
    forget(nilou, [key], reason=None, dry_run=True, now=now, privacy=Privacy())
    forget(nilou, ["no such key"], reason=None, dry_run=False, now=now, privacy=Privacy())
    with pytest.raises(MemoryNotFound):
        say("奈良", supersedes="no such key")
    assert len(rows()) == len(lines(data_directory)) == 1


def test_all_personas_write_to_one_log(personas, data_directory, now, zone):
    for name in ("nilou", "さくら"):
        with personas.writing(name) as persona:
            remember(persona, draft("京都", now=now, zone=zone), now=now, zone=zone, privacy=Privacy())
    assert [line["persona"] for line in lines(data_directory)] == ["nilou", "さくら"]


def test_no_log_is_made_before_there_is_something_to_say(personas, data_directory):
    assert not (data_directory / LOG_NAME).exists()


def test_a_full_log_is_put_aside_and_a_new_one_begun(tmp_path, now, monkeypatch):
    monkeypatch.setattr(operations, "LOG_BYTES", 400)
    log = OperationsLog(tmp_path)
    for number in range(10):
        log.append("nilou", Operation("create", f"k{number}", now))
    log.close()
    files = sorted(path.name for path in tmp_path.iterdir())
    assert LOG_NAME in files
    assert f"{LOG_NAME}.1" in files
    assert len(files) <= operations.LOGS_KEPT + 1
    assert all(json.loads(line) for path in tmp_path.iterdir() for line in path.read_text().splitlines())


def test_a_full_log_is_compressed_and_kept_where_that_is_wanted(tmp_path, now, monkeypatch):
    monkeypatch.setattr(operations, "LOG_BYTES", 400)
    log = OperationsLog(tmp_path, "archive")
    for number in range(20):
        log.append("nilou", Operation("create", f"k{number}", now))
    log.close()
    archived = sorted(path for path in tmp_path.iterdir() if path.name != LOG_NAME)
    assert len(archived) > operations.LOGS_KEPT
    assert {path.suffix for path in archived} == {".gz"}
    assert {path.stat().st_mode & 0o777 for path in archived} == {0o600}
    written = "".join(gzip.decompress(path.read_bytes()).decode() for path in archived) + (tmp_path / LOG_NAME).read_text()
    assert [json.loads(line)["key"] for line in written.splitlines()] == [f"k{number}" for number in range(20)]


def test_a_log_that_is_never_full_is_one_file(tmp_path, now, monkeypatch):
    monkeypatch.setattr(operations, "LOG_BYTES", 400)
    log = OperationsLog(tmp_path, "off")
    for number in range(20):
        log.append("nilou", Operation("create", f"k{number}", now))
    log.close()
    assert [path.name for path in tmp_path.iterdir()] == [LOG_NAME]
    assert len((tmp_path / LOG_NAME).read_text().splitlines()) == 20


def test_a_log_that_cannot_be_written_is_said_once_and_stops_nothing(say, ask, data_directory, caplog):
    (data_directory / LOG_NAME).mkdir()
    with caplog.at_level(logging.ERROR):
        say("京都")
        say("奈良")
    assert len(ask("京都").hits) == 1
    assert [record.message.startswith(LOG_NAME) for record in caplog.records] == [True]
