"""Encrypted SQLite files: AES-256 with a MAC on every page, in the format of SQLCipher 4, which other programs can read."""

from pathlib import Path
from urllib.parse import quote

import apsw

# The first bytes of an unencrypted SQLite file. An encrypted one begins with a random salt.
SQLITE_MAGIC = b"SQLite format 3\x00"


def unlock(connection: apsw.Connection, key: bytes | None) -> None:
    """Set the 32-byte key of a new connection; None for a plain file. A wrong key fails at the first read."""
    if key is not None:
        connection.execute(f"PRAGMA cipher='sqlcipher'; PRAGMA legacy=4; PRAGMA key=\"x'{key.hex()}'\"").fetchall()


def target(path: Path, key: bytes | None) -> str:
    """The target of `VACUUM INTO` for a new file with this key, or a plain file."""
    # Without an explicit empty key, the new file would inherit the key of the old one.
    options = f"cipher=sqlcipher&legacy=4&key=raw:{key.hex()}" if key is not None else "key="
    return f"file:{quote(path.absolute().as_posix())}?{options}"


def is_plain(path: Path) -> bool:
    """Whether the file exists and begins like an unencrypted SQLite file."""
    try:
        with path.open("rb") as file:
            return file.read(len(SQLITE_MAGIC)) == SQLITE_MAGIC
    except OSError:
        return False
