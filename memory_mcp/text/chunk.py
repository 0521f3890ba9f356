"""Splitting a long memory into the pieces that get a vector each; a short one is never split.

By characters when it is written, and by a model's own tokens when one is there; both end at the ends of sentences.
"""

import re
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

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
    return [Chunk(start, end) for start, end in _cut(len(content), sentence_ends(content), limit, overlap)]


def split_by_tokens(content: str, spans: Sequence[tuple[int, int]], limit: int, overlap: int) -> list[Chunk]:
    """The same by tokens, whose places in the content are `spans`, in order. Together the pieces have every character of it."""
    if len(spans) <= limit:
        return [Chunk(0, len(content))]
    # Several tokens may stand for one character, and blanks be part of none: what is between two tokens goes to the earlier piece.
    begins = list(accumulate((start for start, _ in spans), max))
    token_ends = list(accumulate((end for _, end in spans), max))
    ends = [bisect_right(token_ends, end) for end in sentence_ends(content)]
    places = [0, *begins[1:], len(content)]
    cuts = [(places[start], places[end]) for start, end in _cut(len(spans), ends, limit, overlap)]
    return [Chunk(start, end) for start, end in cuts if start < end]


def sentence_ends(content: str) -> list[int]:
    """Where sentences, lines and what follows them in blanks and brackets are over, in order."""
    return [match.end() for match in _SENTENCE_END.finditer(content)]


def _cut(length: int, ends: Sequence[int], limit: int, overlap: int) -> list[tuple[int, int]]:
    """`length` units in pieces of at most `limit`, cut at the sorted `ends` where there is one in the second half of a piece."""
    pieces: list[tuple[int, int]] = []
    start = 0
    while length - start > limit:
        end = _last_between(ends, start + limit // 2, start + limit) or start + limit
        pieces.append((start, end))
        start = _last_between(ends, max(start + 1, end - overlap), end - 1) or end
    pieces.append((start, length))
    return pieces


def _last_between(ends: Sequence[int], low: int, high: int) -> int | None:
    """The largest of the sorted `ends` in [low, high]."""
    place = bisect_right(ends, high)
    return ends[place - 1] if place and ends[place - 1] >= low else None
