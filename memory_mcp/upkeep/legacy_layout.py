"""What an older server left in the data directory and where each thing belongs. Looking changes nothing.

An older server put a persona into `{name}.sqlite` or into a directory of the bare name, and its vectors into `vector_store/`
as a pickle, which is never read: vectors are made again.
"""

import json
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from memory_mcp.errors import InvalidPersonaName
from memory_mcp.personas.directories import IDENTITY_NAME
from memory_mcp.personas.names import canonical_name, directory_name
from memory_mcp.store.files.persona_context import FILE_NAME as CONTEXT_NAME
from memory_mcp.store.legacy import original_files
from memory_mcp.store.operations import LOG_NAME
from memory_mcp.store.sqlite.database import DATABASE_NAME

VECTORS_NAME = "vector_store"
PICKLE_NAME = "index.pkl"
MANIFEST_NAME = "manifest.json"
FLAT_ENDING = ".sqlite"
LOG_LINES_READ = 20

Kind = Literal["directory", "database", "permissions", "vectors", "log"]

_OURS = re.compile(r".+~[0-9a-f]{20}")


@dataclass(frozen=True, slots=True)
class Older:
    """One thing of an older server. `source` and `target` are relative to the data directory; a `target` of None: set aside.

    `refused` says why it stays where it is; nothing is done about it until somebody decides.
    """

    kind: Kind
    source: str
    persona: str = ""
    target: str | None = None
    refused: str = ""

    def sentence(self, *, done: bool) -> str:
        """What is, or would be, done about it."""
        if self.refused:
            return f"{self.source} of an older server stays where it is: {self.refused}"
        verb = "was" if done else "will be"
        if self.kind == "permissions":
            return f"{self.source} of an older server {verb} made writable."
        place = f"moved to {self.target}" if self.target else f"set aside in {original_files.KEPT_NAME}"
        return f"{self.source} of an older server {verb} {place}."


def older_things(directory: Path) -> list[Older]:
    """Everything of older servers in a data directory, in the order in which it is to be moved."""
    entries = sorted(directory.iterdir(), key=lambda entry: entry.name) if directory.is_dir() else []
    folders = [entry for entry in entries if entry.is_dir() and entry.name != original_files.KEPT_NAME]
    moves = _directories(folders)
    databases = {move.target for move in moves if not move.refused and (directory / move.source / DATABASE_NAME).exists()}
    databases |= {entry.name for entry in folders if (entry / DATABASE_NAME).exists()} - {move.source for move in moves}
    flat = [entry for entry in entries if entry.suffix == FLAT_ENDING and entry.is_file()]
    # Before the directories that they are in get other names.
    return [*_log(directory), *_vectors(folders), *_permissions(folders), *moves, *_flat(flat, databases)]


def _directories(folders: list[Path]) -> list[Older]:
    """Directories with the bare name of a persona, where ours is another one."""
    taken = {entry.name for entry in folders}
    found: list[Older] = []
    for entry in folders:
        if not ((entry / DATABASE_NAME).exists() or (entry / CONTEXT_NAME).exists()) or _OURS.fullmatch(entry.name):
            continue
        known_as = _identity(entry)
        try:
            name = canonical_name(entry.name)
        except InvalidPersonaName as error:
            if known_as is None:
                found.append(
                    Older("directory", entry.name, refused=f"{error} Rename the directory to a name that can be sent in X-Persona.")
                )
            continue
        target = directory_name(name)
        if target == entry.name or known_as not in (None, name):
            continue
        refused = _collision(name, target) if target in taken else ""
        taken.add(target)
        found.append(Older("directory", entry.name, name, target, refused))
    return found


def _flat(files: list[Path], databases: set[str | None]) -> Iterator[Older]:
    """Databases that lie in the data directory itself."""
    for file in files:
        try:
            name = canonical_name(file.stem)
        except InvalidPersonaName as error:
            yield Older("database", file.name, refused=f"{error} Rename the file to a name that can be sent in X-Persona.")
            continue
        folder = directory_name(name)
        target = f"{folder}/{DATABASE_NAME}"
        if not original_files.holds_memories(file) and not original_files.sidecars(file):
            yield Older("database", file.name, name, target, "it holds no table of memories, or is damaged. Restore or remove it.")
        elif folder in databases:
            yield Older("database", file.name, name, target, _collision(name, folder))
        else:
            databases.add(folder)
            yield Older("database", file.name, name, target)


def _permissions(folders: list[Path]) -> Iterator[Older]:
    for entry in folders:
        path = entry / DATABASE_NAME
        if path.exists() and not (entry / IDENTITY_NAME).exists() and not path.stat().st_mode & stat.S_IWUSR:
            yield Older("permissions", f"{entry.name}/{DATABASE_NAME}", entry.name)


def _vectors(folders: list[Path]) -> Iterator[Older]:
    """Vector stores with a pickle. Where an index of ours lies beside it, only the pickle is set aside."""
    for folder in [*(entry / VECTORS_NAME for entry in folders), *(entry for entry in folders if entry.name == VECTORS_NAME)]:
        if (folder / PICKLE_NAME).exists():
            relative = folder.relative_to(folder.parents[0 if folder in folders else 1])
            thing = relative / PICKLE_NAME if (folder / MANIFEST_NAME).exists() else relative
            yield Older("vectors", thing.as_posix(), "" if folder in folders else folder.parent.name)


def _log(directory: Path) -> Iterator[Older]:
    """A log with lines of an older server: they name no persona, and may quote memories, which ours never does."""
    try:
        with (directory / LOG_NAME).open("rb") as file:
            lines = [line for line, _ in zip(file, range(LOG_LINES_READ), strict=False)]
    except FileNotFoundError:
        return
    if any(_is_older_line(line) for line in lines):
        yield Older("log", LOG_NAME)


def _is_older_line(line: bytes) -> bool:
    try:
        told = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(told, dict) and "operation" in told and "persona" not in told


def _identity(entry: Path) -> str | None:
    """The name in persona.json; None where there is no such file, and an empty one where it can't be read."""
    try:
        return str(json.loads((entry / IDENTITY_NAME).read_text(encoding="utf-8"))["name"])
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return ""


def _collision(name: str, folder: str) -> str:
    return (
        f"{name!r} has memories in {folder} already, and two stores are never merged by themselves. "
        f"Stop the server and remove the one that is not wanted, or bring it in by export and import."
    )
