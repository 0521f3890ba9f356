"""Tables of date words, of which only those are tried that can stand in a text: in an English one nothing Japanese does."""

import re
from collections.abc import Sequence

from memory_mcp.characters import is_japanese
from memory_mcp.dates.relative import Pattern

_WORD, _LETTER = re.compile("[a-z]{2}"), re.compile("[a-z]")
_NO_WORD = re.compile(r"\(\?P?<?[A-Za-z_]+\d*[>)]|\[[^\]]*\]|\\[A-Za-z]")


class Spoken:
    """Patterns in their order, and those of them for texts of either language: one without a word of the other, and `figures`, which may do
    without any."""

    def __init__(self, patterns: Sequence[Pattern], figures: Sequence[Pattern]) -> None:
        languages = [(one, is_japanese(one[0].pattern), _WORD.search(_NO_WORD.sub("", one[0].pattern)) is not None) for one in patterns]
        self._everything = list(patterns)
        self._without_english = [one for one, japanese, english in languages if japanese or not english]
        self._without_japanese = [one for one, japanese, english in languages if english or not japanese or one in figures]

    def patterns(self, plain: str) -> Sequence[Pattern]:
        """Those that can stand in a text in its plain form."""
        if not is_japanese(plain):
            return self._without_japanese
        return self._everything if _LETTER.search(plain) else self._without_english
