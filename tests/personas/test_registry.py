"""The personas of one data directory: opened, pinned, put away, and kept apart."""

import errno
import json
import logging
import os
import shutil
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import quote

import pytest

from memory_mcp.config.settings import Privacy
from memory_mcp.errors import StartupError, StoreDamaged, StoreError, StoreFull
from memory_mcp.personas import directories
from memory_mcp.personas.directories import IDENTITY_NAME
from memory_mcp.personas.names import directory_name
from memory_mcp.personas.registry import Personas
from memory_mcp.personas.server_lock import LOCK_NAME
from memory_mcp.remember.pipeline import remember
from memory_mcp.remember.validation import draft
from memory_mcp.store import memories
from memory_mcp.store.sqlite.database import DATABASE_NAME

needs_proc = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts open files where the system lists them")


@pytest.fixture
def two_at_most(data_directory):
    registry = Personas(data_directory, open_limit=2)
    yield registry
    registry.close()


def use(personas, name):
    """Opens a persona for a moment and writes to it; returns its handle."""
    with personas.writing(name) as persona:
        persona.database.write(lambda connection: connection.execute("SELECT 1").get)
    return persona


def is_open(persona) -> bool:
    try:
        persona.database.write(lambda connection: None)
    except StoreError:
        return False
    return True


def counted(persona) -> int:
    with persona.database.read() as connection:
        return memories.counts(connection)["memories"]


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208  names are enough


def test_writing_creates_a_persona_and_its_name_is_listed(personas, data_directory):
    use(personas, "さくら")
    use(personas, "nilou")
    assert personas.names() == ["nilou", "さくら"]
    identity = data_directory / directory_name("さくら") / IDENTITY_NAME
    assert json.loads(identity.read_text(encoding="utf-8")) == {"name": "さくら"}


def test_reading_a_persona_that_does_not_exist_is_empty_and_creates_nothing(personas, data_directory):
    before = sorted(data_directory.iterdir())
    with personas.reading("nobody") as persona:
        assert persona.exists is False
        assert counted(persona) == 0
        assert persona.context.read()["user_info"]["name"] == ""
    assert not personas.exists("nobody")
    assert personas.names() == []
    assert sorted(data_directory.iterdir()) == before


def test_an_open_persona_is_one_handle_for_everybody(personas):
    with personas.writing("nilou") as one, personas.reading("nilou") as other:
        assert one is other
    assert use(personas, "nilou") is one


def test_many_first_callers_at_once_open_one_handle(personas):
    together = threading.Barrier(8)

    def first_call():
        together.wait(60)
        return use(personas, "nilou")

    with ThreadPoolExecutor(8) as threads:
        handles = {id(future.result()) for future in [threads.submit(first_call) for _ in range(8)]}
    assert len(handles) == 1


def test_personas_share_no_memory(personas, now, zone):
    for name in ("a/b", "a_b", "a-b", "A-B", "..", "con"):
        with personas.writing(name) as persona:
            assert counted(persona) == 0
            remember(persona, draft(f"I am {name}", now=now, zone=zone), now=now, zone=zone, privacy=Privacy())
    for name in personas.names():
        with personas.reading(name) as persona, persona.database.read() as connection:
            assert [row[0] for row in connection.execute("SELECT content FROM memories")] == [f"I am {name}"]
    assert len(personas.names()) == 6


def test_the_least_recently_used_persona_is_put_away(two_at_most):
    first, second = use(two_at_most, "first"), use(two_at_most, "second")
    use(two_at_most, "first")
    third = use(two_at_most, "third")
    assert [is_open(persona) for persona in (first, second, third)] == [True, False, True]


def test_a_persona_in_use_stays_open_however_many_others_come(two_at_most):
    with two_at_most.writing("pinned") as pinned:
        others = [use(two_at_most, f"other-{number}") for number in range(5)]
        assert is_open(pinned)
        assert sum(is_open(persona) for persona in others) <= 2
    assert len([persona for persona in (pinned, *others) if is_open(persona)]) == 2


def test_a_persona_that_was_put_away_comes_back_with_its_memories(two_at_most, now, zone):
    with two_at_most.writing("first") as persona:
        remember(persona, draft("京都", now=now, zone=zone), now=now, zone=zone, privacy=Privacy())
    for name in ("second", "third"):
        use(two_at_most, name)
    assert not is_open(persona)
    with two_at_most.reading("first") as again:
        assert counted(again) == 1


