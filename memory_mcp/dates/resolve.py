"""Arguments: a text as the time that it means, from a given now and zone: a moment (`occurred_at`), a range (`date_range`), an end
(`expires_at`).

Dates are ISO or words, in Japanese or English: 2025-10-17, 先週の金曜, 3日前の夜, 去年の夏, last month. A day is a calendar day in the caller's zone.
docs/dates.md lists the expressions. Where a date leaves out its year, week or month, a plan means the next one; else an argument takes the
latest that has begun, unless that is nearly a year ago and the next one is near.
"""

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from functools import partial
from zoneinfo import ZoneInfo

from dateutil.parser import parse as parse_date

from memory_mcp.dates.grammar import PARTS
from memory_mcp.dates.hours import (
    PART_OF_DAY,
    DayReading,
    hours_ago,
    in_utc,
    is_just_now,
    night_hours,
    outside_calendar,
    up_to_now,
    with_modifiers,
)
from memory_mcp.dates.recognize import AS_ARGUMENTS, CALENDAR, Named, Recognized, recognized_in
from memory_mcp.dates.spans import ONE_DAY, WEEKDAYS, DaySpan, day_of, narrowed, normalize
from memory_mcp.dates.statements import LATE, NEARLY_A_YEAR, planned
from memory_mcp.dates.tables import next_weekday
from memory_mcp.dates.tense import Direction, direction_of_text
from memory_mcp.domain import TimeRange
from memory_mcp.errors import InvalidInput
from memory_mcp.lexicon import expressions
from memory_mcp.patterns import Forms, bounded

_IS = expressions(__file__, "sentences.toml", "arguments")
_HOURS = {"JST": 9, "UTC": 0, "GMT": 0, "CET": 1, "CEST": 2, "EST": -5, "EDT": -4, "PST": -8, "PDT": -7}
_SECONDS = {name: hours * 3600 for name, hours in _HOURS.items()}
_OFFSETS = {name: f"{hours:+03}:00" for name, hours in _HOURS.items()}
_ZONE = re.compile(rf"(?<=\d)(?: ?(?P<name>{'|'.join(_OFFSETS)})| (?P<offset>[+-]\d\d:?\d\d))\Z")


def iso_span(text: str, zone: ZoneInfo) -> TimeRange | None:
    """The span of an ISO date or moment, to its precision: a day, an hour, a minute. A date of eight digits is a date expression.

    Raises:
        InvalidInput: it is outside the calendar.
    """
    is_of_a_program = _IS["of_a_program"].match(text) is not None
    if not (is_of_a_program or text[:4].isdecimal()) or (len(text) == len("20251017") and text.isdecimal()):
        return None
    if since := re.fullmatch(r"(\d{9,})(?:\.\d{1,9})?", text):
        return _since_1970(since[1])
    try:
        if is_of_a_program:
            plain = _IS["name_of_zone"].sub("", text.upper())  # dateutil takes the sign behind a name the other way round
            moment, length = parse_date(plain, tzinfos=_SECONDS), timedelta(seconds=1)
        else:
            moment, length = _iso_moment(text)
        start = (moment if moment.tzinfo else moment.replace(tzinfo=zone)).astimezone(UTC)
        return TimeRange(start, (start.astimezone(zone) + length).astimezone(UTC) if length >= ONE_DAY else start + length)
    except OverflowError:
        raise outside_calendar() from None
    except ValueError:
        return None


def _iso_moment(text: str) -> tuple[datetime, timedelta]:
    """A moment, and how long what is meant lasts. Its zone may be a name, and its hour 24."""
    if _IS["plain_iso"].fullmatch(text):
        return datetime.fromisoformat(text), timedelta(microseconds=1)
    text = _IS["with_units"].sub(r"t\1:\2:\3", text).upper()
    if zone := _ZONE.search(text):
        text = text[: zone.start()] + (_OFFSETS[zone["name"]] if zone["name"] else zone["offset"])
    text, hours_24 = _IS["end_of_day"].subn("00:00", text)
    moment = datetime.fromisoformat(text.replace("/", "-")) + timedelta(days=hours_24)
    clock = re.search(r"[T ]\d{2}(:?\d{2})?(:?\d{2})?(\.\d+)?", text)
    if clock is None:
        return moment, timedelta(days=7 if "W" in text and len(text.replace("-", "")) == len("2025W42") else 1)
    return moment, timedelta(microseconds=1) if clock[2] else timedelta(minutes=1) if clock[1] else timedelta(hours=1)


