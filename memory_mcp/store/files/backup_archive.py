"""Backup files: a tar archive, compressed by Zstandard, and sealed where there is a key.

    manifest.json          what it is, of whom, from when, and how long and with which SHA-256 the others are; always first
    persona.json           the exact name
    persona_context.json   if there was one; not encrypted by itself
    memory.sqlite          the database, not encrypted by itself either

Without a key that is a `.tar.zst` as other programs know it.
"""

import hashlib
import io
import json
import os
import tarfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO, cast

import zstandard

from memory_mcp.errors import KeyRefused, StoreDamaged
from memory_mcp.store.files.sealed import HEADER_BYTES, SealedReader, SealedWriter, is_sealed, wanted_key
from memory_mcp.store.sqlite.cipher_pages import EncryptedPages, PlainPages
from memory_mcp.store.sqlite.snapshots import Contents, Progress
from memory_mcp.store.timestamps import from_text, to_text

FORMAT = 1
MANIFEST_NAME, DATABASE_NAME = "manifest.json", "memory.sqlite"
LEVEL = 6
BLOCK_BYTES = 1024 * 1024
SMALL_BYTES = 16 * 1024 * 1024
PRIVATE_FILE = 0o600

# The key of an id, or None.
FindKey = Callable[[str], bytes | None]
Extract = Callable[[Path, bytes | None, Progress], dict[str, bytes]]


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a backup is. `files`: length in bytes and SHA-256 by name. `encrypted`: whether the persona was."""

    persona: str
    created_at: datetime
    version: str
    encrypted: bool
    contents: Contents
    context_sha256: str
    files: Mapping[str, tuple[int, str]]

    def to_json(self) -> bytes:
        told = {**asdict(self), "format": FORMAT, "created_at": to_text(self.created_at)}
        return json.dumps(told, ensure_ascii=False, indent=2).encode() + b"\n"


@contextmanager
def plain_pages(path: Path, key: bytes | None) -> Iterator[BinaryIO]:
    """A database file to be read as the plain one that it is, or stands for under this key."""
    with path.open("rb") as file:
        yield io.BufferedReader(PlainPages(file, key), BLOCK_BYTES) if key else file


def measured(database: Path, key: bytes | None) -> tuple[int, str]:
    """Length and SHA-256 of a database as a backup has it."""
    with plain_pages(database, key) as content:
        digest, size = hashlib.sha256(), 0
        while block := content.read(BLOCK_BYTES):
            digest.update(block)
            size += len(block)
    return size, digest.hexdigest()


def write(
    target: Path,
    manifest: Manifest,
    small: Mapping[str, bytes],
    database: tuple[Path, bytes | None],
    secret: bytes | None,
    progress: Progress,
) -> None:
    """Writes a backup of what the manifest names, and makes it safe on the disk.

    `small`: every file but the database. `database`: where it is, and its key if it is encrypted there; it is not in the backup.

    Raises:
        OSError: it can't be written.
    """
    with _private(target) as file:
        with ExitStack() as stack:
            sink = cast(BinaryIO, stack.enter_context(SealedWriter(file, secret))) if secret else file
            compressor = zstandard.ZstdCompressor(level=LEVEL, write_checksum=True)
            packed = cast(BinaryIO, stack.enter_context(compressor.stream_writer(sink, closefd=False)))
            archive = stack.enter_context(tarfile.open(fileobj=packed, mode="w|", format=tarfile.PAX_FORMAT))
            for name, content in {MANIFEST_NAME: manifest.to_json(), **small}.items():
                archive.addfile(_entry(name, len(content), manifest.created_at), io.BytesIO(content))
            size = manifest.files[DATABASE_NAME][0]
            counted = _Counted(stack.enter_context(plain_pages(*database)), size, progress)
            archive.addfile(_entry(DATABASE_NAME, size, manifest.created_at), cast(BinaryIO, counted))
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def opened(path: Path, find_key: FindKey) -> Iterator[tuple[Manifest, Extract]]:
    """A backup's manifest, and what takes the rest out of it: writes the database to a path, and returns the other files by name.

    With a key the database is encrypted there, which only that of an encrypted persona can be.

    Raises:
        KeyRefused: it is sealed, and its key is not among those that `find_key` knows.
        StoreDamaged: it is no backup, or not as it was written.
        OSError: it can't be read.
    """
    try:
        with ExitStack() as stack:
            file = stack.enter_context(path.open("rb"))
            source = _unsealed(file, path, find_key)
            unpacked = stack.enter_context(zstandard.ZstdDecompressor().stream_reader(source, closefd=False))
            archive = stack.enter_context(tarfile.open(fileobj=unpacked, mode="r|"))
            manifest = _manifest(archive)

            def extract(database: Path, key: bytes | None, progress: Progress) -> dict[str, bytes]:
                small = _extract(archive, manifest, (database, key), progress)
                while unpacked.read(BLOCK_BYTES):  # to the end: a file that was cut off shows there
                    pass
                return small

            yield manifest, extract
    except (tarfile.TarError, zstandard.ZstdError, EOFError) as error:
        raise _no_backup(path, str(error)) from error


def _unsealed(file: io.BufferedReader, path: Path, find_key: FindKey) -> io.BufferedReader:
    beginning = file.read(HEADER_BYTES)
    file.seek(0)
    if not is_sealed(beginning):
        return file
    wanted = wanted_key(beginning)
    secret = find_key(wanted)
    if secret is None:
        raise KeyRefused(
            f"{path.name} is encrypted",
            f"the master key {wanted} is not there",
            "Give it with --key-file, encryption.key_file or MEMORY_MCP_KEY",
        )
    return io.BufferedReader(SealedReader(file, secret))


def _manifest(archive: tarfile.TarFile) -> Manifest:
    entry = archive.next()
    content = archive.extractfile(entry) if entry and entry.name == MANIFEST_NAME and entry.size <= SMALL_BYTES else None
    if content is None:
        raise _no_backup(Path(str(archive.name or "it")), "it does not begin with a manifest")
    try:
        told: dict[str, Any] = json.loads(content.read())
        number = told.pop("format")
        fields = {
            **told,
            "created_at": from_text(told["created_at"]),
            "contents": Contents(**told["contents"]),
            "files": {str(name): (int(size), str(digest)) for name, (size, digest) in told["files"].items()},
        }
        manifest = Manifest(**fields)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _no_backup(Path("it"), f"its manifest can't be understood ({error})") from error
    if number != FORMAT:
        raise StoreDamaged(
            "this backup is of another version", f"its format is {number}, known is {FORMAT}", "Use the Memory MCP that made it"
        )
    return manifest


def _extract(archive: tarfile.TarFile, manifest: Manifest, database: tuple[Path, bytes | None], progress: Progress) -> dict[str, bytes]:
    left, small = dict(manifest.files), dict[str, bytes]()
    while entry := archive.next():
        content = archive.extractfile(entry) if entry.name in left else None
        if content is None or (entry.name != DATABASE_NAME and entry.size > SMALL_BYTES):
            # Nothing is written under a name that nobody expects.
            raise StoreDamaged("this backup holds what no backup holds", repr(entry.name), "Take another one")
        if entry.name == DATABASE_NAME:
            found = _copied(cast(BinaryIO, content), database, left[entry.name][0], progress)
        else:
            small[entry.name] = content.read()
            found = len(small[entry.name]), hashlib.sha256(small[entry.name]).hexdigest()
        if found != left.pop(entry.name):
            raise StoreDamaged(f"{entry.name} in this backup is not as it was written", "its checksum is wrong", "Take another one")
    if left:
        raise StoreDamaged("this backup is not whole", f"{', '.join(left)} missing", "Take another one")
    return small


def _copied(content: BinaryIO, target: tuple[Path, bytes | None], size: int, progress: Progress) -> tuple[int, str]:
    digest, done = hashlib.sha256(), 0
    path, key = target
    with _private(path) as plain:
        file = EncryptedPages(plain, key) if key else plain
        while block := content.read(BLOCK_BYTES):
            digest.update(block)
            file.write(block)
            done += len(block)
            progress(done, size)
    return done, digest.hexdigest()


def _private(path: Path) -> BinaryIO:
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, PRIVATE_FILE), "wb")


def _no_backup(path: Path, why: str) -> StoreDamaged:
    return StoreDamaged(f"{path.name} is no backup, or was changed or cut off", why, "Take another one")


def _entry(name: str, size: int, created_at: datetime) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode, entry.mtime = size, 0o600, int(created_at.timestamp())
    return entry


class _Counted:
    """A file that says how far it has been read."""

    def __init__(self, file: BinaryIO, size: int, progress: Progress) -> None:
        self._file, self._size, self._progress, self._done = file, size, progress, 0

    def read(self, count: int = -1) -> bytes:
        content = self._file.read(count)
        self._done += len(content)
        self._progress(self._done, self._size)
        return content
