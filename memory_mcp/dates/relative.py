"""Days that are counted back from today, as a table: 3日前, 半年前, 去年の今日, two weeks ago."""

import re
from collections.abc import Callable, Iterator
from datetime import date, timedelta

from memory_mcp.dates.nested_days import Days
from memory_mcp.dates.numerals import COUNT, NUMBER
from memory_mcp.dates.spans import UNITS, day_of, months_back, number_of

Resolver = Callable[[re.Match[str], date], Iterator[Days] | list[Days]]
Pattern = tuple[re.Pattern[str], Resolver]

_UNIT = r"(day|night|week|fortnight|month|year)s?"
_FEW = r"(?:an? )?(?:few|several)|some"


def fixed(words: str, span_of: Callable[[date], Days]) -> Pattern:
    """Words that mean one span, as seen from today."""
    return re.compile(words), lambda found, today: [span_of(today)]


def _ago(unit: str, today: date, *counts: int) -> list[Days]:
    """So many units ago; between the fewest and the most of them where two are said, in whichever order."""
    return [(UNITS[unit](today, max(counts))[0], UNITS[unit](today, min(counts))[1])]


def _same_day(today: date, months: int) -> Days:
    first, after = months_back(today, months)
    return day_of(min(first + timedelta(days=today.day - 1), after - timedelta(days=1)))


def _around(day: date, days: int) -> Days:
    return day - timedelta(days=days), day + timedelta(days=days + 1)


# The longer reading first.
LONG_AGO: list[Pattern] = [
    fixed("(?:一昨年|おととし)の今日", lambda today: _same_day(today, 24)),
    fixed("(?:一昨年|おととし)の(?:今ごろ|今頃|同じ(?:頃|ころ|時期))", lambda today: _around(_same_day(today, 24)[0], 15)),
    fixed("(?:去年|(?<!一)昨年|一年前|1年前)の今日|(?<![a-z])(?:a|one|1) year ago today", lambda today: _same_day(today, 12)),
    (
        re.compile(rf"{NUMBER}週間?前の?今日|(?<![a-z\d]){COUNT} weeks? ago today"),
        lambda m, today: [day_of(today - timedelta(days=7 * number_of(m[1] or m[2])))],
    ),
    (
        re.compile(rf"{NUMBER}[ヶケかカ箇]?月前の?今日|(?<![a-z\d]){COUNT} months? ago today"),
        lambda m, today: [_same_day(today, number_of(m[1] or m[2]))],
    ),
    (
        re.compile(rf"{NUMBER}年前の?今日|(?<![a-z\d]){COUNT} years? ago today"),
        lambda m, today: [_same_day(today, 12 * number_of(m[1] or m[2]))],
    ),
    fixed("先月の今日", lambda today: _same_day(today, 1)),
    fixed(
        "(?:去年|(?<!一)昨年|[一1]年前)の(?:今ごろ|今頃|今時分|同じ(?:頃|ころ|時期))|(?<![a-z])this time last year",
        lambda today: _around(_same_day(today, 12)[0], 15),
    ),
    fixed("先月の今(?:ごろ|頃)|(?<![a-z])this time last month", lambda today: _around(_same_day(today, 1)[0], 3)),
    fixed("先週の今(?:ごろ|頃)|(?<![a-z])this time last week", lambda today: _around(today - timedelta(days=7), 1)),
    (re.compile(rf"{NUMBER}[、,~〜・-]{NUMBER}(日|週|年)間?前"), lambda m, today: _ago(m[3], today, number_of(m[1]), number_of(m[2]))),
    (
        re.compile(rf"{NUMBER}[ヶケかカ箇]?月?[、,~〜・-]{NUMBER}[ヶケかカ箇]月前"),
        lambda m, today: _ago("月", today, number_of(m[1]), number_of(m[2])),
    ),
    (re.compile(rf"{NUMBER}年半前"), lambda m, today: [months_back(today, number_of(m[1]) * 12 + 6)]),
    (re.compile(rf"{NUMBER}(日|週|年)間?前(?!後)"), lambda m, today: _ago(m[2], today, number_of(m[1]))),
    (re.compile(rf"{NUMBER}[ヶケかカ箇]?(月)前(?!半)"), lambda m, today: _ago(m[2], today, number_of(m[1]))),
    (re.compile("数(日|週|年)間?前|数[ヶケかカ箇](月)前"), lambda m, today: _ago(m[1] or m[2], today, 2, 6)),
    fixed("半年(?:ほど|くらい)?前|(?<![a-z])half a year ago", lambda today: months_back(today, 6)),
    fixed("ひと月前", lambda today: months_back(today, 1)),
    fixed("ふた月前", lambda today: months_back(today, 2)),
    fixed("半月前", lambda today: _around(today - timedelta(days=15), 2)),
    (
        re.compile(rf"(?<![a-z\d]){COUNT}(?: or |-| to ){COUNT}\s+{_UNIT}\s+(?:ago|back)(?![a-z])"),
        lambda m, today: _ago(m[3], today, number_of(m[1]), number_of(m[2])),
    ),
    (
        re.compile(rf"(?<![a-z\d]){COUNT} (?:years? and a half|and a half years) ago"),
        lambda m, today: [months_back(today, number_of(m[1]) * 12 + 6)],
    ),
    (
        re.compile(rf"(?<![a-z\d]){COUNT}\s+{_UNIT} or (?:two|three|so) ago"),
        lambda m, today: _ago(m[2], today, number_of(m[1]), number_of(m[1]) + 1),
    ),
    (re.compile(rf"(?<![a-z\d])(?:a )?couple (?:of )?{_UNIT}\s+(?:ago|back)(?![a-z])"), lambda m, today: _ago(m[1], today, 2, 3)),
    (re.compile(rf"(?<![a-z\d])(?:{_FEW}) {_UNIT}\s+(?:ago|back)(?![a-z])"), lambda m, today: _ago(m[1], today, 2, 6)),
    (re.compile(rf"(?<![a-z\d]){COUNT}\s+{_UNIT}\s+(?:ago|back)(?![a-z])"), lambda m, today: _ago(m[2], today, number_of(m[1]))),
    (re.compile(r"(?<![a-z])(week|fortnight|month|year) ago(?![a-z])"), lambda m, today: _ago(m[1], today, 1)),
]
