"""Which personas a data directory holds: all, or those of one cell of many. A name belongs to the cell `crc32(name) % of`.

`.cell.json` in the data directory names its cell, so that no command and no server with another configuration can take it for
another. A split in progress is noted there, too: until it is done, nothing else opens the directory.
"""

import json
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memory_mcp.config.settings import Cell as Configured
from memory_mcp.errors import PersonaElsewhere, StartupError
from memory_mcp.personas.names import pool_of
from memory_mcp.store.files.durable_files import write_atomically
from memory_mcp.wording import sentence

FILE_NAME = ".cell.json"
ONLY = {"index": 0, "of": 1}
PLACE = "{cell}"  # of the number in an address
# The headers of a 421: the owner's cell, and its address.
OWNER_HEADER, OWNER_URL_HEADER = "X-Persona-Cell", "X-Persona-Url"


@dataclass(frozen=True, slots=True)
class Cell:
    """One of `of` cells. `address`: the URL of each, with `{cell}` for its number; None if callers don't learn it."""

    index: int = 0
    of: int = 1
    address: str | None = None

    @classmethod
    def configured(cls, settings: Configured) -> "Cell":
        """That of the configuration."""
        return cls(settings.index, settings.of, settings.address)

    @property
    def is_whole(self) -> bool:
        """Whether there is no other cell."""
        return self.of == 1

    def owner(self, name: str) -> int:
        """The cell of a canonical name."""
        return owner_of(name, self.of)

    def owns(self, name: str) -> bool:
        """Whether the persona of a canonical name belongs here. Pools, which personas of all cells would share, are only where there is one."""
        return self.is_whole or (self.owner(name) == self.index and not pool_of(name))

    def require(self, name: str) -> None:
        """Raises PersonaElsewhere unless the persona of a canonical name belongs here."""
        if not self.owns(name):
            owner = self.owner(name)
            url = self.address.replace(PLACE, str(owner)) if self.address else None
            raise PersonaElsewhere(
                "the persona {} is not on this server",
                "it belongs to cell {} of {}, and this is cell {}",
                sentence("Call {}", url) if url else "Call the server of that cell",
                repr(name),
                owner,
                self.of,
                self.index,
                persona=name,
                owner=owner,
                url=url,
            )

    def __str__(self) -> str:
        return "the only cell" if self.is_whole else sentence("cell {} of {}", self.index, self.of)


def owner_of(name: str, of: int) -> int:
    """The cell of a canonical name among so many. Routers compute the same."""
    return zlib.crc32(name.encode()) % of


def read(directory: Path) -> dict[str, Any]:
    """The cell in `.cell.json`; the only cell if there is none.

    Raises:
        StartupError: it can't be read.
    """
    try:
        stored = json.loads((directory / FILE_NAME).read_text(encoding="utf-8"))
        return {**stored, "index": int(stored["index"]), "of": int(stored["of"])}
    except FileNotFoundError:
        return dict(ONLY)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StartupError(
            "{} in {} can't be read", "{}", 'Restore it: {"index": 3, "of": 64}, for example', FILE_NAME, directory, error
        ) from error


def write(directory: Path, cell: Cell, **further: Any) -> None:
    """Note which cell a data directory is."""
    write_atomically(directory / FILE_NAME, json.dumps({"index": cell.index, "of": cell.of, **further}) + "\n")


def taken(directory: Path, wanted: Cell | None, names: Callable[[], Iterable[str]], *, during_split: bool) -> Cell:
    """The cell of a data directory that is about to be opened, as `fitting` has it; noted there if the directory becomes one of many."""
    cell, stored = fitting(directory, wanted, names, during_split=during_split), read(directory)
    if (cell.index, cell.of) != (stored["index"], stored["of"]):
        write(directory, cell)
    return cell


def fitting(directory: Path, wanted: Cell | None, names: Callable[[], Iterable[str]], *, during_split: bool = False) -> Cell:
    """The cell that a data directory is or can become. `wanted`: that of the configuration, None for the one in the directory. `names`: of
    its personas, asked for only when a directory becomes one of many.

    Raises:
        StartupError: the directory is another cell, holds personas of others, or is being split.
    """
    stored = read(directory)
    here = Cell(stored["index"], stored["of"], wanted.address if wanted else None)
    if "split" in stored and not during_split:
        raise StartupError("{} is being split", "it was interrupted", "Run `memory-mcp cell split --to DIR` again", directory)
    if wanted is None or (wanted.index, wanted.of) == (here.index, here.of):
        return here
    if not here.is_whole:
        raise StartupError(
            "{} is {}", "the configuration says {}", "Correct cell.index and cell.of, or name the right directory", directory, here, wanted
        )
    if foreign := [name for name in names() if not wanted.owns(name)]:
        raise StartupError(
            "{} can't become {}",
            "{} of its personas belong to other cells, such as {}",
            "Split it with `memory-mcp cell split --to DIR`, or use an empty directory",
            directory,
            wanted,
            len(foreign),
            repr(foreign[0]),
        )
    return wanted
