"""Days and times of day as phones of any language write them: 午後9:05, 9.05 PM, 오후 9:05, and whether 5/1 is in January or in May."""

import re
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import date, datetime, time, timedelta

from memory_mcp.dates.spans import MONTHS

_MORNING = "am a.m. 午前 上午 凌晨 早上 清晨 오전 새벽 아침 vorm. π.μ. πμ ص ق.ظ öö sa pd pg fm f.m. de. पूर्वाह्न ก่อนเที่ยง пр.об."
_EVENING = "pm p.m. 午後 下午 晚上 中午 傍晚 오후 저녁 밤 nachm. μ.μ. μμ م ب.ظ ös ch md ptg em e.m. du. अपराह्न หลังเที่ยง сл.об."
_HALVES = {word: first for words, first in ((_MORNING, 0), (_EVENING, 12)) for word in words.split()}
# Those words, for a pattern.
HALF = "|".join(map(re.escape, sorted(_HALVES, key=len, reverse=True)))
_WORD = r"[^\s\d\[\]:,\-\t]{1,12}(?: m\.)?"
# A time with a word or two before it or one after it, of which one may say which half of the day it is in.
TIME = rf"(?P<before>(?:{_WORD} ?){{0,2}})(?P<hour>\d{{1,2}})[:.](?P<minute>\d{{2}})(?:[:.](?P<second>\d{{2}}))?(?: ?(?P<after>{_WORD}))?"
# Years of the Buddhist era, as phones in Thailand write them, and of the Persian calendar, whose year 1403 begins on this day; those after them would be
# of the Islamic one, whose months begin when the moon is seen.
_BUDDHIST_YEARS, _BUDDHIST_ERA = range(2400, 2800), 543
_PERSIAN_YEARS, _ISLAMIC_YEARS, _YEAR_1403 = range(1387, 1430), range(1430, 1500), date(2024, 3, 20)
ENGLISH_WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_WEEKDAYS_KEPT = 100
# 1/5/2024 · 05.01.2024, and 05-Jan-24 of .NET
_YEAR_LAST = re.compile(r"(\d{1,2})([-/.])(?:(\d{1,2})\2(\d{4})|([A-Za-z]{3})\2(\d{4}|\d{2}))(?!\d)")


def hour_of(hour: int, *words: str | None) -> int:
    """The hour from 0 to 23, given the words beside the time."""
    named = {word.replace(" ", "").casefold() for beside in words if beside for word in (beside, *beside.split())}
    half = next((_HALVES[word] for word in named if word in _HALVES), None)
    return hour if half is None else hour % 12 + half


def day_of(year: int, month: int, day: int) -> date | None:
    """The day, if there is one. Two digits are a year from 2000 on."""
    year = year + 2000 if year < 100 else year - _BUDDHIST_ERA if year in _BUDDHIST_YEARS else year
    try:
        return date(year, month, day)
    except ValueError:
        return None


def day_of_phone(year: int, month: int, day: int) -> date | None:
    """As `day_of`, in the Persian calendar if the year tells it; None in the Islamic one. Only for what was written in the time of phones."""
    if year not in _PERSIAN_YEARS:
        return None if year in _ISLAMIC_YEARS else day_of(year, month, day)
    days = 31 if month < 7 else 30 if month < 12 or _days_before(year + 1) - _days_before(year) > 365 else 29
    if not (1 <= month <= 12 and 1 <= day <= days):
        return None
    return _YEAR_1403 + timedelta(_days_before(year) - _days_before(1403) + 31 * (month - 1) - max(month - 7, 0) + day - 1)


def _days_before(persian_year: int) -> int:
    """The days before a year of the Persian calendar, of which 8 in 33 are leap years."""
    return 365 * persian_year + (8 * persian_year + 21) // 33


def with_year_first(texts: Iterable[str]) -> Callable[[str], str]:
    """How the dates at the beginnings of these texts are written with the year first: their order is told by all of them, in doubt by what stands between
    the numbers."""
    return with_and_without_clock(texts)[1]


def with_and_without_clock(texts: Iterable[str]) -> tuple[Callable[[str], str], Callable[[str], str]]:
    """As `with_year_first`, where in doubt a time of day tells it, too, that names no half of the day, as where the month comes first one does; and as
    `with_year_first`."""
    order, separator, has_half = DayOrder(), "", True
    for written in filter(None, map(_YEAR_LAST.match, texts)):
        if written[3]:
            separator = written[2]
            has_half = written.string.rstrip("mM. ")[-1:] in "aApP"
            order.add(int(written[1]), int(written[3]), int(written[4]))
    by_separator = separator == "."
    orders = (order.is_day_first(in_doubt=in_doubt) for in_doubt in (by_separator or not has_half, by_separator))
    by_clock, without = map(_year_first, orders)
    return by_clock, without


def _year_first(is_day_first: bool) -> Callable[[str], str]:
    def year_first(written: re.Match[str]) -> str:
        month = MONTHS.get((written[5] or "").casefold())
        if written[5] and month is None:
            return written[0]
        day, month = (int(written[1]), month or int(written[3])) if is_day_first or month else (int(written[3]), int(written[1]))
        year = written[4] or (f"20{written[6]}" if len(written[6]) == 2 else written[6])
        return f"{year}-{month:02}-{day:02}"

    return lambda text: _YEAR_LAST.sub(year_first, text, count=1) if _YEAR_LAST.match(text) else text


def at_time(day: date | None, hour: int, minute: int, second: int = 0, microsecond: int = 0) -> datetime | None:
    """The local time, if there is one."""
    try:
        return datetime.combine(day, time(hour, minute, second, microsecond)) if day else None
    except ValueError:
        return None


class DayOrder:
    """Which of two numbers is the day in the dates of a file whose year comes last, told by all of them: by days that there are not, by the names
    of their weekdays, which in any language are one for each, and by the order of the days."""

    def __init__(self) -> None:
        self._impossible, self._backwards = Counter[bool](), Counter[bool]()
        self._latest: dict[bool, date] = {}
        self._weekdays: dict[bool, set[tuple[str, int]]] = {True: set(), False: set()}

    def add(self, first: int, second: int, year: int, weekday: str = "") -> None:
        """Takes in a date, with the name of its weekday if it has one."""
        for is_day_first in (True, False):
            day = day_of(year, second, first) if is_day_first else day_of(year, first, second)
            if day is None:
                self._impossible[is_day_first] += 1
                continue
            self._backwards[is_day_first] += day < self._latest.get(is_day_first, day)
            self._latest[is_day_first] = day
            pairs = self._weekdays[is_day_first]
            if weekday and len(pairs) < _WEEKDAYS_KEPT:
                pairs.add((weekday.casefold()[:3] if weekday.isascii() else weekday, day.weekday()))

    def is_day_first(self, *, in_doubt: bool) -> bool:
        """Whether the first number is the day; `in_doubt` where nothing tells it."""
        for against in (self._impossible, {order: self._contradictions(order) for order in (True, False)}, self._backwards):
            if against[True] != against[False]:
                return against[True] < against[False]
        return in_doubt

    def _contradictions(self, order: bool) -> int:
        """How far names and weekdays are from one for each."""
        known = {(name, number) for number, name in enumerate(ENGLISH_WEEKDAYS)}
        named = {name for name, _ in self._weekdays[order]}
        pairs = self._weekdays[order] | (known if named & set(ENGLISH_WEEKDAYS) else set())
        return 2 * len(pairs) - len({name for name, _ in pairs}) - len({number for _, number in pairs})
