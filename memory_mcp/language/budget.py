"""What a text costs a model in tokens, estimated; and excerpts of a long text within such a budget: the sentences that contain the words of
a query, and those around them.
"""

import re
from bisect import bisect_right
from collections.abc import Sequence

from memory_mcp.language.kanji import with_usual_kanji
from memory_mcp.language.sentences import sentence_ends, split
from memory_mcp.language.tokens import is_single_kanji, normalise

LINE_OVERHEAD_TOKENS = 3
PREVIEW_CHARACTERS = 80

_WIDE = "\u1100-\u11ff\u2e80-\ua4cf\uac00-\ud7ff\uf900-\ufaff\ufe30-\ufe4f\uff00-\uffef\U00020000-\U0003ffff"
_WIDE_RUN, _TOKEN = re.compile(f"[{_WIDE}]+"), re.compile(rf"[{_WIDE}]|[^{_WIDE}]{{1,4}}")


def estimate_tokens(text: str) -> int:
    """Counts a quarter token per character and one per Japanese (or other wide) character: an upper estimate for current models."""
    wide = sum(map(len, _WIDE_RUN.findall(text)))
    return wide + -(-(len(text) - wide) // 4)


def line_cost(line: str) -> int:
    """The tokens of a line in a list, with its quotes and comma."""
    return estimate_tokens(line) + LINE_OVERHEAD_TOKENS


def estimated_spans(text: str) -> list[tuple[int, int]]:
    """The (start, end) of the tokens that `estimate_tokens` counts, for a model that doesn't report its own."""
    return [match.span() for match in _TOKEN.finditer(text)]


def cut_to_tokens(text: str, budget: int) -> str:
    """The longest prefix of `text` that costs at most `budget` tokens, with an ellipsis if it was cut."""
    if estimate_tokens(text) <= budget:
        return text
    fitting = bisect_right(range(1, len(text) + 1), budget - 1, key=lambda length: estimate_tokens(text[:length]))
    return text[:fitting].rstrip() + "…"


def preview(text: str, characters: int = PREVIEW_CHARACTERS) -> str:
    """One line of at most `characters` characters."""
    line = " ".join(text.split())
    return line if len(line) <= characters else line[: characters - 1] + "…"


Span = tuple[int, int]

WINDOW_CHARACTERS = 400
# A single kanji occurs in many unrelated words.
SINGLE_KANJI_WEIGHT = 0.3
TOKENS_LIMIT = 60


def best_window(text: str, words: Sequence[str], within: Span, characters: int = WINDOW_CHARACTERS) -> Span:
    """The window of the span `within` that contains most of `words` (lexical tokens); the whole span if none contains any."""
    begin, end = within
    wanted = [(_stem(word), SINGLE_KANJI_WEIGHT if is_single_kanji(word) else 1.0) for word in words[:TOKENS_LIMIT]]
    windows = [(begin + window.start, begin + window.end) for window in split(text[begin:end], characters, 0)]

    def weight(window: Span) -> float:
        content = with_usual_kanji(normalise(text[slice(*window)]))
        return sum(value for word, value in wanted if word in content)

    most, _, best = max((weight(window), -index, window) for index, window in enumerate(windows))
    return best if most else within


def excerpt(text: str, around: Span, budget: int, words: Sequence[str] = ()) -> str:
    """Cuts `text` to `budget` tokens: the span `around`, and as many whole sentences after and before it as fit. Ellipses mark cuts.

    If `around` alone exceeds the budget, the window of it with most of `words` is used, or its beginning.
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
    """Extends a span by the sentences after and before it in turn, until the next one doesn't fit."""
    # A character costs at least a quarter of a token, so nothing further away can fit.
    low, high = max(start - 4 * budget, 0), min(end + 4 * budget, len(text))
    ends = [low + offset for offset in sentence_ends(text[low:high])]
    after = [offset for offset in [*ends, high] if offset > end]
    before = [offset for offset in [low, *ends] if offset < start]
    growing = True
    while growing:
        growing = False
        if after and (cost := estimate_tokens(text[end : after[0]])) <= budget:
            end, budget, growing = after.pop(0), budget - cost, True
        if before and (cost := estimate_tokens(text[before[-1] : start])) <= budget:
            start, budget, growing = before.pop(), budget - cost, True
    return start, end


def _stem(word: str) -> str:
    """A word without its last letter, which stemming may have changed: studi matches study and studies."""
    return word[:-1] if len(word) > 4 and word.isascii() else word
