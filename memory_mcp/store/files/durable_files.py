"""Writes files durably: atomic replacement, fsync, and secure deletion. Also the error for a file that can't be written."""

import errno
import os
import shutil
import tempfile
from pathlib import Path

from memory_mcp.errors import StoreError, StoreFull, StoreReadOnly

SHRED_BYTES = 1024 * 1024
# Directories with memories, and adopted files, are readable by their owner alone.
PRIVATE_DIRECTORY, PRIVATE_FILE = 0o700, 0o600


def write_atomically(path: Path, content: str | bytes) -> None:
    """Replace `path` by a text (as UTF-8) or bytes: temporary file, fsync, rename, fsync of the directory.

    After a crash the file is either the old one or the new one.
    """
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    sync_directory(path.parent)


def open_private(path: str | Path, flags: int) -> int:
    """Opens a file that only its owner may read: the `opener` of what holds memories or names personas. A pipe of that name is not
    waited for.
    """
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0), PRIVATE_FILE)


def sync_directory(directory: Path) -> None:
    """Make a rename or a new file in `directory` survive a power failure. Windows does so by itself and has no such call."""
    if os.name == "nt":
        return
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_file(path: Path) -> None:
    """Make the content of a file survive a power failure."""
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def shred(path: Path) -> None:
    """Overwrite a file with zeros in place and remove it. SSDs and file systems with snapshots may keep the old content.

    A file with further hard links, as in some backups, is only removed.
    """
    with path.open("rb+") as file:
        stat = os.fstat(file.fileno())
        left = stat.st_size if stat.st_nlink == 1 else 0
        while left > 0:
            left -= file.write(bytes(min(left, SHRED_BYTES)))
        file.flush()
        os.fsync(file.fileno())
    path.unlink()
    sync_directory(path.parent)


def refusal(error: OSError, what: str, do: str) -> StoreError:
    """The error for a file that can't be written; a full disk is reported as such."""
    # Of a tree that was copied shutil has only words, a text for each file.
    reason = error.args[0][0][-1] if isinstance(error, shutil.Error) else error.strerror or type(error).__name__
    if error.errno in (errno.ENOSPC, errno.EDQUOT) or os.strerror(errno.ENOSPC) in reason:
        return StoreFull("the disk is full", "{}", "Free some room and try again; reading still works", what)
    return StoreReadOnly(what, reason, do)
