"""Converts text to the tokens of the lexical index.

Japanese has no spaces, and a memory is often one short sentence. A run of Japanese becomes its single kanji plus all
overlapping pairs of characters, so that 夕飯, 京都 and 苺 are found and a question shares pairs with the statement that
answers it; Latin words are stemmed. Measured against a morphological dictionary, trigrams and substring search on
Japanese memories: docs/decisions/0002-lexical-tokens.md.
"""

import re
import threading
import unicodedata
from collections.abc import Sequence, Set
from functools import lru_cache
from itertools import pairwise

import snowballstemmer

from memory_mcp.characters import HAN, HIRAGANA, KANA, KATAKANA
from memory_mcp.language.kanji_variants import with_usual_kanji

# Part of the version of every index built from these tokens: raise it whenever the result of `tokens` changes, and stores rebuild.
TOKENS_VERSION = "3"
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

_OTHER_UNSPACED = "\u0e00-\u0edf\u1000-\u109f\u1780-\u17ff\uac00-\ud7af"  # Thai, Lao, Burmese, Khmer, Hangul
UNSPACED = KANA + HAN + _OTHER_UNSPACED
_RUN = re.compile(
    rf"(?P<unspaced>[{UNSPACED}]+)"
    rf"|(?P<word>(?:(?![{UNSPACED}])[^\W_])+(?:'[a-z]+)*)"
    r"|(?P<symbol>[\U0001f000-\U0001faff\u2600-\u27bf])"
)
_UNSPACED = re.compile(f"[{UNSPACED}]")
_KANJI = re.compile(f"[{HAN}]")
_KATAKANA_WORD = re.compile(f"[{KATAKANA}]{{2,{LONGEST_KATAKANA}}}")
_MARKED = re.compile("([a-z])[\u0300-\u036f]+")

# English function words match everything and distinguish nothing. They are dropped from queries only, so that the index stays
# complete and this list can change without a rebuild.
_STOPWORDS = frozenset(
    "a an the and or but if of to in on at by for with about from into is are was were be been being am do does did doing "
    "have has had having i you he she it we they me him her us them my your his its our their this that these those what "
    "which who whom when where why how can could will would shall should may might must not no so than then there here "
    "as s t what's who's where's when's how's that's it's there's i'm i've i'd let's don't doesn't didn't isn't aren't wasn't weren't "
    "haven't hasn't hadn't can't couldn't won't wouldn't shouldn't".split()
)

# What separates the words of a Japanese question. The pairs within these, and of their ends with a particle, say nothing of what is asked for.
_PARTICLES = "はがをにでともへのかやねよ"
_GRAMMAR = (
    "です ます でした ました ません ですか ますか でしょう だった だったっけ っけ した して する され れた れて いた いて いる ている てた てる たい なる なった になる ない なかった ある あった あり "
    "から まで より けど ので のに って とは には では という どう どこ どの どれ どんな どっち どちら いつ いくら なに なぜ だれ これ それ あれ この その あの こう そう まだ いま もう はい いい "
    "じゃない じゃなくて ちゃった だって なんだ んだっけ なんで "
    "こと もの よう とき ところ くれる くれた もらう もらった ください さん くん ちゃん さま たち しょう"
).split()
_GRAMMAR_TOKENS = (
    {"何", "誰"}
    | frozenset(word[index : index + 2] for word in _GRAMMAR for index in range(len(word) - 1))
    | frozenset(end + particle for end in {*(word[-1] for word in _GRAMMAR), *_PARTICLES} for particle in _PARTICLES)
)
_HIRAGANA = re.compile(f"[{HIRAGANA}]")
_BEFORE_OTHER_SCRIPT = re.compile(rf"[{HIRAGANA}][{KATAKANA}{HAN}]|[{KATAKANA}{HAN}][{_PARTICLES}]")

_stemmer, _stemming = snowballstemmer.stemmer("english"), threading.Lock()


@lru_cache(maxsize=65_536)
def _stem(word: str) -> str:
    # The stemmer holds the word that it works on: the words of two threads would get into each other.
    with _stemming:
        return str(_stemmer.stemWord(word))


def forget_tokens() -> None:
    """Clears the caches of stems and of tokens, after a text was erased for good."""
    _stem.cache_clear()
    _tokens_of_short.cache_clear()


def normalise(text: str) -> str:
    """Applies NFKC and case folding, which unify full and half width, upper and lower case."""
    return text.casefold() if text.isascii() else unicodedata.normalize("NFKC", text).casefold().replace("\u2019", "'")


def tokens(text: str) -> list[str]:
    """The tokens of a stored text, in order, with repetitions."""
    return _tokens(text, drop=frozenset())


