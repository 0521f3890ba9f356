"""Holidays: クリスマス, 敬老の日, Easter, ゴールデンウィーク, 年末年始, 夏休み, 三連休, 連休明け.

Their names and days are in the lexicon. The public holidays of Japan come from the package `holidays`, Easter from `dateutil`.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import date, timedelta
from functools import lru_cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from dateutil.easter import easter

from memory_mcp import lexicon
from memory_mcp.dates.spans import (
    MONTHS_BACK,
    ONE_DAY,
    SATURDAY,
    WEEKDAYS,
    YEARS_CONSIDERED,
    DaySpan,
    months_back,
    nth_weekday,
    number_of,
)
from memory_mcp.dates.tables import meaning, once_a_year, year_before
from memory_mcp.patterns import Found


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
    """The public holidays of Japan by name; none in a year that the package does not cover."""
    by_name: dict[str, date] = {}
    japan = _japan()
    for day, names in japan(years=year, language="ja").items() if japan.start_year <= year <= japan.end_year else ():
        for name in names.split("; "):
            by_name[name if name not in by_name else f"{name} {day}"] = day
    return by_name


def public_holidays(year: int) -> frozenset[date]:
    """The public holidays of Japan, with 振替休日 and 国民の休日."""
    return frozenset(_holidays_of(year).values())


def _public_holiday(year: int, names: Iterable[str]) -> date:
    """The day of a public holiday, under the first of its names that it has in a year."""
    by_name = _holidays_of(year)
    for name in names:
        if name in by_name:
            return by_name[name]
    raise ValueError(f"{year} has no {names}")


def golden_week(year: int) -> DaySpan:
    """From 29 April to 5 May, or to the day in lieu of a Sunday."""
    after, off = date(year, 5, 6), public_holidays(year)
    while after in off:
        after += ONE_DAY
    return date(year, 4, 29), after


def _eve_of_spring(year: int) -> date:
    """The day before spring begins, when the sun reaches the ecliptic longitude of 315°: by the mean tropical year, right from 1985 to
    2053."""
    return date(year, 2, int(4.05 + 0.242194 * (year - 1980) - (year - 1981) // 4) - 1)


def _days_named(name: str, rule: str, year: int) -> DaySpan:
    """The days of a name in a year by its rule in the lexicon."""
    first, *rest = rule.split()
    if first == "golden":
        return golden_week(year)
    if first == "public":
        day, length = _public_holiday(year, rest or [name]), 1
    elif first in ("easter", "spring"):
        day, length = (easter if first == "easter" else _eve_of_spring)(year) + timedelta(days=int(rest[0]) if rest else 0), 1
    elif "-" in first:
        day, length = date.fromisoformat(f"{year:04}-{first}"), int(rest[0]) if rest else 1
    else:
        day, length = nth_weekday(year, int(first), WEEKDAYS[rest[0]], int(rest[1])) + timedelta(days=int((*rest, "0")[2])), 1
    return day, day + timedelta(days=length)


_DAYS = {**lexicon.mapping("ja", "named_days"), **lexicon.mapping("en", "named_days")}
_PERIODS = {**lexicon.mapping("ja", "named_periods"), **lexicon.mapping("en", "named_periods")}
_RULES = {name.replace("'", ""): (name, rule) for name, rule in (_DAYS | _PERIODS).items()}


@meaning
def named_days(found: Found, today: date) -> Iterable[DaySpan]:
    """Days in the year that is named, or in those that words tell."""
    name, rule = _RULES[found["name"].replace("'", "")]

    def in_year(year: int) -> DaySpan:
        first, after = _days_named(name, rule, year)
        return (after, after + 3 * ONE_DAY) if found["behind"] else (first, after)

    return once_a_year(found, today, in_year)


# Three days off or more: Saturdays, Sundays and public holidays.

_SHORTEST_ROW = 3
# 先々月 is no further away.
_NEAR = 100


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


@meaning
def days_off(found: Found, today: date) -> Iterator[DaySpan]:
    """The rows of the month that is named, or all after a year, which narrows them; else the current or last row and the next one, or one
    of them where the words tell which."""
    least = number_of(found["long"]) if found["long"] else _SHORTEST_ROW
    year = year_before(found, today)
    near = months_back(today, MONTHS_BACK[found["near"]])[0].month if found["near"] else int(found["month"] or 0)
    rows: Iterable[DaySpan] = (
        (first, after)
        for first, after in _rows(date(year, 12, 31) if year else today)
        if (after - first).days >= least and year in (None, first.year) and near in (0, first.month, (after - ONE_DAY).month)
    )
    if found["near"]:
        rows = [row for row in rows if abs((row[0] - today).days) < _NEAR]
    if not (year or near):
        all_rows = list(rows)
        begun, coming = [row for row in all_rows if row[0] <= today][:1], [row for row in all_rows if row[0] > today][-1:]
        rows = [*([] if found["next"] else begun), *([] if found["last"] else coming)]
    return ((days[1], days[1] + ONE_DAY) if found["after"] else days for days in rows)
