"""Encrypts and decrypts existing personas, and rotates the master key, while the server is stopped.

Each persona is rewritten in a new directory that replaces the old one by a rename: after a crash, a persona is completely encrypted
or completely plain, and opens.
"""

import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from memory_mcp.config.master_key import MasterKey
from memory_mcp.errors import KeyRefused, MemoryMCPError, StartupError, StoreDamaged
from memory_mcp.personas import atomic_replace
from memory_mcp.personas.directories import personas_among
from memory_mcp.personas.registry import Personas
from memory_mcp.store.files import encryption_keys as key_files
from memory_mcp.store.files.durable_files import write_atomically
from memory_mcp.store.files.encryption_keys import KEY_NAME, Keys, PersonaKey, is_encrypted
from memory_mcp.store.files.persona_context import FILE_NAME as CONTEXT_NAME
from memory_mcp.store.files.persona_context import PersonaContext
from memory_mcp.store.files.sealed import seal
from memory_mcp.store.sqlite import snapshots
from memory_mcp.store.sqlite.database import DATABASE_NAME
from memory_mcp.store.vectors.index_files import DIRECTORY_NAME as INDEX_DIRECTORY

# What Litestream keeps of a plain database.
COPIER_DIRECTORY = f".{DATABASE_NAME}-litestream"
# Rewritten instead of copied, or left behind.
_NOT_COPIED = frozenset({KEY_NAME, CONTEXT_NAME, INDEX_DIRECTORY, COPIER_DIRECTORY})

Done = Callable[[str, str], None]


@dataclass(frozen=True, slots=True)
class State:
    """The encrypted and plain personas of a data directory, by directory name."""

    encrypted: tuple[str, ...]
    plain: tuple[str, ...]


def state(data_directory: Path) -> State:
    """The state of a data directory. Opens no persona."""
    directories, _unreadable = personas_among(data_directory.iterdir() if data_directory.is_dir() else ())
    return State(
        tuple(entry.name for entry in directories if is_encrypted(entry)),
        tuple(entry.name for entry in directories if not is_encrypted(entry)),
    )


def refuse_without_key(data_directory: Path, keys: Keys, encrypted: Iterable[str]) -> None:
    """Check that the master key opens every one of these directories of encrypted personas. A damaged key file affects only its persona.

    Raises:
        StartupError: the master key is missing or wrong, or new personas should be encrypted without one.
    """
    if keys.for_new and keys.master is None:
        raise StartupError(
            "new personas are to be encrypted", "encryption.enabled is true and there is no master key",
            "Make one with `memory-mcp key new FILE` and name it in encryption.key_file",
        )  # fmt: skip
    closed: list[str] = []
    why: KeyRefused | None = None
    for folder in encrypted:
        try:
            keys.of(data_directory / folder)
        except KeyRefused as error:
            closed.append(folder)
            why = why or error
        except StoreDamaged:
            continue  # reported when that persona is opened
    if why:
        raise StartupError("{} encrypted persona(s) can't be opened ({})", why.why, why.do, len(closed), ", ".join(closed[:5]))


def encrypt(personas: Personas, names: Iterable[str], done: Done) -> None:
    """Encrypt these personas, each with a key of its own. `done` is called with each name and an empty text, or why nothing was done.

    Raises:
        KeyRefused: there is no master key.
    """
    if personas.keys.master is None:
        Keys().make(personas.directory)  # raises the error
    _each(names, done, lambda name: _convert(personas, name, encrypted=True))


def decrypt(personas: Personas, names: Iterable[str], done: Done) -> None:
    """Decrypt these personas and destroy their keys."""
    _each(names, done, lambda name: _convert(personas, name, encrypted=False))


def rotate(data_directory: Path, old: MasterKey, new: MasterKey, activate: Callable[[], None], done: Callable[[str], None]) -> int:
    """Wrap every encrypted persona's key with a new master key, without re-encrypting files. Returns the number of personas.

    First each key is wrapped by both master keys; then `activate` configures the new one; then the old wrapping is removed. After a
    crash before `activate`, the old master key opens all personas; after it, the new one.

    Raises:
        KeyRefused: the old master key doesn't open a persona; nothing was changed.
    """
    directories = [data_directory / folder for folder in state(data_directory).encrypted]
    opened = [(directory, _key_by_either(directory, old, new)) for directory in directories]
    for directory, key in opened:
        key_files.wrap(directory, key, [old, new])
    activate()
    for directory, key in opened:
        key_files.wrap(directory, key, [new])
        done(directory.name)
    return len(opened)


def _key_by_either(directory: Path, old: MasterKey, new: MasterKey) -> PersonaKey:
    # After an interrupted rotation, the new master key alone may open a persona.
    by = new if key_files.masters_of(directory) == [new.id] else old
    key = Keys(by).of(directory)
    if key is None:
        raise StoreDamaged("the key of {} is gone", "", "Try again", directory.name)
    return key


def _each(names: Iterable[str], done: Done, change: Callable[[str], str]) -> None:
    for name in names:
        try:
            refused = change(name)
        except MemoryMCPError as error:
            refused = str(error)
        done(name, refused)


def _convert(personas: Personas, name: str, *, encrypted: bool) -> str:
    """Returns why it can't be done; an empty text if it is done, now or before: after a crash the same command goes on."""
    directory = personas.path_of(name).parent
    if is_encrypted(directory) == encrypted:
        return ""
    with personas.writing(name) as persona, persona.database.read() as connection:  # migrates the persona and checks that it opens
        expected = snapshots.contents(connection)
        text, old = persona.context.text(), _of_database(persona.database.key)
    if not _is_closed(directory):
        return "another program has it open. Stop that first."
    with atomic_replace.replacement(personas.directory, directory.name) as new_directory:
        key = personas.keys.make(new_directory) if encrypted else None
        database = new_directory / DATABASE_NAME
        snapshots.convert(directory / DATABASE_NAME, old, database, _of_database(key))
        snapshots.verify(database, _of_database(key), expected)
        _copy_rest(directory, new_directory)
        if text:
            write_atomically(new_directory / CONTEXT_NAME, seal(text.encode(), key.files) if key else text)
            PersonaContext(new_directory / CONTEXT_NAME, key).read()
    return ""


def _of_database(key: PersonaKey | None) -> bytes | None:
    return key.database if key else None


def _is_closed(directory: Path) -> bool:
    return not any((directory / f"{DATABASE_NAME}{ending}").exists() for ending in ("-wal", "-journal"))


def _copy_rest(source: Path, target: Path) -> None:
    """Copy all other files, including those of the user."""
    for entry in source.iterdir():
        if entry.name in _NOT_COPIED or entry.name.startswith((DATABASE_NAME, f".{CONTEXT_NAME}", f".{KEY_NAME}")):
            continue
        if entry.is_dir():
            shutil.copytree(entry, target / entry.name)
        else:
            shutil.copy2(entry, target / entry.name)


def selected(names: Sequence[str], known: Sequence[str]) -> list[str]:
    """The personas that a command applies to: those named, or all.

    Raises:
        MemoryMCPError: a named persona doesn't exist.
    """
    for name in names:
        if name not in known:
            raise MemoryMCPError("there is no persona {}", "", "See `memory-mcp personas`", repr(name))
    return list(dict.fromkeys(names)) or list(known)