@pytest.mark.slow
@needs_proc
def test_fifty_opened_personas_leave_no_file_and_no_thread_behind(data_directory):
    files, threads = open_files(), set(threading.enumerate())
    registry = Personas(data_directory, open_limit=4)
    for number in range(50):
        use(registry, f"persona-{number}")
        with registry.reading(f"nobody-{number}") as nobody:
            counted(nobody)
    assert len(set(threading.enumerate()) - threads) <= 4
    registry.close()
    assert set(threading.enumerate()) <= threads
    assert open_files() == files


@needs_proc
def test_a_persona_that_cannot_be_opened_leaves_no_file_behind(personas, data_directory):
    use(personas, "nilou")
    (data_directory / "broken").mkdir()
    (data_directory / "broken" / DATABASE_NAME).write_bytes(b"no database at all" * 500)
    files = open_files()
    for _ in range(20):
        with pytest.raises(StoreDamaged), personas.reading("broken"):
            pass
    assert open_files() <= files + 1


def test_a_second_server_is_refused_and_told_who_has_the_directory(personas, data_directory):
    with pytest.raises(StartupError, match=f"it is process {os.getpid()}"):
        Personas(data_directory)


@pytest.mark.skipif(sys.platform == "win32", reason="a file that is open can't be removed there")
def test_a_second_server_is_refused_after_the_lock_file_was_removed(personas, data_directory):
    (data_directory / LOCK_NAME).unlink()
    with pytest.raises(StartupError, match=f"it is process {os.getpid()}"):
        Personas(data_directory)
    personas.close()
    Personas(data_directory).close()


def test_the_next_server_gets_in_when_the_first_has_closed_from_any_thread(data_directory):
    first = Personas(data_directory)
    stopping = threading.Thread(target=first.close)
    stopping.start()
    stopping.join()
    Personas(data_directory).close()


def test_a_data_directory_that_is_missing_is_made_and_reported(tmp_path, caplog):
    with caplog.at_level(logging.WARNING):
        Personas(tmp_path / "new" / "memory").close()
    assert "was created" in caplog.text
    assert (tmp_path / "new" / "memory").is_dir()


def test_a_data_directory_that_is_a_file_stops_the_start(tmp_path):
    (tmp_path / "memory").write_text("")
    with pytest.raises(StartupError, match="can't be used"):
        Personas(tmp_path / "memory")


@pytest.mark.parametrize("damage", [b"{", b"[]", b'{"title": "x"}', b"\xfe\xff", b'{"name": "\\ud83d"}', b"[" * 100_000])
def test_a_damaged_identity_keeps_one_persona_out_and_no_other(personas, data_directory, caplog, damage):
    use(personas, "nilou")
    (data_directory / "broken").mkdir()
    (data_directory / "broken" / DATABASE_NAME).touch()
    (data_directory / "broken" / IDENTITY_NAME).write_bytes(damage)
    with pytest.raises(StoreDamaged, match=IDENTITY_NAME), personas.reading("broken"):
        pass
    assert personas.names() == ["nilou"]
    assert "broken" in caplog.text
    assert is_open(use(personas, "nilou"))


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere no name of a file holds such bytes")
def test_a_directory_whose_name_is_no_text_keeps_nobody_out(personas, data_directory):
    use(personas, "nilou")
    odd = data_directory / os.fsdecode("さくら".encode("cp932"))
    odd.mkdir()
    (odd / DATABASE_NAME).touch()
    assert personas.names() == ["nilou"]


def test_a_mended_identity_lets_the_persona_in_again(personas, data_directory):
    handle = use(personas, "nilou")
    personas.close()
    identity = data_directory / "nilou" / IDENTITY_NAME
    whole = identity.read_text()
    identity.write_text("{")
    again = Personas(data_directory)
    with pytest.raises(StoreDamaged), again.writing("nilou"):
        pass
    identity.write_text(whole)
    assert is_open(use(again, "nilou"))
    assert not is_open(handle)
    again.close()


def test_a_directory_that_belongs_to_another_name_is_not_opened(personas, data_directory):
    (data_directory / "nilou").mkdir()
    (data_directory / "nilou" / DATABASE_NAME).touch()
    (data_directory / "nilou" / IDENTITY_NAME).write_text('{"name": "collei"}')
    with pytest.raises(StoreDamaged, match="belongs to 'collei'"), personas.writing("nilou"):
        pass
    assert personas.names() == []


def test_a_damaged_database_keeps_one_persona_out_and_no_other(personas, data_directory):
    use(personas, "nilou")
    (data_directory / "broken").mkdir()
    (data_directory / "broken" / DATABASE_NAME).write_bytes(b"no database at all" * 500)
    with pytest.raises(StoreDamaged, match="database of broken is damaged"), personas.reading("broken"):
        pass
    assert is_open(use(personas, "nilou"))


