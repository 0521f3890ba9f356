"""Files of older servers: recognize them, keep a copy before changing them, and fold a log into its database."""

import filecmp
import glob
import hashlib
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path

import apsw

from memory_mcp.errors import StoreError
from memory_mcp.store.files.durable_files import PRIVATE_DIRECTORY, sync_directory, sync_file
from memory_mcp.store.legacy import foreign_schemas
from memory_mcp.store.legacy.foreign_limits import distrust
from memory_mcp.store.legacy.foreign_schemas import Recognized
from memory_mcp.store.sqlite import cipher
from memory_mcp.store.sqlite.database import immediate
from memory_mcp.store.sqlite.errors import translated_errors

# In the data directory: the originals, in a directory per time of adoption.
KEPT_NAME = ".adopted"
# In such a directory: databases with the memories of several personas.
SHARED_NAME = "several_personas"
_SIDECARS = ("-wal", "-journal")


def adoption_directory(data_directory: Path, now: datetime) -> Path:
    """The directory for the originals of an adoption at `now`. Not created yet."""
    return data_directory / KEPT_NAME / f"{now:%Y%m%dT%H%M%S}Z"


def make_private_directory(directory: Path) -> None:
    """Create a directory and its missing parents, accessible only to the owner, and sync them to disk."""
    missing = [parent for parent in (directory, *directory.parents) if not parent.exists()]
    for parent in reversed(missing):
        parent.mkdir(mode=PRIVATE_DIRECTORY)
        sync_directory(parent.parent)


def unused(path: Path) -> Path:
    """`path`, or a variant of it that doesn't exist yet."""
    n = 2
    candidate = path
    while os.path.lexists(candidate):
        candidate, n = path.with_name(f"{path.name}.{n}"), n + 1
    return candidate


def keep_database(connection: apsw.Connection, target: Path) -> None:
    """Copy an open database to `target`, atomically and synced to disk.

    `target` is `<kept>/<time>/<persona>/<name>`. A copy that an interrupted adoption made isn't made a second time.
    """
    same = f"*/{glob.escape(target.parent.name)}/{target.name}"  # the same persona at other times
    for interrupted in target.parents[2].glob(f"{same}.part"):
        interrupted.unlink()
    make_private_directory(target.parent)
    temporary = target.with_name(f"{target.name}.part")
    with closing(apsw.Connection(str(temporary))) as copy, copy.backup("main", connection, "main") as backup:
        while not backup.done:
            backup.step(1_000)
    if any(filecmp.cmp(temporary, known, shallow=False) for known in target.parents[2].glob(same)):
        temporary.unlink()
        return
    _publish(temporary, target)


def keep_file(source: Path, target: Path) -> None:
    """Copy a file as it is, atomically and synced to disk."""
    make_private_directory(target.parent)
    temporary = target.with_name(f"{target.name}.part")
    shutil.copy2(source, temporary)
    _publish(temporary, target)


def _publish(temporary: Path, target: Path) -> None:
    sync_file(temporary)
    temporary.replace(target)
    sync_directory(target.parent)


@contextmanager
def unchanged(path: Path) -> Iterator[apsw.Connection]:
    """A connection that reads a database without changing a byte. With a log or journal, which contain changes that aren't in the file
    yet, a copy is read."""
    open_files = sidecars(path)
    with tempfile.TemporaryDirectory(prefix="memory-mcp-") as directory:
        for file in (path, *open_files) if open_files else ():
            shutil.copyfile(file, Path(directory, file.name))
        location = str(Path(directory, path.name)) if open_files else f"{path.absolute().as_uri()}?immutable=1"
        flags = apsw.SQLITE_OPEN_READWRITE if open_files else apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
        with closing(apsw.Connection(location, flags=flags)) as connection:
            yield connection


def recognize(path: Path) -> tuple[Recognized, str]:
    """What a plain database is, and why it can't become one persona's, or an empty text. Doesn't change a byte."""
    if not cipher.is_plain(path):
        return Recognized(), "It is not a database, or it is damaged. Restore or remove it."
    try:
        with unchanged(path) as connection:
            distrust(connection)
            recognized, refused = foreign_schemas.recognize(connection, path.name), foreign_schemas.refusal(connection, path.name)
    except (OSError, apsw.Error, UnicodeDecodeError) as error:
        return Recognized(), f"It is damaged: {error}. Restore or remove it."
    return recognized, str(refused) if refused else "" if recognized.schema else "It contains no table. Restore or remove it."


def digest(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sidecars(path: Path) -> list[Path]:
    """The log and journal of a database that wasn't closed, with changes that aren't in the database file yet."""
    return [sidecar for ending in _SIDECARS if (sidecar := path.with_name(path.name + ending)).exists()]


def close_properly(path: Path, kept: Path) -> None:
    """Fold log and journal into a database, so that one rename moves everything. The originals are kept in the directory `kept`.

    Raises:
        StoreError: it failed, for example because another program has the database open. The step is atomic; nothing is lost.
    """
    make_writable(path)
    open_files = sidecars(path)
    for file in [path, *open_files] if open_files else []:
        keep_file(file, kept / file.name)
    with translated_errors(path):
        connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
        try:
            connection.pragma("synchronous", "FULL")
            if connection.pragma("journal_mode", "DELETE") != "delete":
                raise StoreError("{} is in use", "another program has it open", "Stop the older server and start again", path.name)
            with immediate(connection):
                pass
        except apsw.BusyError as error:
            raise StoreError("{} is in use", "{}", "Stop the older server and start again", path.name, error) from error
        finally:
            connection.close()


def make_writable(path: Path) -> None:
    """Make a read-only file of an older server writable. The kept copy stays read-only.

    Raises:
        OSError: neither the file nor its directory can be written.
    """
    mode = path.stat().st_mode
    if mode & stat.S_IWUSR and os.access(path, os.W_OK):
        return
    try:
        path.chmod(mode | stat.S_IRUSR | stat.S_IWUSR)
    except PermissionError:  # another user's file in our directory: replace it by a copy
        own = path.with_name(f".{path.name}.part")
        shutil.copyfile(path, own)
        _publish(own, path)
