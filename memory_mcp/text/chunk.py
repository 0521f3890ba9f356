"""Splitting a long memory into the pieces that get a vector each; a short one is never split."""

import re
from bisect import bisect_right

from memory_mcp.domain import Chunk

CHUNK_CHARACTERS = 2000
OVERLAP_CHARACTERS = 200

_SENTENCE_END = re.compile(r"[。．！？!?]+[」』）)\"']*\s*|\n+|(?<=[.])\s+")


def split(content: str, limit: int = CHUNK_CHARACTERS, overlap: int = OVERLAP_CHARACTERS) -> list[Chunk]:
    """Pieces of at most `limit` characters that end at sentence ends where there are any.

    Each piece after the first begins about `overlap` characters before the one before it ended, at a sentence start, so
    that a thought that spans a cut is whole in one of them.
    """
    if len(content) <= limit:
        return [Chunk(0, len(content))]
    ends = [match.end() for match in _SENTENCE_END.finditer(content)]
    chunks: list[Chunk] = []
    start = 0
    while len(content) - start > limit:
        end = _last_between(ends, start + limit // 2, start + limit) or start + limit
        chunks.append(Chunk(start, end))
        start = _last_between(ends, max(start + 1, end - overlap), end - 1) or end
    chunks.append(Chunk(start, len(content)))
    return chunks


def _last_between(ends: list[int], low: int, high: int) -> int | None:
    """The largest of the sorted `ends` in [low, high]."""
    place = bisect_right(ends, high)
    return ends[place - 1] if place and ends[place - 1] >= low else None
