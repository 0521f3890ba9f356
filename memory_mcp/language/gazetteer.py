"""Finds known names in a text by an Aho-Corasick automaton, also in Japanese, which has no word boundaries."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ahocorasick_rs import AhoCorasick, MatchKind

from memory_mcp.language.names import KANJI, NAME_LIMIT, fold, is_apart
from memory_mcp.lexicon import words

_Known = tuple[str, list[int]]

# The automaton is built and asked in calls that hold the interpreter, so each is given no more than some 20 ms of work: a persona with
# 100,000 names, or a text in which a hundred names begin at each character, keeps no other call waiting.
NAMES_AT_ONCE, CHARACTERS_AT_ONCE = 10_000, 2_000

# Names that also end a sentence or follow any noun: いいのかな, 東京から; and what shows that they are names: かなと会った, and not 大丈夫かなと思った;
# 妹はさえです, 親友のよりが結婚した.
_LIKE_ENDINGS, _LIKE_PARTICLES = frozenset(words("ja", "names_like_endings")), frozenset(words("ja", "names_like_particles"))
_HONORIFIC_AFTER, _PAUSES = words("ja", "honorifics"), "。！？!?\n「『（( \u3000・"
_LIKE_A_PERSON, _IS_STATED = re.compile(words("ja", "like_a_person")[0]), re.compile(words("ja", "is_stated")[0])
_DOES_SOMETHING = re.compile(words("ja", "does_something")[0])
# 静かな, 豊かな; 誰かな, 何かな.
_WORDS_IN_KANA = "静確豊僅愚遥微厳密細柔暖和清鮮滑朗賑誰何"


@dataclass(frozen=True, slots=True)
class Candidate:
    """An entity with the matched name: row id, name and type. `is_own`: the match is its own name, not an alias."""

    entity: int
    name: str
    type: str
    is_own: bool = True


@dataclass(frozen=True, slots=True)
class Match:
    """`text[start:end]` is a known name of each of the `candidates`, the one mentioned most first."""

    start: int
    end: int
    candidates: tuple[Candidate, ...]


class Gazetteer:
    """The names of one persona's entities. Immutable; built anew when names come or go (10,000 names: some 10 ms)."""

    def __init__(self, names: Iterable[tuple[str, int]]) -> None:
        """`names`: pairs of a name and an entity. Names that are too short or too long are left out."""
        known: dict[str, list[int]] = {}
        for name, entity in names:
            if is_searchable(folded := fold(name)):
                known.setdefault(folded, []).append(entity)
        entries = list(known.items())
        parts = [entries[start : start + NAMES_AT_ONCE] for start in range(0, len(entries), NAMES_AT_ONCE)]
        self._parts = [(part, AhoCorasick([name for name, _ in part], matchkind=MatchKind.Standard)) for part in parts]

    def find(self, folded: str, offsets: Sequence[int]) -> Iterator[tuple[int, int, list[int]]]:
        """Start, end and entities of each known name in a text that `composed_with_places` gives. Matches may overlap."""
        for known, automaton in self._parts:
            for pattern, start, end in _matches(automaton, folded):
                name, entities = known[pattern]
                before, after = folded[start - 1 : start], folded[end : end + 1]
                is_whole = is_apart(before, name, is_before=True) and is_apart(after, name, is_before=False)
                if is_whole and _is_a_name(folded, start, end, name):
                    yield offsets[start], offsets[end], entities


class Spellings:
    """Finds texts that contain one of these names letter by letter, wherever it begins and ends."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names, self._automaton = names, AhoCorasick(names, matchkind=MatchKind.Standard)

    def within(self, text: str) -> set[str]:
        """The names that a text contains."""
        return {self._names[pattern] for pattern, _, _ in _matches(self._automaton, text)}


def is_searchable(name: str) -> bool:
    """True if a name is long enough to be recognized in a text (one kanji is) and not too long, and no nickname without its honorific."""
    return KANJI.match(name) is not None if len(name) == 1 else len(name) <= NAME_LIMIT and not name.endswith(("っ", "ッ"))


def _matches(automaton: AhoCorasick, text: str) -> Iterator[tuple[int, int, int]]:
    """Number, start and end of each name, overlaps included. A long text is searched bit by bit."""
    for offset in range(0, len(text), CHARACTERS_AT_ONCE):
        # A name that begins at the end of one part ends in the next one.
        part = text[offset : offset + CHARACTERS_AT_ONCE + NAME_LIMIT]
        for pattern, start, end in automaton.find_matches_as_indexes(part, overlapping=True):
            if start < CHARACTERS_AT_ONCE:
                yield pattern, offset + start, offset + end


def _is_a_name(text: str, start: int, end: int, name: str) -> bool:
    """True if a name that is also an everyday word is a name there."""
    before = text[start - 1 : start]
    is_like_particle = name in _LIKE_PARTICLES
    if not (is_like_particle or name in _LIKE_ENDINGS) or not before or before in _PAUSES or text.startswith(_HONORIFIC_AFTER, end):
        return True
    if is_like_particle:
        return bool((before in "はが" and _IS_STATED.match(text, end)) or (before == "の" and _DOES_SOMETHING.match(text, end)))
    return before in "はが" or (before not in _WORDS_IN_KANA and _LIKE_A_PERSON.match(text, end) is not None)
