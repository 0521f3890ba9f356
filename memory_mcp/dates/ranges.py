"""Ranges that a question names: 5月から7月まで is what lies between its two dates, too, and 10月3日から5日 are three days."""

import re
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from itertools import pairwise

from memory_mcp.dates.nested_days import Days, narrowed
from memory_mcp.dates.spans import WEEKDAYS, month_of
from memory_mcp.dates.weeks import next_weekday

Found = tuple[int, int, list[Days]]  # where a date begins and ends in the text, and the days that it may mean

_TO = r"\s*(?:から|〜|~|–|-|\.\.|(?<![a-z])(?:to|until|till|through)(?![a-z]))\s*"
_RANGE = re.compile(_TO)
_AND = re.compile(r"\s+and\s+")
_BETWEEN = re.compile(r"(?<![a-z])between\s+\Z")
_WITHIN = re.compile(r"\s*(?:の|of|in|,)?\s*")
_LAST_WEEKDAY = re.compile(rf"{_TO}([月火水木金土日])曜(?:日(?!曜))?")
_LAST_DAY = re.compile(rf"{_TO}(\d{{1,2}})日(?!間|前|目)|[-–](\d{{1,2}})(?![\w/:.-])")


def with_ranges(plain: str, found: Sequence[Found]) -> list[list[Days]]:
    """What each date of a text may mean; two with から between them are one range, which may leave the month of its end unsaid."""
    meanings: list[list[Days]] = []
    clauses = [_with_last_day(plain, clause) for clause in _clauses(plain, sorted(found, key=lambda one: one[:2]))]
    joined = False
    for one, other in pairwise([*clauses, None]):
        if joined or one is None:
            joined = False
            continue
        begin, end, days, parts = one
        spans = list(_spans(days, other[2])) if other and _is_range(plain[:begin], plain[end : other[0]]) else []
        meanings += [spans] if spans else parts
        joined = bool(spans)
    return meanings


def _is_range(before: str, between: str) -> bool:
    return _RANGE.fullmatch(between) is not None or (_AND.fullmatch(between) is not None and _BETWEEN.search(before) is not None)


Clause = tuple[int, int, list[Days], list[list[Days]]]


def _clauses(plain: str, found: Sequence[Found]) -> Iterator[Clause]:
    """Dates that belong together, as in 去年の10月, with what they mean together and each for itself."""
    group: list[Found] = []
    for one in found:
        if group and not _WITHIN.fullmatch(plain[group[-1][1] : one[0]]):
            yield _clause(group)
            group = []
        group.append(one)
    if group:
        yield _clause(group)


def _clause(group: Sequence[Found]) -> Clause:
    parts = [days for _, _, days in group]
    return group[0][0], group[-1][1], parts[0] if len(parts) == 1 else narrowed(parts), parts


def _with_last_day(plain: str, clause: Clause) -> Clause:
    """The same to the day of the month that follows it, if one does."""
    begin, end, days, _ = clause
    weekday, last = _LAST_WEEKDAY.match(plain, end), _LAST_DAY.match(plain, end)
    if not (last or weekday) or any(after - first != timedelta(days=1) for first, after in days):
        return clause
    if weekday:
        spans = [(first, next_weekday(first, WEEKDAYS[weekday[1]])[1]) for first, _ in days if first.year < date.max.year]
        return begin, weekday.end(), spans, [spans]
    if not last:
        return clause
    number = int(last[1] or last[2])
    spans = [(first, until) for first, _ in days if (until := _day_after(first, number))]
    return (begin, last.end(), spans, [spans]) if spans else clause


def _day_after(first: date, number: int) -> date | None:
    """What follows the day of that number, if that is a later one of the same month."""
    try:
        after = first + timedelta(days=number - first.day + 1)
        return after if first.day < number and after <= month_of(first.year, first.month)[1] else None
    except (ValueError, OverflowError):  # at the end of the calendar
        return None


def _spans(begins: Sequence[Days], ends: Sequence[Days]) -> Iterator[Days]:
    """From each beginning to the next end."""
    for first, _ in begins:
        later = [after for start, after in ends if start >= first]
        if later:
            yield first, min(later)
