"""What the date expressions mean as seen from today, the latest first: parts of the calendar, dates counted from today, weeks and days of the
week, seasons, vague times. The expressions of both languages are rows of `expressions.toml`.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cached_property
from typing import Any, TypeVar

from memory_mcp import lexicon
from memory_mcp.dates.spans import (
    MONTHS,
    ONE_DAY,
    SATURDAY,
    WEEKDAYS,
    YEARS_CONSIDERED,
    DaySpan,
    day_back,
    day_of,
    each_year,
    month_of,
    months_back,
    nth_of,
    nth_weekday,
    number_of,
    units_back,
    week_of,
    year_of,
)
from memory_mcp.patterns import Found, Needed, bounded

_YEAR = bounded("[0-9]{4}")
# Raises ValueError or OverflowError where there is no such day.
Resolver = Callable[[Any, date], Iterable[DaySpan]]
_Resolver = TypeVar("_Resolver", bound=Resolver)


@dataclass(frozen=True, eq=False, slots=True)
class Expression:
    """A row of `expressions.toml`, which says what each column is."""

    kind: str
    find: Callable[[str], Iterable[Any]]
    resolve: Resolver
    examples: Sequence[str]
    needs: Sequence[str] = ()
    recurs_after: Sequence[int] = ()
    counted: Resolver | None = None
    is_alone: bool = False


class Table(tuple[Expression, ...]):
    """Expressions, in the order in which they are tried."""

    @cached_property
    def _needed(self) -> Needed:
        return Needed(expression.needs for expression in self)

    @cached_property
    def _without_needs(self) -> Sequence[int]:
        return [number for number, expression in enumerate(self) if not expression.needs]

    def found_in(self, plain: str) -> list[tuple[Expression, Any]]:
        """The matches of a text, of the expressions of which it has a word or, where they need none, a year."""
        tried = self._needed.within(plain)
        if _YEAR.search(plain):
            tried.update(self._without_needs)
        return [(self[number], match) for number in sorted(tried) for match in self[number].find(plain)]


# What the groups of an expression mean, by the name that its row gives.
MEANINGS: dict[str, Resolver] = {}
_IN_JAPANESE, _IN_ENGLISH = ("weeks_back", "months_back", "years_back", "back_in_short", "days_back"), ("back", "days_back")
_BACK = dict(
    pair
    for language, tables in (("ja", _IN_JAPANESE), ("en", _IN_ENGLISH))
    for name in tables
    for pair in lexicon.counts(language, name).items()
)
_FEW = 6
_FISCAL_MONTH = 4
_ABOUT_THEN = {"year": 15, "年": 15, "month": 3, "月": 3, "week": 1, "週": 1}
_FIRST_MONTHS = {"春": 3, "夏": 6, "秋": 9, "冬": 12, "spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
# From so many days ago to so many days from now.
_VAGUE_DAYS = {"long_ago": (180, 0), "lately": (30, 1), "other_day": (14, 0)}


def meaning(resolve: _Resolver) -> _Resolver:
    """Gives the function a name by which rows say what they mean."""
    MEANINGS[resolve.__name__] = resolve
    return resolve


def year_before(found: Found, today: date) -> int | None:
    """The year that words beside a month, a season or a holiday name."""
    if found["ago"]:
        return today.year - number_of(found["ago"])
    if found["year"]:
        return int(found["year"])
    named = found["named"] or found["short"]
    return today.year - _BACK[named] if named else None


def once_a_year(found: Found, today: date, span_in: Callable[[int], DaySpan]) -> Iterable[DaySpan]:
    """What is once a year: in the year that is named, the next one to come or an earlier one that is over; else in each of the last years."""
    year = today.year if found["which"] == "this" else year_before(found, today)
    if year is not None:
        return [span_in(year)]
    if not (found["which"] or found["n"]):
        return each_year(today, span_in)
    return _beside(found, each_year(today, span_in, ahead=2, back=YEARS_CONSIDERED + number_of(found["n"] or "a")), today)


def _beside(found: Found, spans: Iterable[DaySpan], today: date) -> list[DaySpan]:
    """Of what recurs, the latest first: the next to come or the one after next, or the last, the one before last or an earlier one."""
    among, count = list(spans), max(abs(_BACK.get(found["which"], 1)), number_of(found["n"] or "a"))
    if found["coming"] or found["which"] in ("next", "after next"):
        among = [span for span in among[::-1] if span[0] > today]
    else:
        among = [span for span in among if span[1] <= today]
    return among[count - 1 : count]


@meaning
def calendar(found: Found, today: date) -> Iterable[DaySpan]:
    """A year, a month or a day of the calendar; without a year that of each of the last years. Of 17/10/2025 the second number is the month,
    where nothing else can be meant."""
    if not found["month"]:
        return [year_of(int(found["year"]))]
    month, day = MONTHS.get(found["month"]) or int(found["month"]), int(found["day"] or 0)
    if found["american"] and month > 12:
        month, day = day, month
    return once_a_year(found, today, lambda year: day_of(date(year, month, day)) if day else month_of(year, month))


@meaning
def months(found: Found, today: date) -> Iterable[DaySpan]:
    """From a month to another, in each of the last years."""
    first, last = (MONTHS[name] for name in found.all("month"))
    return each_year(today, lambda year: (month_of(year, first)[0], month_of(year + (last < first), last)[1]))


@meaning
def decade(found: Found, _today: date) -> list[DaySpan]:
    """The nineties, of 199 as of 9."""
    tens = int(found["n"]) + (190 if len(found["n"]) == 1 else 0)
    return [(date(tens * 10, 1, 1), date(tens * 10 + 10, 1, 1))]


@meaning
def fiscal_year(found: Found, today: date) -> Iterable[DaySpan]:
    """A fiscal year; its 末 is the March, its 初め the April."""

    def span_in(year: int) -> DaySpan:
        first, last = month_of(year, _FISCAL_MONTH), month_of(year + 1, _FISCAL_MONTH - 1)
        return last if found["last"] else first if found["first"] else (first[0], last[1])

    return once_a_year(found, months_back(today, _FISCAL_MONTH - 1)[0], span_in)


@meaning
def nth_in_month(found: Found, today: date) -> Iterator[DaySpan]:
    """The nth such day of a month, or of that month of each of the last years."""
    months = [months_back(today, _BACK[found["which"]])] if found["which"] else calendar(found, today)
    nth = nth_of(found["nth"])
    if not found["weekday"]:
        return (day_of(first.replace(day=nth) if nth > 0 else after - ONE_DAY) for first, after in months)
    return (day_of(nth_weekday(first.year, first.month, WEEKDAYS[found["weekday"]], nth)) for first, _ in months)


@meaning
def quarter(found: Found, today: date) -> list[DaySpan]:
    first, _ = months_back(today, (today.month - 1) % 3 + 3 * _BACK[found["which"] or "this"])
    first = date(int(found["year"]), int(found["nth"]) * 3 - 2, 1) if found["nth"] else first
    return [(first, months_back(first, -3)[0])]


@meaning
def day_of_month(found: Found, today: date) -> list[DaySpan]:
    """That day of last month or of another one that words name."""
    return [day_of(months_back(today, _BACK[found["which"]])[0].replace(day=int(found["day"])))]


@meaning
def day_of_month_alone(found: Found, today: date) -> Iterator[DaySpan]:
    """The latest such day; none for a count."""
    for back in range(12 if found["day"] else 0):
        try:
            latest = months_back(today, back)[0].replace(day=int(found["day"]))
        except ValueError:
            continue
        if latest <= today:
            yield day_of(latest)
            return


@meaning
def unit(found: Found, today: date) -> list[DaySpan]:
    """The day, week, month or year that is so many of it before or after the current one."""
    unit = found["unit"] or ("日" if found["near"] else "年" if found["year"] or found["half"] else "月")
    return [units_back(today, unit, _BACK[found["near"] or found["which"] or found["year"] or "this"])]


@meaning
def current(found: Found, today: date) -> list[DaySpan]:
    """The current week, month or year, of which a part is meant, and the one before, which a report means."""
    return [units_back(today, found["unit"], back) for back in (0, 1)]


def _counts(found: Found) -> tuple[str, list[int]]:
    """A unit, and how many of it: two counts where it may be either."""
    unit, counts = found["unit"], [number_of(count) for count in found.all("n")] or [1]
    if found["half"]:  # 1年半前, 半年前
        return "月", [12 * (counts[0] if found["n"] else 0) + 6]
    if found["some"]:
        return unit, [2, 3 if "couple" in found["some"] else _FEW]
    if found["which"]:  # 去年の今日
        return next(kind for kind in "週月年" if kind in found["which"] or kind == "年"), [_BACK[found["which"]]]
    return unit, [*counts, counts[0] + 1] if found["so"] else counts


@meaning
def until_today(found: Found, today: date) -> list[DaySpan]:
    """The last so many units, up to and with today."""
    unit, counts = _counts(found)
    count = min(counts) if "couple" in found["some"] else max(counts)
    return [(day_back(today + ONE_DAY, unit, count), today + ONE_DAY)]


@meaning
def from_now(found: Found, today: date, *, as_moment: bool = False) -> list[DaySpan]:
    """So many units ago, or later; with two counts, in whichever order, all between them. 去年の今日 is this very day, and 去年の今頃 about then.
    Two weeks from now is a day, in two weeks a week."""
    unit, counts = _counts(found)
    if found["later"]:
        if as_moment or (found["today"] and unit in ("週", "week")):
            return [day_of(day_back(today, unit, -counts[0]))]
        return [units_back(today, unit, -counts[0])]
    if found["today"] or found["then"]:
        day, near = day_back(today, unit, counts[0]), 0 if found["today"] or counts[0] < 0 else _ABOUT_THEN[unit]
        return [(day - timedelta(days=near), day + timedelta(days=near + 1))]
    if as_moment and len(counts) == 1:
        return [day_of(day_back(today, unit, counts[0]))]
    return [(units_back(today, unit, max(counts))[0], units_back(today, unit, min(counts))[1])]


@meaning
def from_today(found: Found, today: date) -> list[DaySpan]:
    """The next so many units, from today."""
    return [(today, day_back(today, found["unit"], -number_of(found["n"])) + ONE_DAY)]


@meaning
def vague(found: Found, today: date) -> list[DaySpan]:
    before, after = next(days for name, days in _VAGUE_DAYS.items() if found[name])
    return [(today - timedelta(days=before), today + timedelta(days=after))]


def as_moment(found: Found, today: date) -> list[DaySpan]:
    """The single day that a count of weeks, months or years means as a moment."""
    return from_now(found, today, as_moment=True)


def next_weekday(today: date, weekday: int) -> DaySpan:
    """The first such day after today."""
    return day_of(today + timedelta(days=(weekday - today.weekday() - 1) % 7 + 1))


def _in_weeks(found: Found, today: date, *weeks_back: int) -> list[DaySpan]:
    """Of each of these weeks the day of the week, Monday, the five weekdays, the weekend, or all of it."""
    is_whole = not (found["weekday"] or found["weekend"] or found["monday"])
    first = WEEKDAYS[found["weekday"]] if found["weekday"] else SATURDAY if found["weekend"] else 0
    length = 5 if found["weekdays"] else 7 - first if found["weekend"] or is_whole else 1
    mondays = (week_of(today, back)[0] for back in weeks_back)
    return [(monday + timedelta(days=first), monday + timedelta(days=first + length)) for monday in mondays]


@meaning
def of_week(found: Found, today: date) -> list[DaySpan]:
    """Of the week that is named, or of one so many weeks ago or to come."""
    return _in_weeks(found, today, number_of(found["n"]) * (-1 if found["later"] else 1) if found["n"] else _BACK[found["week"] or "this"])


@meaning
def monday(found: Found, today: date) -> list[DaySpan]:
    """The next Monday, or the one of this week and the one after."""
    return _in_weeks(found, today, *([-1] if found["next"] else [0, -1]))


@meaning
def every_week(found: Found, today: date) -> list[DaySpan]:
    """The last or the coming one, or an earlier or later one."""
    return _beside(found, _in_weeks(found, today, *range(-3, number_of(found["n"] or "a") + 3)), today)


@meaning
def near_weeks(found: Found, today: date) -> list[DaySpan]:
    """Those of the next week, of this one and of the last one, of which the sentence tells which is meant."""
    return _in_weeks(found, today, -1, 0, 1)


@meaning
def latest_begun(found: Found, today: date) -> list[DaySpan]:
    return [span for span in _in_weeks(found, today, 0, 1) if span[0] <= today][:1]


@meaning
def since_weekday(found: Found, today: date) -> list[DaySpan]:
    return [(latest_begun(found, today)[0][0], today + ONE_DAY)]


@meaning
def weeks_from_weekday(found: Found, today: date) -> list[DaySpan]:
    """So many weeks after the next such day."""
    return [day_of(next_weekday(today, WEEKDAYS[found["weekday"]])[0] + timedelta(days=7 * number_of(found["n"])))]


@meaning
def season(found: Found, today: date) -> Iterable[DaySpan]:
    """The winter of a year is the one that begins in it, unless that is still to come."""
    first = _FIRST_MONTHS[found["season"]]

    def span_in(year: int) -> DaySpan:
        year -= bool((found["named"] or found["year"] or found["short"]) and first == 12 and year == today.year and today.month < first)
        return date(year, first, 1), months_back(date(year, first, 1), -3)[0]

    return once_a_year(found, today, span_in)
