"""The days that a text names: 「昨日の夕飯はカレー」 told on the 5th is about the 4th, "returns are due on December 1" about that day.

One rule of anchors: what a text leaves out, a year or all but 明日, counts from the nearest date that governs it: one at the beginning of
its line, in a heading above, or at the beginning of the text; else from the day on which it was told; and where nobody knows that, from
none. The year of a date without one follows from its sentence. What recurs every year, such as a birthday, has no year.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import ClassVar

from memory_mcp.dates.hours import limit_or_part
from memory_mcp.dates.recognize import CALENDAR, RANGE, CalendarDate, Clause, Named, Recognized, calendar_dates, recognized_in, with_ranges
from memory_mcp.dates.spans import ONE_DAY, WEEKDAY_NAMES, DaySpan, composed_with_places, day_of, normalized_further
from memory_mcp.dates.tense import Direction, direction, is_habit, sentence_around
from memory_mcp.lexicon import expressions

# Only the beginning of a long text is read: later dates are seldom what it is about.
READ_CHARACTERS = 2_000
# Longer spans distinguish too little: 今年 is true of most statements.
LONGEST_SPAN = timedelta(days=31)
SPANS_LIMIT = 10
# What a birthday is told once for: nothing derives the days of a memory again as the years pass.
_YEARS_AHEAD, _LEAP_YEARS_REACH = 5, 8
# Two days that have nothing in common: what is the same as seen from both says itself when it is.
_ANY_DAY, _ANOTHER_DAY = date(1970, 3, 12), date(2021, 8, 31)
# The year of a plan is not left out when it is nearly a year ahead: such a plan is of this year, and written down up to 45 days late.
LATE, NEARLY_A_YEAR = timedelta(days=45), timedelta(days=180)

_IS = expressions(__file__, "sentences.toml", "statements")
_LONGEST_LABEL = 40


@dataclass(frozen=True, slots=True)
class Anchors:
    """The dates that govern parts of a text, as (start, end, day), the inner ones last, and the day on which it was told, if that is
    known."""

    governing: Sequence[tuple[int, int, date]]
    told_on: date | None

    def at(self, position: int) -> date | None:
        """The day from which a word at this place of the text counts."""
        inner = (day for start, end, day in reversed(self.governing) if start < position < end)
        return next(inner, self.told_on)


def _anchors(text: str, dates: Sequence[CalendarDate], told_on: date | None) -> Anchors:
    """The anchors of a text, given its calendar dates. A day after that on which the text was told says when something will be."""
    governing: list[tuple[int, int, date]] = []
    for written in dates:
        if not written.day or written.joined:
            continue
        begin, end = text.rfind("\n", 0, written.start) + 1, text.find("\n", written.end)
        line = text[begin : end if end >= 0 else len(text)]
        is_first = not text[:begin].strip()
        goes_on = end >= 0 and not text[end:].isspace()
        at = written.start - begin, written.end - begin
        whole_line = _governs(line, *at, is_first=is_first, has_year=written.year is not None, goes_on=goes_on)
        if whole_line is None:
            continue
        day = _day_of_anchor(text, written, Anchors(governing, told_on).at(written.start))
        if day is None or (told_on and day > told_on):
            continue
        stop = _end_of_section(text, written.end, line) if whole_line or is_first else text.find("\n\n", written.end)
        governing.append((written.start, stop if stop >= 0 else len(text) + 1, day))
    return Anchors(governing, told_on)


def _governs(line: str, start: int, end: int, *, is_first: bool, has_year: bool, goes_on: bool) -> bool | None:
    """True for a line that is a heading with this date, False for one that begins with it, None for any other."""
    label = line[:start].lstrip("#>*-・●■□◆【[(「『 \t")
    behind = _IS["behind"].match(line, end)
    if behind is None or len(label) > _LONGEST_LABEL or _IS["no_label"].search(label):
        return None
    rest = line[behind.end() :]
    if not (rest.strip() or goes_on):
        return None
    if not behind["closes"].strip() and rest and _IS["goes_on"].match(rest):
        return None
    if behind["comma"] and not (has_year and not label):
        return None
    is_whole = not rest.strip(" \t*_]】)」")
    is_titled = is_whole and (is_first or line.lstrip().startswith("#"))
    if label.strip() and not (behind["clock"] or _IS["label"].search(label) or is_titled):
        return None
    return is_whole or line.lstrip().startswith("#")


def _end_of_section(text: str, position: int, line: str) -> int:
    """Where another heading of the same depth or a higher one begins, of a heading in Markdown; else the end of the text."""
    own = _IS["heading"].match(line)
    while own and (position := text.find("\n", position) + 1):
        other = _IS["heading"].match(text, position)
        if other and len(other[1]) <= len(own[1]):
            return position
    return len(text) + 1


def _day_of_anchor(text: str, written: CalendarDate, reference_day: date | None) -> date | None:
    year = written.year
    if year is None and reference_day and written.day:
        year = _year_of_day(written.month, written.day, reference_day, None, _weekday_beside(text, written.end))
    return date(year, written.month, written.day or 1) if year and is_date(year, written.month, written.day) else None


# The subtype of the graph's days. They are found by their date alone, never by a known name: the same words are another day a year later.
DAY = "day"
_LEAP_YEAR = 2000


@dataclass(frozen=True, slots=True)
class NamedDay:
    """`text[start:end]` names a day or a month. `name` is its date as ISO writes it, `aliases` are further names of it."""

    type: ClassVar = "TimeUnit"
    subtype: ClassVar = DAY

    name: str
    aliases: tuple[str, ...]
    start: int
    end: int


class Statement:
    """A text, read once for its dates: `dates` are the calendar dates, in its order, and `days` tells which days they are as of the day on
    which it was told. `recognized`: what was recognized in it, if it was read already."""

    def __init__(self, text: str, recognized: Recognized | None = None) -> None:
        self.text = text
        self.composed = composed_with_places(text)
        self.plain, self._places = (recognized.plain, recognized.places) if recognized else normalized_further(*self.composed)
        self.recognized = recognized or recognized_in(self.plain[:READ_CHARACTERS])
        is_whole = recognized or len(self.plain) <= READ_CHARACTERS
        self.dates: Sequence[CalendarDate] = self.recognized.calendar if is_whole else calendar_dates(self.plain)
        # What it names as of the days from which its words and its dates count; and the sentence around a place, with its direction.
        self.spans: dict[tuple[date | None, date | None], list[DaySpan]] = {}
        self._sentences: dict[tuple[int, int], tuple[str, str, Direction | None]] = {}

    def sentence(self, start: int, end: int) -> tuple[str, str, Direction | None]:
        """What the sentence of a place has before and after it, and whether it is to come."""
        if (start, end) not in self._sentences:
            before, after = sentence_around(self.recognized.plain, start, end)
            self._sentences[start, end] = before, after, direction(before, after)
        return self._sentences[start, end]

    def anchors(self, told_on: date | None) -> Anchors:
        return _anchors(self.plain, self.dates, told_on)

    def days(self, told_on: date | None, known_direction: Direction | None = None) -> Iterator[NamedDay]:
        """The days and months that the text names. `told_on`: the day on which it was told; where neither that nor an anchor is known, a date
        without a year has none. `known_direction`: whether it is to come, where that is known otherwise than from the sentence."""
        for year, written in self.dated(self.anchors(told_on), known_direction):
            start, end = self._places[written.start], self._places[written.end]
            others = [] if written.years_back is not None or written.joined else [self.text[start:end]]
            name, *aliases = dict.fromkeys([*_names(written, year), *others])
            yield NamedDay(name, tuple(aliases), start, end)

    def dated(self, anchored: Anchors, known_direction: Direction | None = None) -> Iterator[tuple[int | None, CalendarDate]]:
        """The days and months, each with its year if it has one."""
        own_days = {start: day for start, _, day in anchored.governing}
        year = None
        for index, written in enumerate(self.dates):
            if written.start in own_days:
                year = own_days[written.start].year
            else:
                year = self._year_of(index, anchored.at(written.start), known_direction, year)
            if (written.day is not None or year is not None) and is_date(year, written.month, written.day):
                yield year, written

    def _year_of(self, index: int, today: date | None, known_direction: Direction | None, year_before: int | None) -> int | None:
        """The year of one of the dates; None where it has none. `year_before`: the year of the date in front of it."""
        written = self.dates[index]
        if written.year is not None:
            return written.year
        if written.joined and index:
            return year_before
        if written.years_back is not None:
            return today.year - written.years_back if today else None
        last = self.dates[index - 1] if index else None
        if last and last.day and written.day and year_before and RANGE.fullmatch(self.plain, last.end, written.start):
            return year_before + ((written.month, written.day) < (last.month, last.day))
        return self._year_from_sentence(index, today, "last" if written.is_last else known_direction) if today else None

    def _year_from_sentence(self, index: int, today: date, known_direction: Direction | None) -> int | None:
        """The year that the sentence implies; None where it is every year, or there is no such day."""
        written = self.dates[index]
        if written.day is None:
            return None
        before, after = sentence_around(self.plain, written.start, written.end)
        if _IS["every_year"].search(before + after):
            return None
        ahead = known_direction or direction(before, self._clause_after(index, written.end + len(after)))
        return _year_of_day(written.month, written.day, today, ahead, _weekday_beside(self.plain, written.end))

    def _clause_after(self, index: int, end: int) -> str:
        """What follows a date, up to `end` or to the next date, unless the two are a list or a range."""
        begin = self.dates[index].end
        for other in (self.dates[later] for later in range(index + 1, len(self.dates))):  # a slice would copy thousands of dates for each
            if other.start >= end:
                break
            if not other.joined and _IS["and"].fullmatch(self.plain, begin, other.start) is None:
                return self.plain[begin : other.start]
            begin = other.end
        return self.plain[begin:end]


def days(text: str, told_on: date | None, known_direction: Direction | None = None) -> Iterator[NamedDay]:
    """The days and months that a text names."""
    return Statement(text).days(told_on, known_direction)


def day_called(name: str, reference_day: date | None, relation: str = "", other_end: str = "") -> NamedDay | None:
    """The day or month that is the whole of a name; None where it is another name.

    `relation`: the type of the relation that has it at one end; `other_end`: the name at its other end. They may show that it recurs every
    year, or is to come.
    """
    if _IS["every_year"].search(f"{relation} {other_end}"):
        reference_day = None
    said = relation.replace("_", " ")
    known_direction = direction(f"{other_end} {said}", "") or direction("", said)
    return next((day for day in days(name, reference_day, known_direction) if (day.start, day.end) == (0, len(name))), None)


def is_date(year: int | None, month: int, day: int | None) -> bool:
    """Whether there is such a day, or month; without `year`, in any year."""
    try:
        date(_LEAP_YEAR if year is None else year, month, day or 1)
    except ValueError:
        return False
    return True


def _weekday_beside(text: str, end: int) -> int | None:
    beside = _IS["weekday_beside"].match(text, end)
    return WEEKDAY_NAMES.index(beside[1] or beside[2]) if beside else None


def _names(written: CalendarDate, year: int | None) -> tuple[str, ...]:
    """The name and the aliases of a date."""
    month, day = written.month, written.day
    if year is None:
        return (f"{month}月{day}日",)
    if day is None:
        return f"{year}-{month:02}", f"{year}年{month}月"
    return f"{year}-{month:02}-{day:02}", f"{year}年{month}月{day}日", f"{month}月{day}日"


def _year_of_day(month: int, day: int, today: date, direction: Direction | None, weekday: int | None = None) -> int | None:
    """The year of a day in a statement; None where there is no such day. `weekday`: the day of the week that follows it in the text."""
    reach = _LEAP_YEARS_REACH if (month, day) == (2, 29) else 1
    days = _days_of_every_year(month, day, today.year - reach, today.year + reach)
    near = [there for there in days if abs(there.year - today.year) <= 1]
    nearest = min(near, key=lambda there: (abs((there - today).days), there.year), default=None)
    on_weekday = next((there for there in near if there.weekday() == weekday), None)
    if on_weekday and (direction is None or (direction == "next") is (on_weekday >= today) or on_weekday == nearest):
        return on_weekday.year
    if direction is None:
        return nearest.year if nearest else None
    if direction == "next":
        return planned([day_of(there) for there in days], today)[0].year if days and days[-1] >= today else None
    return max((there.year for there in days if there <= today), default=None)


def planned(spans: Sequence[DaySpan], today: date, *, strictly: bool = False) -> DaySpan:
    """The next span, which may have begun, or the last one where that ended up to 45 days ago; with `strictly` only one that is to come."""
    ahead = min((span for span in spans if (span[0] > today if strictly else span[1] > today)), default=spans[0])
    past = max((span for span in spans if span[1] <= today), default=None)
    if strictly or past is None or past == ahead:
        return ahead
    return past if today - (past[1] - ONE_DAY) <= LATE and ahead[0] - past[1] > NEARLY_A_YEAR else ahead


def _days_of_every_year(month: int, day: int, first_year: int, last_year: int) -> list[date]:
    """That day of each of these years that has it."""
    years = range(max(first_year, date.min.year), min(last_year, date.max.year - 1) + 1)
    return [date(year, month, day) for year in years if is_date(year, month, day)]


# 金曜は早く帰る may be so every week.
_TOPIC = ("は", "も")


def days_of_statement(told: str | Statement, told_on: date | None, stored_on: date | None = None) -> list[DaySpan]:
    """The spans of at most a month that a statement names, as meant on the local day on which it was told; at most ten.

    Its relative words count from the nearest date that governs them, else from `told_on`; where that is not known, they name nothing. A
    date that does not say of which year it is, is the next or the last one by the tense of its sentence, also from `stored_on` where
    nobody knows when it was told; without a tense it is the current one, such as 8月 in August, or none. A day of every year, such as a
    birthday, is the last one and those of the next years.
    """
    told = Statement(told) if isinstance(told, str) else told
    if not (told.dates or told.recognized.matches):
        return []
    seen_from = (told_on, told_on or stored_on)
    if seen_from not in told.spans:
        told.spans[seen_from] = _spans_of_statement(told, *seen_from)
    return told.spans[seen_from]


def _spans_of_statement(told: Statement, told_on: date | None, dated_from: date | None) -> list[DaySpan]:
    anchored, of_dates = told.anchors(told_on), told.anchors(dated_from)
    dated = (
        Named(written.start, written.end, _spans_of_date(told.plain, written, year, of_dates.at(written.start)), CALENDAR)
        for year, written in told.dated(of_dates)
    )
    taken, free = 0, []
    for each in sorted([*dated, *_others(told, anchored)], key=lambda each: (each.start, -each.end)):
        if each.spans and taken <= each.start < READ_CHARACTERS:
            free.append(Clause(each.start, each.end, each.spans, [each.spans]))
            taken = each.end
    spans = dict.fromkeys(span for clause, days in with_ranges(told.plain, free, LONGEST_SPAN) for span in _with_ends(clause, days))
    return [span for span in spans if span[1] - span[0] <= LONGEST_SPAN][:SPANS_LIMIT]


def day_of_telling(told: Statement, happened_on: date, stored_on: date) -> date:
    """The local day from which the words of a text are counted: the day on which it was stored, or an earlier one on which it happened.

    A diary or a chat that is imported tells of its own day, 「昨日はカレー」 of the one before. What is stored with the day on which it happened is
    told later: of 「昨日はカレー」 with the date of yesterday, yesterday is what the text says as of today, and not as of yesterday.
    """
    if happened_on >= stored_on:
        return stored_on
    as_of_then = days_of_statement(told, happened_on)
    as_of_now = set(days_of_statement(told, stored_on)).difference(as_of_then) if as_of_then else ()
    return stored_on if any(first <= happened_on < after for first, after in as_of_now) else happened_on


def _with_ends(clause: Clause, days: Sequence[DaySpan]) -> Iterator[DaySpan]:
    """The days of a clause; of a range also its ends: one that begins or ends in a week is of that week."""
    for span in days or clause.spans:
        yield from (day_of(span[0]), day_of(span[1] - ONE_DAY), span) if days else (span,)


def _others(told: Statement, anchored: Anchors) -> Iterator[Named]:
    """What is no calendar date, each as meant on the day from which it counts."""
    recognized = told.recognized
    for today in dict.fromkeys(anchored.at(match.span()[0]) for expression, match in recognized.matches if expression is not CALENDAR):
        if today is None:
            same = recognized.resolved(_ANOTHER_DAY)
            named = [each for each in recognized.resolved(_ANY_DAY) if each in same]
        else:
            named = recognized.resolved(today, upcoming=True)
        for each in named:
            if each.expression is not CALENDAR and anchored.at(each.start) == today:
                yield each._replace(spans=list(_meant(told, each, today)))


def _meant(told: Statement, named: Named, today: date | None) -> Iterator[DaySpan]:
    plain = told.recognized.plain
    before, after, ahead = told.sentence(named.start, named.end)
    meant: Sequence[DaySpan] = sorted(named.spans)
    if today and (len(meant) > 1 or named.is_alone):
        if after.startswith("分"):  # what is paid for a month, 12月分の家賃を払った
            meant = [min(meant, key=lambda span: max(span[0] - today, today - span[1]))]
        elif named.is_alone and (
            is_habit(before + after) or (ahead == "next" and after.startswith(_TOPIC) and "曜" in plain[named.start : named.end])
        ):
            meant = []
        elif ahead == "next":
            meant = [span for span in meant if span[1] > today][:1]
        elif ahead == "last":
            meant = [span for span in meant if span[0] <= today][-1:]
        elif len(meant) > 1 or not named.is_alone or plain.startswith("in ", named.start):  # else 3日後, which is certain
            meant = [span for span in meant if span[0] <= today < span[1] and not named.is_alone]
    yield from (limit_or_part(span, before, after, is_planned=ahead == "next") for span in meant)


def _spans_of_date(plain: str, written: CalendarDate, year: int | None, today: date | None) -> list[DaySpan]:
    """The span of a day or month, and those of a day without a year."""
    before, after = sentence_around(plain, written.start, written.end)
    try:
        if year is None:
            return [*_spans_of_every_year(before, after, written.month, written.day or 1, today)] if today else []
        return [limit_or_part(written.in_year(year), before, after)]
    except (ValueError, OverflowError):
        return []


def _spans_of_every_year(before: str, after: str, month: int, number: int, today: date) -> Iterator[DaySpan]:
    """The last such day and those of the next years, or one of them where the sentence is about what was or will be then."""
    first_year = today.year - (_LEAP_YEARS_REACH if (month, number) == (2, 29) else 1)
    days = _days_of_every_year(month, number, first_year, today.year + _YEARS_AHEAD)
    tense = None if _IS["recurs"].search(f"{before}\0{after}") else direction(before, after)
    if tense == "next":
        return map(day_of, [each for each in days if each >= today][:1])
    past = [each for each in days if each <= today][-1:]
    return map(day_of, past if tense == "last" else past + [each for each in days if each > today])
