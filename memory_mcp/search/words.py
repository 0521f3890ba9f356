"""The words of a question in one store: those that it has in another script, and those that it lacks."""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from itertools import chain, groupby, islice

import apsw

from memory_mcp import lexicon
from memory_mcp.language.kanji import readings_of, with_usual_kanji
from memory_mcp.language.sound import in_hiragana
from memory_mcp.language.synonyms import Spelling, Synonyms, is_word, phrase_as_written, to_hiragana, to_katakana
from memory_mcp.language.tokens import (
    WORD_WEIGHT,
    is_function_word,
    is_grammar,
    is_unspaced,
    query_tokens,
    spaced_otherwise,
    tokens,
)
from memory_mcp.search.question import QUERY_LIMIT, VAGUE_ENGLISH
from memory_mcp.store.lexical.bm25_index import SYNONYM_WEIGHT
from memory_mcp.store.lexical.stored_words import LATIN, StoredWords, held
from memory_mcp.tracing import spanned

# As many tokens as count like a word, which a synonym of one token does not.
LEAST_TIMES = round(WORD_WEIGHT / SYNONYM_WEIGHT)
# The characters of a long query that are read, the words in it that are looked up, and those that are searched in another script.
CHARACTERS_LIMIT, LOOKED_UP_LIMIT, WORDS_LIMIT = 300, 150, 12
# The kana of a word in hiragana, which may be two where the store has it in katakana; of a name before an honorific; of what may be written
# in Latin letters; and of the longest word.
SHORTEST, SHORTEST_NAME, SHORTEST_IN_LATIN, LONGEST = 3, 2, 4, 9

_IS = lexicon.expressions(__file__, "questions.toml", "words", longest=QUERY_LIMIT, latin=LATIN)


@dataclass(frozen=True, slots=True)
class _Word:
    start: int
    end: int
    text: str
    script: str

    @property
    def other_kana(self) -> str:
        return to_hiragana(self.text) if self.script == "katakana" else to_katakana(self.text)


def in_other_scripts(connection: apsw.Connection, stored: StoredWords, text: str) -> list[Spelling]:
    """The words of a query that its store has in another script, once for each way to write them there. `text` is in normalized width.

    Hiragana is looked for in kanji anyway; other words only where the store lacks them as they are written.
    """
    stored.update(connection)
    words = list(islice(_words(stored, text[:CHARACTERS_LIMIT]), LOOKED_UP_LIMIT))
    known = held(connection, list({phrase_as_written(written) for word in words for written in (word.text, word.other_kana)}))
    found = list(_polite_of_kanji(stored, text[:CHARACTERS_LIMIT]))
    until = 0
    for word in words:
        if word.start >= until:  # else a part of a longer word that was found
            others = list(_others(connection, stored, word, known))
            found += others
            until = word.end if others else until
    return found


def as_synonyms(query: str, in_store: Iterable[Spelling]) -> list[Synonyms]:
    """What `in_other_scripts` found for a query, as synonyms. Each counts as many tokens as the word has: Greta is one, グレタ two. Between
    Latin letters and another script it counts at least like a word."""
    text = unicodedata.normalize("NFKC", query)
    by_word: dict[tuple[str, bool], dict[str, None]] = {}
    for spelling in in_store:
        word = phrase_as_written(text[spelling.start : spelling.end])
        by_word.setdefault((word, is_unspaced(word) and is_unspaced(spelling.phrase)), {})[spelling.phrase] = None
    return [
        Synonyms(word, list(others), min(LONGEST, max(len(word.split()), 1 if are_both_unspaced else LEAST_TIMES)))
        for (word, are_both_unspaced), others in islice(by_word.items(), WORDS_LIMIT)
    ]


def _words(stored: StoredWords, text: str) -> Iterator[_Word]:
    """What may be a word, the longest first where several begin."""
    for match in _IS["word"].finditer(text):
        script, (start, stop) = str(match.lastgroup), match.span()
        if script == "hiragana":
            for first in filter(lambda index: _IS["before"].match(text, index), range(start, stop)):
                for last in range(min(first + LONGEST, stop), first + 1, -1):
                    if _is_word(stored, text, first, last):
                        yield _Word(first, last, text[first:last], script)
        elif not is_function_word(match.group()):
            yield _Word(start, stop, match.group(), script)


def _is_word(stored: StoredWords, text: str, start: int, end: int) -> bool:
    """Whether a part of a run of hiragana may be a word: a name before an honorific, or what is before a particle, and not grammar
    itself."""
    is_name = end - start >= SHORTEST_NAME and _IS["honorific"].match(text, end)
    is_enough = end - start >= SHORTEST or stored.has_in_katakana(to_katakana(text[start:end]))
    is_whole = is_enough and _IS["after"].match(text, end) and not _IS["no_word"].match(text, start)
    return bool(is_name or is_whole) and not all(map(is_grammar, tokens(text[start:end])))


