"""Dates in words: what a caller means by 2025-10-17, 先週の金曜, 3日前 or last month, seen from a given now.

A day is a calendar day in the caller's zone, a week begins on Monday. Every pattern answers with whole days.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from memory_mcp.domain import TimeRange
from memory_mcp.errors import InvalidInput
from memory_mcp.text.festivals import FESTIVAL, festival
from memory_mcp.text.nested_days import Days, narrowed
from memory_mcp.text.yearless import each_year

_KANJI_DIGITS = "〇一二三四五六七八九"
_NUMBER = r"(\d{1,3}|[一二三四五六七八九十]{1,3})"
_WEEKDAYS = {
    name: index
    for index, pair in enumerate(["月mon", "火tue", "水wed", "木thu", "金fri", "土sat", "日sun"])
    for name in (pair[0], pair[1:])
}
_MONTH_NAMES = "january february march april may june july august september october november december".split()
_MONTHS = {form: number for number, name in enumerate(_MONTH_NAMES, start=1) for form in (name, name[:3])} | {"sept": 9}
# Whole names only: what is sold at a market 5 times is not about March.
_MONTH = rf"({'|'.join(sorted(_MONTHS, key=len, reverse=True))})(?![a-z])\.?"
_DAY = r"(\d{1,2})(?:st|nd|rd|th)?"


def parse_moment(text: str, now: datetime, zone: ZoneInfo) -> datetime:
    """A moment in UTC from ISO or from words; of a day or a longer span, its beginning. Without an offset it is local time.

    Raises:
        InvalidInput: it is no date.
    """
    plain = _plain(text)
    exact = _iso(plain, zone)
    if exact:
        return exact
    span = _whole(plain, now.astimezone(zone).date())
    if span is None:
        raise _no_date("occurred_at", text)
    return _in_utc(span, zone).start


def parse_range(text: str, now: datetime, zone: ZoneInfo) -> TimeRange:
    """A range in UTC from a day, `A..B` (either end may be missing, both are included), or words.

    Raises:
        InvalidInput: it is no date, or ends before it begins.
    """
    plain = _plain(text)
    today = now.astimezone(zone).date()
    first, separator, last = re.fullmatch(r"(.*?)(?:(\.\.|〜|~|から| to )(.*?)(?:まで)?)?", plain, re.DOTALL).groups()  # type: ignore[union-attr]
    if not separator:
        return _end_of_range(plain, today, zone, text)
    start = _end_of_range(first, today, zone, text).start if first.strip() else datetime.min.replace(tzinfo=UTC)
    end = _end_of_range(last, today, zone, text).end if last.strip() else datetime.max.replace(tzinfo=UTC)
    if start >= end:
        raise InvalidInput(f"date_range {text[:80]!r} ends before it begins", "", "Write the earlier date first: 2025-10-01..2025-10-17")
    return TimeRange(start, end)


def named_dates(query: str, now: datetime, zone: ZoneInfo) -> list[TimeRange]:
    """The spans that a query names, in UTC. One without a year stands for that date in each of the last years.

    A date inside another narrows it: 今年の1月 is one month.
    """
    plain = _plain(query)
    today = now.astimezone(zone).date()
    taken = bytearray(len(plain))  # a flag for each character: a query may name thousands of dates
    meanings: list[list[Days]] = []
    for pattern, days_of in _PATTERNS:
        for found in pattern.finditer(plain):
            if any(taken[found.start() : found.end()]):
                continue  # 先週 inside 先週の金曜 was meant as part of it
            days = list(_resolved(days_of, found, today))
            if days:
                taken[found.start() : found.end()] = b"\1" * (found.end() - found.start())
                meanings.append(days)
    return list(_representable(narrowed(meanings), zone))


def _plain(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold().strip()


def _iso(text: str, zone: ZoneInfo) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text.upper().replace("/", "-"))
        return (moment if moment.tzinfo else moment.replace(tzinfo=zone)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _end_of_range(text: str, today: date, zone: ZoneInfo, whole: str) -> TimeRange:
    span = _whole(text.strip(), today)
    if span:
        return _in_utc(span, zone)
    exact = _iso(text.strip(), zone)
    if exact is None:
        raise _no_date("date_range", whole)
    try:
        return TimeRange(exact, exact + timedelta(microseconds=1))
    except OverflowError:
        raise _outside_calendar() from None


def _no_date(name: str, text: str) -> InvalidInput:
    examples = "2025-10-17, 2025-10-01..2025-10-17" if name == "date_range" else "2025-10-17, 2025-10-17T21:00"
    return InvalidInput(
        f"{name} {text[:80]!r} is no date that can be understood",
        "",
        f"Send {examples}, or words such as 昨日, 先週, 3日前, last month",
    )


def _whole(text: str, today: date) -> Days | None:
    """The span that the whole of `text` names; the latest that is not in the future where several are meant."""
    for pattern, days_of in _PATTERNS:
        found = pattern.fullmatch(text)
        spans = list(_resolved(days_of, found, today)) if found else []
        if spans:
            return next((span for span in spans if span[0] <= today), spans[0])
    return None


def _resolved(days_of: "Resolver", found: re.Match[str], today: date) -> Iterator[Days]:
    try:
        yield from days_of(found, today)
    except (ValueError, OverflowError):
        return  # 2月30日, or further back than the calendar goes: no date


def _in_utc(span: Days, zone: ZoneInfo) -> TimeRange:
    try:
        start, end = (datetime.combine(day, time(), tzinfo=zone).astimezone(UTC) for day in span)
    except OverflowError:
        raise _outside_calendar() from None
    return TimeRange(start, end)


def _representable(spans: Iterable[Days], zone: ZoneInfo) -> Iterator[TimeRange]:
    """The spans that UTC has a time for: a query may quote the year 1, and is still a query."""
    for span in spans:
        try:
            yield _in_utc(span, zone)
        except InvalidInput:
            continue


def _outside_calendar() -> InvalidInput:
    return InvalidInput("a date is outside the calendar", "", "Send a date between 0002-01-01 and 9998-12-31")


def _number(text: str) -> int:
    if text.isdecimal():
        return int(text)
    tens, ten, ones = text.rpartition("十")
    if not ten:
        return int("".join(str(_KANJI_DIGITS.index(digit)) for digit in text))
    return (_KANJI_DIGITS.index(tens) if tens else 1) * 10 + (_KANJI_DIGITS.index(ones) if ones else 0)


def _day(day: date) -> Days:
    return day, day + timedelta(days=1)


def _week(day: date, back: int = 0) -> Days:
    monday = day - timedelta(days=day.weekday() + 7 * back)
    return monday, monday + timedelta(days=7)


def _month_of(year: int, month: int) -> Days:
    return date(year, month, 1), date(year + month // 12, month % 12 + 1, 1)


def _months_back(today: date, back: int) -> Days:
    return _month_of(*_year_and_month(today.year * 12 + today.month - 1 - back))


def _year_and_month(months: int) -> tuple[int, int]:
    """(year, month 1..12) of a count of months since year 0."""
    year, month = divmod(months, 12)
    return year, month + 1


def _year(year: int) -> Days:
    return date(year, 1, 1), date(year + 1, 1, 1)


def _weekday(today: date, weekday: int, weeks_back: int) -> Days:
    return _day(_week(today, weeks_back)[0] + timedelta(days=weekday))


def _last_weekday(today: date, weekday: int) -> Days:
    """The latest such day before today."""
    return _day(today - timedelta(days=(today.weekday() - weekday - 1) % 7 + 1))


Resolver = Callable[[re.Match[str], date], Iterator[Days] | list[Days]]
_WEEKS_BACK = {"先々週": 2, "先週": 1, "今週": 0, "来週": -1}
_UNITS: dict[str, Callable[[date, int], Days]] = {
    "日": lambda today, n: _day(today - timedelta(days=n)),
    "週": lambda today, n: _week(today, n),
    "月": _months_back,
    "年": lambda today, n: _year(today.year - n),
}
_ENGLISH_UNITS = {"day": "日", "week": "週", "month": "月", "year": "年"}


def _ago(number: str, unit: str, today: date) -> list[Days]:
    return [_UNITS[unit](today, 1 if number in ("a", "an", "one") else _number(number))]


def _fixed(words: str, span_of: Callable[[date], Days]) -> tuple[re.Pattern[str], Resolver]:
    return re.compile(words), lambda found, today: [span_of(today)]


def _numbers(found: re.Match[str]) -> list[int]:
    return [int(group) for group in found.groups()]


# The longer reading first: a pattern never takes text that an earlier one has taken.
_PATTERNS: list[tuple[re.Pattern[str], Resolver]] = [
    (re.compile(r"(?<!\d)(\d{4})[-/.年](\d{1,2})[-/.月](\d{1,2})(?!\d)日?"), lambda m, today: [_day(date(*_numbers(m)))]),
    (re.compile(r"(?<!\d)(\d{4})(?:年|[-/](?=\d{1,2}(?![-/\d])))(\d{1,2})(?!\d)月?"), lambda m, today: [_month_of(*_numbers(m))]),
    (re.compile(r"(?<!\d)(\d{4})年(?!\d)|\A(\d{4})\Z"), lambda m, today: [_year(int(m[1] or m[2]))]),
    (re.compile(r"(?<!\d)(\d{1,2})月(\d{1,2})日"), lambda m, today: each_year(today, lambda year: _day(date(year, int(m[1]), int(m[2]))))),
    (re.compile(r"(?<!\d)(\d{1,2})月(?![\d間号])"), lambda m, today: each_year(today, lambda year: _month_of(year, int(m[1])))),
    (re.compile(rf"(?<![a-z]){_MONTH}\s+{_DAY},?\s+(\d{{4}})"), lambda m, today: [_day(date(int(m[3]), _MONTHS[m[1]], int(m[2])))]),
    (re.compile(rf"(?<!\d){_DAY}(?:\s+of)?\s+{_MONTH},?\s+(\d{{4}})"), lambda m, today: [_day(date(int(m[3]), _MONTHS[m[2]], int(m[1])))]),
    (re.compile(rf"(?<![a-z]){_MONTH},?\s+(\d{{4}})"), lambda m, today: [_month_of(int(m[2]), _MONTHS[m[1]])]),
    (
        re.compile(rf"(?<![a-z]){_MONTH}\s+{_DAY}(?!\d)"),
        lambda m, today: each_year(today, lambda year: _day(date(year, _MONTHS[m[1]], int(m[2])))),
    ),
    (
        re.compile(rf"(?<!\d){_DAY}(?:\s+of)?\s+{_MONTH}(?![a-z])"),
        lambda m, today: each_year(today, lambda year: _day(date(year, _MONTHS[m[2]], int(m[1])))),
    ),
    (
        re.compile(rf"(?<![a-z])(?:in|during|since)\s+{_MONTH}(?![a-z])"),
        lambda m, today: each_year(today, lambda year: _month_of(year, _MONTHS[m[1]])),
    ),
    (
        re.compile(rf"(?<![a-z])last\s+{_MONTH}(?![a-z])"),
        lambda m, today: [_months_back(today, (today.month - _MONTHS[m[1]] - 1) % 12 + 1)],
    ),
    (FESTIVAL, festival),
    (re.compile(r"(?<![a-z])in\s+((?:19|20)\d{2})(?!\d)"), lambda m, today: [_year(int(m[1]))]),
    (
        re.compile("(先々週|先週|今週|来週)の?([月火水木金土日])曜日?"),
        lambda m, today: [_weekday(today, _WEEKDAYS[m[2]], _WEEKS_BACK[m[1]])],
    ),
    (
        re.compile("(先々週|先週|今週)の?末"),
        lambda m, today: [(_weekday(today, 5, _WEEKS_BACK[m[1]])[0], _weekday(today, 6, _WEEKS_BACK[m[1]])[1])],
    ),
    (re.compile("(先々週|先週|今週|来週)"), lambda m, today: [_week(today, _WEEKS_BACK[m[1]])]),
    (re.compile(rf"{_NUMBER}(日|週|年)間?前"), lambda m, today: _ago(m[1], m[2], today)),
    (re.compile(rf"{_NUMBER}[ヶケかカ箇]?(月)前"), lambda m, today: _ago(m[1], m[2], today)),
    (
        re.compile(r"(?<![a-z\d])(\d{1,3}|an?|one)\s+(day|week|month|year)s?\s+ago"),
        lambda m, today: _ago(m[1], _ENGLISH_UNITS[m[2]], today),
    ),
    (
        re.compile(r"(?<![a-z])last\s+(mon|tue|wed|thu|fri|sat|sun)(?:(?:s|nes|rs|ur)?day|s|rs?)?(?![a-z])"),
        lambda m, today: [_last_weekday(today, _WEEKDAYS[m[1]])],
    ),
    _fixed("一昨日|おととい|おとつい|(?:the )?day before yesterday", lambda today: _day(today - timedelta(days=2))),
    _fixed("昨日|きのう|昨夜|昨晩|ゆうべ|(?<![a-z])yesterday|(?<![a-z])last night", lambda today: _day(today - timedelta(days=1))),
    _fixed("今日|本日|今朝|今夜|今晩|(?<![a-z])(?:today|tonight|this morning)", _day),
    _fixed("明日|あした|(?<![a-z])tomorrow", lambda today: _day(today + timedelta(days=1))),
    _fixed("先々月", lambda today: _months_back(today, 2)),
    _fixed("(?<![a-z])last weekend", lambda today: (_weekday(today, 5, 1)[0], _weekday(today, 6, 1)[1])),
    _fixed("(?<![a-z])last week(?!end)", lambda today: _week(today, 1)),
    _fixed("(?<![a-z])this week(?!end)", _week),
    _fixed("先月|(?<![a-z])last month", lambda today: _months_back(today, 1)),
    _fixed("今月|(?<![a-z])this month", lambda today: _months_back(today, 0)),
    _fixed("一昨年|おととし", lambda today: _year(today.year - 2)),
    _fixed("去年|昨年|(?<![a-z])last year", lambda today: _year(today.year - 1)),
    _fixed("今年|(?<![a-z])this year", lambda today: _year(today.year)),
]