def _since_1970(digits: str) -> TimeRange | None:
    """The second or millisecond that ten or thirteen digits count since 1970; None for other numbers, and for 2025103012: a day and an hour
    that a person may remember."""
    if len(digits) not in (10, 13):
        return None
    with suppress(ValueError):
        if len(digits) == 10 and date.fromisoformat(digits[:8]).year >= 1900:
            return None
    start = datetime.fromtimestamp(int(digits[:10]), UTC) + timedelta(milliseconds=int(digits[10:] or 0))
    return TimeRange(start, start + (timedelta(milliseconds=1) if digits[10:] else timedelta(seconds=1)))


def is_iso(text: str) -> bool:
    """Whether a date is in ISO 8601, which can be read in one way only."""
    try:
        datetime.fromisoformat(text.strip())
    except ValueError:
        return False
    return True


LONGEST_WORDS = 200
_CLOCK_WORDS = frozenset("お昼 正午 深夜 夜中 未明 早朝 明け方 昼前 昼過ぎ 夕方 noon midnight".split())
_WEEKDAY_BESIDE = re.compile(PARTS["weekday_beside"])
# What may separate the dates of one day: 去年の10月, friday of last week, 10月17日(金).
_CONNECTORS = re.compile(PARTS["connectors"])
_END_OF_MONTH = ("月末", "月の末", "end of")
_THIRD_OF_MONTH = 11

FindDirection = Callable[[], Direction | None]


# Friday night last week is the night of Friday last week.
_PART_BEFORE_WEEK = bounded(PARTS["part_before_week"])
# Kinds of expressions that may have a part of the day in them.
_WITH_A_PART = ("near days", "so long ago")


def read_date(plain: str, today: date, *, after: date | None = None, find_direction: FindDirection | None = None) -> DayReading | None:
    """The date that the whole of a normalized text is; None where it is none.

    Where it may be one of several years, it is the latest that is not in the future. `after`: the beginning of a range of which it is the
    end. `find_direction` returns whether it is to come; it is only called where that matters.
    """
    if len(plain) > LONGEST_WORDS:
        return None
    plain_days = _PART_BEFORE_WEEK.sub(r"\g<day> \g<week> \g<part>", _WEEKDAY_BESIDE.sub("", plain))
    recognized = recognized_in(plain_days, AS_ARGUMENTS)
    named = recognized.resolved(today)
    rest = recognized.without(named)
    strictly = _IS["next"].search(rest) is not None
    ahead = recognized.resolved(today, upcoming=True) if named and (strictly or find_direction) else []
    is_ahead = ahead not in ([], named) and (strictly or (find_direction is not None and _is_ahead(ahead, find_direction(), today)))
    if is_ahead:
        named, rest = ahead, _IS["next"].sub(" ", rest)
    meanings = [each.spans for each in named]
    if not meanings and (_is_clock(plain) or plain in _CLOCK_WORDS):  # of today, an hour of the night of the last one
        meanings = [[day_of(today - ONE_DAY if _IS["hour_of_night"].search(plain) else today)]]
    spans = _on_weekday(narrowed(meanings), plain)
    if not any(set(spans) <= set(meaning) for meaning in meanings):
        return None  # no date, or two that do not overlap
    parts = [part for each in named if (part := _part_implied(recognized.plain, each))]
    try:
        days = planned(spans, today, strictly=strictly) if is_ahead else _latest_or_after(spans, today, after)
        reading, rest = with_modifiers(days, " ".join([rest, *parts]))
        counted = _counted(recognized, today, reading.days)
    except (ValueError, OverflowError):
        return None
    return None if _CONNECTORS.sub("", rest) else replace(reading, counted=counted)


def _part_implied(plain: str, named: Named) -> str:
    """The part of a day that a word for the day has in it, such as 昨夜, 今朝 and "two nights ago"."""
    part = PART_OF_DAY.search(plain, named.start, named.end) if named.expression and named.expression.kind in _WITH_A_PART else None
    return part[0] if part else ""


def _on_weekday(spans: Sequence[DaySpan], plain: str) -> Sequence[DaySpan]:
    """The days that are the weekday written beside them, 10月17日(金), if any are: it says which year is meant."""
    beside = _WEEKDAY_BESIDE.search(plain)
    weekday = WEEKDAYS.get(beside[beside.lastgroup]) if beside and beside.lastgroup else None
    fitting = [span for span in spans if span == day_of(span[0]) and span[0].weekday() == weekday]
    return fitting or spans


