"""A uniform view of the file, directory or zip that an import reads, with limits.

Nothing is unpacked to disk, and names inside a zip are only compared, never used as paths. Zip bombs, links that lead
out of the directory, and files of hundreds of gigabytes are refused.
"""

import io
import re
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from pathlib import Path, PurePath, PurePosixPath
from typing import BinaryIO, Protocol, cast

from memory_mcp.errors import InvalidInput
from memory_mcp.transfer.formats import ZIP_SUFFIX

BLOCK_BYTES = 1024 * 1024
FILES_LIMIT = 500_000
FILE_LIMIT_BYTES = 8 * 1024**3
TEXT_LIMIT_BYTES = 64 * 1024**2
# Chats compress to about a twentieth. A large entry, or zip, that compresses to less than a two-hundredth is taken for a zip bomb.
COMPRESSION_RATIO_LIMIT = 200
SMALL_BYTES = 16 * 1024**2
# Zips in a zip are read into memory.
INNER_ZIPS_LIMIT_BYTES = 512 * 1024**2
# A character card with its pictures is a zip, too.
ZIP_SUFFIXES = frozenset({ZIP_SUFFIX, ".charx"})
_PICTURES_WITH_ZIP = frozenset({".jpg", ".jpeg"})
# Also what a Mac packs beside a file, and what Office puts beside one that is open.
_HIDDEN_PREFIXES = (".", "__MACOSX", "~$")
_ENCRYPTED_FLAG, _UTF8_FLAG = 0x1, 0x800
# How files begin that Office saves with a password, and its old ones; and other files that are no texts.
_OF_OLD_OFFICE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_NO_TEXT = (b"PK\x03\x04", b"%PDF-")
_DRIVE = re.compile(r"[A-Za-z]:")
# What no name of a zip made in Japan consists of: single characters in the middle of Latin words, as where é is read as the first half of one.
_IN_WORDS = re.compile(r"(?<=[A-Za-z])[^\x00-\x7f](?![^\x00-\x7f])|(?<![^\x00-\x7f])[^\x00-\x7f](?=[A-Za-z])")


# What reading a damaged zip or gzip raises.
_DAMAGED = (OSError, EOFError, zipfile.BadZipFile, zlib.error)


class Source(Protocol):
    """Files by name: relative paths separated by /. Hidden files are left out."""

    @property
    def label(self) -> str:
        """The name of the file or directory, without its suffix."""
        ...

    @property
    def refused(self) -> Mapping[str, str]:
        """The names of zips in a zip that can't be read, and why."""
        ...

    def names(self) -> list[str]:
        """The sorted names of the files."""
        ...

    def open(self, name: str) -> AbstractContextManager[BinaryIO]:
        """Opens a file; raises InvalidInput if it can't be read or must not be, of a zip also while it is read."""
        ...

    def changed(self, name: str) -> datetime:
        """The modification time of a file."""
        ...

    def ignored(self) -> Mapping[str, list[str]]:
        """The names of files in a zip that are not among the others, by kind. Those of a directory are not counted: they are at hand."""
        ...


class Folder:
    """A directory, or a single file."""

    def __init__(self, path: Path) -> None:
        self._root = path if path.is_dir() else path.parent
        self._only = None if path.is_dir() else path.name
        self.label = path.resolve().name if path.is_dir() else path.stem
        self.refused: Mapping[str, str] = {}

    def names(self) -> list[str]:
        """All files below the directory, or the single file."""
        if self._only:
            return [self._only]
        names: list[str] = []
        for path in self._root.rglob("*"):
            relative = path.relative_to(self._root)
            if not _is_hidden(relative) and path.is_file():
                names.append(relative.as_posix())
                _check_count(len(names))
        return sorted(names)

    def open(self, name: str) -> BinaryIO:
        """Opens the file. Links out of the directory are refused."""
        path = self._root / name
        try:
            if not self._only and leads_out(self._root, path):
                raise refused_link(name)
            return path.open("rb")
        except OSError as error:
            raise InvalidInput("{} can't be read", "{}", "Check its permissions", name, error.strerror or str(error)) from error

    def changed(self, name: str) -> datetime:
        """The modification time on disk."""
        return datetime.fromtimestamp((self._root / name).stat().st_mtime, UTC)

    def ignored(self) -> Mapping[str, list[str]]:
        """Empty."""
        return {}


def leads_out(directory: Path, path: Path) -> bool:
    """Whether a path below a directory is a link, or goes through one, to what is outside of it."""
    return not path.resolve().is_relative_to(directory.resolve())


def refused_link(name: str) -> InvalidInput:
    return InvalidInput("{} is not read", "it is a link out of the directory", "Put the file itself there", name)


