"""`.adopted`: the originals of older servers, and which of them still contain purged memories.

They are only changed on request, because they are the only way back to the older server.
"""

import logging
from collections.abc import Iterator, Sequence
from pathlib import Path

import apsw

from memory_mcp.errors import InvalidPersonaName
from memory_mcp.personas.names import directory_name, name_of_older_directory
from memory_mcp.store.legacy import original_files, quotations
from memory_mcp.store.operations import LOG_NAME
from memory_mcp.store.sqlite import cipher

FLAT_ENDING = ".sqlite"
GLOBAL = ("vector_store", LOG_NAME, original_files.SHARED_NAME)

logger = logging.getLogger(__name__)


def holding(persona_directory: Path, keys: Sequence[str], texts: Sequence[str], *, shared: bool) -> list[str]:
    """The kept files, relative to the data directory, that contain one of these keys or texts.

    `shared`: also those of several personas. Naming them would reveal another persona's memories to a caller with access to only one.
    """
    data = persona_directory.parent
    files = (file for file in _files(data, persona_directory.name) if shared or not _is_shared(data, file))
    return [file.relative_to(data).as_posix() for file in files if _holds(file, keys, texts)]


def of_persona(persona_directory: Path) -> list[str]:
    """The kept files of this persona only."""
    data = persona_directory.parent
    return [file.relative_to(data).as_posix() for file in _files(data, persona_directory.name) if not _is_shared(data, file)]


def remove(data_directory: Path, names: Sequence[str]) -> list[str]:
    """Remove kept files, except those of several personas. Returns the removed ones."""
    gone = []
    for name in names:
        path = data_directory / name
        if not _is_shared(data_directory, path):
            path.unlink(missing_ok=True)
            gone.append(name)
    return gone


def _is_shared(data: Path, file: Path) -> bool:
    return file.relative_to(data).parts[2] in GLOBAL


def _files(data: Path, directory: str) -> Iterator[Path]:
    """The kept files of one persona, and those of several."""
    for thing in sorted((data / original_files.KEPT_NAME).glob("*/*")):
        if thing.name in GLOBAL or _directory_of(thing.name) == directory:
            yield from sorted(file for file in ([thing] if thing.is_file() else thing.rglob("*")) if file.is_file())


def _directory_of(name: str) -> str:
    """The persona directory that a kept file or directory belongs to, by its name."""
    if "~" in name:
        return name
    for ending in (f"{FLAT_ENDING}-wal", f"{FLAT_ENDING}-journal", FLAT_ENDING):
        if name.endswith(ending):
            name = name.removesuffix(ending)
            break
    try:
        return directory_name(name_of_older_directory(name))
    except InvalidPersonaName:
        return name


def _holds(file: Path, keys: Sequence[str], texts: Sequence[str]) -> bool:
    raw = file.read_bytes()
    wanted = {spelling.encode("utf-8", "surrogatepass") for text in [*texts, *keys] for spelling in quotations.spellings(text)}
    if any(text in raw for text in wanted):
        return True
    if not cipher.is_plain(file):
        return False
    try:
        with original_files.unchanged(file) as connection:
            return quotations.contain_any(connection, keys, texts)
    except apsw.Error as error:
        logger.warning("%s can't be searched (%s): it may contain erased content", file.name, type(error).__name__)
        return True
