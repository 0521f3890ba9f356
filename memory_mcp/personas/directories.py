"""A persona's directory: which one is a persona's, whose it says it is, and what becomes of one that is half made."""

import json
from contextlib import suppress
from pathlib import Path

from memory_mcp.errors import StoreDamaged
from memory_mcp.store.files.durable_files import write_atomically
from memory_mcp.store.files.encryption_keys import KEY_NAME
from memory_mcp.store.files.persona_context import FILE_NAME as CONTEXT_NAME

DATABASE_NAME = "memory.sqlite"
IDENTITY_NAME = "persona.json"
SHORTEST_DATABASE_BYTES = 512  # the least that a page of SQLite has


def is_persona(directory: Path) -> bool:
    """Whether this is a persona's directory. One that has only its name left is one, too: its database was lost."""
    return (directory / DATABASE_NAME).exists() or (directory / IDENTITY_NAME).exists()


def identity_text(name: str) -> str:
    """What persona.json holds."""
    return json.dumps({"name": name}, ensure_ascii=False) + "\n"


def write_identity(directory: Path, name: str) -> None:
    """The name that a directory says it has."""
    write_atomically(directory / IDENTITY_NAME, identity_text(name))


def is_lost(directory: Path) -> bool:
    """Whether a persona's directory has no database, or one so short that SQLite would take it for a new one."""
    database = directory / DATABASE_NAME
    return not database.exists() or (database.is_file() and database.stat().st_size < SHORTEST_DATABASE_BYTES)


def identity(directory: Path) -> str | None:
    """The name that a persona's directory says it has; None where an older server made it, which didn't say.

    Raises:
        StoreDamaged: it says so in a file that can't be read.
    """
    try:
        name = str(json.loads((directory / IDENTITY_NAME).read_text(encoding="utf-8"))["name"])
        name.encode()  # half of a character, which JSON can hold, is in nobody's name
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise StoreDamaged(
            f"{IDENTITY_NAME} in {directory.name} can't be read",
            getattr(error, "strerror", None) or str(error),
            'Restore it: {"name": "the exact name"}',
        ) from error
    return name


def checked_identity(directory: Path, name: str) -> str | None:
    """The name that the directory says it has, if it says one.

    Raises:
        StoreDamaged: it is another's, or has lost its database.
    """
    known_as = identity(directory)
    if known_as not in {None, name}:
        raise StoreDamaged(
            f"the directory of {name!r} says that it belongs to {known_as!r}", "", f"Restore the right {IDENTITY_NAME} in {directory.name}"
        )
    if known_as is not None and is_lost(directory):
        raise StoreDamaged(
            f"the database of {name!r} is gone",
            f"{DATABASE_NAME} in {directory.name} is missing, empty or cut off",
            "Stop the server and restore it from a backup; to begin anew, move the whole directory away. Other personas are not affected",
        )
    return known_as


def complete(directory: Path, known_as: str | None, name: str) -> None:
    """What a directory gets once its database is open: its name, and an end to what a crash left half written.

    The name last: a directory with a name and without a database has lost one, and is not a new persona.
    """
    for scrap in [scrap for name in (CONTEXT_NAME, IDENTITY_NAME, KEY_NAME) for scrap in directory.glob(f".{name}.*")]:
        scrap.unlink(missing_ok=True)
    if known_as is None:
        write_identity(directory, name)


def remove_unborn(directory: Path) -> None:
    """Nothing half made stays of a persona that could not be created: its database holds no memory yet."""
    with suppress(OSError):
        for file in (*directory.glob(f"{DATABASE_NAME}*"), *directory.glob(KEY_NAME)):
            file.unlink()
        directory.rmdir()


def refuse_shared_database(directory: Path, database: str, identity: str) -> None:
    """Checks the directory of a persona that is about to be opened; `database` and `identity` are the names of two files in it.

    Raises:
        StoreDamaged: the directory, or the database in it, is that of another persona of the same data directory, too.
        OSError: it can't be looked at.
    """
    if not (directory / database).exists() or not (_is_link(directory) or _is_link(directory / database)):
        return  # the usual case, and nothing else is looked at, however many personas there are
    for other in directory.parent.iterdir():
        twin = other / database
        if other.name != directory.name and twin.exists() and twin.samefile(directory / database):
            # A copy that says it is this persona is never opened under its own directory's name.
            if (other / identity).exists() and (other / identity).read_bytes() == _bytes_of(directory / identity):
                continue
            raise StoreDamaged(
                f"the directory {directory.name} shares its database with another persona, by a link",
                "each would read the other's memories",
                "Remove the link. To give one persona a copy of the other's memories, export and import them",
            )


def _is_link(path: Path) -> bool:
    """Whether there may be another name for it: a symbolic link, or a file with several names."""
    return path.is_symlink() or (path.is_file() and path.stat().st_nlink > 1)


def _bytes_of(file: Path) -> bytes:
    return file.read_bytes() if file.exists() else b""
