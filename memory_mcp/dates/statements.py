"""The days that a statement is about: 「昨日の夕飯はカレー」 stated on the 5th is about the 4th, "returns are due on December 1" about that day."""

from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from itertools import zip_longest

from memory_mcp.dates.changed_plans import BESIDE_DAY, is_called_off, is_denied, was_moved
from memory_mcp.dates.days_alone import is_noted_for_day_of_month
from memory_mcp.dates.mentions import TO, NamedDay, days, is_date
from memory_mcp.dates.numerals import normalize
from memory_mcp.dates.recognize import IN_STATEMENTS, Recognized, extent_of, is_range, recognize, to_day_of_month
from memory_mcp.dates.spans import ONE_DAY, DaySpan, day_of, month_of
from memory_mcp.dates.tense import direction, sentence_around
from memory_mcp.patterns import bounded

# Only the beginning of a long text is read: later dates are seldom what it is about.
READ_CHARACTERS = 2_000
# Longer spans distinguish too little: 今年 is true of most statements.
LONGEST_SPAN = timedelta(days=31)
SPANS_LIMIT = 10
# What a birthday is told once for: nothing derives the days of a memory again as the years pass.
_YEARS_AHEAD = 5
_LEAP_YEARS_REACH = 8
_BESIDE_DAY = bounded(rf"\A{BESIDE_DAY}")
_DAY_ALONE = bounded(r"(\d{1,2})日")
# What begins and stays, as 来週から在宅になる, is not on every day of the time in which it begins.
_BEGINS_IN = bounded("(?:先々?|今|来|再来)[週月]")
_BEGINS = bounded(r"\Aから(?!.*まで)(?P<what>.{1,24}?)に(?:な[るっり]|変わ|変更|移)")
_WEEKDAY_ALONE = bounded("[月火水木金土日]曜日?|[a-z]+day")
_ONE_WEEK = timedelta(days=7)
# Calendar dates have capital letters in such names, which a normalized text has lost.
_SHORT_MONTHS = "jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec"
_FIGURE = bounded("[0-9]")
_MONTH_BESIDE_DAY = bounded(
    rf"(?<![a-z])(?:{_SHORT_MONTHS})(?=\.?\s(?:the\s)?\d{{1,2}}(?:st|nd|rd|th)?(?:\s?[-–]\s?\d{{1,2}})?+(?![\d%]|:\d))|(?<=\d )(?:{_SHORT_MONTHS})(?![a-z])"
    r"|(?<![a-z])(?:march|may)(?=\s\d{1,2}\s?[-–]\s?\d{1,2}(?:\s(?:in|at)\s|[.,:;!)]|\Z))"
)
_DAY_OF_EVERY_YEAR = bounded(r"(\d+)月(\d+)日")
# The sentence is about the day itself, and not about what was or will be on one of them. The zero stands for the day.
_RECURS = bounded(r"毎年|例年|every|each|annual|(?:[はが:]|\b(?:is|are)(?: on)?)\s*\0|\0[はが]")


def days_of_statement(text: str, stated_on: date) -> list[DaySpan]:
    """The spans of at most a month that a statement names, as meant on the local day on which it was made; at most ten.

    A date that does not say which one it is, such as 18日, is the next or the last one by the tense of its sentence; without one it is the
    current one, such as 8月 in August, or none. A day of every year, such as a birthday, is the last one and those of the next years. The day
    from which a plan was moved is none, nor is a day to come of what is called off.
    """
    plain = normalize(text[:READ_CHARACTERS])
    named = _with_ranges(plain, [*_without_changed(plain, sorted(_named(plain, stated_on)), stated_on)], stated_on)
    spans = dict.fromkeys(span for each in named for span in each.spans)
    return [span for span in spans if span[1] - span[0] <= LONGEST_SPAN][:SPANS_LIMIT]


def day_of_telling(text: str, happened_on: date, stored_on: date) -> date:
    """The local day from which the words of a text are counted: the day on which it was stored, or an earlier one on which it happened.

    A diary or a chat that is imported tells of its own day, 「昨日はカレー」 of the one before. What is stored with the day on which it happened is
    told later: of 「昨日はカレー」 with the date of yesterday, yesterday is what the text says as of today, and not as of yesterday.
    """
    if happened_on >= stored_on:
        return stored_on
    as_of_then = days_of_statement(text, happened_on)
    if as_of_then and any(first <= happened_on < after for first, after in set(days_of_statement(text, stored_on)).difference(as_of_then)):
        return stored_on
    return happened_on


def _named(plain: str, stated_on: date) -> Iterator[Recognized]:
    """The dates of a text, with the spans that are meant."""
    taken: list[tuple[int, int]] = []
    for day in days(_with_capitals(plain), stated_on):
        taken.append((day.start, day.end))
        yield Recognized(day.start, day.end, _spans_named(plain, day, stated_on))
    for recognized in recognize(plain, stated_on, IN_STATEMENTS, upcoming=True):
        if all(recognized.end <= start or recognized.start >= end for start, end in taken):
            yield recognized._replace(spans=list(_meant(plain, recognized, stated_on)))


def _with_capitals(plain: str) -> str:
    return _MONTH_BESIDE_DAY.sub(lambda match: match[0].capitalize(), plain) if _FIGURE.search(plain) else plain


