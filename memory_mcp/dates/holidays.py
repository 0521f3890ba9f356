"""Holidays: クリスマス, 敬老の日, Easter, ゴールデンウィーク, 年末年始, 夏休み, 三連休, 連休明け.

The public holidays of Japan come from the package `holidays`, Easter from `dateutil`. Golden Week and the other holiday periods are ours.
"""

import re
from calendar import isleap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from functools import lru_cache
from importlib.util import module_from_spec, spec_from_file_location
from itertools import islice
from pathlib import Path
from typing import Any

from dateutil.easter import easter

from memory_mcp.dates.spans import (
    MONTHS_BACK,
    NUMBER,
    ONE_DAY,
    SATURDAY,
    YEARS_BACK,
    YEARS_CONSIDERED,
    DaySpan,
    each_year,
    months_back,
    named_group,
    nth_weekday,
    number_of,
)
from memory_mcp.dates.tables import YEAR_BEFORE, Resolver, numbered, row, year_before

NAMED_DAY, PERIOD, PERIOD_ALONE_KIND = "holidays and other days with a name", "holiday periods", "holiday periods, as an argument"
DAYS_OFF = "days off in a row, and the first days after them"
_MONDAY, _THURSDAY, _SUNDAY = 0, 3, 6
_CALENDARS_REPEAT_AFTER = 28


