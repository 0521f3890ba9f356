"""Sealed (encrypted) files: AES-256-GCM in chunks, so that any file is processed in little memory and any change is detected.

    8 bytes   the letters MMSEALED
    1 byte    version, 1
    8 bytes   id of the key, which doesn't reveal the key
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
    """A 32-byte key derived for one purpose, by HKDF-SHA256."""
    return HKDF(SHA256(), KEY_BYTES, salt, f"memory-mcp {purpose}".encode()).derive(secret)


def key_id(secret: bytes) -> bytes:
    """8 bytes that identify a key without revealing it."""
    return hashlib.sha256(b"memory-mcp key id\x00" + secret).digest()[:KEY_ID_BYTES]


def is_sealed(beginning: bytes) -> bool:
    """Whether a file with this beginning is sealed."""
    return beginning.startswith(MAGIC)


def required_key(header: bytes) -> str:
    """The id of the key that opens a sealed file, in hexadecimal digits; `header` is the beginning of the file.

    Raises:
        StoreDamaged: the file isn't sealed, or is of a newer version.
    """
    if len(header) < HEADER_BYTES or not is_sealed(header) or header[len(MAGIC)] != VERSION:
        raise StoreDamaged("this isn't a sealed file of a known version", "", "Use the Memory MCP that wrote it")
    return header[len(MAGIC) + 1 :][:KEY_ID_BYTES].hex()


def seal(content: bytes, secret: bytes) -> bytes:
    """Encrypt the content of a small file."""
    file = io.BytesIO()
    with SealedWriter(file, secret) as writer:
        writer.write(content)
    return file.getvalue()


def unseal(content: bytes, secret: bytes) -> bytes:
    """Decrypt what `seal` encrypted.

    Raises:
        KeyRefused: it was sealed with another key.
        StoreDamaged: it was changed or cut off.
    """
    return SealedReader(io.BytesIO(content), secret).readall()


class SealedWriter:
    """Encrypts what is written to it into `file`, which is complete after `close`."""

    def __init__(self, file: BinaryIO, secret: bytes) -> None:
        salt = os.urandom(SALT_BYTES)
        self._header = MAGIC + bytes([VERSION]) + key_id(secret) + salt
        self._file, self._cipher = file, AESGCM(derived(secret, "sealed file", salt))
        self._waiting, self._number = bytearray(), 0
        file.write(self._header)

    def write(self, content: bytes) -> int:
        """Accept any number of bytes; return that number."""
        self._waiting += content
        while len(self._waiting) > CHUNK_BYTES:  # not `>=`: the last chunk has a nonce of its own
            self._put(bytes(self._waiting[:CHUNK_BYTES]), last=False)
            del self._waiting[:CHUNK_BYTES]
        return len(content)

    def flush(self) -> None:
        """Do nothing: a chunk is written when it is full."""

    def close(self) -> None:
        """Write the last chunk. `file` stays open."""
        self._put(bytes(self._waiting), last=True)
        self._waiting.clear()

    def __enter__(self) -> "SealedWriter":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:  # an interrupted write must not look complete
            self.close()

    def _put(self, chunk: bytes, *, last: bool) -> None:
        self._file.write(self._cipher.encrypt(_nonce(self._number, last), chunk, self._header))
        self._number += 1


class SealedReader(io.RawIOBase):
    """Decrypts a sealed file sequentially. All returned bytes are authenticated; a truncated file is detected at its end."""

    def __init__(self, file: BinaryIO, secret: bytes) -> None:
        """
        Raises:
            KeyRefused: the file was sealed with another key.
            StoreDamaged: the file isn't sealed.
        """
        self._file, self._header = file, file.read(HEADER_BYTES)
        if required_key(self._header) != key_id(secret).hex():
            raise KeyRefused(
                "this was sealed with another key",
                "it requires the key {}, not {}",
                "Give that key",
                required_key(self._header),
                key_id(secret).hex(),
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
            raise StoreDamaged("a sealed file was changed or cut off", "its authentication failed", "Take another copy of it") from None
        self._number += 1


def _nonce(number: int, last: bool) -> bytes:
    return number.to_bytes(11, "big") + bytes([last])
