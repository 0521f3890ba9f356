"""ISO 8601 dates and moments, and local days in UTC."""

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from zoneinfo import ZoneInfo

from memory_mcp.dates.spans import DaySpan
from memory_mcp.domain import TimeRange
from memory_mcp.errors import InvalidInput

_OFFSETS = {
    "JST": "+09:00",
    "UTC": "+00:00",
    "GMT": "+00:00",
    "CET": "+01:00",
    "CEST": "+02:00",
    "EST": "-05:00",
    "EDT": "-04:00",
    "PST": "-08:00",
    "PDT": "-07:00",
}
_ZONE = re.compile(rf"(?<=\d)(?: ?(?P<name>{'|'.join(_OFFSETS)})| (?P<offset>[+-]\d\d:?\d\d))\Z")
_END_OF_DAY = re.compile(r"(?<=[T ])24:00(?::00(?:\.0+)?)?(?=\Z|Z|[+-])")


def iso_span(text: str, zone: ZoneInfo) -> TimeRange | None:
    """The span of an ISO date or moment, to its precision: a day, an hour, a minute. A date of eight digits is a date expression.

    Raises:
        InvalidInput: it is outside the calendar.
    """
    if re.fullmatch(r"\d{8}", text) or not re.match(r"\d{4}", text):
        return None
    if re.fullmatch(r"\d{9,}", text):
        return _since_1970(text)
    text, days_on = _in_full(text.upper())
    try:
        moment = datetime.fromisoformat(text.replace("/", "-")) + timedelta(days=days_on)
        start = (moment if moment.tzinfo else moment.replace(tzinfo=zone)).astimezone(UTC)
        clock = re.search(r"[T ]\d{2}(:?\d{2})?(:?\d{2})?(\.\d+)?", text)
        if clock is None:
            days = 7 if re.fullmatch(r"\d{4}-?W\d{2}", text) else 1
            return TimeRange(start, (start.astimezone(zone) + timedelta(days=days)).astimezone(UTC))
        return TimeRange(
            start, start + (timedelta(microseconds=1) if clock[2] else timedelta(minutes=1) if clock[1] else timedelta(hours=1))
        )
    except OverflowError:
        raise outside_calendar() from None
    except ValueError:
        return None


def _since_1970(digits: str) -> TimeRange | None:
    """The second or millisecond that ten or thirteen digits count since 1970; None for other numbers, and for 2025103012: a day and an hour."""
    seconds = int(digits[:10])
    if len(digits) not in (10, 13) or (len(digits) == 10 and _is_day(digits[:8])):
        return None
    start = datetime.fromtimestamp(seconds, UTC) + timedelta(milliseconds=int(digits[10:] or 0))
    return TimeRange(start, start + (timedelta(milliseconds=1) if digits[10:] else timedelta(seconds=1)))


def _is_day(digits: str) -> bool:
    """Whether eight digits are a day that a person may remember, and so ten no count of seconds."""
    try:
        return date.fromisoformat(digits).year >= 1900
    except ValueError:
        return False


def _in_full(text: str) -> tuple[str, int]:
    """The text with its zone as an offset and its hour 24 as the hour 0, and how many days later that is."""
    zone = _ZONE.search(text)
    if zone:
        text = text[: zone.start()] + (_OFFSETS[zone["name"]] if zone["name"] else zone["offset"])
    midnight = _END_OF_DAY.search(text)
    return (f"{text[: midnight.start()]}00:00{text[midnight.end() :]}", 1) if midnight else (text, 0)


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


def is_iso(text: str) -> bool:
    """Whether a date is in ISO 8601, which can be read in one way only."""
    try:
        datetime.fromisoformat(text.strip())
    except ValueError:
        return False
    return True


def outside_calendar() -> InvalidInput:
    """The error for a day that UTC cannot represent."""
    return InvalidInput("a date is outside the calendar", "", "Send a date between 0002-01-01 and 9998-12-31")
