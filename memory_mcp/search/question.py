"""A question, read once: its checked arguments, what it says about time, which words are looked for, and whether it asks for what an
assistant said.

Every step of a search takes a `ParsedQuestion`; none reads the text of the question again.
"""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property
from itertools import islice
from typing import TypeVar
from zoneinfo import ZoneInfo

from memory_mcp import lexicon
from memory_mcp.config.settings import Settings
from memory_mcp.dates.hours import times_of
from memory_mcp.dates.recognize import Named, Recognized, spans_together
from memory_mcp.dates.resolve import parse_range
from memory_mcp.dates.spans import DaySpan, spellings_of_year
from memory_mcp.dates.statements import LONGEST_SPAN
from memory_mcp.domain import DETAILS, KEYS_LIMIT, KINDS, MODE_ALIASES, MODES, Filters, Question, TimeRange
from memory_mcp.errors import InvalidInput
from memory_mcp.language.analysis import Analysis, analysis
from memory_mcp.language.labels import few, storable
from memory_mcp.language.names import normalized_length
from memory_mcp.language.privacy.redaction import Redaction
from memory_mcp.language.synonyms import Synonyms
from memory_mcp.language.tokens import is_grammar, normalise, spaced_otherwise, tokens
from memory_mcp.store.lexical.bm25_index import Terms
from memory_mcp.store.timestamps import to_text

TOP_K_LIMIT = 50
TOKENS_LIMIT = 100_000
TOKENS_FLOOR = 50
QUERY_LIMIT = 10_000

Word = TypeVar("Word", bound=str)


def question(
    *,
    settings: Settings,
    now: datetime,
    query: str | None = None,
    top_k: int | None = None,
    mode: str | None = None,
    tags: Sequence[str] = (),
    date_range: str | None = None,
    min_importance: float | None = None,
    hypothetical: str | None = None,
    keys: Sequence[str] = (),
    detail: str | None = None,
    max_tokens: int | None = None,
    category: str | None = None,
    session_id: str | None = None,
    kind: str | None = None,
    source: str | None = None,
) -> Question:
    """A checked question. `top_k` left out means `reranker_top_n`.

    Raises:
        InvalidInput: an argument can't be used; names it.
    """
    private = Redaction(settings.privacy)  # what is never stored can't be found, and must not reach a model or its cache
    text = private.text(storable((query or "").strip(), "query"))
    wanted = (mode or "").strip().casefold() or "auto"
    mode = MODE_ALIASES.get(wanted, wanted)
    wanted_kind = (kind or "").strip().casefold()
    if not text and mode == "auto" and any((tags, category, date_range, min_importance, session_id, wanted_kind, source)):
        mode = "recent"  # the filters alone are the question: what happened yesterday
    _check(text, mode, wanted_kind, hypothetical or "", keys)
    return Question(
        query=text,
        top_k=_between("top_k", settings.reranker_top_n if top_k is None else top_k, 1, TOP_K_LIMIT),
        mode=_one_of("mode", mode, MODES),
        filters=Filters(
            tags=tuple(dict.fromkeys(private.text(storable(tag, "tags").strip()) for tag in few(tags, "tags") if tag.strip())),
            date_range=parse_range(date_range, now, settings.zone) if date_range and date_range.strip() else None,
            min_importance=_fraction("min_importance", min_importance or 0.0),
            category=private.text(storable((category or "").strip(), "category")) or None,
            session_id=private.text(storable((session_id or "").strip(), "session_id")) or None,
            kind=_one_of("kind", wanted_kind, KINDS) if wanted_kind else None,
            source=private.text(storable((source or "").strip(), "source")) or None,
        ),
        keys=tuple(dict.fromkeys(storable(key, "keys").strip() for key in keys)),
        hypothetical=private.text(storable((hypothetical or "").strip(), "hypothetical")),
        detail=_one_of("detail", (detail or "full").strip().casefold(), DETAILS),
        max_tokens=_between("max_tokens", 1500 if max_tokens is None else max_tokens, TOKENS_FLOOR, TOKENS_LIMIT),
    )


def _check(text: str, mode: str, kind: str, hypothetical: str, keys: Sequence[str]) -> None:
    """Raises InvalidInput if nothing is asked for, or more than can be looked for."""
    if not text and not keys and mode != "recent":
        raise InvalidInput(
            "query is empty",
            "there is nothing to search for",
            "Send a query, or keys to fetch, or a filter such as date_range, tags or session_id, or mode=recent",
        )
    if text and kind == "summary":
        raise InvalidInput(
            "kind is 'summary'", "summaries repeat memories, and are not searched", "Leave out the query for the latest of them"
        )
    for name, value in (("query", text), ("hypothetical", hypothetical)):
        if (length := normalized_length(value)) > QUERY_LIMIT:
            raise InvalidInput(
                "{} has {} characters", "{} are the limit", "Ask in a sentence or two", name, f"{length:,}", f"{QUERY_LIMIT:,}"
            )
    if len(keys) > KEYS_LIMIT:
        raise InvalidInput("keys has {} entries", "{} are the limit", "Fetch them in several calls", len(keys), KEYS_LIMIT)


