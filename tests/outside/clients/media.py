"""The smallest picture and the smallest sound that are valid."""

import base64
import io
import struct
import wave
import zlib


def base64_of(content: bytes) -> str:
    return base64.b64encode(content).decode()


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def _one_red_pixel() -> bytes:
    header = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    row = b"\x00\xff\x00\x00"
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header) + _chunk(b"IDAT", zlib.compress(row)) + _chunk(b"IEND", b"")


def _one_silent_sample() -> bytes:
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(8000)
        sound.writeframes(b"\x00\x00")
    return file.getvalue()


PNG = _one_red_pixel()
WAV = _one_silent_sample()
