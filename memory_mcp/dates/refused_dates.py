"""Why a date is refused: it can't be understood, there is no such day, or UTC has no time for it."""

from collections.abc import Iterable
from datetime import date

from memory_mcp.dates.iso import outside_calendar
from memory_mcp.dates.relative import Pattern
from memory_mcp.dates.written_days import written_days
from memory_mcp.errors import InvalidInput

_LEAP_YEAR = 2000


def refusal(name: str, text: str, plain: str, today: date, patterns: Iterable[Pattern]) -> InvalidInput:
    """What to answer to the argument `name`, whose `plain` form is none of what `patterns` know."""
    missing = any(not _exists(day.year or _LEAP_YEAR, day.month, day.day or 1) for day in written_days(plain))
    for pattern, days_of in patterns:
        for found in pattern.finditer(plain):
            try:
                list(days_of(found, today))
            except OverflowError:
                return outside_calendar()
            except ValueError:
                missing = True
    if missing:
        return InvalidInput(f"{name} {text[:80]!r} is no date", "there is no such day", "Send a day of the calendar, such as 2025-10-17")
    examples = "2025-10-17, 2025-10-01..2025-10-17" if name == "date_range" else "2025-10-17, 2025-10-17T21:00"
    return InvalidInput(
        f"{name} {text[:80]!r} is no date that can be understood",
        "",
        f"Send {examples}, or words such as 昨日, 先週, 3日前, last month",
    )


def _exists(year: int, month: int, day: int) -> bool:
    try:
        date(year, month, day)
    except ValueError:
        return False
    return True
