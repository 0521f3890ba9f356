"""Seasons and the holidays around which a year is remembered: 去年の夏, last winter, 年末年始. Of the northern half of the earth, as in Japan."""

import re
from collections.abc import Iterator
from datetime import date, timedelta

from memory_mcp.dates.moving_days import end_of_golden_week
from memory_mcp.dates.nested_days import Days
from memory_mcp.dates.numerals import COUNT, NUMBER
from memory_mcp.dates.spans import month_of, number_of
from memory_mcp.dates.yearless import YEARS_MEANT, each_year

_FIRST_MONTHS = {"春": 3, "夏": 6, "秋": 9, "冬": 12, "spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
_YEARS_BACK = {
    "さきおととし": 3,
    "一昨々年": 3,
    "再来年": -2,
    "一昨": 2,
    "一昨年": 2,
    "おととし": 2,
    "昨": 1,
    "去": 1,
    "去年": 1,
    "昨年": 1,
    "今": 0,
    "この": 0,
    "今年": 0,
    "本年": 0,
    "来": -1,
    "来年": -1,
}
# 夏休み and 春雨 are no seasons; 秋田 is a place, 春香 a name.
_JAPANESE = "[初真晩]?([春夏秋冬])[先口場]?(?=[のにはもがかま、。?!頃ごら以]|\\s|\\Z)"
_ENGLISH = "(spring|summer|autumn|fall|winter)(?: (?:break|vacation|holidays?))?(?![a-z])"
_YEAR = rf"(?P<named>さきおととし|一昨々年|再来年|一昨年|おととし|去年|昨年|今年|本年|来年)|{NUMBER.replace('(', '(?P<ago>', 1)}年前|(?<!\d)(?P<year>\d{{4}})年?"
SEASON_OF_YEAR = re.compile(
    rf"(?:(?:{_YEAR})の?|(?P<short>一昨|この|[昨今来])){_JAPANESE}|(?<![a-z]){_ENGLISH} (?P<before>before last)(?![a-z])"
    rf"|(?<![a-z])(?P<which>last|this) {_ENGLISH}|(?<![a-z]){_ENGLISH}(?: of)?,? (?P<english>(?:19|20)\d\d)(?!\d)"
    rf"|(?<![a-z\d]){COUNT.replace('(', '(?P<count>', 1)} (spring|summer|autumn|fall|winter)s? ago"
)
SEASON_ALONE = re.compile(rf"{_JAPANESE}|(?<![a-z])(?:in |during )?(?:the )?{_ENGLISH}")
_GOLDEN_WEEK = (4, 29)
_VACATIONS: dict[str, tuple[tuple[int, int], int]] = {  # what is said: the first day, and how many
    "夏休み": ((7, 20), 43),
    "冬休み": ((12, 23), 16),
    "春休み": ((3, 20), 19),
    "ゴールデンウィーク|gw|大型連休|golden week": (_GOLDEN_WEEK, 7),
    "シルバーウィーク": ((9, 19), 5),
    "お?盆休み": ((8, 10), 7),
    "年末年始": ((12, 27), 10),
    "年末|年の暮れ|年の瀬|(?<![夕日])暮れ": ((12, 21), 11),
    "年始(?![まめ])|年初(?!め)|年頭|年明け|正月休み": ((1, 1), 10),
    "年越し(?!蕎麦|そば)": ((12, 31), 2),
    "梅雨(?!前線|[入明]り?け?)": ((6, 1), 50),
    "new year(?:['’]?s)?": ((12, 31), 4),
    "thanksgiving (?:break|vacation|holidays?|week(?:end)?)": ((11, 22), 7),
}
_NAMES = "(?:" + "|".join(f"(?P<v{place}>{words})" for place, words in enumerate(_VACATIONS)) + ")(?![a-z])"
# 昨年末 is 昨年 and 年末 at once.
VACATION_OF_YEAR = re.compile(rf"(?:(?:{_YEAR})の?|(?P<short>一昨|[昨去今来])(?=年)){_NAMES}")
VACATION_ALONE = re.compile(_NAMES)


def _season(year: int, first_month: int) -> Days:
    last = first_month + 2
    return date(year, first_month, 1), month_of(year + last // 13, (last - 1) % 12 + 1)[1]


def _latest(today: date, first_month: int, *, over: bool) -> Days:
    """The season that is, or the last one; with `over` the last that is over."""
    years = (today.year - back for back in range(3))
    spans = (_season(year, first_month) for year in years)
    return next(span for span in spans if (span[1] if over else span[0]) <= today)


def season_of_year(found: re.Match[str], today: date) -> list[Days]:
    """A season with its year. The winter of a year is the one that begins in it, unless that is still to come."""
    first_month = _FIRST_MONTHS[next(word for word in found.groups() if word in _FIRST_MONTHS)]
    if found["which"] == "this":
        return [_season(today.year, first_month)]
    if found["which"] or found["before"] or found["count"]:
        back = 1 if found["which"] else 2 if found["before"] else number_of(found["count"])
        return [_season(_latest(today, first_month, over=True)[0].year - back + 1, first_month)]
    year = int(found["english"]) if found["english"] else _year(found, today)
    span = _season(year, first_month)
    return [_season(year - 1, first_month) if span[0] > today and first_month == 12 else span]


def _year(found: re.Match[str], today: date) -> int:
    if found["ago"]:
        return today.year - number_of(found["ago"])
    return int(found["year"]) if found["year"] else today.year - _YEARS_BACK[found["named"] or found["short"]]


def season_alone(found: re.Match[str], today: date) -> list[Days]:
    """The season that is, or the last one, and those before."""
    first_month = _FIRST_MONTHS[found[1] or found[2]]
    year = _latest(today, first_month, over=False)[0].year
    return [_season(year - back, first_month) for back in range(YEARS_MEANT)]


def vacation(found: re.Match[str], today: date) -> list[Days]:
    """In its year."""
    return [_vacation(found, _year(found, today))]


def vacation_alone(found: re.Match[str], today: date) -> Iterator[Days]:
    """In each of the last years."""
    return each_year(today, lambda year: _vacation(found, year))


def _vacation(found: re.Match[str], year: int) -> Days:
    (month, day), length = next(dated for place, dated in enumerate(_VACATIONS.values()) if found[f"v{place}"])
    first = date(year, month, day)
    if (month, day) == _GOLDEN_WEEK:
        return first, end_of_golden_week(year)
    return first, first + timedelta(days=length)
