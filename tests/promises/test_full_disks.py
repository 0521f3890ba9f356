"""A disk that is full, a quota, a data directory that may not be written: writing is refused with a reason, reading goes on, and it ends
without a restart."""

import json
import os
import shutil
import signal
import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

if sys.platform != "linux":
    pytest.skip("mounts and limits of Linux", allow_module_level=True)

from crashing import BY_WORDS, INDEXED, crashing
from figures import Figure
from processes import RunningServer, serving
from small_disks import fill_up, no_file_may_grow, small_disk
from soundness import faults, index_differences
from writers import Caller, Refused, settle

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

LONG = "とても長い海辺の散歩の思い出。" * 300


def remembers(caller: Caller, *contents: str) -> None:
    for content in contents:
        assert caller("remember", content=content)["stored"]


def reads(caller: Caller, *contents: str) -> None:
    """Every way to read answers with these, and with nothing else."""
    assert [row["content"] for row in caller.exported()] == list(contents)
    assert caller("recall", query=contents[0])["hits"][0]["content"] == contents[0]
    assert caller("recall", mode="recent")["hits"]
    assert caller("get_context")["memories"] == len(contents)


def refuses(caller: Caller, words: str) -> None:
    """Every way to write is refused in these words, which say what to do."""
    for tool, arguments in (
        ("remember", {"content": f"入らない。{LONG}"}),
        ("update_context", {"emotion": "嬉しい"}),
        ("forget", {"keys": [caller.exported()[0]["key"]]}),
    ):
        with pytest.raises(Refused, match=words) as refused:
            caller(tool, **arguments)
        assert "Traceback" not in str(refused.value)


@pytest.mark.parametrize("settings", [BY_WORDS, INDEXED], ids=["words", "vectors"])
def test_on_a_full_disk_reading_goes_on_and_writing_does_as_soon_as_there_is_room(
    tmp_path: Path, settings: Mapping[str, Any], figure: Figure
) -> None:
    with small_disk(tmp_path / "disk") as disk:
        with serving_on(disk, tmp_path, settings) as server, Caller(server, "nilou") as nilou, Caller(server, "さくら") as sakura:
            remembers(nilou, "抹茶ラテが好き")
            remembers(sakura, "舞台で踊った")
            if settings is INDEXED:
                settle(server)
            filler = fill_up(disk)
            refuses(nilou, "the disk is full: .* Free some room and try again")
            reads(nilou, "抹茶ラテが好き")
            reads(sakura, "舞台で踊った")
            with Caller(server, "newcomer") as newcomer:
                with pytest.raises(Refused, match="the disk is full"):
                    newcomer("remember", content="はじめまして")
                assert newcomer("recall", query="散歩")["new_persona"]
            assert nilou.get("/ready").json()["ready"]
            filler.unlink()
            for caller in (nilou, sakura):
                remembers(caller, "部屋ができた", LONG)
            with Caller(server, "newcomer") as newcomer:
                remembers(newcomer, "はじめまして")
            assert server.stop() == 0
        assert "Traceback" not in server.log.read_text(encoding="utf-8")
        with serving_on(disk, tmp_path, settings) as server, Caller(server, "nilou") as nilou:
            reads(nilou, "抹茶ラテが好き", "部屋ができた", LONG)
            if settings is INDEXED:
                settle(server)
            assert faults(server.data) == []
            assert server.stop() == 0
        if settings is INDEXED:
            assert index_differences(server.data) == {}
    figure("disk faults survived", 1)


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_a_server_that_starts_on_a_full_disk_reads_what_is_there(tmp_path: Path, end: signal.Signals, figure: Figure) -> None:
    with small_disk(tmp_path / "disk") as disk:
        with serving_on(disk, tmp_path, BY_WORDS) as server:
            with Caller(server, "nilou") as nilou:
                remembers(nilou, "抹茶ラテが好き", "舞台で踊った")
            server.stop(end)
        filler = fill_up(disk)
        with serving_on(disk, tmp_path, BY_WORDS) as server, Caller(server, "nilou") as nilou:
            reads(nilou, "抹茶ラテが好き", "舞台で踊った")
            refuses(nilou, "the disk is full")
            filler.unlink()
            remembers(nilou, "部屋ができた")
            reads(nilou, "抹茶ラテが好き", "舞台で踊った", "部屋ができた")
            assert faults(server.data) == []
    figure("disk faults survived", 1)


def test_a_log_that_can_not_be_written_fails_no_call(tmp_path: Path) -> None:
    with crashing(tmp_path, BY_WORDS) as server, Caller(server, "nilou") as caller:
        (server.data / "memory_operations.log").mkdir()
        remembers(caller, "抹茶ラテが好き")
        reads(caller, "抹茶ラテが好き")
        assert server.log.read_text(encoding="utf-8").count("memory_operations.log can't be written") == 1


def test_where_no_file_may_grow_writing_is_refused_reading_goes_on_and_both_do_afterwards(tmp_path: Path, figure: Figure) -> None:
    with crashing(tmp_path, BY_WORDS) as server, Caller(server, "nilou") as caller:
        remembers(caller, "抹茶ラテが好き")
        with no_file_may_grow(server):
            refuses(caller, "(?i)check the disk|make the data directory")
            reads(caller, "抹茶ラテが好き")
        remembers(caller, "部屋ができた")
        reads(caller, "抹茶ラテが好き", "部屋ができた")
        assert faults(server.data) == []
    figure("disk faults survived", 1)


def test_a_data_directory_that_may_only_be_read_is_read(tmp_path: Path, figure: Figure) -> None:
    with crashing(tmp_path, BY_WORDS) as server:
        with Caller(server, "nilou") as caller:
            remembers(caller, "抹茶ラテが好き")
        assert server.stop() == 0
    store = server.data / "nilou"
    for path in (store / "memory.sqlite", store):
        path.chmod(0o500 if path.is_dir() else 0o400)
    with serving(tmp_path, json.dumps(dict(BY_WORDS)), command=(*bound_by_permissions(), sys.executable, "-m", "memory_mcp")) as server:
        with Caller(server, "nilou") as caller:
            reads(caller, "抹茶ラテが好き")
            refuses(caller, "can't be written.*writable")
        with Caller(server, "さくら") as caller:
            remembers(caller, "舞台で踊った")
        for path in (store, store / "memory.sqlite"):
            path.chmod(0o700 if path.is_dir() else 0o600)
        with Caller(server, "nilou") as caller:
            remembers(caller, "部屋ができた")
            reads(caller, "抹茶ラテが好き", "部屋ができた")
    figure("disk faults survived", 1)


def bound_by_permissions() -> tuple[str, ...]:
    """What makes root obey permissions as everybody else does."""
    if os.geteuid():
        return ()
    if not shutil.which("setpriv"):
        pytest.skip("root writes everywhere, and there is no setpriv here")
    return ("setpriv", "--bounding-set=-dac_override,-dac_read_search")


def serving_on(disk: Path, directory: Path, settings: Mapping[str, Any]) -> AbstractContextManager[RunningServer]:
    """A server whose data are on this disk, and its log and config.json elsewhere."""
    return serving(directory, json.dumps(dict(settings)), data=disk / "memory")
