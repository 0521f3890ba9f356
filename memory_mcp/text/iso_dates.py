"""Moments as ISO writes them, and the refusals of what is no date."""

import re
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from memory_mcp.domain import TimeRange
from memory_mcp.errors import InvalidInput


def iso_span(text: str, zone: ZoneInfo) -> TimeRange | None:
    """A moment, and as much after it as it leaves open: an hour, a minute, a second. A day of eight digits is left to the words."""
    if re.fullmatch(r"\d{8}", text) or not re.match(r"\d{4}", text):
        return None
    try:
        moment = datetime.fromisoformat(text.upper().replace("/", "-"))
        start = (moment if moment.tzinfo else moment.replace(tzinfo=zone)).astimezone(UTC)
        clock = re.search(r"[T ]\d{2}(:?\d{2})?(:?\d{2})?(\.\d+)?", text.upper())
        if clock is None:
            days = 7 if re.fullmatch(r"\d{4}-?W\d{2}", text.upper()) else 1
            return TimeRange(start, (start.astimezone(zone) + timedelta(days=days)).astimezone(UTC))
        return TimeRange(
            start, start + (timedelta(microseconds=1) if clock[2] else timedelta(minutes=1) if clock[1] else timedelta(hours=1))
        )
    except (ValueError, OverflowError):
        return None


def is_iso(text: str) -> bool:
    """Whether a date is written so that it can be read in one way only."""
    try:
        datetime.fromisoformat(text.strip())
    except ValueError:
        return False
    return True


def no_date(name: str, text: str) -> InvalidInput:
    """The refusal of what can't be understood."""
    examples = "2025-10-17, 2025-10-01..2025-10-17" if name == "date_range" else "2025-10-17, 2025-10-17T21:00"
    return InvalidInput(
        f"{name} {text[:80]!r} is no date that can be understood",
        "",
        f"Send {examples}, or words such as 昨日, 先週, 3日前, last month",
    )


def outside_calendar() -> InvalidInput:
    """The refusal of a day that UTC has no time for."""
    return InvalidInput("a date is outside the calendar", "", "Send a date between 0002-01-01 and 9998-12-31")
