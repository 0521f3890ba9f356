"""Which date is meant that leaves out its year, week or month: 11月30日, 大晦日, 金曜, 深夜2時.

A date that is planned is the next one, a date that is reported the last one. Where the text shows neither, an argument takes the latest date that has begun,
unless that is nearly a year ago and the next one is near; a statement takes the nearest.
"""

import re
from collections.abc import Iterable, Sequence
from datetime import date, datetime, timedelta

from memory_mcp.dates.expressions import Expression
from memory_mcp.dates.spans import ONE_DAY, DaySpan, day_of
from memory_mcp.dates.tense import Direction

# These words exclude a date that is past.
NEXT = re.compile("(?:次|今度)の?|来たる|来る|きたる|(?<![a-z])(?:next|(?:the )?(?:coming|upcoming))(?![a-z])")
# Alone, such an hour belongs to the last night.
HOUR_OF_NIGHT = re.compile(r"\A(?:深夜|真?夜中|夜|晩)の?0?[0-5](?:時半?|時\d{1,2}分|:\d\d)\Z")
# The year of a plan is not left out when it is nearly a year ahead: such a plan is of this year, and written down up to 45 days late.
_LATE, _NEARLY_A_YEAR = timedelta(days=45), timedelta(days=180)
# The 29th of February exists within eight years of any day, any other day within one.
_YEARS_AHEAD = (1, 2, 3, 4, 8)
_LEAP_YEARS_REACH = 8


def is_open(expression: Expression, spans: Sequence[DaySpan], today: date) -> bool:
    """Whether the sentence decides which date is meant. A leap day may have a single date among the last years."""
    if expression.settled:
        return False
    first = spans[0][0] if spans else today
    return len(spans) > 1 or bool(expression.recurs_after) or ((first.month, first.day) == (2, 29) and today - first > _NEARLY_A_YEAR)


def with_upcoming(expression: Expression, match: re.Match[str], today: date, spans: Sequence[DaySpan]) -> list[DaySpan]:
    """The spans and the next one to come, the latest first."""
    known = set(spans)
    for later in _later_days(expression, today):
        try:
            known |= set(expression.resolve(match, later))
        except (ValueError, OverflowError):
            continue
        if any(span[0] > today for span in known) and not expression.recurs_after:
            break
    return sorted(known, reverse=True)


def _later_days(expression: Expression, today: date) -> Iterable[date]:
    if expression.recurs_after:
        return [today + timedelta(days=ahead) for ahead in expression.recurs_after if date.max - today > timedelta(days=ahead)]
    return [today.replace(year=today.year + years, day=min(today.day, 28)) for years in _YEARS_AHEAD if today.year + years < date.max.year]


def latest(spans: Sequence[DaySpan], today: date) -> DaySpan:
    """The latest span that has begun; the spans come the latest first."""
    return next((span for span in spans if span[0] <= today), spans[0])


def planned(spans: Sequence[DaySpan], today: date, *, strictly: bool = False) -> DaySpan:
    """The next span, which may have begun, or the last one where that ended up to 45 days ago; with `strictly` only one that is to come."""
    ahead = min((span for span in spans if (span[0] > today if strictly else span[1] > today)), default=spans[0])
    past = max((span for span in spans if span[1] <= today), default=None)
    if strictly or past is None or past == ahead:
        return ahead
    return past if today - (past[1] - ONE_DAY) <= _LATE and ahead[0] - past[1] > _NEARLY_A_YEAR else ahead


def is_soon(spans: Sequence[DaySpan], today: date) -> bool:
    """Whether the next span is near and the last one nearly a year ago."""
    ahead = min((span[0] for span in spans if span[0] > today), default=None)
    past = max((span[1] for span in spans if span[0] <= today), default=date.min)
    return ahead is not None and ahead - today <= _LATE and today - past > _NEARLY_A_YEAR


def year_of_day(month: int, day: int, today: date, direction: Direction | None, weekday: int | None = None) -> int | None:
    """The year of a day in a statement; None where there is no such day. `weekday`: the day of the week that follows it in the text."""
    days = _days_around(month, day, today)
    near = [there for there in days if abs(there.year - today.year) <= 1]
    nearest = min(near, key=lambda there: (abs((there - today).days), there.year), default=None)
    on_weekday = next((there for there in near if there.weekday() == weekday), None)
    if on_weekday and (direction is None or (direction == "next") is (on_weekday >= today) or on_weekday == nearest):
        return on_weekday.year
    if direction is None:
        return nearest.year if nearest else None
    if direction == "next":
        return planned([day_of(there) for there in days], today)[0].year if days and days[-1] >= today else None
    return max((there.year for there in days if there <= today), default=None)


def _days_around(month: int, day: int, today: date) -> list[date]:
    """That day in each year around today that has it, the earliest first."""
    reach = _LEAP_YEARS_REACH if (month, day) == (2, 29) else 1
    days = []
    for year in range(max(today.year - reach, date.min.year), min(today.year + reach, date.max.year - 1) + 1):
        try:
            days.append(date(year, month, day))
        except ValueError:
            continue
    return days


def of_night(moment: datetime, now: datetime, direction: Direction | None) -> datetime:
    """The last such moment, where `moment` is that of today; of a plan the next one."""
    if direction == "next":
        return moment if moment > now else moment + ONE_DAY
    return moment - ONE_DAY if moment > now else moment
