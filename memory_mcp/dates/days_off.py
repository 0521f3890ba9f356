"""Days off in a row, and the first days after them: 三連休, 先月の連休, 次の三連休, 連休明け, お盆明け."""

import re
from collections.abc import Iterable, Iterator
from datetime import date, timedelta
from functools import lru_cache
from itertools import chain

from memory_mcp.dates.moving_days import end_of_golden_week, public_holidays
from memory_mcp.dates.nested_days import Days
from memory_mcp.dates.numerals import NUMBER
from memory_mcp.dates.spans import months_back, number_of
from memory_mcp.dates.yearless import YEARS_MEANT, each_year

_SHORTEST, _SATURDAY = 3, 5
_REACH = 8
_DAY = timedelta(days=1)
_NEXT, _LAST = "次|今度|来る|来たる|きたる", "前|この前|この間|こないだ|前回|先日"
_YEAR_BEFORE = re.compile(r"(?:\d{4}|[去昨今来])年の?\Z|おととしの?\Z")
_MONTHS_BACK = {"先々月": 2, "先月": 1, "今月": 0, "来月": -1, "再来月": -2}
ROW_OF_DAYS_OFF = re.compile(
    rf"(?:(?:(?:(?P<year>\d{{4}})年の?)?(?P<month>\d{{1,2}})月|(?P<near>{'|'.join(_MONTHS_BACK)}))の?"
    rf"|(?:(?P<next>{_NEXT})|(?P<last>{_LAST})|この)の?)?{NUMBER.replace('(', '(?P<long>', 1)}?(?<!大型)連休(?P<after>明け)?"
)
_AFTER_GOLDEN_WEEK = (5, 6)
_FIRST_DAYS_AFTER = {
    "お?盆(?:休み)?": (8, 17),
    "お?正月(?:休み)?|年末年始": (1, 4),
    "gw|ゴールデンウィーク|大型連休": _AFTER_GOLDEN_WEEK,
    "夏休み": (9, 1),
    "冬休み": (1, 8),
    "春休み": (4, 8),
}
AFTER_DAYS_OFF = re.compile("(?:" + "|".join(f"(?P<d{place}>{words})" for place, words in enumerate(_FIRST_DAYS_AFTER)) + ")明け")


def rows_of_days_off(found: re.Match[str], today: date) -> Iterator[Days]:
    """Those of the month that is named, and all behind a year, which narrows them; else the one that is, or the last, and the next, unless one of
    them is meant."""
    least = number_of(found["long"]) if found["long"] else _SHORTEST
    seen_from = date(int(found["year"]), 12, 31) if found["year"] else today
    rows: Iterable[Days] = (row for row in _rows(seen_from) if (row[1] - row[0]).days >= least and _within(found, row, today))
    if not (found["month"] or found["near"] or _YEAR_BEFORE.search(found.string[max(found.start() - _REACH, 0) : found.start()])):
        rows = _around(rows, today, before=not found["next"], after=not found["last"])
    return ((row[1], row[1] + _DAY) if found["after"] else row for row in rows)


def _around(rows: Iterable[Days], today: date, *, before: bool, after: bool) -> list[Days]:
    """Of rows, the latest first, the one that has begun, and the next."""
    to_come: list[Days] = []
    for row in rows:
        if row[0] <= today:
            return [*([row] if before else []), *(to_come if after else [])]
        to_come = [row]
    return to_come if after else []


def after_days_off(found: re.Match[str], today: date) -> Iterator[Days]:
    """The three days after, in each of the last years."""
    month, day = next(first for place, first in enumerate(_FIRST_DAYS_AFTER.values()) if found[f"d{place}"])

    def after(year: int) -> Days:
        first = end_of_golden_week(year) if (month, day) == _AFTER_GOLDEN_WEEK else date(year, month, day)
        return first, first + 3 * _DAY

    return each_year(today, after)


def _within(found: re.Match[str], row: Days, today: date) -> bool:
    """Whether the month that is named is the row's."""
    first, last = row[0], row[1] - _DAY
    if found["year"] and int(found["year"]) != last.year:
        return False
    if found["near"]:
        wanted, _ = months_back(today, _MONTHS_BACK[found["near"]])
        return wanted in (first.replace(day=1), last.replace(day=1))
    return not found["month"] or int(found["month"]) in (first.month, last.month)


@lru_cache(maxsize=8)  # a text may say it thousands of times
def _rows(today: date) -> tuple[Days, ...]:
    """Saturdays, Sundays and public holidays of the last years and the next, three or more in a row, the latest first."""
    years = range(today.year - YEARS_MEANT + 1, today.year + 2)
    off = set(chain.from_iterable(public_holidays(year) for year in years))
    day, end = date(years[0], 1, 1), date(years[-1] + 1, 1, 1)
    rows, begun = [], None
    while day < end:
        if day.weekday() >= _SATURDAY or day in off:
            begun = begun or day
        else:
            if begun and (day - begun).days >= _SHORTEST:
                rows.append((begun, day))
            begun = None
        day += _DAY
    return tuple(rows[::-1])
