"""Reads the texts of a PNG file, in which character cards come. The picture itself is not decoded, and nothing is expanded beyond a limit."""

import io
import zlib
from typing import BinaryIO

from memory_mcp.errors import InvalidInput

SIGNATURE = b"\x89PNG\r\n\x1a\n"
TEXT_LIMIT_BYTES = 16 * 1024**2
FILE_LIMIT_BYTES = 256 * 1024**2
CHUNKS_LIMIT = 100_000
_BLOCK_BYTES = 1024 * 1024


def texts(file: BinaryIO | io.BufferedIOBase, name: str, wanted: frozenset[bytes]) -> dict[bytes, bytes]:
    """The first text of each wanted keyword, as it is in the chunks tEXt, zTXt and iTXt.

    Raises:
        InvalidInput: it is no PNG file, or it takes more than the limits.
    """
    if file.read(len(SIGNATURE)) != SIGNATURE:
        raise InvalidInput("{} is no PNG file", "", "Fetch it again", name)
    found: dict[bytes, bytes] = {}
    size = 0
    for _ in range(CHUNKS_LIMIT):
        head = file.read(8)
        length, kind = int.from_bytes(head[:4]), head[4:]
        size += length
        if len(head) < 8 or kind == b"IEND":  # a picture that is cut off may still have its texts
            return found
        if size > FILE_LIMIT_BYTES:
            break
        if kind in (b"tEXt", b"zTXt", b"iTXt") and length <= TEXT_LIMIT_BYTES:
            keyword, _, rest = file.read(length).partition(b"\0")
            if keyword.lower() in wanted:
                found.setdefault(keyword.lower(), _text(kind, rest, name))
        else:
            _skip(file, length)
        file.read(4)  # the checksum
    raise InvalidInput("{} is not read", "it is larger than a picture with a card", "Fetch it again", name)


def _text(kind: bytes, rest: bytes, name: str) -> bytes:
    if kind == b"tEXt":
        return rest
    if kind == b"zTXt":
        return _expanded(rest[1:], name)
    is_packed, (_, _, text) = rest[:1] == b"\1", rest[2:].split(b"\0", 2) if rest[2:].count(b"\0") >= 2 else ("", "", b"")
    return _expanded(text, name) if is_packed else text


def _expanded(packed: bytes, name: str) -> bytes:
    try:
        text = zlib.decompressobj().decompress(packed, TEXT_LIMIT_BYTES + 1)
    except zlib.error as error:
        raise InvalidInput("{} can't be read", "{}", "Fetch it again", name, error) from error
    if len(text) > TEXT_LIMIT_BYTES:
        raise InvalidInput("{} is not read", "a text in it expands to more than {} bytes", "Fetch it again", name, f"{TEXT_LIMIT_BYTES:,}")
    return text


def _skip(file: BinaryIO | io.BufferedIOBase, length: int) -> None:
    while length > 0 and (block := file.read(min(length, _BLOCK_BYTES))):
        length -= len(block)
