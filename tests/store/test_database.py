"""One persona's SQLite file: readers, the writer thread, and what its failures look like from outside."""

import contextlib
import threading
import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait

import apsw
import pytest
from panics import Panicked

from memory_mcp.errors import MemoryNotFound, Overloaded, StoreDamaged, StoreError, StoreFull
from memory_mcp.store.sqlite import database as database_module
from memory_mcp.store.sqlite import network_drives
from memory_mcp.store.sqlite import reading as readers_module
from memory_mcp.store.sqlite.database import Database, immediate


@pytest.fixture
def database(tmp_path) -> Iterator[Database]:
    (tmp_path / "nilou").mkdir()
    opened = Database(tmp_path / "nilou" / "memory.sqlite")
    opened.prepare(lambda connection: connection.execute("CREATE TABLE notes (text TEXT NOT NULL)"))
    yield opened
    opened.close()


@pytest.fixture
def held_writer(database, eventually):
    """Starts writes while the writer is busy, so that they wait together; returns their outcomes."""

    def run(*works):
        release, busy = threading.Event(), threading.Event()

        def block(connection):
            busy.set()
            assert release.wait(60)

        with ThreadPoolExecutor(len(works) + 1) as threads:
            blocked = threads.submit(database.write, block)
            assert busy.wait(60)
            waiting = [threads.submit(database.write, work) for work in works]
            eventually(lambda: database._writes.qsize() == len(works))
            release.set()
            wait([blocked, *waiting])
        return waiting

    return run


def note(text):
    return lambda connection: connection.execute("INSERT INTO notes VALUES (?)", (text,)).fetchall()


def notes(database) -> list[str]:
    with database.read() as connection:
        return [row[0] for row in connection.execute("SELECT text FROM notes ORDER BY text")]


def test_what_was_written_is_read_and_the_work_answers_its_writer(database):
    assert database.write(lambda connection: connection.execute("INSERT INTO notes VALUES ('a') RETURNING text").get) == "a"
    assert notes(database) == ["a"]


def test_what_was_acknowledged_is_there_after_opening_again(database):
    database.write(note("a"))
    database.close()
    again = Database(database.path)
    assert notes(again) == ["a"]
    again.close()


def test_the_file_is_one_that_any_sqlite_can_open(database):
    database.write(note("a"))
    database.close()
    assert not [entry for entry in database.path.parent.iterdir() if entry.name != "memory.sqlite"]
    connection = apsw.Connection(str(database.path), flags=apsw.SQLITE_OPEN_READONLY)
    assert connection.execute("PRAGMA integrity_check").get == "ok"
    connection.close()


def test_writes_are_as_durable_as_sqlite_can_make_them(database):
    modes = database.write(lambda connection: (connection.pragma("journal_mode"), connection.pragma("synchronous")))
    assert modes == ("wal", 2)


def test_a_shared_drive_gets_no_write_ahead_log(tmp_path, monkeypatch):
    mounts = tmp_path / "mountinfo"
    mounts.write_text("22 1 0:1 / / rw - nfs4 server:/ rw\n")
    monkeypatch.setattr(network_drives, "_MOUNTS", mounts)
    opened = Database(tmp_path / "memory.sqlite")
    assert opened.write(lambda connection: connection.pragma("journal_mode")) == "truncate"
    opened.close()


def test_a_reader_sees_one_state_to_the_end_of_its_block(database):
    database.write(note("a"))
    with database.read() as connection:
        before = connection.execute("SELECT count(*) FROM notes").get
        database.write(note("b"))
        assert connection.execute("SELECT count(*) FROM notes").get == before == 1
    assert notes(database) == ["a", "b"]


def test_more_readers_than_are_kept_idle_can_read_at_once(database):
    database.write(note("a"))
    readers = readers_module.POOL_SIZE + 3
    together = threading.Barrier(readers)

    def read():
        with database.read() as connection:
            together.wait(60)
            return connection.execute("SELECT count(*) FROM notes").get

    with ThreadPoolExecutor(readers) as threads:
        assert [future.result() for future in [threads.submit(read) for _ in range(readers)]] == [1] * readers


def test_short_reads_take_turns_and_a_long_one_keeps_none_of_them_waiting(database):
    database.write(note("a"))
    at_once, most = [], []

    def read():
        with database.read_briefly() as connection:
            at_once.append(connection)
            most.append(len(at_once))
            found = connection.execute("SELECT count(*) FROM notes").get
            at_once.remove(connection)
            return found

    with contextlib.ExitStack() as long_reads, ThreadPoolExecutor(20) as threads:
        for _ in range(readers_module.POOL_SIZE):
            long_reads.enter_context(database.read())
        assert [future.result(60) for future in [threads.submit(read) for _ in range(200)]] == [1] * 200
    assert max(most) <= readers_module.POOL_SIZE


