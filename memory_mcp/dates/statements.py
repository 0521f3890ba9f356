"""The days that a statement is about: 「昨日の夕飯はカレー」 told on the 5th is about the 4th, "returns are due on December 1" about that day."""

from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from itertools import zip_longest

from memory_mcp.dates.hours import part_of_span
from memory_mcp.dates.mentions import TO, Anchors, NamedDay, WrittenDates, days_of_every_year
from memory_mcp.dates.recognize import Named, Recognized, extent_of, is_range, recognized_in, to_day_of_month
from memory_mcp.dates.spans import ONE_DAY, DaySpan, day_of, month_of
from memory_mcp.dates.tense import direction, is_habit, sentence_around
from memory_mcp.patterns import bounded

# Only the beginning of a long text is read: later dates are seldom what it is about.
READ_CHARACTERS = 2_000
# Longer spans distinguish too little: 今年 is true of most statements.
LONGEST_SPAN = timedelta(days=31)
SPANS_LIMIT = 10
# What a birthday is told once for: nothing derives the days of a memory again as the years pass.
_YEARS_AHEAD, _LEAP_YEARS_REACH = 5, 8
# Two days that have nothing in common: what is the same as seen from both says itself when it is.
_ANY_DAY, _ANOTHER_DAY = date(1970, 3, 12), date(2021, 8, 31)
_BESIDE_DAY = bounded(r"(?:の?\s?(?:午前|午後|朝|昼|夕方|夜))?(?:の?\s?\d{1,2}(?:時半?|:\d\d)(?:\d{1,2}分)?)?")
# 金曜は早く帰る may be so every week.
_TOPIC = bounded("[はも]")
_DAY_ALONE = bounded(r"(\d{1,2})日")
_DAY_OF_EVERY_YEAR = bounded(r"(\d+)月(\d+)日")
# The sentence is about the day itself, and not about what was or will be on one of them. The zero stands for the day.
_RECURS = bounded(r"毎年|例年|every|each|annual|(?:[はが:]|\b(?:is|are)(?: on)?)\s*\0|\0[はが]")


