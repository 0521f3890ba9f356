"""Regular expressions for texts of any length: each repetition has an end, so that no place of a text is read again and again.

`re` tries a repetition from every place at which it may begin. One without an end reads the rest of the text from each: a text that is twice as
long takes four times as long, and with two of them in a row eight times.
"""

import re
from collections.abc import Iterable, Iterator
from functools import partial

from ahocorasick_rs import AhoCorasick, MatchKind

# Longer than what a rule of language looks for within a sentence.
LONGEST = 120

_PARTS = re.compile(
    r"(?s:\\.)|\[\^?\]?(?:\\.|[^\]\\])*+(?:\]|\Z)|\(\?|(?P<open>[*+]|\{(?P<least>\d+),\})(?P<kind>[?+]?)|\{\d*+(?:,\d*+)?\}[?+]?|\?[?+]?",
)


def with_ends(pattern: str, longest: int = LONGEST) -> str:
    """The same expression, in which what is repeated without an end is repeated `longest` times at most."""
    return _PARTS.sub(partial(_with_end, longest), pattern)


def bounded(pattern: str, flags: int = 0, *, longest: int = LONGEST) -> re.Pattern[str]:
    """The expression compiled, with an end to each repetition."""
    return re.compile(with_ends(pattern, longest), flags)


_GROUP = re.compile(r"\(\?P<(\w+)>")


class Found:
    """A match of an expression. A pattern may have a group several times, for each of its forms: it is the one that matched, else empty."""

    __slots__ = ("_groups", "_match", "string")

    def __init__(self, match: re.Match[str], groups: dict[str, list[str]]) -> None:
        self._match, self._groups, self.string = match, groups, match.string

    def __getitem__(self, name: str) -> str:
        return next(iter(self.all(name)), "")

    def all(self, name: str) -> list[str]:
        """What each of the groups of this name matched."""
        return [text for group in self._groups.get(name, ()) if (text := self._match[group])]

    def span(self) -> tuple[int, int]:
        return self._match.span()


class Forms:
    """A pattern of several forms, each of which may have the same groups. Each repetition in it has an end."""

    def __init__(self, pattern: str) -> None:
        self._groups: dict[str, list[str]] = {}
        self._compiled = bounded(_GROUP.sub(self._numbered, pattern))

    def _numbered(self, group: re.Match[str]) -> str:
        forms = self._groups.setdefault(group[1], [])
        forms.append(f"{group[1]}_{len(forms)}")
        return f"(?P<{forms[-1]}>"

    def all(self, plain: str) -> Iterator[Found]:
        return (Found(match, self._groups) for match in self._compiled.finditer(plain))

    def first(self, plain: str) -> Found | None:
        return next(self.all(plain), None)

    def whole(self, plain: str) -> Found | None:
        match = self._compiled.fullmatch(plain)
        return Found(match, self._groups) if match else None


class Needed:
    """Tells in one pass which of many patterns are worth trying on a text. `words`: of each, those without which it matches nothing; of one
    without words nobody knows."""

    def __init__(self, words: Iterable[Iterable[str]]) -> None:
        numbers: dict[str, list[int]] = {}
        for number, needed in enumerate(words):
            for word in needed:
                numbers.setdefault(word, []).append(number)
        self._numbers = list(numbers.values())
        self._automaton = AhoCorasick(list(numbers), matchkind=MatchKind.Standard)

    def within(self, text: str) -> set[int]:
        """The places in the list of those of which a text has a word."""
        try:
            found = self._automaton.find_matches_as_indexes(text, overlapping=True)
        except UnicodeEncodeError:  # half of a surrogate pair
            found = self._automaton.find_matches_as_indexes(text.encode(errors="replace").decode(), overlapping=True)
        return {number for word, _, _ in found for number in self._numbers[word]}


def _with_end(longest: int, part: re.Match[str]) -> str:
    if not part["open"]:
        return part[0]
    least = part["least"] or ("1" if part["open"] == "+" else "0")
    return f"{{{least},{max(longest, int(least))}}}{part['kind']}"
