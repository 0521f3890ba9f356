"""A question, read once: what it says about time, which words are looked for, and whether it asks for what an assistant said.

Every step of a search takes an `Asked`; none reads the text of the question again.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property

from memory_mcp.config.settings import Settings
from memory_mcp.domain import Question
from memory_mcp.language.analysis import Analysis, analysis
from memory_mcp.language.synonyms import Synonyms
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
        return self.settings.fusion.assistant_weight < 1 and not analysis(self.time.query).asks_assistant

    @cached_property
    def spans(self) -> Sequence[tuple[str, str]]:
        """The dates that it names, in the format of the store."""
        return [(to_text(date.start), to_text(date.end)) for date in self.time.dates]

    @cached_property
    def shown_words(self) -> Sequence[str]:
        """The tokens by which the part of a long memory is chosen that an answer shows: those of the query, then those of its synonyms."""
        query = analysis(self.question.query)
        meant = (token for each in query.synonyms for other in each.others for token in other.split())
        return list(dict.fromkeys([*query.query_tokens, *meant]))

    def named(self, sources: Iterable[str | None]) -> frozenset[str]:
        """Those of these speakers whom it names."""
        return analysis(self.question.query).names(sources)

    def terms(self, rest: str | None = None, *, beside_vectors: bool, same_sound: Sequence[Synonyms] = ()) -> Terms:
        """What to look for by words: the query without its dates and, where the caller guessed an answer, that guess. `rest`:
        another query instead."""
        asked = analysis(self.time.words if rest is None else rest)
        tokens = search_tokens(asked, analysis(self.question.hypothetical), beside_vectors=beside_vectors)
        return Terms(tokens, asked.query_phrases, asked.synonyms, same_sound, asked.words, asked.fragments)


def asked_by(question: Question, now: datetime, settings: Settings) -> Asked:
    """The question as it is searched. Where no word of it says what is asked for but the time, the time orders the answer."""
    time = time_asked(question.query, now, settings.zone)
    if question.mode == "auto" and time.is_vague:
        question = replace(question, mode="recent", query=time.words if time.dates else "")
    return Asked(question, time, settings, now)


def search_tokens(query: Analysis, guess: Analysis, *, beside_vectors: bool = False) -> list[str]:
    """The tokens to search, and the phrases of other spellings. The guessed answer may be wrong, so the tokens of the query count twice
    (docs/decisions/0016-questions-and-guesses.md). Beside vectors each token counts once (docs/decisions/0053-one-word-one-weight.md).
    """
    asked, guessed = (list(each.query_tokens if beside_vectors else each.weighed_query_tokens) for each in (query, guess))
    known = set(asked)
    guessed = [token for token in guessed if token not in known]
    others = [spelling.phrase for spelling in query.spellings if spelling.phrase not in known] if asked else []
    return asked * 2 + guessed + others if guessed else asked + others
