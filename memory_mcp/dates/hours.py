"""Hours: what qualifies a day (夜, 9pm, 上旬, 頃), days in UTC, and times counted in hours and minutes from now (2時間前, the last 24
hours)."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta, tzinfo

from memory_mcp import lexicon
from memory_mcp.dates.grammar import PARTS
from memory_mcp.dates.spans import ONE_DAY, DaySpan, months_back, nth_of, number_of
from memory_mcp.domain import TimeRange
from memory_mcp.errors import InvalidInput
from memory_mcp.patterns import Forms, Found, bounded

_HOURS = {**lexicon.counts("ja", "hours"), **lexicon.counts("en", "hours")}
PART_OF_DAY = bounded(f"(?<!fort)(?:{lexicon.any_of(_HOURS)})")
_NIGHT_BEGINS, _NIGHT_ENDS = 20, 5
_CLOCKS = Forms(PARTS["clock_time"])
_ABOUT = bounded(rf"{lexicon.any_of(lexicon.words('ja', 'about'))}|(?<![a-z])(?:{lexicon.any_of(lexicon.words('en', 'about'))})(?![a-z])")
_PARTS = Forms(PARTS["part_or_week"])
_NIGHT, _AFTERNOON = ("夜", "晩", "night"), ("午後", "夕方", "afternoon", "evening")
_LONG_DAYS, _MONTH_DAYS = 80, 28
# The end of a year is its last months, late in a year its last third.
_MOST_OF_A_YEAR, _MONTHS_AT_AN_END = 300, 2
_LOOSELY = ("early", "late", "mid", "the mid", "中", "半", "なかば", "真", "まん")


@dataclass(frozen=True, slots=True)
class DayReading:
    """Whole days, and what qualifies them: the `hour` at which it began, to the `minute` if a clock time is given; `about`: it is not
    exact. `counted`: the single day that a count of weeks, months or years means as a moment."""

    days: DaySpan
    hour: int | None = None
    minute: int | None = None
    about: bool = False
    counted: date | None = None

    @property
    def at_night(self) -> bool:
        """Whether it may last until the next morning."""
        return self.minute is None and self.hour is not None and self.hour >= _NIGHT_BEGINS

    @property
    def filtered_days(self) -> DaySpan:
        """The days that a filter covers."""
        return widened(self.days) if self.about else self.days


def widened(days: DaySpan) -> DaySpan:
    """What is not exact: a day with two on either side, a longer span with ten."""
    margin = timedelta(days=2 if days[1] - days[0] < timedelta(days=_MONTH_DAYS) else 10)
    return days[0] - margin, days[1] + margin


def with_modifiers(days: DaySpan, rest: str) -> tuple[DayReading, str]:
    """The days as `rest`, the text without their expressions, qualifies them, and what of `rest` is not understood.

    Raises:
        ValueError, OverflowError: there is no such time or part.
    """
    reading = DayReading(days)
    for forms, apply in ((_PARTS, _with_part), (_PARTS, _with_part), (_CLOCKS, _with_clock)):
        if found := forms.first(rest):
            reading = apply(reading, found)
            rest = rest[: found.span()[0]] + " " + rest[found.span()[1] :]
    if part := PART_OF_DAY.search(rest):
        reading = replace(reading, hour=_HOURS[part[0]]) if reading.minute is None else reading
        rest = PART_OF_DAY.sub(" ", rest)
    if _ABOUT.search(rest):
        reading, rest = replace(reading, about=True), _ABOUT.sub(" ", rest)
    return reading, rest


# Behind or in front of a week, month or year in a sentence: 来月いっぱい, 来月の初め, early next month.
# A limit: what is to be done within it is to be done by its last day.
_TO_THE_END = bounded(r"\s?[中内]?いっぱい|の?(?:末日|最終日)|末まで|の終わりまで|(?P<limit>[内中](?:に|まで|で))")
_PART_BEHIND = Forms(PARTS["part_behind"])
_PART_IN_FRONT = Forms(PARTS["part_in_front"])
_QUALIFIER, _ABOUT_BEHIND, _ABOUT_IN_FRONT = (bounded(PARTS[name]) for name in ("qualifier", "about_behind", "about_in_front"))
_SHORTEST_WITH_PARTS = timedelta(days=7)


def part_of_span(span: DaySpan, before: str, after: str) -> DaySpan:
    """The part of a week, month or year that a sentence means, given its text before and after it."""
    if span[1] - span[0] < _SHORTEST_WITH_PARTS:
        return span
    part = _PART_BEHIND.first(after) or _PART_IN_FRONT.first(before)
    try:
        return _with_part(DayReading(span), part).days if part else span
    except ValueError:  # only a month has a first week
        return span


def asked_span(span: DaySpan, before: str, after: str) -> DaySpan:
    """The days that a question means by a date, given its text before and after it: a part of a week, month or year; クリスマスの頃 with the
    days beside it. A month is long enough as it is."""
    is_about = _ABOUT_BEHIND.match(after) or _ABOUT_IN_FRONT.search(before)
    if not is_about or span[1] - span[0] >= timedelta(days=_MONTH_DAYS):
        return part_of_span(span, before, after)
    try:
        return widened(span)
    except OverflowError:  # at an end of the calendar
        return span


def end_of_qualifier(plain: str, end: int) -> int:
    """Where that ends which qualifies a date whose words end at `end`: 2012年頃, 今月中, 来週前半."""
    qualifier = _QUALIFIER.match(plain, end)
    return qualifier.end() if qualifier else end


def limit_or_part(span: DaySpan, before: str, after: str, *, is_planned: bool = False) -> DaySpan:
    """The same; of 来月いっぱい and of an end the last day, and of a plan for 今月中に, too."""
    end = _TO_THE_END.match(after)
    is_end = (is_planned or not end["limit"]) if end else before.endswith(("end of ", "end of the "))
    return (span[1] - ONE_DAY, span[1]) if is_end and span[1] - span[0] >= _SHORTEST_WITH_PARTS else part_of_span(span, before, after)


def night_hours() -> timedelta:
    """How far a night extends into the next day."""
    return timedelta(hours=_NIGHT_ENDS)


def _with_part(reading: DayReading, found: Found) -> DayReading:
    start, end = reading.days
    length = (end - start).days
    if found["week"]:
        return replace(reading, days=_week_of_month(reading.days, nth_of(found["week"])))
    if half := found["half"]:
        middle = start + timedelta(days=length // 2)
        middle = middle if length < _LONG_DAYS else months_back(start, -(length // 60))[0]
        return replace(reading, days=(middle, end) if half[0] in "後下" or "second" in half else (start, middle))
    if length < _MONTH_DAYS or (length < _LONG_DAYS and start.day > 1):
        third = max(length // 3, 1)
        cuts = start + timedelta(days=third), end - timedelta(days=third)
    elif length < _LONG_DAYS:
        cuts = start.replace(day=11), start.replace(day=21)
    else:
        words = found["first"] or found["middle"] or found["last"]
        ends = _MONTHS_AT_AN_END if length > _MOST_OF_A_YEAR and not words.startswith(_LOOSELY) else length // 90
        cuts = months_back(start, -ends)[0], months_back(end, ends)[0]
    return replace(reading, days=(start, cuts[0]) if found["first"] else cuts if found["middle"] else (cuts[1], end))


def _week_of_month(days: DaySpan, nth: int) -> DaySpan:
    start, end = days
    if not _MONTH_DAYS <= (end - start).days < _LONG_DAYS:
        raise ValueError("only a month has a first week")
    if nth < 0:
        return end - timedelta(days=7), end
    first = start + timedelta(days=7 * (nth - 1))
    return first, min(first + timedelta(days=7), end)


def _with_clock(reading: DayReading, found: Found) -> DayReading:
    """A clock time. 25時 is one o'clock of the next day, as night owls in Japan count."""
    minute = 30 if found["past"] else number_of(found["minute"] or "0")
    hour = number_of(found["hour"])
    if found["half"]:
        hour = hour % 12 + (12 if found["half"] == "p" else 0)
    hour = _hour_of_day(hour, found.string, has_half=bool(found["half"]))
    if not 0 <= hour < 30 or minute >= 60:
        raise ValueError("no such time")
    return replace(reading, hour=hour, minute=minute)


