"""Operations on whole personas: rename, copy, erase, and merge. Each survives a crash: it happened completely or not at all."""

import shutil
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import apsw

from memory_mcp.errors import InvalidInput, PersonaUnknown
from memory_mcp.personas.directories import write_identity
from memory_mcp.personas.names import addressed_name
from memory_mcp.personas.recovery import COPY_PREFIX, ERASE_PREFIX, Renaming, destroy, make_absolute, move, recorded, unfinished_path
from memory_mcp.personas.registry import Persona, Personas
from memory_mcp.store import operations, persona_merge
from memory_mcp.store.files.durable_files import PRIVATE_DIRECTORY, refusal, sync_directory, sync_file, write_atomically
from memory_mcp.store.files.encryption_keys import KEY_NAME
from memory_mcp.store.files.persona_context import FILE_NAME as CONTEXT_NAME
from memory_mcp.store.files.persona_context import PersonaContext
from memory_mcp.store.files.sealed import seal
from memory_mcp.store.operations import Operation
from memory_mcp.store.persona_merge import Merged
from memory_mcp.store.sqlite import snapshots
from memory_mcp.store.sqlite.database import DATABASE_NAME
from memory_mcp.store.vectors.index_cache import IndexCache
from memory_mcp.store.vectors.index_files import DIRECTORY_NAME as VECTORS_NAME


def rename(personas: Personas, name: str, to: str, indexes: IndexCache, now: datetime, others: Collection[str] | None = None) -> str:
    """Rename a persona; return the canonical new name. The vector index is rebuilt from the database.

    `others` are the personas that the caller may hear of, None for all: the new name must not be too similar to one of these.

    Raises:
        InvalidPersonaName, InvalidInput: the name is invalid, in use, or too similar to another.
        PersonaUnknown: there is no such persona.
        Overloaded: the persona is in use.
        StoreError: its directory can't be moved.
    """
    target_name = free_name(personas, to, others, instead_of=name)
    source, target = _directory(personas, name), personas.path_of(target_name).parent
    renaming = Renaming(source.name, target.name, name, target_name)
    with _alone(personas, name, target_name), _translated(f"{name!r} can't be renamed"), recorded(personas.directory, renaming):
        shutil.rmtree(source / VECTORS_NAME, ignore_errors=True)  # its manifest contains the directory's name
        if source != target:
            move(source, target)
        write_identity(target, target_name)
        indexes.forget(source)
    _record(personas, target_name, Operation("rename_persona", None, now, metadata={"from": name, "to": target_name}))
    return target_name


def copy(personas: Personas, name: str, to: str, now: datetime, others: Collection[str] | None = None) -> str:
    """Copy a persona; return the canonical name of the copy. The two are independent afterwards.

    `others` and what it raises: as `rename`.
    """
    target_name = free_name(personas, to, others)
    source, target = _directory(personas, name), personas.path_of(target_name).parent
    with _alone(personas, name, target_name), _translated(f"{name!r} can't be copied"):
        copied = unfinished_path(personas.directory, COPY_PREFIX)
        copied.mkdir(mode=PRIVATE_DIRECTORY)
        try:
            _fill(personas, source, copied, target_name)
            move(copied, target)
        except BaseException:  # on a full disk the half copy would keep every persona from writing
            shutil.rmtree(copied, ignore_errors=True)
            raise
    _record(personas, target_name, Operation("copy_persona", None, now, metadata={"from": name, "to": target_name}))
    return target_name


def _fill(personas: Personas, source: Path, copied: Path, name: str) -> None:
    """Write the files of a copy, durably."""
    made = _reencrypt(personas, source, copied)
    for file in sorted(source.iterdir()):
        if file.is_file() and not file.name.startswith((".", *made)):
            shutil.copy2(file, copied / file.name)
    for file in sorted(copied.iterdir()):
        sync_file(file)
    write_identity(copied, name)
    sync_directory(copied)


def _reencrypt(personas: Personas, source: Path, copied: Path) -> tuple[str, ...]:
    """Write the files of an encrypted persona's copy with a key of its own, so that destroying either key affects only one of them.
    Returns the prefixes of the names of these files; empty if the persona is plain."""
    old = personas.keys.of(source)
    if old is None:
        return ()
    new = personas.keys.make(copied)
    snapshots.convert(source / DATABASE_NAME, old.database, copied / DATABASE_NAME, new.database)
    text = PersonaContext(source / CONTEXT_NAME, old).text()
    if text:
        write_atomically(copied / CONTEXT_NAME, seal(text.encode(), new.files))
    return (KEY_NAME, DATABASE_NAME, CONTEXT_NAME)


