"""Where sentences end in Japanese and English text, and the chunks of a long memory, which end there and get a vector each. Every module
that splits text into sentences uses these patterns.

A short memory is never split. Chunks are measured in characters when a memory is written, and in the model's own tokens once a model is
available (`index/splitting.py`).
"""

import re
from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise

from memory_mcp.domain import Chunk
from memory_mcp.lexicon import words

# The characters of a chunk, and of the end of the previous one that it repeats.
CHUNK_CHARACTERS, OVERLAP_CHARACTERS = 2000, 200

# A full stop ends no sentence before a small letter, in "No. 5", and of a title or an abbreviation.
_ABBREVIATED = "".join(rf"(?<!(?<![A-Za-z]){re.escape(word)}[.])" for word in words("en", "abbreviations"))
# The end of a sentence or line, with the quotes, brackets and spaces that follow it.
_END = re.compile(rf"[。．！？!?]+[」』）)\"']*\s*|\n+|(?<=[.]){_ABBREVIATED}\s++(?![a-z]|(?<=(?<![A-Za-z])No[.]\s)[0-9])")
# Characters of a micro-summary.
LEAST, MOST = 50, 80
# Only this much of a long text is read for a line of 80 characters.
_READ_CHARACTERS = 2_000
# A shorter first sentence is a greeting, an answer or an interjection, and is skipped.
_FILLER_CHARACTERS = 10
_PAUSES = "、，,;；:： 　"


def sentence_ends(text: str) -> list[int]:
    """The offsets after each sentence or line, including the quotes, brackets and spaces that follow it."""
    return [match.end() for match in _END.finditer(text)]


def sentences_of(text: str) -> list[str]:
    """The sentences and lines of a text, without surrounding spaces."""
    ends = [0, *sentence_ends(text), len(text)]
    return [sentence for start, end in pairwise(ends) if (sentence := text[start:end].strip())]


def split(content: str, limit: int = CHUNK_CHARACTERS, overlap: int = OVERLAP_CHARACTERS) -> list[Chunk]:
    """Chunks of at most `limit` characters that end at sentence ends where possible.

    Each chunk starts at a sentence about `overlap` characters before the end of the previous one, so that a thought at a
    boundary is complete in one of them.
    """
    if len(content) <= limit:
        return [Chunk(0, len(content))]
    return [Chunk(start, end) for start, end in cut_at_ends(len(content), sentence_ends(content), limit, overlap)]


def cut_at_ends(length: int, ends: Sequence[int], limit: int, overlap: int) -> list[tuple[int, int]]:
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


def micro_summary(content: str) -> str:
    """The content as one line if it fits into 80 characters, otherwise 50 to 80 characters of its first meaningful sentences."""
    whole = _line(content[:_READ_CHARACTERS])
    if len(whole) <= MOST:
        return whole
    sentences = list(map(_line, sentences_of(content[:_READ_CHARACTERS])))
    first = next((index for index, line in enumerate(sentences) if len(line) >= _FILLER_CHARACTERS), 0)
    summary = ""
    for sentence in sentences[first:]:
        summary += f" {sentence}" if summary and summary[-1].isascii() else sentence
        if len(summary) >= LEAST:
            break
    return _shortened(summary if len(summary) >= LEAST else whole)


def _line(text: str) -> str:
    return " ".join(text.split())


def _shortened(line: str) -> str:
    """Cuts a line to 80 characters, at a pause if there is one after the first 50."""
    if len(line) <= MOST:
        return line
    kept = line[: MOST - 1]
    pause = max(kept.rfind(mark) for mark in _PAUSES)
    return (kept[:pause] if pause >= LEAST else kept).rstrip(_PAUSES) + "…"