def _others(connection: apsw.Connection, stored: StoredWords, word: _Word, known: Set[str]) -> Iterator[Spelling]:
    others = _of_latin(connection, stored, word, known) if word.script == "latin" else _of_kana(connection, stored, word, known)
    yield from (Spelling(word.start, word.end, phrase_as_written(other)) for other in others)


def _polite_of_kanji(stored: StoredWords, text: str) -> Iterator[Spelling]:
    """The words in kanji that the store has in hiragana, behind お or ご: おしごと of 仕事."""
    written = {
        match.span(): [
            f"{first}{reading}"
            for reading in readings_of(match[2])
            if len(reading) >= SHORTEST_NAME
            for first in (match[1] if match[1] in ("お", "ご") else "おご")
        ]
        for match in _IS["kanji_word"].finditer(text)
    }
    known = stored.polite_among(chain.from_iterable(written.values()))
    for place, words in written.items():
        yield from (Spelling(*place, phrase_as_written(word)) for word in words if word in known)


def _without_prefix(connection: apsw.Connection, stored: StoredWords, word: str) -> list[str]:
    """The words in kanji that the store has for a word with お or ご: 仕事 for おしごと. One of two kana has the prefix there, too: お茶 for おちゃ."""
    kana = word[1:]
    if word[0] not in "おご" or len(kana) < SHORTEST_NAME:
        return []
    words = {f"{word[0]}{kanji}": kanji for kanji in stored.read_as(kana)}
    known = held(connection, list(map(phrase_as_written, words)))
    polite = [both for both in words if phrase_as_written(both) in known]
    return [*polite, *(kanji for both, kanji in words.items() if both in polite or len(kana) >= SHORTEST)]


def _of_latin(connection: apsw.Connection, stored: StoredWords, word: _Word, known: Set[str]) -> list[str]:
    if phrase_as_written(word.text) in known:
        return []
    # Short English words, such as "take", may be Japanese by chance.
    kana = in_hiragana(word.text)
    if kana and len(kana[0]) < SHORTEST and (word.text[0].islower() or is_grammar(kana[0])):
        kana = []
    in_kana = held(connection, list(map(phrase_as_written, kana))) if kana else ()
    in_kanji = [other for each in kana for other in stored.read_as(each)]
    return [*(each for each in kana if phrase_as_written(each) in in_kana), *in_kanji, *stored.in_katakana(word.text)]


def _of_kana(connection: apsw.Connection, stored: StoredWords, word: _Word, known: Set[str]) -> list[str]:
    may_be_part = len(word.text) < SHORTEST and word.script == "hiragana"
    is_there = stored.has_in_katakana(word.other_kana) if may_be_part else phrase_as_written(word.other_kana) in known
    in_other_kana = [word.other_kana] if is_there else []
    # Three kana may be a part of other words.
    is_known = phrase_as_written(word.text) in known or (bool(in_other_kana) and len(word.text) > SHORTEST)
    may_be_kanji = len(word.text) <= LONGEST and not (word.script == "katakana" and is_known)
    in_kanji = stored.read_as(to_hiragana(word.text)) if may_be_kanji else []
    if word.script == "hiragana" and not in_kanji:
        in_kanji = _without_prefix(connection, stored, word.text)
    others = [*in_kanji, *in_other_kana]
    if is_known or (word.script == "hiragana" and (others or len(word.text) < SHORTEST_IN_LATIN)):
        return others
    return [*others, *stored.in_latin(word.text)]


MOST_UNMATCHED, LONGEST_UNMATCHED = 8, 40
# The words of a long query that are looked up.
QUERY_WORDS_LIMIT = 100
WINDOWS = {"kanji": 2, "katakana": 3}
LONGEST_COUNT = 2

_ASKING_ENGLISH = VAGUE_ENGLISH.union(lexicon.words("en", "relating"))


@dataclass(frozen=True, slots=True)
class _QueryWord:
    """A word as it was written at `start`, and the phrases of tokens to look up, each with the characters from `start` to `end` of it:
    (start, end, phrase).

    `is_divisible`: a part of it is a word, too. `may_be_heard`: it may be in the store in another script, with the same sound.
    """

    start: int
    text: str
    phrases: Sequence[tuple[int, int, str]]
    is_divisible: bool = False
    may_be_heard: bool = False


