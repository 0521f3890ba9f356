"""Kanji: their forms, such as 髙 and 高, which one person's name is written with alike; and how words in kanji are read, such as 沢渡 for さわたり.

Both are tables (dictionaries/README.md). That of the readings has those of single kanji within words and names, so most readings fit many
combinations of kanji. Which of these are words only a text can tell: the caller says which kanji follow each other there.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from functools import cache, cached_property
from importlib import resources
from itertools import chain, islice, product

DIRECTORY, VARIANTS, READINGS = resources.files("memory_mcp.language") / "dictionaries", "variants.tsv", "readings.tsv"


def _usual() -> dict[str, str]:
    file = DIRECTORY / VARIANTS
    lines = file.read_text(encoding="utf-8").splitlines() if file.is_file() else ()
    return {other: usual for usual, others in (line.split("\t") for line in lines) for other in others}


_USUAL = _usual()
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
    of_kanji = ("".join(read) for read in product(*(table.usual.get(kanji, ()) for kanji in word)))
    return list(dict.fromkeys(islice(chain(table.of_word.get(word, ()), of_kanji, table.rare.get(word, ())), READINGS_LIMIT)))


class _Table:
    """The file: reading → the kanji that usually have it and those that rarely do, and reading → words that are read so as a whole."""

    def __init__(self, text: str) -> None:
        self.irregular: dict[str, Sequence[str]] = {}
        self._kanji: dict[str, tuple[Set[str], Set[str]]] = {}
        once: dict[str, str] = {}
        for line in text.splitlines():
            kana, usual, rare, *words = line.split("\t")
            self._kanji[kana] = (
                frozenset(once.setdefault(one, one) for one in usual),
                frozenset(once.setdefault(one, one) for one in rare),
            )
            if words:
                self.irregular[kana] = words
        self._longest = max(map(len, self._kanji))

    @cached_property
    def usual(self) -> dict[str, list[str]]:
        """Kanji → its usual readings."""
        return _inverted((kana, kanji) for kana, (usual, _) in self._kanji.items() for kanji in usual)

    @cached_property
    def rare(self) -> dict[str, list[str]]:
        """Kanji → the readings that it has as a word or as a part of few."""
        return _inverted((kana, kanji) for kana, (_, rare) in self._kanji.items() for kanji in rare)

    @cached_property
    def of_word(self) -> dict[str, list[str]]:
        """Word of irregular reading → its readings."""
        return _inverted((kana, word) for kana, irregular in self.irregular.items() for word in irregular)

    def rest(self, kana: str, followers: Mapping[str, str], word: str, rare_limit: int) -> Iterator[str]:
        """What begins with `word`, and is read further as `kana`."""
        if not kana:
            yield word
        elif len(word) < LONGEST_WORD:
            after = set(followers.get(word[-1], "")) if word else followers.keys()
            for length in range(1, min(len(kana), self._longest) + 1):
                for is_rare, kanji in enumerate(self._kanji.get(kana[:length], ())[: 1 + rare_limit]):
                    for one in kanji & after:
                        yield from self.rest(kana[length:], followers, word + one, rare_limit - is_rare)


def _inverted(pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    inverted: dict[str, list[str]] = defaultdict(list)
    for kana, written in pairs:
        inverted[written].append(kana)
    return dict(inverted)


@cache
def _table() -> _Table | None:
    file = DIRECTORY / READINGS
    return _Table(file.read_text(encoding="utf-8")) if file.is_file() else None