@lru_cache(maxsize=1)
def _japan() -> Any:
    """The class of Japan's holidays. Importing `holidays.countries` would load 250 countries: 17 MB and half a second instead of 10 MB and
    0.15 s."""
    import holidays  # noqa: PLC0415  only a text that names a holiday of Japan needs it

    spec = spec_from_file_location("holidays_of_japan", Path(holidays.__file__).parent / "countries" / "japan.py")
    if spec is None or spec.loader is None:
        raise ImportError("the package holidays has no countries/japan.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Japan


@lru_cache(maxsize=64)
def _holidays_of(year: int) -> Mapping[str, date]:
    """The public holidays of Japan by name. For a year that the package does not cover they are those of a late year with the same
    calendar.

    Raises:
        ValueError: there is no such year.
    """
    japan = _japan()
    known = year
    if not japan.start_year <= year <= japan.end_year:
        first = date(year, 1, 1)
        late = range(japan.end_year, japan.end_year - _CALENDARS_REPEAT_AFTER, -1)
        known = next(other for other in late if date(other, 1, 1).weekday() == first.weekday() and isleap(other) == isleap(year))
    by_name: dict[str, date] = {}
    for day, names in japan(years=known, language="ja").items():
        for name in names.split("; "):
            by_name[name if name not in by_name else f"{name} {day}"] = day.replace(year=year)
    return by_name


def public_holidays(year: int) -> frozenset[date]:
    """The public holidays of Japan, with 振替休日 and 国民の休日."""
    return frozenset(_holidays_of(year).values())


def _public_holiday(*names: str) -> Callable[[int], date]:
    """The day of a public holiday, under the first of its names that it has in a year."""

    def day_in(year: int) -> date:
        by_name = _holidays_of(year)
        for name in names:
            if name in by_name:
                return by_name[name]
        raise ValueError(f"{year} has no {names[0]}")

    return day_in


def end_of_golden_week(year: int) -> date:
    """The first day after Golden Week: the one after 5 May, or after the day in lieu of a Sunday."""
    after, off = date(year, 5, 6), public_holidays(year)
    while after in off:
        after += ONE_DAY
    return after


def _in_month(month: int, weekday: int, nth: int) -> Callable[[int], date]:
    return lambda year: nth_weekday(year, month, weekday, nth)


def _after_thanksgiving(year: int) -> date:
    return nth_weekday(year, 11, _THURSDAY, 4) + ONE_DAY


def _eve_of_spring(year: int) -> date:
    """The day before spring begins, when the sun reaches the ecliptic longitude of 315°: by the mean tropical year, right from 1985 to
    2053."""
    return date(year, 2, int(4.05 + 0.242194 * (year - 1980) - (year - 1981) // 4) - 1)


# What is written, its first day in a year (month and day, or a rule), and its length in days.
_NamedDay = tuple[str, tuple[int, int] | Callable[[int], date], int]
_NO_WEEKDAY = "(?![曜常々差没記課])"
# A tray is written the same.
_BON = (
    "お盆(?!休|明け|に[乗の載置盛並]|の上|を(?:持|運|拭|洗|割|買|置|出|下げ)|[でと](?:運|皿|湯|茶))"
    "|(?<![初おァ-ヺ一-龥])盆(?=過ぎ|前(?![に後])|の(?:墓|帰省|送り|迎え|入り|間|[0-9]))"
)
_JAPANESE_DAYS: list[_NamedDay] = [
    ("元日|元旦", (1, 1), 1),
    ("お?正月(?!休|明け)(?:三が日)?|三が日", (1, 1), 3),
    ("節分", _eve_of_spring, 1),
    ("建国記念(?:の日|日)", (2, 11), 1),
    ("バレンタイン(?:デー|・デー)?(?![ァ-ヺー])", (2, 14), 1),
    ("天皇誕生日", (2, 23), 1),
    ("ひな祭り|雛祭り?|桃の節句", (3, 3), 1),
    ("ホワイトデー", (3, 14), 1),
    ("エイプリルフール", (4, 1), 1),
    ("昭和の日", (4, 29), 1),
    ("憲法記念日", (5, 3), 1),
    ("みどりの日", (5, 4), 1),
    (f"(?:こども|子ども|子供)の日{_NO_WEEKDAY}|端午の節句", (5, 5), 1),
    ("七夕", (7, 7), 1),
    (_BON, (8, 13), 4),
    ("ハロウィー?ン(?![ァ-ヺー])", (10, 31), 1),
    (f"文化の日{_NO_WEEKDAY}", (11, 3), 1),
    ("七五三", (11, 15), 1),
    ("勤労感謝の日", (11, 23), 1),
    ("クリスマス・?[イエ][ブヴ](?![ァ-ヺー])", (12, 24), 1),
    ("クリスマス(?:・?デー)?(?![ァ-ヺー・])", (12, 25), 1),
    ("大晦日|大みそか", (12, 31), 1),
    ("冬至", (12, 21), 2),
    ("夏至", (6, 21), 1),
    (f"成人の日{_NO_WEEKDAY}", _public_holiday("成人の日"), 1),
    ("春分(?:の日)?(?![曜常々点])", _public_holiday("春分の日"), 1),
    (f"海の日{_NO_WEEKDAY}", _public_holiday("海の日"), 1),
    (f"山の日{_NO_WEEKDAY}", _public_holiday("山の日"), 1),
    ("敬老の日", _public_holiday("敬老の日"), 1),
    ("秋分(?:の日)?(?![曜常々点])", _public_holiday("秋分の日"), 1),
    ("(?:スポーツ|体育)の日(?![曜常々])", _public_holiday("スポーツの日", "体育の日"), 1),
    (f"母の日{_NO_WEEKDAY}", _in_month(5, _SUNDAY, 2), 1),
    (f"父の日{_NO_WEEKDAY}", _in_month(6, _SUNDAY, 3), 1),
    ("イースター(?!島|エッグ)", easter, 1),
    ("ブラックフライデー", _after_thanksgiving, 1),
]
_ENGLISH_DAYS: list[_NamedDay] = [
    ("new year['’]?s day", (1, 1), 1),
    ("(?:st\\.? )?valentine['’]?s day", (2, 14), 1),
    ("april fools?['’]?s? day", (4, 1), 1),
    ("independence day|the fourth of july", (7, 4), 1),
    ("halloween(?![a-z])", (10, 31), 1),
    ("christmas eve(?![a-z])", (12, 24), 1),
    ("christmas(?! eve)(?: day)?(?![a-z])", (12, 25), 1),
    ("boxing day", (12, 26), 1),
    ("new year['’]?s eve", (12, 31), 1),
    ("mother['’]?s['’]? day(?![a-z])", _in_month(5, _SUNDAY, 2), 1),
    ("father['’]?s['’]? day(?![a-z])", _in_month(6, _SUNDAY, 3), 1),
    ("good friday", lambda year: easter(year) - 2 * ONE_DAY, 1),
    ("easter monday", lambda year: easter(year) + ONE_DAY, 1),
    ("easter(?: sunday)?(?! (?:island|egg|bunny|monday)|[a-z])", easter, 1),
    ("thanksgiving(?! (?:break|vacation|holiday|week))(?: day)?(?![a-z])", _in_month(11, _THURSDAY, 4), 1),
    ("black friday", _after_thanksgiving, 1),
    ("labou?r day", _in_month(9, _MONDAY, 1), 1),
    ("memorial day", _in_month(5, _MONDAY, -1), 1),
]
_YEARS_AHEAD = {"来年": 1, "再来年": 2, "next": 1}
# Only a year to come is part of the expression: a year that is past narrows the day, which may be named with several.
_YEAR_TO_COME = r"(?:(?<!\d)(?P<year>20\d{2})年|(?P<named>再?来年))の?"
_YEAR_BEHIND = r"(?:,?\s+(?:(?:of |in )?(?P<year>(?:19|20)\d{2})(?![\d年])|(?P<named>next) year))?"


def _named_days(days: Sequence[_NamedDay]) -> Resolver:
    """A day in the year that is named, else in each of the last years; after `last` the latest that is over, after `next` the first to
    come."""

    def resolve(match: re.Match[str], today: date) -> Iterator[DaySpan]:
        _, first_day, length = next(day for index, day in enumerate(days) if match[f"f{index}"])

        def in_year(year: int) -> DaySpan:
            first = first_day(year) if callable(first_day) else date(year, *first_day)
            return first, first + timedelta(days=length)

        groups = match.groupdict()
        if groups.get("year") or groups.get("named"):
            year = int(groups["year"]) if groups["year"] else today.year + _YEARS_AHEAD[groups["named"]]
            return iter([in_year(year)] if year > today.year or "which" in groups else [])
        if groups.get("which") == "next":
            coming = (in_year(year) for year in (today.year, today.year + 1))
            return islice((span for span in coming if span[0] > today), 1)
        years = each_year(today, in_year)
        return islice((span for span in years if span[1] <= today), 1) if groups.get("which") else years

    return resolve


# A look at the first character makes the search several times faster.
_JAPANESE_NAMES = "(?=[元お正三節建バ天ひ雛桃ホエ昭憲みこ子端七盆ハ文勤ク大冬夏成春海山敬秋ス体母父イブ])" + numbered(
    (pattern for pattern, *_ in _JAPANESE_DAYS), "f"
)
# fmt: off
_NEED_JAPANESE = (
    "元日 元旦 正月 三が日 節 建国 バレンタイン 天皇 ひな祭 雛 桃の ホワイト エイプリル 昭和の 憲法 みどり こども 子ども 子供 端午 七夕 盆 ハロウィ 文化の 七五三 勤労 クリスマス "
    "大晦日 大みそか 冬至 夏至 成人 春分 海の 山の 敬老 秋分 スポーツ 体育 母の 父の イースター ブラック")
_NEED_ENGLISH = "day new valentine april halloween christmas easter thanksgiving friday eve fourth"
NAMED_DAYS = [
    row(NAMED_DAY, _YEAR_TO_COME + _JAPANESE_NAMES, _named_days(_JAPANESE_DAYS), "来年の母の日", needs=_NEED_JAPANESE),
    row(NAMED_DAY, _JAPANESE_NAMES, _named_days(_JAPANESE_DAYS), "クリスマス", "大晦日", "敬老の日", "春分の日", "お正月", "お盆", needs=_NEED_JAPANESE),
    row(NAMED_DAY, rf"(?<![a-z])(?:(?P<which>last"
        rf"|next) )?(?=[nsaihcbmfgetlv]){numbered((pattern for pattern, *_ in _ENGLISH_DAYS), 'f')}{_YEAR_BEHIND}",
        _named_days(_ENGLISH_DAYS), "Halloween", "New Year's Eve", "last Christmas", "Easter 2024", "Black Friday", needs=_NEED_ENGLISH),
]
# fmt: on

# The public holiday before or after today.


def _holiday_beside(today: date, *, later: bool) -> list[DaySpan]:
    days = (day for year in (today.year - 1, today.year, today.year + 1) for day in public_holidays(year))
    day = min(day for day in days if day > today) if later else max(day for day in days if day < today)
    return [(day, day + ONE_DAY)]


# fmt: off
HOLIDAY_BESIDE = [
    row(NAMED_DAY, "(?:次|今度)の祝日|(?<![a-z])(?:the )?next (?:public|bank|national) holiday(?![a-z])",
        lambda m, t: _holiday_beside(t, later=True), "次の祝日", "next public holiday", needs="祝日 holiday"),
    row(NAMED_DAY, "(?:この前|この間|こないだ|(?<![休日])前)の祝日|(?<![a-z])(?:the )?last (?:public|bank|national) holiday(?![a-z])",
        lambda m, t: _holiday_beside(t, later=False), "この前の祝日", "last public holiday", needs="祝日 holiday"),
]
# fmt: on

# Holiday periods: what is written, the first day, and the length in days.

_GOLDEN_WEEK = (4, 29)
_PERIODS: dict[str, tuple[tuple[int, int], int]] = {
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
# Each name has one of these.
_PERIOD_NAMES = numbered(_PERIODS, "v") + "(?![a-z])"


def _period(match: re.Match[str], year: int) -> DaySpan:
    (month, day), length = next(dated for index, dated in enumerate(_PERIODS.values()) if match[f"v{index}"])
    first = date(year, month, day)
    return first, end_of_golden_week(year) if (month, day) == _GOLDEN_WEEK else first + timedelta(days=length)


_NEED_PERIOD = "休み gw ウィーク 大型 week 年 暮れ 梅雨 new thanksgiving"
# fmt: off
# 昨年末 is 昨年 and 年末 at once.
PERIOD_OF_YEAR = row(PERIOD, rf"(?:{YEAR_BEFORE}|(?P<short>一昨|[昨去今来])(?=年)){_PERIOD_NAMES}", lambda m, t: [_period(m, year_before(m, t))],
    "去年の年末", "昨年末", "2024年の夏休み", "去年のゴールデンウィーク", needs=_NEED_PERIOD)
PERIOD_ALONE = row(PERIOD_ALONE_KIND, _PERIOD_NAMES, lambda m, t: each_year(t, lambda year: _period(m, year)),
    "夏休み", "GW", "年末年始", "梅雨", "New Year", needs=_NEED_PERIOD)
BON_ALONE = row(PERIOD_ALONE_KIND, "盆(?!休)", lambda m, t: each_year(t, lambda year: (date(year, 8, 13), date(year, 8, 17))), "盆", needs="盆")
# fmt: on

# Three days off or more: Saturdays, Sundays and public holidays.

_SHORTEST_ROW = 3
_REACH = 8
_YEAR_IN_FRONT = re.compile(rf"(?:\d{{4}}年|{'|'.join(YEARS_BACK)})の?\Z")
_AFTER_GOLDEN_WEEK = (5, 6)
_FIRST_DAYS_AFTER = {
    "お?盆(?:休み)?": (8, 17),
    "お?正月(?:休み)?|年末年始": (1, 4),
    "gw|ゴールデンウィーク|大型連休": _AFTER_GOLDEN_WEEK,
    "夏休み": (9, 1),
    "冬休み": (1, 8),
    "春休み": (4, 8),
}


@lru_cache(maxsize=8)  # a text may contain the word thousands of times
def _rows(today: date) -> tuple[DaySpan, ...]:
    """The rows of three days off or more of the last years and the next, the latest first."""
    years = range(today.year - YEARS_CONSIDERED + 1, today.year + 2)
    off = frozenset().union(*(public_holidays(year) for year in years))
    day, end = date(years[0], 1, 1), date(years[-1] + 1, 1, 1)
    rows, first = [], None
    while day < end:
        if day.weekday() >= SATURDAY or day in off:
            first = first or day
        else:
            if first and (day - first).days >= _SHORTEST_ROW:
                rows.append((first, day))
            first = None
        day += ONE_DAY
    return tuple(rows[::-1])


def _rows_of_days_off(match: re.Match[str], today: date) -> Iterator[DaySpan]:
    """The rows of the month that is named, or all after a year, which narrows them; else the current or last row and the next one, or one
    of them where the words tell which."""
    least = number_of(match["long"]) if match["long"] else _SHORTEST_ROW
    seen_from = date(int(match["year"]), 12, 31) if match["year"] else today
    rows: Iterable[DaySpan] = (row for row in _rows(seen_from) if (row[1] - row[0]).days >= least and _is_in_month(match, row, today))
    year_in_front = _YEAR_IN_FRONT.search(match.string[max(match.start() - _REACH, 0) : match.start()])
    if not (match["month"] or match["near"] or year_in_front):
        rows = _last_and_next(rows, today, with_last=not match["next"], with_next=not match["last"])
    return ((row[1], row[1] + ONE_DAY) if match["after"] else row for row in rows)


def _last_and_next(rows: Iterable[DaySpan], today: date, *, with_last: bool, with_next: bool) -> list[DaySpan]:
    """Of rows, the latest first, the one that has begun and the next."""
    coming: list[DaySpan] = []
    for days_off in rows:
        if days_off[0] <= today:
            return [*([days_off] if with_last else []), *(coming if with_next else [])]
        coming = [days_off]
    return coming if with_next else []


def _is_in_month(match: re.Match[str], days_off: DaySpan, today: date) -> bool:
    first, last = days_off[0], days_off[1] - ONE_DAY
    if match["year"] and int(match["year"]) != last.year:
        return False
    if match["near"]:
        wanted, _ = months_back(today, MONTHS_BACK[match["near"]])
        return wanted in (first.replace(day=1), last.replace(day=1))
    return not match["month"] or int(match["month"]) in (first.month, last.month)


def _after_days_off(match: re.Match[str], today: date) -> Iterator[DaySpan]:
    """The three days after, in each of the last years."""
    month, day = next(first for index, first in enumerate(_FIRST_DAYS_AFTER.values()) if match[f"d{index}"])

    def after(year: int) -> DaySpan:
        first = end_of_golden_week(year) if (month, day) == _AFTER_GOLDEN_WEEK else date(year, month, day)
        return first, first + 3 * ONE_DAY

    return each_year(today, after)


# fmt: off
ROW_OF_DAYS_OFF = row(DAYS_OFF, rf"(?:(?:(?:(?P<year>\d{{4}})年の?)?(?P<month>\d{{1,2}})月|(?P<near>{'|'.join(MONTHS_BACK)}))の?"
    r"|(?:(?P<next>次|今度|来る|来たる|きたる)|(?P<last>前|この前|この間|こないだ|前回|先日)|この)の?)?" rf"{named_group(NUMBER, 'long')}?(?<!大型)連休(?P<after>明け)?",
    _rows_of_days_off, "三連休", "次の連休", "先先月の連休", "2025年5月の連休", "連休明け", needs="連休")
AFTER_DAYS_OFF = row(DAYS_OFF, numbered(_FIRST_DAYS_AFTER, "d") + "明け", _after_days_off, "お盆明け", "GW明け", needs="明け")
# fmt: on
