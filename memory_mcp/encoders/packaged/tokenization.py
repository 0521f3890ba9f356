"""Splits a text into the model's tokens: the most likely sequence of pieces (SentencePiece's unigram model).

In Python, because the tokenizers library would take 250 MB for 250,000 pieces, and this takes a small part of the model's time. No piece
goes beyond the end of a word, so that words are split one by one, and frequent ones from memory.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from memory_mcp.encoders.packaged.model_file import Vocabulary

SPACE = "\u2581"  # what the pieces have instead of a space
_WORD = re.compile(f"{SPACE}[^{SPACE}]*")
_SPACES = re.compile(" +")
_UNKNOWN_PENALTY = 10.0  # as in SentencePiece
_CACHED_WORDS = 20_000
_CACHED_CHARACTERS = 16  # longer ones, such as Japanese sentences, hardly come twice


class PieceTokenizer:
    """The tokens of a text. Thread-safe."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._scores = vocabulary.scores
        self._ids = {piece: number for number, piece in enumerate(vocabulary.pieces) if piece and number != vocabulary.unknown}
        self._longest: dict[str, int] = {}  # the longest piece that begins with these two characters
        for piece in self._ids:
            self._longest[piece[:2]] = max(self._longest.get(piece[:2], 1), len(piece))
        self._unknown = vocabulary.unknown
        self._unknown_score = min(self._scores) - _UNKNOWN_PENALTY
        self._replacements = vocabulary.replacements
        self._cached_pieces = lru_cache(_CACHED_WORDS)(self._pieces)

    def ids(self, text: str) -> list[int]:
        """The ids of the tokens, without special ones."""
        normalized = _SPACES.sub(SPACE, text.translate(self._replacements))
        return (
            [number for _, number in self._tokens(normalized if normalized.startswith(SPACE) else SPACE + normalized)] if normalized else []
        )

    def spans(self, text: str) -> Sequence[tuple[int, int]]:
        """(start, end) of each token in the text."""
        read = [
            (character, offset) for offset, original in enumerate(text) for character in self._replacements.get(ord(original), original)
        ]
        kept = [pair for index, pair in enumerate(read) if pair[0] != " " or not index or read[index - 1][0] != " "]
        normalized = "".join(character for character, _ in kept).replace(" ", SPACE)
        offsets = [offset for _, offset in kept]
        if normalized and normalized[0] != SPACE:
            normalized, offsets = SPACE + normalized, [0, *offsets]
        spans: list[tuple[int, int]] = []
        start = 0
        for length, _ in self._tokens(normalized):
            spans.append((offsets[start], offsets[start + length - 1] + 1))
            start += length
        return spans

    def _tokens(self, normalized: str) -> Iterator[tuple[int, int]]:
        """(length, id) of each token of a text that begins with a space."""
        for word in _WORD.findall(normalized):
            yield from self._cached_pieces(word) if len(word) <= _CACHED_CHARACTERS else self._pieces(word)

    def _pieces(self, word: str) -> tuple[tuple[int, int], ...]:
        """(length, id) of the most likely pieces, found from the left by the best sequence that ends at each character."""
        ids, scores, longest, length = self._ids, self._scores, self._longest, len(word)
        best = [0.0, *[float("-inf")] * length]
        last = [(1, self._unknown)] * (length + 1)  # the last piece of the best sequence
        for start in range(length):
            reached = best[start]
            if reached + self._unknown_score > best[start + 1]:
                best[start + 1], last[start + 1] = reached + self._unknown_score, (1, self._unknown)
            for size in range(1, min(length - start, longest.get(word[start : start + 2], 1)) + 1):
                number = ids.get(word[start : start + size])
                if number is not None and reached + scores[number] > best[start + size]:
                    best[start + size], last[start + size] = reached + scores[number], (size, number)
        pieces: list[tuple[int, int]] = []
        while length:
            pieces.append(last[length])
            length -= last[length][0]
        return tuple(reversed(pieces))