@spanned("unmatched")
def unmatched(connection: apsw.Connection, query: str, others: Callable[[str], Sequence[Spelling]]) -> tuple[str, ...]:
    """The words, as they were written, each once, at most `MOST_UNMATCHED` of `LONGEST_UNMATCHED` characters. `query` is without the dates
    that were understood, `others` finds the words of it that the store has in another script."""
    text = unicodedata.normalize("NFKC", query)
    words = list(islice(_query_words(text), QUERY_WORDS_LIMIT))
    known = held(connection, list({phrase for word in words for _, _, phrase in word.phrases}))
    parts = [(word, missing) for word in words if (missing := _missing(word, known))]
    if any(word.may_be_heard for word, _ in parts):
        heard = _heard(connection, others(query))
        parts = [(word, missing) for word, missing in parts if not heard.issuperset(range(word.start, word.start + len(word.text)))]
    named = dict.fromkeys(part for _, missing in parts for part in missing)
    return tuple(part if len(part) <= LONGEST_UNMATCHED else f"{part[: LONGEST_UNMATCHED - 1]}…" for part in islice(named, MOST_UNMATCHED))


def unmatched_dates(connection: apsw.Connection, words: Sequence[str]) -> tuple[str, ...]:
    """Those words for dates of which no memory is, and which none has as they are written. 3日前 in a memory is another day."""
    written = {word: " ".join(tokens(word)) for word in words if _IS["written_date"].search(word)}
    known = held(connection, list(written.values())) if written else set()
    return tuple(word for word in words if written.get(word) not in known)


def _heard(connection: apsw.Connection, others: Sequence[Spelling]) -> set[int]:
    """The positions of what is in the store in another script."""
    known = held(connection, list({other.phrase for other in others}))
    return {index for other in others if other.phrase in known for index in range(other.start, other.end)}


def _names_in_hiragana(run: re.Match[str]) -> Iterator[_QueryWord]:
    """What may be a name between the の of a run of hiragana."""
    for match in _IS["between_no"].finditer(run.string, *run.span()):
        word = match.group()
        is_somebody = match.end() == run.end() and _IS["honorific"].match(run.string, run.end())
        is_name = _IS["name_of_somebody" if is_somebody else "name"].fullmatch(word)
        if is_name and not (
            is_word(word) or _IS["no_word"].match(word) or _IS["vague_end"].search(word) or all(map(is_grammar, tokens(word)))
        ):
            phrases = [phrase_as_written(written) for written in (word, to_katakana(word))]
            yield _QueryWord(match.start(), word, [(0, len(word), phrase) for phrase in phrases], may_be_heard=True)


def _query_words(text: str) -> Iterator[_QueryWord]:
    spaced = spaced_otherwise(text)
    for match in _IS["query_word"].finditer(text):
        word, kind = match.group(), str(match.lastgroup)
        asking = _IS["asking"].match(text, match.start())
        if asking and asking.end() >= match.start() + len(_IS["ending"].sub("", word)):
            continue
        if kind == "hiragana":
            yield from _names_in_hiragana(match)
        elif kind in WINDOWS:
            phrases = _windows(word, min(WINDOWS[kind], len(word)))
            yield _QueryWord(match.start(), word, phrases, is_divisible=kind == "kanji", may_be_heard=True)
        elif kind == "stems" or _is_informative(word):
            whole = [with_usual_kanji(_IS["kanji"].findall(word)[-1])] if kind == "stems" else query_tokens(word)[:2]
            whole += (phrase for start, end, phrase in spaced if start <= match.start() and match.end() <= end)
            yield _QueryWord(match.start(), word, [(0, len(word), phrase) for phrase in whole], may_be_heard=not word.isdecimal())


def _is_informative(word: str) -> bool:
    is_count = word.isdecimal() and len(word) <= LONGEST_COUNT
    return len(word) > 1 and not is_count and not is_function_word(word) and word.casefold() not in _ASKING_ENGLISH


def _windows(run: str, size: int) -> list[tuple[int, int, str]]:
    """The phrase of the pairs of each `size` characters in a row."""
    return [
        (start, start + size, " ".join(token for token in tokens(run[start : start + size]) if len(token) > 1))
        for start in range(len(run) - size + 1)
    ]


def _missing(word: _QueryWord, known: set[str]) -> list[str]:
    """The parts of a word that no known phrase covers; of a word that can't be divided all of it."""
    covered = {index for start, end, phrase in word.phrases if phrase in known for index in range(start, end)}
    if not word.is_divisible:
        return [] if len(covered) == len(word.text) else [word.text]
    runs = groupby(range(len(word.text)), covered.__contains__)
    parts = ("".join(word.text[index] for index in indexes) for is_covered, indexes in runs if not is_covered)
    return [part for part in parts if len(part) > 1]
