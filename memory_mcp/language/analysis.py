"""A text, read once: its tokens, words, synonyms, sentences, dates and names, each found when it is first needed, and kept.

    asked = analysis("昨日おちゃを飲んだ？")
    asked.query_tokens, asked.synonyms, asked.is_question
    asked.recognized, asked.date_expressions(today)

The steps of a search, and those that store a memory, pass an `Analysis` on instead of a text. The last short texts are kept, so that a
question and the words of it are read once however many steps need them.
"""

from collections.abc import Callable, Iterable, Sequence
from datetime import date
from functools import lru_cache
from typing import Any, Generic, TypeVar, overload

from memory_mcp.dates.recognize import Named, Recognized, dates_asked, recognize
from memory_mcp.language import speakers
from memory_mcp.language.kanji import with_usual_kanji
from memory_mcp.language.sentences import sentences_of
from memory_mcp.language.spelling import Spelling, other_spellings
from memory_mcp.language.synonyms import Synonyms, synonyms
from memory_mcp.language.tokens import (
    forget_tokens,
    fragments,
    is_grammar,
    is_unspaced,
    normalise,
    query_phrases,
    query_tokens,
    tokens,
    weighed_query_tokens,
)

# The texts that are kept, and the characters of the longest of them: 5 MB with all that was found in them.
KEPT_TEXTS, KEPT_CHARACTERS = 256, 300

_Part = TypeVar("_Part")


class _Once(Generic[_Part]):
    """A part of an analysis that is found when it is first needed. Unlike those of functools, two texts never wait for each other."""

    def __init__(self, find: "Callable[[Analysis], _Part]") -> None:
        self._find, self._name, self.__doc__ = find, find.__name__, find.__doc__

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

    def __init__(self, text: str) -> None:
        self.text = text
        self._dates: dict[tuple[Any, ...], Any] = {}

    @_Once
    def normalized(self) -> str:
        """The text in NFKC and without case."""
        return normalise(self.text)

    @_Once
    def plain(self) -> str:
        """The normalized text with the usual form of each kanji."""
        return with_usual_kanji(self.normalized)

    @_Once
    def tokens(self) -> Sequence[str]:
        """The tokens that the word index has of this text, in order."""
        return tokens(self.text)

    @_Once
    def token_set(self) -> frozenset[str]:
        """The same, each once."""
        return frozenset(self.tokens)

    @_Once
    def query_tokens(self) -> Sequence[str]:
        """The tokens to look for if this is a question, each once, without function words."""
        return query_tokens(self.text)

    @_Once
    def query_phrases(self) -> Sequence[str]:
        """The pairs of words side by side, without function words."""
        return query_phrases(self.text)

    @_Once
    def weighed_query_tokens(self) -> Sequence[str]:
        """The tokens to look for, repeated so that a word has the same weight in any script."""
        return weighed_query_tokens(self.text, {each.word for each in self.synonyms})

    @_Once
    def synonyms(self) -> Sequence[Synonyms]:
        """The words that a dictionary has, each with those that mean the same."""
        return synonyms(self.text)

    @_Once
    def spellings(self) -> Sequence[Spelling]:
        """The other ways to write its kana, at their places in the normalized text."""
        return other_spellings(normalise(self.text))

    @_Once
    def is_unspaced(self) -> bool:
        """Whether any of it is in a script without spaces, such as Japanese."""
        return any(map(is_unspaced, self.query_tokens))

    @_Once
    def words(self) -> Sequence[str]:
        """The whole words of a text without spaces, as phrases of tokens: those of the dictionary, and those in Latin letters; of any other
        text none."""
        if not self.is_unspaced:
            return ()
        in_japanese = [each.word for each in self.synonyms if is_unspaced(each.word) and not is_grammar(each.word)]
        return in_japanese + [token for token in self.query_tokens if not (is_unspaced(token) or " " in token)]

    @_Once
    def fragments(self) -> frozenset[str]:
        """The tokens to look for that find nothing alone: pairs of hiragana that are no part of a word."""
        return fragments(self.text)

    @_Once
    def sentences(self) -> Sequence[str]:
        """Its sentences, without surrounding spaces."""
        return sentences_of(self.text)

    @_Once
    def is_question(self) -> bool:
        """Whether it ends in a question mark."""
        return self.normalized.rstrip().endswith("?")

    @_Once
    def asks_assistant(self) -> bool:
        """Whether it is a question for the assistant's own statements."""
        return speakers.asks_assistant(self.text)

    def names(self, sources: Iterable[str | None]) -> frozenset[str]:
        """Those of these speakers that it names."""
        return speakers.named_speakers(self.text, sources)

    @_Once
    def recognized(self) -> Recognized:
        """All that may be a date in it, whenever it is read."""
        return recognize(self.text)

    def date_expressions(self, today: date, *, upcoming: bool = False) -> Sequence[Named]:
        """The dates that it asks for, with their places in `recognized.plain`."""
        return self._found("expressions", today, upcoming, find=lambda: dates_asked(self.recognized, today, upcoming=upcoming))

    def _found(self, *key: Any, find: Callable[[], _Part]) -> _Part:
        """What was found for these days, of which the last few are kept."""
        if key not in self._dates:
            if len(self._dates) >= 8:  # each day has its own
                self._dates.clear()
            self._dates[key] = find()
        found: _Part = self._dates[key]
        return found


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
