"""Days and months that a text names, as ISO writes them, and the days from which its other words count.

2025年10月17日, 令和7年10月17日, 10月17日, 10/17, 来年4月, October 17. This is stricter than an argument: 1/2の量 is a half, 2026.10.17 behind "version"
is no date, 10月17日間 and October 17 people are counts, May and March may be verbs. The year of a date without one follows from its sentence.
What recurs every year, such as a birthday, has no year.

One rule of anchors: what a text leaves out, a year or all but 明日, counts from the nearest date that governs it: one at the beginning of
its line, in a heading above, or at the beginning of the text; else from the day on which it was told; and where nobody knows that, from
none.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import ClassVar, NamedTuple

from memory_mcp.dates.spans import MONTHS, ONE_DAY, WEEKDAY_NAMES, YEARS_BACK, DaySpan, day_of, normalized_with_places
from memory_mcp.dates.tables import NO_COUNT
from memory_mcp.dates.tense import Direction, direction, direction_of_relation, sentence_around
from memory_mcp.patterns import bounded


class CalendarDate(NamedTuple):
    """`text[start:end]` is a day, or, without `day`, a month.

    `year` is None where the text leaves it out; `years_back` is set instead where it is 去年 or 来年. `joined`: it shares its month, and so its
    year, with the date before it: 19日 in 10月17日〜19日.
    """

    year: int | None
    month: int
    day: int | None
    start: int
    end: int
    years_back: int | None = None
    joined: bool = False


_IN_FIGURES = bounded(r"\d[/.-]\d")
# A number at the end of a name tells which of its forms a match has.
_DATE = bounded(
    r"(?<!\d)(?P<year1>[12]\d{3})[-/](?P<month1>\d{1,2})[-/](?P<day1>\d{1,2})(?!\d)"
    r"|(?<![\w/.-])(?P<month2>\d{1,2})/(?P<day2>\d{1,2})/(?P<year2>(?:19|20)\d\d)(?![\w/-])"
    r"|(?<![a-z0-9_.-])(?P<year3>(?:19|20)\d{2})\.(?P<month3>\d{1,2})\.(?P<day3>\d{1,2})(?![a-z0-9_-]|\.[a-z0-9])"
    rf"|(?:(?P<year4>[12]\d{{3}})年|(?P<on>{'|'.join(YEARS_BACK)})の?)(?P<month4>\d{{1,2}})月(?:(?P<day4>\d{{1,2}})日(?!間)|(?![\d間号]))"
    r"|(?:(?<=毎年)|(?<=例年)|(?<![\d年一二三四五六七八九十]))(?P<month5>\d{1,2})月(?P<day5>\d{1,2})日(?!間)"
    rf"|(?<![\d/.,])(?P<month6>\d{{1,2}})/(?P<day6>\d{{1,2}})(?P<follows>\s?[(][{WEEKDAY_NAMES}]|から|まで|以降|締|頃|ごろ|です|だ|[にのはもか、。]|\Z"
    r"|(?=[〜~–-]\d{1,2}(?:日|/\d{1,2}|[にのはもか、。(]|から|まで|です|\Z|\s(?:[^\x00-\x7f]|(?:in|at|for)\s))))"
)
_AMERICAN, _DOTTED, _SLASHED = 2, 3, 6
# Such a number is the version of a program.
_VERSION = bounded(r"(?:\b(?:v|ver\.?|version|release|build)|バージョン|リリース|版|[=<>~^@]|\b[a-z][\w.]*-[a-z]\w*)\s?\Z")
# 1/2の量 is a half, and 1/2(金) and 1/2まで are days.
_SURELY_A_DAY = bounded(r"\s?[(]|から|まで|以降|締|頃|ごろ")
_LARGEST_DENOMINATOR = 10
_VERSION_REACH = 20
# 17日〜19日, 17日と18日, 17日(金)、18日(土): the month is that of the day before. 17日から20日かかった and 17日と2日後 are so many days.
_BESIDE = rf"(?:の?[{WEEKDAY_NAMES}]曜日?|\s?[(][{WEEKDAY_NAMES}](?:曜日?)?(?:・祝)?[)])?"
_COUNTED = "間|前|後|目|め|分|ぶり|振り|ほど|くらい|ぐらい|程|以上|以内|未満|坊主|月"
_FURTHER = bounded(
    rf"{_BESIDE}\s?(?:(?P<from>から|より)|[〜~–—-]|と|及び|および|(?P<list>[、,・や]))\s?(?P<day>\d{{1,2}})日(?!{_COUNTED})"
    r"(?(from)(?=まで|に(?!わた|及)|の|は|です|では|[、。,)〜~(]|\s|\Z))(?(list)(?=まで|から|です|[にのはもがとでかや、。,・)〜~(]|\s|\Z))"
)
_FURTHER_IN_FIGURES = bounded(rf"{_BESIDE}\s?[〜~–-]\s?(?P<day>\d{{1,2}})(?:日(?!{_COUNTED})|(?![\d/:.年月日]))")
# The end of 11/5-11/7 is a day whatever follows it.
_END_IN_FIGURES = bounded(r"[〜~–-](?P<month>\d{1,2})/(?P<day>\d{1,2})(?![\d/])")

_ENGLISH_MONTHS = "|".join(sorted(MONTHS, key=len, reverse=True))
_MONTH_BEGINNINGS = tuple({name[:3] for name in MONTHS})
_DAY_NUMBER = r"\d{1,2}(?:st|nd|rd|th)?"
_NUMBER_ENDS = r"(?![a-z0-9_%$€£]|[.,/:]\d|['’]s\d)"
_ENGLISH_YEAR = r"(?:19|20)\d{2}(?!\d)"
_FURTHER_DAY = r"(?:\s?[-–~〜]\s?|\s(?:to|through|until|till|and|&)\s|,\s(?:and\s)?)(?:the\s)?"
_DAY_NUMBERS = bounded(_DAY_NUMBER)
_ENGLISH_DATE = bounded(
    rf"(?<![a-z0-9_@#])(?:(?P<month1>{_ENGLISH_MONTHS})(?![a-z])\.?\s{{1,2}}(?:the\s)?(?P<day1>{_DAY_NUMBER}){_NUMBER_ENDS}"
    rf"(?P<more1>(?:{_FURTHER_DAY}{_DAY_NUMBER}{_NUMBER_ENDS}{NO_COUNT})*)(?![-–]\d)(?:,?\s(?P<year1>{_ENGLISH_YEAR}))?"
    rf"|(?P<month2>{_ENGLISH_MONTHS})(?![a-z])\.?,?\s(?P<year2>{_ENGLISH_YEAR})"
    rf"|(?<![.:,/-])(?P<day3>{_DAY_NUMBER})(?P<more3>(?:{_FURTHER_DAY}{_DAY_NUMBER})*)\s(?:of\s)?(?P<month3>{_ENGLISH_MONTHS})(?![a-z])\.?"
    rf"(?:,?\s(?P<year3>{_ENGLISH_YEAR}))?)"
)
_MAY_BE_VERBS = ("may", "march")
_NO_COUNT_FOLLOWS = bounded(NO_COUNT)
_ORDINAL_ENDING = bounded("st|nd|rd|th")


def calendar_dates(plain: str) -> list[CalendarDate]:
    """The calendar dates of a normalized text, in its order."""
    in_figures = [*_dates_in_figures(plain)] if "月" in plain or _IN_FIGURES.search(plain) else []
    in_words = [*_english_dates(plain)] if any(map(plain.__contains__, _MONTH_BEGINNINGS)) else []
    return sorted([*in_figures, *in_words], key=lambda date: date.start)


def _form(match: re.Match[str]) -> int:
    return next(form for form in range(1, 7) if match[f"month{form}"])


def _number(match: re.Match[str], name: str) -> int | None:
    return int(match[name]) if match.groupdict().get(name) else None


def _dates_in_figures(plain: str) -> Iterator[CalendarDate]:
    end_of_range = 0
    for match in _DATE.finditer(plain):
        form = _form(match)
        year, month, day = (_number(match, f"{part}{form}") for part in ("year", "month", "day"))
        if match.start() < end_of_range or month is None or _is_no_date(match, form, month, day):
            continue
        if form == _AMERICAN and month > 12:
            month, day = day or 0, month
        end = match.start("follows") if form == _SLASHED else match.end()
        date = CalendarDate(year, month, day, match.start(), end, YEARS_BACK[match["on"]] if match["on"] else None)
        yield date
        if day:
            yield from _further_days(plain, date, in_figures=not match[0].endswith("日"))
        if form == _SLASHED and (last := _END_IN_FIGURES.match(plain, end)):
            end_of_range = last.end()
            yield CalendarDate(None, int(last["month"]), int(last["day"]), last.start("month"), end_of_range)


def _is_no_date(match: re.Match[str], form: int, month: int, day: int | None) -> bool:
    """Whether the figures are a fraction or a version."""
    if form == _SLASHED:
        return month < (day or 0) <= _LARGEST_DENOMINATOR and not _SURELY_A_DAY.match(match["follows"])
    return form == _DOTTED and _VERSION.search(match.string[max(match.start() - _VERSION_REACH, 0) : match.start()]) is not None


def _further_days(plain: str, date: CalendarDate, *, in_figures: bool) -> Iterator[CalendarDate]:
    """The later days of the same month that follow a day."""
    further = _FURTHER_IN_FIGURES if in_figures else _FURTHER
    while (match := further.match(plain, date.end)) and int(match["day"]) > (date.day or 0):
        date = date._replace(day=int(match["day"]), start=match.start("day"), end=match.end(), joined=True)
        yield date


def _english_dates(plain: str) -> Iterator[CalendarDate]:
    for match in _ENGLISH_DATE.finditer(plain):
        form = _form(match)
        year, name = _number(match, f"year{form}"), match[f"month{form}"]
        may_be_verb = name in _MAY_BE_VERBS and not year and not _ORDINAL_ENDING.search(match[0].replace(name, ""))
        if may_be_verb and not _NO_COUNT_FOLLOWS.match(plain, match.end()):
            continue
        if form == 2:
            yield CalendarDate(year, MONTHS[name], None, match.start(), match.end())
        else:
            yield from _days_of_month(match, form, year, MONTHS[name])


def _days_of_month(match: re.Match[str], form: int, year: int | None, month: int) -> Iterator[CalendarDate]:
    """The days that share a month: the span of the day next to the month includes it."""
    first, more = match.span(f"day{form}"), match.span(f"more{form}")
    others = [other.span() for other in _DAY_NUMBERS.finditer(match.string, *more)]
    if form == 3 and others:
        spans = [first, *others[:-1], (others[-1][0], match.end())]
    else:
        spans = [(match.start(), match.end() if not others else first[1]), *others]
    for (start, end), number in zip(spans, [first, *others], strict=True):
        day = int(match.string[slice(*number)].rstrip("stndrh"))
        yield CalendarDate(year, month, day, start, end, joined=(start, end) != spans[0])


# The year of a plan is not left out when it is nearly a year ahead: such a plan is of this year, and written down up to 45 days late.
LATE, NEARLY_A_YEAR = timedelta(days=45), timedelta(days=180)
_LEAP_YEARS_REACH = 8

# What stands in front of a date that says when its text was written, and behind it: # 2025-03-01, 議事録 2025/3/1（土）10:00, [2019-10-17 21:30]
# 健太:, 10月17日の日記.
_WRITTEN = "日記|日誌|日報|週報|月報|記録|メモ|ノート|ログ|議事録|報告|手紙|ジャーナル|できごと|出来事"
_CLOCK = (
    r"(?:T?\d{1,2}(?::\d\d){1,2}(?:\.\d+)?(?:\s?[AaPp]\.?[Mm]\.?)?|(?:午前|午後)?\d{1,2}時(?:半|\d{1,2}分)?)"
    r"(?:\s?(?:Z|[+-]\d\d:?\d\d|[A-Z]{3}))?"
)
_WEEKDAY = (
    rf"(?:[(（][{WEEKDAY_NAMES}](?:曜日?)?(?:・祝)?[)）]|の?[{WEEKDAY_NAMES}]曜日?|[(（]?(?:Mon|Tues?|Wed(?:nes)?|Thu(?:rs)?|Fri|Sat(?:ur)?"
    rf"|Sun)(?:day)?\b[)）]?)"
)
_BEHIND = bounded(
    rf"(?:付け?)?,?\s?{_WEEKDAY}?(?P<clock>,?(?:\sat)?\s?{_CLOCK}(?:\s?[-–~〜]\s?{_CLOCK})?)?"
    rf"(?P<closes>[\s\]】）)」*_]*$|\s?[\]】）)」:：|\t]|\s?[-–—]\s(?!\d)|\.\s|の?(?:{_WRITTEN})|(?P<comma>[、,])|\s+(?=\S))",
    re.IGNORECASE,
)
_GOES_ON = bounded(
    r"\s*(?:[はにがもへやを]|[でと](?!き)|から|まで|より|以[降来]|頃|ごろ|生まれ|[〜～~]|の|(?:was|were|is|are|will|and|to|until|through|or)\b)"
)
_LABEL = bounded(
    rf"\b(?:date|sent|posted|created|written|diary|journal|log|notes?|minutes|meeting|entry|letter|memo|report|day|on|dear)\b|日付|日時|作成"
    rf"|更新|投稿|送信|記入|会議|定例|面談"
    rf"|打ち?合わせ|ミーティング|{_WRITTEN}",
    re.IGNORECASE,
)
_NO_LABEL = bounded(
    r"[はがをにでと、。!?！？]|[^\W\d]\.|[締〆]|期[限日]|納期|まで|から|予定|生|誕|記念|命日|発売|購入|入社|設立|有効|次回|\b(?:on|in|by|until|since|from|for|at|due|deadline"
    r"|before|after|the|is"
    r"|was|born|birth\w*|expires?|next|starts?|ends?)\W*$",
    re.IGNORECASE,
)
_HEADING = bounded(r"[ \t]*(#{1,6})\s")
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


def anchors(text: str, dates: Sequence[CalendarDate], told_on: date | None) -> Anchors:
    """The anchors of a text, given its calendar dates. A day after that on which the text was told says when something will be."""
    governing: list[tuple[int, int, date]] = []
    for index, written in enumerate(dates):
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
        day = _day_of_anchor(text, dates, index, Anchors(governing, told_on).at(written.start))
        if day is None or (told_on and day > told_on):
            continue
        stop = _end_of_section(text, written.end, line) if whole_line or is_first else _end_of_paragraph(text, written.end)
        governing.append((written.start, stop, day))
    return Anchors(governing, told_on)


def _governs(line: str, start: int, end: int, *, is_first: bool, has_year: bool, goes_on: bool) -> bool | None:
    """True for a line that is a heading with this date, False for one that begins with it, None for any other."""
    label = line[:start].lstrip("#>*-・●■□◆【［[（(「『 \t\u3000")
    behind = _BEHIND.match(line, end)
    if behind is None or len(label) > _LONGEST_LABEL or _NO_LABEL.search(label):
        return None
    rest = line[behind.end() :]
    if not (rest.strip() or goes_on):
        return None
    if not behind["closes"].strip() and rest and _GOES_ON.match(rest):
        return None
    if behind["comma"] and not (has_year and not label):
        return None
    is_whole = not rest.strip(" \t*_]】）)」")
    is_titled = is_whole and (is_first or line.lstrip().startswith("#"))
    if label.strip() and not (behind["clock"] or _LABEL.search(label) or is_titled):
        return None
    return is_whole or line.lstrip().startswith("#")


def _end_of_section(text: str, position: int, line: str) -> int:
    """Where another heading of the same depth or a higher one begins, of a heading in Markdown; else the end of the text."""
    own = _HEADING.match(line)
    while own and (position := text.find("\n", position) + 1):
        other = _HEADING.match(text, position)
        if other and len(other[1]) <= len(own[1]):
            return position
    return len(text) + 1


def _end_of_paragraph(text: str, position: int) -> int:
    blank = text.find("\n\n", position)
    return blank if blank >= 0 else len(text) + 1


def _day_of_anchor(text: str, dates: Sequence[CalendarDate], index: int, reference_day: date | None) -> date | None:
    written = dates[index]
    year = written.year
    if year is None and reference_day and written.day:
        year = year_of_day(written.month, written.day, reference_day, None, _weekday_beside(text, written.end))
    return date(year, written.month, written.day or 1) if year and is_date(year, written.month, written.day) else None


# The subtype of the graph's days. They are found by their date alone, never by a known name: the same words are another day a year later.
DAY = "day"
_LEAP_YEAR = 2000
_EVERY_YEAR = bounded("誕生日|記念日|命日|毎年|例年|生まれ|祝日|何の日")
_EVERY_YEAR_IN_ENGLISH = bounded(r"birthday|anniversary|(?<![a-z])born(?![a-z])|(?:every|each)[_ ]year|annually", re.IGNORECASE)
# Between the two days of a range.
TO = bounded(rf"(?:の?[{WEEKDAY_NAMES}]曜日?|\s?[(（][^)）]{{1,8}}[)）])?\s?(?:から|より|[〜～~–—-]|\bto\b|through|until|till)\s?")
_AND = bounded(r"(?:[とや、,・〜~～–-]|から|まで|か|または|及び|および|and|\s|[(（][^)）]*[)）])*")
# 10/17(金) determines the year: in three consecutive years it is another day of the week.
_WEEKDAY_BESIDE = bounded(rf"\s?(?:[(（]([{WEEKDAY_NAMES}])(?:曜日?)?[)）]|の?([{WEEKDAY_NAMES}])曜(?:日(?!曜)|(?=[にのはがもと、。]|\Z)))")


@dataclass(frozen=True, slots=True)
class NamedDay:
    """`text[start:end]` names a day or a month. `name` is its date as ISO writes it, `aliases` are further names of it."""

    type: ClassVar = "TimeUnit"
    subtype: ClassVar = DAY

    name: str
    aliases: tuple[str, ...]
    start: int
    end: int


class WrittenDates:
    """A text, read once for its calendar dates: `days` tells which days they are as of the day on which it was told."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.plain, self._places = normalized_with_places(text)
        self.dates = calendar_dates(self.plain)

    def anchors(self, told_on: date | None) -> Anchors:
        return anchors(self.plain, self.dates, told_on)

    def days(self, told_on: date | None, known_direction: Direction | None = None) -> Iterator[NamedDay]:
        """The days and months that the text names. `told_on`: the day on which it was told; where neither that nor an anchor is known, a date
        without a year has none. `known_direction`: whether it is to come, where that is known otherwise than from the sentence."""
        for day, written in self.days_in_plain(self.anchors(told_on), known_direction):
            start, end = self._places[day.start], self._places[day.end]
            others = [] if written.years_back is not None or written.joined else [self.text[start:end]]
            aliases = dict.fromkeys(name for name in (*day.aliases, *others) if name != day.name)
            yield replace(day, start=start, end=end, aliases=tuple(aliases))

    def days_in_plain(self, anchored: Anchors, known_direction: Direction | None = None) -> Iterator[tuple[NamedDay, CalendarDate]]:
        """The same with their places in `plain`, each with how it is written."""
        own_days = {start: day for start, _, day in anchored.governing}
        year = None
        for index, written in enumerate(self.dates):
            if written.start in own_days:
                year = own_days[written.start].year
            else:
                year = _year_of(self.plain, self.dates, index, anchored.at(written.start), known_direction, year)
            if (written.day is not None or year is not None) and is_date(year, written.month, written.day):
                yield NamedDay(*_names(written, year), written.start, written.end), written


