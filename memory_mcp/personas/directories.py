"""The files of a persona's directory: its identity, checks before it is opened, and cleanup of incomplete ones."""

import json
import logging
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from memory_mcp.errors import StoreDamaged, StoreError
from memory_mcp.store.files.durable_files import PRIVATE_DIRECTORY, PRIVATE_FILE, write_atomically
from memory_mcp.store.files.encryption_keys import KEY_NAME
from memory_mcp.store.files.persona_context import FILE_NAME as CONTEXT_NAME
from memory_mcp.store.sqlite.database import DATABASE_NAME

IDENTITY_NAME = "persona.json"
SHORTEST_DATABASE_BYTES = 512  # the smallest page size of SQLite

logger = logging.getLogger(__name__)


def is_persona(directory: Path) -> bool:
    """Whether this is a persona's directory, even if its database was lost and only its identity is left.

    Raises:
        StoreError: the directory can't be read, as one of another user.
    """
    try:
        return (directory / DATABASE_NAME).exists() or (directory / IDENTITY_NAME).exists()
    except OSError as error:
        raise StoreError(
            "the directory {} can't be read",
            "{}",
            "If a persona is in it, give it to the server's user (chown -R), else leave it: the others are served",
            directory.name,
            error.strerror or str(error),
        ) from error


def personas_among(entries: Iterable[Path]) -> tuple[list[Path], dict[Path, StoreError]]:
    """Those of these directories that are personas, sorted, and those that can't be read, each with the reason."""
    personas: list[Path] = []
    unreadable: dict[Path, StoreError] = {}
    for entry in sorted(entries):
        try:
            personas += [entry] if is_persona(entry) else []
        except StoreError as error:
            unreadable[entry] = error
    return personas, unreadable


def is_readable(directory: Path) -> bool:
    """Whether this process may look into a directory."""
    return os.access(directory, os.R_OK | os.X_OK)


def identity_text(name: str) -> str:
    """The content of persona.json."""
    return json.dumps({"name": name}, ensure_ascii=False) + "\n"


def write_identity(directory: Path, name: str) -> None:
    """Write the persona's name to persona.json."""
    write_atomically(directory / IDENTITY_NAME, identity_text(name))


def is_lost(directory: Path) -> bool:
    """Whether the database is missing, or so short that SQLite would treat it as new."""
    database = directory / DATABASE_NAME
    return not database.exists() or (database.is_file() and database.stat().st_size < SHORTEST_DATABASE_BYTES)


def identity(directory: Path) -> str | None:
    """The name in persona.json; None if there is no such file, as from an older server.

    Raises:
        StoreError: the file can't be read.
    """
    try:
        name = str(json.loads((directory / IDENTITY_NAME).read_text(encoding="utf-8"))["name"])
        name.encode()  # JSON may contain unpaired surrogates, but no name does
    except FileNotFoundError:
        return None
    except PermissionError as error:
        raise StoreError(
            "{} in {} can't be read", "{}", "Give it to the server's user (chown)", IDENTITY_NAME, directory.name, error.strerror
        ) from error
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise StoreDamaged(
            "{} in {} can't be read",
            "{}",
            'Restore it: {"name": "the exact name"}',
            IDENTITY_NAME,
            directory.name,
            getattr(error, "strerror", None) or str(error),
        ) from error
    return name


def checked_identity(directory: Path, name: str) -> str | None:
    """The name in persona.json; None if there is no such file.

    Raises:
        StoreDamaged: the name is another persona's, or the database is lost.
    """
    stored_name = identity(directory)
    if stored_name not in {None, name}:
        raise StoreDamaged(
            "the directory of {} belongs to {} according to {}",
            "",
            "Restore the right {} in {}",
            repr(name),
            repr(stored_name),
            IDENTITY_NAME,
            IDENTITY_NAME,
            directory.name,
        )
    if stored_name is not None and is_lost(directory):
        raise StoreDamaged(
            "the database of {} is gone",
            "{} in {} is missing, empty or cut off",
            "Stop the server and restore it from a backup; to start over, move the whole directory away. Other personas are not affected",
            repr(name),
            DATABASE_NAME,
            directory.name,
        )
    return stored_name


def make_private(directory: Path) -> None:
    """Let only the owner read the files of a persona that another server has made, with other permissions than ours."""
    try:
        directory.chmod(PRIVATE_DIRECTORY)
        for entry in directory.rglob("*"):
            if not entry.is_symlink():
                entry.chmod(PRIVATE_DIRECTORY if entry.is_dir() else PRIVATE_FILE)
    except OSError as error:  # files of another user can still be served
        logger.warning("the permissions of %s can't be restricted to its owner: %s", directory.name, error.strerror)


def complete(directory: Path, stored_name: str | None, name: str) -> None:
    """Complete a directory once its database is open: remove temporary files of a crash, and write its identity if it is new.

    The identity comes last, because a directory with an identity but no database counts as damaged, not as new.
    """
    for leftover in [path for file in (CONTEXT_NAME, IDENTITY_NAME, KEY_NAME) for path in directory.glob(f".{file}.*")]:
        leftover.unlink(missing_ok=True)
    if stored_name is None:
        make_private(directory)
        write_identity(directory, name)


def remove_incomplete(directory: Path) -> None:
    """Remove the directory of a persona whose creation failed; its database contains no memory yet."""
    with suppress(OSError):
        for file in (*directory.glob(f"{DATABASE_NAME}*"), *directory.glob(KEY_NAME)):
            file.unlink()
        directory.rmdir()


def refuse_shared_database(directory: Path, database: str, identity: str) -> None:
    """Check the directory of a persona before it is opened; `database` and `identity` are the names of two files in it.

    Links to another disk are allowed, but two personas that share one database would read each other's memories.

    Raises:
        StoreDamaged: by a link, another persona of the data directory has the same directory or database.
        OSError: the directory can't be read.
    """
    if not (directory / database).exists() or not (_is_link(directory) or _is_link(directory / database)):
        return  # the usual case, without reading the other directories
    for other in directory.parent.iterdir():
        linked_database = other / database
        if other.name != directory.name and linked_database.exists() and linked_database.samefile(directory / database):
            # A directory with the identity of this persona is never opened under its own name.
            if (other / identity).exists() and (other / identity).read_bytes() == _bytes_of(directory / identity):
                continue
            raise StoreDamaged(
                "the directory {} shares its database with another persona, by a link",
                "each would read the other's memories",
                "Remove the link. To give one persona a copy of the other's memories, export and import them",
                directory.name,
            )


def _is_link(path: Path) -> bool:
    """Whether the path is a symbolic link, or a file with several hard links."""
    return path.is_symlink() or (path.is_file() and path.stat().st_nlink > 1)


def _bytes_of(file: Path) -> bytes:
    return file.read_bytes() if file.exists() else b""
