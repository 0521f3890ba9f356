"""The format of backup files: a tar archive, compressed with Zstandard, and sealed if there is a key.

    manifest.json          persona, time, row counts, and size and SHA-256 of the other files; always first
    persona.json           the exact name
    persona_context.json   if there is one; decrypted
    memory.sqlite          the database; decrypted

Without a key the file is an ordinary `.tar.zst`.
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
from memory_mcp.store.files.durable_files import PRIVATE_FILE, open_private
from memory_mcp.store.files.sealed import HEADER_BYTES, SealedReader, SealedWriter, is_sealed, required_key
from memory_mcp.store.sqlite.cipher_pages import EncryptedPages, PlainPages
from memory_mcp.store.sqlite.database import DATABASE_NAME
from memory_mcp.store.sqlite.snapshots import Contents, Progress
from memory_mcp.store.timestamps import from_text, to_text

FORMAT = 1
MANIFEST_NAME = "manifest.json"
LEVEL = 6
BLOCK_BYTES = 1024 * 1024
SMALL_BYTES = 16 * 1024 * 1024

# Key id → key, or None.
FindKey = Callable[[str], bytes | None]
Extract = Callable[[Path, bytes | None, Progress], dict[str, bytes]]


@dataclass(frozen=True, slots=True)
class Manifest:
    """Describes a backup. `files`: size in bytes and SHA-256 by name. `encrypted`: whether the persona was."""

    persona: str
    created_at: datetime
    version: str
    encrypted: bool
    contents: Contents
    context_sha256: str
    files: Mapping[str, tuple[int, str]]

    def to_json(self) -> bytes:
        fields = {**asdict(self), "format": FORMAT, "created_at": to_text(self.created_at)}
        return json.dumps(fields, ensure_ascii=False, indent=2).encode() + b"\n"


@contextmanager
def plain_pages(path: Path, key: bytes | None) -> Iterator[BinaryIO]:
    """A database file opened for reading, decrypted if there is a key."""
    with path.open("rb") as file:
        yield io.BufferedReader(PlainPages(file, key), BLOCK_BYTES) if key else file


def size_and_digest(database: Path, key: bytes | None) -> tuple[int, str]:
    """Size and SHA-256 of a database as it is stored in a backup."""
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
    """Write a backup of the files in the manifest, and sync it to disk.

    `small`: the content of every file except the database. `database`: its path, and its key if it is encrypted.

    Raises:
        OSError: the backup can't be written.
    """
    with open(target, "wb", opener=open_private) as file:
        with ExitStack() as stack:
            sink = cast(BinaryIO, stack.enter_context(SealedWriter(file, secret))) if secret else file
            compressor = zstandard.ZstdCompressor(level=LEVEL, write_checksum=True)
            packed = cast(BinaryIO, stack.enter_context(compressor.stream_writer(sink, closefd=False)))
            archive = stack.enter_context(tarfile.open(fileobj=packed, mode="w|", format=tarfile.PAX_FORMAT))
            for name, content in {MANIFEST_NAME: manifest.to_json(), **small}.items():
                archive.addfile(_entry(name, len(content), manifest.created_at), io.BytesIO(content))
            size = manifest.files[DATABASE_NAME][0]
            reader = _ProgressReader(stack.enter_context(plain_pages(*database)), size, progress)
            archive.addfile(_entry(DATABASE_NAME, size, manifest.created_at), cast(BinaryIO, reader))
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def opened(path: Path, find_key: FindKey) -> Iterator[tuple[Manifest, Extract]]:
    """Open a backup: its manifest, and a function that writes the database to a path and returns the other files by name.

    With a key the extracted database is encrypted, which works only for that of an encrypted persona.

    Raises:
        KeyRefused: the backup is sealed, and `find_key` doesn't know its key.
        StoreDamaged: the file isn't a backup, or was changed.
        OSError: the file can't be read.
    """
    try:
        with ExitStack() as stack:
            file = stack.enter_context(path.open("rb"))
            source = _decrypted(file, path, find_key)
            unpacked = stack.enter_context(zstandard.ZstdDecompressor().stream_reader(source, closefd=False))
            archive = stack.enter_context(tarfile.open(fileobj=unpacked, mode="r|"))
            manifest = _manifest(archive)

            def extract(database: Path, key: bytes | None, progress: Progress) -> dict[str, bytes]:
                small = _extract(archive, manifest, (database, key), progress)
                while unpacked.read(BLOCK_BYTES):  # read to the end, which detects a truncated file
                    pass
                return small

            yield manifest, extract
    except (tarfile.TarError, zstandard.ZstdError, EOFError) as error:
        raise _not_a_backup(path, str(error)) from error


def _decrypted(file: io.BufferedReader, path: Path, find_key: FindKey) -> io.BufferedReader:
    beginning = file.read(HEADER_BYTES)
    file.seek(0)
    if not is_sealed(beginning):
        return file
    wanted = required_key(beginning)
    secret = find_key(wanted)
    if secret is None:
        raise KeyRefused(
            "{} is encrypted",
            "the master key {} is not there",
            "Give it with --key-file, encryption.key_file or MEMORY_MCP_KEY",
            path.name,
            wanted,
        )
    return io.BufferedReader(SealedReader(file, secret))


def _manifest(archive: tarfile.TarFile) -> Manifest:
    entry = archive.next()
    content = archive.extractfile(entry) if entry and entry.name == MANIFEST_NAME and entry.size <= SMALL_BYTES else None
    if content is None:
        raise _not_a_backup(Path(str(archive.name or "it")), "it doesn't begin with a manifest")
    try:
        stored: dict[str, Any] = json.loads(content.read())
        number = stored.pop("format")
        fields = {
            **stored,
            "created_at": from_text(stored["created_at"]),
            "contents": Contents(**stored["contents"]),
            "files": {str(name): (int(size), str(digest)) for name, (size, digest) in stored["files"].items()},
        }
        manifest = Manifest(**fields)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _not_a_backup(Path("it"), f"its manifest can't be read ({error})") from error
    if number != FORMAT:
        raise StoreDamaged(
            "this backup has another version", "its format is {}, known is {}", "Use the Memory MCP that made it", number, FORMAT
        )
    return manifest


def _extract(archive: tarfile.TarFile, manifest: Manifest, database: tuple[Path, bytes | None], progress: Progress) -> dict[str, bytes]:
    remaining, small = dict(manifest.files), dict[str, bytes]()
    while entry := archive.next():
        content = archive.extractfile(entry) if entry.name in remaining else None
        if content is None or (entry.name != DATABASE_NAME and entry.size > SMALL_BYTES):
            # Unexpected names are never written.
            raise StoreDamaged("this backup contains an unexpected file", "{}", "Take another one", repr(entry.name))
        if entry.name == DATABASE_NAME:
            actual = _copied(cast(BinaryIO, content), database, remaining[entry.name][0], progress)
        else:
            small[entry.name] = content.read()
            actual = len(small[entry.name]), hashlib.sha256(small[entry.name]).hexdigest()
        if actual != remaining.pop(entry.name):
            raise StoreDamaged("{} in this backup was changed", "its checksum is wrong", "Take another one", entry.name)
    if remaining:
        raise StoreDamaged("this backup is incomplete", "{} missing", "Take another one", ", ".join(remaining))
    return small


def _copied(content: BinaryIO, target: tuple[Path, bytes | None], size: int, progress: Progress) -> tuple[int, str]:
    digest, done = hashlib.sha256(), 0
    path, key = target
    with open(path, "wb", opener=open_private) as plain:
        file = EncryptedPages(plain, key) if key else plain
        while block := content.read(BLOCK_BYTES):
            digest.update(block)
            file.write(block)
            done += len(block)
            progress(done, size)
    return done, digest.hexdigest()


def _not_a_backup(path: Path, why: str) -> StoreDamaged:
    return StoreDamaged("{} isn't a backup, or was changed or cut off", "{}", "Take another one", path.name, why)


def _entry(name: str, size: int, created_at: datetime) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode, entry.mtime = size, PRIVATE_FILE, int(created_at.timestamp())
    return entry


class _ProgressReader:
    """Reports the progress of reading a file."""

    def __init__(self, file: BinaryIO, size: int, progress: Progress) -> None:
        self._file, self._size, self._progress, self._done = file, size, progress, 0

    def read(self, count: int = -1) -> bytes:
        content = self._file.read(count)
        self._done += len(content)
        self._progress(self._done, self._size)
        return content
