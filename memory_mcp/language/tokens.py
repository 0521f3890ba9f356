"""Converts text to the tokens of the lexical index.

Japanese has no spaces, and a memory is often one short sentence. A run of Japanese becomes its single kanji plus all overlapping pairs of
characters, so that 夕飯, 京都 and 苺 are found and a question shares pairs with the statement that answers it; Latin words are stemmed, and
signs between and around letters belong to a word: Wi-Fi is also wifi, and C++ is not C. Measured against a morphological dictionary,
trigrams and substring search on Japanese memories: docs/decisions/0002-lexical-tokens.md.
"""

import operator
import re
import threading
import unicodedata
from collections.abc import Iterable, Iterator, Sequence, Set
from functools import lru_cache
from itertools import chain, islice, pairwise
from typing import NamedTuple

import snowballstemmer

from memory_mcp.characters import HAN, HIRAGANA, KANA, KATAKANA
from memory_mcp.language.kanji import with_usual_kanji
from memory_mcp.lexicon import mapping, words

# Part of the version of every index built from these tokens: raise it whenever the result of `tokens` changes, and stores rebuild.
TOKENS_VERSION = "5"
QUERY_TOKENS_LIMIT = 300
QUERY_PHRASES_LIMIT = 60
# What a word in katakana or Latin letters counts in a Japanese query: as many tokens as a word of two kanji has.
WORD_WEIGHT = 3
# A word in katakana of more pairs than that is long.
LONG_WORD_PAIRS = 4
# A longer run of katakana is no word. As one phrase of tokens it would be compared with a text from each place where a token of it is.
LONGEST_KATAKANA = 24
# The tokens of texts of at most so many characters are kept: a question and its words are read several times.
SHORT_TEXT = 60
# A question of so many characters is put into plain text, and its tokens are found, once for all that read it.
SHORT_QUERY = 300

_OTHER_UNSPACED = "\u0e00-\u0edf\u1000-\u109f\u1780-\u17ff\uac00-\ud7af"  # Thai, Lao, Burmese, Khmer, Hangul
UNSPACED = KANA + HAN + _OTHER_UNSPACED
# A word in other letters, and what joins several to one: Wi-Fi, Node.js, AT&T. Signs around one belong to it: C++, C#, .NET.
_PART = rf"[^\W_{UNSPACED}]+(?:'[a-z]+)*"
_JOINT, _NO_LETTER = "[-\u2010-\u2013\u2212./&_#]", rf"(?![^\W{UNSPACED}+#♯])"
_RUN = re.compile(
    rf"(?P<unspaced>[{UNSPACED}]+)"
    rf"|(?P<word>(?:\.(?<!\.\.)(?<![^\W{UNSPACED}]\.)(?=[^\W\d_{UNSPACED}]))?{_PART}(?:{_JOINT}{_PART})*(?:(?<=[^\W\d_])(?:\+\+|[+#♯]{_NO_LETTER}))?)"
    r"|(?P<symbol>[\U0001f000-\U0001faff\u2600-\u27bf])"
)
# A point between digits is one of a number, not a joint. A comma before three of them is nothing, and so is a middle dot in katakana.
_JOINTS, _POINT = re.compile(rf"(?!(?<=\d)\.\d){_JOINT}"), "·"
# What most texts of Japanese have that NFKC changes.
_MARKS = [(mark, unicodedata.normalize("NFKC", mark)) for mark in "！？（）：～／％＆＋　"]
_NOTHING = re.compile(rf"[,・=](?:(?<=\d,)(?=\d{{3}}(?!\d))|(?<=[{KATAKANA}][・=])(?=[{KATAKANA}]))")
_YEN, _WITH_UNIT = re.compile(r"¥(\d{1,15}(?:\.\d{1,4})?)"), re.compile(r"(\d{1,12})([a-z]{1,4}\d{0,4})")
_SIGNS = mapping("en", "signs")
# The parts and characters of a word that is also one without its signs, the characters of a part that a query looks for, and the digits of
# a long number.
PARTS_LIMIT, LONGEST_WORD, LEAST_CHARACTERS, LEAST_DIGITS = 5, 40, 3, 7
_UNSPACED, _KANJI = re.compile(f"[{UNSPACED}]"), re.compile(f"[{HAN}]")
KATAKANA_WORD = re.compile(f"[{KATAKANA}]{{2,{LONGEST_KATAKANA}}}")
# Words in a row, which may be one to others, and the letters and numbers in each, which may be words. How many of either are one name, and
# the letters of a word that is hardly one by itself.
_SPACED = rf"[^\W_{UNSPACED}]+(?:\.\d+)*"
_IN_A_ROW, _SPACED_WORD, _PIECE = re.compile(f"{_SPACED}(?:[ -]{_SPACED})*"), re.compile(_SPACED), re.compile(r"\d+(?:\.\d+)*|[^\W\d_]+")
MOST_SPACED, MOST_PIECES, SHORT_WORD = 3, 4, 3
_MARKED = re.compile("([a-z])[\u0300-\u036f]+")