class Archive:
    """A zip file, or the zips in one that has nothing else, as Notion packs its exports."""

    def __init__(self, path: Path) -> None:
        """Raises InvalidInput if the file is not a readable zip."""
        self.label = path.stem
        self.refused: dict[str, str] = {}
        self._entries: dict[str, tuple[zipfile.ZipFile, zipfile.ZipInfo]] = {}
        self._ignored: dict[str, list[str]] = {}
        self._add(_entries(path, path.name, path.stat().st_size))
        if self._entries and all(name.lower().endswith(ZIP_SUFFIX) for name in self._entries):
            self._unfold(path.name)

    def _unfold(self, name: str) -> None:
        """Puts what is in the zips in their place; names that several of them have go below those of their zips."""
        sizes = {inner: info.file_size for inner, (_, info) in sorted(self._entries.items())}
        if sum(sizes.values()) > INNER_ZIPS_LIMIT_BYTES:
            raise _refused_bomb(name, sum(sizes.values()))
        found, counts, total = dict[str, list[_Entry]](), Counter[str](), 0
        for inner, size in sizes.items():
            try:
                found[inner] = _entries(io.BytesIO(whole(self, inner, INNER_ZIPS_LIMIT_BYTES)), inner, size)
            except InvalidInput as error:
                self.refused[inner] = str(error)
                if len(self.refused) == len(sizes):
                    raise
                continue
            counts.update({entry for entry, _, _ in found[inner]})
            total += len(found[inner])
            _check_count(total)
        shared = {entry for entry, count in counts.items() if count > 1}
        self._entries = {}
        for inner, entries in found.items():
            self._add(entries, inner[: -len(ZIP_SUFFIX)], shared)

    def _add(self, entries: list["_Entry"], folder: str = "", in_folder: Set[str] = frozenset()) -> None:
        for entry, packed, info in entries:
            name = f"{folder}/{entry}" if entry in in_folder else entry
            if kind := _ignored_kind(entry) or ("files of the same name" if name in self._entries else ""):
                self._ignored.setdefault(kind, []).append(name)
            else:
                self._entries[name] = (packed, info)

    def names(self) -> list[str]:
        """The files with relative, visible names."""
        return sorted(self._entries)

    @contextmanager
    def open(self, name: str) -> Iterator[BinaryIO]:
        """Opens an entry; it is decompressed while it is read."""
        packed, info = self._entries[name]
        if _is_bomb(info.file_size, info.compress_size):
            raise _refused_bomb(name, info.file_size)
        if info.flag_bits & _ENCRYPTED_FLAG:
            raise InvalidInput("{} can't be read", "it has a password", "Unpack the zip, and import what is in it", name)
        try:
            with packed.open(info) as file:
                yield cast("BinaryIO", file)
        except RecursionError:
            raise
        except (*_DAMAGED, RuntimeError) as error:  # RuntimeError: of another compression
            raise InvalidInput("{} can't be read", "{}", "Unpack the zip, and import what is in it", name, error) from error

    def changed(self, name: str) -> datetime:
        """The time stored in the zip, which has no time zone; UTC is assumed."""
        try:
            return datetime(*self._entries[name][1].date_time, tzinfo=UTC)
        except ValueError:
            return datetime(1980, 1, 1, tzinfo=UTC)

    def ignored(self) -> Mapping[str, list[str]]:
        """Hidden files, those whose names lead out of the zip, and those of which another one has the name."""
        return self._ignored


class Selected:
    """Some files of a source. What the source ignores belongs to the first selection of it."""

    def __init__(self, source: Source, names: Sequence[str], *, is_first: bool) -> None:
        self._source, self._names, self._is_first = source, sorted(names), is_first
        self.label, self.open, self.changed = source.label, source.open, source.changed
        self.refused = source.refused if is_first else {}

    def names(self) -> list[str]:
        """The sorted names of these files."""
        return self._names

    def ignored(self) -> Mapping[str, list[str]]:
        """Those of the source."""
        return self._source.ignored() if self._is_first else {}


def source_of(path: Path) -> Source:
    """Opens a file, directory or zip as a source.

    Raises:
        InvalidInput: the path does not exist, or is a zip that can't be read.
    """
    if not path.exists():
        raise InvalidInput("{} does not exist", "", "Check the path", path)
    return Archive(path) if path.is_file() and is_zip(path) else Folder(path)


# The name of a file in a zip, the zip, and what that says of it.
_Entry = tuple[str, zipfile.ZipFile, zipfile.ZipInfo]


def _entries(file: Path | io.BytesIO, name: str, size: int) -> list[_Entry]:
    """The files in a zip of so many bytes."""
    try:
        packed = zipfile.ZipFile(file)
    except (OSError, zipfile.BadZipFile) as error:
        raise InvalidInput("{} can't be read as a zip", "{}", "Fetch it again", name, error) from error
    infos = packed.infolist()
    _check_count(len(infos))
    expanded = sum(info.file_size for info in infos)
    if _is_bomb(expanded, size):
        raise _refused_bomb(name, expanded)
    return [(entry, packed, info) for entry, info in zip(_names(infos), infos, strict=True) if not entry.endswith("/")]