def erase(personas: Personas, name: str, indexes: IndexCache, now: datetime, first: Callable[[], None] = lambda: None) -> None:
    """Erase a persona irrevocably. `first` is called when the persona is no longer open; if it fails, the persona stays.

    Raises:
        PersonaUnknown: there is no such persona.
        Overloaded: the persona is in use.
        StoreError: its directory can't be moved or removed. Once moved, the next start removes it.
    """
    source = _directory(personas, name)
    with _alone(personas, name), _translated(f"{name!r} can't be erased"):
        first()
        remove_files(personas, name, lambda: indexes.forget(source))
    personas.log.append(name, Operation("erase_persona", None, now))


def remove_files(personas: Personas, name: str, moved: Callable[[], None] = lambda: None) -> None:
    """Remove the directory of a persona that is not open. `moved` is called once the directory is renamed; after a crash, the next start
    removes the renamed one."""
    source = personas.path_of(name).parent
    make_absolute(source)
    erased = unfinished_path(personas.directory, ERASE_PREFIX)
    move(source, erased)
    moved()
    destroy(erased)


def free_name(personas: Personas, to: str, others: Collection[str] | None = None, instead_of: str | None = None) -> str:
    """The canonical form of a name for a new or renamed persona. `others`: as in `rename`.

    Raises:
        InvalidPersonaName, InvalidInput: the name is invalid, in use, or too similar to another.
    """
    wanted = addressed_name(to)
    if personas.exists(wanted):
        raise _in_use(wanted)
    similar = personas.index.folded_as(wanted)
    if any(known != instead_of for known in similar if others is None or known in others):
        raise InvalidInput(
            "{} is too similar to the name of another persona",
            "they differ in case or width only, and would be confused",
            "Choose another name",
            repr(wanted),
        )
    if personas.path_of(wanted).parent.exists():
        raise InvalidInput("the directory of {} exists", "it isn't a persona", "Choose another name", repr(wanted))
    return wanted


def _directory(personas: Personas, name: str) -> Path:
    if not personas.exists(name):
        raise PersonaUnknown("there is no persona {}", "", "", repr(name))
    return personas.path_of(name).parent


@contextmanager
def _alone(personas: Personas, name: str, target_name: str | None = None) -> Iterator[None]:
    """Exclusive access to a persona that is still there, and to a directory that is still free."""
    with personas.exclusive(*filter(None, (name, target_name))):
        source = _directory(personas, name)
        if target_name is not None and (target := personas.path_of(target_name).parent) != source and target.exists():
            raise _in_use(target_name)
        yield


def _in_use(name: str) -> InvalidInput:
    return InvalidInput("there is a persona {} already", "", "Choose another name, or merge the two", repr(name))


def _record(personas: Personas, name: str, operation: Operation) -> None:
    def record(connection: Any) -> None:
        operations.record(connection, operation)

    with personas.reading(name) as persona:
        if persona.exists:  # else another call has moved or erased it just now
            persona.database.write(record)
    personas.log.append(name, operation)


@contextmanager
def _translated(what: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise refusal(error, what, "Make the data directory writable, and restart the server") from error


def merge(source: Persona, target: Persona, now: datetime) -> Merged:
    """Merge the memories of `source` into `target` in one transaction. A repeated merge adds what is new; `source` stays unchanged.

    The `persona_context.json` of the target stays as it is.

    Raises:
        StoreError: the merge failed; nothing was changed.
    """
    with source.database.read() as there:

        def work(here: apsw.Connection) -> tuple[Merged, Operation]:
            merged = persona_merge.merge_into(here, there, source.name, now)
            counts = {"from": source.name, "taken": merged.taken, "known": merged.known, "erased_before": merged.erased_before}
            done = Operation("merge_persona", None, now, metadata=counts)
            operations.record(here, done)
            return merged, done

        merged, done = target.database.write_apart(work)
    target.log.append(target.name, done)
    return merged