def _hour_of_day(hour: int, rest: str, *, has_half: bool) -> int:
    """The hour of the day that a clock time means together with 夜 or 午後; one o'clock at night belongs to the night that begins on that
    day."""
    at_night = any(word in rest.replace("夜明け", "") for word in _NIGHT)
    in_afternoon = any(word in rest for word in _AFTERNOON)
    if hour < _NIGHT_ENDS + 1 and at_night and not in_afternoon:
        return hour + 24
    if has_half or hour > 12:
        return hour
    return hour + 12 if at_night or (hour < 12 and in_afternoon) else hour


# Days and hours in UTC.


def times_of(plain: str, spans: Iterable[DaySpan], now: datetime, zone: tzinfo) -> list[TimeRange]:
    """These spans of the dates of a question, and its counts of hours up to now: 過去24時間."""
    return [*in_utc_spans(spans, zone), *(_until_now(now, _length(found)) for found in _UP_TO_NOW.all(plain))]


def in_utc_spans(spans: Iterable[DaySpan], zone: tzinfo) -> Iterator[TimeRange]:
    """Those of these local days that UTC can represent: a text may quote the year 1, and is still a text."""
    for span in spans:
        try:
            yield in_utc(span, zone)
        except InvalidInput:
            continue


def in_utc(span: DaySpan, zone: tzinfo) -> TimeRange:
    """Local days as a span of UTC.

    Raises:
        InvalidInput: they are outside the calendar.
    """
    try:
        start, end = (datetime.combine(day, time(), tzinfo=zone).astimezone(UTC) for day in span)
    except OverflowError:
        raise outside_calendar() from None
    return TimeRange(start, end)


