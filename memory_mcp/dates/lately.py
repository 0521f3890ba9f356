"""Days up to and with today, as a table: ここ数日, 1週間以内, the last 3 days, the past month."""

import re
from collections.abc import Callable
from datetime import date, timedelta

from memory_mcp.dates.nested_days import Days
from memory_mcp.dates.numerals import COUNT, NUMBER
from memory_mcp.dates.spans import UNITS, number_of

FEW = 6
_HERE = "(?:ここ|この|過去|直近|最近)の?"
_JAPANESE_UNIT = "(?:(日|週|年)間?|[ヶケかカ箇](月)間?)"
_ENGLISH_UNIT = r"(day|night|week|fortnight|month|year)s?(?![a-z])"
_LAST = r"(?<![a-z])(?:last|past)"


def lately(unit: str, today: date, count: int) -> list[Days]:
    """The last so many units, up to and with today."""
    return [UNITS[unit](today + timedelta(days=1), count, rolling=True)]


LATELY: list[tuple[re.Pattern[str], Callable[[re.Match[str], date], list[Days]]]] = [
    (
        re.compile(rf"{_HERE}{NUMBER}[、,~〜・-]{NUMBER}{_JAPANESE_UNIT}(?!前)"),
        lambda m, today: lately(m[3] or m[4], today, number_of(m[2])),
    ),
    (re.compile(rf"(?:{_HERE})?{NUMBER}{_JAPANESE_UNIT}以内"), lambda m, today: lately(m[2] or m[3], today, number_of(m[1]))),
    (re.compile(rf"(?:{_HERE})?数{_JAPANESE_UNIT}以内"), lambda m, today: lately(m[1] or m[2], today, FEW)),
    (re.compile(rf"{_HERE}{NUMBER}{_JAPANESE_UNIT}(?!前)"), lambda m, today: lately(m[2] or m[3], today, number_of(m[1]))),
    (re.compile(rf"{_HERE}数{_JAPANESE_UNIT}(?!前)"), lambda m, today: lately(m[1] or m[2], today, FEW)),
    (re.compile(rf"{_HERE}半年(?!前)|半年以内|{_LAST} half (?:a )?year"), lambda m, today: lately("month", today, 6)),
    (re.compile(rf"(?:{_LAST}|(?<![a-z])within) {COUNT} {_ENGLISH_UNIT}"), lambda m, today: lately(m[2], today, number_of(m[1]))),
    (
        re.compile(rf"{_LAST} (few|several|couple of|couple) {_ENGLISH_UNIT}"),
        lambda m, today: lately(m[2], today, 2 if "couple" in m[1] else FEW),
    ),
    (re.compile(r"(?<![a-z])past (day|week|month|year)(?![a-z])"), lambda m, today: lately(m[1], today, 1)),
    # "last week" is one of the calendar, "the last week" is the one until now, "the last week of October" is neither.
    (re.compile(r"(?<![a-z])(?:the|this) last (week|fortnight|month|year)(?![a-z]| of|['’])"), lambda m, today: lately(m[1], today, 1)),
    (re.compile(r"(?<![a-z])(?:in|within|over|during) the last day(?![a-z]| of|['’])"), lambda m, today: lately("day", today, 1)),
]
