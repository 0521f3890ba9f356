"""Days and months that a statement names, as ISO writes them: 2025年10月17日, 令和7年10月17日, 10月17日, 10/17, 来年4月, October 17.

The year of a date without one follows from its sentence (`missing_year`). What recurs every year, such as a birthday, has no year. 明日 and 明後日
name nothing: what they mean depends on the time at which a memory is stored.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import ClassVar

from memory_mcp.dates.calendar_dates import CalendarDate, calendar_dates
from memory_mcp.dates.missing_year import year_of_day
from memory_mcp.dates.tense import Direction, direction, direction_of_relation, sentence_around
from memory_mcp.patterns import bounded

# The subtype of the graph's days. They are found by their date alone, never by a known name: the same words are another day a year later.
DAY = "day"
_LEAP_YEAR = 2000
_EVERY_YEAR = bounded("誕生日|記念日|命日|毎年|例年|生まれ|祝日|何の日")
_EVERY_YEAR_IN_ENGLISH = bounded(r"birthday|anniversary|(?<![a-z])born(?![a-z])|(?:every|each)[_ ]year|annually", re.IGNORECASE)
# Between the two days of a range.
TO = bounded(r"(?:の?[月火水木金土日]曜日?|\s?[(（][^)）]{1,8}[)）])?\s?(?:から|より|[〜～~–—-]|\bto\b|through|until|till)\s?")
_AND = bounded(r"(?:[とや、,・〜~～–-]|から|まで|か|または|及び|および|and|\s|[(（][^)）]*[)）])*")
# 10/17(金) determines the year: in three consecutive years it is another day of the week.
_WEEKDAY_BESIDE = bounded(r"\s?(?:[(（]([月火水木金土日])(?:曜日?)?[)）]|の?([月火水木金土日])曜(?:日(?!曜)|(?=[にのはがもと、。]|\Z)))")


@dataclass(frozen=True, slots=True)
class NamedDay:
    """`text[start:end]` names a day or a month. `name` is its date as ISO writes it, `aliases` are further names of it."""

    type: ClassVar = "TimeUnit"
    subtype: ClassVar = DAY

    name: str
    start: int
    end: int
    aliases: tuple[str, ...] = ()


def days(text: str, reference_day: date | None, known_direction: Direction | None = None) -> Iterator[NamedDay]:
    """The days and months that a text names. `reference_day`: the day from which the year of a date without one is computed; without it, such a date has none.
    `known_direction`: whether it is to come, where that is known otherwise than from the sentence."""
    dates = calendar_dates(text)
    year = None
    for index, written in enumerate(dates):
        year = _year_of(text, dates, index, reference_day, known_direction, year)
        if (written.day is None and year is None) or not is_date(year, written.month, written.day):
            continue
        name, aliases = _names(text, written, year)
        yield NamedDay(name, written.start, written.end, aliases)


def day_called(name: str, reference_day: date | None, relation: str = "", other_end: str = "") -> NamedDay | None:
    """The day or month that is the whole of a name; None where it is another name.

    `relation`: the type of the relation that has it at one end; `other_end`: the name at its other end. They may show that it recurs every
    year, or is to come.
    """
    context = f"{relation} {other_end}"
    if _is_every_year(context):
        reference_day = None
    known_direction = direction_of_relation(relation, other_end) if reference_day else None
    return next((day for day in days(name, reference_day, known_direction) if (day.start, day.end) == (0, len(name))), None)


def is_date(year: int | None, month: int, day: int | None) -> bool:
    """Whether there is such a day, or month; without `year`, in any year."""
    try:
        date(_LEAP_YEAR if year is None else year, month, day or 1)
    except ValueError:
        return False
    return True


def _is_every_year(context: str) -> bool:
    return _EVERY_YEAR.search(context) is not None or _EVERY_YEAR_IN_ENGLISH.search(context) is not None


def _year_of(
    text: str,
    dates: Sequence[CalendarDate],
    index: int,
    reference_day: date | None,
    known_direction: Direction | None,
    year_before: int | None,
) -> int | None:
    """The year of one of the dates; None where it has none. `year_before`: the year of the date in front of it."""
    written = dates[index]
    if written.year is not None:
        return written.year
    if written.joined and index:
        return year_before
    if written.years_back is not None:
        return reference_day.year - written.years_back if reference_day else None
    last = dates[index - 1] if index else None
    if last and last.day and written.day and year_before and TO.fullmatch(text, last.end, written.start):
        return year_before + ((written.month, written.day) < (last.month, last.day))
    return _year_from_sentence(text, dates, index, reference_day, known_direction) if reference_day else None


def _year_from_sentence(
    text: str, dates: Sequence[CalendarDate], index: int, reference_day: date, known_direction: Direction | None
) -> int | None:
    """The year that the sentence implies; None where it is every year, or there is no such day."""
    _, month, day, start, end, *_ = dates[index]
    if day is None:
        return None
    before, after = sentence_around(text, start, end)
    if _is_every_year(before + after):
        return None
    ahead = known_direction or direction(before, _clause_after(text, dates, index, end + len(after)))
    beside = _WEEKDAY_BESIDE.match(text, end)
    weekday = "月火水木金土日".index(beside[1] or beside[2]) if beside else None
    return year_of_day(month, day, reference_day, ahead, weekday)


def _clause_after(text: str, dates: Sequence[CalendarDate], index: int, end: int) -> str:
    """What follows a date, up to `end` or to the next date, unless the two are a list or a range."""
    begin = dates[index].end
    for other in (dates[later] for later in range(index + 1, len(dates))):  # a slice would copy thousands of dates for each
        if other.start >= end:
            break
        if not other.joined and _AND.fullmatch(text, begin, other.start) is None:
            return text[begin : other.start]
        begin = other.end
    return text[begin:end]


def _names(text: str, written: CalendarDate, year: int | None) -> tuple[str, tuple[str, ...]]:
    """The name and the aliases of a date: never a word that means another day tomorrow."""
    month, day = written.month, written.day
    if year is None:
        name, others = f"{month}月{day}日", []
    elif day is None:
        name, others = f"{year}-{month:02}", [f"{year}年{month}月"]
    else:
        name, others = f"{year}-{month:02}-{day:02}", [f"{year}年{month}月{day}日", f"{month}月{day}日"]
    if written.years_back is None and not written.joined:
        others.append(text[written.start : written.end])
    return name, tuple(dict.fromkeys(other for other in others if other != name))
