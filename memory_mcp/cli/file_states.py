"""Each state of a client's file before `connect` changed it, and what `connect` has made: in the user's directory for data, so that no copy
lies in a project."""

import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from memory_mcp.config.reading import user_data_directory
from memory_mcp.store.files.durable_files import PRIVATE_DIRECTORY, write_atomically

DIRECTORY_NAME = "client-files"
NOTE_NAME = "made.json"
# Beside the file, from versions that kept its state before the first change there.
EARLIER_ENDING = ".memory-mcp.bak"


class FileStates:
    """The states of one file, numbered from the first one. `path` is the file itself, not a link to it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._root = user_data_directory().parent / DIRECTORY_NAME
        self._directory = self._root / f"{path.name}~{hashlib.sha256(os.fsencode(path)).hexdigest()[:16]}"
        self._earlier = path.with_name(f"{path.name}{EARLIER_ENDING}")

    def take_earlier(self) -> None:
        """Keep the copy that an earlier version has left beside the file, and take it away from there."""
        if self._earlier.is_file():
            self.keep(self._earlier.read_bytes())
            self._earlier.unlink()

    def keep(self, state: bytes) -> Path | None:
        """Keep a state. Returns where; None if the last one is equal."""
        copies = self._copies()
        if copies and copies[-1].read_bytes() == state:
            return None
        number = int(copies[-1].name.partition("-")[0]) + 1 if copies else 1
        copy = self._directory / f"{number:04}-{self._path.name}"
        _create(self._directory)
        write_atomically(copy, state)  # readable for its owner alone: other servers' secrets may be in it
        return copy

    def newest_first(self) -> Iterator[bytes]:
        """All states, with the copy of an earlier version beside the file as the oldest."""
        yield from (copy.read_bytes() for copy in reversed(self._copies()))
        if self._earlier.is_file():
            yield self._earlier.read_bytes()

    @property
    def is_made_here(self) -> bool | None:
        """Whether `connect` made the file; None if nothing is noted."""
        note = _read(self._directory / NOTE_NAME)
        return note["made"] is True if isinstance(note, dict) and "made" in note else None

    def note(self, *, made: bool, directories: Iterable[Path]) -> None:
        """Note whether `connect` makes the file, and directories that it makes for it."""
        _write(self._directory / NOTE_NAME, {"path": str(self._path), "made": made})
        self._note_directories({*self._made_directories(), *map(str, directories)})

    def remove(self) -> None:
        """Remove the file, and those directories above it that were made and in which nothing is left. Its states stay."""
        self._path.unlink()
        (self._directory / NOTE_NAME).unlink(missing_ok=True)
        made = self._made_directories()
        with suppress(OSError):  # something else is in it by now
            for directory in self._path.parents:
                if str(directory) not in made:
                    break
                directory.rmdir()
                self._note_directories(made := made - {str(directory)})

    def _made_directories(self) -> set[str]:
        noted = _read(self._root / NOTE_NAME)
        return set(noted) if isinstance(noted, list) else set()

    def _note_directories(self, directories: Iterable[str]) -> None:
        _write(self._root / NOTE_NAME, sorted(directories))

    def _copies(self) -> list[Path]:
        return sorted(self._directory.glob("[0-9]*"))


def _read(path: Path) -> Any:
    with suppress(OSError, ValueError):
        return json.loads(path.read_text(encoding="utf-8"))
    return None


def _write(path: Path, note: Any) -> None:
    _create(path.parent)
    write_atomically(path, json.dumps(note, ensure_ascii=False) + "\n")


def _create(directory: Path) -> None:
    directory.mkdir(mode=PRIVATE_DIRECTORY, parents=True, exist_ok=True)
