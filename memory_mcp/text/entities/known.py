"""Names that are known already, found in a text by an Aho-Corasick automaton, Japanese without word boundaries included."""

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping

from ahocorasick_rs import AhoCorasick, MatchKind

from memory_mcp.text.entities.folding import fold, folded_with_places
from memory_mcp.text.entities.mention import Mention

_HIRAGANA = "\u3041-\u309f"
_KATAKANA = "\u30a1-\u30fa\u30fc"
_KANJI = "\u3400-\u4dbf\u4e00-\u9fff々"
# What may stand directly before and after a name of hiragana: anything but hiragana, or a particle.
_BEFORE_HIRAGANA = "はがのをにでともへやかねよ"
_AFTER_HIRAGANA = "はがのをにでともへやかねよっだじさちくた"
# A name of one kanji stands beside no other: 森 is not in 森林.
_IS_KANJI = re.compile(f"[{_KANJI}]")


class Gazetteer:
    """The names of one persona's entities. Immutable; built anew when names come or go (10,000 names: some 10 ms)."""

    def __init__(self, names: Mapping[str, tuple[int, str, str]]) -> None:
        """`names`: by what it is called the entity's id, its name and its type. What is called by one letter is not looked for."""
        folded = ((known, fold(name)) for name, known in names.items())
        self._known = [(known, name) for known, name in folded if is_looked_for(name)]
        self._automaton = AhoCorasick([name for _, name in self._known], matchkind=MatchKind.Standard) if self._known else None

    def find(self, text: str) -> Iterator[tuple[int, Mention]]:
        """Each entity that the text names, with its id, at each place."""
        if self._automaton is None:
            return
        folded, places = folded_with_places(text)
        free = 0
        # All matches with the longer first at each place: where the longer is only a part of a word, the shorter still counts.
        matches = self._automaton.find_matches_as_indexes(folded, overlapping=True)
        for pattern, start, end in sorted(matches, key=lambda match: (match[1], -match[2])):
            (entity, name, type_), written = self._known[pattern]
            if start >= free and _stands_alone(folded, start, end, written):
                free = end
                yield entity, Mention(name, type_, places[start], places[end], "known")


def is_looked_for(name: str) -> bool:
    """Whether a name is long enough to be told from the words around it. One kanji is."""
    return len(name) > 1 or _IS_KANJI.match(name) is not None


def _stands_alone(text: str, start: int, end: int, name: str) -> bool:
    """Whether it is this name and not a part of a longer word."""
    before, after = text[start - 1 : start], text[end : end + 1]
    return _boundary(name[0])(before, name) and _boundary(name[-1], ending=True)(after, name)


def _boundary(edge: str, *, ending: bool = False) -> Callable[[str, str], bool]:
    if re.match(f"[{_KATAKANA}]", edge):
        return lambda beside, name: re.match(f"[{_KATAKANA}]", beside) is None
    if re.match(f"[{_HIRAGANA}]", edge):
        allowed = _AFTER_HIRAGANA if ending else _BEFORE_HIRAGANA
        return lambda beside, name: re.match(f"[{_HIRAGANA}]", beside) is None or beside in allowed
    if _IS_KANJI.match(edge):
        return lambda beside, name: len(name) > 1 or _IS_KANJI.match(beside) is None
    return lambda beside, name: not (beside.isalnum() and _is_spaced(beside))


def _is_spaced(character: str) -> bool:
    """Whether it belongs to a script that puts spaces between words."""
    return unicodedata.east_asian_width(character) not in ("W", "F")
