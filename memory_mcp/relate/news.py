"""What a text says has changed, and the values that it has. The words are in `words.toml`."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from memory_mcp.characters import is_japanese
from memory_mcp.language.analysis import Analysis
from memory_mcp.language.tokens import is_function_word, tokens
from memory_mcp.lexicon import filled, parts_of
from memory_mcp.patterns import bounded

_TABLES = tomllib.loads(Path(__file__).with_name("words.toml").read_text(encoding="utf-8"))
PARTS = parts_of(_TABLES["parts"])
WORDS = {name: tuple(words.split() if isinstance(words, str) else words) for name, words in _TABLES["words"].items()}


def _groups(table: str, *names: str) -> re.Pattern[str]:
    """One of the expressions of a table, or of those of these names, each as a group of its name."""
    among = _TABLES[table]
    return bounded("|".join(f"(?P<{name}>{filled(among[name], PARTS)})" for name in names or among))


EVENT, VALUE = _groups("events"), _groups("values")
_UNSURE, ENDING, PAST, POLAR = (_groups("signs", *names) for names in (("unsure",), ("ending",), ("begun", "past"), ("no", "yes")))
_PHRASE = bounded(PARTS["phrase"])


class News(NamedTuple):
    """What a sentence says has changed: the nouns that name it, as they are written, the days and hours that it had, and what it has now, if that is
    said."""

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
    left_out = {*WORDS["generic"], *(token for day in days for token in tokens(day))}
    words = (word for word in named.split() if not is_function_word(word.strip(",")))
    return News(kind, frozenset(word for word in words if not left_out.issuperset(tokens(word))), days, parts[2])
