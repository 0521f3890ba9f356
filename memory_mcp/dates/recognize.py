"""Finds the date expressions of a text, once, and resolves them as seen from a day; joins those that form a range: 5月から7月まで, 10月3日から5日."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import zip_longest
from typing import NamedTuple

from memory_mcp.dates import holidays, tables
from memory_mcp.dates.spans import (
    NUMBER,
    ONE_DAY,
    WEEKDAY_NAMES,
    WEEKDAYS,
    DaySpan,
    day_of,
    month_of,
    named_group,
    narrowed,
    normalize,
    number_of,
)
from memory_mcp.dates.tables import Expression, next_weekday
from memory_mcp.dates.tense import Direction, asked_directions, sentence_around
from memory_mcp.patterns import bounded

# Unambiguous: they mean dates wherever they occur. The longer reading first.
_ALWAYS: list[Expression] = [
    *tables.LATELY,
    *tables.NTH_DAYS,
    holidays.ROW_OF_DAYS_OFF,
    *holidays.NAMED_DAYS,
    *holidays.HOLIDAY_BESIDE,
    holidays.AFTER_DAYS_OFF,
    *tables.FULL_DATES,
    tables.SEASON_OF_YEAR,
    holidays.PERIOD_OF_YEAR,
    *tables.QUARTERS,
    *tables.YEARS,
    *tables.DAYS_AND_MONTHS,
    *tables.LONG_AGO[:1],  # 先週の今日 is no week
    *tables.WEEKS,
    *tables.LONG_AGO[1:],
    *tables.NAMED_WEEKDAYS,
    *tables.NEAR_DAYS,
    *tables.BEFORE_LAST,
    *tables.ENGLISH_WEEKS,
    *tables.MONTHS_AND_YEARS,
]
# Words that mean a date where nothing else is written, as in an argument, and may mean anything in a sentence: 夏, Friday, 最近.
_ALONE: list[Expression] = [
    *tables.LATER,
    *tables.FIGURES_ALONE,
    tables.FISCAL_YEAR_ALONE,
    holidays.PERIOD_ALONE,
    tables.SEASON_ALONE,
    *tables.CALENDAR_ALONE,
    tables.DAY_OF_MONTH_ALONE,
    *tables.WEEKDAYS_ALONE,
    *tables.WEEK_AND_YEAR_ALONE,
    holidays.BON_ALONE,
    *tables.WEEKENDS_ALONE,
    *tables.VAGUE_ALONE,
]
# Questions and memories.
IN_TEXTS: Sequence[Expression] = (
    *_ALWAYS,
    *tables.MONTHS_IN_QUESTIONS,
    tables.SINCE_WEEKDAY,
    tables.YEAR_IN_QUESTIONS,
    tables.DAY_OF_MONTH_ALONE,
    *tables.DAYS_OF_SENTENCES,
)
AS_ARGUMENTS: Sequence[Expression] = (*tables.WEEKS_LATER, *tables.FROM_TODAY, *_ALWAYS, *_ALONE)

_YEAR = bounded("[0-9]{4}")
_TO = r"\s*(?:から|〜|~|–|-|\.\.|(?<![a-z])(?:to|until|till|through)(?![a-z]))\s*"
_RANGE, _AND, _BETWEEN = bounded(_TO), bounded(r"\s+and\s+"), bounded(r"(?<![a-z])between\s+\Z")
_WITHIN = bounded(r"\s*(?:の|of|in|,)?\s*")
_LAST_WEEKDAY = bounded(rf"{_TO}([{WEEKDAY_NAMES}])曜(?:日(?!曜))?")
_SO_LONG = bounded(
    rf"\s*からの?(?:{named_group(NUMBER, 'days')}日間|{named_group(NUMBER, 'nights')}泊(?:\d{{1,2}}日)?|{named_group(NUMBER, 'weeks')}週間)"
    "(?!前|後|以内)"
)
_LAST_DAY = bounded(rf"{_TO}(\d{{1,2}})日(?!間|前|目)|[-–](\d{{1,2}})(?![\w/:.-])")
# A text that is longer, such as a timetable, is no question for a day.
_LONGEST = 2_000
_NEARLY_A_YEAR = timedelta(days=180)
# The 29th of February exists within eight years of any day, any other day within one.
_YEARS_AHEAD = (1, 2, 3, 4, 8)


class Named(NamedTuple):
    """`plain[start:end]` is a date expression that may mean each of `spans`."""

    start: int
    end: int
    spans: list[DaySpan]
    expression: Expression | None

    @property
    def is_alone(self) -> bool:
        """Whether it is a day of the week or month, which only a sentence dates."""
        return self.expression is not None and self.expression.is_alone


@dataclass(frozen=True, slots=True)
class Recognized:
    """A normalized text and all that may be a date in it, whenever it is read: `resolved` tells what it means as seen from a day."""

    plain: str
    matches: Sequence[tuple[Expression, re.Match[str]]]

    def resolved(self, today: date, *, upcoming: bool = False) -> list[Named]:
        """The dates, none within another, in the order of the tables. With `upcoming`, a date that does not say of which year, week or
        month it is may also mean the next one."""
        taken = bytearray(len(self.plain))  # a flag for each character: a query may name thousands of dates
        named: list[Named] = []
        for expression, match in self.matches:
            start, end = match.span()
            if any(taken[start:end]):
                continue  # 先週 inside 先週の金曜 is part of it
            spans = list(_resolved(expression, match, today))
            if upcoming and _is_open(expression, spans, today):
                spans = _with_upcoming(expression, match, today, spans)
            if spans:
                taken[start:end] = b"\1" * (end - start)
                named.append(Named(start, end, spans, expression))
        return named

    def without(self, named: Iterable[Named]) -> str:
        """The text with a space for each character of these dates."""
        plain = self.plain
        for each in named:
            plain = plain[: each.start] + " " * (each.end - each.start) + plain[each.end :]
        return plain


def recognize(text: str, table: Sequence[Expression] = IN_TEXTS) -> Recognized:
    """All that may be a date in a text."""
    return recognized_in(normalize(text), table)


def recognized_in(plain: str, table: Sequence[Expression] = IN_TEXTS) -> Recognized:
    """The same of a normalized text. Only expressions of which it has a word are tried."""
    has, present, has_year = plain.__contains__, set(plain), _YEAR.search(plain) is not None
    tried = (
        entry for entry in table if (not entry.characters.isdisjoint(present) and any(map(has, entry.needs)) if entry.needs else has_year)
    )
    return Recognized(plain, [(entry, match) for entry in tried for match in entry.pattern.finditer(plain)])


def _resolved(expression: Expression, match: re.Match[str], today: date) -> Iterator[DaySpan]:
    try:
        yield from expression.resolve(match, today)
    except (ValueError, OverflowError):
        return  # 2月30日, or outside the calendar: no date


def _is_open(expression: Expression, spans: Sequence[DaySpan], today: date) -> bool:
    """Whether the sentence decides which date is meant. A leap day may have a single date among the last years."""
    first = spans[0][0] if spans else today
    return len(spans) > 1 or bool(expression.recurs_after) or ((first.month, first.day) == (2, 29) and today - first > _NEARLY_A_YEAR)


def _with_upcoming(expression: Expression, match: re.Match[str], today: date, spans: Sequence[DaySpan]) -> list[DaySpan]:
    """The spans and the next one to come, the latest first."""
    known = set(spans)
    for later in _later_days(expression, today):
        known |= set(_resolved(expression, match, later))
        if any(span[0] > today for span in known) and not expression.recurs_after:
            break
    return sorted(known, reverse=True)


def _later_days(expression: Expression, today: date) -> Iterable[date]:
    if expression.recurs_after:
        return [today + timedelta(days=ahead) for ahead in expression.recurs_after if date.max - today > timedelta(days=ahead)]
    return [today.replace(year=today.year + years, day=min(today.day, 28)) for years in _YEARS_AHEAD if today.year + years < date.max.year]


class _Clause(NamedTuple):
    """Date expressions that belong together, as in 去年の10月: what they mean together, and each alone."""

    start: int
    end: int
    spans: list[DaySpan]
    parts: list[list[DaySpan]]


def dates_asked(recognized: Recognized, today: date, *, upcoming: bool = False) -> list[Named]:
    """The dates that a question names. A day of the week or of the month alone is one where the question asks for what was or will be
    then."""
    named = recognized.resolved(today, upcoming=upcoming)
    asked = [each._replace(spans=_asked_spans(recognized, each, today)) if each.is_alone else each for each in named]
    return [each for each in asked if each.spans]


def _asked_spans(recognized: Recognized, alone: Named, today: date) -> list[DaySpan]:
    if len(recognized.plain) > _LONGEST:
        return []
    asked_for = asked_directions(*sentence_around(recognized.plain, alone.start, alone.end))
    return [span for direction in asked_for for span in _nearest(alone.spans, direction, today)]


def _nearest(spans: Sequence[DaySpan], asked_for: Direction, today: date) -> list[DaySpan]:
    """The last or the coming one; where that is today, also the one a week or month away."""
    if asked_for == "next":
        ahead = sorted(span for span in spans if span[1] > today)
        return ahead[: 2 if ahead and ahead[0] == day_of(today) else 1]
    past = sorted((span for span in spans if span[0] <= today), reverse=True)
    return past[: 2 if past and past[0] == day_of(today) else 1]


def spans_together(plain: str, named: Sequence[Named]) -> list[DaySpan]:
    """The spans that the dates of a question mean together. A date inside another narrows it: 今年の1月 is one month. Two with から between them
    are one range, and its end may leave out the month."""
    meanings: list[list[DaySpan]] = []
    clauses: list[_Clause] = []
    for clause in _clauses(plain, sorted(named, key=lambda each: each[:2])):
        if not clauses or clause.start >= clauses[-1].end:  # 水曜 ends 先週の月曜から水曜
            clauses.append(_to_last_day(plain, clause))
    joined = False
    for clause, following in zip_longest(clauses, clauses[1:]):
        if joined:
            joined = False
            continue
        spans: list[DaySpan] = []
        if following and is_range(plain[: clause.start], plain[clause.end : following.start]):
            spans = list(_from_to(clause.spans, following.spans))
        meanings += [spans] if spans else clause.parts
        joined = bool(spans)
    return narrowed(meanings)


def is_range(before: str, between: str) -> bool:
    """Whether two dates are the ends of a range, given the text before the first and between them."""
    return _RANGE.fullmatch(between) is not None or (_AND.fullmatch(between) is not None and _BETWEEN.search(before) is not None)


def _clauses(plain: str, named: Sequence[Named]) -> Iterator[_Clause]:
    group: list[Named] = []
    for each in named:
        if group and not _WITHIN.fullmatch(plain[group[-1].end : each.start]):
            yield _clause(group)
            group = []
        group.append(each)
    if group:
        yield _clause(group)


def _clause(group: Sequence[Named]) -> _Clause:
    parts = [part.spans for part in group]
    return _Clause(group[0].start, group[-1].end, parts[0] if len(parts) == 1 else narrowed(parts), parts)


def _to_last_day(plain: str, clause: _Clause) -> _Clause:
    """A day together with that to which it extends, or the days for which it does: 10月3日から5日, 月曜から金曜, 明日から3日間."""
    if any(after - first != ONE_DAY for first, after in clause.spans):
        return clause
    extents = [extent for first, _ in clause.spans if (extent := extent_of(plain, clause.end, first))]
    end = extents[0][0] if extents else clause.end
    spans = [span for _, span in extents]
    if not spans and (last := _LAST_DAY.match(plain, clause.end)):
        end, number = last.end(), int(last[1] or last[2])
        spans = [span for first, _ in clause.spans if (span := to_day_of_month(first, number))]
    return _Clause(clause.start, end, spans, [spans]) if spans else clause


def extent_of(plain: str, end: int, first: date) -> tuple[int, DaySpan] | None:
    """How far a day extends whose name ends at `end`, by what follows there: から金曜, から3日間, から2泊3日. Where that ends, and the days."""
    try:
        if weekday := _LAST_WEEKDAY.match(plain, end):
            return weekday.end(), (first, next_weekday(first, WEEKDAYS[weekday[1]])[1])
        if so_long := _SO_LONG.match(plain, end):
            days, nights, weeks = (number_of(so_long[unit] or "0") for unit in ("days", "nights", "weeks"))
            return so_long.end(), (first, first + timedelta(days=days + 7 * weeks + (nights + 1 if nights else 0)))
    except (ValueError, OverflowError):  # no number, or the end of the calendar
        return None
    return None


def to_day_of_month(first: date, number: int) -> DaySpan | None:
    """From a day to the one of that number, if that is a later one of the same month."""
    try:
        after = first.replace(day=number) + ONE_DAY
        return (first, after) if first.day < number and after <= month_of(first.year, first.month)[1] else None
    except (ValueError, OverflowError):  # no such day, or the end of the calendar
        return None


def _from_to(begins: Sequence[DaySpan], ends: Sequence[DaySpan]) -> Iterator[DaySpan]:
    """From each beginning to the next end."""
    for first, _ in begins:
        later = [after for start, after in ends if start >= first]
        if later:
            yield first, min(later)
