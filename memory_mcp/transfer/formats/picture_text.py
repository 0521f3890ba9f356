"""Reads the texts of pictures in which character cards come: of a PNG file (also an animated one), and the comment in the EXIF data of a WebP file.

The picture itself is not decoded, and nothing is expanded beyond a limit.
"""

import io
import zlib
from collections.abc import Iterator
from typing import BinaryIO, Literal

from memory_mcp.errors import InvalidInput

SIGNATURE = b"\x89PNG\r\n\x1a\n"
TEXT_LIMIT_BYTES = 16 * 1024**2
FILE_LIMIT_BYTES = 256 * 1024**2
CHUNKS_LIMIT = 100_000
_BLOCK_BYTES = 1024 * 1024
# What a picture is recognized by: twelve bytes, of which a WebP file has its length in the middle.
HEAD_BYTES = 12
# Tags of EXIF: where the further ones are, and the comment, behind eight bytes for its encoding.
_EXIF_TAGS, _USER_COMMENT, _ENCODING_BYTES = 0x8769, 0x9286, 8
_TAGS_LIMIT = 1_000


def is_picture(head: bytes) -> bool:
    """Whether a file that begins like this is one that may have a text."""
    return head.startswith(SIGNATURE) or (head[:4], head[8:HEAD_BYTES]) == (b"RIFF", b"WEBP")


def texts(file: BinaryIO | io.BufferedIOBase, name: str, wanted: frozenset[bytes]) -> dict[bytes, bytes]:
    """The first text of each wanted keyword, as it is in the chunks tEXt, zTXt and iTXt of a PNG file; the comment of a WebP file stands for all of them.

    Raises:
        InvalidInput: it is neither, or it takes more than the limits.
    """
    head = file.read(HEAD_BYTES)
    if not is_picture(head):
        raise InvalidInput("{} is no PNG or WebP file", "", "Fetch it again", name)
    if not head.startswith(SIGNATURE):
        comment = _comment(file, name)
        return dict.fromkeys(wanted, comment) if comment else {}
    file.seek(len(SIGNATURE))
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


def _comment(file: BinaryIO | io.BufferedIOBase, name: str) -> bytes:
    """The user's comment in the EXIF data of a WebP file; empty without one."""
    size = 0
    for _ in range(CHUNKS_LIMIT):
        head = file.read(8)
        length = int.from_bytes(head[4:], "little")
        size += length
        if len(head) < 8:
            return b""
        if size > FILE_LIMIT_BYTES:
            break
        if head[:4] == b"EXIF" and length <= TEXT_LIMIT_BYTES:
            return _comment_in(file.read(length).removeprefix(b"Exif\0\0"))
        _skip(file, length + length % 2)
    raise InvalidInput("{} is not read", "it is larger than a picture with a card", "Fetch it again", name)


def _comment_in(exif: bytes) -> bytes:
    order: Literal["little", "big"] = "little" if exif.startswith(b"II") else "big"
    tags = dict(_tags(exif, int.from_bytes(exif[4:8], order), order))
    further, _ = tags.get(_EXIF_TAGS, (0, 0))
    start, length = {**tags, **dict(_tags(exif, further, order))}.get(_USER_COMMENT, (0, 0))
    encoding, text = exif[start : start + _ENCODING_BYTES], exif[start + _ENCODING_BYTES : start + length]
    if encoding == b"UNICODE\0":
        return text.decode("utf-16-le" if order == "little" else "utf-16-be", "replace").encode()
    return text


def _tags(exif: bytes, at: int, order: Literal["little", "big"]) -> Iterator[tuple[int, tuple[int, int]]]:
    """Each tag of a directory of EXIF with its value, where what is long begins, and how many there are of it."""
    for number in range(min(int.from_bytes(exif[at : at + 2], order), _TAGS_LIMIT) if at else 0):
        entry = exif[at + 2 + 12 * number : at + 14 + 12 * number]
        yield int.from_bytes(entry[:2], order), (int.from_bytes(entry[8:], order), int.from_bytes(entry[4:8], order))


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
