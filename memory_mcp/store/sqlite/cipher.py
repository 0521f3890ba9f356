"""Encrypted SQLite files: AES-256 with a MAC on every page, in the form of SQLCipher 4, which other programs read as well."""

from pathlib import Path
from urllib.parse import quote

import apsw

# What an SQLite file begins with that is not encrypted. An encrypted one begins with a random salt.
PLAIN_MAGIC = b"SQLite format 3\x00"


def unlock(connection: apsw.Connection, key: bytes | None) -> None:
    """Tells a fresh connection the 32 bytes that its file is encrypted with; None: it is plain. A wrong key shows at the first reading."""
    if key is not None:
        connection.execute(f"PRAGMA cipher='sqlcipher'; PRAGMA legacy=4; PRAGMA key=\"x'{key.hex()}'\"").fetchall()


def target(path: Path, key: bytes | None) -> str:
    """What `VACUUM INTO` takes for a new file under this key, or a plain one."""
    # An empty key says so: left out, the new file would have the key of the old one.
    how = f"cipher=sqlcipher&legacy=4&key=raw:{key.hex()}" if key is not None else "key="
    return f"file:{quote(path.absolute().as_posix())}?{how}"


def is_plain(path: Path) -> bool:
    """Whether a file is there that begins as a plain SQLite file does."""
    try:
        with path.open("rb") as file:
            return file.read(len(PLAIN_MAGIC)) == PLAIN_MAGIC
    except OSError:
        return False