class Statement(WrittenDates):
    """The text of a memory, read once for all that its days need."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.recognized = recognized_in(self.plain[:READ_CHARACTERS])
        self.may_name_days = bool(self.dates or self.recognized.matches)


def days_of_statement(told: str | Statement, told_on: date | None, stored_on: date | None = None) -> list[DaySpan]:
    """The spans of at most a month that a statement names, as meant on the local day on which it was told; at most ten.

    Its relative words count from the nearest date that governs them, else from `told_on`; where that is not known, they name nothing. A
    date that does not say of which year it is, is the next or the last one by the tense of its sentence, also from `stored_on` where
    nobody knows when it was told; without a tense it is the current one, such as 8月 in August, or none. A day of every year, such as a
    birthday, is the last one and those of the next years.
    """
    told = Statement(told) if isinstance(told, str) else told
    if not told.may_name_days:
        return []
    anchored, of_dates = told.anchors(told_on), told.anchors(told_on or stored_on)
    dated = (
        Named(day.start, day.end, _spans_named(told.plain, day, of_dates.at(day.start)), None) for day, _ in told.days_in_plain(of_dates)
    )
    taken, free = 0, []
    for each in sorted([*dated, *_others(told.recognized, anchored)], key=lambda each: each[:2]):  # a calendar date and what overlaps it
        if taken <= each.start < READ_CHARACTERS:
            free.append(each)
            taken = each.end
    spans = dict.fromkeys(span for each in _with_ranges(told.plain, free) for span in each.spans)
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


def _others(recognized: Recognized, anchored: Anchors) -> Iterator[Named]:
    """What is no calendar date, each as meant on the day from which it counts."""
    plain = recognized.plain
    for today in dict.fromkeys([anchored.told_on, *(day for _, _, day in anchored.governing)]):
        if today is None:
            same = recognized.resolved(_ANOTHER_DAY)
            named = [each for each in recognized.resolved(_ANY_DAY) if each in same]
        else:
            named = recognized.resolved(today, upcoming=True)
        for each in named:
            if anchored.at(each.start) == today:
                yield each._replace(spans=list(_meant(plain, each, today)))


def _meant(plain: str, named: Named, today: date | None) -> Iterator[DaySpan]:
    before, after = sentence_around(plain, named.start, named.end)
    if len(named.spans) == 1 or today is None:
        yield from (part_of_span(span, before, after) for span in named.spans)
        return
    spans: Sequence[DaySpan] = sorted(named.spans)
    if after.startswith("分"):  # what is paid for a month, 12月分の家賃を払った
        yield min(spans, key=lambda span: max(span[0] - today, today - span[1]))
        return
    ahead = direction(before, after)
    if named.is_alone and (
        is_habit(before + after) or (ahead == "next" and _TOPIC.match(after) and "曜" in plain[named.start : named.end])
    ):
        return
    if ahead == "next":
        meant = [span for span in spans if span[1] > today][:1]
    elif ahead == "last":
        meant = [span for span in spans if span[0] <= today][-1:]
    else:
        meant = [span for span in spans if span[0] <= today < span[1] and not named.is_alone]
    yield from (part_of_span(span, before, after) for span in meant)


def _with_ranges(plain: str, named: Sequence[Named]) -> Iterator[Named]:
    """The dates; those of a range are its ends and all of its days as one span: 11月5日から7日まで, 明日から3日間."""
    joined = False
    for each, following in zip_longest(named, named[1:]):
        if joined:
            joined = False
            continue
        is_day = len(each.spans) == 1 and each.spans[0] == day_of(each.spans[0][0])
        end, span = (_to_day_behind(plain, each) if is_day else None) or (0, None)
        joined = following is not None and following.start < end
        if span is None and following and (span := _range_to(plain, each, following)):
            joined = True
        if span and span[1] - span[0] <= LONGEST_SPAN:
            # With its ends, a range that begins or ends in a week is of that week.
            yield each._replace(spans=[day_of(span[0]), day_of(span[1] - ONE_DAY), span])
        else:
            yield each


def _to_day_behind(plain: str, each: Named) -> tuple[int, DaySpan] | None:
    """How far a day extends by what follows it: 明日から3日間, 来週の月曜から水曜まで, 来月の5日から7日まで."""
    if extent := extent_of(plain, each.end, each.spans[0][0]):
        return extent
    time = _BESIDE_DAY.match(plain, each.end)
    joint = TO.match(plain, time.end() if time else each.end)
    last = _DAY_ALONE.match(plain, joint.end()) if joint else None
    span = to_day_of_month(each.spans[0][0], int(last[1])) if last else None
    return (last.end(), span) if last and span else None


def _range_to(plain: str, begin: Named, end: Named) -> DaySpan | None:
    """From one date to the next one named, if the two are the ends of a range that isn't too long."""
    time = _BESIDE_DAY.match(plain, begin.end, end.start)
    between = plain[time.end() if time else begin.end : end.start]
    if len(begin.spans) != 1 or len(end.spans) != 1 or not (TO.fullmatch(between) or is_range(plain[: begin.start], between)):
        return None
    first, after = begin.spans[0][0], end.spans[0][1]
    return (first, after) if end.spans[0][0] > first and after - first <= LONGEST_SPAN else None


def _spans_named(plain: str, day: NamedDay, today: date | None) -> list[DaySpan]:
    """The span of an ISO day or month, and those of a day without a year."""
    try:
        if every_year := _DAY_OF_EVERY_YEAR.fullmatch(day.name):
            return _spans_of_every_year(plain, day, int(every_year[1]), int(every_year[2]), today) if today else []
        year, month, *rest = day.name.split("-")
        if rest:
            return [day_of(date.fromisoformat(day.name))]
        return [part_of_span(month_of(int(year), int(month)), *sentence_around(plain, day.start, day.end))]
    except (ValueError, OverflowError):
        return []


def _spans_of_every_year(plain: str, day: NamedDay, month: int, number: int, today: date) -> list[DaySpan]:
    """The last such day and those of the next years, or one of them where the sentence is about what was or will be then."""
    first_year = today.year - (_LEAP_YEARS_REACH if (month, number) == (2, 29) else 1)
    days = days_of_every_year(month, number, first_year, today.year + _YEARS_AHEAD)
    past, ahead = [each for each in days if each <= today][-1:], [each for each in days if each > today]
    before, after = sentence_around(plain, day.start, day.end)
    tense = None if _RECURS.search(f"{before}\0{after}") else direction(before, after)
    if tense == "next":
        return [day_of(each) for each in days if each >= today][:1]
    return [day_of(each) for each in (past if tense == "last" else past + ahead)]
