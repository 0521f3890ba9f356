"""Times as programs and people write them into files: what `occurred_at` understands, and the forms that only programs have."""

import re
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta, timezone
from typing import TypeVar
from zoneinfo import ZoneInfo

from memory_mcp.dates.resolve import parse_moment, parse_range
from memory_mcp.dates.spans import MONTHS
from memory_mcp.errors import InvalidInput
from memory_mcp.transfer.formats.clock import TIME, at_time, day_of, hour_of
from memory_mcp.transfer.formats.import_rows import moment

LONGEST = 100
_SPACES = dict.fromkeys(map(ord, "\u00a0\u202f"), " ")
# 2024-3-1 @12h 33m 20s 123ms, of SillyTavern.
_AT = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2}) ?@ ?(\d{1,2})h ?(\d{1,2})m(?: ?(\d{1,2})s)?(?: ?(\d{1,3})ms)?")
# Tue Oct 29 2024 21:05:33 GMT+0900 (Japan Standard Time), of JavaScript.
_SCRIPTS = re.compile(r"[A-Za-z]{3} ([A-Za-z]{3}) (\d{1,2}) (\d{4}) (\d{2}:\d{2}:\d{2}) GMT([+-]\d{4})(?: \([^()]*\))?")
# 05-Jan-24 10:20 AM, of .NET; 9:05:33 午後 and GMT+9, of Google; January 5, 2024 → January 6, 2024, of Notion.
_MONTH_NAME = re.compile(r"(\d{1,2})-([A-Za-z]{3})-(\d\d)(?= |\Z)")
_HALF_OF_DAY_AFTER = re.compile(r"(\d{1,2}:\d{2}(?::\d{2})?) ?(午前|午後)")
_UNTIL = " → "
_ZONES = (
    "UTC=0 GMT=0 WET=0 BST=1 CET=1 MEZ=1 WEST=1 CEST=2 MESZ=2 EET=2 EEST=3 MSK=3 IST=5:30 ICT=7 WIB=7 HKT=8 SGT=8 JST=9 KST=9 AEST=10 AEDT=11 "
    "NZST=12 NZDT=13 EST=-5 EDT=-4 CST=-6 CDT=-5 MST=-7 MDT=-6 PST=-8 PDT=-7 BRT=-3"
)
_HOURS_AHEAD = dict(zone.split("=") for zone in _ZONES.split())
_OFFSET = re.compile(rf" \(?(?:(?:GMT|UTC|(?=[+-]\d{{2}}:\d{{2}}\Z))([+-]\d{{1,2}}(?::?\d{{2}})?)|({'|'.join(_HOURS_AHEAD)}))\)?\Z")
# A day with a time beside it, in words and forms of any language: 2 févr. 2026, 08:24:02 · Feb 2, 2026, 7:24:02 AM · 2026. 2. 2. 오후 4:24:02 · 02.02.2026, 8:24 ·
# 2 февраля 2026 г., 8:24 · 2026년 2월 2일 오후 4:24
_NAME, _YEAR, _DATE = r"(?P<month>[^\W\d]{3,9})", r"(?P<year>\d{4})", r"(?P<day>\d{1,2})"
_WITH_CLOCK = tuple(
    re.compile(rf"{day}(?: г\.)?(?: à| um|,)? {{1,2}}{TIME}")
    for day in (
        rf"{_YEAR}(?:[./-]|年|년) ?(?P<month>\d{{1,2}})(?:[./-]|月|월) ?{_DATE}[.日일]?",
        rf"{_DATE}\.? (?:de )?{_NAME}\.?,?(?: de)? {_YEAR}",
        rf"{_NAME}\.? {_DATE},? {_YEAR}",
        rf"{_DATE}\.(?P<month>\d{{1,2}})\.{_YEAR}",
    )
)
_MONTHS_ELSEWHERE = "ene=1 gen=1 janv=1 fév=2 fev=2 mär=3 mrz=3 avr=4 abr=4 mai=5 mag=5 giu=6 juin=6 juil=7 lug=7 ago=8 aoû=8 set=9 okt=10 ott=10 out=10 dez=12 dic=12 déc=12"
_MONTHS_IN_RUSSIAN = "янв=1 фев=2 мар=3 апр=4 мая=5 июн=6 июл=7 авг=8 сен=9 окт=10 ноя=11 дек=12"
_MONTHS = MONTHS | {
    name: int(number) for name, _, number in (month.partition("=") for month in f"{_MONTHS_ELSEWHERE} {_MONTHS_IN_RUSSIAN}".split())
}
_ZONE = ZoneInfo("UTC")
# What is read the same on both days needs no other day to be understood.
_ONE_DAY, _ANOTHER = datetime(2001, 3, 7, 1, tzinfo=UTC), datetime(2018, 10, 23, 1, tzinfo=UTC)
# A day anywhere in a title: in figures, without separators only with all its zeros.
_DAY = re.compile(r"(?<!\d)(\d{4})(?:[-_./年](\d{1,2})[-_./月](\d{1,2})|(\d\d)(\d\d))(?!\d)")
_DAY_OF_ERA = re.compile(r"(?:明治|大正|昭和|平成|令和) ?(?:\d{1,2}|元)年 ?\d{1,2}月 ?\d{1,2}日")
_TITLE_WORDS = 8
# A day by itself has its year: in four figures, behind an era or a separator.
_HAS_YEAR = re.compile(r"(?<!\d)\d{4}(?!\d)|\d ?[年月日/.\-]|['’]\d")
_DIGITS_SINCE_1970 = 9

