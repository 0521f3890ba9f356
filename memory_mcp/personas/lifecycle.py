"""A persona as a whole: renamed, copied, erased. Each happens while nobody has it open, and after a crash it has happened or has not."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import apsw

from memory_mcp.errors import InvalidInput, PersonaUnknown
from memory_mcp.personas.directories import DATABASE_NAME, write_identity
from memory_mcp.personas.names import canonical_name, directory_name, fold
from memory_mcp.personas.recovery import COMING, GOING, PRIVATE, Renaming, destroy, move, noted, place
from memory_mcp.personas.registry import Persona, Personas
from memory_mcp.store import operations, persona_merge
from memory_mcp.store.files.durable_files import refusal, sync_directory, sync_file, write_atomically
from memory_mcp.store.files.encryption_keys import KEY_NAME
from memory_mcp.store.files.persona_context import FILE_NAME as CONTEXT_NAME
from memory_mcp.store.files.persona_context import PersonaContext
from memory_mcp.store.files.sealed import seal
from memory_mcp.store.operations import Operation
from memory_mcp.store.persona_merge import Merged
from memory_mcp.store.sqlite import snapshots
from memory_mcp.store.vectors.index_cache import IndexShelf
from memory_mcp.store.vectors.index_files import DIRECTORY_NAME as VECTORS_NAME


def rename(personas: Personas, name: str, to: str, indexes: IndexShelf, now: datetime) -> str:
    """Gives a persona another name; returns it. The vector index is made again from the database.

    Raises:
        InvalidPersonaName, InvalidInput: nobody can have that name, or somebody has it or one too like it.
        PersonaUnknown: there is no such persona.
        Overloaded: it is in use.
        StoreError: its directory can't be moved.
    """
    target_name = free_name(personas, to, instead_of=name)
    source, target = _directory(personas, name), personas.directory / directory_name(target_name)
    told = Renaming(source.name, target.name, name, target_name)
    with personas.alone(name, target_name), _worded(f"{name!r} can't be renamed"), noted(personas.directory, told):
        shutil.rmtree(source / VECTORS_NAME, ignore_errors=True)  # it names its directory
        if source != target:
            move(source, target)
        write_identity(target, target_name)
        indexes.forget(source)
    _record(personas, target_name, Operation("rename_persona", None, now, metadata={"from": name, "to": target_name}))
    return target_name


def copy(personas: Personas, name: str, to: str, now: datetime) -> str:
    """Makes a second persona with everything that one has; returns its name. Later changes of one don't touch the other.

    Raises: as `rename`.
    """
    target_name = free_name(personas, to)
    source, target = _directory(personas, name), personas.directory / directory_name(target_name)
    with personas.alone(name, target_name), _worded(f"{name!r} can't be copied"):
        coming = place(personas.directory, COMING)
        coming.mkdir(mode=PRIVATE)
        made = _under_a_key_of_its_own(personas, source, coming)
        for file in sorted(source.iterdir()):
            if file.is_file() and not file.name.startswith((".", *made)):
                shutil.copy2(file, coming / file.name)
        for file in sorted(coming.iterdir()):
            sync_file(file)
        write_identity(coming, target_name)
        sync_directory(coming)
        move(coming, target)
    _record(personas, target_name, Operation("copy_persona", None, now, metadata={"from": name, "to": target_name}))
    return target_name


def _under_a_key_of_its_own(personas: Personas, source: Path, coming: Path) -> tuple[str, ...]:
    """The files of an encrypted persona's copy that its own key seals: whoever destroys the key of one leaves nothing that opens the
    other's files. Returns how the names of what it has made begin; nothing where the persona is plain."""
    old = personas.keys.of(source)
    if old is None:
        return ()
    new = personas.keys.make(coming)
    snapshots.convert(source / DATABASE_NAME, old.database, coming / DATABASE_NAME, new.database)
    text = PersonaContext(source / CONTEXT_NAME, old).text()
    if text:
        write_atomically(coming / CONTEXT_NAME, seal(text.encode(), new.files))
    return (KEY_NAME, DATABASE_NAME, CONTEXT_NAME)


def erase(personas: Personas, name: str, indexes: IndexShelf, now: datetime, first: Callable[[], None] = lambda: None) -> None:
    """Removes a persona with everything that it has. There is no way back. `first` is called when nobody has it open any more; if that
    fails, the persona stays.

    Raises:
        PersonaUnknown: there is no such persona.
        Overloaded: it is in use.
        StoreError: its directory can't be moved or removed. Once it is moved, the next start removes it.
    """
    source = _directory(personas, name)
    with personas.alone(name), _worded(f"{name!r} can't be erased"):
        first()
        going = place(personas.directory, GOING)
        move(source, going)
        indexes.forget(source)
        destroy(going)
    personas.log.append(name, Operation("erase_persona", None, now))


def free_name(personas: Personas, to: str, instead_of: str | None = None) -> str:
    """The canonical form of a name that a persona may get.

    Raises:
        InvalidPersonaName, InvalidInput: nobody can have it, or somebody has it or one too like it.
    """
    wanted = canonical_name(to)
    if personas.exists(wanted):
        raise InvalidInput(f"there is a persona {wanted!r} already", "", "Choose another name, or merge the two")
    if any(known != instead_of and fold(known) == fold(wanted) for known in personas.names()):
        raise InvalidInput(
            f"{wanted!r} is too like the name of another persona",
            "they differ in case or width only, and would be taken for each other",
            "Choose another name",
        )
    if (personas.directory / directory_name(wanted)).exists():
        raise InvalidInput(f"the place of {wanted!r} is taken", "something lies there that is no persona", "Choose another name")
    return wanted


def _directory(personas: Personas, name: str) -> Path:
    if not personas.exists(name):
        raise PersonaUnknown(f"there is no persona {name!r}")
    return personas.path_of(name).parent


def _record(personas: Personas, name: str, operation: Operation) -> None:
    def record(connection: Any) -> None:
        operations.record(connection, operation)

    with personas.writing(name) as persona:
        persona.database.write(record)
    personas.log.append(name, operation)


@contextmanager
def _worded(what: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise refusal(error, what, "Make the data directory writable, and restart the server") from error


def merge(source: Persona, target: Persona, now: datetime) -> Merged:
    """Takes the memories of `source` into `target` in one transaction: all of them, or none. Doing it again brings what is new.

    `persona_context.json` of the target stays as it is.

    Raises:
        StoreError: it could not be done; nothing was.
    """
    with source.database.read() as there:

        def work(here: apsw.Connection) -> tuple[Merged, Operation]:
            merged = persona_merge.take_in(here, there, source.name, now)
            counts = {"from": source.name, "taken": merged.taken, "known": merged.known, "erased_before": merged.erased_before}
            done = Operation("merge_persona", None, now, metadata=counts)
            operations.record(here, done)
            return merged, done

        merged, done = target.database.write(work)
    target.log.append(target.name, done)
    return merged
