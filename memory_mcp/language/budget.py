"""Estimates how many tokens a text costs a model, and cuts texts to a token budget."""

import re

LINE_OVERHEAD_TOKENS = 3
PREVIEW_CHARACTERS = 80

_WIDE = re.compile("[\u1100-\u11ff\u2e80-\ua4cf\uac00-\ud7ff\uf900-\ufaff\ufe30-\ufe4f\uff00-\uffef\U00020000-\U0003ffff]")

_WIDE_RUN = re.compile(f"{_WIDE.pattern}+")
_TOKEN = re.compile(rf"{_WIDE.pattern}|[^{_WIDE.pattern[1:-1]}]{{1,4}}")


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
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        if estimate_tokens(text[:middle]) <= budget - 1:
            low = middle
        else:
            high = middle - 1
    return text[:low].rstrip() + "…"


def preview(text: str, characters: int = PREVIEW_CHARACTERS) -> str:
    """One line of at most `characters` characters."""
    line = " ".join(text.split())
    return line if len(line) <= characters else line[: characters - 1] + "…"
