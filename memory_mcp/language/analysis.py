"""A text, read once: its tokens, words, synonyms, sentences, dates and names, each found when it is first needed, and kept.

    asked = analysis("昨日おちゃを飲んだ？")
    asked.query_tokens, asked.synonyms, asked.sentences
    asked.recognized, asked.date_expressions(today)

The steps of a search, and those that store a memory, pass an `Analysis` on instead of a text. The last short texts are kept, so that a
question and the words of it are read once however many steps need them.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import date
from functools import lru_cache
from typing import Any, Generic, TypeVar, overload

from memory_mcp.dates.recognize import Named, dates_asked, recognize
from memory_mcp.language import names
from memory_mcp.language.kanji import with_usual_kanji
from memory_mcp.language.sentences import sentences_of
from memory_mcp.language.synonyms import synonyms
from memory_mcp.language.tokens import (
    forget_tokens,
    fragments,
    is_grammar,
    is_unspaced,
    kana_words,
    normalise,
    query_phrases,
    query_tokens,
    tokens,
    weighed_query_tokens,
)
from memory_mcp.lexicon import words

# The texts that are kept, and the characters of the longest of them: 5 MB with all that was found in them. A text is asked on so many days.
KEPT_TEXTS, KEPT_CHARACTERS, KEPT_DAYS = 256, 300, 8

_FOR_ASSISTANT = re.compile("|".join((*words("en", "for_assistant"), *words("ja", "for_assistant"))))

_Part = TypeVar("_Part")


class _Once(Generic[_Part]):
    """A part of an analysis that is found when it is first needed. Unlike those of functools, two texts never wait for each other."""

    def __init__(self, find: "Callable[[Analysis], _Part]") -> None:
        self._find, self._name = find, ""

    def __set_name__(self, owner: Any, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, text: None, owner: Any) -> "_Once[_Part]": ...
    @overload
    def __get__(self, text: "Analysis", owner: Any) -> _Part: ...
    def __get__(self, text: "Analysis | None", owner: Any) -> "_Once[_Part] | _Part":
        if text is None:
            return self
        found = text.__dict__[self._name] = self._find(text)
        return found


class Analysis:
    """A question or a memory, and what was found in it. Take it from `analysis`."""

    text: str
    # The text in NFKC and without case; the same with the usual form of each kanji.
    normalized = _Once(lambda read: normalise(read.text))
    plain = _Once(lambda read: with_usual_kanji(read.normalized))
    # The tokens that the word index has of this text, in order.
    tokens = _Once(lambda read: tokens(read.text))
    # The words that a dictionary has, each with those that mean the same.
    synonyms = _Once(lambda read: synonyms(read.text))
    # The tokens to look for if this is a question, each once, without function words; the pairs of words side by side; and the tokens repeated
    # so that a word has the same weight in any script.
    query_tokens = _Once(lambda read: query_tokens(read.text))
    query_phrases = _Once(lambda read: query_phrases(read.text))
    weighed_query_tokens = _Once(lambda read: weighed_query_tokens(read.text, {each.word for each in read.synonyms}))
    # The words of hiragana; and the tokens to look for that find nothing alone, pairs of hiragana that are no word.
    kana_words = _Once(lambda read: kana_words(read.text))
    fragments = _Once(lambda read: fragments(read.text, read.kana_words))
    # Any of it is in a script without spaces, such as Japanese.
    is_unspaced = _Once(lambda read: any(map(is_unspaced, read.query_tokens)))
    # Its normalized sentences, without their full stops.
    sentences = _Once(lambda read: [plain for part in sentences_of(read.text) if (plain := normalise(part).strip("。.! "))])
    # It is a question for the assistant's own statements, such as "What did you recommend?"; "Can you suggest a film?" is a request.
    asks_assistant = _Once(lambda read: _FOR_ASSISTANT.search(read.normalized) is not None)
    # All that may be a date in it, whenever it is read.
    recognized = _Once(lambda read: recognize(read.text))

    def __init__(self, text: str) -> None:
        self.text = text
        self._dates: dict[tuple[date, bool], Sequence[Named]] = {}

    @_Once
    def words(self) -> Sequence[str]:
        """The whole words of a text without spaces, as phrases of tokens: those of the dictionary, and those in Latin letters; of any other
        text none."""
        if not self.is_unspaced:
            return ()
        in_japanese = [each.word for each in self.synonyms if is_unspaced(each.word) and not is_grammar(each.word)]
        return in_japanese + [token for token in self.query_tokens if not (is_unspaced(token) or " " in token)]

    def names(self, sources: Iterable[str | None]) -> frozenset[str]:
        """Those of these speakers that it names."""
        return names.named_speakers(self.text, sources)

    def date_expressions(self, today: date, *, upcoming: bool = False) -> Sequence[Named]:
        """The dates that it asks for, with their places in `recognized.plain`."""
        key = today, upcoming
        if key not in self._dates:
            if len(self._dates) >= KEPT_DAYS:
                self._dates.clear()
            self._dates[key] = dates_asked(self.recognized, today, upcoming=upcoming)
        return self._dates[key]


def analysis(text: str) -> Analysis:
    """The analysis of a text: the same as before if it is short and was read lately."""
    return _kept(text) if len(text) <= KEPT_CHARACTERS else Analysis(text)


def forget_texts() -> None:
    """Forgets the texts that were read lately and their tokens, after one was erased for good."""
    _kept.cache_clear()
    forget_tokens()


@lru_cache(maxsize=KEPT_TEXTS)
def _kept(text: str) -> Analysis:
    return Analysis(text)