def test_a_short_read_that_fails_gives_its_turn_back(database):
    for _ in range(readers_module.POOL_SIZE + 1):
        with pytest.raises(MemoryNotFound), database.read_briefly():
            raise MemoryNotFound("gone")


def test_a_reader_whose_block_fails_does_not_spoil_the_next_one(database):
    database.write(note("a"))
    with pytest.raises(MemoryNotFound), database.read():
        raise MemoryNotFound("gone")
    assert notes(database) == ["a"]


def test_writes_that_wait_together_share_one_commit(database, held_writer):
    commits = []
    database.prepare(lambda connection: connection.set_commit_hook(lambda: bool(commits.append("commit"))))
    held_writer(*(note(str(number)) for number in range(20)))
    assert len(notes(database)) == 20
    assert len(commits) == 2  # that of the write which they all waited for, and theirs


def test_one_writers_failure_is_its_own(database, held_writer):
    def fails_half_way(connection):
        note("never")(connection)
        raise MemoryNotFound("no such key")

    before, failing, breaking, after = held_writer(note("a"), fails_half_way, note(None), note("b"))
    assert before.exception() is after.exception() is None
    assert isinstance(failing.exception(), MemoryNotFound)
    assert isinstance(breaking.exception(), apsw.ConstraintError)
    assert notes(database) == ["a", "b"]


def test_a_write_has_a_savepoint_only_where_it_shares_its_commit(database, held_writer):
    statements = []
    database.prepare(lambda connection: connection.set_exec_trace(lambda _, sql, __: not statements.append(sql)))
    database.write(note("a"))
    database.write_apart(note("b"))
    assert [sql for sql in statements if "SAVEPOINT" in sql] == []
    held_writer(note("c"), note("d"))
    assert statements.count("SAVEPOINT attempt") == 2


@pytest.mark.parametrize("way", ["write", "write_apart"])
def test_a_write_that_fails_in_a_commit_of_its_own_leaves_nothing(database, way):
    def fails_half_way(connection):
        note("never")(connection)
        raise MemoryNotFound("no such key")

    with pytest.raises(MemoryNotFound):
        getattr(database, way)(fails_half_way)
    getattr(database, way)(note("a"))
    assert notes(database) == ["a"]


@pytest.mark.parametrize("way", ["write", "write_apart", "write_alone"])
def test_a_work_that_breaks_off_is_told_to_its_writer_and_the_next_write_is_done(database, way):
    def breaks_off(connection):
        raise Panicked

    with ThreadPoolExecutor(1) as threads:
        told = threads.submit(getattr(database, way), breaks_off)
        assert isinstance(told.exception(10), Panicked)
    database.write(note("a"))
    assert notes(database) == ["a"]


def test_nobody_hears_of_success_when_the_commit_fails(database, held_writer):
    database.prepare(lambda connection: connection.set_commit_hook(lambda: True))  # refuses every commit from now on
    first, second = held_writer(note("a"), note("b"))
    assert first.exception() is not None
    assert second.exception() is not None
    assert notes(database) == []


def test_a_full_disk_is_said_and_the_next_write_succeeds_once_there_is_room(database):
    fill = "INSERT INTO notes VALUES (hex(zeroblob(1000000)))"
    database.write(lambda connection: connection.pragma("max_page_count", connection.pragma("page_count") + 2))
    with pytest.raises(StoreFull, match="disk is full"):
        database.write(lambda connection: connection.execute(fill))
    assert notes(database) == []
    database.write(lambda connection: connection.pragma("max_page_count", 1_000_000))
    database.write(note("a"))
    assert notes(database) == ["a"]


def test_a_full_disk_loses_nothing_that_was_acknowledged(database, held_writer):
    database.write(note("kept"))
    database.write(lambda connection: connection.pragma("max_page_count", connection.pragma("page_count") + 2))
    fits, fills = held_writer(note("a"), note("x" * 1_000_000))
    assert isinstance(fills.exception(), StoreFull)
    assert notes(database) == (["a", "kept"] if fits.exception() is None else ["kept"])


def test_another_program_that_holds_the_file_makes_a_write_fail_and_not_wait_for_ever(tmp_path, monkeypatch):
    monkeypatch.setattr(database_module, "BUSY_TIMEOUT_MS", 1)
    opened = Database(tmp_path / "memory.sqlite")
    other = apsw.Connection(str(tmp_path / "memory.sqlite"))
    with immediate(other), pytest.raises(Overloaded, match="locked by another program"):
        opened.write(lambda connection: None)
    assert opened.write(lambda connection: 1) == 1
    other.close()
    opened.close()


