"""Other ways to write the words of a query: ケンカ as けんか, ごきぶり as ゴキブリ, wi fi as wifi, iPhone15 as iPhone 15.

Each is a phrase of tokens, all of which must follow each other: a pair of kana alone is in too many words. Katakana is a word by itself. Words of
hiragana can't be distinguished from grammar, so any three characters of it count.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from memory_mcp.characters import HIRAGANA, KATAKANA
from memory_mcp.language.tokens import LONGEST_KATAKANA, LONGEST_WORD, UNSPACED, is_function_word, is_grammar, tokens

HIRAGANA_WINDOW = 3
# The characters of a long query that are read, and its other spellings.
CHARACTERS_LIMIT, SPELLINGS_LIMIT = 1_000, 60

_KATAKANA_WORD = re.compile(f"[{KATAKANA}]{{2,{LONGEST_KATAKANA}}}")
_HIRAGANA_RUN = re.compile(f"[{HIRAGANA}][{HIRAGANA}ー]{{{HIRAGANA_WINDOW - 1},}}")
# Two words that may be one: one of them is short or a number.
_TWO_WORDS = re.compile(
    rf"(?<![^\W{UNSPACED}])(?=([^\W_{UNSPACED}]{{1,{LONGEST_WORD}}}) ([^\W_{UNSPACED}]{{1,{LONGEST_WORD}}})(?![^\W{UNSPACED}]))"
)
_SHORT_WORD = 3
# A name and its number, written as one word.
_WITH_NUMBER = re.compile(
    rf"(?<![^\W{UNSPACED}])([^\W\d_{UNSPACED}]{{2,{LONGEST_WORD}}})(\d{{1,9}}(?:\.\d{{1,9}}){{0,3}})(?![^\W{UNSPACED}])"
)
_TO_KATAKANA = {code: code + 0x60 for code in range(0x3041, 0x3097)}
_TO_HIRAGANA = {katakana: hiragana for hiragana, katakana in _TO_KATAKANA.items()}


@dataclass(frozen=True, slots=True)
class Spelling:
    """Another writing of the characters from `start` to `end` of a text, as tokens in a row."""

    start: int
    end: int
    phrase: str


def other_spellings(text: str) -> list[Spelling]:
    """The other spellings of a query in normalized width, each phrase once, at most `SPELLINGS_LIMIT`."""
    by_phrase = {spelling.phrase: spelling for spelling in _spellings(text[:CHARACTERS_LIMIT])}
    return list(islice(by_phrase.values(), SPELLINGS_LIMIT))


def spelled_otherwise(query: str) -> list[str]:
    """The phrases of the other spellings of a query."""
    return [spelling.phrase for spelling in other_spellings(unicodedata.normalize("NFKC", query))]


def to_hiragana(text: str) -> str:
    """The same text with its katakana as hiragana."""
    return text.translate(_TO_HIRAGANA)


def to_katakana(text: str) -> str:
    """The same text with its hiragana as katakana."""
    return text.translate(_TO_KATAKANA)


def _spellings(text: str) -> Iterator[Spelling]:
    yield from _words(text)
    for match in _KATAKANA_WORD.finditer(text):
        yield Spelling(*match.span(), _pairs(to_hiragana(match.group())))
    for match in _HIRAGANA_RUN.finditer(text):
        for start in range(match.start(), match.end() - HIRAGANA_WINDOW + 1):
            window = text[start : start + HIRAGANA_WINDOW]
            if not (is_grammar(window[:2]) or is_grammar(window[1:])):
                yield Spelling(start, start + HIRAGANA_WINDOW, _pairs(to_katakana(window)))


def _words(text: str) -> Iterator[Spelling]:
    """Two words as one, and a name with its number as two."""
    for match in _TWO_WORDS.finditer(text):
        first, second = match.groups()
        is_one = min(len(first), len(second)) <= _SHORT_WORD or first[-1:].isdecimal() or second[:1].isdecimal()
        if is_one and not (first + second).isdecimal() and not (is_function_word(first) or is_function_word(second)):
            yield Spelling(match.start(1), match.end(2), " ".join(tokens(first + second)[-1:]))
    for match in _WITH_NUMBER.finditer(text):
        yield Spelling(*match.span(), " ".join(tokens(f"{match[1]} {match[2]}")))


def _pairs(kana: str) -> str:
    return " ".join(kana[index : index + 2] for index in range(len(kana) - 1))
