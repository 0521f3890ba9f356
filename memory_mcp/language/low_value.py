"""Recognizes low-value texts: greetings, acknowledgements, error dumps, fragments. The result is computed on demand, never stored.

Such a memory is kept and can be recalled like any other; it is only left out of what the server selects by itself: the
latest memories of `get_context`, summaries, merge proposals. In doubt, a text is not of low value.
"""

import re
from collections.abc import Set
from itertools import takewhile
from typing import Literal

from memory_mcp.language.tokens import is_unspaced, normalise
from memory_mcp.lexicon import words

LowValue = Literal["greeting", "nod", "error_dump", "too_short", "no_words", "repetition"]

LEAST_LETTERS, LEAST_UNSPACED_LETTERS = 4, 2
# A longer text is not just a greeting, even if it begins with one.
PHRASES_LIMIT = 120
REPETITION_LETTERS = 12

_NOT_LETTERS, _LENGTHENED = re.compile(r"[\W_]+"), str.maketrans("~〜", "ーー")


def _squeezed(normal: str) -> str:
    """Only the letters and digits of a normalized text, with lengthened vowels unified."""
    letters = _NOT_LETTERS.sub("", normal.translate(_LENGTHENED))
    return re.sub("ー+", "ー", letters) if "ーー" in letters else letters


_GREETINGS, _NODS = (
    frozenset(_squeezed(normalise(phrase)) for language in ("ja", "en") for phrase in words(language, table))
    for table in ("greetings", "nods")
)
_EITHER = _GREETINGS | _NODS
_LONGEST = max(map(len, _EITHER))
_BY_FIRST_LETTER = {letter: tuple(phrase for phrase in _EITHER if phrase[0] == letter) for letter in {phrase[0] for phrase in _EITHER}}
# What may follow a phrase: おはよーっ, うんうん, okw.
_ENDINGS, _ENDINGS_LIMIT = frozenset("ーっねよですまwh笑"), 3
# The addressee of a greeting: 「おはよう、ニィロウさん」, "Hello, Nilou!".
_ADDRESSEE = re.compile(r"(?<![、,，\s])[、,，\s]++[^、,，。\s\d]{1,12}?(?:さん|ちゃん|くん|君|様)?\s*+[!！。.〜~ー♪]*+\s*+$")

_TRACE_LINES = re.compile(rf"^[^\S\n]*+(?:{'|'.join(words('en', 'trace_lines'))})", re.MULTILINE)


def low_value(text: str, normal: str | None = None) -> LowValue | None:
    """The reason why a text is of low value; None if it may be worth showing. `normal`: the normalized text, if the caller has it."""
    squeezed = _squeezed(normalise(text) if normal is None else normal)
    if not any(letter.isalnum() for letter in squeezed):
        return "no_words"
    if _is_dump(text):
        return "error_dump"
    if squeezed.startswith(_BY_FIRST_LETTER.get(squeezed[0], ())) and len(text) <= PHRASES_LIMIT:
        addressed = _ADDRESSEE.sub("", text.strip())
        if _consists_of(_NODS, squeezed) and not _consists_of(_GREETINGS, squeezed):
            return "nod"
        if _consists_of(_EITHER, squeezed) or (addressed != text.strip() and _consists_of(_GREETINGS, _squeezed(normalise(addressed)))):
            return "greeting"
    return "repetition" if _is_repetition(squeezed) else "too_short" if _is_short(squeezed) else None


def _consists_of(phrases: Set[str], squeezed: str) -> bool:
    """True if a text consists only of phrases and their endings. A regular expression would backtrack exponentially: both え and ええ
    are phrases, so that sixty え can be divided in about 10¹² ways."""
    reached = {0}
    for start in range(len(squeezed)):
        ends = range(start + 1, min(start + _LONGEST, len(squeezed)) + 1) if start in reached else ()
        for end in (end for end in ends if squeezed[start:end] in phrases):
            following = takewhile(_ENDINGS.__contains__, squeezed[end : end + _ENDINGS_LIMIT])
            reached.update(range(end, end + 1 + sum(1 for _ in following)))
    return bool(squeezed) and len(squeezed) in reached


def _is_dump(text: str) -> bool:
    """True if the text begins with a line of a stack trace, and half of its lines or more are trace or indented lines."""
    if not _TRACE_LINES.match(text.lstrip()):
        return False
    lines = [line for line in text.splitlines() if line.strip()]
    traces = sum(_TRACE_LINES.match(line) is not None for line in lines)
    return 2 * traces + sum(line[:1].isspace() for line in lines) >= len(lines)


def _is_repetition(squeezed: str) -> bool:
    """True if a few characters are repeated: ｗｗｗｗ, あああああ, test test test."""
    length = len(squeezed)
    different = len(set(squeezed)) if len(set(squeezed[:REPETITION_LETTERS])) <= 6 else length  # nearly every text
    periods = (period for period in range(1, 7) if length >= 4 * period and squeezed == (squeezed[:period] * length)[:length])
    return (length > LEAST_LETTERS and different <= 2) or (length >= REPETITION_LETTERS and any(length % period == 0 for period in periods))


def _is_short(squeezed: str) -> bool:
    """True if the text is too short for a fact: one character in Japanese, three in Latin script, three digits."""
    if squeezed.isdigit():
        return len(squeezed) < LEAST_LETTERS
    return len(squeezed) < (LEAST_UNSPACED_LETTERS if any(map(is_unspaced, squeezed)) else LEAST_LETTERS)
