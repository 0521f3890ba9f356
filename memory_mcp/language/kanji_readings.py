"""Words in kanji by how they are read: 沢渡 for さわたり, 図書館 for としょかん.

The table has readings of single kanji within words and names (dictionaries/README.md), so most readings fit many combinations of kanji. Which of these
are words only a text can tell: the caller says which kanji follow each other there.
"""

from collections.abc import Iterator, Mapping, Sequence, Set
from functools import cache

from memory_mcp.language.synonyms import DIRECTORY

FILE = "readings.tsv"
# Kanji of a word, and those of them that may have a rare reading.
LONGEST_WORD, RARE_LIMIT = 4, 1


def words_read_as(kana: str, followers: Mapping[str, str]) -> Iterator[str]:
    """The words that may be read so: of kanji that follow each other in a text (`followers`: for each kanji those after it), and those of irregular reading.
    Those of usual readings come first."""
    table = _table()
    if table:
        yield from table.irregular.get(kana, ())
        yield from table.rest(kana, followers, "", 0)
        yield from table.rest(kana, followers, "", RARE_LIMIT)


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


@cache
def _table() -> _Table | None:
    file = DIRECTORY / FILE
    return _Table(file.read_text(encoding="utf-8")) if file.is_file() else None
