"""Days, weeks, months and years as spans, and the numbers and names that count them in Japanese and English."""

from collections.abc import Callable
from datetime import date, timedelta

from memory_mcp.dates.nested_days import Days

WEEKDAYS = {
    name: index
    for index, pair in enumerate(["月mon", "火tue", "水wed", "木thu", "金fri", "土sat", "日sun"])
    for name in (pair[0], pair[1:])
}
_MONTH_NAMES = "january february march april may june july august september october november december".split()
MONTHS = {form: number for number, name in enumerate(_MONTH_NAMES, start=1) for form in (name, name[:3])} | {"sept": 9}
_KANJI_DIGITS = "〇一二三四五六七八九"
ENGLISH_NUMBERS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty"
).split()


# What is added to a year of theirs.
ERAS = {"令和": 2018, "平成": 1988, "昭和": 1925, "大正": 1911, "明治": 1867}


def western_year(era: str, year: str) -> int:
    """令和 and 7, 七 or 元: the year that others count."""
    return ERAS[era] + (1 if year == "元" else number_of(year))


def number_of(text: str) -> int:
    """3, 三, 二十一, three, a."""
    if text.isdecimal():
        return int(text)
    if text.isascii():
        return ENGLISH_NUMBERS.index(text) if text in ENGLISH_NUMBERS else 1
    tens, ten, ones = text.rpartition("十")
    if not ten:
        return int("".join(str(_KANJI_DIGITS.index(digit)) for digit in text))
    return (_KANJI_DIGITS.index(tens) if tens else 1) * 10 + (_KANJI_DIGITS.index(ones) if ones else 0)


def day_of(day: date) -> Days:
    return day, day + timedelta(days=1)


def days_back(day: date, count: int) -> date:
    return day - timedelta(days=count)


def week_of(day: date, back: int = 0) -> Days:
    """The week of a day, or so many weeks earlier."""
    monday = day - timedelta(days=day.weekday() + 7 * back)
    return monday, monday + timedelta(days=7)


def month_of(year: int, month: int) -> Days:
    return date(year, month, 1), date(year + month // 12, month % 12 + 1, 1)


def months_back(today: date, back: int) -> Days:
    """The month that was so many months ago."""
    year, month = divmod(today.year * 12 + today.month - 1 - back, 12)
    return month_of(year, month + 1)


def year_of(year: int) -> Days:
    return date(year, 1, 1), date(year + 1, 1, 1)


def _month_before(day: date, count: int) -> date:
    """The same day of the month so many months earlier, or its last day."""
    first, after = months_back(day, count)
    return min(first.replace(day=1) + timedelta(days=day.day - 1), after - timedelta(days=1))


def _unit(whole: Callable[[date, int], Days], rolling_start: Callable[[date, int], date]) -> "Unit":
    def unit(today: date, count: int, rolling: bool = False) -> Days:
        return (rolling_start(today, count), today) if rolling else whole(today, count)

    return unit


# (today, how many) → the calendar day, week, month or year so many ago; `rolling`: from so many ago until then.
Unit = Callable[..., Days]
_DAY = _unit(lambda today, n: day_of(days_back(today, n)), days_back)
_WEEK = _unit(week_of, lambda today, n: days_back(today, 7 * n))
_FORTNIGHT = _unit(lambda today, n: week_of(today, 2 * n), lambda today, n: days_back(today, 14 * n))
_MONTH = _unit(months_back, _month_before)
_YEAR = _unit(lambda today, n: year_of(today.year - n), lambda today, n: _month_before(today, 12 * n))
UNITS: dict[str, Unit] = {
    "日": _DAY,
    "day": _DAY,
    "night": _DAY,
    "週": _WEEK,
    "week": _WEEK,
    "fortnight": _FORTNIGHT,
    "月": _MONTH,
    "month": _MONTH,
    "年": _YEAR,
    "year": _YEAR,
}