def _counted(recognized: Recognized, today: date, days: DaySpan) -> date | None:
    """The single day of a count of weeks, months or years, if the days are what that means in the calendar: 一週間前, in two months."""
    counts = ((expression, match) for expression, match in recognized.matches if expression.counted)
    for expression, match in counts:
        if next(iter(expression.resolve(match, today))) == days:
            return next(iter(expression.counted(match, today)))[0] if expression.counted else None
    return None


def with_single_day(reading: DayReading, plain: str, today: date, find_direction: FindDirection) -> DayReading:
    """The reading with the one day that its words count: 一週間前 is seven days ago, 月末 the last day of the month, and 年内 that of the year,
    unless it tells of what is past."""
    first, after = reading.days
    is_end_of_month = (
        not reading.about and after.day == 1 and (after - first).days <= _THIRD_OF_MONTH and any(words in plain for words in _END_OF_MONTH)
    )
    limit = plain.rstrip("にはで").removesuffix("まで")  # 今週中 and 年内 are a limit, and so is いっぱい
    to_the_end = limit.endswith("いっぱい") and after - first > ONE_DAY
    has_begun = first < today < after - ONE_DAY and limit.removesuffix("いっぱい").endswith(("内", "中"))
    if is_end_of_month or to_the_end or (has_begun and find_direction() != "last"):
        return replace(reading, days=(after - ONE_DAY, after))
    return replace(reading, days=day_of(reading.counted)) if reading.counted else reading


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


def _is_clock(plain: str) -> bool:
    """Whether a text is a time of the day and nothing else."""
    try:
        reading, rest = with_modifiers(day_of(date.min), plain)
    except (ValueError, OverflowError):
        return False
    return reading.minute is not None and not _CONNECTORS.sub("", rest)


def _is_ahead(named: Sequence[Named], direction: Direction | None, today: date) -> bool:
    """Whether a date is to come; where nothing else tells, whether the next one is near and the last one nearly a year ago."""
    spans = narrowed([each.spans for each in named]) if direction is None else []
    ahead = min((span[0] for span in spans if span[0] > today), default=None)
    past = max((span[1] for span in spans if span[0] <= today), default=date.min)
    return direction == "next" or (ahead is not None and ahead - today <= LATE and today - past > NEARLY_A_YEAR)


def _latest_or_after(spans: Sequence[DaySpan], today: date, after: date | None) -> DaySpan:
    if after and len(spans) > 1:
        later = [span for span in spans if span[0] >= after]
        return later[-1] if later else (spans[0][0].replace(year=today.year + 1), spans[0][1].replace(year=spans[0][1].year + 1))
    return next((span for span in spans if span[0] <= today), spans[0])


EVER = TimeRange(datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC))
SEPARATOR, _BESIDE = bounded(PARTS["range_separator"]), bounded(PARTS["beside"])
# A range with one end, which the word before or behind its date tells.
_BOUNDS = Forms(PARTS["range_with_one_end"])
_HALF_A_DAY = timedelta(hours=12)
_LATE = ("夜", "晩", "夕", "午後", "night", "evening", "afternoon", "pm")
_LONGEST_MONTH = timedelta(days=31, hours=1)  # October where clocks go back
_DAY_ALONE = bounded(PARTS["day_alone"])


def read_range(plain: str, today: date, zone: ZoneInfo) -> TimeRange | None:
    """The span of a range with both ends, with one of them, or of two dates side by side."""
    plain = _IS["first_of_two"].sub(r"\1..", plain)
    if beside := _side_by_side(plain, today, zone):
        return beside
    first, *last = (part.strip() for part in SEPARATOR.split(plain.removeprefix("from ").removeprefix("between "), maxsplit=1))
    if last and (first or last[0]) and (both := _from_to(first, last[0], today, zone)):
        return both
    bound = _BOUNDS.whole(plain)
    span = span_of_date(bound["date"].strip(), today, zone) if bound else None
    if not (bound and span):
        return None
    if bound["since"] or bound["after"]:
        return TimeRange(span.start if bound["since"] else span.besides or span.end, EVER.end)
    return TimeRange(EVER.start, span.end, span.besides) if bound["until"] else TimeRange(EVER.start, span.start)


