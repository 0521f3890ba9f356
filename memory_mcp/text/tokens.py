"""Text to lexical tokens, and why they look like this.

Japanese has no spaces, and a memory is often one short sentence. A run of Japanese becomes its single kanji plus all
overlapping pairs of characters, so that 夕飯, 京都 and 苺 are found and a question shares pairs with the statement that
answers it; Latin words are stemmed. Measured against a morphological dictionary, trigrams and substring search on
Japanese memories: docs/decisions/0002-lexical-tokens.md.
"""

import re
import unicodedata
from collections.abc import Set
from functools import lru_cache

import snowballstemmer

from memory_mcp.characters import HAN, KANA

# Part of every index built from these tokens: raise it whenever `tokens` answers differently, and stores rebuild.
TOKENS_VERSION = "2"
QUERY_TOKENS_LIMIT = 300

_OTHER_UNSPACED = "\u0e00-\u0edf\u1000-\u109f\u1780-\u17ff\uac00-\ud7af"  # Thai, Lao, Burmese, Khmer, Hangul
UNSPACED = KANA + HAN + _OTHER_UNSPACED
_RUN = re.compile(
    rf"(?P<unspaced>[{UNSPACED}]+)"
    rf"|(?P<word>(?:(?![{UNSPACED}])[^\W_])+(?:'[a-z]+)*)"
    r"|(?P<symbol>[\U0001f000-\U0001faff\u2600-\u27bf])"
)
_KANJI = re.compile(f"[{HAN}]")
_MARKED = re.compile("([a-z])[\u0300-\u036f]+")

# English function words: they match everything and say nothing. Dropped from queries only, so that the index stays
# complete and this list can change without a rebuild.
_STOPWORDS = frozenset(
    "a an the and or but if of to in on at by for with about from into is are was were be been being am do does did doing "
    "have has had having i you he she it we they me him her us them my your his its our their this that these those what "
    "which who whom when where why how can could will would shall should may might must not no so than then there here "
    "as s t".split()
)

_stem = lru_cache(maxsize=65_536)(snowballstemmer.stemmer("english").stemWord)


def forget_stems() -> None:
    """Drops the words that were met: after a text was erased for good."""
    _stem.cache_clear()


def normalise(text: str) -> str:
    """NFKC and case-folded: full and half width, upper and lower case become one."""
    return unicodedata.normalize("NFKC", text).casefold().replace("\u2019", "'")


def tokens(text: str) -> list[str]:
    """The tokens of a stored text, in order, with repetitions."""
    return _tokens(text, drop=frozenset())


def query_tokens(text: str) -> list[str]:
    """The distinct tokens of a query, the first so many of a very long one. A query of nothing but function words keeps them."""
    found = _tokens(text, drop=_STOPWORDS) or _tokens(text, drop=frozenset())
    return list(dict.fromkeys(found))[:QUERY_TOKENS_LIMIT]


def is_single_kanji(token: str) -> bool:
    """Whether a token is one kanji: frequent, weak, and dispensable beside its pairs."""
    return len(token) == 1 and _KANJI.match(token) is not None


def jaccard(one: Set[str], other: Set[str]) -> float:
    """Shared tokens ÷ all tokens of both, 0 to 1 (Jaccard 1901)."""
    return len(one & other) / len(one | other) if one or other else 0.0


def _tokens(text: str, drop: frozenset[str]) -> list[str]:
    found: list[str] = []
    for run in _RUN.finditer(normalise(text)):
        if run.lastgroup == "unspaced":
            found += _pairs(run.group())
        elif run.group() not in drop:
            found.append(_stem(_unmarked(run.group())).replace("'", ""))
    return found


def _unmarked(word: str) -> str:
    """Café and cafe are one word. Only Latin letters: が is not か."""
    return word if word.isascii() else unicodedata.normalize("NFC", _MARKED.sub(r"\1", unicodedata.normalize("NFD", word)))


def _pairs(run: str) -> list[str]:
    if len(run) == 1:
        return [run]
    found: list[str] = []
    for place, character in enumerate(run):
        if _KANJI.match(character):
            found.append(character)
        if place + 1 < len(run):
            found.append(run[place : place + 2])
    return found