_TWO_PARTS = {written.replace(" ", ""): written for written in words("en", "two_parts")}
_STOPWORDS, _UNITS = frozenset(words("en", "function_words")), frozenset(words("en", "units"))

# What separates the words of a Japanese question. The pairs within these, and of their ends with a particle, say nothing of what is asked
# for.
_PARTICLES, _GRAMMAR = "".join(words("ja", "particles")), words("ja", "grammar")
_GRAMMAR_TOKENS = (
    frozenset(words("ja", "asking"))
    | frozenset(word[index : index + 2] for word in _GRAMMAR for index in range(len(word) - 1))
    | frozenset(end + particle for end in {*(word[-1] for word in _GRAMMAR), *_PARTICLES} for particle in _PARTICLES)
)
_HIRAGANA_RUN = re.compile(f"[{HIRAGANA}][{HIRAGANA}ー]+")
_NO_WORD = re.compile(rf"[{HIRAGANA}]|[{HIRAGANA}][{KATAKANA}{HAN}]|[{KATAKANA}{HAN}][{_PARTICLES}]")

_stemmer, _stemming = snowballstemmer.stemmer("english"), threading.Lock()


def _stem(word: str) -> str:
    # The stemmer holds the word that it works on: the words of two threads would get into each other.
    with _stemming:
        return str(_stemmer.stemWord(word))


def forget_tokens() -> None:
    """Clears the caches of words and of tokens, after a text was erased for good."""
    _known_word.cache_clear()
    _tokens_of_short.cache_clear()
    _plain_of_short.cache_clear()
    _asked_of_short.cache_clear()


def normalise(text: str) -> str:
    """Applies NFKC and case folding, which unify full and half width, upper and lower case."""
    return text.casefold() if text.isascii() else in_one_width(text).casefold().replace("\u2019", "'")


def in_one_width(text: str) -> str:
    """NFKC. Most texts need it only for their marks, and replacing these takes a seventh of the time."""
    for mark, written in _MARKS:
        text = text.replace(mark, written)
    return text if unicodedata.is_normalized("NFKC", text) else unicodedata.normalize("NFKC", text)


def plain(text: str) -> str:
    """The normalized text as it is cut into tokens: each kanji in its usual form, numbers without commas, ¥1000 as 1000円, words in
    katakana without middle dots."""
    return _plain_of_short(text) if len(text) <= SHORT_QUERY else _plain_of(text)


def _plain_of(text: str) -> str:
    text = with_usual_kanji(normalise(text))
    if "," in text or "・" in text or "=" in text:
        text = _NOTHING.sub("", text)
    return _YEN.sub(r"\1円", text) if "¥" in text else text


def tokens(text: str) -> list[str]:
    """The tokens of a stored text, in order, with repetitions."""
    return list(_tokens_of_short(text)) if len(text) <= SHORT_TEXT else _tokens_of(text)


def query_tokens(text: str) -> list[str]:
    """The distinct tokens of a query, and phrases of them. A query that consists only of function words keeps them."""
    return list(_asked_of_short(text) if len(text) <= SHORT_QUERY else _asked_of(text))


def _asked_of(text: str) -> list[str]:
    runs = [(run[0], run.lastgroup) for run in _RUN.finditer(plain(text))]
    kept = [run for run in runs if run[0] not in _STOPWORDS] or runs
    found = (token for written, script in kept for token in (_pairs(written) if script == "unspaced" else _word(written).asked))
    return list(dict.fromkeys(found))[:QUERY_TOKENS_LIMIT]


