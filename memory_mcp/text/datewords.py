"""The words that name days, as a table: a pattern, and the days that it means as seen from today.

A day is a calendar day, a week begins on Monday. `ALWAYS` are said of dates only, wherever they stand. `ALONE` mean a date where
nothing else is said, as in an argument, and may mean anything in a sentence (夏, Friday, 最近); `IN_A_QUESTION` are what sentences say of
the same dates.
"""

import re
from collections.abc import Iterator
from datetime import date, timedelta

from memory_mcp.text.calendar import MONTHS, WEEKDAYS, day_of, month_of, months_back, number_of, week_of, year_of
from memory_mcp.text.date_numerals import COUNT, NUMBER
from memory_mcp.text.festivals import FESTIVAL, festival
from memory_mcp.text.fiscal_years import FISCAL_YEAR, PART_OF_FISCAL_YEAR, fiscal_year, part_of_fiscal_year
from memory_mcp.text.lately import LATELY
from memory_mcp.text.long_ago import LONG_AGO, Pattern, fixed
from memory_mcp.text.nested_days import Days
from memory_mcp.text.seasons import (
    SEASON_ALONE,
    SEASON_OF_YEAR,
    VACATION_ALONE,
    VACATION_OF_YEAR,
    season_alone,
    season_of_year,
    vacation,
    vacation_alone,
)
from memory_mcp.text.yearless import each_year

# Whole names only: what is sold at a market 5 times is not about March.
_MONTH = rf"({'|'.join(sorted(MONTHS, key=len, reverse=True))})(?![a-z])\.?"
_DAY = r"(\d{1,2})(?:st|nd|rd|th)?"
_WEEKDAY = r"(mon|tue|wed|thu|fri|sat|sun)(?:(?:s|nes|rs|ur)?day|s|rs?)?(?![a-z])"
_WEEKS_BACK = {"先々週": 2, "先先週": 2, "先週": 1, "今週": 0, "来週": -1, "再来週": -2, "last": 1, "previous": 1, "this": 0, "next": -1}
_MONTHS_BACK = {"先々月": 2, "先先月": 2, "先月": 1, "今月": 0, "来月": -1, "再来月": -2, "last": 1, "previous": 1, "this": 0, "next": -1}
_YEARS_BACK = {"一昨年": 2, "おととし": 2, "去年": 1, "昨年": 1, "今年": 0, "本年": 0, "来年": -1}
_WEEK = "(再来週|先々週|先先週|先週|今週|来週)"


def _numbers(found: re.Match[str]) -> list[int]:
    return [int(group) for group in found.groups()]


def _weekday(today: date, weekday: int, weeks_back: int) -> Days:
    return day_of(week_of(today, weeks_back)[0] + timedelta(days=weekday))


def _last_weekday(today: date, weekday: int) -> Days:
    """The latest such day before today."""
    return day_of(today - timedelta(days=(today.weekday() - weekday - 1) % 7 + 1))


def _weekday_alone(today: date, found: re.Match[str]) -> Days:
    """The latest such day, which may be today."""
    return _last_weekday(today + timedelta(days=1), WEEKDAYS[found[1]])


def _next_weekday(today: date, weekday: int) -> Days:
    """The first such day after today."""
    return day_of(today + timedelta(days=(weekday - today.weekday() - 1) % 7 + 1))


def _weekday_ago(today: date, name: str, count: int) -> Days:
    """Two Fridays ago: the one before the latest before today."""
    return day_of(_last_weekday(today, WEEKDAYS[name[:3]])[0] - timedelta(days=7 * (count - 1)))


def _weekend(today: date, weeks_back: int) -> Days:
    monday = week_of(today, weeks_back)[0]
    return monday + timedelta(days=5), monday + timedelta(days=7)


def _latest_weekend(today: date) -> Days:
    """The one that is, or the last one."""
    return _weekend(today, 0 if today.weekday() >= 5 else 1)