def token_budget(max_tokens: int | None, default: int) -> int:
    """A checked `max_tokens`."""
    return _between("max_tokens", default if max_tokens is None else max_tokens, TOKENS_FLOOR, TOKENS_LIMIT)


def _between(name: str, value: int, low: int, high: int) -> int:
    if not low <= value <= high:
        raise InvalidInput(
            "{} is {}", "it runs from {} to {}", "Send a number in that range, or leave it out", name, value, low, f"{high:,}"
        )
    return value


def _fraction(name: str, value: float) -> float:
    if not (math.isfinite(value) and 0 <= value <= 1):
        raise InvalidInput("{} is {}", "it runs from 0 to 1", "Send a number in that range, or leave it out", name, f"{value:g}")
    return value


def _one_of(name: str, value: str, allowed: Sequence[Word]) -> Word:
    for word in allowed:
        if value == word:
            return word
    raise InvalidInput("{} is {}", "it is one of {}", "Leave it out if unsure", name, repr(value[:80]), ", ".join(allowed))


# How far a question for plans looks ahead if it names no date.
AHEAD = timedelta(days=366)
# What 最近 means where something else is asked for, too.
RECENT = timedelta(days=30)
# The years of a span that are looked up as words.
YEARS_LIMIT = 12

_IS = lexicon.expressions(__file__, "questions.toml", "time")
# Words that say nothing of what a question is for.
VAGUE_ENGLISH = frozenset(lexicon.words("en", "function_words", "vague"))


@dataclass(frozen=True, slots=True)
class QuestionTime:
    """What `query` says about time. `dates` are the spans that it names; `words` is the query without them, but for long ones. `looks_ahead`:
    it asks for what is to come.

    `informative` is the query without all that was understood as time. `is_only_time`: nothing else is asked for, so that time orders the
    answer. `wants_lately`: the latest of something is asked for. `date_words`: the words of its dates. `days`: how a text
    writes those of no certain year or week, as 「金曜は燃えるゴミの日」, `years` its years and longer times. `of_telling`: it asks for what was said
    on a day.
    """

    query: str
    words: str
    informative: str
    dates: Sequence[TimeRange] = ()
    looks_ahead: bool = False
    is_only_time: bool = False
    wants_lately: bool = False
    date_words: Sequence[str] = ()
    days: Sequence[str] = ()
    years: Sequence[str] = ()
    of_telling: bool = False


def time_of(query: str, now: datetime, zone: ZoneInfo) -> QuestionTime:
    """What the query says about time. A question for plans that names no date means the time from now on."""
    read = analysis(query)
    recognized, named = read.recognized, read.date_expressions(now.astimezone(zone).date(), upcoming=True)
    places, spans = recognized.places, spans_together(recognized.plain, named)
    dates = times_of(recognized.plain, spans, now, zone)
    if not dates:  # such as the first day of the calendar, which is before it elsewhere
        named, spans = (), []
    long = [each for each in named if any(end - start > LONGEST_SPAN for start, end in each.spans)]
    short = [each for each in named if each not in long]
    words = recognized.without(short) if short else query
    plain = normalise(words)
    looks_ahead = _IS["plans"].search(plain) is not None
    lately = _IS["lately"].search(plain) is not None
    if looks_ahead:
        dates = _to_come(dates, now)
    asks_for_time = dates or lately or looks_ahead or _IS["last_time"].search(plain)
    undated = recognized.without(named) if named else words
    rest = normalise(undated) if dates else plain
    is_only_time = bool(asks_for_time) and _is_vague(_IS["plans"].sub(" ", _IS["last_time"].sub(" ", _IS["lately"].sub(" ", rest))))
    if lately and not dates and not is_only_time:
        recent = _IS["last_time"].sub(" ", _IS["lately"].sub(" ", plain))
        return QuestionTime(query, recent, recent, [TimeRange(shifted(now, -RECENT), now)], wants_lately=True)
    return QuestionTime(
        query,
        words,
        _IS["plans"].sub(" ", undated),
        dates,
        looks_ahead,
        is_only_time,
        date_words=[query[places[each.start] : places[each.end]].strip() for each in named],
        days=[_day_written(recognized, each) for each in short if each.is_alone or len(each.spans) > 1],
        years=[*_years_written(spans), *(recognized.plain[each.start : each.end] for each in long)],
        of_telling=any(_asks_telling(recognized, each) for each in named),
    )


def _years_written(spans: Iterable[DaySpan]) -> list[str]:
    """How a text may write the years of spans that are too long to be the time of a memory: of 2015年から2018年まで, 2019年の春 and 令和6年度."""
    long = ((first, after) for first, after in spans if after - first > LONGEST_SPAN and first.day == after.day == 1)
    years = (year for first, after in long for year in range(first.year, max(after.year, first.year + 1)))
    return [spelling for year in islice(dict.fromkeys(years), YEARS_LIMIT) for spelling in spellings_of_year(year)]


