"""What a text may have instead of a word of a query: words that mean the same, in Japanese and English (結婚式 for "wedding", 忘年会 beside
飲み会, おちゃ for お茶).

The dictionaries are groups of words (dictionaries/README.md). They are read at the first query; without them there are no synonyms. A synonym
is a phrase of tokens, all of which must follow each other: a pair of kana alone is in too many words.
"""

import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import chain, islice, zip_longest

import numpy as np

from memory_mcp.characters import HAN, HIRAGANA, KATAKANA, is_japanese
from memory_mcp.language.kanji import DIRECTORY
from memory_mcp.language.tokens import (
    is_grammar,
    is_single_kanji,
    normalise,
    query_phrases,
    query_tokens,
    tokens,
)
from memory_mcp.lexicon import words

# The synonyms of one word, and the words of one query that have some.
SYNONYMS_LIMIT, WORDS_LIMIT = 20, 12
# The characters of a long query that are read, and of a Japanese word.
CHARACTERS_LIMIT, LONGEST = 300, 10

_MARKS, _READ_AT_ONCE = 1 << 20, 1 << 15
FILES = ("jmdict.tsv", "sudachi.tsv", "polite.tsv")
# Stands before a word that is found by the others of its group, but mostly means something else.
_ONLY_FOUND = "-"
_RUN, _KANJI, _KATAKANA = (re.compile(f"[{script}]+") for script in (HIRAGANA + KATAKANA + HAN, HAN, KATAKANA))
# A word such as おかし is none in おかしい. What may follow one in hiragana.
_POLITE_PREFIXES, _AFTER_POLITE = tuple(words("ja", "polite_prefixes")), "".join(words("ja", "particles")) + "だでさっじな"
_HIRAGANA = re.compile(f"[{HIRAGANA}]+")


@dataclass(frozen=True, slots=True)
class Synonyms:
    """A word of a query and those that mean the same, each as a phrase of tokens. Such a phrase counts as `times` tokens."""

    word: str
    others: Sequence[str]
    times: int


def synonyms(query: str) -> list[Synonyms]:
    """The synonyms of the words of a query, at most `SYNONYMS_LIMIT` of each of its first `WORDS_LIMIT` words that have some."""
    dictionary = _dictionary()
    return list(islice(_found(dictionary, query[:CHARACTERS_LIMIT]), WORDS_LIMIT)) if dictionary else []


def is_word(text: str) -> bool:
    """True if the dictionaries have a word, a Japanese one as written, an English one in any of its forms: it is hardly a name then."""
    dictionary = _dictionary()
    return dictionary is not None and (normalise(text) if is_japanese(text) else phrase_as_written(text)) in dictionary


class _Dictionary:
    """The groups as they are in the files, and where those of a word begin, by the hash of the word: 5 MB instead of 20."""

    def __init__(self, text: bytes) -> None:
        self._text = text
        hashes = np.fromiter(map(hash, chain.from_iterable(_words_of(text))), np.int64)
        characters = np.frombuffer(text, np.uint8)
        starts = np.concatenate([[0], np.flatnonzero(characters <= ord("\n"))[:-1] + 1])
        begins = np.maximum.accumulate(np.where(characters[starts - 1] == ord("\n"), starts, 0)).astype(np.int32)
        is_looked_for = characters[starts] != ord(_ONLY_FOUND)
        hashes, begins = hashes[is_looked_for], begins[is_looked_for]
        order = np.argsort(hashes, kind="stable")
        self._hashes = array("q", hashes[order].tobytes())
        self._starts = array("i", begins[order].tobytes())
        # By the last bits of the hashes: six of seven words that are unknown need no search.
        marks = np.zeros(_MARKS, np.bool_)
        marks[hashes % _MARKS] = True
        self._marks = marks.tobytes()

    def __contains__(self, word: str) -> bool:
        return bool(self._marks[(hashed := hash(word)) % _MARKS]) and self._has(hashed)

    def _has(self, hashed: int) -> bool:
        at = bisect_left(self._hashes, hashed)
        return at < len(self._hashes) and self._hashes[at] == hashed

    def words_at(self, text: str, start: int, limit: int) -> list[int]:
        """The ends, up to `limit`, of the words that begin here, the longest first."""
        marks = self._marks  # twice as fast as `in` for each
        return [end for end in range(limit, start, -1) if marks[(hashed := hash(text[start:end])) % _MARKS] and self._has(hashed)]

    def others(self, word: str) -> list[str]:
        """The other words of the groups of a word: the first of each, then the second of each, and so on."""
        first, last = (bisect(self._hashes, hash(word)) for bisect in (bisect_left, bisect_right))
        groups = [self._text[start : self._text.index(b"\n", start)].decode().split("\t") for start in self._starts[first:last]]
        in_turn = (other.removeprefix(_ONLY_FOUND) for others in zip_longest(*groups) for other in others if other)
        others = (other for other in dict.fromkeys(in_turn) if other != word)
        # Two katakana would also be found as a part of other words: カー for 車 in カード. For an English word they may be the only one.
        return [other for other in others if not (is_japanese(word) and len(other) == 2 and _KATAKANA.fullmatch(other))]