def weighed_query_tokens(text: str, known: Set[str] = frozenset()) -> list[str]:
    """The tokens of a query; where spaces are not always written, each as often as it counts, so that a word has one weight in any script.

    A word in Latin letters is one token of the weight `WORD_WEIGHT`. One in katakana is searched as a whole, and by its first three and its
    last characters, which compounds share with their parts: of a long one the last two, as in ジム of スポーツジム. One of two or three characters
    is so only if it is among `known` phrases of tokens. A long query stays as it is.
    """
    found = query_tokens(text)
    if len(found) > QUERY_TOKENS_LIMIT // WORD_WEIGHT or not any(map(is_unspaced, found)):
        return found
    words = [_pairs(word) for word in dict.fromkeys(KATAKANA_WORD.findall(plain(text)))]
    words = [pairs for pairs in words if len(pairs) > 2 or " ".join(pairs) in known]
    replaced = {pair for pairs in words for pair in pairs}
    weighed = [token for token in found if token not in replaced for _ in range(1 if is_unspaced(token) else WORD_WEIGHT)]
    return weighed + [" ".join(part) for pairs in words for part in (pairs, pairs[:2], pairs[-1 if len(pairs) > LONG_WORD_PAIRS else -2 :])]


def query_phrases(text: str) -> list[str]:
    """The pairs of words side by side in a query, without function words. Where no spaces are written, pairs are tokens already."""
    words = (run["word"] for run in _RUN.finditer(plain(text)))
    read = chain.from_iterable(_word(word).stored if word and word not in _STOPWORDS else (None,) for word in words)
    pairs = dict.fromkeys(f"{word} {after}" for word, after in pairwise(read) if word and after)
    return list(pairs)[:QUERY_PHRASES_LIMIT]


def spaced_otherwise(text: str) -> list[tuple[int, int, str]]:
    """What others may write with more spaces or fewer, as phrases of tokens with their places (start, end, phrase): a name and its number
    (iphone15 of iPhone 15, iphone 15 of iPhone15), and a short word with another (airpods of air pods, wi fi of wifi). Function words are
    in none. `text` is in normalized width."""
    text = text[:SHORT_QUERY]
    rows = (list(_SPACED_WORD.finditer(text, *row.span())) for row in _IN_A_ROW.finditer(text))
    sizes = range(1, MOST_SPACED + 1)
    windows = (row[first : first + size] for row in rows for size in sizes for first in range(len(row) - size + 1))
    found = ((words[0].start(), words[-1].end(), phrase) for words in windows for phrase in _spaced_otherwise([word[0] for word in words]))
    return list(islice(found, QUERY_PHRASES_LIMIT))


def _spaced_otherwise(words: Sequence[str]) -> Iterator[str]:
    joined = "".join(words)
    known = _TWO_PARTS.get(normalise(joined), "").split()
    pieces = known or [piece for word in words for piece in _PIECE.findall(word)]
    has_number = any(map(str.isdecimal, joined)) and any(map(str.isalpha, joined))
    is_short = len(words) == 2 and min(map(len, words)) <= SHORT_WORD and joined.isalpha()
    is_name = len(joined) <= LONGEST_WORD and not any(map(is_function_word, words))
    if len(words) > 1 and (known or (is_name and (has_number or is_short))):
        yield tokens(joined)[-1]
    if len(words) < len(pieces) <= MOST_PIECES and (known or not any(map(is_function_word, pieces))):
        yield " ".join(tokens(" ".join(pieces)))


def fragments(text: str, words_of_kana: Iterable[str]) -> frozenset[str]:
    """The pairs of hiragana in a query that rank, and find nothing alone: those that are no word, such as りた of 作りたい, or かん of みかん.
    `words_of_kana`: its `kana_words`."""
    among = {pair for run in _HIRAGANA_RUN.findall(plain(text)) for pair in map("".join, pairwise(run))}
    return frozenset(among.difference(words_of_kana))


def kana_words(text: str) -> list[str]:
    """The words of hiragana in a query, of which three kana in a row find something as a phrase of tokens, and of two kana both.

    Such a word begins with its run, unless that is the ending of a kanji, and behind a particle; it ends before the next one.
    """
    found: list[str] = []
    plain_text = plain(text)
    for run in _HIRAGANA_RUN.finditer(plain_text):
        kana, before = run.group(), plain_text[max(run.start() - 1, 0) : run.start()]
        begin = int(before.isalnum() and kana[0] in _PARTICLES)
        if not begin and is_single_kanji(before):
            begin = len(kana)
        while begin < len(kana):
            end = next((index for index in range(begin + 2, len(kana)) if kana[index] in _PARTICLES), len(kana))
            word = _pairs(kana[begin:end])
            found += [" ".join(parts) for parts in pairwise(word)] if len(word) > 1 else [pair for pair in word if len(pair) > 1]
            begin = end + 1
    return list(dict.fromkeys(found))


def is_function_word(word: str) -> bool:
    """True if a word is an English one that distinguishes nothing."""
    return normalise(word) in _STOPWORDS


def is_unspaced(token: str) -> bool:
    """True if a token is of a script without spaces, where a word is several tokens and a token may lie across two words."""
    return _UNSPACED.match(token) is not None


