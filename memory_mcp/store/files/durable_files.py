"""Small files that are either the old one or the new one, whatever happens in between."""

import errno
import os
import tempfile
from pathlib import Path

from memory_mcp.errors import StoreError, StoreFull, StoreReadOnly

SHRED_BYTES = 1024 * 1024


def write_atomically(path: Path, content: str | bytes) -> None:
    """Replaces `path` by a text (as UTF-8) or bytes: temporary file, fsync, rename, fsync of the directory."""
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


def sync_directory(directory: Path) -> None:
    """Makes a rename or a new file in `directory` survive a power cut. Windows does so by itself and can't be asked."""
    if os.name == "nt":
        return
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_file(path: Path) -> None:
    """Makes what was written to a file survive a power cut."""
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def shred(path: Path) -> None:
    """Overwrites a file with zeros where it lies, and removes it. Disks that write elsewhere (SSDs, snapshots) may keep what was there.

    One that has another name elsewhere, as in somebody's backup by links, is only removed here.
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
    """Our error for a file that could not be written. A full disk is said as such: no permission helps there."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StoreFull("the disk is full", what, "Free some room and try again; reading still works")
    return StoreReadOnly(what, error.strerror or type(error).__name__, do)