def _day_of_month(months: Days, number: int) -> list[Days]:
    return [day_of(months[0].replace(day=number))]


def _latest_day_of_month(today: date, number: int) -> Iterator[Days]:
    for back in range(12):
        try:
            day = months_back(today, back)[0].replace(day=number)
        except ValueError:
            continue
        if day <= today:
            yield day_of(day)
            return


def _month_of_this_year(today: date, which: str, month: int) -> Days:
    """The month of that name of this year, or the next one that will begin."""
    return month_of(today.year + (1 if which == "next" and month <= today.month else 0), month)


def _from_month_to_month(year: int, first: int, last: int) -> Days:
    return month_of(year, first)[0], month_of(year + (1 if last < first else 0), last)[1]


# The longer reading first: a pattern never takes text that an earlier one has taken.
ALWAYS: list[Pattern] = [
    *LATELY,
    (re.compile(r"(?<!\d)(\d{4})[-/.年](\d{1,2})[-/.月](\d{1,2})(?!\d)日?"), lambda m, today: [day_of(date(*_numbers(m)))]),
    (
        re.compile(r"(?<!\d)(\d{4})(?:年の?(?=\d{1,2}月)|[-/](?=\d{1,2}(?![-/\d])))(\d{1,2})(?!\d)月?"),
        lambda m, today: [month_of(*_numbers(m))],
    ),
    (SEASON_OF_YEAR, season_of_year),
    (VACATION_OF_YEAR, vacation),
    (FISCAL_YEAR, fiscal_year),
    (re.compile(r"(?<!\d)(\d{4})年(?!\d)|\A(\d{4})\Z"), lambda m, today: [year_of(int(m[1] or m[2]))]),
    (
        re.compile(r"(?<!\d)(\d{1,2})月(\d{1,2})日"),
        lambda m, today: each_year(today, lambda year: day_of(date(year, int(m[1]), int(m[2])))),
    ),
    (
        re.compile(r"(?<![\d/])(\d{1,2})/(\d{1,2})(?=[のにはもかま、(頃ご以]|\Z)"),
        lambda m, today: each_year(today, lambda year: day_of(date(year, int(m[1]), int(m[2])))),
    ),
    (
        re.compile(r"(?<![a-z])(last|this) month(?:'s| on)?(?: the)? (\d{1,2})(?:st|nd|rd|th)"),
        lambda m, today: _day_of_month(months_back(today, _MONTHS_BACK[m[1]]), int(m[2])),
    ),
    (
        re.compile(r"(?<![a-z\d])(?:the )?(\d{1,2})(?:st|nd|rd|th) of (last|this) month"),
        lambda m, today: _day_of_month(months_back(today, _MONTHS_BACK[m[2]]), int(m[1])),
    ),
    (
        re.compile(r"(先々月|先先月|先月|今月|来月)の?(\d{1,2})日"),
        lambda m, today: _day_of_month(months_back(today, _MONTHS_BACK[m[1]]), int(m[2])),
    ),
    (re.compile(r"(?<!\d)(\d{1,2})月(?![\d間号])"), lambda m, today: each_year(today, lambda year: month_of(year, int(m[1])))),
    (re.compile(rf"(?<![a-z]){_MONTH}\s+{_DAY},?\s+(\d{{4}})"), lambda m, today: [day_of(date(int(m[3]), MONTHS[m[1]], int(m[2])))]),
    (re.compile(rf"(?<!\d){_DAY}(?:\s+of)?\s+{_MONTH},?\s+(\d{{4}})"), lambda m, today: [day_of(date(int(m[3]), MONTHS[m[2]], int(m[1])))]),
    (re.compile(rf"(?<![a-z]){_MONTH},?\s+(?:of\s+)?(\d{{4}})"), lambda m, today: [month_of(int(m[2]), MONTHS[m[1]])]),
    (
        re.compile(rf"(?<![a-z]){_MONTH}\s+{_DAY}(?!\d)"),
        lambda m, today: each_year(today, lambda year: day_of(date(year, MONTHS[m[1]], int(m[2])))),
    ),
    (
        re.compile(rf"(?<!\d){_DAY}(?:\s+of)?\s+{_MONTH}(?![a-z])"),
        lambda m, today: each_year(today, lambda year: day_of(date(year, MONTHS[m[2]], int(m[1])))),
    ),
    (
        re.compile(rf"(?<![a-z])last\s+{_MONTH}(?![a-z])"),
        lambda m, today: [months_back(today, (today.month - MONTHS[m[1]] - 1) % 12 + 1)],
    ),
    (
        re.compile(rf"(?<![a-z])(this|next)\s+(?:(?!mar|may){_MONTH}|(march|mar|may)(?=\s*(?:[?.,!;:]|\Z)))"),
        lambda m, today: [_month_of_this_year(today, m[1], MONTHS[m[2] or m[3]])],
    ),
    (FESTIVAL, festival),
    (
        re.compile(r"(?<![a-z\d])(?:q([1-4])|(first|second|third|fourth) quarter)(?:\s+(?:of\s+)?|/|-)?(\d{4})(?!\d)"),
        lambda m, today: [_quarter(int(m[3]), m[1] or m[2])],
    ),
    (
        re.compile("(今|前)四半期|(?<![a-z])(last|this) quarter"),
        lambda m, today: [_quarter_of(today, 1 if (m[1] or m[2]) in ("前", "last") else 0)],
    ),
    (re.compile(rf"{NUMBER}週間?前の?([月火水木金土日])曜日?"), lambda m, today: [_weekday(today, WEEKDAYS[m[2]], number_of(m[1]))]),
    (re.compile(rf"(?<![a-z]){_WEEKDAY} {COUNT} weeks? ago"), lambda m, today: [_weekday(today, WEEKDAYS[m[1]], number_of(m[2]))]),
    (re.compile(rf"{_WEEK}の?([月火水木金土日])曜日?"), lambda m, today: [_weekday(today, WEEKDAYS[m[2]], _WEEKS_BACK[m[1]])]),
    (
        re.compile(rf"(?<![a-z])(last|this|next) week(?:'s|,| on)? {_WEEKDAY}"),
        lambda m, today: [_weekday(today, WEEKDAYS[m[2]], _WEEKS_BACK[m[1]])],
    ),
    (
        re.compile(rf"(?<![a-z]){_WEEKDAY}(?: of)? (last|this|next) week(?!end)"),
        lambda m, today: [_weekday(today, WEEKDAYS[m[1]], _WEEKS_BACK[m[2]])],
    ),
    (re.compile(rf"{_WEEK}の?(?:週?末|土日)"), lambda m, today: [_weekend(today, _WEEKS_BACK[m[1]])]),
    (re.compile("(?:この|こない)[前間だ](?:の|だの)?([月火水木金土日])曜日?"), lambda m, today: [_last_weekday(today, WEEKDAYS[m[1]])]),
    fixed("(?:この|こない)[前間だ](?:の|だの)?週末", _latest_weekend),
    (re.compile("(?:今度|次|来る|きたる)の?([月火水木金土日])曜日?"), lambda m, today: [_next_weekday(today, WEEKDAYS[m[1]])]),
    (re.compile(rf"(?<![a-z])coming {_WEEKDAY}"), lambda m, today: [_next_weekday(today, WEEKDAYS[m[1]])]),
    fixed("(?:今度|次)の?週末", lambda today: _weekend(today, 0 if today.weekday() < 5 else -1)),
    fixed("この週末", lambda today: _weekend(today, 0)),
    (re.compile(rf"(?<![a-z\d]){COUNT} weekends? ago"), lambda m, today: [_weekend(today, number_of(m[1]))]),
    (
        re.compile(rf"(?<![a-z\d]){COUNT} (mon|tues|wednes|thurs|fri|satur|sun)days? ago"),
        lambda m, today: [_weekday_ago(today, m[2], number_of(m[1]))],
    ),
    (
        re.compile(r"(?<![a-z])(?:the )?(mon|tues|wednes|thurs|fri|satur|sun)day before last(?![a-z])"),
        lambda m, today: [_weekday_ago(today, m[1], 2)],
    ),
    fixed("先週の今日", lambda today: day_of(today - timedelta(days=7))),
    (re.compile(_WEEK), lambda m, today: [week_of(today, _WEEKS_BACK[m[1]])]),
    *LONG_AGO,
    (re.compile(rf"(?<![a-z])last\s+{_WEEKDAY}"), lambda m, today: [_last_weekday(today, WEEKDAYS[m[1]])]),
    (re.compile(rf"(?<![a-z])(this|next)\s+{_WEEKDAY}"), lambda m, today: [_weekday(today, WEEKDAYS[m[2]], _WEEKS_BACK[m[1]])]),
    fixed("さきおととい|さきおとつい|一昨[々昨]日", lambda today: day_of(today - timedelta(days=3))),
    fixed(
        "一昨日|おととい|おとつい|(?:the )?day before yesterday|(?:the )?night before last", lambda today: day_of(today - timedelta(days=2))
    ),
    fixed("昨日|きのう|昨夜|昨晩|ゆうべ|(?<![a-z])yesterday|(?<![a-z])last night", lambda today: day_of(today - timedelta(days=1))),
    fixed("今日|本日|今朝|今夜|今晩|(?<![a-z])(?:today|tonight|this (?:morning|afternoon|evening))", day_of),
    fixed("しあさって|明[々明]後日", lambda today: day_of(today + timedelta(days=3))),
    fixed("明後日|あさって|(?<![a-z])(?:the )?day after tomorrow", lambda today: day_of(today + timedelta(days=2))),
    fixed("明日|あした|(?<![a-z])tomorrow", lambda today: day_of(today + timedelta(days=1))),
    fixed("(?<![a-z])(?:the )?weekend before last", lambda today: _weekend(today, 2)),
    fixed("(?<![a-z])(?:the )?week before last", lambda today: week_of(today, 2)),
    fixed("(?<![a-z])(?:the )?month before last", lambda today: months_back(today, 2)),
    fixed("(?<![a-z])(?:the )?year before last", lambda today: year_of(today.year - 2)),
    (re.compile("(?<![a-z])(last|previous|this|next) weekend"), lambda m, today: [_weekend(today, _WEEKS_BACK[m[1]])]),
    (re.compile("(?<![a-z])(last|previous|this|next) week(?!end| of)"), lambda m, today: [week_of(today, _WEEKS_BACK[m[1]])]),
    (
        re.compile("(再来月|先々月|先先月|先月|今月|来月)|(?<![a-z])(last|previous|this|next) month"),
        lambda m, today: [months_back(today, _MONTHS_BACK[m[1] or m[2]])],
    ),
    (re.compile("(一昨年|おととし|去年|昨年|今年|本年|来年)"), lambda m, today: [year_of(today.year - _YEARS_BACK[m[1]])]),
    (re.compile("(?<![a-z])(last|previous|this|next) year"), lambda m, today: [year_of(today.year - _WEEKS_BACK[m[1]])]),
]