def _from_to(first: str, last: str, today: date, zone: ZoneInfo) -> TimeRange | None:
    """Either end may be empty."""
    start = span_of_date(first, today, zone) if first else EVER
    if start is None:
        return None
    last = last.removesuffix("まで").removesuffix("にかけて").strip()
    end = _end_of(last, start, today, zone, late=any(part in first for part in _LATE)) if last else EVER
    return TimeRange(start.start, end.end, end.besides) if end else None


def _side_by_side(plain: str, today: date, zone: ZoneInfo) -> TimeRange | None:
    """昨日と一昨日, in whichever order; the two must touch."""
    parts = [part.strip() for part in _BESIDE.split(plain, maxsplit=1)]
    spans = [span for part in parts if part and (span := span_of_date(part, today, zone))]
    if len(spans) != 2:
        return None
    earlier, later = sorted(spans, key=lambda span: span.start)
    longest = max(earlier, later, key=lambda span: span.end)
    return TimeRange(earlier.start, longest.end, longest.besides) if later.start <= earlier.end else None


def _end_of(plain: str, start: TimeRange, today: date, zone: ZoneInfo, *, late: bool) -> TimeRange | None:
    """The end of a range, which may leave out the month or year of its beginning. A clock time is the last moment; `late`: the beginning
    is in the second half of a day."""
    begun = start.start.astimezone(zone).date() if start.start != EVER.start else None
    try:
        if begun and (alone := _DAY_ALONE.fullmatch(plain)):
            if alone["day"]:  # 2026-13 is no thirteenth of anything
                return in_utc(day_of(begun.replace(day=int(alone["day"]))), zone) if start.end - start.start <= _LONGEST_MONTH else None
            return in_utc(next_weekday(begun - ONE_DAY, WEEKDAYS[alone[2] or alone[3]]), zone)
    except (ValueError, OverflowError):
        return None
    if begun and _is_clock(plain):
        span = span_of_date(f"{begun.isoformat()} {plain}", today, zone)
        if span and span.end <= start.start:
            later = _HALF_A_DAY if late and span.start + _HALF_A_DAY > start.start else 2 * _HALF_A_DAY
            span = TimeRange(span.start + later, span.end + later)
    else:
        span = span_of_date(plain, today, zone, begun)
    is_clock_time = span is not None and span.end - span.start <= timedelta(hours=1)
    return TimeRange(span.start, span.start + timedelta(microseconds=1)) if span and is_clock_time else span


_READ_OF_CONTENT = 2000
_LONGEST_CLOCK_TIME = timedelta(hours=1)
_EXAMPLES = {
    "occurred_at": "2025-10-17, 2025-10-17T21:00, or words such as 昨日, 先週, 3日前, last month",
    "date_range": "2025-10-17, 2025-10-01..2025-10-17, or words such as 昨日, 先週, 3日前, last month",
    "expires_at": "2025-10-17, 2025-10-17T21:00, a duration such as 30d, words such as 来週, 月末まで, next month, or never",
}


def parse_moment(text: str, now: datetime, zone: ZoneInfo, content: str = "") -> datetime:
    """A moment in UTC; of a day or a longer span, its beginning. Without an offset it is local time.

    3日前の夜 begins at eight in the evening. Of a day without a year, `content` decides: in
    a plan it is the next one, else the latest that has begun; where it shows neither, a date that is near goes before one that is
    nearly a year away.

    Raises:
        InvalidInput: it is no date.
    """
    plain = text.lower() if _IS["plain_iso"].fullmatch(text) else normalize(text)
    exact = iso_span(plain, zone) or hours_ago(plain, now)
    if exact:
        return exact.start
    today = now.astimezone(zone).date()
    if is_just_now(plain):
        return now.astimezone(UTC)
    find_direction = partial(_direction_of, content, plain, today)
    reading = read_date(plain, today, find_direction=find_direction)
    if reading:
        moment = moment_of(with_single_day(reading, plain, today, find_direction), zone)
        return _of_night(moment, now, find_direction()) if _IS["hour_of_night"].search(plain) else moment
    span = up_to_now(plain, now) or read_range(plain, today, zone)
    if span is None:
        raise _refusal("occurred_at", text, plain, today)
    first = read_date(SEPARATOR.split(plain, maxsplit=1)[0].strip(), today, find_direction=find_direction)
    if first and first.days[0] >= today:  # a plan, as a range
        return moment_of(first, zone)
    if span.start != EVER.start:
        return span.start
    if span.end <= now:
        raise _refusal("occurred_at", text, plain, today)
    last = ((span.besides or span.end) - timedelta(microseconds=1)).astimezone(zone)  # a deadline is its last day
    return datetime.combine(last.date(), time(), tzinfo=zone).astimezone(UTC)