def days(text: str, told_on: date | None, known_direction: Direction | None = None) -> Iterator[NamedDay]:
    """The days and months that a text names."""
    return WrittenDates(text).days(told_on, known_direction)


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
    return year_of_day(month, day, reference_day, ahead, _weekday_beside(text, end))


def _weekday_beside(text: str, end: int) -> int | None:
    beside = _WEEKDAY_BESIDE.match(text, end)
    return WEEKDAY_NAMES.index(beside[1] or beside[2]) if beside else None


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


def _names(written: CalendarDate, year: int | None) -> tuple[str, tuple[str, ...]]:
    """The name and the aliases of a date."""
    month, day = written.month, written.day
    if year is None:
        return f"{month}月{day}日", ()
    if day is None:
        return f"{year}-{month:02}", (f"{year}年{month}月",)
    return f"{year}-{month:02}-{day:02}", (f"{year}年{month}月{day}日", f"{month}月{day}日")


def year_of_day(month: int, day: int, today: date, direction: Direction | None, weekday: int | None = None) -> int | None:
    """The year of a day in a statement; None where there is no such day. `weekday`: the day of the week that follows it in the text."""
    days = _days_around(month, day, today)
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


def days_of_every_year(month: int, day: int, first_year: int, last_year: int) -> list[date]:
    """That day of each of these years that has it."""
    years = range(max(first_year, date.min.year), min(last_year, date.max.year - 1) + 1)
    return [date(year, month, day) for year in years if is_date(year, month, day)]


def _days_around(month: int, day: int, today: date) -> list[date]:
    """That day in each year around today that has it, the earliest first: the 29th of February exists within eight years."""
    reach = _LEAP_YEARS_REACH if (month, day) == (2, 29) else 1
    return days_of_every_year(month, day, today.year - reach, today.year + reach)