IN_A_QUESTION: list[Pattern] = [
    (
        re.compile(rf"(?<![a-z])(?:between|from) {_MONTH}\s+(?:and|to|until|till|through) {_MONTH}"),
        lambda m, today: each_year(today, lambda year: _from_month_to_month(year, MONTHS[m[1]], MONTHS[m[2]])),
    ),
    (
        re.compile(rf"(?<![a-z])(?:in|during|since|around|about|early|mid|late)[ -]{_MONTH}(?![a-z])"),
        lambda m, today: each_year(today, lambda year: month_of(year, MONTHS[m[1]])),
    ),
    (re.compile(rf"(?<![a-z])since {_WEEKDAY}"), lambda m, today: [(_weekday_alone(today, m)[0], today + timedelta(days=1))]),
    (re.compile(r"(?<![a-z])(?:in|since|during)\s+((?:19|20)\d{2})(?!\d)"), lambda m, today: [year_of(int(m[1]))]),
]

ALONE: list[Pattern] = [
    (re.compile(r"\A(\d{4})(\d\d)(\d\d)\Z"), lambda m, today: [day_of(date(*_numbers(m)))]),
    (re.compile(r"(?<!\d)(\d{1,2})/(\d{1,2})/(\d{4})(?!\d)"), lambda m, today: [_american(*_numbers(m))]),
    (re.compile(r"(?<!\d)(\d{1,2})\.(\d{1,2})\.(\d{4})(?!\d)"), lambda m, today: [day_of(date(int(m[3]), int(m[2]), int(m[1])))]),
    (re.compile(r"(?<![\d/])(\d{1,2})/(\d{1,2})(?![\d/])"), lambda m, today: each_year(today, lambda y: day_of(date(y, int(m[1]), int(m[2]))))),
    (PART_OF_FISCAL_YEAR, part_of_fiscal_year),
    (VACATION_ALONE, vacation_alone),
    (SEASON_ALONE, season_alone),
    (
        re.compile(r"(?:第|q)([1-4])(?!週)(?:四半期)?|(?:the )?(first|second|third|fourth) quarter(?=\Z)"),
        lambda m, today: [_quarter(today.year, m[1] or m[2])],
    ),
    (re.compile(r"(?<!\d)((?:19|20)\d{2})(?!\d)"), lambda m, today: [year_of(int(m[1]))]),
    (re.compile(rf"(?<![a-z]){_MONTH}(?![a-z])"), lambda m, today: each_year(today, lambda year: month_of(year, MONTHS[m[1]]))),
    (re.compile(r"(?<!\d)(\d{1,2})日(?!間|前)|(?<![a-z\d])(?:the )?(\d{1,2})(?:st|nd|rd|th)"), lambda m, today: _latest_day_of_month(today, int(m[1] or m[2]))),
    (re.compile("前?の?([月火水木金土日])曜日?"), lambda m, today: [_weekday_alone(today, m)]),
    (re.compile(rf"(?<![a-z]){_WEEKDAY}"), lambda m, today: [_weekday_alone(today, m)]),
    fixed("週末|土日|(?<![a-z])(?:the )?weekend", _latest_weekend),
    fixed("月初め?", lambda today: (today.replace(day=1), today.replace(day=11))),
    fixed("(?<![a-z])the year|\\A(?=[上下]半期\\Z)", lambda today: year_of(today.year)),
    fixed("(?<![a-z])the month|月(?=末)", lambda today: months_back(today, 0)),
    fixed("(?:ここ)?最近|近頃|(?<![a-z])(?:recently|lately)", lambda today: (today - timedelta(days=30), today + timedelta(days=1))),
    fixed("先日|この間|この前|こないだ|(?<![a-z])the other day", lambda today: (today - timedelta(days=14), today)),
]  # fmt: skip


def _american(month: int, day: int, year: int) -> Days:
    """10/17/2025, and 17/10/2025 where nothing else can be meant."""
    return day_of(date(year, day, month) if month > 12 else date(year, month, day))


def _quarter(year: int, which: str) -> Days:
    number = int(which) if which.isdecimal() else "first second third fourth".split().index(which) + 1
    return month_of(year, number * 3 - 2)[0], month_of(year, number * 3)[1]


def _quarter_of(today: date, back: int) -> Days:
    """The one that is, or so many before."""
    passed = (today.month - 1) % 3
    return months_back(today, passed + 3 * back)[0], months_back(today, passed + 3 * back - 2)[1]
