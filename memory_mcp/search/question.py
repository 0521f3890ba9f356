"""A question, read once: what it says about time, which words are looked for, and whether it asks for what an assistant said.

Every step of a search takes an `Asked`; none reads the text of the question again.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property

from memory_mcp.config.settings import Settings
from memory_mcp.dates.resolve import words_of_dates
from memory_mcp.domain import Question
from memory_mcp.language.speakers import asks_assistant
from memory_mcp.language.spellings import spelled_otherwise
from memory_mcp.language.synonyms import Synonyms, synonyms
from memory_mcp.language.tokens import is_grammar, is_unspaced, query_phrases, query_tokens, weighed_query_tokens
from memory_mcp.search.time_asked import TimeAsked, time_asked
from memory_mcp.store.lexical.bm25_index import Terms
from memory_mcp.store.timestamps import to_text


@dataclass(frozen=True)
class Asked:
    """A question as it is searched, what it says about `time`, and the settings and the moment of the call."""

    question: Question
    time: TimeAsked
    settings: Settings
    now: datetime

    @property
    def is_for_latest(self) -> bool:
        """Nothing is asked for but the latest memories."""
        return self.question.mode == "recent" and not self.question.query

    @property
    def are_all_hits(self) -> bool:
        """Nothing else must speak for a candidate: what passes a filter by time, or is near in the graph, is found even if no word fits."""
        return self.question.mode == "graph" or self.question.filters.date_range is not None

    @cached_property
    def people_first(self) -> bool:
        """What an assistant said counts less than what people said."""
        return self.settings.fusion.assistant_weight < 1 and not asks_assistant(self.time.query)

    @cached_property
    def spans(self) -> Sequence[tuple[str, str]]:
        """The dates that it names, in the format of the store."""
        return [(to_text(date.start), to_text(date.end)) for date in self.time.dates]

    @cached_property
    def date_words(self) -> Sequence[str]:
        """The words by which it names dates."""
        return words_of_dates(self.time.query, self.now, self.settings.zone) if self.time.dates else ()

    @cached_property
    def meant(self) -> Sequence[Synonyms]:
        """The words that are looked for and known to the dictionaries, with their synonyms."""
        return synonyms(self.time.words)

    @cached_property
    def shown_words(self) -> Sequence[str]:
        """The tokens by which the part of a long memory is chosen that an answer shows: those of the query, then those of its synonyms."""
        query = self.question.query
        known = self.meant if query == self.time.words else synonyms(query)
        return list(dict.fromkeys([*query_tokens(query), *(token for each in known for other in each.others for token in other.split())]))

    def terms(self, rest: str | None = None, *, beside_vectors: bool, same_sound: Sequence[Synonyms] = ()) -> Terms:
        """What to look for by words: the query without its dates and, where the caller guessed an answer, that guess. `rest`: another query instead."""
        query, meant = (self.time.words, self.meant) if rest is None else (rest, synonyms(rest))
        return Terms(
            search_tokens(query, self.question.hypothetical, meant, beside_vectors=beside_vectors),
            query_phrases(query),
            meant,
            same_sound,
            _whole_words(query, meant),
        )


def asked_by(question: Question, now: datetime, settings: Settings) -> Asked:
    """The question as it is searched. Where no word of it says what is asked for but the time, the time orders the answer."""
    time = time_asked(question.query, now, settings.zone)
    if question.mode == "auto" and time.is_vague:
        question = replace(question, mode="recent", query=time.words if time.dates else "")
    return Asked(question, time, settings, now)


def search_tokens(query: str, guess: str, meant: Sequence[Synonyms], *, beside_vectors: bool = False) -> list[str]:
    """The tokens to search, and the phrases of other spellings. `meant`: the known words of the query. The guessed answer may be wrong, so the tokens of
    the query count twice (docs/decisions/0016-questions-and-guesses.md). Beside vectors each token counts once (docs/decisions/0053-one-word-one-weight.md).
    """
    known_words = {each.word for each in meant}
    asked, guessed = (query_tokens(text) if beside_vectors else weighed_query_tokens(text, known_words) for text in (query, guess))
    known = set(asked)
    guessed = [token for token in guessed if token not in known]
    others = [phrase for phrase in spelled_otherwise(query) if phrase not in known] if asked else []
    return asked * 2 + guessed + others if guessed else asked + others


def _whole_words(query: str, meant: Sequence[Synonyms]) -> list[str]:
    """The words of a Japanese query, as phrases of tokens: those that are known, and those in Latin letters; of any other query none."""
    found = query_tokens(query)
    if not any(map(is_unspaced, found)):
        return []
    in_japanese = [each.word for each in meant if is_unspaced(each.word) and not is_grammar(each.word)]
    return in_japanese + [token for token in found if not is_unspaced(token)]
