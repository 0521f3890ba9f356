"""Days that are counted within a month, or with their week: the first Monday of October, 10月の第2月曜, the week of October 6."""

import re
from collections.abc import Iterator
from datetime import date, timedelta

from memory_mcp.dates.moving_days import nth_weekday
from memory_mcp.dates.nested_days import Days
from memory_mcp.dates.relative import Pattern
from memory_mcp.dates.spans import MONTHS, WEEKDAYS, day_of, month_of, months_back, number_of, week_of
from memory_mcp.dates.yearless import each_year

_MONTH_NAME = rf"(?:{'|'.join(sorted(MONTHS, key=len, reverse=True))})(?![a-z])\.?"
_ORDINALS = "first second third fourth fifth sixth seventh eighth ninth tenth".split()
_ORDINAL = "|".join(_ORDINALS)
_NEAR = {"先々月": 2, "先月": 1, "今月": 0, "来月": -1, "last month": 1, "this month": 0, "next month": -1, "the month": 0}
_ENGLISH_MONTH = rf"(?:(?P<name>{_MONTH_NAME})(?:,? (?:of )?(?P<year>\d{{4}}))?|(?P<near>(?:last|this|next|the) month))"
_JAPANESE_MONTH = r"(?:(?:(?P<year>\d{4})年)?(?P<month>\d{1,2})月|(?P<near>先々月|先月|今月|来月))の?"
_LAST_DAY, _WEEKEND = "day", "weekend"


def _months(found: re.Match[str], today: date) -> Iterator[Days]:
    """The month that is named, or that of each of the last years."""
    named = found.groupdict()
    if named["near"]:
        yield months_back(today, _NEAR[named["near"]])
        return
    month = int(named["month"]) if named.get("month") else MONTHS[named["name"].rstrip(".")]
    if named["year"]:
        yield month_of(int(named["year"]), month)
    else:
        yield from each_year(today, lambda year: month_of(year, month))


def _nth(months: Iterator[Days], what: str, nth: int) -> Iterator[Days]:
    """In each of the months: `what` is a weekday as `WEEKDAYS` has it, a day, or a weekend, which is that of its Saturday."""
    for first, after in months:
        if what == _LAST_DAY:
            yield day_of(after - timedelta(days=1) if nth < 0 else first.replace(day=nth))
        else:
            day = nth_weekday(first.year, first.month, 5 if what == _WEEKEND else WEEKDAYS[what], nth)
            yield day, day + timedelta(days=2 if what == _WEEKEND else 1)


def _english(found: re.Match[str], today: date) -> Iterator[Days]:
    nth = -1 if found["nth"] == "last" else _ORDINALS.index(found["nth"]) + 1
    return _nth(_months(found, today), found["what"] if found["what"] in (_LAST_DAY, _WEEKEND) else found["what"][:3], nth)


def _japanese(found: re.Match[str], today: date) -> Iterator[Days]:
    nth = 1 if found["first"] else -1 if found["last"] else number_of(found["nth"])
    what = found["what"] or found["weekday"] or (_WEEKEND if found["whole"] == "週末" else _LAST_DAY)
    return _nth(_months(found, today), what, nth)


def _day_by_ordinal(found: re.Match[str], today: date) -> Iterator[Days]:
    return _nth(_months(found, today), _LAST_DAY, _ORDINALS.index(found["nth"]) + 1)


def _week_of_day(found: re.Match[str], today: date) -> Iterator[Days]:
    month = int(found["month"]) if found["month"] else MONTHS[found["name"].rstrip(".")]
    day = int(found["day"] or found["number"])
    return each_year(today, lambda year: week_of(date(year, month, day)))


NTH_DAYS: list[Pattern] = [
    (
        re.compile(
            rf"(?<![a-z])(?:the )?(?P<nth>first|second|third|fourth|fifth|last) (?P<what>(?:mon|tues|wednes|thurs|fri|satur|sun)day|day|weekend) (?:of|in) {_ENGLISH_MONTH}"
        ),
        _english,
    ),
    (re.compile(rf"(?<![a-z])(?:the )?(?P<nth>{_ORDINAL}) of {_ENGLISH_MONTH}"), _day_by_ordinal),
    (
        re.compile(
            rf"{_JAPANESE_MONTH}(?:第(?P<nth>[1-5一二三四五])の?(?P<what>[月火水木金土日])曜日?"
            rf"|(?:(?P<first>最初)|(?P<last>最後))の(?:(?P<whole>日(?!曜)|週末)|(?P<weekday>[月火水木金土日])曜日?))"
        ),
        _japanese,
    ),
    (
        re.compile(
            rf"(?<![a-z])(?:the )?week of (?P<name>{_MONTH_NAME}) (?P<number>\d{{1,2}})(?:st|nd|rd|th)?(?!\d)|(?<!\d)(?P<month>\d{{1,2}})月(?P<day>\d{{1,2}})日の週(?![末明])"
        ),
        _week_of_day,
    ),
]
