"""Encrypted database files as plain ones and back, held against two implementations of the form, and plain SQLite."""

import io
import secrets
import sqlite3
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from memory_mcp.errors import StoreDamaged
from memory_mcp.store.sqlite import cipher
from memory_mcp.store.sqlite.cipher_pages import LOCK_PAGE, PAGE_BYTES, EncryptedPages, PlainPages

KEY = bytes(range(32))
ROWS = 3_000


@pytest.fixture
def encrypted(tmp_path: Path) -> bytes:
    """A database of some dozens of pages."""
    connection = apsw.Connection(str(tmp_path / "a.sqlite"))
    cipher.unlock(connection, KEY)
    with connection:
        connection.execute("CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT)")
        connection.executemany("INSERT INTO t(b) VALUES (?)", [(f"海辺の散歩 {number}",) for number in range(ROWS)])
    connection.close()
    return (tmp_path / "a.sqlite").read_bytes()


def opened(content: bytes, key: bytes = KEY) -> bytes:
    return PlainPages(io.BytesIO(content), key).readall()


def sealed(content: bytes, key: bytes) -> bytes:
    file = io.BytesIO()
    writer = EncryptedPages(file, key)
    for at in range(0, len(content), 10_000):  # in pieces that are no pages
        writer.write(content[at : at + 10_000])
    return file.getvalue()


def test_what_an_encrypted_file_stands_for_is_a_plain_database(encrypted: bytes, tmp_path: Path) -> None:
    plain = opened(encrypted)
    assert len(plain) == len(encrypted)
    (tmp_path / "plain.sqlite").write_bytes(plain)
    with closing(sqlite3.connect(tmp_path / "plain.sqlite")) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert connection.execute("SELECT count(*), max(b) FROM t").fetchone() == (ROWS, "海辺の散歩 999")


def test_it_is_encrypted_again_with_another_key_for_every_implementation(encrypted: bytes, tmp_path: Path) -> None:
    other, path = secrets.token_bytes(32), tmp_path / "again.sqlite"
    path.write_bytes(sealed(opened(encrypted), other))
    assert "海辺".encode() not in path.read_bytes()
    sqlcipher3 = pytest.importorskip("sqlcipher3")  # where there is a wheel of it
    with closing(sqlcipher3.connect(str(path))) as connection:
        connection.execute(f"PRAGMA key=\"x'{other.hex()}'\"")
        assert connection.execute("PRAGMA cipher_integrity_check").fetchall() == []
        assert connection.execute("SELECT count(*) FROM t").fetchone() == (ROWS,)
    connection = apsw.Connection(str(path))
    cipher.unlock(connection, other)
    assert connection.execute("PRAGMA integrity_check").get == "ok"
    connection.close()


@pytest.mark.parametrize("place", [0, 17, PAGE_BYTES - 1, PAGE_BYTES + 5, 3 * PAGE_BYTES - 70])
def test_a_page_that_was_changed_is_refused(encrypted: bytes, place: int) -> None:
    changed = bytearray(encrypted)
    changed[place] ^= 1
    with pytest.raises(StoreDamaged, match=f"page {place // PAGE_BYTES + 1}"):
        opened(bytes(changed))


def test_another_key_and_pages_that_changed_places_are_refused(encrypted: bytes) -> None:
    pages = [encrypted[at : at + PAGE_BYTES] for at in range(0, len(encrypted), PAGE_BYTES)]
    with pytest.raises(StoreDamaged):
        opened(encrypted, bytes(32))
    with pytest.raises(StoreDamaged):
        opened(b"".join([pages[0], pages[2], pages[1], *pages[3:]]))


def test_a_database_that_leaves_no_room_is_refused(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "plain.sqlite")) as connection:
        connection.execute("CREATE TABLE t (a)")
    with pytest.raises(StoreDamaged, match="can't be encrypted page by page"):
        sealed((tmp_path / "plain.sqlite").read_bytes(), KEY)


def test_the_page_of_sqlite_s_locks_is_left_alone() -> None:
    """It lies behind the first GiB, is never written, and so never encrypted."""
    reader = PlainPages(io.BytesIO(bytes(PAGE_BYTES)), KEY)
    reader._number = LOCK_PAGE - 1
    assert reader.readall() == bytes(PAGE_BYTES)
    file = io.BytesIO()
    writer = EncryptedPages(file, KEY)
    writer._number = LOCK_PAGE - 1
    writer.write(bytes(PAGE_BYTES))
    assert file.getvalue() == bytes(PAGE_BYTES)
    assert LOCK_PAGE * PAGE_BYTES == 1024**3 + PAGE_BYTES