def test_a_file_where_the_directory_belongs_is_an_error_of_that_persona(personas, data_directory):
    (data_directory / "nilou").write_text("in the way")
    with pytest.raises(StoreError, match="nilou"), personas.writing("nilou"):
        pass
    assert is_open(use(personas, "collei"))


def test_near_names_are_offered_the_nearest_first(personas):
    for name in ("nilou", "nilou-2", "collei"):
        use(personas, name)
    assert personas.similar_names("nilo")[0] == "nilou"
    assert personas.similar_names("Ｎｉｌｏｕ")[0] == "nilou"
    assert personas.similar_names("zhongli") == []
    assert "nilou" not in personas.similar_names("nilou")


@pytest.mark.parametrize("name", ["サクラ", "sakura", "SAKURA", "さくらん"])
def test_a_name_in_other_letters_is_near(personas, name):
    for other in ("さくら", "花子", "collei"):
        use(personas, other)
    assert personas.similar_names(name) == ["さくら"]
    assert personas.similar_names("hanako") == []  # kanji have no reading


@pytest.mark.parametrize("encoded", [quote("ニィロウ"), quote("ニィロウ").lower()])
def test_a_name_whose_encoding_is_a_persona_s_is_offered_that_one(personas, encoded):
    use(personas, encoded)
    assert personas.similar_names("ニィロウ") == [encoded]
    assert personas.similar_names("ニィロウ", among=["collei"]) == []


def test_a_persona_whose_directory_is_removed_while_it_is_open_begins_anew_and_loses_nothing_that_is_acknowledged_later(
    data_directory, now, zone
):
    registry = Personas(data_directory)
    with registry.writing("nilou") as nilou:
        remember(nilou, draft("前の記憶", now=now, zone=zone), now=now, zone=zone, privacy=Privacy())
    shutil.rmtree(data_directory / "nilou")
    with registry.reading("nilou") as nilou:
        assert not nilou.exists
    with registry.writing("nilou") as nilou:
        key = remember(nilou, draft("後の記憶", now=now, zone=zone), now=now, zone=zone, privacy=Privacy()).key
    registry.close()
    again = Personas(data_directory)
    with again.reading("nilou") as nilou, nilou.database.read() as connection:
        assert list(memories.by_keys(connection, [key])) == [key]
    again.close()


def test_a_restored_copy_is_what_is_read_and_written_from_then_on(data_directory, now, zone):
    registry = Personas(data_directory)
    with registry.writing("nilou") as nilou:
        before = remember(nilou, draft("写す前の記憶", now=now, zone=zone), now=now, zone=zone, privacy=Privacy()).key
    backup = data_directory.parent / "backup"
    (data_directory / "nilou").rename(backup)
    shutil.copytree(backup, data_directory / "nilou")
    with registry.writing("nilou") as nilou:
        after = remember(nilou, draft("戻した後の記憶", now=now, zone=zone), now=now, zone=zone, privacy=Privacy()).key
    registry.close()
    again = Personas(data_directory)
    with again.reading("nilou") as nilou, nilou.database.read() as connection:
        assert set(memories.by_keys(connection, [before, after])) == {before, after}
    again.close()


@pytest.mark.parametrize("length", [None, 0, 1])
def test_a_database_that_is_lost_is_said_and_not_replaced_by_an_empty_one(data_directory, length):
    first = Personas(data_directory)
    use(first, "nilou")
    first.close()
    database = data_directory / "nilou" / DATABASE_NAME
    if length is None:
        database.unlink()
    else:
        database.write_bytes(database.read_bytes()[:length])
    again = Personas(data_directory)
    for opened in (again.reading, again.writing):
        with pytest.raises(StoreDamaged, match="database of 'nilou' is gone"), opened("nilou"):
            pass
    use(again, "さくら")
    assert again.names() == ["nilou", "さくら"]
    assert not database.exists() if length is None else database.stat().st_size == length
    again.close()


def test_a_persona_that_can_not_be_created_leaves_nothing_half_made(personas, data_directory, monkeypatch):
    def full(path, text):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(directories, "write_atomically", full)
    with pytest.raises(StoreFull), personas.writing("nilou"):
        pass
    assert not (data_directory / "nilou").exists()
    monkeypatch.undo()
    use(personas, "nilou")
    assert personas.names() == ["nilou"]


def test_what_a_crash_left_half_written_is_gone_after_the_next_start(data_directory):
    first = Personas(data_directory)
    use(first, "nilou")
    first.close()
    scrap = data_directory / "nilou" / ".persona_context.json.abcd1234"
    scrap.write_text("{")
    again = Personas(data_directory)
    use(again, "nilou")
    assert not scrap.exists()
    again.close()