def _day_written(recognized: Recognized, named: Named) -> str:
    """How a text may write a day of no certain year or week: 12月10日, 金曜 of 金曜日, and friday of "friday night"."""
    word = recognized.plain[named.start : named.end].strip().removeprefix("the ")
    return f"{word.partition('曜')[0]}曜" if "曜" in word else word.partition(" ")[0] if named.is_alone else word


def _asks_telling(recognized: Recognized, named: Named) -> bool:
    return bool(_IS["tells"].match(recognized.plain, named.end) or _IS["telling"].search(recognized.plain[: named.start]))


def shifted(now: datetime, by: timedelta) -> datetime:
    """This time later or earlier; at an end of the calendar the same."""
    try:
        return now + by
    except OverflowError:
        return now


def _to_come(dates: Sequence[TimeRange], now: datetime) -> list[TimeRange]:
    """The parts of the dates that are to come, or all of them if none is."""
    if not dates:
        return [TimeRange(now, shifted(now, AHEAD))]
    return [replace(date, start=max(date.start, now)) for date in dates if date.end > now] or list(dates)


def _is_vague(rest: str) -> bool:
    """True if every word says nothing of what the question is for."""
    return all(map(_is_vague_word, filter(None, re.split(r"[\s、。，．,.!?！？…「」『』（）()・]+", rest))))


def _is_vague_word(word: str) -> bool:
    if word.isascii():
        return word in VAGUE_ENGLISH
    plain = _IS["leading_particles"].sub("", word)  # which a date left there that was taken out: の予定は
    return bool(_IS["all_vague"].fullmatch(plain) or _IS["particle"].fullmatch(plain))


@dataclass(frozen=True)
class ParsedQuestion:
    """A question as it is searched, what it says about `time`, and the settings and the moment of the call."""

    question: Question
    time: QuestionTime
    settings: Settings
    now: datetime

    @property
    def is_for_latest(self) -> bool:
        """Nothing is asked for but the latest memories."""
        return self.question.mode == "recent" and not (self.question.query or self.time.dates)

    @property
    def are_all_hits(self) -> bool:
        """Nothing else must speak for a candidate: what passes a filter by time, or is near in the graph, is found even if no word fits."""
        return self.question.mode == "graph" or self.question.filters.date_range is not None

    @property
    def is_judged(self) -> bool:
        """The answer says how sure it is. Not where a time, `date_range` or `mode=graph` chose its hits: those are found whether or not they are like
        the question."""
        return not (self.are_all_hits or self.question.mode == "recent")

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

    @cached_property
    def telling_tokens(self) -> Sequence[str]:
        """The tokens of the query without its dates that are no grammar, each once."""
        return [token for token in dict.fromkeys(analysis(self.time.words).query_tokens) if not is_grammar(token)]

    def named(self, sources: Iterable[str | None]) -> frozenset[str]:
        """Those of these speakers whom it names."""
        return analysis(self.question.query).names(sources)

    def terms(self, rest: str | None = None, *, beside_vectors: bool, same_sound: Sequence[Synonyms] = ()) -> Terms:
        """What to look for by words: the query without its dates and, where the caller guessed an answer, that guess. `rest`:
        another query instead."""
        read = analysis(self.time.words if rest is None else rest)
        found = search_tokens(read, analysis(self.question.hypothetical), beside_vectors=beside_vectors)
        days = [" ".join(tokens(day)) for day in self.time.days] if rest is None else []
        return Terms([*found, *days], read.query_phrases, read.synonyms, same_sound, read.words, read.fragments, read.kana_words)


def parsed_question(question: Question, now: datetime, settings: Settings) -> ParsedQuestion:
    """The question as it is searched. Where no word of it says what is asked for but the time, the time orders the answer."""
    time = time_of(question.query, now, settings.zone)
    if question.mode == "auto" and time.is_only_time:
        question = replace(question, mode="recent", query=time.words if time.dates else "")
    return ParsedQuestion(question, time, settings, now)


def search_tokens(query: Analysis, guess: Analysis, *, beside_vectors: bool = False) -> list[str]:
    """The tokens to search. The guessed answer may be wrong, so the tokens of the query count twice
    (docs/decisions/0016-questions-and-guesses.md). Beside vectors each token counts once (docs/decisions/0053-one-word-one-weight.md).
    """
    own, guessed = (list(each.query_tokens if beside_vectors else each.weighed_query_tokens) for each in (query, guess))
    known = set(own)
    guessed = [token for token in guessed if token not in known]
    others = dict.fromkeys(phrase for _, _, phrase in spaced_otherwise(query.normalized) if phrase not in known) if own else ()
    return [*own, *(own if guessed else ()), *guessed, *others]
