"""Telling SQLite as a whole: a process of its own, because what it is told holds for good."""

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import sys
from pathlib import Path
import apsw
from memory_mcp.store.sqlite.database import Database, disable_memory_statistics
from memory_mcp.store.files.encryption_keys import PersonaKey
if {early}:
    disable_memory_statistics()
database = Database(Path(sys.argv[1]), PersonaKey(bytes(32)) if {sealed} else None)
database.write(lambda connection: connection.execute("CREATE TABLE kept AS SELECT 'ハル' AS name"))
if not {early}:
    disable_memory_statistics()
with database.read() as connection:
    print(connection.execute("SELECT name FROM kept").get, apsw.memory_used() > 0)
database.close()
"""


def ran(file: Path, *, early: bool, sealed: bool = False) -> "subprocess.CompletedProcess[str]":
    program = PROGRAM.format(early=early, sealed=sealed)
    return subprocess.run(
        [sys.executable, "-X", "utf8", "-c", program, str(file)], capture_output=True, text=True, encoding="utf-8", check=True, timeout=60
    )


def test_what_is_allocated_is_not_counted_and_files_open_as_before(tmp_path: Path):
    assert ran(tmp_path / "plain", early=True).stdout.split() == ["ハル", "False"]


def test_encrypted_files_open_as_before(tmp_path: Path):
    assert ran(tmp_path / "sealed", early=True, sealed=True).stdout.split() == ["ハル", "False"]
    assert not (tmp_path / "sealed").read_bytes().startswith(b"SQLite format 3")


def test_with_a_file_open_everything_stays_as_it_is(tmp_path: Path):
    late = ran(tmp_path / "open", early=False)
    assert late.stdout.split() == ["ハル", "True"]
    assert "a file is open already" in late.stderr
