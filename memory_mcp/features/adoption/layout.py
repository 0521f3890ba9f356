"""Lists the files and directories of older servers in a data directory, and where each belongs. Changes nothing.

Older servers stored a persona in `{name}.sqlite` or in a directory with the plain name, and its vectors in `vector_store/` as a
pickle, which is never read: vectors are computed again.
"""

import json
import os
import re
import shlex
import stat
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from memory_mcp.errors import InvalidPersonaName
from memory_mcp.personas.directories import IDENTITY_NAME, is_readable
from memory_mcp.personas.names import canonical_name, directory_name, name_of_older_directory
from memory_mcp.store.files.persona_context import FILE_NAME as CONTEXT_NAME
from memory_mcp.store.legacy import original_files
from memory_mcp.store.operations import LOG_NAME, SERVER_EVENTS
from memory_mcp.store.sqlite.database import DATABASE_NAME
from memory_mcp.wording import sentence

VECTORS_NAME = "vector_store"
PICKLE_NAME = "index.pkl"
MANIFEST_NAME = "manifest.json"
FLAT_ENDING = ".sqlite"
LOG_LINES_READ = 20
# In persona.json: from which database the memories were copied, so that an interrupted copying goes on.
ADOPTED_FROM = "adopted_from"

Kind = Literal["directory", "database", "owner", "owners", "permissions", "vectors", "log"]

_CURRENT_NAME = re.compile(r"\A.+~[0-9a-f]{20}")


# What will be done with a thing, and what was.
_MADE_WRITABLE = ("{} of an older server will be made writable.", "{} of an older server was made writable.")
_COPIED = (
    "The memories of {} in {} of an older server will be copied to {}.",
    "The memories of {} in {} of an older server were copied to {}.",
)
_MOVED = ("{} of an older server will be moved to {}.", "{} of an older server was moved to {}.")
_SET_ASIDE = ("{} of an older server will be set aside in {}.", "{} of an older server was set aside in {}.")


@dataclass(frozen=True, slots=True)
class LegacyItem:
    """A file or directory of an older server. `source` and `target` are relative to the data directory; no `target`: set aside.

    `refused` is the reason why it isn't moved until the user decides.
    """

    kind: Kind
    source: str
    persona: str = ""
    target: str | None = None
    refused: str = ""

    def sentence(self, *, done: bool) -> str:
        """A sentence about what was done with it, or will be."""
        if self.refused:
            return sentence("{} of an older server stays where it is: {}", self.source, self.refused)
        if self.kind == "permissions":
            return sentence(_MADE_WRITABLE[done], self.source)
        if self.kind == "owner":
            return sentence(_COPIED[done], self.persona, self.source, self.target)
        if self.target:
            return sentence(_MOVED[done], self.source, self.target)
        return sentence(_SET_ASIDE[done], self.source, original_files.KEPT_NAME)


def legacy_items(directory: Path, adopted: Collection[str] = ()) -> list[LegacyItem]:
    """All items of older servers in a data directory, in the order in which to move them. Directories that are `adopted` have none."""
    names = sorted(set(os.listdir(directory)).difference(adopted)) if directory.is_dir() else []  # noqa: PTH208  as path objects, 100,000 take seconds
    entries = [directory / name for name in names]
    folders = [entry for entry in entries if entry.is_dir() and entry.name != original_files.KEPT_NAME and is_readable(entry)]
    moves = _directories(folders)
    left = {move.source for move in moves if move.refused}
    folders = [entry for entry in folders if entry.name not in left]
    databases = {move.target for move in moves if not move.refused and (directory / move.source / DATABASE_NAME).exists()}
    databases |= {entry.name for entry in folders if (entry / DATABASE_NAME).exists()} - {move.source for move in moves}
    flat = sorted((entry for entry in entries if entry.suffix == FLAT_ENDING and entry.is_file()), key=_is_encoded)
    # Logs, vectors, and permissions come before the directories that contain them are renamed.
    return [*_log(directory), *_vectors(folders), *_permissions(folders), *moves, *_flat(flat, databases)]


def _directories(folders: list[Path]) -> list[LegacyItem]:
    """Directories with the plain name of a persona that differs from its directory name in the current layout."""
    taken = {entry.name for entry in folders}
    items: list[LegacyItem] = []
    for entry in sorted(folders, key=_is_encoded):  # a name as it is comes before its encodings
        if not ((entry / DATABASE_NAME).exists() or (entry / CONTEXT_NAME).exists()) or _CURRENT_NAME.fullmatch(entry.name):
            continue
        stated_name = _identity(entry)
        try:
            name = canonical_name(entry.name) if stated_name else name_of_older_directory(entry.name)
        except InvalidPersonaName as error:
            if stated_name is None:
                items.append(
                    LegacyItem("directory", entry.name, refused=f"{error} Rename the directory to a name that can be sent in X-Persona.")
                )
            continue
        target = directory_name(name)
        if target == entry.name or stated_name not in (None, name):
            continue
        refused = _collision(name, target, f"{entry.name}/{DATABASE_NAME}") if target in taken else _unreadable(entry / DATABASE_NAME)
        taken.add(target)
        items.append(LegacyItem("directory", entry.name, name, target, refused))
    return items


