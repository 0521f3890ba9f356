"""Adopts data of older servers: moves files to their places at start-up, and migrates databases when their personas are first opened.

Each move is one rename, so that after a crash it is done or not done, and the next start continues. Files that are no longer used,
and a copy of every database before it is changed, are kept in `.adopted/`, in a directory named after the time. Nothing is deleted.
"""

import json
import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import apsw

from memory_mcp.errors import MemoryMCPError, StoreError
from memory_mcp.features.adoption.layout import ADOPTED_FROM, LegacyItem, adopted_from, legacy_items
from memory_mcp.personas.atomic_replace import scratch
from memory_mcp.personas.cells import Cell
from memory_mcp.personas.directories import IDENTITY_NAME, make_private
from memory_mcp.personas.names import directory_name
from memory_mcp.personas.registry import Personas
from memory_mcp.store.files.durable_files import sync_directory, sync_file, write_atomically
from memory_mcp.store.inspection import is_from_older_server
from memory_mcp.store.legacy import foreign_limits, foreign_schemas, original_files
from memory_mcp.store.legacy.foreign_schemas import Schema
from memory_mcp.store.legacy.row_reading import quoted
from memory_mcp.store.operations import Operation
from memory_mcp.store.sqlite.database import DATABASE_NAME
from memory_mcp.store.sqlite.errors import translated_errors

# The items that become a persona's files.
_PERSONAS = frozenset({"directory", "database", "owner"})

logger = logging.getLogger(__name__)


def move_into_place(personas: Personas, now: datetime) -> list[LegacyItem]:
    """Move every item of an older server to its place. Returns the items, with the reason for each that wasn't moved.

    Fast for any amount of data: it only reads databases completely that weren't closed. Call it before a persona is opened.
    """
    items: list[LegacyItem] = []
    kept = original_files.adoption_directory(personas.directory, now)
    for item in legacy_items(personas.directory, personas.index.adopted()):
        done = item if item.refused else _attempt(personas.directory, item, kept, personas.cell)
        items.append(done)
        logger.log(logging.WARNING if done.refused else logging.INFO, "%s", done.sentence(done=True))
        if not done.refused:
            personas.index.changed()
            personas.log.append(done.persona, Operation("adopt", done.source, now))
    return items


def adopt_all(directory: Path, now: datetime) -> tuple[list[LegacyItem], dict[str, str]]:
    """Move all files and migrate all databases while no server runs.

    Returns the moved items and, by persona, an empty text or the reason why its database wasn't migrated.

    Raises:
        StartupError: a server uses the directory.
    """
    with closing(Personas(directory)) as personas:
        return move_into_place(personas, now), take_over_tables(personas, threading.Event())


def preview(directory: Path) -> tuple[list[LegacyItem], dict[str, str]]:
    """What `adopt_all` would do. Changes nothing."""
    items = legacy_items(directory)
    stores = {str(path.parent.name): path for path in sorted(directory.glob(f"*/{DATABASE_NAME}"))}
    moved = {item.persona: directory / item.source for item in items if item.kind == "database" and not item.refused}
    return items, {name: original_files.recognize(path)[1] for name, path in {**stores, **moved}.items() if is_from_older_server(path)}


def take_over_tables(personas: Personas, stopping: threading.Event) -> dict[str, str]:
    """Open every persona with a database of an older server, which migrates it. Runs in a thread while the server answers.

    A request for a persona that isn't migrated yet migrates it immediately; other personas aren't delayed. Returns the names, each
    with an empty text or the reason of the failure.
    """
    taken: dict[str, str] = {}
    for name in personas.index.names_not_adopted():
        if stopping.is_set():
            break
        if not is_from_older_server(personas.path_of(name)):
            personas.index.note_adopted(name)
            continue
        try:
            with personas.reading(name):
                taken[name] = ""
        except MemoryMCPError as error:
            logger.error("the older memories of %s can't be taken over: %s", name, error)
            taken[name] = str(error)
        except Exception as error:  # an error in one store must not stop the others
            logger.exception("the older memories of %s can't be taken over", name)
            taken[name] = f"unexpected {type(error).__name__}: {error}"
    return taken


def _attempt(directory: Path, item: LegacyItem, kept: Path, cell: Cell) -> LegacyItem:
    try:
        if item.kind in _PERSONAS:
            cell.require(item.persona)
        target = _MOVES[item.kind](directory, item, kept)
    except MemoryMCPError as error:
        return replace(item, refused=str(error))
    except OSError as error:
        return replace(item, refused=f"{error.strerror or error}. Fix that and start again.")
    if item.kind in _PERSONAS:
        make_private(directory / directory_name(item.persona))
    return replace(item, target=target.relative_to(directory).as_posix())


