"""Finds date expressions in a text, with their positions, and joins those that form a range: 5月から7月まで, 10月3日から5日."""

import re
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from itertools import zip_longest
from typing import NamedTuple

from memory_mcp.dates import absolute, days_alone, holidays, relative, seasons, weekdays
from memory_mcp.dates.expressions import Expression, ExpressionTable
from memory_mcp.dates.missing_year import is_open, with_upcoming
from memory_mcp.dates.numerals import NUMBER, named_group, number_of
from memory_mcp.dates.spans import ONE_DAY, WEEKDAYS, DaySpan, month_of, narrowed
from memory_mcp.dates.weekdays import next_weekday
from memory_mcp.patterns import bounded

# Unambiguous: they mean dates wherever they occur. The longer reading first.
_ALWAYS: list[Expression] = [
    *relative.LATELY,
    *absolute.NTH_DAYS,
    holidays.ROW_OF_DAYS_OFF,
    *holidays.NAMED_DAYS,
    *holidays.HOLIDAY_BESIDE,
    holidays.AFTER_DAYS_OFF,
    *absolute.FULL_DATES,
    seasons.SEASON_OF_YEAR,
    holidays.PERIOD_OF_YEAR,
    *absolute.QUARTERS,
    *absolute.YEARS,
    *absolute.DAYS_AND_MONTHS,
    *weekdays.WEEKS,
    *relative.LONG_AGO,
    *weekdays.NAMED_WEEKDAYS,
    *relative.NEAR_DAYS,
    *relative.BEFORE_LAST,
    *weekdays.ENGLISH_WEEKS,
    *relative.MONTHS_AND_YEARS,
]
# What sentences write for the same dates.
_IN_QUESTIONS: list[Expression] = [*absolute.MONTHS_IN_QUESTIONS, weekdays.SINCE_WEEKDAY, absolute.YEAR_IN_QUESTIONS]
# Words that mean a date where nothing else is written, as in an argument, and may mean anything in a sentence: 夏, Friday, 最近.
_ALONE: list[Expression] = [
    *relative.LATER,
    *absolute.FIGURES_ALONE,
    absolute.FISCAL_YEAR_ALONE,
    holidays.PERIOD_ALONE,
    seasons.SEASON_ALONE,
    *absolute.CALENDAR_ALONE,
    *weekdays.WEEKDAYS_ALONE,
    *relative.WEEK_AND_YEAR_ALONE,
    holidays.BON_ALONE,
    *weekdays.WEEKENDS_ALONE,
    *relative.VAGUE_ALONE,
]
# What 18日 and 金曜 mean depends on the tense of a sentence.
IN_STATEMENTS = ExpressionTable([*_ALWAYS, *_IN_QUESTIONS, absolute.DAY_OF_MONTH_ALONE, *days_alone.TOLD])
IN_QUESTIONS = ExpressionTable([*_ALWAYS, *_IN_QUESTIONS, *days_alone.ASKED])
AS_ARGUMENTS = ExpressionTable([*weekdays.WEEKS_LATER, *relative.FROM_TODAY, *_ALWAYS, *_ALONE])

_TO = r"\s*(?:から|〜|~|–|-|\.\.|(?<![a-z])(?:to|until|till|through)(?![a-z]))\s*"
_RANGE = bounded(_TO)
_AND = bounded(r"\s+and\s+")
_BETWEEN = bounded(r"(?<![a-z])between\s+\Z")
_WITHIN = bounded(r"\s*(?:の|of|in|,)?\s*")
_LAST_WEEKDAY = bounded(rf"{_TO}([月火水木金土日])曜(?:日(?!曜))?")
_SO_LONG = bounded(
    rf"\s*からの?(?:{named_group(NUMBER, 'days')}日間|{named_group(NUMBER, 'nights')}泊(?:\d{{1,2}}日)?|{named_group(NUMBER, 'weeks')}週間)(?!前|後|以内)"
)
_LAST_DAY = bounded(rf"{_TO}(\d{{1,2}})日(?!間|前|目)|[-–](\d{{1,2}})(?![\w/:.-])")


class Recognized(NamedTuple):
    """`text[start:end]` is a date expression that may mean each of `spans`."""

    start: int
    end: int
    spans: list[DaySpan]


def recognize(plain: str, today: date, table: ExpressionTable, *, upcoming: bool = False) -> list[Recognized]:
    """The date expressions of a normalized text. With `upcoming`, a date that does not say of which year, week or month it is may also
    mean the next one."""
    taken = bytearray(len(plain))  # a flag for each character: a query may name thousands of dates
    recognized: list[Recognized] = []
    for expression in table.for_text(plain):
        for match in expression.pattern.finditer(plain):
            start, end = match.span()
            if any(taken[start:end]):
                continue  # 先週 inside 先週の金曜 is part of it
            spans = list(_resolved(expression, match, today))
            if upcoming and is_open(expression, spans, today):
                spans = with_upcoming(expression, match, today, spans)
            if spans:
                taken[start:end] = b"\1" * (end - start)
                recognized.append(Recognized(start, end, spans))
    return recognized


def without_dates(plain: str, recognized: Sequence[Recognized]) -> str:
    """The text with a space for each character of a date expression."""
    for start, end, _ in recognized:
        plain = plain[:start] + " " * (end - start) + plain[end:]
    return plain


def spans_in_question(plain: str, today: date, *, upcoming: bool = False) -> list[DaySpan]:
    """The spans that a question names. A date inside another narrows it: 今年の1月 is one month. `upcoming`: as in `recognize`."""
    return narrowed(_with_ranges(plain, recognize(plain, today, IN_QUESTIONS, upcoming=upcoming)))


def _resolved(expression: Expression, match: re.Match[str], today: date) -> Iterator[DaySpan]:
    try:
        yield from expression.resolve(match, today)
    except (ValueError, OverflowError):
        return  # 2月30日, or outside the calendar: no date


class _Clause(NamedTuple):
    """Date expressions that belong together, as in 去年の10月: what they mean together, and each alone."""

    start: int
    end: int
    spans: list[DaySpan]
    parts: list[list[DaySpan]]


def _with_ranges(plain: str, recognized: Sequence[Recognized]) -> list[list[DaySpan]]:
    """What each date of a text may mean; two with から between them are one range, and its end may leave out the month."""
    meanings: list[list[DaySpan]] = []
    clauses: list[_Clause] = []
    for clause in _clauses(plain, sorted(recognized)):
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
    return meanings


def is_range(before: str, between: str) -> bool:
    """Whether two dates are the ends of a range, given the text before the first and between them."""
    return _RANGE.fullmatch(between) is not None or (_AND.fullmatch(between) is not None and _BETWEEN.search(before) is not None)


def _clauses(plain: str, recognized: Sequence[Recognized]) -> Iterator[_Clause]:
    group: list[Recognized] = []
    for expression in recognized:
        if group and not _WITHIN.fullmatch(plain[group[-1].end : expression.start]):
            yield _clause(group)
            group = []
        group.append(expression)
    if group:
        yield _clause(group)


def _clause(group: Sequence[Recognized]) -> _Clause:
    parts = [part.spans for part in group]
    return _Clause(group[0].start, group[-1].end, parts[0] if len(parts) == 1 else narrowed(parts), parts)


def _to_last_day(plain: str, clause: _Clause) -> _Clause:
    """A day together with the day of the month or of the week to which it extends, or the days for which it does: 10月3日から5日, 月曜から金曜, 明日から3日間."""
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