def is_zip(path: Path) -> bool:
    """Whether a file is a zip by its name, or a picture of RisuAI's that ends with one."""
    suffix = path.suffix.lower()
    return suffix in ZIP_SUFFIXES or (suffix in _PICTURES_WITH_ZIP and zipfile.is_zipfile(path))


def blocks(source: Source, name: str, limit: int = FILE_LIMIT_BYTES) -> Iterator[bytes]:
    """Yields the content of a file in blocks.

    Raises:
        InvalidInput: the file can't be read, or is longer than `limit` bytes.
    """
    with source.open(name) as file:
        yield from blocks_of(file, name, limit)


def blocks_of(file: BinaryIO | io.BufferedIOBase, name: str, limit: int = FILE_LIMIT_BYTES) -> Iterator[bytes]:
    """As `blocks`, for an open file."""
    size = 0
    while True:
        try:
            block = file.read(BLOCK_BYTES)
        except _DAMAGED as error:
            raise InvalidInput("{} can't be read", "{}", "Fetch it again", name, error) from error
        if not block:
            return
        size += len(block)
        if size > limit:
            raise InvalidInput("{} is too long", "{} bytes are the limit", "Split it", name, f"{limit:,}")
        yield block


def whole(source: Source, name: str, limit: int = TEXT_LIMIT_BYTES) -> bytes:
    """The whole content of a file.

    Raises:
        InvalidInput: the file can't be read, or is longer than `limit` bytes.
    """
    return b"".join(blocks(source, name, limit))


def _is_bomb(expanded_bytes: int, packed_bytes: int) -> bool:
    return expanded_bytes > SMALL_BYTES and expanded_bytes > COMPRESSION_RATIO_LIMIT * max(packed_bytes, 1)


def check_kind(data: bytes, name: str, *magic: bytes) -> None:
    """Raises InvalidInput if a file that doesn't begin with any of these is of another kind than its name says. Without any, it is a text."""
    if data[:8] == _OF_OLD_OFFICE:
        raise InvalidInput("{} can't be read", "it has a password, or is of an old program", "Save it without one, in a newer format", name)
    if not data.lstrip().startswith(magic) if magic else data.startswith(_NO_TEXT):
        raise InvalidInput("{} can't be read", "it is of another kind than its name says", "Name it as what it is, or save it again", name)


def check_packed(data: bytes, name: str) -> None:
    """Raises InvalidInput if a document that should be a zip is none, or expands as none does."""
    check_kind(data, name, b"PK")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as packed:
            entries = packed.infolist()
    except zipfile.BadZipFile as error:
        raise InvalidInput("{} can't be read", "it is damaged or cut off", "Open it, and save it again", name) from error
    _check_count(len(entries))
    expanded = sum(info.file_size for info in entries)
    if _is_bomb(expanded, len(data)) or any(_is_bomb(info.file_size, info.compress_size) for info in entries):
        raise _refused_bomb(name, expanded)


def _refused_bomb(name: str, expanded_bytes: int) -> InvalidInput:
    return InvalidInput("{} is not read", "it expands to {} bytes", "Unpack the zip, and import what is in it", name, f"{expanded_bytes:,}")


def _check_count(count: int) -> None:
    if count > FILES_LIMIT:
        raise InvalidInput("there are too many files", "{} are the limit", "Import a part of them at a time", f"{FILES_LIMIT:,}")


def _names(entries: Sequence[zipfile.ZipInfo]) -> list[str]:
    """The names in a zip, with / between folders: PowerShell writes \\, and 表 has one inside where its name is in the encoding of Japanese Windows.

    Names that are not marked as UTF-8 are in one encoding, which no zip says: the first that fits them all.
    """
    unmarked = [info.orig_filename.encode("cp437") for info in entries if not info.flag_bits & _UTF8_FLAG]
    encoding = next((encoding for encoding in ("utf-8", "cp932") if _fits(unmarked, encoding)), "cp437")
    names = (info.orig_filename if info.flag_bits & _UTF8_FLAG else info.orig_filename.encode("cp437").decode(encoding) for info in entries)
    return [name.replace("\\", "/") for name in names]


def _fits(names: Sequence[bytes], encoding: str) -> bool:
    try:
        decoded = [name.decode(encoding) for name in names]
    except UnicodeDecodeError:
        return False
    foreign = [name for name in decoded if not name.isascii()]
    return encoding == "utf-8" or not foreign or any(not _IN_WORDS.sub("", name).isascii() for name in foreign)


def _ignored_kind(name: str) -> str:
    """Why an entry of a zip is not read; empty if it is."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or _DRIVE.match(name):
        return "files outside of the zip"
    return "hidden files" if _is_hidden(path) else ""


def _is_hidden(path: PurePath) -> bool:
    return any(part.startswith(_HIDDEN_PREFIXES) for part in path.parts)