def parse_range(text: str, now: datetime, zone: ZoneInfo) -> TimeRange:
    """A range in UTC from a day, `A..B` (either end may be missing, both are included), or words.

    A part of a day means the whole day, a night also the hours after midnight; only a clock time means its hour or minute: a memory of
    which only the day is known is not left out. 頃 and around include the neighboring days.

    Raises:
        InvalidInput: it is no date, or ends before it begins.
    """
    plain, today = normalize(text), now.astimezone(zone).date()
    span = up_to_now(plain, now) or hours_ago(plain, now) or span_of_date(plain, today, zone) or read_range(plain, today, zone)
    if span is None:
        raise _refusal("date_range", text, plain, today)
    if span.start >= span.end:
        raise InvalidInput(
            "date_range {} ends before it begins", "", "Write the earlier date first: 2025-10-01..2025-10-17", repr(text[:80])
        )
    return span


def parse_expiry(text: str, now: datetime, zone: ZoneInfo) -> datetime:
    """The moment in UTC at which something ends that is to last until the time of `text`: of a day or a longer span its end, of a clock
    time or a count of hours that moment. A duration (30d, P2W, 12時間) counts from now. A date without a year is the next one.

    Raises:
        InvalidInput: it is no date, or is not in the future.
    """
    plain, today = _IS["until"].sub("", normalize(text)), now.astimezone(zone).date()
    duration = _IS["duration"].fullmatch(plain)
    exact = iso_span(plain, zone) or hours_ago(plain, now)
    if duration and any(duration.groups()):
        moment = now.astimezone(UTC) + timedelta(**{unit: int(count) for unit, count in duration.groupdict(default="0").items()})
    elif exact:
        moment = exact.end if exact.end - exact.start > _LONGEST_CLOCK_TIME else exact.start
    else:
        # 3ヶ月 and "1 year" are counted from now as well.
        readings = (
            (spelling, read_date(spelling, today, find_direction=lambda: "next")) for spelling in (plain, f"{plain}後", f"in {plain}")
        )
        spelling, reading = next(((spelling, reading) for spelling, reading in readings if reading), (plain, None))
        if reading is None:
            raise _refusal("expires_at", text, plain, today)
        reading = with_single_day(reading, spelling, today, lambda: "last")
        night = night_hours() if reading.at_night else timedelta()
        moment = in_utc(reading.days, zone).end + night if reading.minute is None else moment_of(reading, zone)
    if moment <= now:
        raise InvalidInput(
            "expires_at {} is over",
            "that was {}",
            "Send a time to come, such as 30d",
            repr(text[:80]),
            f"{moment.astimezone(zone):%Y-%m-%d %H:%M}",
        )
    return moment


def _direction_of(content: str, plain: str, today: date) -> Direction | None:
    """Whether the beginning of a content is about a date to come."""
    if not content:
        return None
    beginning = normalize(content[:_READ_OF_CONTENT])
    spans = {span for named in recognized_in(plain, AS_ARGUMENTS).resolved(today) for span in named.spans}
    same = [named for named in recognized_in(beginning, AS_ARGUMENTS).resolved(today) if not spans.isdisjoint(named.spans)]
    return direction_of_text(beginning, [(named.start, named.end) for named in same])


def _refusal(argument: str, text: str, plain: str, today: date) -> InvalidInput:
    """The error for an argument that is no date: it is not understood, there is no such day, or UTC cannot represent it."""
    missing = False
    for expression, match in recognized_in(plain[:LONGEST_WORDS], AS_ARGUMENTS).matches:
        try:
            missing |= not list(expression.resolve(match, today)) and expression is CALENDAR
        except OverflowError:
            return outside_calendar()
        except ValueError:
            missing = True
    if missing:
        return InvalidInput(
            "{} {} is no date", "there is no such day", "Send a day of the calendar, such as 2025-10-17", argument, repr(text[:80])
        )
    return InvalidInput("{} {} is no date that can be understood", "", "Send {}", argument, repr(text[:80]), _EXAMPLES[argument])


def _of_night(moment: datetime, now: datetime, direction: Direction | None) -> datetime:
    """The last such moment, where `moment` is that of today; of a plan the next one."""
    if direction == "next":
        return moment if moment > now else moment + ONE_DAY
    return moment - ONE_DAY if moment > now else moment
