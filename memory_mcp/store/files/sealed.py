"""Sealed files: AES-256-GCM in chunks, so that a file of any size is written and read in little memory, and any change is noticed.

    8 bytes   the letters MMSEALED
    1 byte    version, 1
    8 bytes   id of the key: which one is wanted, without giving it away
    16 bytes  salt: the file's own key is HKDF-SHA256(key, salt, "memory-mcp sealed file")
    then chunks of 1 MiB, the last one shorter (or empty), each with its tag of 16 bytes

A chunk's nonce is its number (11 bytes, big-endian) and a byte that is 1 for the last one and 0 for the others; the header is
authenticated with each. So chunks can't be changed, left out, put in another order, cut off at the end, or taken from another file.
"""

import hashlib
import io
import os
from typing import BinaryIO

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from memory_mcp.errors import KeyRefused, StoreDamaged

MAGIC = b"MMSEALED"
VERSION = 1
KEY_ID_BYTES, SALT_BYTES, TAG_BYTES, KEY_BYTES = 8, 16, 16, 32
HEADER_BYTES = len(MAGIC) + 1 + KEY_ID_BYTES + SALT_BYTES
CHUNK_BYTES = 1024 * 1024
ENDING = ".sealed"


def derived(secret: bytes, purpose: str, salt: bytes | None = None) -> bytes:
    """32 bytes of a key's own for one purpose: HKDF-SHA256."""
    return HKDF(SHA256(), KEY_BYTES, salt, f"memory-mcp {purpose}".encode()).derive(secret)


def key_id(secret: bytes) -> bytes:
    """8 bytes that tell keys apart and give nothing away."""
    return hashlib.sha256(b"memory-mcp key id\x00" + secret).digest()[:KEY_ID_BYTES]


def is_sealed(beginning: bytes) -> bool:
    """Whether a file that begins so is a sealed one."""
    return beginning.startswith(MAGIC)


def wanted_key(header: bytes) -> str:
    """The id of the key that a sealed file wants, in hexadecimal digits; `header` is its beginning.

    Raises:
        StoreDamaged: it is no sealed file, or one of a newer version.
    """
    if len(header) < HEADER_BYTES or not is_sealed(header) or header[len(MAGIC)] != VERSION:
        raise StoreDamaged("this is no sealed file of a version that is known here", "", "Use the Memory MCP that wrote it")
    return header[len(MAGIC) + 1 :][:KEY_ID_BYTES].hex()


def seal(content: bytes, secret: bytes) -> bytes:
    """A small file's content, sealed."""
    file = io.BytesIO()
    with SealedWriter(file, secret) as writer:
        writer.write(content)
    return file.getvalue()


def unseal(content: bytes, secret: bytes) -> bytes:
    """What was sealed.

    Raises:
        KeyRefused: with another key.
        StoreDamaged: it is not what was sealed.
    """
    return SealedReader(io.BytesIO(content), secret).readall()


class SealedWriter:
    """Seals what is written to it into `file`, which is complete once this is closed."""

    def __init__(self, file: BinaryIO, secret: bytes) -> None:
        salt = os.urandom(SALT_BYTES)
        self._header = MAGIC + bytes([VERSION]) + key_id(secret) + salt
        self._file, self._cipher = file, AESGCM(derived(secret, "sealed file", salt))
        self._waiting, self._number = bytearray(), 0
        file.write(self._header)

    def write(self, content: bytes) -> int:
        """Takes any number of bytes and returns it."""
        self._waiting += content
        while len(self._waiting) > CHUNK_BYTES:  # not at just as many: the last chunk is told apart
            self._put(bytes(self._waiting[:CHUNK_BYTES]), last=False)
            del self._waiting[:CHUNK_BYTES]
        return len(content)

    def flush(self) -> None:
        """Does nothing: a chunk is written when it is full."""

    def close(self) -> None:
        """Writes the last chunk. The file stays open."""
        self._put(bytes(self._waiting), last=True)
        self._waiting.clear()

    def __enter__(self) -> "SealedWriter":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:  # what broke off must not look whole
            self.close()

    def _put(self, chunk: bytes, *, last: bool) -> None:
        self._file.write(self._cipher.encrypt(_nonce(self._number, last), chunk, self._header))
        self._number += 1


class SealedReader(io.RawIOBase):
    """Reads what was sealed, from the beginning to the end. What it hands over has been authenticated; whether all of it is there shows
    at the end."""

    def __init__(self, file: BinaryIO, secret: bytes) -> None:
        """
        Raises:
            KeyRefused: it was sealed with another key.
            StoreDamaged: it is no sealed file.
        """
        self._file, self._header = file, file.read(HEADER_BYTES)
        if wanted_key(self._header) != key_id(secret).hex():
            raise KeyRefused(
                "this was sealed with another key",
                f"it wants the key {wanted_key(self._header)}, not {key_id(secret).hex()}",
                "Give that key",
            )
        self._cipher = AESGCM(derived(secret, "sealed file", self._header[-SALT_BYTES:]))
        self._next, self._number, self._ready = file.read(CHUNK_BYTES + TAG_BYTES), 0, memoryview(b"")
        self._ended = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "memoryview | bytearray") -> int:  # type: ignore[override]
        while not self._ready and not self._ended:
            self._open_next()
        taken = min(len(buffer), len(self._ready))
        buffer[:taken] = self._ready[:taken]
        self._ready = self._ready[taken:]
        return taken

    def _open_next(self) -> None:
        chunk, self._next = self._next, self._file.read(CHUNK_BYTES + TAG_BYTES)
        self._ended = not self._next
        try:
            self._ready = memoryview(self._cipher.decrypt(_nonce(self._number, self._ended), chunk, self._header))
        except InvalidTag:
            raise StoreDamaged("a sealed file is not as it was written", "it was changed or cut off", "Take another copy of it") from None
        self._number += 1


def _nonce(number: int, last: bool) -> bytes:
    return number.to_bytes(11, "big") + bytes([last])