def outside_calendar() -> InvalidInput:
    """The error for a day that UTC cannot represent."""
    return InvalidInput("a date is outside the calendar", "", "Send a date between 0002-01-01 and 9998-12-31")


_FEW = 6
_FROM_NOW, _SOME, _UP_TO_NOW = (Forms(PARTS[name]) for name in ("hours_from_now", "some_hours_ago", "hours_up_to_now"))
_JUST_NOW = frozenset((*lexicon.words("ja", "just_now"), *lexicon.words("en", "just_now")))


def hours_ago(plain: str, now: datetime) -> TimeRange | None:
    """The moment of 2時間前 or 1時間後, and the hour or minute after it."""
    if some := _SOME.whole(plain):
        unit = _unit(some["unit"])
        if unit < timedelta(hours=1):
            unit *= 5
        return TimeRange(now.astimezone(UTC) - _FEW * unit, now.astimezone(UTC) - unit)
    found = _FROM_NOW.whole(plain)
    if not found:
        return None
    unit = _unit(found["unit"])
    distance = ((number_of(found["n"]) if found["n"] else 0) + (0.5 if found["half"] else 0)) * unit
    moment = now.astimezone(UTC) + (-distance if found["ago"] else distance)
    return TimeRange(moment, moment + unit)


def up_to_now(plain: str, now: datetime) -> TimeRange | None:
    """The hours of 過去24時間, or the last hour for さっき, to the end of this minute."""
    if is_just_now(plain):
        return _until_now(now, timedelta(hours=1))
    found = _UP_TO_NOW.whole(plain)
    return _until_now(now, _length(found)) if found else None


def is_just_now(plain: str) -> bool:
    return plain in _JUST_NOW


def _length(found: Found) -> timedelta:
    unit, count = found["unit"], found["n"]
    is_singular = unit.isascii() and not unit.endswith("s") and not found["few"]
    return (number_of(count) if count else 1 if is_singular else _FEW) * _unit(unit)


def _unit(name: str) -> timedelta:
    return timedelta(hours=1) if name.startswith(("時", "h")) else timedelta(minutes=1)


def _until_now(now: datetime, length: timedelta) -> TimeRange:
    moment = now.astimezone(UTC)
    return TimeRange(moment - length, moment + timedelta(minutes=1))
