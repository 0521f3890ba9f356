"""Other ways to write the words of a query: ケンカ as けんか, ごきぶり as ゴキブリ, wi fi as wifi, iPhone15 as iPhone 15, キロ as km.

Each is a phrase of tokens, all of which must follow each other: a pair of kana alone is in too many words. Katakana is a word by itself.
Words of hiragana can't be distinguished from grammar, so any three characters of it count.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from memory_mcp.characters import HIRAGANA
from memory_mcp.language.tokens import KATAKANA_WORD, LONGEST_WORD, UNSPACED, is_function_word, is_grammar, tokens
from memory_mcp.lexicon import mapping

HIRAGANA_WINDOW = 3
# The characters of a long query that are read, and its other spellings.
CHARACTERS_LIMIT, SPELLINGS_LIMIT = 1_000, 60

_HIRAGANA_RUN = re.compile(f"[{HIRAGANA}][{HIRAGANA}ー]{{{HIRAGANA_WINDOW - 1},}}")
# Words in Latin letters, and the names and numbers in one. So many may be written as one, of which one is short or a number.
_WORD, _PARTS = re.compile(rf"[^\W_{UNSPACED}]+(?:\.\d+)*"), re.compile(r"\d+(?:\.\d+)*|[^\W\d_]+")
MOST_WORDS, SHORT_WORD = 3, 3
_UNITS = {unit: tuple(names.split()) for unit, names in mapping("ja", "units").items()}
_UNITS_CALLED = {name: tuple(unit for unit, names in _UNITS.items() if name in names) for names in _UNITS.values() for name in names}
_UNIT = re.compile(rf"(?<![^\W\d_{UNSPACED}])(?:{'|'.join(_UNITS)})(?![^\W_{UNSPACED}])", re.IGNORECASE)
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


def to_hiragana(text: str) -> str:
    """The same text with its katakana as hiragana."""
    return text.translate(_TO_HIRAGANA)


def to_katakana(text: str) -> str:
    """The same text with its hiragana as katakana."""
    return text.translate(_TO_KATAKANA)


def _spellings(text: str) -> Iterator[Spelling]:
    yield from _words(text)
    for match in _UNIT.finditer(text):
        yield from (Spelling(*match.span(), _pairs(name)) for name in _UNITS[match.group().casefold()])
    for match in KATAKANA_WORD.finditer(text):
        yield from (Spelling(*match.span(), unit) for unit in _UNITS_CALLED.get(match.group(), ()))
        yield Spelling(*match.span(), _pairs(to_hiragana(match.group())))
    for match in _HIRAGANA_RUN.finditer(text):
        for start in range(match.start(), match.end() - HIRAGANA_WINDOW + 1):
            window = text[start : start + HIRAGANA_WINDOW]
            if not (is_grammar(window[:2]) or is_grammar(window[1:])):
                yield Spelling(start, start + HIRAGANA_WINDOW, _pairs(to_katakana(window)))


def _words(text: str) -> Iterator[Spelling]:
    """Words in a row as one, and a name with its number apart: iphone15 of iPhone 15, iphone 15 of iPhone15."""
    found = list(_WORD.finditer(text))
    for first, match in enumerate(found):
        for last in range(first + 1, min(first + MOST_WORDS, len(found))):
            start, end = match.start(), found[last].end()
            if text[found[last - 1].end() : found[last].start()] != " ":
                break
            if _may_be_one(words := text[start:end].split(" ")):
                yield Spelling(start, end, tokens("".join(words))[-1])
        parts = _PARTS.findall(match.group())
        if 1 < len(parts) <= MOST_WORDS:
            yield Spelling(*match.span(), " ".join(tokens(" ".join(parts))))


def _may_be_one(words: Sequence[str]) -> bool:
    joined, is_short = "".join(words), len(words) == 2 and min(map(len, words)) <= SHORT_WORD
    is_word = len(joined) <= LONGEST_WORD and not joined.isdecimal() and not any(map(is_function_word, words))
    return is_word and (is_short or any(map(str.isdecimal, joined)))


def _pairs(kana: str) -> str:
    return " ".join(kana[index : index + 2] for index in range(len(kana) - 1))
