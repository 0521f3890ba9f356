"""Spans of days: the days, weeks, months and years of the calendar, and spans that narrow each other."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date, timedelta

# The first day, and the first day after the last.
DaySpan = tuple[date, date]

ONE_DAY = timedelta(days=1)
WEEKDAYS = {
    name: index
    for index, pair in enumerate(["月mon", "火tue", "水wed", "木thu", "金fri", "土sat", "日sun"])
    for name in (pair[0], pair[1:])
}
SATURDAY = 5
MONTH_NAMES = "january february march april may june july august september october november december".split()
MONTHS = {form: number for number, name in enumerate(MONTH_NAMES, start=1) for form in (name, name[:3])} | {"sept": 9}
# A date without a year may mean that date in each of so many last years, as long as it only raises a score.
YEARS_CONSIDERED = 5


def day_of(day: date) -> DaySpan:
    return day, day + ONE_DAY


def days_back(day: date, count: int) -> date:
    return day - timedelta(days=count)


def week_of(day: date, back: int = 0) -> DaySpan:
    """The week of a day, or the week `back` weeks earlier. A week begins on Monday."""
    monday = day - timedelta(days=day.weekday() + 7 * back)
    return monday, monday + timedelta(days=7)


def month_of(year: int, month: int) -> DaySpan:
    return date(year, month, 1), date(year + month // 12, month % 12 + 1, 1)


def months_back(today: date, back: int) -> DaySpan:
    """The calendar month `back` months before that of `today`."""
    year, month = divmod(today.year * 12 + today.month - 1 - back, 12)
    return month_of(year, month + 1)


def year_of(year: int) -> DaySpan:
    return date(year, 1, 1), date(year + 1, 1, 1)


def first_of_month(day: date, months: int) -> date:
    """The first day of the month `months` months after that of `day`."""
    return months_back(day, -months)[0]


def same_day_of_month(day: date, back: int) -> date:
    """The same day of the month `back` months earlier, or the last day of that month."""
    first, after = months_back(day, back)
    return min(first + timedelta(days=day.day - 1), after - ONE_DAY)


def nth_weekday(year: int, month: int, weekday: int, nth: int) -> date:
    """The `nth` such day of the week of a month; -1 is the last one.

    Raises:
        ValueError: the month has no fifth.
    """
    first, after = month_of(year, month)
    if nth < 0:
        return after - timedelta(days=(after.weekday() - weekday - 1) % 7 + 1)
    day = first + timedelta(days=(weekday - first.weekday()) % 7 + 7 * (nth - 1))
    if day >= after:
        raise ValueError("the month has no such day")
    return day


def each_year(today: date, span_in: Callable[[int], DaySpan]) -> Iterator[DaySpan]:
    """The span of each of the last years, the latest first, without years that have no such day (29 February)."""
    for year in range(today.year, today.year - YEARS_CONSIDERED, -1):
        try:
            yield span_in(year)
        except ValueError:
            continue


def _unit(whole: Callable[[date, int], DaySpan], rolling_start: Callable[[date, int], date]) -> "Unit":
    def unit(today: date, count: int, rolling: bool = False) -> DaySpan:
        return (rolling_start(today, count), today) if rolling else whole(today, count)

    return unit


# (today, count) → the calendar day, week, month or year `count` units ago; `rolling`: the days from then until today.
Unit = Callable[..., DaySpan]
_DAY = _unit(lambda today, n: day_of(days_back(today, n)), days_back)
_WEEK = _unit(week_of, lambda today, n: days_back(today, 7 * n))
_FORTNIGHT = _unit(lambda today, n: week_of(today, 2 * n), lambda today, n: days_back(today, 14 * n))
_MONTH = _unit(months_back, same_day_of_month)
_YEAR = _unit(lambda today, n: year_of(today.year - n), lambda today, n: same_day_of_month(today, 12 * n))
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


def narrowed(meanings: Sequence[Sequence[DaySpan]]) -> list[DaySpan]:
    """The spans that the dates of one text mean together, each once: 今年の1月 is a January of this year.

    `meanings` holds the spans that each date may mean. A span inside a span of another date is kept, and the wider one is dropped. Of a
    date that may mean several years, the spans inside another date are kept, if there are any. Takes n·log n time: a text may
    name thousands of dates.
    """
    distinct = dict.fromkeys(span for spans in meanings for span in spans)
    inside, around = _inside(distinct), _around(distinct)
    inside |= {spans[0] for spans in meanings if len(spans) == 1}  # 今月17日、10月17日: the same day, and of this year
    chosen: dict[DaySpan, None] = {}
    for spans in meanings:
        within = [span for span in spans if span in inside] if len(spans) > 1 else []
        chosen |= dict.fromkeys(span for span in within or spans if span not in around)
    return list(chosen)


def _inside(spans: Iterable[DaySpan]) -> set[DaySpan]:
    """The spans that lie inside another span."""
    inside = set()
    latest_end = date.min
    for span in sorted(spans, key=lambda span: (span[0], date.max - span[1])):  # of those that begin together the longest first
        if span[1] <= latest_end:
            inside.add(span)
        latest_end = max(latest_end, span[1])
    return inside


def _around(spans: Iterable[DaySpan]) -> set[DaySpan]:
    """The spans that contain another span."""
    around = set()
    earliest_end: date | None = None
    for span in sorted(spans, key=lambda span: (date.max - span[0], span[1])):  # the last first, of those that begin together the shortest
        if earliest_end and earliest_end <= span[1]:
            around.add(span)
        earliest_end = min(earliest_end or span[1], span[1])
    return around
