"""Finds the date expressions of a text, once, and resolves them as seen from a day; joins those that form a range: 5月から7月まで, 10月3日から5日.

A calendar date is a day or a month in figures or words: 2025年10月17日, 令和7年10月17日, 10月17日, 10/17, 来年4月, October 17. It is read strictly:
1/2の量 is a half, 2026.10.17 behind "version" is no date, 10月17日間 and October 17 people are counts, May and March may be verbs.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import islice
from typing import Any, NamedTuple

import memory_mcp.dates.holidays  # noqa: F401  what its days mean
from memory_mcp.dates.grammar import PARTS, ROWS
from memory_mcp.dates.hours import asked_span, end_of_qualifier
from memory_mcp.dates.spans import (
    MONTHS,
    ONE_DAY,
    WEEKDAYS,
    YEARS_BACK,
    DaySpan,
    day_of,
    each_year,
    month_of,
    months_back,
    narrowed,
    normalized_with_places,
    number_of,
)
from memory_mcp.dates.tables import MEANINGS, Expression, Table, as_moment, meaning, next_weekday
from memory_mcp.dates.tense import Direction, asked_directions, sentence_around
from memory_mcp.lexicon import any_of, filled, needed
from memory_mcp.patterns import Forms, Found, bounded


class CalendarDate(NamedTuple):
    """`text[start:end]` is a day, or, without `day`, a month.

    `year` is None where the text leaves it out; `years_back` is set instead where it is 去年 or 来年. `joined`: it shares its month, and so its
    year, with the date before it: 19日 in 10月17日〜19日. `is_last`: last October 17.
    """

    year: int | None
    month: int
    day: int | None
    start: int
    end: int
    years_back: int | None = None
    joined: bool = False
    is_last: bool = False

    def span(self) -> tuple[int, int]:
        return self.start, self.end

    def in_year(self, year: int) -> DaySpan:
        return day_of(date(year, self.month, self.day)) if self.day else month_of(year, self.month)


_DATE, _ENGLISH_DATE = Forms(PARTS["date_in_figures"]), Forms(PARTS["date_in_words"])
# Such a number is the version of a program.
_VERSION = bounded(r"(?:\b(?:v|ver\.?|version|release|build)|バージョン|リリース|版|[=<>~^@]|\b[a-z][\w.]*-[a-z]\w*)\s?\Z")
# 1/2の量 is a half, and 1/2(金) and 1/2まで are days.
_SURELY_A_DAY = (*"(0123456789", "から", "まで", "以降", "締", "頃", "ごろ")
_LARGEST_DENOMINATOR = 10
_VERSION_REACH = 20
# 17日〜19日, 17日と18日, 17日(金)、18日(土): the month is that of the day before. 17日から20日かかった and 17日と2日後 are so many days.
_FURTHER, _FURTHER_IN_FIGURES = bounded(PARTS["further_day"]), bounded(PARTS["further_in_figures"])
_MONTH_BEGINNINGS = tuple({name[:3] for name in MONTHS})
_DAY_NUMBERS = bounded(r"\d{1,2}(?:st|nd|rd|th)?")
_MAY_BE_VERBS = ("may", "march")
_NO_COUNT_FOLLOWS = bounded(PARTS["no_count"])
_ORDINAL_ENDINGS = ("st", "nd", "rd", "th")


def calendar_dates(plain: str) -> list[CalendarDate]:
    """The calendar dates of a normalized text, in its order."""
    in_words = _english_dates(plain) if any(map(plain.__contains__, _MONTH_BEGINNINGS)) else ()
    return sorted([*_dates_in_figures(plain), *in_words], key=lambda date: date.start)


def _dates_in_figures(plain: str) -> Iterator[CalendarDate]:
    end = len(plain)
    for found in _DATE.all(plain):
        year, month, day = (int(found[part]) if found[part] else None for part in ("year", "month", "day"))
        ends_range = found.span()[0] == end + 1 and plain[end] in "〜~–-"
        if month is None or (not ends_range and (found["closing"] or _is_no_date(found, month, day))):
            continue
        if found["american"] and month > 12:
            month, day = day or 0, month
        start, end = found.span()[0], found.span("slashed")[1]
        date = CalendarDate(year, month, day, start, end, YEARS_BACK[found["on"]] if found["on"] else None, bool(found["same"]))
        yield date
        if day:
            yield from _further_days(plain, date, in_figures=plain[end - 1] != "日")


def _is_no_date(found: Found, month: int, day: int | None) -> bool:
    """Whether the figures are a fraction or a version."""
    if found["slashed"]:
        return month < (day or 0) <= _LARGEST_DENOMINATOR and not found["follows"].lstrip().startswith(_SURELY_A_DAY)
    start = found.span()[0]
    return bool(found["dotted"]) and _VERSION.search(found.string[max(start - _VERSION_REACH, 0) : start]) is not None


def _further_days(plain: str, date: CalendarDate, *, in_figures: bool) -> Iterator[CalendarDate]:
    """The later days of the same month that follow a day."""
    further = _FURTHER_IN_FIGURES if in_figures else _FURTHER
    while (match := further.match(plain, date.end)) and int(match["day"]) > (date.day or 0):
        date = date._replace(day=int(match["day"]), start=match.start("day"), end=match.end(), joined=True)
        yield date


def _english_dates(plain: str) -> Iterator[CalendarDate]:
    for found in _ENGLISH_DATE.all(plain):
        year, name, (start, end) = int(found["year"]) if found["year"] else None, found["month"], found.span()
        may_be_verb = (
            name in _MAY_BE_VERBS and not year and not any(ending in plain[start:end].replace(name, "") for ending in _ORDINAL_ENDINGS)
        )
        if may_be_verb and not _NO_COUNT_FOLLOWS.match(plain, end):
            continue
        if not found["day"]:
            yield CalendarDate(year, MONTHS[name], None, start, end)
        else:
            yield from _days_of_month(plain, found, year)


def _days_of_month(plain: str, found: Found, year: int | None) -> Iterator[CalendarDate]:
    """The days that share a month: the span of the day next to the month includes it."""
    start, end = found.span()
    others = found.span("before" if found["before"] else "more") if found["before"] or found["more"] else (0, 0)
    numbers = [found.span("day"), *(other.span() for other in _DAY_NUMBERS.finditer(plain, *others))]
    spans = [*numbers]
    if found["before"]:
        spans[-1] = spans[-1][0], end
    else:
        spans[0] = start, end if len(numbers) == 1 else spans[0][1]
    for index, (number, span) in enumerate(zip(numbers, spans, strict=True)):
        day = int(plain[slice(*number)].rstrip("stndrh"))
        yield CalendarDate(year, MONTHS[found["month"]], day, *span, joined=index > 0, is_last=bool(found["last"]))


@meaning
def written_date(written: CalendarDate, today: date) -> Iterable[DaySpan]:
    """A calendar date, without a year that of each of the last years."""
    if written.year is not None or written.years_back is not None:
        return [written.in_year(today.year - (written.years_back or 0) if written.year is None else written.year)]
    days = each_year(today, written.in_year)
    return islice((span for span in days if span[0] < today), 1) if written.is_last else days


def _expression(row: Mapping[str, Any]) -> Expression:
    find = Forms(filled(row["pattern"], PARTS)).all if "pattern" in row else calendar_dates
    further = {name: row[name] for name in ("recurs_after", "is_alone") if name in row} | (
        {"counted": as_moment} if "counted" in row else {}
    )
    return Expression(row["kind"], find, MEANINGS[row["means"]], row["examples"], list(needed(row.get("needs", ""))), **further)


_EXPRESSIONS = [(_expression(row), row.get("only_in", "")) for row in ROWS]
CALENDAR = next(expression for expression, _ in _EXPRESSIONS if expression.resolve is written_date)
# Questions and memories; and arguments, where a word may mean a date because nothing else is written.
IN_TEXTS, AS_ARGUMENTS = (Table(each for each, only_in in _EXPRESSIONS if only_in in ("", place)) for place in ("texts", "arguments"))
# A text that is longer, such as a timetable, is no question for a day.
_LONGEST = 2_000
_NEARLY_A_YEAR = timedelta(days=180)
# The 29th of February exists within eight years of any day, any other day within one.
_YEARS_AHEAD = (1, 2, 3, 4, 8)


class Named(NamedTuple):
    """`plain[start:end]` is a date expression that may mean each of `spans`."""

    start: int
    end: int
    spans: list[DaySpan]
    expression: Expression | None

    @property
    def is_alone(self) -> bool:
        """Whether it is a day of the week or month, which only a sentence dates."""
        return self.expression is not None and self.expression.is_alone


@dataclass(frozen=True, slots=True)
class Recognized:
    """A normalized text and all that may be a date in it, whenever it is read: `resolved` tells what it means as seen from a day. `places`:
    for each place of a text that was normalized here, its end included, the place in the text itself."""

    plain: str
    matches: Sequence[tuple[Expression, Any]]
    places: Sequence[int] = ()

    @property
    def calendar(self) -> list[CalendarDate]:
        """The calendar dates."""
        return [match for expression, match in self.matches if expression is CALENDAR]

    def resolved(self, today: date, *, upcoming: bool = False) -> list[Named]:
        """The dates, none within another, in the order of the tables. With `upcoming`, a date that does not say of which year, week or
        month it is may also mean the next one."""
        taken = bytearray(len(self.plain))  # a flag for each character: a query may name thousands of dates
        named: list[Named] = []
        for expression, match in self.matches:
            start, end = match.span()
            if any(taken[start:end]):
                continue  # 先週 inside 先週の金曜 is part of it
            spans = list(_resolved(expression, match, today))
            if upcoming and _is_open(expression, spans, today):
                spans = _with_upcoming(expression, match, today, spans)
            if spans:
                taken[start:end] = b"\1" * (end - start)
                named.append(Named(start, end, spans, expression))
        return named

    def without(self, named: Iterable[Named]) -> str:
        """The text with a space for each character of these dates."""
        plain = self.plain
        for each in named:
            plain = plain[: each.start] + " " * (each.end - each.start) + plain[each.end :]
        return plain


def recognize(text: str, table: Table = IN_TEXTS) -> Recognized:
    """All that may be a date in a text."""
    plain, places = normalized_with_places(text)
    return Recognized(plain, table.found_in(plain), places)


def recognized_in(plain: str, table: Table = IN_TEXTS) -> Recognized:
    """The same of a normalized text."""
    return Recognized(plain, table.found_in(plain))


def _resolved(expression: Expression, match: Any, today: date) -> Iterator[DaySpan]:
    try:
        yield from expression.resolve(match, today)
    except (ValueError, OverflowError):
        return  # 2月30日, or outside the calendar: no date


def _is_open(expression: Expression, spans: Sequence[DaySpan], today: date) -> bool:
    """Whether the sentence decides which date is meant. A leap day may have a single date among the last years."""
    first = spans[0][0] if spans else today
    return len(spans) > 1 or bool(expression.recurs_after) or ((first.month, first.day) == (2, 29) and today - first > _NEARLY_A_YEAR)


def _with_upcoming(expression: Expression, match: Any, today: date, spans: Sequence[DaySpan]) -> list[DaySpan]:
    """The spans and the next one to come, the latest first."""
    known = set(spans)
    for later in _later_days(expression, today):
        known |= set(_resolved(expression, match, later))
        if any(span[0] > today for span in known) and not expression.recurs_after:
            break
    return sorted(known, reverse=True)


def _later_days(expression: Expression, today: date) -> Iterable[date]:
    if expression.recurs_after:
        return [today + timedelta(days=ahead) for ahead in expression.recurs_after if date.max - today > timedelta(days=ahead)]
    return [today.replace(year=today.year + years, day=min(today.day, 28)) for years in _YEARS_AHEAD if today.year + years < date.max.year]


def dates_asked(recognized: Recognized, today: date, *, upcoming: bool = False) -> list[Named]:
    """The dates that a question names. A day of the week or of the month alone is one where the question asks for what was or will be
    then."""
    asked = (each._replace(spans=_asked_spans(recognized, each, today)) for each in recognized.resolved(today, upcoming=upcoming))
    return [each._replace(end=end_of_qualifier(recognized.plain, each.end)) for each in asked if each.spans]


def _asked_spans(recognized: Recognized, named: Named, today: date) -> list[DaySpan]:
    before, after = sentence_around(recognized.plain, named.start, named.end)
    spans = named.spans
    if named.is_alone:
        asked_for = asked_directions(before, after) if len(recognized.plain) <= _LONGEST else ()
        spans = [span for direction in asked_for for span in _nearest(spans, direction, today)]
    return [asked_span(span, before, after) for span in spans]


def _nearest(spans: Sequence[DaySpan], asked_for: Direction, today: date) -> list[DaySpan]:
    """The last or the coming one; where that is today, also the one a week or month away."""
    if asked_for == "next":
        ahead = sorted(span for span in spans if span[1] > today)
        return ahead[: 2 if ahead and ahead[0] == day_of(today) else 1]
    past = sorted((span for span in spans if span[0] <= today), reverse=True)
    return past[: 2 if past and past[0] == day_of(today) else 1]


class Clause(NamedTuple):
    """Date expressions that belong together, as in 去年の10月: what they mean together, and each alone."""

    start: int
    end: int
    spans: list[DaySpan]
    parts: list[list[DaySpan]]


# Between the two days of a range, and what else a day extends to.
RANGE, _EXTENT = bounded(PARTS["range"]), bounded(PARTS["extent"])
# One year may be said of several dates: 去年のクリスマスと大晦日.
_OF_A_YEAR = bounded(rf"(?:\d{{4}}年|{any_of(YEARS_BACK)})(?![代度])")
_WITHIN = ("", "の", "of", "in", ",")


def spans_together(plain: str, named: Sequence[Named]) -> list[DaySpan]:
    """The spans that the dates of a question mean together. A date inside another narrows it: 今年の1月 is one month. Two with から between them
    are one range, and its end may leave out the month."""
    clauses = [*_clauses(plain, sorted(named, key=lambda each: each[:2]))]
    years = {each.spans[0][0].year for each in named if len(each.spans) == 1 and _OF_A_YEAR.search(plain, each.start, each.end)}
    meanings = [meaning for clause, days in with_ranges(plain, clauses) for meaning in ([days] if days else clause.parts)]
    return narrowed([[span for span in spans if len(spans) > 1 and span[0].year in years] or spans for spans in meanings])


def with_ranges(plain: str, clauses: Sequence[Clause], longest: timedelta = timedelta.max) -> Iterator[tuple[Clause, list[DaySpan]]]:
    """Each clause, and the days of the range that begins with it, if any: with the next clause, or with what follows it, as から5日 and
    から3日間. A longer range is none."""
    index = 0
    while index < len(clauses):
        clause, index = clauses[index], index + 1
        end, days = _extents(plain, clause)
        following = index
        while days and following < len(clauses) and clauses[following].start < end:
            following += 1
        if not days and index < len(clauses) and _is_range(plain, clause, clauses[index]):
            days, following = list(_from_to(clause.spans, clauses[index].spans)), index + 1
        days = [span for span in days if span[1] - span[0] <= longest]
        index = following if days else index
        yield clause, days


def _is_range(plain: str, first: Clause, last: Clause) -> bool:
    """Whether two clauses are the ends of a range, by the text before the first and between them."""
    between = plain[first.end : last.start]
    return RANGE.fullmatch(between) is not None or (between.strip() == "and" and plain[: first.start].rstrip().endswith("between"))


def _clauses(plain: str, named: Sequence[Named]) -> Iterator[Clause]:
    group: list[Named] = []
    for each in named:
        if group and plain[group[-1].end : each.start].strip() not in _WITHIN:
            yield _clause(group)
            group = []
        group.append(each)
    if group:
        yield _clause(group)


def _clause(group: Sequence[Named]) -> Clause:
    parts = [part.spans for part in group]
    return Clause(group[0].start, group[-1].end, parts[0] if len(parts) == 1 else narrowed(parts), parts)


def _extents(plain: str, clause: Clause) -> tuple[int, list[DaySpan]]:
    """A day together with that to which it extends, or the days for which it does: 10月3日から5日, 月曜から金曜, 明日から3日間."""
    if any(after - first != ONE_DAY for first, after in clause.spans):
        return clause.end, []
    extents = [extent for first, _ in clause.spans if (extent := extent_of(plain, clause.end, first))]
    return (extents[0][0] if extents else clause.end), [span for _, span in extents]


def extent_of(plain: str, end: int, first: date) -> tuple[int, DaySpan] | None:
    """How far a day extends whose name ends at `end`, by what follows there: から金曜, から5日, から3日間, から2泊3日. Where that ends, and the days."""
    extent = _EXTENT.match(plain, end)
    try:
        if not extent:
            return None
        if extent["weekday"]:
            return extent.end(), (first, next_weekday(first, WEEKDAYS[extent["weekday"]])[1])
        if number := extent["last"] or extent["day"]:
            return (extent.end(), (first, first.replace(day=int(number)) + ONE_DAY)) if first.day < int(number) else None
        days, nights, weeks = (number_of(extent[unit] or "0") for unit in ("days", "nights", "weeks"))
        return extent.end(), (first, first + timedelta(days=days + 7 * weeks + (nights + 1 if nights else 0)))
    except (ValueError, OverflowError):  # no number, no such day, or the end of the calendar
        return None


def _from_to(begins: Sequence[DaySpan], ends: Sequence[DaySpan]) -> Iterator[DaySpan]:
    """From each beginning to the next end, which may leave out its year."""
    for first, _ in begins:
        later = [after for start, after in ends if start >= first]
        if len(ends) > 1:
            start, after = ends[0]
            years = first.year - start.year + ((first.month, first.day) > (start.month, start.day))
            later = [months_back(after, -12 * years)[0] + timedelta(days=after.day - 1)]
        if later:
            yield first, min(later)