def query_tokens(text: str) -> list[str]:
    """The distinct tokens of a query, up to `QUERY_TOKENS_LIMIT`. A query that consists only of function words keeps them."""
    kept = _tokens(text, drop=_STOPWORDS) or _tokens(text, drop=frozenset())
    return list(dict.fromkeys(kept))[:QUERY_TOKENS_LIMIT]


def weighed_query_tokens(text: str, known: Set[str] = frozenset()) -> list[str]:
    """The tokens of a query; where spaces are not always written, each as often as it counts, so that a word has the weight of one word in any script.

    A word in Latin letters is one token, and its weight is `WORD_WEIGHT`. One in katakana is searched as a whole, and by its first three and its last
    characters, which compounds share with their parts; バージョン and リージョン share only the last. One of two or three characters is so only if it is
    among `known` phrases of tokens. A long query stays as it is.
    """
    found = query_tokens(text)
    if len(found) > QUERY_TOKENS_LIMIT // WORD_WEIGHT or not any(map(is_unspaced, found)):
        return found
    words = [_pairs(word) for word in dict.fromkeys(_KATAKANA_WORD.findall(normalise(text)))]
    words = [pairs for pairs in words if len(pairs) > 2 or " ".join(pairs) in known]
    replaced = {pair for pairs in words for pair in pairs}
    weighed = [token for token in found if token not in replaced for _ in range(1 if is_unspaced(token) else WORD_WEIGHT)]
    return weighed + [" ".join(part) for pairs in words for part in (pairs, pairs[:2], _last_part(pairs))]


def _last_part(pairs: Sequence[str]) -> Sequence[str]:
    """The last three characters of a word in katakana; of a long one two, as its last part may be short: ジム of スポーツジム."""
    return pairs[-1:] if len(pairs) > LONG_WORD_PAIRS else pairs[-2:]


def query_phrases(text: str) -> list[str]:
    """The pairs of words that stand side by side in a query, without function words. Where no spaces are written, pairs are tokens already."""
    runs = ((run.group(), run.lastgroup) for run in _RUN.finditer(normalise(text)))
    words = (_word(written) if script == "word" and written not in _STOPWORDS else None for written, script in runs)
    pairs = dict.fromkeys(f"{word} {after}" for word, after in pairwise(words) if word and after)
    return list(pairs)[:QUERY_PHRASES_LIMIT]


def is_function_word(word: str) -> bool:
    """Whether a word is an English one that distinguishes nothing."""
    return normalise(word) in _STOPWORDS


def is_unspaced(token: str) -> bool:
    """Whether a token is of a script without spaces, where a word is several tokens and a token may lie across two words."""
    return _UNSPACED.match(token) is not None


def is_single_kanji(token: str) -> bool:
    """Whether a token is a single kanji: frequent, weak, and dispensable where its pairs are searched."""
    return len(token) == 1 and _KANJI.match(token) is not None


def is_grammar(token: str) -> bool:
    """Whether a token of a Japanese question is made of particles, endings, honorifics or what asks, is a single hiragana, or lies across two words (は何, 前は)."""
    return token in _GRAMMAR_TOKENS or _HIRAGANA.fullmatch(token) is not None or _BEFORE_OTHER_SCRIPT.fullmatch(token) is not None


def jaccard(first: Set[str], second: Set[str]) -> float:
    """The Jaccard index of two sets of tokens (1901): shared tokens ÷ all tokens of both, 0 to 1."""
    return len(first & second) / len(first | second) if first or second else 0.0


def _tokens(text: str, drop: frozenset[str]) -> list[str]:
    return list(_tokens_of_short(text, drop)) if len(text) <= SHORT_TEXT else _tokens_of(text, drop)


@lru_cache(maxsize=4_096)
def _tokens_of_short(text: str, drop: frozenset[str]) -> tuple[str, ...]:
    return tuple(_tokens_of(text, drop))


def _tokens_of(text: str, drop: frozenset[str]) -> list[str]:
    result: list[str] = []
    for run in _RUN.finditer(with_usual_kanji(normalise(text))):
        if run.lastgroup == "unspaced":
            result += _pairs(run.group())
        elif run.group() not in drop:
            result.append(_word(run.group()))
    return result


def _word(written: str) -> str:
    return written if written.isdecimal() else _stem(_unmarked(written)).replace("'", "")


def _unmarked(word: str) -> str:
    """Removes diacritics from Latin letters, so that café matches cafe; が stays different from か."""
    return word if word.isascii() else unicodedata.normalize("NFC", _MARKED.sub(r"\1", unicodedata.normalize("NFD", word)))


def _pairs(run: str) -> list[str]:
    if len(run) == 1:
        return [run]
    result: list[str] = []
    for index, character in enumerate(run):
        if _KANJI.match(character):
            result.append(character)
        if index + 1 < len(run):
            result.append(run[index : index + 2])
    return result
