"""The part of a long text that a reader wants: where the words of a question are, and what stands around it, in whole sentences."""

from collections.abc import Sequence

from memory_mcp.text.budget import cut_to_tokens, estimate_tokens
from memory_mcp.text.chunk import sentence_ends, split
from memory_mcp.text.tokens import is_single_kanji, normalise

Span = tuple[int, int]

WINDOW_CHARACTERS = 400
# A kanji by itself is in many words that have nothing to do with each other.
SINGLE_KANJI_WEIGHT = 0.3
TOKENS_LOOKED_FOR = 60


def best_window(text: str, words: Sequence[str], within: Span, characters: int = WINDOW_CHARACTERS) -> Span:
    """Of a part of a text the few sentences that have most of the words, which are lexical tokens; the whole part if none has any."""
    begin, end = within
    wanted = [(_stem(word), SINGLE_KANJI_WEIGHT if is_single_kanji(word) else 1.0) for word in words[:TOKENS_LOOKED_FOR]]
    windows = [(begin + window.start, begin + window.end) for window in split(text[begin:end], characters, 0)]

    def weight(window: Span) -> float:
        said = normalise(text[slice(*window)])
        return sum(value for word, value in wanted if word in said)

    most, _, best = max((weight(window), -place, window) for place, window in enumerate(windows))
    return best if most else within


def excerpt(text: str, around: Span, budget: int, words: Sequence[str] = ()) -> str:
    """What of `text` costs at most `budget` tokens: `around`, and as many whole sentences after and before it as fit. Ellipses mark cuts.

    Of an `around` that costs more itself that is shown which has most of `words`, else its beginning.
    """
    if estimate_tokens(text) <= budget:
        return text
    room = budget - 2  # an ellipsis at each end
    if estimate_tokens(text[slice(*around)]) > room > 0:
        around = best_window(text, words, around, room)  # no character costs more than a token
    start, end = around
    left = room - estimate_tokens(text[start:end])
    if left < 0:
        return ("…" if start else "") + cut_to_tokens(text[start:], max(budget - 1, 1))
    start, end = _widened(text, start, end, left)
    return ("…" if start else "") + text[start:end].strip() + ("…" if end < len(text) else "")


def _widened(text: str, start: int, end: int, budget: int) -> Span:
    """The same with the sentences around it, one after and one before in turn, until the next would not fit."""
    # No character costs less than a quarter of a token: further away nothing can fit.
    low, high = max(start - 4 * budget, 0), min(end + 4 * budget, len(text))
    ends = [low + place for place in sentence_ends(text[low:high])]
    after = [place for place in [*ends, high] if place > end]
    before = [place for place in [low, *ends] if place < start]
    growing = True
    while growing:
        growing = False
        if after and (cost := estimate_tokens(text[end : after[0]])) <= budget:
            end, budget, growing = after.pop(0), budget - cost, True
        if before and (cost := estimate_tokens(text[before[-1] : start])) <= budget:
            start, budget, growing = before.pop(), budget - cost, True
    return start, end


def _stem(word: str) -> str:
    """A word without its last letter, as far as stemming may have changed it: studi is in study and studies."""
    return word[:-1] if len(word) > 4 and word.isascii() else word
