"""Adopting what older servers left: moved to where it belongs at start-up, its tables taken over when a persona is first opened.

Each move is one rename, so that a crash leaves it done or not done, and the next start goes on. What is taken out of use, and
every database before it is changed, is kept in `.adopted/` by the time of the adoption. Nothing is deleted.
"""

import json
import logging
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from memory_mcp.errors import MemoryMCPError
from memory_mcp.personas.directories import IDENTITY_NAME
from memory_mcp.personas.registry import Personas
from memory_mcp.store.files.durable_files import sync_directory, write_atomically
from memory_mcp.store.inspection import is_from_older_server
from memory_mcp.store.legacy import original_files
from memory_mcp.store.operations import Operation
from memory_mcp.store.sqlite.database import DATABASE_NAME
from memory_mcp.upkeep.legacy_layout import Older, older_things

logger = logging.getLogger(__name__)


def move_into_place(personas: Personas, now: datetime) -> list[Older]:
    """Brings every thing of an older server to where it belongs. Returns what there was, with the reason where it had to stay.

    Quick whatever it holds: nothing is read through, but databases that were not closed. Call it before a persona is opened.
    """
    found: list[Older] = []
    kept = original_files.adoption_directory(personas.directory, now)
    for thing in older_things(personas.directory):
        done = thing if thing.refused else _attempt(personas.directory, thing, kept)
        found.append(done)
        logger.log(logging.WARNING if done.refused else logging.INFO, "%s", done.sentence(done=True))
        if not done.refused:
            personas.log.append(done.persona, Operation("adopt", done.source, now))
    return found


def adopt_all(directory: Path, now: datetime) -> tuple[list[Older], dict[str, str]]:
    """Both parts at once, where no server runs. Returns what was moved and, by persona, an empty text or why its tables were not taken.

    Raises:
        StartupError: a server has the directory.
    """
    personas = Personas(directory)
    try:
        return move_into_place(personas, now), take_over_tables(personas, threading.Event())
    finally:
        personas.close()


def foreseen(directory: Path) -> tuple[list[Older], dict[str, str]]:
    """The same without doing anything."""
    things = older_things(directory)
    stores = {str(path.parent.name): path for path in sorted(directory.glob(f"*/{DATABASE_NAME}"))}
    moved = {thing.persona: directory / thing.source for thing in things if thing.kind == "database" and not thing.refused}
    return things, {name: "" for name, path in {**stores, **moved}.items() if is_from_older_server(path)}


def take_over_tables(personas: Personas, stopping: threading.Event) -> dict[str, str]:
    """Opens every persona whose database an older server made, which takes it over. Runs beside the server.

    A persona that somebody asks for meanwhile is taken over for them first; others are not delayed. Returns the names, each with
    an empty text, or why it could not be done.
    """
    taken: dict[str, str] = {}
    for name in personas.names():
        if stopping.is_set():
            break
        if not is_from_older_server(personas.path_of(name)):
            continue
        try:
            with personas.writing(name):
                taken[name] = ""
        except MemoryMCPError as error:
            logger.error("the older memories of %s can't be taken over: %s", name, error)
            taken[name] = str(error)
        except Exception as error:  # whatever one store holds, the others are taken over
            logger.exception("the older memories of %s can't be taken over", name)
            taken[name] = f"unexpected {type(error).__name__}: {error}"
    return taken


def _attempt(directory: Path, thing: Older, kept: Path) -> Older:
    try:
        target = _MOVES[thing.kind](directory, thing, kept)
    except MemoryMCPError as error:
        return replace(thing, refused=str(error))
    except OSError as error:
        return replace(thing, refused=f"{error.strerror or error}. Mend that and start again.")
    return replace(thing, target=target.relative_to(directory).as_posix())


def _move_directory(directory: Path, thing: Older, kept: Path) -> Path:
    source, target = directory / thing.source, directory / str(thing.target)
    if (source / DATABASE_NAME).exists():
        original_files.close_properly(source / DATABASE_NAME, kept / thing.source)
    # First the name, then the place: a directory of ours without a name would be nobody's.
    write_atomically(source / IDENTITY_NAME, json.dumps({"name": thing.persona}, ensure_ascii=False) + "\n")
    return _renamed(source, target)


def _move_database(directory: Path, thing: Older, kept: Path) -> Path:
    source, target = directory / thing.source, directory / str(thing.target)
    original_files.close_properly(source, kept)
    original_files.make_private_directory(target.parent)
    if not (target.parent / IDENTITY_NAME).exists():
        write_atomically(target.parent / IDENTITY_NAME, json.dumps({"name": thing.persona}, ensure_ascii=False) + "\n")
    return _renamed(source, target)


def _make_writable(directory: Path, thing: Older, _kept: Path) -> Path:
    path = directory / thing.source
    original_files.make_writable(path)
    return path


def _set_aside(directory: Path, thing: Older, kept: Path) -> Path:
    target = original_files.unused(kept / thing.source)
    original_files.make_private_directory(target.parent)
    return _renamed(directory / thing.source, target)


def _renamed(source: Path, target: Path) -> Path:
    source.rename(target)
    sync_directory(source.parent)
    if target.parent != source.parent:
        sync_directory(target.parent)
    return target


_MOVES: dict[str, Callable[[Path, Older, Path], Path]] = {
    "directory": _move_directory,
    "database": _move_database,
    "permissions": _make_writable,
    "vectors": _set_aside,
    "log": _set_aside,
}