def _is_encoded(entry: Path) -> bool:
    name = entry.stem if entry.suffix == FLAT_ENDING else entry.name
    try:
        return name_of_older_directory(name) != canonical_name(name)
    except InvalidPersonaName:
        return True


def _flat(files: list[Path], databases: set[str | None]) -> Iterator[LegacyItem]:
    """Databases directly in the data directory."""
    for file in files:
        try:
            name = name_of_older_directory(file.stem)
        except InvalidPersonaName as error:
            yield LegacyItem("database", file.name, refused=f"{error} Rename the file to a name that can be sent in X-Persona.")
            continue
        folder = directory_name(name)
        target = f"{folder}/{DATABASE_NAME}"
        recognized, refused = original_files.recognize(file)
        if recognized.owners:
            yield from _owners(file, recognized.owners, databases)
        elif refused:
            yield LegacyItem("database", file.name, name, target, refused)
        elif folder in databases:
            yield LegacyItem("database", file.name, name, target, _collision(name, folder, file.name))
        else:
            databases.add(folder)
            yield LegacyItem("database", file.name, name, target)


def _owners(file: Path, owners: Sequence[str], databases: set[str | None]) -> Iterator[LegacyItem]:
    """A database with owners: each becomes a persona, or the file stays as it is."""
    items: list[LegacyItem] = []
    refused = ""
    for owner in owners:
        try:
            name = canonical_name(owner)
        except InvalidPersonaName as error:
            refused = f"{error} Change that owner's name in the database."
            break
        folder = directory_name(name)
        if name != owner or folder in databases:
            if adopted_from(file.parent / folder) == original_files.digest(file):
                continue
            refused = _collision(name, folder, file.name)
            break
        items.append(LegacyItem("owner", file.name, owner, f"{folder}/{DATABASE_NAME}"))
    if refused:
        yield LegacyItem("owners", file.name, refused=refused)
        return
    databases |= {directory_name(item.persona) for item in items}
    yield from items
    yield LegacyItem("owners", file.name)


def adopted_from(directory: Path) -> str | None:
    """The digest of the database from which a persona's memories were copied, according to its identity."""
    try:
        return str(json.loads((directory / IDENTITY_NAME).read_text(encoding="utf-8")).get(ADOPTED_FROM))
    except (OSError, ValueError, AttributeError, RecursionError):
        return None


def _unreadable(database: Path) -> str:
    return original_files.recognize(database)[1] if database.exists() else ""


def _permissions(folders: list[Path]) -> Iterator[LegacyItem]:
    for entry in folders:
        path = entry / DATABASE_NAME
        is_read_only = path.exists() and not path.stat().st_mode & stat.S_IWUSR
        if is_read_only and not (entry / IDENTITY_NAME).exists() and not _unreadable(path):
            yield LegacyItem("permissions", f"{entry.name}/{DATABASE_NAME}", entry.name)


def _vectors(folders: list[Path]) -> Iterator[LegacyItem]:
    """Vector stores with a pickle. If the directory also contains a current index, only the pickle is set aside."""
    for folder in [*(entry / VECTORS_NAME for entry in folders), *(entry for entry in folders if entry.name == VECTORS_NAME)]:
        if (
            is_readable(folder)
            and (folder / PICKLE_NAME).exists()
            and not (folder not in folders and _unreadable(folder.with_name(DATABASE_NAME)))
        ):
            relative = folder.relative_to(folder.parents[0 if folder in folders else 1])
            item = relative / PICKLE_NAME if (folder / MANIFEST_NAME).exists() else relative
            yield LegacyItem("vectors", item.as_posix(), "" if folder in folders else folder.parent.name)


def _log(directory: Path) -> Iterator[LegacyItem]:
    """A log with lines of an older server: they may quote memories, which current lines never do, and name neither a persona nor an event of the server."""
    try:
        with (directory / LOG_NAME).open("rb") as file:
            lines = [line for line, _ in zip(file, range(LOG_LINES_READ), strict=False)]
    except OSError:  # there is none, or it is another user's, which cannot be moved anyway
        return
    if any(_is_older_line(line) for line in lines):
        yield LegacyItem("log", LOG_NAME)


def _is_older_line(line: bytes) -> bool:
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(entry, dict) and "operation" in entry and "persona" not in entry and entry["operation"] not in SERVER_EVENTS


def _identity(entry: Path) -> str | None:
    """The name in persona.json; None if there is no such file, and an empty text if it can't be read."""
    try:
        return str(json.loads((entry / IDENTITY_NAME).read_text(encoding="utf-8"))["name"])
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return ""


def _collision(name: str, folder: str, database: str) -> str:
    return (
        f"{name!r} already has memories in {folder}, and two stores are never merged automatically. To add these, run "
        f"`memory-mcp import {shlex.quote(database)} --persona {shlex.quote(name)}` in the data directory while the server runs, first with "
        "--dry-run, which only says what it would add. Then remove it."
    )