T = TypeVar("T")


def written_time(value: object, zone: ZoneInfo | None = None) -> str | None:
    """A time as the import of a row understands it: ISO text, or the words as they are, and in a `zone` that is given only the former; None for what
    names no time by itself, such as 昨日."""
    if not isinstance(value, str):
        return moment(value)
    text = value.translate(_SPACES).partition(_UNTIL)[0].strip()
    if not text or len(text) > LONGEST:
        return None
    time = next(filter(None, (read(text) for read in (_iso_day, _iso_moment, _of_sillytavern, _of_scripts, _in_words))), None)
    return parse_moment(time, _ONE_DAY, zone).isoformat() if time and zone else time


def needs_today(text: str) -> bool:
    """Whether a text names a time, but another one on each day on which it is read: 昨日, 11月23日."""
    try:
        return written_time(text) is None and parse_moment(text, _ONE_DAY, _ZONE) != parse_moment(text, _ANOTHER, _ZONE)
    except InvalidInput:
        return False


def day_in_title(title: str) -> str | None:
    """The day that a title names: 2019年10月7日 花見, "Oct 17, 2019", 20191017. Longer spans, such as 2019, are no day."""
    for written in _DAY.finditer(title):
        year, *further = filter(None, written.groups())
        if day := _iso_day("-".join([year, *(part.zfill(2) for part in further)])):
            return day
    if of_era := _DAY_OF_ERA.search(title):
        title = of_era[0]
    words = title[:LONGEST].replace("_", " ").split()[:_TITLE_WORDS]
    if not _HAS_YEAR.search(" ".join(words)):
        return None
    spans = {
        (start, end) for start in (0, *range(1, len(words))) for end in range(start + 1, len(words) + 1) if 0 in (start, len(words) - end)
    }
    for start, end in sorted(spans, key=lambda span: span[0] - span[1]):
        text = " ".join(words[start:end])
        span = _alone(lambda now: parse_range(text, now, _ZONE)) if any(map(str.isdigit, text)) else None  # noqa: B023  called at once
        if span and span.end - span.start == timedelta(days=1):
            return span.start.date().isoformat()
    return None


def _alone(read: Callable[[datetime], T]) -> T | None:
    """What is read of a text; None if that is nothing, or depends on the day on which it is read."""
    try:
        first, second = map(read, (_ONE_DAY, _ANOTHER))
    except InvalidInput:
        return None
    return first if first == second else None


def _iso_day(text: str) -> str | None:
    with suppress(ValueError):
        return date.fromisoformat(text).isoformat()
    return None


def _iso_moment(text: str) -> str | None:
    return moment(text) if not text.isdecimal() or len(text) >= _DIGITS_SINCE_1970 else None


def _of_sillytavern(text: str) -> str | None:
    written = _AT.fullmatch(text)
    if not written:
        return None
    year, month, day, hour, minute, second, milliseconds = (int(part or 0) for part in written.groups())
    with suppress(ValueError):
        return datetime(year, month, day, hour, minute, second, milliseconds * 1000).isoformat()  # noqa: DTZ001  the import knows the zone
    return None


def _of_scripts(text: str) -> str | None:
    written = _SCRIPTS.fullmatch(text)
    with suppress(ValueError):
        return datetime.strptime(" ".join(written.groups()), "%b %d %Y %H:%M:%S %z").isoformat() if written else None
    return None


def _in_words(text: str) -> str | None:
    text = _MONTH_NAME.sub(r"\1 \2 20\3", _HALF_OF_DAY_AFTER.sub(r"\2\1", text))
    offset = _OFFSET.search(text)
    local = _in_figures(text[: offset.start()] if offset else text)
    moment_alone = _alone(lambda now: parse_moment(local, now, _ZONE))
    if not (offset and moment_alone):
        return local if moment_alone else None
    hours, _, minutes = (offset[1] or _HOURS_AHEAD[offset[2]]).partition(":")
    hours, minutes = (hours[:3], hours[3:]) if len(hours) > 3 else (hours, minutes)
    ahead = timedelta(hours=int(hours), minutes=int(minutes or 0) * (-1 if hours.startswith("-") else 1))
    return moment_alone.replace(tzinfo=timezone(ahead)).isoformat() if abs(ahead) < timedelta(days=1) else None


def _in_figures(text: str) -> str:
    """A day with a time of day as ISO text, to the second; any other text as it is."""
    written = next(filter(None, (form.fullmatch(text) for form in _WITH_CLOCK)), None)
    if not written:
        return text
    named = written["month"].casefold()
    month = int(named) if named.isdecimal() else _MONTHS.get(named[:4]) or _MONTHS.get(named[:3]) or 0
    local = at_time(
        day_of(int(written["year"]), month, int(written["day"])),
        hour_of(int(written["hour"]), written["before"], written["after"]),
        int(written["minute"]),
        int(written["second"] or 0),
    )
    return local.isoformat() if local else text
