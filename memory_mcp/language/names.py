"""Names, compared without regard to width, case and honorifics; their mentions in a text, and the known ones among these, found by an
Aho-Corasick automaton, also in Japanese, which has no word boundaries; and the speakers of memories: who of them is named in a question, and
who is an assistant or only a role in a conversation."""

import re
import unicodedata
from bisect import bisect
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from ahocorasick_rs import AhoCorasick, MatchKind

from memory_mcp.characters import EVERY_KANJI, HIRAGANA, KATAKANA
from memory_mcp.language.kanji import with_usual_kanji
from memory_mcp.lexicon import words

NAME_LIMIT = 100
Method = Literal["marked", "stated", "known", "rule", "dictionary", "model"]

# The type of an entity of which nothing shows a type.
UNKNOWN_TYPE = "Concept"
# Confidence by method, 0 to 1; of overlapping mentions the more trusted one is kept.
TRUST: dict[Method, float] = {"marked": 1.0, "stated": 1.0, "known": 0.9, "model": 0.8, "dictionary": 0.6, "rule": 0.6}

# あっくん is a name as a whole: あっ is how 「あった」 begins.
_JAPANESE, _LATIN = ("|".join(words(language, "honorifics")) for language in ("ja", "en"))
_HONORIFIC = re.compile(f"(?<=[^っッ])(?:{_JAPANESE}|-?(?:{_LATIN}))$")
_NICKNAME = re.compile("[っッ](?:さん|さま|くん|ちゃん|たん)$")

_PARTICLES = "".join(words("ja", "particles"))
# The letters of a script, those that may be before a name which begins with one of them, and behind one that ends so: particles.
_SCRIPTS = (
    (re.compile(f"[{KATAKANA}]"), "", ""),
    (re.compile(f"[{HIRAGANA}\u3097-\u309f]"), _PARTICLES, _PARTICLES + "".join(words("ja", "after_hiragana_name"))),
)
KANJI = re.compile(f"[{EVERY_KANJI}]")
# The roles of what is no person, whose texts are long and repeat a person's; and assistants by name, as their exports, hooks and clients
# write it. Names of the roles in a conversation don't name a person.
ASSISTANT_ROLES = frozenset((*words("en", "assistant_roles"), *words("ja", "assistant_roles")))
ASSISTANT_NAMES = frozenset(words("en", "assistant_names"))
_ASSISTANTS = ASSISTANT_ROLES | ASSISTANT_NAMES
_ROLES = ASSISTANT_ROLES.union(*(words(language, table) for language in ("en", "ja") for table in ("roles", "pronouns")))
LEAST_CHARACTERS = 2

_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Zs", "Zl", "Zp"})


def fold(name: str) -> str:
    """NFKC, case-folded, with single blanks: names that fold alike are the same name."""
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split())


# What a single character may become: U+FDFA.
LONGEST_IN_NFKC = 18


def normalized_length(text: str) -> int:
    """The number of characters to work on: as written, or in NFKC, where it may be `LONGEST_IN_NFKC` times as long."""
    return len(text) if text.isascii() else max(len(text), len(unicodedata.normalize("NFKC", text)))


def is_invisible(name: str) -> bool:
    """True if a name has only invisible characters: blanks, direction marks, control characters. Characters unknown to Python count as
    visible.
    """
    return all(unicodedata.category(character) in _INVISIBLE for character in fold(name))


def bare(name: str) -> str:
    """The folded name without an honorific: 田中さん, 田中様, 田中部長 → 田中."""
    folded = fold(name)
    return _HONORIFIC.sub("", folded).strip() or folded


def is_polite(name: str) -> bool:
    """True if the name has an honorific: 田中さん, and あっくん, which is no name without it."""
    return _HONORIFIC.search(fold(name)) is not None or _NICKNAME.search(fold(name)) is not None


@dataclass(frozen=True, slots=True)
class Mention:
    """`text[start:end]` names an entity with this name and type (None: unknown).

    `likely` is its type unless one is stated elsewhere, `aliases` are further names that the text gives, `entity` is its row id where it is
    known already.
    """

    name: str
    type: str | None
    start: int
    end: int
    method: Method
    subtype: str | None = None
    aliases: tuple[str, ...] = ()
    likely: str | None = None
    entity: int | None = None

    @property
    def confidence(self) -> float:
        return TRUST[self.method]


def without_overlaps(mentions: Iterable[Mention]) -> list[Mention]:
    """Of overlapping mentions the most trusted one, of equally trusted ones the longest; in the order of the text."""
    kept: list[Mention] = []  # sorted by start: only the two neighbors can overlap with a new one
    for mention in sorted(mentions, key=lambda mention: (-mention.confidence, mention.start - mention.end, mention.start)):
        index = bisect(kept, mention.start, key=lambda other: other.start)
        neighbors = kept[max(index - 1, 0) : index + 1]
        if all(mention.end <= other.start or mention.start >= other.end for other in neighbors):
            kept.insert(index, mention)
    return kept


def is_apart(neighbor: str, name: str, *, is_before: bool) -> bool:
    """True if a name and the character before or behind it, if any, are not one word. A name of one kanji has no kanji beside it: 森 is not
    in 森林."""
    edge = name[0] if is_before else name[-1]
    for script, before, after in _SCRIPTS:
        if script.match(edge):
            return not script.match(neighbor) or neighbor in (before if is_before else after)
    if KANJI.match(edge):
        return len(name) > 1 or not KANJI.match(neighbor)
    return not neighbor.isalnum() or unicodedata.east_asian_width(neighbor) in ("W", "F")  # a script without spaces


def named_speakers(question: str, sources: Iterable[str | None]) -> frozenset[str]:
    """The sources that the question names, in any width or case, with or without an honorific such as さん."""
    plain = with_usual_kanji(fold(question))
    return frozenset(source for source in set(sources) if source and _is_named(source, plain))


def _is_named(source: str, question: str) -> bool:
    name = with_usual_kanji(fold(source))
    name = without if len(without := bare(name)) >= LEAST_CHARACTERS else name
    if len(name) < LEAST_CHARACTERS or name in _ROLES:
        return False
    pieces = question.split(name)  # its neighbors are the ends of the pieces
    return any(
        is_apart(before[-1:], name, is_before=True) and is_apart(after[:1], name, is_before=False) for before, after in pairwise(pieces)
    )


def is_assistant(source: str | None) -> bool:
    """True if a source is the assistant, the system or a tool, or an assistant's name."""
    return source is not None and fold(source) in _ASSISTANTS


def is_role(source: str) -> bool:
    """True if a source is only a role in a conversation, such as `user`."""
    return fold(source) in _ROLES


# The known names of a persona in a text.

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
    """The names of one persona's entities. Immutable; built anew when names go, and joined with those that come (10,000 names: some 10 ms)."""

    def __init__(self, names: Iterable[tuple[str, int]], *others: "Gazetteer") -> None:
        """`names`: pairs of a name and an entity, besides those of `others`. Names that are too short or too long are left out."""
        known: dict[str, list[int]] = {}
        for name, entities in (entry for other in others for entry in other.entries):
            known[name] = [*known.get(name, ()), *entities]
        for name, entity in names:
            if is_searchable(folded := fold(name)):
                known.setdefault(folded, []).append(entity)
        self.entries: list[_Known] = list(known.items())
        parts = [self.entries[start : start + NAMES_AT_ONCE] for start in range(0, len(known), NAMES_AT_ONCE)]
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
