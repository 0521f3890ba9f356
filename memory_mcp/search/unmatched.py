"""The informative words of a query that no memory of a persona holds, so that a model can rephrase, or say that it doesn't know.

Only what a search can find counts as held: nothing that was forgotten, and what was replaced while the memory that replaced it is there.
Kanji are looked up by pairs, which are also found within longer words, katakana by three characters or in another spelling as a whole,
other scripts by the word, and katakana and Latin letters by their sound, too. Hiragana is mostly grammar, and is left out.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, islice

import apsw

from memory_mcp import lexicon
from memory_mcp.characters import HAN, HIRAGANA, KATAKANA
from memory_mcp.language.kanji import with_usual_kanji
from memory_mcp.language.spelling import other_spellings
from memory_mcp.language.tokens import is_function_word, query_tokens, tokens
from memory_mcp.search.other_scripts import in_other_scripts
from memory_mcp.search.time_asked import EMPTY_JAPANESE, VAGUE_ENGLISH
from memory_mcp.store.lexical.stored_words import StoredWords
from memory_mcp.store.lexical.token_frequencies import held
from memory_mcp.tracing import spanned

MOST, LONGEST = 8, 40
# The words of a long query that are looked up.
WORDS_LIMIT = 100
KANJI_WINDOW, KATAKANA_WINDOW = 2, 3
LONGEST_COUNT = 2

# Endings by which a kanji is part of a longer word (締め切り), and those that only belong to it.
_JOINING = "いきしちりみびぎえけせねめれべげっ"
_NOT_OF_WORD = "[はがをにでともへのかねよなやっん]|ど[うこちっのれん]|い(?:く[らつ]|つ(?![きくけ])|[るい])"
# A run of kanji ends before what asks (娘何歳), and one of two or more before a verb (蕎麦食べられる), but not in 幾何 and 間違えた.
_ASKS = "(?<![幾如何])何|誰"
_VERB = f"(?<![間手気見])[{HAN}](?:[えけげせべめれ][たてなまよらる]|った|[きぎちびり](?:たい|ま[しす]))"
_NO_KANJI = f"(?=[^{HAN}]|$|{_ASKS})"
_STEM = f"(?!誰)[{HAN}]{_NO_KANJI}"
_LETTER = rf"(?![{HAN}{HIRAGANA}{KATAKANA}])[^\W_]"
_WORD = re.compile(
    rf"(?P<stems>{_STEM}(?:[{_JOINING}]{_STEM})*(?:さん|ちゃん|ごはん|ども|[かさまらわ][しせりれ]|(?!{_NOT_OF_WORD})[{HIRAGANA}])?)"
    rf"|(?P<kanji>[{HAN}]{{2}}(?:(?!{_ASKS}|{_VERB})[{HAN}])*)|(?P<katakana>[{KATAKANA}]{{2,}})"
    # What signs join is one word: INC-88, v2.5, Wi-Fi.
    rf"|(?P<other>(?=\d*(?!\d){_LETTER})(?:{_LETTER})+(?:[-.#_&/](?:{_LETTER})+)+|(?:{_LETTER})+(?:['’]t\b|\+\+|[+#](?!{_LETTER}))?)"
)
_KANJI, _ENDING = re.compile(f"[{HAN}]"), re.compile(f"(?<![{HIRAGANA}])[{HIRAGANA}]++$")
_WRITTEN_DATE = re.compile(r"\d{4}|\d月|月\d|[a-z]{3} \d|\d [a-z]{3}")
# What asks or relates, and says nothing of what is asked for.
_ASKING = re.compile(
    rf"何[{HAN}]{{0,20}}|(?<=どんな)人|[毎前次]回|毎[日週月年]|以[上下外内]|結局|一番|一緒|大丈夫|[今次特主]{_NO_KANJI}|{EMPTY_JAPANESE}"
)
_ASKING_ENGLISH = VAGUE_ENGLISH.union(lexicon.words("en", "relating"))


@dataclass(frozen=True, slots=True)
class _Word:
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
def unmatched(connection: apsw.Connection, stored: StoredWords, query: str) -> tuple[str, ...]:
    """The words, as they were written, each once, at most `MOST` of `LONGEST` characters. `query` is without the dates that were
    understood."""
    text = unicodedata.normalize("NFKC", query)
    words = list(islice(_words(text), WORDS_LIMIT))
    known = held(connection, list({phrase for word in words for _, _, phrase in word.phrases}))
    parts = [(word, missing) for word in words if (missing := _missing(word, known))]
    if any(word.may_be_heard for word, _ in parts):
        heard = _heard(connection, stored, text)
        parts = [(word, missing) for word, missing in parts if not heard.issuperset(range(word.start, word.start + len(word.text)))]
    named = dict.fromkeys(part for _, missing in parts for part in missing)
    return tuple(part if len(part) <= LONGEST else f"{part[: LONGEST - 1]}…" for part in islice(named, MOST))


def unmatched_dates(connection: apsw.Connection, words: Sequence[str]) -> tuple[str, ...]:
    """Those words for dates of which no memory is, and which none has as they are written. 3日前 in a memory is another day."""
    written = {word: " ".join(tokens(word)) for word in words if _WRITTEN_DATE.search(word)}
    known = held(connection, list(written.values())) if written else set()
    return tuple(word for word in words if written.get(word) not in known)


def _heard(connection: apsw.Connection, stored: StoredWords, text: str) -> set[int]:
    """The positions of what is in the store in another script."""
    others = in_other_scripts(connection, stored, text)
    known = held(connection, list({other.phrase for other in others}))
    return {index for other in others if other.phrase in known for index in range(other.start, other.end)}


def _words(text: str) -> Iterator[_Word]:
    others = other_spellings(text)

    def written_otherwise(match: re.Match[str]) -> list[str]:
        return [other.phrase for other in others if other.start <= match.start() and match.end() <= other.end]

    for match in _WORD.finditer(text):
        word = match.group()
        asking = _ASKING.match(text, match.start())
        if asking and asking.end() >= match.start() + len(_ENDING.sub("", word)):
            continue
        if match.lastgroup == "stems":
            yield _Word(match.start(), word, [(0, len(word), with_usual_kanji(_KANJI.findall(word)[-1]))], may_be_heard=True)
        elif match.lastgroup == "kanji":
            yield _Word(match.start(), word, _windows(word, KANJI_WINDOW), is_divisible=True, may_be_heard=True)
        elif match.lastgroup == "katakana":
            yield _Word(
                match.start(),
                word,
                [
                    *_windows(word, min(KATAKANA_WINDOW, len(word))),
                    *((0, len(word), phrase) for phrase in written_otherwise(match)),
                ],
                may_be_heard=True,
            )
        elif _is_informative(word):
            phrases = [*query_tokens(word)[:2], *written_otherwise(match)]
            yield _Word(match.start(), word, [(0, len(word), phrase) for phrase in phrases], may_be_heard=not word.isdecimal())


def _is_informative(word: str) -> bool:
    is_count = word.isdecimal() and len(word) <= LONGEST_COUNT
    return len(word) > 1 and not is_count and not is_function_word(word) and word.casefold() not in _ASKING_ENGLISH


def _windows(run: str, size: int) -> list[tuple[int, int, str]]:
    """The phrase of the pairs of each `size` characters in a row."""
    return [
        (start, start + size, " ".join(token for token in tokens(run[start : start + size]) if len(token) > 1))
        for start in range(len(run) - size + 1)
    ]


def _missing(word: _Word, known: set[str]) -> list[str]:
    """The parts of a word that no known phrase covers; of a word that can't be divided all of it."""
    covered = {index for start, end, phrase in word.phrases if phrase in known for index in range(start, end)}
    if not word.is_divisible:
        return [] if len(covered) == len(word.text) else [word.text]
    runs = groupby(range(len(word.text)), covered.__contains__)
    parts = ("".join(word.text[index] for index in indexes) for is_covered, indexes in runs if not is_covered)
    return [part for part in parts if len(part) > 1]
