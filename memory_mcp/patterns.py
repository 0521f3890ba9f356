"""Regular expressions for texts of any length: each repetition has an end, so that no place of a text is read again and again.

`re` tries a repetition from every place at which it may begin. One without an end reads the rest of the text from each: a text that is twice as
long takes four times as long, and with two of them in a row eight times.
"""

import re
from functools import partial

# Longer than what a rule of language looks for within a sentence.
LONGEST = 120

_PARTS = re.compile(
    r"(?s:\\.)|\[\^?\]?(?:\\.|[^\]\\])*+(?:\]|\Z)|\(\?|(?P<open>[*+]|\{(?P<least>\d+),\})(?P<kind>[?+]?)|\{\d*+(?:,\d*+)?\}[?+]?|\?[?+]?",
)


def with_ends(pattern: str, longest: int = LONGEST) -> str:
    """The same expression, in which what is repeated without an end is repeated `longest` times at most."""
    return _PARTS.sub(partial(_with_end, longest), pattern)


def bounded(pattern: str, flags: int = 0, *, longest: int = LONGEST) -> re.Pattern[str]:
    """The expression compiled, with an end to each repetition."""
    return re.compile(with_ends(pattern, longest), flags)


def _with_end(longest: int, part: re.Match[str]) -> str:
    if not part["open"]:
        return part[0]
    least = part["least"] or ("1" if part["open"] == "+" else "0")
    return f"{{{least},{max(longest, int(least))}}}{part['kind']}"