def _words_of(text: bytes) -> Iterator[list[str]]:
    """The words of all groups, some lines at a time: all at once they would take twice as much memory as what stays, and as long as all
    else that a dictionary needs."""
    start = 0
    while start < len(text):
        end = text.index(b"\n", min(start + _READ_AT_ONCE, len(text) - 1))
        yield text[start:end].decode().replace("\n", "\t").split("\t")
        start = end + 1


@cache
def _dictionary() -> _Dictionary | None:
    text = b"".join((DIRECTORY / name).read_bytes().replace(b"\r\n", b"\n") for name in FILES if (DIRECTORY / name).is_file())
    own = "".join("\t".join(group.split()) + "\n" for group in words("ja", "same"))
    return _Dictionary(text + own.encode()) if text else None


def _found(dictionary: _Dictionary, query: str) -> Iterator[Synonyms]:
    plain = normalise(query)
    is_all_japanese = not any(map(str.isalnum, _RUN.sub("", plain)))
    for word in dict.fromkeys([*_japanese(dictionary, plain), *(() if is_all_japanese else _english(dictionary, query))]):
        known = _of_word(word)
        if known.others:
            yield known


@lru_cache(maxsize=4_096)
def _of_word(word: str) -> Synonyms:
    """The synonyms of a word of the dictionary."""
    dictionary, own = _dictionary(), phrase_of(word)
    others: dict[str, None] = {}
    for phrase in map(phrase_of, dictionary.others(word) if dictionary else ()):
        # For a verb such as 飼う another's kanji, 保 of 保つ, would also be found in 保険.
        if phrase and phrase != own and not (is_single_kanji(own) and is_single_kanji(phrase)):
            others[phrase] = None
        if len(others) == SYNONYMS_LIMIT:
            break
    return Synonyms(own, tuple(others), max(len(own.split()) - 1, 1))


def phrase_of(word: str) -> str:
    """The tokens of a word in a row, without the single kanji at its ends, which the pairs beside them imply."""
    if not _RUN.match(word):
        return word
    found = tokens(word)
    pairs = [index for index, token in enumerate(found) if len(token) > 1]
    return " ".join(found[pairs[0] : pairs[-1] + 1] if pairs else found)


def phrase_as_written(word: str) -> str:
    """The same of a word as a text has it: an English one is not yet a stem."""
    return phrase_of(word) if is_japanese(word) else " ".join(tokens(word))


def _english(dictionary: _Dictionary, query: str) -> list[str]:
    """The known words, as tokens, and pairs of words instead of their parts."""
    words = [token for token in query_tokens(query) if not _RUN.match(token)]
    together = query_phrases(query)
    known = [phrase for phrase in together if phrase in dictionary]
    parts = {word for phrase in known for word in phrase.split()}
    return [*known, *(word for word in words if word not in parts and word in dictionary)]


def _japanese(dictionary: _Dictionary, text: str) -> Iterator[str]:
    """The longest known words, from left to right."""
    for run in _RUN.finditer(text):
        start = run.start()
        while start < run.end():
            ends = dictionary.words_at(text, start, min(start + LONGEST, run.end()))
            end = next((end for end in ends if _is_word(text, start, end)), None)
            if end:
                yield text[start:end]
            elif within := _KATAKANA.match(text, start):  # a part of another word
                end = within.end()
            start = end or start + 1


def _is_word(text: str, start: int, end: int) -> bool:
    """True if a known word may be one there: a single kanji has no kanji beside it, and grammar is none."""
    if end - start == 1:
        return not (_KANJI.match(text, start - 1) if start else None) and not _KANJI.match(text, end)
    is_polite = text.startswith(_POLITE_PREFIXES, start) and _HIRAGANA.fullmatch(text, start, end)
    if is_polite and _HIRAGANA.match(text, end) and text[end] not in _AFTER_POLITE:
        return False
    return not all(map(is_grammar, tokens(text[start:end])))


# Other scripts.

_TO_KATAKANA = {code: code + 0x60 for code in range(0x3041, 0x3097)}
_TO_HIRAGANA = {katakana: hiragana for hiragana, katakana in _TO_KATAKANA.items()}


@dataclass(frozen=True, slots=True)
class Spelling:
    """Another writing of the characters from `start` to `end` of a text, as tokens in a row."""

    start: int
    end: int
    phrase: str


def to_hiragana(text: str) -> str:
    """The same text with its katakana as hiragana."""
    return text.translate(_TO_HIRAGANA)


def to_katakana(text: str) -> str:
    """The same text with its hiragana as katakana."""
    return text.translate(_TO_KATAKANA)
