"""Days that are to come of what leaves the year, the week or the month unsaid: 11月30日, 大晦日, 金曜, next spring."""

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import date, datetime, timedelta

from memory_mcp.dates.nested_days import Days
from memory_mcp.dates.relative import Resolver
from memory_mcp.dates.tense import Direction, direction
from memory_mcp.dates.words_alone import COMES_ROUND

# What is said so is never the one that is past.
NEXT = re.compile("(?:次|今度)の?|来たる|来る|きたる|(?<![a-z])(?:next|(?:the )?(?:coming|upcoming))(?![a-z])")
# Alone it is of the night that was: 深夜2時.
HOUR_OF_NIGHT = re.compile(r"\A(?:深夜|真?夜中|夜|晩)の?0?[0-5](?:時半?|時\d{1,2}分|:\d\d)\Z")
_SENTENCE_END = re.compile(r"[。！？!?\n]|(?<!\d)\.(?=\s|$)")
# A sentence is looked at so far around a day.
_REACH = 60
_HABIT = re.compile(r"毎|いつも|よく|普段|ふだん|(?<![a-z])(?:every|always|usually|often|each)(?![a-z])")
# The year of a leap day is found within these; of any other day within the first.
_YEARS_ON = (1, 2, 3, 4, 8)
# Nobody leaves out the year of a plan that is so nearly a year off: it is of this one, and written down late.
_LATE, _NEARLY_A_YEAR = timedelta(days=45), timedelta(days=180)
_DAY = timedelta(days=1)


def is_open(pattern: re.Pattern[str], days: Sequence[Days], today: date) -> bool:
    """Whether it depends on what is said of a day which one is meant. Of the last years a leap day may be in one alone."""
    first = days[0][0] if days else today
    return len(days) > 1 or pattern in COMES_ROUND or ((first.month, first.day) == (2, 29) and today - first > _NEARLY_A_YEAR)


def with_those_to_come(pattern: re.Pattern[str], resolve: Resolver, found: re.Match[str], today: date, days: Sequence[Days]) -> list[Days]:
    """The days that are meant and the next of them, the latest first."""
    known = set(days)
    for later in _later_days(pattern, today):
        try:
            known |= set(resolve(found, later))
        except (ValueError, OverflowError):
            continue
        if any(span[0] > today for span in known) and pattern not in COMES_ROUND:
            break
    return sorted(known, reverse=True)


def _later_days(pattern: re.Pattern[str], today: date) -> Iterable[date]:
    if pattern in COMES_ROUND:
        return [today + timedelta(days=off) for off in COMES_ROUND[pattern]]
    return [today.replace(year=today.year + years, day=min(today.day, 28)) for years in _YEARS_ON if today.year + years < date.max.year]


def coming(spans: Sequence[Days], today: date, *, strictly: bool) -> Days:
    """The next of them, which may have begun, unless it is `strictly` to come; the last one where that has just passed."""
    ahead = min((span for span in spans if (span[0] > today if strictly else span[1] > today)), default=spans[0])
    past = max((span for span in spans if span[1] <= today), default=None)
    if strictly or past is None or past == ahead:
        return ahead
    return past if today - (past[1] - _DAY) <= _LATE and ahead[0] - past[1] > _NEARLY_A_YEAR else ahead


def is_soon(spans: Sequence[Days], today: date) -> bool:
    """Whether the next of them is near and the last is nearly a year off, which nobody means who leaves out the year."""
    ahead = min((span[0] for span in spans if span[0] > today), default=None)
    past = max((span[1] for span in spans if span[0] <= today), default=date.min)
    return ahead is not None and ahead - today <= _LATE and today - past > _NEARLY_A_YEAR


def of_night(moment: datetime, now: datetime, told: Callable[[], Direction | None]) -> datetime:
    """The last such moment, where `moment` is that of today; of a plan the next."""
    if told() == "next":
        return moment if moment > now else moment + _DAY
    return moment - _DAY if moment > now else moment


def told_of(text: str, places: Iterable[tuple[int, int]]) -> Direction | None:
    """Whether the sentences around a day speak of one that is to come or is past, else those of the whole text; None where they say neither,
    or both."""
    told = {direction(*_around(text, start, end)) for start, end in places} - {None}
    if not told:
        told = {_of_sentence(one.strip()) for one in _SENTENCE_END.split(text)} - {None}
    return told.pop() if len(told) == 1 else None


def _around(text: str, start: int, end: int) -> tuple[str, str]:
    return _SENTENCE_END.split(text[max(start - _REACH, 0) : start])[-1], _SENTENCE_END.split(text[end : end + _REACH])[0]


def _of_sentence(sentence: str) -> Direction | None:
    return None if not sentence or _HABIT.search(sentence) else direction("", sentence) or direction(sentence, "")