def _move_directory(directory: Path, item: LegacyItem, kept: Path) -> Path:
    source, target = directory / item.source, directory / str(item.target)
    if (source / DATABASE_NAME).exists():
        original_files.close_properly(source / DATABASE_NAME, kept / item.source)
    # The name is written before the move: a directory of the current layout without a name would belong to no persona.
    write_atomically(source / IDENTITY_NAME, json.dumps({"name": item.persona}, ensure_ascii=False) + "\n")
    return _renamed(source, target)


def _move_database(directory: Path, item: LegacyItem, kept: Path) -> Path:
    source, target = directory / item.source, directory / str(item.target)
    original_files.close_properly(source, kept)
    original_files.make_private_directory(target.parent)
    if not (target.parent / IDENTITY_NAME).exists():
        write_atomically(target.parent / IDENTITY_NAME, json.dumps({"name": item.persona}, ensure_ascii=False) + "\n")
    return _renamed(source, target)


def _copy_owner(directory: Path, item: LegacyItem, kept: Path) -> Path:
    source, target = directory / item.source, directory / str(item.target)
    original_files.close_properly(source, kept / original_files.SHARED_NAME)
    schema = original_files.recognize(source)[0].schema
    if schema is None:
        raise StoreError("{} has changed", "its table of memories is gone", "Start again", item.source)
    with scratch(directory, target.parent.name) as unfinished:
        copied = unfinished / DATABASE_NAME
        copy_rows(source, schema, item.persona, copied)
        sync_file(copied)
        original_files.make_private_directory(target.parent)
        identity = {"name": item.persona, ADOPTED_FROM: original_files.digest(source)}
        write_atomically(target.parent / IDENTITY_NAME, json.dumps(identity, ensure_ascii=False) + "\n")
        return _renamed(copied, target)


def copy_rows(source: Path, schema: Schema, owner: str, target: Path) -> None:
    """Write a new database with the tables that have owners, and the owner's rows in them. `source` must be closed and isn't changed.

    Raises:
        StoreError: it can't be read or written.
    """
    with translated_errors(target), _both(source, target) as (there, here):
        for table, columns in foreign_schemas.columns_of(there).items():
            name = quoted(table)
            if schema.owner in columns:
                condition = f"WHERE {quoted(schema.owner)} IS ?"
                here.execute(f"CREATE TABLE {name} AS SELECT * FROM source.{name} {condition}", (owner,))
            elif table in schema.shared:
                here.execute(f"CREATE TABLE {name} AS SELECT * FROM source.{name}")


@contextmanager
def _both(source: Path, target: Path) -> Iterator[tuple[apsw.Connection, apsw.Connection]]:
    location = f"{source.absolute().as_uri()}?immutable=1"
    there = apsw.Connection(location, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
    here = apsw.Connection(str(target), flags=apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE | apsw.SQLITE_OPEN_URI)
    try:
        here.pragma("synchronous", "FULL")
        here.pragma("encoding", there.pragma("encoding"))
        here.limit(apsw.SQLITE_LIMIT_LENGTH, foreign_limits.OWN_VALUE_LIMIT_BYTES)
        here.execute("ATTACH ? AS source", (location,))
        yield there, here
    finally:
        here.close()
        there.close()


def _set_owners_aside(directory: Path, item: LegacyItem, kept: Path) -> Path:
    missing = [
        owner for owner in original_files.recognize(directory / item.source)[0].owners if not _is_copied(directory, item.source, owner)
    ]
    if missing:
        raise StoreError("{} stays where it is", "the memories of {} could not be copied", "Start again", item.source, missing[0])
    return _set_aside(directory, item, kept / original_files.SHARED_NAME)


def _is_copied(directory: Path, source: str, owner: str) -> bool:
    folder = directory / directory_name(owner)
    return (folder / DATABASE_NAME).exists() and adopted_from(folder) == original_files.digest(directory / source)


def _make_writable(directory: Path, item: LegacyItem, _kept: Path) -> Path:
    path = directory / item.source
    original_files.make_writable(path)
    return path


def _set_aside(directory: Path, item: LegacyItem, kept: Path) -> Path:
    target = original_files.unused(kept / item.source)
    original_files.make_private_directory(target.parent)
    return _renamed(directory / item.source, target)


def _renamed(source: Path, target: Path) -> Path:
    source.rename(target)
    sync_directory(source.parent)
    if target.parent != source.parent:
        sync_directory(target.parent)
    return target


_MOVES: dict[str, Callable[[Path, LegacyItem, Path], Path]] = {
    "directory": _move_directory,
    "database": _move_database,
    "owner": _copy_owner,
    "owners": _set_owners_aside,
    "permissions": _make_writable,
    "vectors": _set_aside,
    "log": _set_aside,
}