def test_more_waiting_writes_than_allowed_are_refused_and_the_others_done(tmp_path, monkeypatch, eventually):
    monkeypatch.setattr(database_module, "WAITING_WRITES_LIMIT", 2)
    opened = Database(tmp_path / "memory.sqlite")
    release, busy = threading.Event(), threading.Event()
    with ThreadPoolExecutor(3) as threads:
        blocked = threads.submit(opened.write, lambda connection: (busy.set(), release.wait(60)))
        assert busy.wait(60)
        waiting = [threads.submit(opened.write, lambda connection: "done") for _ in range(2)]
        eventually(lambda: opened._writes.qsize() == 2)
        with pytest.raises(Overloaded, match="too many writes"):
            opened.write(lambda connection: None)
        release.set()
        assert [future.result() for future in waiting] == ["done", "done"]
        assert blocked.result() == (None, True)
    opened.close()


def test_closing_finishes_the_writes_that_wait(database, eventually):
    release, busy = threading.Event(), threading.Event()
    with ThreadPoolExecutor(7) as threads:
        threads.submit(database.write, lambda connection: (busy.set(), release.wait(60)))
        assert busy.wait(60)
        waiting = [threads.submit(database.write, note(str(number))) for number in range(5)]
        eventually(lambda: database._writes.qsize() == 5)
        closing = threads.submit(database.close)
        eventually(lambda: database._closed)
        release.set()
        closing.result()
        assert all(future.exception() is None for future in waiting)
    again = Database(database.path)
    assert len(notes(again)) == 5
    again.close()


def test_a_write_after_closing_is_refused(database):
    database.close()
    with pytest.raises(StoreError, match="closed"):
        database.write(note("a"))


def test_closing_amid_many_writers_leaves_none_waiting_and_loses_nothing_acknowledged(database, eventually):
    def write_until_closed(writer: int) -> int:
        done = 0
        while True:
            try:
                database.write(note(f"{writer}-{done}"))
            except StoreError:
                return done
            done += 1

    with ThreadPoolExecutor(8) as threads:
        running = [threads.submit(write_until_closed, writer) for writer in range(8)]
        eventually(lambda: len(notes(database)) > 0)
        database.close()
        acknowledged = sum(future.result() for future in running)
    again = Database(database.path)
    assert len(notes(again)) == acknowledged > 0
    again.close()


def test_a_file_that_is_no_database_is_called_damaged_by_its_persona(tmp_path):
    (tmp_path / "nilou").mkdir()
    path = tmp_path / "nilou" / "memory.sqlite"
    path.write_bytes(b"this is no database, and long enough to be sure of it " * 100)
    with pytest.raises(StoreDamaged, match="database of nilou is damaged"):
        Database(path)


def test_two_databases_in_memory_share_nothing():
    one, other = Database(None), Database(None)
    one.write(lambda connection: connection.execute("CREATE TABLE notes (text TEXT)"))
    with one.read() as connection:
        assert connection.table_exists(None, "notes")
    with other.read() as connection:
        assert not connection.table_exists(None, "notes")
    one.close()
    other.close()


def test_a_database_that_only_reads_starts_no_thread(tmp_path):
    before = set(threading.enumerate())
    opened = Database(tmp_path / "memory.sqlite")
    with opened.read() as connection:
        connection.execute("SELECT 1").fetchall()
    assert set(threading.enumerate()) <= before
    opened.close()


def test_a_file_that_may_only_be_read_is_read_and_says_why_nothing_is_written(database, monkeypatch):
    database.write(note("a"))
    database.close()

    def refuses(self):
        raise apsw.CantOpenError("unable to open database file")

    monkeypatch.setattr(Database, "_open_for_writing", refuses)
    again = Database(database.path)
    assert notes(again) == ["a"]
    with pytest.raises(StoreError, match="unable to open"):
        again.write(note("b"))
    again.close()
    assert [entry.name for entry in database.path.parent.iterdir()] == ["memory.sqlite"]


def test_after_damage_was_found_everything_is_refused(database):
    database.write(note("a" * 50_000))
    database.close()
    content = bytearray(database.path.read_bytes())
    content[4096:] = b"\xa5" * (len(content) - 4096)
    database.path.write_bytes(content)
    again = Database(database.path)
    for use in (lambda: notes(again), lambda: again.write(note("b")), lambda: again.write(lambda connection: None)):
        with pytest.raises(StoreDamaged, match="damaged"):
            use()
    again.close()


def test_no_cursor_stays_behind_whatever_the_order_in_which_they_end(database):
    cursors = []

    def ask(connection):
        outer = connection.execute("SELECT 1 UNION SELECT 2")
        cursors.append(weakref.ref(outer))
        for _ in outer:
            inner = connection.execute("SELECT text FROM notes")
            cursors.append(weakref.ref(inner))
            inner.fetchall()
        connection.execute("SELECT 3").fetchall()

    database.write(ask)
    with database.read() as connection:
        ask(connection)
    assert len(cursors) == 6
    assert [cursor for cursor in cursors if cursor() is not None] == []
