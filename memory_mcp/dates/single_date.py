"""Reads a text that is one date as a whole: 先週の金曜, 3日前の夜, 10月上旬, early October, last Friday at 9."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from memory_mcp.dates.iso import in_utc, iso_span, outside_calendar
from memory_mcp.dates.missing_year import HOUR_OF_NIGHT, NEXT, is_soon, latest, planned
from memory_mcp.dates.recognize import AS_ARGUMENTS, Recognized, recognize, without_dates
from memory_mcp.dates.relative import counted_day
from memory_mcp.dates.spans import MONTHS, ONE_DAY, WEEKDAYS, DaySpan, day_of, narrowed
from memory_mcp.dates.tense import Direction
from memory_mcp.dates.time_of_day import DayReading, night_hours, with_modifiers
from memory_mcp.dates.weekdays import PART_BEFORE_WEEK
from memory_mcp.domain import TimeRange

LONGEST_WORDS = 200
DAY_NAMES = "mon|tue|wed|thu|fri|sat|sun"
MONTH_NAMES = "|".join(sorted({name[:3] for name in MONTHS}))
CLOCK_ALONE = re.compile(r"\A(?:午前|午後|昼|夕方|早朝|未明|朝|深夜|真?夜中|夜|晩)?の?\d{1,2}(?:時半?|時\d{1,2}分|:\d\d|\s*[ap]m)\Z")
_CLOCK_WORDS = frozenset("お昼 正午 深夜 夜中 未明 早朝 明け方 昼前 昼過ぎ 夕方 noon midnight".split())
# Words for a day that include a part of it.
_IMPLIED_PARTS = [
    (re.compile("昨夜|昨晩|ゆうべ|夕べ|今夜|今晩|明晩|tonight|last night|night before last|(?<![a-z])nights? ago"), "夜"),
    (re.compile("今朝|明朝|this morning"), "朝"),
    (re.compile("this afternoon"), "午後"),
    (re.compile("(?:this|last) evening"), "夕方"),
]
_WEEKDAY_BESIDE = re.compile(
    r"(?<=[昨今明]日)(?:丸|まる)?1日(?:中|じゅう)?(?=の|に|\Z)|(?<=[先今来]週)(?:1|一)週間(?=の|に|\Z)|"
    r"(?<=\d日)\s*\(?(?P<after>[月火水木金土日])(?:曜日?)?\)?(?![本間])|\((?P<bracketed>[月火水木金土日])曜?日?\)"
    rf"|(?<![a-z])(?P<before>{DAY_NAMES})(?:(?:s|nes|rs|ur)?day|s|rs?)?,?\s+(?=(?:the )?\d{{1,2}}(?:st|nd|rd|th)|(?:{MONTH_NAMES})[a-z]*\.? \d|\d{{1,2}} (?:{MONTH_NAMES}))"
)
# What may separate the dates of one day: 去年の10月, friday of last week, 10月17日(金).
_CONNECTORS = re.compile(
    r"['’]s(?![a-z])|に入って|ずっと|いっぱい|つい|ちょうど|確か|たしか|じゅう|内(?=[にはいま]|\Z)|\([月火水木金土日]曜?日?\)|[月火水木金土日]曜日?|[のにはも、,()\s-]|日中|中(?=[のに]|\Z)|丸?1?一?日(?=\Z)"
    r"|(?<![a-z])(?:on|in|of|the|at|this|during|over|within|sometime|one day|some day|back|earlier|later|just|only|exactly|more than|some|still|maybe|probably|approximately)(?![a-z])"
)
_END_OF_MONTH = re.compile("月の?末|end of")
_THIRD_OF_MONTH = 11

# 今週中 and 年内 are a limit.
_WITHIN = re.compile("[内中](?:に|は|いっぱい)*\\Z|いっぱいに?\\Z")

FindDirection = Callable[[], Direction | None]


def read_date(plain: str, today: date, *, after: date | None = None, find_direction: FindDirection | None = None) -> DayReading | None:
    """The date that the whole of a normalized text is; None where it is none.

    Where it may be one of several years, it is the latest that is not in the future. `after`: the beginning of a range of which it is the end.
    `find_direction` returns whether it is to come; it is only called where that matters.
    """
    if len(plain) > LONGEST_WORDS:
        return None
    plain_days = PART_BEFORE_WEEK.sub(r"\g<day> \g<week> \g<part>", _WEEKDAY_BESIDE.sub("", plain))
    recognized = recognize(plain_days, today, AS_ARGUMENTS)
    rest = without_dates(plain_days, recognized)
    strictly = NEXT.search(rest) is not None
    ahead = recognize(plain_days, today, AS_ARGUMENTS, upcoming=True) if recognized and (strictly or find_direction) else []
    is_ahead = ahead not in ([], recognized) and (strictly or (find_direction is not None and _is_ahead(ahead, find_direction(), today)))
    if is_ahead:
        recognized, rest = ahead, NEXT.sub(" ", rest)
    meanings = [expression.spans for expression in recognized] or _clock_alone(plain, today)
    spans = _on_weekday(narrowed(meanings), plain)
    if not any(set(spans) <= set(meaning) for meaning in meanings):
        return None  # no date, or two that do not overlap
    parts = [part for words, part in _IMPLIED_PARTS if words.search(plain)]
    try:
        days = planned(spans, today, strictly=strictly) if is_ahead else _latest_or_after(spans, today, after)
        reading, rest = with_modifiers(days, " ".join([rest, *parts]))
    except (ValueError, OverflowError):
        return None
    return None if _CONNECTORS.sub("", rest) else reading


def _on_weekday(spans: Sequence[DaySpan], plain: str) -> Sequence[DaySpan]:
    """The days that are the weekday written beside them, 10月17日(金), if any are: it says which year is meant."""
    beside = _WEEKDAY_BESIDE.search(plain)
    weekday = WEEKDAYS.get(beside[beside.lastgroup]) if beside and beside.lastgroup else None
    fitting = [span for span in spans if span == day_of(span[0]) and span[0].weekday() == weekday]
    return fitting or spans


def with_single_day(reading: DayReading, plain: str, today: date, find_direction: FindDirection | None = None) -> DayReading:
    """The reading with the one day that its words count: 一週間前 is seven days ago, 月末 the last day of the month, and 年内 that of the year, unless
    it tells of what is past."""
    first, after = reading.days
    if find_direction and first < today < after - ONE_DAY and _WITHIN.search(plain) and find_direction() != "last":
        return replace(reading, days=(after - ONE_DAY, after))
    if not reading.about and after.day == 1 and (after - first).days <= _THIRD_OF_MONTH and _END_OF_MONTH.search(plain):
        return replace(reading, days=(after - ONE_DAY, after))
    try:
        counted = counted_day(plain, today)
    except (ValueError, OverflowError):
        return reading
    return replace(reading, days=day_of(counted[1])) if counted and counted[0] == reading.days else reading


def span_of_date(plain: str, today: date, zone: ZoneInfo, after: date | None = None) -> TimeRange | None:
    """The span of one date in UTC: its days, the hour or minute of a clock time, a night until the next morning.

    Raises:
        InvalidInput: it is outside the calendar.
    """
    exact = iso_span(plain, zone)
    if exact:
        return exact
    reading = read_date(plain, today, after=after)
    if reading is None:
        return None
    if reading.minute is not None:
        start = moment_of(reading, zone)
        return TimeRange(start, start + timedelta(minutes=1 if reading.minute else 60))
    try:
        span = in_utc(reading.filtered_days, zone)
    except OverflowError:  # 頃 of the first or the last day of the calendar
        raise outside_calendar() from None
    return TimeRange(span.start, span.end + night_hours(), span.end) if reading.at_night else span


def moment_of(reading: DayReading, zone: ZoneInfo) -> datetime:
    """When a reading begins, in UTC. 25時 is one o'clock of the next day.

    Raises:
        InvalidInput: it is outside the calendar.
    """
    day = reading.days[0] + timedelta(days=(reading.hour or 0) // 24)
    try:
        return datetime.combine(day, time((reading.hour or 0) % 24, reading.minute or 0), tzinfo=zone).astimezone(UTC)
    except OverflowError:
        raise outside_calendar() from None


def _clock_alone(plain: str, today: date) -> list[list[DaySpan]]:
    """A clock time without a day is of today, an hour of the night of the last one."""
    if CLOCK_ALONE.search(plain) or plain in _CLOCK_WORDS:
        return [[day_of(today - ONE_DAY if HOUR_OF_NIGHT.search(plain) else today)]]
    return []


def _is_ahead(ahead: Sequence[Recognized], direction: Direction | None, today: date) -> bool:
    return direction == "next" or (direction is None and is_soon(narrowed([expression.spans for expression in ahead]), today))


def _latest_or_after(spans: Sequence[DaySpan], today: date, after: date | None) -> DaySpan:
    if after and len(spans) > 1:
        later = [span for span in spans if span[0] >= after]
        return later[-1] if later else (spans[0][0].replace(year=today.year + 1), spans[0][1].replace(year=spans[0][1].year + 1))
    return latest(spans, today)
