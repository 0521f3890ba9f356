"""What a text says has changed, and the values that it has. The words are in `words.toml`."""

import re
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from memory_mcp.characters import HAN, KATAKANA, is_japanese
from memory_mcp.language.analysis import Analysis, analysis
from memory_mcp.language.tokens import is_function_word, is_grammar, is_unspaced, tokens
from memory_mcp.lexicon import words
from memory_mcp.patterns import bounded

_TABLES = tomllib.loads(Path(__file__).with_name("words.toml").read_text(encoding="utf-8"))
WORDS = {name: tuple(words.split() if isinstance(words, str) else words) for name, words in _TABLES["words"].items()}
_NUMERAL = r"(?:\d+|[一二三四五六七八九十]+)"
_KANA = "いきしちりみびぎけせえれめっわまら"  # within and behind nouns of verbs: 打ち合わせ


def _any(parts: Iterable[str], name: str = "") -> str:
    """One expression for all parts, as a group of this name."""
    filled = "|".join(parts).replace("{done}", f"(?:{_TABLES['signs']['done'][0]})").replace("{n}", _NUMERAL)
    return f"(?{f'P<{name}>' if name else ':'}{filled.replace('{kanji}', HAN).replace('{katakana}', KATAKANA)})"


_SIGNS = {name: _any(parts, name) for name, parts in _TABLES["signs"].items()}
EVENT, VALUE = (bounded("|".join(_any(parts, kind) for kind, parts in _TABLES[table].items())) for table in ("events", "values"))
_UNSURE, ENDING = bounded(_SIGNS["unsure"]), bounded(_SIGNS["ending"])
PAST, POLAR = bounded(f"{_SIGNS['begun']}|{_SIGNS['past']}"), bounded(f"{_SIGNS['no']}|{_SIGNS['yes']}")
_PHRASE = bounded(
    rf"(?P<noun>[{HAN}{KATAKANA}a-z0-9](?:[{HAN}{KATAKANA}a-z0-9]|(?<=[{HAN}])[{_KANA}]{{1,2}}(?=[{HAN}はがをもにへとの、。]|から|$)|(?<=[a-z0-9.+#&-])[.+#&-])*+)"
    r"(?:さん|ちゃん|くん)?(?P<by>には|(?:から)?に|から|まで|って|とは|との|も(?!う)|の(?!で|に)|で(?!す|し|き)|という|と(?!い|き)|[はがをへ、]|(?=[。!]|$))"
)

# A pair of kanji, a kanji with the kana behind it, the last one alone, a word in katakana.
_PART = bounded(rf"(?=([{HAN}]{{2}}))|[{KATAKANA}]{{2,}}|(?<![{HAN}])[{HAN}](?:[{_KANA}]+|$)")
# Words that any text has, as tokens.
_TELLING = frozenset(token for table in ("vague", "relating", "telling") for word in words("en", table) for token in tokens(word))


class News(NamedTuple):
    """What a sentence says has changed: the nouns that name it, the days and hours that it had, and what it has now, if that is said."""

    kind: str
    nouns: frozenset[str]
    old: tuple[str, ...]
    value: str


class Chain(NamedTuple):
    """Nouns joined by の, and the particle behind them."""

    nouns: list[str]
    by: str
    start: int
    end: int


def news(text: Analysis) -> Iterator[News]:
    """The changes that a text tells as done."""
    for sentence in text.sentences:
        start = 0
        for event in EVENT.finditer(sentence) if not _UNSURE.search(sentence) else ():
            kind, before = str(event.lastgroup), sentence[start : event.start()]
            told = _in_japanese(kind, before) if is_japanese(event[0]) else _in_english(kind, before, sentence[event.end() :])
            if told.nouns:
                yield told
            start = event.end()


def subjects(text: Analysis) -> list[str]:
    """What a text is about: its nouns and names, without what has changed of them, days, numbers, and words that any text has. Japanese ones are parts
    that other nouns may share: pairs of kanji, words in katakana, a kanji alone; others are tokens."""
    found: list[str] = []
    for sentence in text.sentences:
        still = VALUE.sub(_gap, EVENT.sub("、", sentence))
        nouns = [noun for chain in chains(f"{still}。") for noun in chain.nouns if noun not in WORDS["generic"] and not POLAR.match(noun)]
        found += [match[1] or match[0] for noun in nouns for match in _PART.finditer(noun)]
        rest = analysis(still)
        for token in rest.query_tokens:  # a run of hiragana may be a name; one that follows a kanji is the ending of a verb
            is_kana = all("ぁ" <= letter <= "ゖ" for letter in token)
            is_other = not (is_unspaced(token) or token.isdecimal() or token in _TELLING)
            if is_other or (is_kana and token not in rest.fragments):
                found.append(token)
    return [part for part in dict.fromkeys(found) if not is_grammar(part)]


def _gap(value: re.Match[str]) -> str:
    """What is left of a value: the first letter of the word behind it, where it took that for its unit."""
    is_part = value[0][-1:].isascii() and value[0][-1:].isalpha() and value.string[value.end() : value.end() + 1].isalpha()
    return f"、{value[0][-1:]}" if is_part else "、"


def chains(text: str) -> list[Chain]:
    """The nouns of a Japanese text that a particle follows, those joined by の together."""
    found: list[Chain] = []
    for phrase in _PHRASE.finditer(text):
        is_joined = found and found[-1].by in ("の", "との", "という") and found[-1].end == phrase.start()
        owners = found.pop() if is_joined else Chain([], "", phrase.start(), 0)
        found.append(Chain([*owners.nouns, phrase["noun"]], phrase["by"], owners.start, phrase.end()))
    return found


def _in_japanese(kind: str, before: str) -> News:
    topics: list[str] = []
    nouns: list[str] = []
    value, end = "", 0
    for chain in [*chains(before), Chain([], "", len(before), len(before))]:
        if before[end : chain.start].rstrip("、").endswith(WORDS["background"]):
            nouns = []
        end, is_time = (
            chain.end,
            kind != "instead" and VALUE.fullmatch("".join(chain.nouns)) and (not chain.by or chain.nouns[0][0] in "今来先"),
        )
        is_value = chain.by in ("に", "からに", "へ", "まで") or (kind == "weak" and not chain.by)
        if chain.nouns and end == len(before) and kind != "gone" and is_value:
            value = "の".join(chain.nouns)
        elif chain.by == "で":  # a reason, with what it is said of
            nouns = []
        elif chain.by in ("は", "も", "って", "とは", "には", "、"):
            topics += chain.nouns
        elif (chain.by in ("が", "を", "から", "") or kind == "gone") and not is_time:
            nouns += chain.nouns
    days = tuple(part for part in (*topics, *nouns) if VALUE.fullmatch(part))
    return News(kind, frozenset((*topics, *nouns)) - {*days, *WORDS["generic"]}, days, value)


def _in_english(kind: str, before: str, after: str) -> News:
    object_, _, value = after.partition(" to ")
    parts = [*object_.partition(" from ")[::2], value]
    for stop in WORDS["stops"]:
        parts = [part.partition(stop)[0] for part in parts]
    named = " ".join((before.rpartition(",")[2].rpartition(" and ")[2], *parts[:2]))
    kind = "swap" if kind == "move" and parts[1] else kind
    days = tuple(each[0] for each in VALUE.finditer(named))
    words = {token for word in named.split() if not is_function_word(word.strip(",")) for token in tokens(word)}
    return News(kind, frozenset(words) - {*WORDS["generic"]} - {token for day in days for token in tokens(day)}, days, parts[2])
