"""Seasons: 去年の夏, 昨秋, last winter, two summers ago. Of the northern half of the earth, as in Japan."""

import re
from datetime import date

from memory_mcp.dates.expressions import of_kind
from memory_mcp.dates.numerals import COUNT, NUMBER, YEARS_BACK, named_group, number_of
from memory_mcp.dates.spans import YEARS_CONSIDERED, DaySpan, month_of

season, _ = of_kind("seasons")
alone, _ = of_kind("seasons, as an argument")

_FIRST_MONTHS = {"春": 3, "夏": 6, "秋": 9, "冬": 12, "spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
_SHORT_YEARS_BACK = {"一昨": 2, "昨": 1, "去": 1, "今": 0, "この": 0, "来": -1}
# 夏休み and 春雨 are no seasons; 秋田 is a place, 春香 a name.
_JAPANESE = "[初真晩]?([春夏秋冬])[先口場]?(?=[のにはもがかま、。?!頃ごら以]|\\s|\\Z)"
_ENGLISH = "(spring|summer|autumn|fall|winter)(?: (?:break|vacation|holidays?))?(?![a-z])"
# The year before a season or a holiday.
YEAR_BEFORE = rf"(?:(?P<named>{'|'.join(YEARS_BACK)})|{named_group(NUMBER, 'ago')}年前|(?<!\d)(?P<year>\d{{4}})年?)の?"


def year_before(match: re.Match[str], today: date) -> int:
    """The year that `YEAR_BEFORE`, or a short form in the group `short`, names."""
    if match["ago"]:
        return today.year - number_of(match["ago"])
    if match["year"]:
        return int(match["year"])
    return today.year - (YEARS_BACK[match["named"]] if match["named"] else _SHORT_YEARS_BACK[match["short"]])


def _season(year: int, first_month: int) -> DaySpan:
    last = first_month + 2
    return date(year, first_month, 1), month_of(year + last // 13, (last - 1) % 12 + 1)[1]


def _latest(today: date, first_month: int, *, over: bool) -> DaySpan:
    """The latest season that has begun; with `over` the latest that is over."""
    spans = (_season(today.year - back, first_month) for back in range(3))
    return next(span for span in spans if (span[1] if over else span[0]) <= today)


def _of_year(match: re.Match[str], today: date) -> list[DaySpan]:
    """The winter of a year is the one that begins in it, unless that is still to come."""
    first_month = _FIRST_MONTHS[next(word for word in match.groups() if word in _FIRST_MONTHS)]
    if match["which"] == "this":
        return [_season(today.year, first_month)]
    if match["which"] or match["before"] or match["count"]:
        back = 1 if match["which"] else 2 if match["before"] else number_of(match["count"])
        return [_season(_latest(today, first_month, over=True)[0].year - back + 1, first_month)]
    year = int(match["english"]) if match["english"] else year_before(match, today)
    span = _season(year, first_month)
    return [_season(year - 1, first_month) if span[0] > today and first_month == 12 else span]


def _alone(match: re.Match[str], today: date) -> list[DaySpan]:
    """The latest season that has begun, and those of the years before."""
    first_month = _FIRST_MONTHS[match[1] or match[2]]
    year = _latest(today, first_month, over=False)[0].year
    return [_season(year - back, first_month) for back in range(YEARS_CONSIDERED)]


SEASON_OF_YEAR = season(
    rf"(?:{YEAR_BEFORE}|(?P<short>一昨|この|[昨今来])){_JAPANESE}|(?<![a-z]){_ENGLISH} (?P<before>before last)(?![a-z])"
    rf"|(?<![a-z])(?P<which>last|this) {_ENGLISH}|(?<![a-z]){_ENGLISH}(?: of)?,? (?P<english>(?:19|20)\d\d)(?!\d)"
    rf"|(?<![a-z\d]){named_group(COUNT, 'count')} (spring|summer|autumn|fall|winter)s? ago",
    _of_year,
    "去年の夏",
    "一昨昨年の夏",
    "2年前の夏",
    "昨秋",
    "last summer",
    "summer before last",
    "summer of 2024",
    "two summers ago",
)
SEASON_ALONE = alone(rf"{_JAPANESE}|(?<![a-z])(?:in |during )?(?:the )?{_ENGLISH}", _alone, "夏", "winter")
