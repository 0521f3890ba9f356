"""Ranges in arguments: 先週..昨日, 10月1日〜17日, since last week, 昨日と一昨日."""

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

from memory_mcp.dates.iso import in_utc
from memory_mcp.dates.single_date import CLOCK_ALONE, DAY_NAMES, MONTH_NAMES, span_of_date
from memory_mcp.dates.spans import MONTHS, WEEKDAYS, day_of
from memory_mcp.dates.weekdays import WEEKDAY
from memory_mcp.domain import TimeRange
from memory_mcp.patterns import bounded

EVER = TimeRange(datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC))
_NAME_ENDS = "|".join(sorted({name[-3:] for name in MONTHS} | {"day", *DAY_NAMES.split("|")}))
SEPARATOR = bounded(
    r"\.\.|〜|~|–|から| to | until | through | - |(?<=[\d日月])-(?=\d{1,2}日?\Z)|(?<=\d{4}-\d\d-\d\d)/(?=\d{4}-)|(?<=[a-z\d]) and (?=.)"
    rf"|(?<=\d)-(?=\d{{1,2}}/\d{{1,2}}\Z)|(?<={_NAME_ENDS})-(?={DAY_NAMES}|{MONTH_NAMES})"
)
_BESIDE = bounded(r"と|、|,|&|及び|(?<=[a-z\d]) and (?=.)")
# A range with one end: what comes before or after its date, and which end of the date bounds it.
_BOUNDS: list[tuple[re.Pattern[str], Callable[[TimeRange], TimeRange]]] = [
    (bounded("(?:since|from|starting) (.+)|(.+?)(?:以降|以来|以後)"), lambda span: TimeRange(span.start, EVER.end)),
    (bounded("after (.+)|(.+?)(?:より後|の後)"), lambda span: TimeRange(span.besides or span.end, EVER.end)),
    (
        bounded("(?:up )?(?:until|till|by|up to|through) (.+)|(.+?)(?:以前|まで)"),
        lambda span: TimeRange(EVER.start, span.end, span.besides),
    ),
    (bounded("before (.+)|(.+?)(?:よりも?前|の前)"), lambda span: TimeRange(EVER.start, span.start)),
]
_HALF_A_DAY = timedelta(hours=12)
_LATE = bounded("夜|晩|夕|午後|night|evening|afternoon|pm")
_LONGEST_MONTH = timedelta(days=31, hours=1)  # October where clocks go back
_DAY_OF_MONTH = bounded(r"(?:the )?(\d{1,2})(?:日|st|nd|rd|th)?")
_WEEKDAY_ALONE = bounded(rf"([月火水木金土日])曜日?|{WEEKDAY}")


def read_range(plain: str, today: date, zone: ZoneInfo) -> TimeRange | None:
    """The span of a range with both ends, with one of them, or of two dates side by side."""
    beside = _side_by_side(plain, today, zone)
    if beside:
        return beside
    first, *last = (part.strip() for part in SEPARATOR.split(re.sub("^(?:from|between) ", "", plain), maxsplit=1))
    if last and (first or last[0]) and (both := _from_to(first, last[0], today, zone)):
        return both
    for words, bound in _BOUNDS:
        match = words.fullmatch(plain)
        span = span_of_date((match[1] or match[2]).strip(), today, zone) if match else None
        if span:
            return bound(span)
    return None


def _from_to(first: str, last: str, today: date, zone: ZoneInfo) -> TimeRange | None:
    """Either end may be empty."""
    start = span_of_date(first, today, zone) if first else EVER
    if start is None:
        return None
    last = re.sub("まで$|にかけて$", "", last).strip() if last else last
    end = _end_of(last, start, today, zone, late=bool(_LATE.search(first))) if last else EVER
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
    """The end of a range, which may leave out the month or year of its beginning. A clock time is the last moment; `late`: the beginning is in the
    second half of a day."""
    begun = start.start.astimezone(zone).date() if start.start != EVER.start else None
    try:
        if begun and (day := _DAY_OF_MONTH.fullmatch(plain)):
            if start.end - start.start > _LONGEST_MONTH:  # 2026-13 is no thirteenth of anything
                return None
            return in_utc(day_of(begun.replace(day=int(day[1]))), zone)
        if begun and (weekday := _WEEKDAY_ALONE.fullmatch(plain)):
            ahead = (WEEKDAYS[weekday[1] or weekday[2]] - begun.weekday()) % 7
            return in_utc(day_of(begun + timedelta(days=ahead)), zone)
    except (ValueError, OverflowError):
        return None
    if begun and CLOCK_ALONE.search(plain):
        span = span_of_date(f"{begun.isoformat()} {plain}", today, zone)
        if span and span.end <= start.start:
            later = _HALF_A_DAY if late and span.start + _HALF_A_DAY > start.start else 2 * _HALF_A_DAY
            span = TimeRange(span.start + later, span.end + later)
    else:
        span = span_of_date(plain, today, zone, begun)
    is_clock_time = span is not None and span.end - span.start <= timedelta(hours=1)
    return TimeRange(span.start, span.start + timedelta(microseconds=1)) if span and is_clock_time else span