def is_single_kanji(token: str) -> bool:
    """True if a token is a single kanji: frequent, weak, and dispensable where its pairs are searched."""
    return len(token) == 1 and _KANJI.match(token) is not None


def is_grammar(token: str) -> bool:
    """True if a token of a Japanese question is made of particles, endings, honorifics or what asks, is a single hiragana, or lies across
    two words (は何, 前は)."""
    return token in _GRAMMAR_TOKENS or _NO_WORD.fullmatch(token) is not None


def jaccard(first: Set[str], second: Set[str]) -> float:
    """The Jaccard index of two sets of tokens (1901): shared tokens ÷ all tokens of both, 0 to 1."""
    return len(first & second) / len(first | second) if first or second else 0.0


@lru_cache(maxsize=4_096)
def _tokens_of_short(text: str) -> tuple[str, ...]:
    return tuple(_tokens_of(text))


@lru_cache(maxsize=256)
def _plain_of_short(text: str) -> str:
    return _plain_of(text)


@lru_cache(maxsize=256)
def _asked_of_short(text: str) -> tuple[str, ...]:
    return tuple(_asked_of(text))


def _tokens_of(text: str) -> list[str]:
    result: list[str] = []
    for unspaced, word, symbol in _RUN.findall(plain(text)):
        if word:
            result += _word(word).stored
        else:
            result += _pairs(unspaced) if unspaced else symbol
    return result


class _Word(NamedTuple):
    """The tokens that a text has for a word, its parts before the whole; and those by which a query finds it, the whole and all parts in a
    row first."""

    stored: tuple[str, ...]
    asked: tuple[str, ...]


def _word(written: str) -> _Word:
    return _known_word(written) if len(written) <= LONGEST_WORD else _read_word(written)


@lru_cache(maxsize=32_768)
def _known_word(written: str) -> _Word:
    return _read_word(written)


def _read_word(written: str) -> _Word:
    if written.isalpha():
        word = (_stemmed(written),)
        return _Word(word, word)
    core = written.removeprefix(".").rstrip("+#♯")
    start = written.index(core)
    before, after = _SIGNS.get(written[:start], ""), _SIGNS.get(written[start + len(core) :], "")
    parts = [part.replace(".", _POINT) for part in _JOINTS.split(core)]
    singles = [_single(part, _stemmed(part)) for part in parts]
    if len(parts) == 1 and not (before or after):
        return singles[0]
    read = [token for word in singles for token in word.stored]
    joined = "".join(parts)
    if len(parts) > PARTS_LIMIT or len(joined) > LONGEST_WORD or (joined.isdecimal() and ("/" in core or len(joined) < LEAST_DIGITS)):
        return _Word(tuple(read), tuple(dict.fromkeys(read)))
    whole = _stemmed(f"{before}{joined}{after}")
    least = LEAST_CHARACTERS + (len(parts) == 1)
    telling = (word.asked[0] for part, word in zip(parts, singles, strict=True) if len(part) >= least and part not in _STOPWORDS)
    stored = read if len(core) > 1 else []
    return _Word((*stored, whole), tuple(dict.fromkeys((whole, *([" ".join(read)] if len(read) > 1 else []), *telling))))


def _single(written: str, read: str) -> _Word:
    """A word of one part: a number with a unit is both, too, so is 1000XM5 with XM5, and one of several points begins with its first two."""
    if (parts := _WITH_UNIT.fullmatch(written)) and (parts[2] in _UNITS or parts[2][-1].isdecimal()):
        return _Word((*parts.groups(), read), (read, " ".join(parts.groups())))
    numbers = read.split(_POINT)
    return _Word((_POINT.join(numbers[:2]), read) if len(numbers) > 2 else (read,), (read,))


def _stemmed(written: str) -> str:
    return written if written.isdecimal() else _stem(_unmarked(written)).replace("'", "")


def _unmarked(word: str) -> str:
    """Removes diacritics from Latin letters, so that café matches cafe; が stays different from か."""
    return word if word.isascii() else unicodedata.normalize("NFC", _MARKED.sub(r"\1", unicodedata.normalize("NFD", word)))


def _pairs(run: str) -> list[str]:
    if len(run) == 1:
        return [run]
    pairs = map(operator.add, run, run[1:])
    kanji = set(_KANJI.findall(run))
    if not kanji:
        return list(pairs)
    result: list[str] = []
    for character, pair in zip(run, pairs, strict=False):
        result += (character, pair) if character in kanji else (pair,)
    return [*result, run[-1]] if run[-1] in kanji else result
