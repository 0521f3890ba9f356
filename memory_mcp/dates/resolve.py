"""Resolves a text to the time that it means, from a given now and zone: a moment (`occurred_at`), a range (`date_range`), the dates of a question.

Dates are ISO or words, in Japanese or English: 2025-10-17, 先週の金曜, 3日前の夜, 去年の夏, last month. A day is a calendar day in the caller's zone.
docs/dates.md lists the expressions.
"""

import re
from datetime import UTC, date, datetime, timedelta
from functools import partial
from zoneinfo import ZoneInfo

from memory_mcp.dates.calendar_dates import calendar_dates
from memory_mcp.dates.iso import in_utc, in_utc_spans, iso_span, outside_calendar
from memory_mcp.dates.mentions import is_date
from memory_mcp.dates.missing_year import HOUR_OF_NIGHT, of_night
from memory_mcp.dates.numerals import normalize
from memory_mcp.dates.ranges import EVER, SEPARATOR, read_range
from memory_mcp.dates.recognize import AS_ARGUMENTS, IN_QUESTIONS, recognize, spans_in_question, without_dates
from memory_mcp.dates.relative_hours import hours_ago, is_just_now, named_hours, up_to_now
from memory_mcp.dates.single_date import LONGEST_WORDS, moment_of, read_date, span_of_date, with_single_day
from memory_mcp.dates.statements import LONGEST_SPAN
from memory_mcp.dates.tense import Direction, direction_of_text
from memory_mcp.dates.time_of_day import night_hours
from memory_mcp.domain import TimeRange
from memory_mcp.errors import InvalidInput

_READ_OF_CONTENT = 2000
_DURATION = re.compile(
    r"p?(?:(?P<weeks>\d{1,4})\s*(?:w|weeks?|週間)\s*)?(?:(?P<days>\d{1,4})\s*(?:d|days?|日間)\s*)?"
    r"t?(?:(?P<hours>\d{1,4})\s*(?:h|hours?|時間)\s*)?(?:(?P<minutes>\d{1,4})\s*(?:min|minutes?|分間?))?"
)
_LONGEST_CLOCK_TIME = timedelta(hours=1)
_EXAMPLES = {
    "occurred_at": "2025-10-17, 2025-10-17T21:00, or words such as 昨日, 先週, 3日前, last month",
    "date_range": "2025-10-17, 2025-10-01..2025-10-17, or words such as 昨日, 先週, 3日前, last month",
    "expires_at": "2025-10-17, 2025-10-17T21:00, a duration such as 30d, words such as 来週, 月末まで, next month, or never",
}
_UNTIL = re.compile(r"\A(?:until|till|by|through) |まで\Z")


def parse_moment(text: str, now: datetime, zone: ZoneInfo, content: str = "") -> datetime:
    """A moment in UTC; of a day or a longer span, its beginning. Without an offset it is local time.

    3日前の夜 begins at eight in the evening. Of a day without a year, `content` decides: in
    a plan it is the next one, else the latest that has begun; where it shows neither, a date that is near goes before one that is
    nearly a year away.

    Raises:
        InvalidInput: it is no date.
    """
    plain, today = normalize(text), now.astimezone(zone).date()
    exact = iso_span(plain, zone) or hours_ago(plain, now)
    if exact:
        return exact.start
    if is_just_now(plain):
        return now.astimezone(UTC)
    find_direction = partial(_direction_of, content, plain, today)
    reading = read_date(plain, today, find_direction=find_direction)
    if reading:
        moment = moment_of(with_single_day(reading, plain, today, find_direction), zone)
        return of_night(moment, now, find_direction()) if HOUR_OF_NIGHT.search(plain) else moment
    span = up_to_now(plain, now) or read_range(plain, today, zone)
    if span is None:
        raise _refusal("occurred_at", text, plain, today)
    first = read_date(SEPARATOR.split(plain, maxsplit=1)[0].strip(), today, find_direction=find_direction)
    if first and first.days[0] >= today:  # a plan, as a range
        return moment_of(first, zone)
    if span.start == EVER.start:
        raise _refusal("occurred_at", text, plain, today)
    return span.start


