"""Kanji: their forms, such as 髙 and 高, which one person's name is written with alike; and how words in kanji are read, such as 沢渡 for さわたり.

Both are tables (dictionaries/README.md). That of the readings has those of single kanji within words and names, so most readings fit many
combinations of kanji. Which of these are words only a text can tell: the caller says which kanji follow each other there.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from importlib import resources
from itertools import chain, islice, product

DIRECTORY, VARIANTS, READINGS = resources.files("memory_mcp.language") / "dictionaries", "variants.tsv", "readings.tsv"


def _lines(name: str) -> list[str]:
    file = DIRECTORY / name
    return file.read_text(encoding="utf-8").splitlines() if file.is_file() else []


_USUAL = {other: usual for usual, others in (line.split("\t") for line in _lines(VARIANTS)) for other in others}
_OTHER_FORM = re.compile(f"[{''.join(_USUAL)}]" if _USUAL else "(?!)")


def with_usual_kanji(text: str) -> str:
    """The same text with the usual form of each kanji; as long as before."""
    return _OTHER_FORM.sub(lambda form: _USUAL[form[0]], text)


# Kanji of a word, those of them that may have a rare reading, and the readings of a word.
LONGEST_WORD, RARE_LIMIT, READINGS_LIMIT = 4, 1, 16


def words_read_as(kana: str, followers: Mapping[str, str]) -> Iterator[str]:
    """The words that may be read so: of kanji that follow each other in a text (`followers`: for each kanji those after it), and those of
    irregular reading. Those of usual readings come first."""
    table = _table()
    if table:
        yield from table.irregular.get(kana, ())
        yield from table.rest(kana, followers, "", 0)
        yield from table.rest(kana, followers, "", RARE_LIMIT)


def readings_of(word: str) -> list[str]:
    """How a word of a few kanji may be read in hiragana: as a whole, or by the usual readings of its kanji."""
    table = _table()
    if not table or len(word) > LONGEST_WORD:
        return []
    usual, rare, irregular = table.readings
    of_kanji = ("".join(read) for read in product(*(usual.get(kanji, ()) for kanji in word)))
    return list(dict.fromkeys(islice(chain(irregular.get(word, ()), of_kanji, rare.get(word, ())), READINGS_LIMIT)))


class _Table:
    """The file: reading → the kanji that usually have it and those that rarely do, and reading → words that are read so as a whole."""

    def __init__(self, lines: Iterable[str]) -> None:
        self.irregular: dict[str, Sequence[str]] = {}
        self._kanji: dict[str, tuple[str, str]] = {}
        for line in lines:
            kana, usual, rare, *words = line.split("\t")
            self._kanji[kana] = usual, rare
            if words:
                self.irregular[kana] = words
        self._longest = max(map(len, self._kanji))

    @cached_property
    def readings(self) -> tuple[dict[str, list[str]], dict[str, list[str]], dict[str, list[str]]]:
        """Kanji → its usual readings, and those that it has as a word or as a part of few; word of irregular reading → its readings."""
        inverted: tuple[dict[str, list[str]], ...] = (defaultdict(list), defaultdict(list), defaultdict(list))
        for kana, kanji in self._kanji.items():
            for readings, written in zip(inverted, (*kanji, self.irregular.get(kana, ())), strict=True):
                for one in written:
                    readings[one].append(kana)
        usual, rare, irregular = map(dict, inverted)
        return usual, rare, irregular

    def rest(self, kana: str, followers: Mapping[str, str], word: str, rare_limit: int) -> Iterator[str]:
        """What begins with `word`, and is read further as `kana`."""
        if not kana:
            yield word
        elif len(word) < LONGEST_WORD:
            after = set(followers.get(word[-1], "")) if word else followers.keys()
            for length in range(1, min(len(kana), self._longest) + 1):
                for is_rare, kanji in enumerate(self._kanji.get(kana[:length], ())[: 1 + rare_limit]):
                    for one in filter(after.__contains__, kanji):
                        yield from self.rest(kana[length:], followers, word + one, rare_limit - is_rare)


@cache
def _table() -> _Table | None:
    lines = _lines(READINGS)
    return _Table(lines) if lines else None