def _without_changed(plain: str, named: Sequence[Recognized], stated_on: date) -> Iterator[Recognized]:
    """The dates without those of plans that were moved from them or called off. A day that has passed stays one of what did not take place."""
    for each, following in zip_longest(named, named[1:]):
        before, after = sentence_around(plain, each.start, each.end)
        between = after[: following.start - each.end] if following else after
        behind = sentence_around(plain, following.start, following.end)[1] if following and between != after else ""
        moved = between != after and was_moved(before, between, behind)
        off = is_called_off(before, after) and any(first > stated_on for first, _ in each.spans)
        if not (moved or off or is_denied(before, after)):
            yield each


def _with_ranges(plain: str, named: Sequence[Recognized], stated_on: date) -> Iterator[Recognized]:
    """The dates; those of a range are its ends and all of its days as one span: 11月5日から7日まで, 明日から3日間."""
    joined = False
    for each, following in zip_longest(named, named[1:]):
        if joined:
            joined = False
            continue
        ended = _range_to(plain, each, following, stated_on) if following else None
        joined = ended is not None
        alone = not ended and len(each.spans) == 1 and each.spans[0] == day_of(each.spans[0][0])
        extent = extent_of(plain, each.end, each.spans[0][0]) if alone else None
        span = ended or (extent[1] if extent else None)
        if span and span[1] - span[0] <= LONGEST_SPAN:
            # With its ends, a range that begins or ends in a week is of that week.
            yield each._replace(spans=[day_of(span[0]), day_of(span[1] - ONE_DAY), span])
        else:
            yield each


def _range_to(plain: str, begin: Recognized, end: Recognized, stated_on: date) -> DaySpan | None:
    """From one date to the next one named, if the two are the ends of a range that isn't too long."""
    between = _BESIDE_DAY.sub("", plain[begin.end : end.start], count=1)
    if len(begin.spans) != 1 or not (TO.fullmatch(between) or is_range(plain[: begin.start], between)):
        return None
    first = begin.spans[0][0]
    if all(_WEEKDAY_ALONE.fullmatch(plain, each.start, each.end) and len(each.spans) == 1 for each in (begin, end)):
        return _within_a_week(first, end.spans[0][1], stated_on)
    day = _DAY_ALONE.fullmatch(plain, end.start, end.end)
    ends = [span for span in end.spans if span[0] > first] if len(end.spans) == 1 else []
    span = (to_day_of_month(first, int(day[1])) if day else None) or next(((first, after) for _, after in ends), None)
    return span if span and span[1] - span[0] <= LONGEST_SPAN else None


def _within_a_week(first: date, after: date, stated_on: date) -> DaySpan:
    """From one day of the week to another. Told on Wednesday, 月曜から金曜まで出張だった ended last Friday, and 月曜から水曜まで休む ends the Wednesday after next Monday."""
    if after > first:
        return first, after
    return (first - _ONE_WEEK, after) if first < stated_on else (first, after + _ONE_WEEK)


def _spans_named(plain: str, day: NamedDay, stated_on: date) -> list[DaySpan]:
    """The span of an ISO day or month, and those of a day without a year."""
    try:
        if every_year := _DAY_OF_EVERY_YEAR.fullmatch(day.name):
            days = _each_year(int(every_year[1]), int(every_year[2]), stated_on)
            past, ahead = [each for each in days if each <= stated_on][-1:], [each for each in days if each > stated_on]
            before, after = sentence_around(plain, day.start, day.end)
            tense = None if _RECURS.search(f"{before}\0{after}") else direction(before, after)
            if tense == "next":
                return [day_of(each) for each in days if each >= stated_on][:1]
            return [day_of(each) for each in (past if tense == "last" else past + ahead)]
        year, month, *rest = day.name.split("-")
        return [day_of(date.fromisoformat(day.name)) if rest else month_of(int(year), int(month))]
    except (ValueError, OverflowError):
        return []


def _each_year(month: int, day: int, stated_on: date) -> list[date]:
    """That day of each year around a day that has it; the 29th of February exists within eight years."""
    first_year = stated_on.year - (_LEAP_YEARS_REACH if (month, day) == (2, 29) else 1)
    years = range(max(first_year, date.min.year), min(stated_on.year + _YEARS_AHEAD, date.max.year - 1) + 1)
    return [date(year, month, day) for year in years if is_date(year, month, day)]


def _meant(plain: str, recognized: Recognized, stated_on: date) -> Iterator[DaySpan]:
    before, after = sentence_around(plain, recognized.start, recognized.end)
    if len(recognized.spans) == 1:
        begins = _BEGINS.match(after) if _BEGINS_IN.fullmatch(plain, recognized.start, recognized.end) else None
        yield from _beginning(begins["what"], recognized.spans[0]) if begins else recognized.spans
        return
    spans: Sequence[DaySpan] = sorted(recognized.spans)
    if after.startswith("分"):  # what is paid for a month, 12月分の家賃を払った
        yield min(spans, key=lambda span: max(span[0] - stated_on, stated_on - span[1]))
        return
    ahead = direction(before, after)
    if ahead is None and _DAY_ALONE.fullmatch(plain, recognized.start, recognized.end) and is_noted_for_day_of_month(before, after):
        ahead = "next"
    if ahead == "next":
        yield from [span for span in spans if span[1] > stated_on][:1]
    elif ahead == "last":
        yield from [span for span in spans if span[0] < stated_on + ONE_DAY][-1:]
    else:
        yield from [span for span in spans if span[0] <= stated_on < span[1]]


def _beginning(what: str, span: DaySpan) -> Iterator[DaySpan]:
    """The first day of what begins in a week or month, as 来週から在宅になる; none where it is so on a certain day of the week."""
    if "曜" not in what:
        yield day_of(span[0])
