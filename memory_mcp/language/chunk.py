"""Splits a long memory into chunks that get a vector each; a short one is never split.

Chunks are measured in characters when a memory is written, and in the model's own tokens once a model is available. Both kinds end
at the ends of sentences.
"""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

from memory_mcp.domain import Chunk
from memory_mcp.language.sentences import sentence_ends

CHUNK_CHARACTERS = 2000
OVERLAP_CHARACTERS = 200


def split(content: str, limit: int = CHUNK_CHARACTERS, overlap: int = OVERLAP_CHARACTERS) -> list[Chunk]:
    """Chunks of at most `limit` characters that end at sentence ends where possible.

    Each chunk starts at a sentence about `overlap` characters before the end of the previous one, so that a thought at a
    boundary is complete in one of them.
    """
    if len(content) <= limit:
        return [Chunk(0, len(content))]
    return [Chunk(start, end) for start, end in _cut(len(content), sentence_ends(content), limit, overlap)]


def split_by_tokens(content: str, spans: Sequence[tuple[int, int]], limit: int, overlap: int) -> list[Chunk]:
    """As `split`, but measured in tokens, given their sorted (start, end) in the content. The chunks cover every character."""
    if len(spans) <= limit:
        return [Chunk(0, len(content))]
    # Several tokens may share a character, and spaces belong to none: characters between two tokens go to the earlier chunk.
    begins = list(accumulate((start for start, _ in spans), max))
    token_ends = list(accumulate((end for _, end in spans), max))
    ends = [bisect_right(token_ends, end) for end in sentence_ends(content)]
    offsets = [0, *begins[1:], len(content)]
    cuts = [(offsets[start], offsets[end]) for start, end in _cut(len(spans), ends, limit, overlap)]
    return [Chunk(start, end) for start, end in cuts if start < end]


def _cut(length: int, ends: Sequence[int], limit: int, overlap: int) -> list[tuple[int, int]]:
    """Divides `length` units into spans of at most `limit`, at one of the sorted `ends` if there is one in the second half of a span."""
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
    index = bisect_right(ends, high)
    return ends[index - 1] if index and ends[index - 1] >= low else None