def parse_range(text: str, now: datetime, zone: ZoneInfo) -> TimeRange:
    """A range in UTC from a day, `A..B` (either end may be missing, both are included), or words.

    A part of a day means the whole day, a night also the hours after midnight; only a clock time means its hour or minute: a memory of which only
    the day is known is not left out. 頃 and around include the neighboring days.

    Raises:
        InvalidInput: it is no date, or ends before it begins.
    """
    plain, today = normalize(text), now.astimezone(zone).date()
    span = up_to_now(plain, now) or hours_ago(plain, now) or span_of_date(plain, today, zone) or read_range(plain, today, zone)
    if span is None:
        raise _refusal("date_range", text, plain, today)
    if span.start >= span.end:
        raise InvalidInput(f"date_range {text[:80]!r} ends before it begins", "", "Write the earlier date first: 2025-10-01..2025-10-17")
    return span


def parse_expiry(text: str, now: datetime, zone: ZoneInfo) -> datetime:
    """The moment in UTC at which something ends that is to last until the time of `text`: of a day or a longer span its end, of a clock time or a
    count of hours that moment. A duration (30d, P2W, 12時間) counts from now. A date without a year is the next one.

    Raises:
        InvalidInput: it is no date, or is not in the future.
    """
    plain, today = _UNTIL.sub("", normalize(text)), now.astimezone(zone).date()
    duration = _DURATION.fullmatch(plain)
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
        reading = with_single_day(reading, spelling, today)
        night = night_hours() if reading.at_night else timedelta()
        moment = in_utc(reading.days, zone).end + night if reading.minute is None else moment_of(reading, zone)
    if moment <= now:
        raise InvalidInput(
            f"expires_at {text[:80]!r} is over", f"that was {moment.astimezone(zone):%Y-%m-%d %H:%M}", "Send a time to come, such as 30d"
        )
    return moment


def named_dates(query: str, now: datetime, zone: ZoneInfo, *, upcoming: bool = False) -> list[TimeRange]:
    """The spans that a query names, in UTC. A date without a year means that date in each of the last years, with `upcoming` also the next one."""
    plain = normalize(query)
    return [*in_utc_spans(spans_in_question(plain, now.astimezone(zone).date(), upcoming=upcoming), zone), *named_hours(plain, now)]


def without_named_dates(query: str, now: datetime, zone: ZoneInfo, longest: timedelta = LONGEST_SPAN) -> str:
    """The query without the dates that it names, which are no words to look for. Spans of more than a month stay: texts write 2025年 the same way."""
    plain, today = normalize(query), now.astimezone(zone).date()
    named = [named for named in recognize(plain, today, IN_QUESTIONS) if all(end - start <= longest for start, end in named.spans)]
    return without_dates(plain, named) if named else query


def words_of_dates(query: str, now: datetime, zone: ZoneInfo) -> list[str]:
    """The words by which a query names dates."""
    plain = normalize(query)
    return [plain[named.start : named.end].strip() for named in recognize(plain, now.astimezone(zone).date(), IN_QUESTIONS)]


def _direction_of(content: str, plain: str, today: date) -> Direction | None:
    """Whether the beginning of a content is about a date to come."""
    if not content:
        return None
    beginning = normalize(content[:_READ_OF_CONTENT])
    spans = {span for expression in recognize(plain, today, AS_ARGUMENTS) for span in expression.spans}
    same = [expression for expression in recognize(beginning, today, AS_ARGUMENTS) if not spans.isdisjoint(expression.spans)]
    return direction_of_text(beginning, [(expression.start, expression.end) for expression in same])


def _refusal(argument: str, text: str, plain: str, today: date) -> InvalidInput:
    """The error for an argument that is no date: it is not understood, there is no such day, or UTC cannot represent it."""
    plain = plain[:LONGEST_WORDS]
    missing = any(not is_date(written.year, written.month, written.day) for written in calendar_dates(plain))
    for expression in AS_ARGUMENTS.for_text(plain):
        for match in expression.pattern.finditer(plain):
            try:
                list(expression.resolve(match, today))
            except OverflowError:
                return outside_calendar()
            except ValueError:
                missing = True
    if missing:
        return InvalidInput(
            f"{argument} {text[:80]!r} is no date", "there is no such day", "Send a day of the calendar, such as 2025-10-17"
        )
    return InvalidInput(f"{argument} {text[:80]!r} is no date that can be understood", "", f"Send {_EXAMPLES[argument]}")
