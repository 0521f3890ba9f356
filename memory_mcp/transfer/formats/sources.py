"""What an import reads from: a file, a directory or a zip, seen alike and never beyond what they may hold.

Nothing is unpacked to the disk, and a name inside a zip is only ever compared. Everything is read in bounds: a zip
that unfolds without end, a link that leads out of the directory, a file of hundreds of gigabytes are refused.
"""

import io
import zipfile
import zlib
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Protocol, cast

from memory_mcp.errors import InvalidInput

BLOCK_BYTES = 1024 * 1024
FILES_LIMIT = 500_000
FILE_LIMIT_BYTES = 8 * 1024**3
TEXT_LIMIT_BYTES = 64 * 1024**2
# Chats fold to a twentieth. What folds to less than a two-hundredth, and is large, was made to fill somebody's memory.
UNFOLDS_AT_MOST = 200
SMALL_BYTES = 16 * 1024**2


class Source(Protocol):
    """Files by their names: paths with /, relative to what was named, without those that programs hide."""

    @property
    def label(self) -> str:
        """What it is called, without its ending."""
        ...

    def names(self) -> list[str]:
        """In order."""
        ...

    def open(self, name: str) -> BinaryIO:
        """Raises InvalidInput where it can't be read, or may not be."""
        ...

    def changed(self, name: str) -> datetime:
        """When the file was last changed."""
        ...


class Folder:
    """A directory, or one file of it."""

    def __init__(self, path: Path) -> None:
        self._root = path if path.is_dir() else path.parent
        self._only = None if path.is_dir() else path.name
        self.label = path.resolve().name if path.is_dir() else path.stem

    def names(self) -> list[str]:
        """The files below it, or the one."""
        if self._only:
            return [self._only]
        found: list[str] = []
        for path in self._root.rglob("*"):
            relative = path.relative_to(self._root)
            if not any(part.startswith(".") for part in relative.parts) and path.is_file():
                found.append(relative.as_posix())
                _check_count(len(found))
        return sorted(found)

    def open(self, name: str) -> BinaryIO:
        """The file. A link out of the directory is not followed."""
        path = self._root / name
        try:
            if not self._only and not path.resolve().is_relative_to(self._root.resolve()):
                raise InvalidInput(f"{name} is not read", "it is a link out of the directory", "Put the file itself there")
            return path.open("rb")
        except OSError as error:
            raise InvalidInput(f"{name} can't be read", error.strerror or str(error), "Check its permissions") from error

    def changed(self, name: str) -> datetime:
        """As the disk has it."""
        return datetime.fromtimestamp((self._root / name).stat().st_mtime, UTC)


class Archive:
    """A zip."""

    def __init__(self, path: Path) -> None:
        """Raises InvalidInput where it is no zip that can be read."""
        self.label = path.stem
        try:
            self._zip = zipfile.ZipFile(path)
        except (OSError, zipfile.BadZipFile) as error:
            raise InvalidInput(f"{path.name} can't be read as a zip", str(error), "Fetch it again") from error
        _check_count(len(self._zip.infolist()))
        self._entries = {info.filename: info for info in self._zip.infolist() if not info.is_dir() and _is_shown(info.filename)}

    def names(self) -> list[str]:
        """The files in it whose names lead nowhere else."""
        return sorted(self._entries)

    def open(self, name: str) -> BinaryIO:
        """The file, unfolded while it is read."""
        info = self._entries[name]
        if info.file_size > SMALL_BYTES and info.file_size > UNFOLDS_AT_MOST * max(info.compress_size, 1):
            raise InvalidInput(f"{name} is not read", f"it unfolds to {info.file_size:,} bytes", "Unpack the zip, and import what is in it")
        try:
            return cast("BinaryIO", self._zip.open(info))
        except (OSError, zipfile.BadZipFile, RuntimeError, NotImplementedError) as error:  # a wrong header; encrypted; an odd method
            raise InvalidInput(f"{name} can't be read", str(error), "Unpack the zip, and import what is in it") from error

    def changed(self, name: str) -> datetime:
        """As the zip has it: a local time of nowhere, taken for UTC."""
        try:
            return datetime(*self._entries[name].date_time, tzinfo=UTC)
        except ValueError:
            return datetime(1980, 1, 1, tzinfo=UTC)


def source_of(path: Path) -> Source:
    """A file, a directory or a zip.

    Raises:
        InvalidInput: it is not there, or a zip that can't be read.
    """
    if not path.exists():
        raise InvalidInput(f"{path} does not exist", "", "Check the path")
    return Archive(path) if path.is_file() and path.suffix.lower() == ".zip" else Folder(path)


def blocks(source: Source, name: str, limit: int = FILE_LIMIT_BYTES) -> Iterator[bytes]:
    """What a file holds, block by block.

    Raises:
        InvalidInput: it can't be read, or is longer than `limit` bytes.
    """
    with source.open(name) as file:
        yield from blocks_of(file, name, limit)


def blocks_of(file: BinaryIO | io.BufferedIOBase, name: str, limit: int = FILE_LIMIT_BYTES) -> Iterator[bytes]:
    """The same of an open file."""
    size = 0
    while True:
        try:
            block = file.read(BLOCK_BYTES)
        except (OSError, EOFError, zipfile.BadZipFile, zlib.error) as error:  # a damaged zip is noticed only here
            raise InvalidInput(f"{name} can't be read", str(error), "Fetch it again") from error
        if not block:
            return
        size += len(block)
        if size > limit:
            raise InvalidInput(f"{name} is too long", f"{limit:,} bytes are the limit", "Split it")
        yield block


def whole(source: Source, name: str, limit: int = TEXT_LIMIT_BYTES) -> bytes:
    """All of a file that is not long.

    Raises:
        InvalidInput: it can't be read, or is longer than `limit` bytes.
    """
    return b"".join(blocks(source, name, limit))


def _check_count(count: int) -> None:
    if count > FILES_LIMIT:
        raise InvalidInput("there are too many files", f"{FILES_LIMIT:,} are the limit", "Import a part of them at a time")


def _is_shown(name: str) -> bool:
    path = PurePosixPath(name)
    return not path.is_absolute() and "\\" not in name and not any(part.startswith((".", "__MACOSX")) for part in path.parts)
