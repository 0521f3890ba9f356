"""An encrypted database file as the plain one that it stands for, page by page, and back: for what must be compressed, and never lie
plain on a disk.

The form is that of SQLCipher 4 with a raw key. A page of 4,096 bytes is AES-256-CBC over all but its last 80, the initial vector (16
bytes), and HMAC-SHA512 (64) over both and the page's number, little-endian. The first 16 bytes of the file are a salt in the place of
SQLite's first words; the HMAC's key is PBKDF2-HMAC-SHA512 of the key, with every bit of the salt turned that is set in 0x3a, and two rounds.
"""

import hashlib
import hmac
import io
import os
from typing import BinaryIO

from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CBC

from memory_mcp.errors import StoreDamaged
from memory_mcp.store.sqlite.cipher import PLAIN_MAGIC

PAGE_BYTES, VECTOR_BYTES, MAC_BYTES = 4096, 16, 64
SALT_BYTES = len(PLAIN_MAGIC)
RESERVED_BYTES = VECTOR_BYTES + MAC_BYTES
# The page in which SQLite's locks lie, behind the first GiB: never written, and so never encrypted.
LOCK_PAGE = 0x4000_0000 // PAGE_BYTES + 1
RESERVED_AT = 20  # where an SQLite file says how much of each page is not its own


class PlainPages(io.RawIOBase):
    """Reads an encrypted database file as the plain one. The room of vector and MAC is zeros there."""

    def __init__(self, file: BinaryIO, key: bytes) -> None:
        self._file, self._key, self._mac_key = file, key, b""
        self._number, self._ready = 0, memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "memoryview | bytearray") -> int:  # type: ignore[override]
        if not self._ready:
            page = self._file.read(PAGE_BYTES)
            if not page:
                return 0
            self._number += 1
            self._ready = memoryview(self._opened(page))
        taken = min(len(buffer), len(self._ready))
        buffer[:taken] = self._ready[:taken]
        self._ready = self._ready[taken:]
        return taken

    def _opened(self, page: bytes) -> bytes:
        if self._number == LOCK_PAGE:
            return bytes(PAGE_BYTES)
        begin = SALT_BYTES if self._number == 1 else 0
        if begin:
            self._mac_key = _mac_key(self._key, page[:SALT_BYTES])
        body, vector, mac = page[begin:-RESERVED_BYTES], page[-RESERVED_BYTES:-MAC_BYTES], page[-MAC_BYTES:]
        if len(page) != PAGE_BYTES or not hmac.compare_digest(mac, _mac(self._mac_key, body + vector, self._number)):
            raise StoreDamaged("an encrypted database is not as it was written", f"page {self._number}", "Try again")
        decryptor = Cipher(AES(self._key), CBC(vector)).decryptor()
        return PLAIN_MAGIC[:begin] + decryptor.update(body) + decryptor.finalize() + bytes(RESERVED_BYTES)


class EncryptedPages:
    """Writes the encrypted database file for a plain one that is written to it, which must leave room for vector and MAC."""

    def __init__(self, file: BinaryIO, key: bytes) -> None:
        self._file, self._key, self._salt = file, key, os.urandom(SALT_BYTES)
        self._mac_key = _mac_key(key, self._salt)
        self._number, self._waiting = 0, bytearray()

    def write(self, content: bytes) -> int:
        """Takes any number of bytes and returns it."""
        self._waiting += content
        while len(self._waiting) >= PAGE_BYTES:
            self._number += 1
            self._file.write(self._sealed(bytes(self._waiting[:PAGE_BYTES])))
            del self._waiting[:PAGE_BYTES]
        return len(content)

    def _sealed(self, page: bytes) -> bytes:
        if self._number == LOCK_PAGE:
            return bytes(PAGE_BYTES)
        begin = SALT_BYTES if self._number == 1 else 0
        if begin and (page[:begin] != PLAIN_MAGIC or page[RESERVED_AT] != RESERVED_BYTES):
            raise StoreDamaged("this is no database that can be encrypted page by page", "it leaves no room", "Take another copy of it")
        vector = os.urandom(VECTOR_BYTES)
        encryptor = Cipher(AES(self._key), CBC(vector)).encryptor()
        body = encryptor.update(page[begin:-RESERVED_BYTES]) + encryptor.finalize()
        return self._salt[:begin] + body + vector + _mac(self._mac_key, body + vector, self._number)


def _mac_key(key: bytes, salt: bytes) -> bytes:
    return hashlib.pbkdf2_hmac("sha512", key, bytes(byte ^ 0x3A for byte in salt), 2, 32)


def _mac(mac_key: bytes, content: bytes, number: int) -> bytes:
    return hmac.digest(mac_key, content + number.to_bytes(4, "little"), "sha512")
