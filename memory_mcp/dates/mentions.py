"""Days and months that a text names, as ISO writes them: 2025年10月17日, 令和7年10月17日, 10月17日, 10/17, 来年4月, October 17.

A date without its year is the next one where its sentence speaks of what is to come (unless it has just passed), the last one where it speaks
of what is past, and else the one nearest to when that was said: 10月17日 of this year and of the last are two days. What is of every year, such as a birthday,
keeps no year. 明日 and 明後日 name nothing: what was meant is told by when the memory was stored.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import ClassVar

from memory_mcp.dates.tense import Direction, direction, direction_of_relation
from memory_mcp.dates.written_day import Written
from memory_mcp.dates.written_days import written_days

# Told by these rules alone: the same words are another day a year later, so they are never looked for as a known name.
DAY = "day"
LEAP_YEAR = 2000
_EVERY_YEAR = re.compile("誕生日|記念日|命日|毎年|例年|生まれ|祝日|何の日")
_EVERY_YEAR_IN_ENGLISH = re.compile(r"birthday|anniversary|(?<![a-z])born(?![a-z])|(?:every|each)[_ ]year|annually", re.IGNORECASE)
_SENTENCE_END = re.compile(r"[。！？!?\n]|(?<!\d)\.(?=\s|$)")
# Between two days of which one thing is said.
_TO = re.compile(r"(?:の?[月火水木金土日]曜日?|\s?[(（][^)）]{1,8}[)）])?\s?(?:から|より|[〜～~–—-]|\bto\b|through|until|till)\s?")
_AND = re.compile(r"(?:[とや、,・〜~～–-]|から|まで|か|または|及び|および|and|\s|[(（][^)）]*[)）])*")
# A sentence is looked at so far around a day.
_REACH = 60
# In which years there may be such a day, from when it was said on: the 29th of February may be eight years off.
_YEARS_OFF = range(9)
# 10/17(金) tells the year by itself: in three that follow each other it is another day of the week.
_DAY_OF_WEEK = re.compile(r"\s?(?:[(（]([月火水木金土日])(?:曜日?)?[)）]|の?([月火水木金土日])曜(?:日(?!曜)|(?=[にのはがもと、。]|\Z)))")
# Nobody leaves out the year of a plan that is so nearly a year off: it is of this one, and written down late.
_LATE_DAYS = 45


@dataclass(frozen=True, slots=True)
class NamedDay:
    """`text[start:end]` names a day or a month. `name` is the date as ISO writes it, `aliases` are further names of it."""

    type: ClassVar = "TimeUnit"
    subtype: ClassVar = DAY

    name: str
    start: int
    end: int
    aliases: tuple[str, ...] = ()


def days(text: str, said_on: date | None, ahead: Direction | None = None) -> Iterator[NamedDay]:
    """The days and months that a text names. `said_on`: from when a date without a year is reckoned; where it is not known, such a date has none.
    `ahead`: which one it is where that is known otherwise than by the sentence."""
    written = written_days(text)
    year = None
    for place, one in enumerate(written):
        year = _year_told(text, written, place, said_on, ahead, year)
        if (one.day is None and year is None) or not _exists(year, one.month, one.day):
            continue
        name, aliases = _names(text, one, year)
        yield NamedDay(name, one.start, one.end, aliases)


def day_called(name: str, said_on: date | None, relation: str = "", beside: str = "") -> NamedDay | None:
    """The day or month that a name is of as a whole; None where it is another name. `relation`: the type of the one that has it at an end;
    `beside`: its other end. They may tell that it comes back each year, or is to come."""
    said = f"{relation} {beside}"
    if _EVERY_YEAR.search(said) or _EVERY_YEAR_IN_ENGLISH.search(said):
        said_on = None
    ahead = direction_of_relation(relation, beside) if said_on else None
    return next((day for day in days(name, said_on, ahead) if (day.start, day.end) == (0, len(name))), None)


def _year_told(
    text: str, written: Sequence[Written], place: int, said_on: date | None, ahead: Direction | None, before: int | None
) -> int | None:
    """The year of one of the days that are `written`; None where it has none. `before`: that of the one in front of it."""
    one = written[place]
    if one.year is not None or (one.joined and place):
        return one.year if one.year is not None else before
    if one.years_on is not None:
        return said_on.year + one.years_on if said_on else None
    last = written[place - 1] if place else None
    if last and last.day and one.day and before and _TO.fullmatch(text, last.end, one.start):
        return before + ((one.month, one.day) < (last.month, last.day))
    return _year_of(text, written, place, said_on, ahead) if said_on else None


def _year_of(text: str, written: Sequence[Written], place: int, said_on: date, ahead: Direction | None) -> int | None:
    """The year that the sentence means; None where that is each year, or there is no such day."""
    _, month, day, start, end, *_ = written[place]
    if day is None:
        return None
    before = _SENTENCE_END.split(text[max(start - _REACH, 0) : start])[-1]
    after = _SENTENCE_END.split(text[end : end + _REACH])[0]
    if _EVERY_YEAR.search(before + after) or _EVERY_YEAR_IN_ENGLISH.search(before + after):
        return None
    ahead = ahead or direction(before, _of_this_day(text, written, place, end + len(after)))
    nearest = _nearest(said_on, month, day)
    year = _on_its_day_of_week(text, end, said_on, month, day)
    if year and (ahead is None or (ahead == "next") is (date(year, month, day) >= said_on) or year == nearest):
        return year
    if ahead is None or (ahead == "next" and nearest and 0 < (said_on - date(nearest, month, day)).days <= _LATE_DAYS):
        return nearest
    return _next_or_last(said_on, month, day, ahead)


def _on_its_day_of_week(text: str, end: int, said_on: date, month: int, day: int) -> int | None:
    """The year around then in which that day is on the day of the week that stands behind it; None where none stands there, or it never is.
    A slip of the pen is no year: it counts only where the sentence does not speak of the other side of then."""
    named = _DAY_OF_WEEK.match(text, end)
    if named is None:
        return None
    wanted = "月火水木金土日".index(named[1] or named[2])
    return next((there.year for there in _around(said_on, month, day) if there.weekday() == wanted), None)


def _of_this_day(text: str, written: Sequence[Written], place: int, end: int) -> str:
    """What follows a day, up to `end`, where its sentence does, or to the next one, unless of both the same is said."""
    begin = written[place].end
    for later in range(place + 1, len(written)):
        other = written[later]
        if other.start >= end:
            break
        if not other.joined and _AND.fullmatch(text, begin, other.start) is None:
            return text[begin : other.start]
        begin = other.end
    return text[begin:end]


def _next_or_last(said_on: date, month: int, day: int, ahead: Direction) -> int | None:
    """The year of the next such day, or the last; the day itself when it was said is both."""
    towards = 1 if ahead == "next" else -1
    years = (said_on.year + towards * off for off in _YEARS_OFF)
    there = (year for year in years if 0 < year <= date.max.year and _exists(year, month, day))
    return next((year for year in there if (date(year, month, day) - said_on).days * towards >= 0), None)


def _nearest(said_on: date, month: int, day: int) -> int | None:
    """The year in which that day is nearest to when it was said; None where there is no such day."""
    near = [(abs((there - said_on).days), there.year) for there in _around(said_on, month, day)]
    return min(near)[1] if near else None


def _around(said_on: date, month: int, day: int) -> list[date]:
    """That day of the year before, of the one in which it was said, and of the one after, as far as there is such a day."""
    years = range(max(said_on.year - 1, 1), said_on.year + 2)
    return [date(year, month, day) for year in years if _exists(year, month, day)]


def _exists(year: int | None, month: int, day: int | None) -> bool:
    try:
        date(LEAP_YEAR if year is None else year, month, day or 1)
    except ValueError:
        return False
    return True


def _names(text: str, one: Written, year: int | None) -> tuple[str, tuple[str, ...]]:
    """What it is called, and how else: never by a word that is another day tomorrow."""
    month, day = one.month, one.day
    if year is None:
        name, others = f"{month}月{day}日", []
    elif day is None:
        name, others = f"{year}-{month:02}", [f"{year}年{month}月"]
    else:
        name, others = f"{year}-{month:02}-{day:02}", [f"{year}年{month}月{day}日", f"{month}月{day}日"]
    if one.years_on is None and not one.joined:
        others.append(text[one.start : one.end])
    return name, tuple(dict.fromkeys(other for other in others if other != name))
