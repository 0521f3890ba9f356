"""Decrypts and encrypts a database file page by page in memory: backups compress plain pages without ever writing them to disk.

The format is that of SQLCipher 4 with a raw key. A page of 4,096 bytes consists of AES-256-CBC ciphertext, the initialization vector
(16 bytes), and HMAC-SHA512 (64) over both and the little-endian page number. The first 16 bytes of the file are a salt, in place of
SQLite's magic; the HMAC key is PBKDF2-HMAC-SHA512 of the key with the salt XORed with 0x3a, two rounds.
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
from memory_mcp.store.sqlite.cipher import SQLITE_MAGIC

PAGE_BYTES, VECTOR_BYTES, MAC_BYTES = 4096, 16, 64
SALT_BYTES = len(SQLITE_MAGIC)
RESERVED_BYTES = VECTOR_BYTES + MAC_BYTES
# The page of SQLite's locks, at the first GiB: never written, and so never encrypted.
LOCK_PAGE = 0x4000_0000 // PAGE_BYTES + 1
RESERVED_OFFSET = 20  # the byte of an SQLite header with the number of reserved bytes per page


class PlainPages(io.RawIOBase):
    """Reads an encrypted database file as plain. The reserved bytes of each page are zero."""

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
            self._ready = memoryview(self._decrypt(page))
        taken = min(len(buffer), len(self._ready))
        buffer[:taken] = self._ready[:taken]
        self._ready = self._ready[taken:]
        return taken

    def _decrypt(self, page: bytes) -> bytes:
        if self._number == LOCK_PAGE:
            return bytes(PAGE_BYTES)
        begin = SALT_BYTES if self._number == 1 else 0
        if begin:
            self._mac_key = _mac_key(self._key, page[:SALT_BYTES])
        body, vector, mac = page[begin:-RESERVED_BYTES], page[-RESERVED_BYTES:-MAC_BYTES], page[-MAC_BYTES:]
        if len(page) != PAGE_BYTES or not hmac.compare_digest(mac, _mac(self._mac_key, body + vector, self._number)):
            raise StoreDamaged("an encrypted database was changed or cut off", "page {}", "Try again", self._number)
        decryptor = Cipher(AES(self._key), CBC(vector)).decryptor()
        return SQLITE_MAGIC[:begin] + decryptor.update(body) + decryptor.finalize() + bytes(RESERVED_BYTES)


class EncryptedPages:
    """Encrypts the plain database file written to it; its pages must have the reserved bytes."""

    def __init__(self, file: BinaryIO, key: bytes) -> None:
        self._file, self._key, self._salt = file, key, os.urandom(SALT_BYTES)
        self._mac_key = _mac_key(key, self._salt)
        self._number, self._waiting = 0, bytearray()

    def write(self, content: bytes) -> int:
        """Accept any number of bytes; return that number."""
        self._waiting += content
        while len(self._waiting) >= PAGE_BYTES:
            self._number += 1
            self._file.write(self._encrypt(bytes(self._waiting[:PAGE_BYTES])))
            del self._waiting[:PAGE_BYTES]
        return len(content)

    def _encrypt(self, page: bytes) -> bytes:
        if self._number == LOCK_PAGE:
            return bytes(PAGE_BYTES)
        begin = SALT_BYTES if self._number == 1 else 0
        if begin and (page[:begin] != SQLITE_MAGIC or page[RESERVED_OFFSET] != RESERVED_BYTES):
            raise StoreDamaged(
                "this database can't be encrypted page by page", "its pages have no reserved bytes", "Take another copy of it"
            )
        vector = os.urandom(VECTOR_BYTES)
        encryptor = Cipher(AES(self._key), CBC(vector)).encryptor()
        body = encryptor.update(page[begin:-RESERVED_BYTES]) + encryptor.finalize()
        return self._salt[:begin] + body + vector + _mac(self._mac_key, body + vector, self._number)


def _mac_key(key: bytes, salt: bytes) -> bytes:
    return hashlib.pbkdf2_hmac("sha512", key, bytes(byte ^ 0x3A for byte in salt), 2, 32)


def _mac(mac_key: bytes, content: bytes, number: int) -> bytes:
    return hmac.digest(mac_key, content + number.to_bytes(4, "little"), "sha512")
