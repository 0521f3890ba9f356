"""Words that mean a date where nothing else is said, as in an argument, and may mean anything in a sentence: 夏, Friday, 最近, 上旬."""

import re
from collections.abc import Iterator
from datetime import date, timedelta

from memory_mcp.dates.fiscal_years import PART_OF_FISCAL_YEAR, part_of_fiscal_year
from memory_mcp.dates.later import LATER
from memory_mcp.dates.nested_days import Days
from memory_mcp.dates.quarters import quarter
from memory_mcp.dates.relative import Pattern, fixed
from memory_mcp.dates.seasons import SEASON_ALONE, VACATION_ALONE, season_alone, vacation_alone
from memory_mcp.dates.spans import MONTHS, WEEKDAYS, day_of, month_of, months_back, week_of, year_of
from memory_mcp.dates.weeks import WEEKDAY, last_weekday, latest_weekend, weekday_alone, weekend
from memory_mcp.dates.yearless import each_year

_MONTH = rf"({'|'.join(sorted(MONTHS, key=len, reverse=True))})(?![a-z])\.?"


def _latest_day_of_month(today: date, number: int) -> Iterator[Days]:
    for back in range(12):
        try:
            day = months_back(today, back)[0].replace(day=number)
        except ValueError:
            continue
        if day <= today:
            yield day_of(day)
            return


def _american(month: int, day: int, year: int) -> Days:
    """10/17/2025, and 17/10/2025 where nothing else can be meant."""
    return day_of(date(year, day, month) if month > 12 else date(year, month, day))


_DAY_OF_MONTH = re.compile(r"(?<!\d)(\d{1,2})日(?!間|前(?!後)|後|目)|(?<![a-z\d])(?:the )?(\d{1,2})(?:st|nd|rd|th)")
_JAPANESE_WEEKDAY, _ENGLISH_WEEKDAY = re.compile("([月火水木金土日])曜日?"), re.compile(rf"(?<![a-z]){WEEKDAY}")
_WEEKEND = fixed("週末|土日|(?<![a-z])(?:the )?weekend", latest_weekend)
# The days ahead from which the last such day is the next one from today.
COMES_ROUND = {_DAY_OF_MONTH: (30, 61), _JAPANESE_WEEKDAY: (6,), _ENGLISH_WEEKDAY: (6,), _WEEKEND[0]: (6,)}
ALONE: list[Pattern] = [
    *LATER,
    (re.compile(r"\A(\d{4})(\d\d)(\d\d)\Z"), lambda m, today: [day_of(date(*(int(number) for number in m.groups())))]),
    (re.compile(r"(?<!\d)(\d{1,2})/(\d{1,2})/(\d{4})(?!\d)"), lambda m, today: [_american(*(int(number) for number in m.groups()))]),
    (re.compile(r"(?<!\d)(\d{1,2})-(\d{1,2})-(\d{4})(?!\d)"), lambda m, today: [_american(*(int(number) for number in m.groups()))]),
    (re.compile(r"(?<!\d)(\d{1,2})\.(\d{1,2})\.(\d{4})(?!\d)"), lambda m, today: [day_of(date(int(m[3]), int(m[2]), int(m[1])))]),
    (re.compile(r"(?<![\d/])(\d{1,2})/(\d{1,2})(?![\d/])"), lambda m, today: each_year(today, lambda y: day_of(date(y, int(m[1]), int(m[2]))))),
    (PART_OF_FISCAL_YEAR, part_of_fiscal_year),
    (VACATION_ALONE, vacation_alone),
    (SEASON_ALONE, season_alone),
    (
        re.compile(r"(?:第|q)([1-4])(?!週)(?:四半期)?|(?:the )?(first|second|third|fourth) quarter(?=\Z)"),
        lambda m, today: [quarter(today.year, m[1] or m[2])],
    ),
    (re.compile(r"(?<!\d)((?:19|20)\d{2})(?!\d)"), lambda m, today: [year_of(int(m[1]))]),
    (re.compile(rf"(?<![a-z]){_MONTH}(?![a-z])"), lambda m, today: each_year(today, lambda year: month_of(year, MONTHS[m[1]]))),
    (_DAY_OF_MONTH, lambda m, today: _latest_day_of_month(today, int(m[1] or m[2]))),
    (re.compile("前の?([月火水木金土日])曜日?"), lambda m, today: [last_weekday(today, WEEKDAYS[m[1]])]),
    (_JAPANESE_WEEKDAY, lambda m, today: [weekday_alone(today, m)]),
    (_ENGLISH_WEEKDAY, lambda m, today: [weekday_alone(today, m)]),
    fixed("週(?=の(?:頭|初め|はじめ|始め|半ば|真ん中|中頃|前半|後半|終わり))", week_of),
    fixed("年(?=の(?:頭|初め|はじめ|始め|半ば|終わり)|内)", lambda today: year_of(today.year)),
    (re.compile("盆(?!休)"), lambda m, today: each_year(today, lambda year: (date(year, 8, 13), date(year, 8, 17)))),
    fixed("前の?週末", lambda today: weekend(today, 1)),
    _WEEKEND,
    fixed("月初め?", lambda today: (today.replace(day=1), today.replace(day=11))),
    fixed(
        "しばらく前|ちょっと前|少し前|(?<![a-z])(?:(?:quite )?a while|some time|not (?:so |that |too |very )?long) (?:ago|back)",
        lambda today: (today - timedelta(days=180), today),
    ),
    fixed("(?<![a-z])the year|\\A(?=[上下]半?期\\Z)", lambda today: year_of(today.year)),
    fixed("(?<![a-z])the month|月(?=末|半ば|なかば|の(?:末|頭|初め|はじめ|始め|半ば|なかば|終わり|前半|後半))|\\A(?=[上中下初]旬)", lambda today: months_back(today, 0)),
    fixed("(?:ここ|つい)?最近|(?:近|この)(?:頃|ごろ)|昨今|ここしばらく|このところ|(?<![a-z])(?:(?:just |only |very )?recently|lately|of late|these days|in recent (?:days|weeks))", lambda today: (today - timedelta(days=30), today + timedelta(days=1))),
    fixed("(?:つい)?(?:先日|この間|このあいだ|この前|このまえ|こないだ|先だって|先頃|先ごろ)|(?<![a-z])(?:just )?the other (?:day|night|week)", lambda today: (today - timedelta(days=14), today)),
]  # fmt: skip
