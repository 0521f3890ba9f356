"""Calendar dates written in running text, in figures, Japanese and English: 2025年10月17日, 10/17, 10月17日〜19日, October 17-19.

Stricter than the expressions of an argument: 1/2の量 is a half, 2026.10.17 behind "version" is no date, 10月17日間 and October 17 people are counts,
May and March may be verbs.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from memory_mcp.dates.numerals import ERAS, KANJI_NUMBER, YEAR_IN_KANJI, YEARS_BACK, number_of, western_year
from memory_mcp.dates.spans import MONTHS
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


_COUNT = rf"(?:\d{{1,2}}|{KANJI_NUMBER})"
_YEAR = (
    rf"(?:(?P<year>[12１２]\d{{3}}|{YEAR_IN_KANJI})年|(?P<era>{'|'.join(ERAS)})(?P<of_era>{_COUNT}|元)年|(?P<on>{'|'.join(YEARS_BACK)})の?)"
)
_IN_FIGURES = bounded(r"\d[/／.-]\d")
_DATE = bounded(
    r"(?<!\d)(?P<y>[12１２]\d{3})[-/／](?P<m>\d{1,2})[-/／](?P<d>\d{1,2})(?!\d)"
    r"|(?<![A-Za-z0-9_.．-])(?P<dotted>(?:19|20)\d{2}\.\d{1,2}\.\d{1,2})(?![A-Za-z0-9_-]|\.[A-Za-z0-9])"
    rf"|{_YEAR}(?P<month>{_COUNT})月(?:(?P<day>{_COUNT})日(?!間)|(?![\d間号]))"
    rf"|(?:(?<=毎年)|(?<=例年)|(?<![\d年一二三四五六七八九十]))(?P<month_alone>{_COUNT})月(?P<day_alone>{_COUNT})日(?!間)"
    r"|(?<![\d/／.,])(?P<before_slash>\d{1,2})[/／](?P<after_slash>\d{1,2})(?P<follows>\s?[(（][月火水木金土日]|から|まで|以降|締|頃|ごろ|です|だ|[にのはもか、。]|\Z"
    r"|(?=[〜～~–-]\d{1,2}(?:日|[/／]\d{1,2}|[にのはもか、。(（]|から|まで|です|\Z|\s(?:[^\x00-\x7f]|(?:in|at|for)\s))))"
)
# Such a number is the version of a program.
_VERSION = bounded(
    r"(?:\b(?:v|ver\.?|version|release|build)|バージョン|リリース|版|[=<>~^@]|\b(?-i:[a-z][\w.]*-[a-z]\w*))\s?\Z", re.IGNORECASE
)
# 1/2の量 is a half, and 1/2(金) and 1/2まで are days.
_SURELY_A_DAY = bounded(r"\s?[(（]|から|まで|以降|締|頃|ごろ")
_LARGEST_DENOMINATOR = 10
_VERSION_REACH = 20
# 17日〜19日, 17日と18日, 17日(金)、18日(土): the month is that of the day before. 17日から20日かかった and 17日と2日後 are so many days.
_BESIDE = r"(?:の?[月火水木金土日]曜日?|\s?[(（][月火水木金土日](?:曜日?)?(?:・祝)?[)）])?"
_COUNTED = "間|前|後|目|め|分|ぶり|振り|ほど|くらい|ぐらい|程|以上|以内|未満|坊主|月"
_FURTHER = bounded(
    rf"{_BESIDE}\s?(?:(?P<from>から|より)|[〜～~–—-]|と|及び|および|(?P<list>[、，,・や]))\s?(?P<day>{_COUNT})日(?!{_COUNTED})"
    r"(?(from)(?=まで|に(?!わた|及)|の|は|です|では|[、。,)）〜～(（]|\s|\Z))(?(list)(?=まで|から|です|[にのはもがとでかや、。,・)）〜～(（]|\s|\Z))"
)
_FURTHER_IN_FIGURES = bounded(rf"{_BESIDE}\s?[〜～~–-]\s?(?P<day>\d{{1,2}})(?:日(?!{_COUNTED})|(?![\d/／:.年月日]))")
# The end of 11/5-11/7 is a day whatever follows it.
_END_IN_FIGURES = bounded(r"[〜～~–-](?P<month>\d{1,2})[/／](?P<day>\d{1,2})(?![\d/／])")
# English.
_FULL = "january|february|april|june|july|august|september|october|november|december"
_MONTH = (
    rf"(?:(?P<MONTH>(?i:{_FULL})|(?:Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)(?![A-Za-z])|JAN|FEB|MAR|APR|JUN|JUL|AUG|SEPT?|OCT|NOV|DEC)"
    r"|(?P<VERB>March|May|MARCH|MAY))(?![A-Za-z])\.?"
)
_DAY_NUMBER = r"\d{1,2}(?:st|nd|rd|th)?"
_NUMBER_ENDS = r"(?![A-Za-z0-9_%$€£]|[.,/:]\d|['’]s\d)"
_ENGLISH_YEAR = r"(?:19|20)\d{2}(?!\d)"
# What follows a number that is no count: 17 people and 3 miles are no days.
NO_COUNT = (
    r"(?=\s*(?:\Z|[.,;:!?)\]\"'’–—-]|(?:is|was|are|were|will|at|in|on|for|with|from|to|and|or|but|we|[Ii]|he|she|it|they|the|a|an|my|our|his|her|their"
    r"|there|until|till|through|as|because|when|while|after|before|this|last|next|every|each|(?:19|20)\d\d)\b|[^\x00-\x7f]))"
)
_FURTHER_DAY = r"(?:\s?[-–~〜]\s?|\s(?:to|through|until|till|and|&)\s|,\s(?:and\s)?)(?:the\s)?"
_DAY_NUMBERS = bounded(_DAY_NUMBER)
_MONTH_BEGINNINGS = tuple({name[:3] for name in MONTHS})


def _month(index: int) -> str:
    return _MONTH.replace("MONTH>", f"month{index}>").replace("VERB>", f"verb{index}>")


_ENGLISH_DATE = bounded(
    rf"(?<![A-Za-z0-9_@#])(?:{_month(1)}\s{{1,2}}(?:the\s)?(?P<day1>{_DAY_NUMBER}){_NUMBER_ENDS}(?P<more1>(?:{_FURTHER_DAY}{_DAY_NUMBER}{_NUMBER_ENDS}{NO_COUNT})*)(?:,?\s(?P<year1>{_ENGLISH_YEAR}))?"
    rf"|{_month(2)},?\s(?P<year2>{_ENGLISH_YEAR})"
    rf"|(?<![.:,/-])(?P<day3>{_DAY_NUMBER})(?P<more3>(?:{_FURTHER_DAY}{_DAY_NUMBER})*)\s(?:of\s)?{_month(3)}(?:,?\s(?P<year3>{_ENGLISH_YEAR}))?)"
)
_DIGIT = bounded("[0-9]")
_NO_COUNT_FOLLOWS = bounded(NO_COUNT)
_ORDINAL_ENDING = bounded("st|nd|rd|th")


def calendar_dates(text: str) -> list[CalendarDate]:
    """The calendar dates of a text, in its order."""
    in_figures = [*_dates_in_figures(text)] if "月" in text or _IN_FIGURES.search(text) else []
    return sorted([*in_figures, *_english_dates(text)], key=lambda date: date.start)


def _dates_in_figures(text: str) -> Iterator[CalendarDate]:
    end_of_range = 0
    for match in _DATE.finditer(text):
        parts = _parts_of(match)
        if parts is None or match.start() < end_of_range:
            continue
        end = match.start("follows") if match["follows"] is not None else match.end()
        date = CalendarDate(*parts, match.start(), end, YEARS_BACK.get(match["on"]) if match["on"] else None)
        yield date
        if date.day:
            yield from _further_days(text, date, in_figures=not match[0].endswith("日"))
        if match["before_slash"] and (last := _END_IN_FIGURES.match(text, end)):
            end_of_range = last.end()
            yield CalendarDate(None, int(last["month"]), int(last["day"]), last.start("month"), end_of_range)


def _further_days(text: str, date: CalendarDate, *, in_figures: bool) -> Iterator[CalendarDate]:
    """The later days of the same month that follow a day."""
    further = _FURTHER_IN_FIGURES if in_figures else _FURTHER
    while (match := further.match(text, date.end)) and number_of(match["day"]) > (date.day or 0):
        date = date._replace(day=number_of(match["day"]), start=match.start("day"), end=match.end(), joined=True)
        yield date


def _parts_of(match: re.Match[str]) -> tuple[int | None, int, int | None] | None:
    """Year, month and day as far as they are written; None where the figures are a fraction or a version."""
    if match["y"]:
        return int(match["y"]), int(match["m"]), int(match["d"])
    if match["dotted"]:
        if _VERSION.search(match.string[max(match.start() - _VERSION_REACH, 0) : match.start()]):
            return None
        year, month, day = (int(number) for number in match["dotted"].split("."))
        return year, month, day
    if match["before_slash"]:
        month, day = int(match["before_slash"]), int(match["after_slash"])
        is_fraction = month < day <= _LARGEST_DENOMINATOR and not _SURELY_A_DAY.match(match["follows"])
        return None if is_fraction else (None, month, day)
    if match["month_alone"]:
        return None, number_of(match["month_alone"]), number_of(match["day_alone"])
    western = western_year(match["era"], match["of_era"]) if match["era"] else number_of(match["year"]) if match["year"] else None
    return western, number_of(match["month"]), number_of(match["day"]) if match["day"] else None


def _english_dates(text: str) -> Iterator[CalendarDate]:
    if not _may_have_english_date(text):
        return
    for match in _ENGLISH_DATE.finditer(text):
        form = next(form for form in (1, 2, 3) if match[f"month{form}"] or match[f"verb{form}"])
        year = int(match[f"year{form}"]) if match[f"year{form}"] else None
        may_be_verb = match[f"verb{form}"] and not year and not _ORDINAL_ENDING.search(match[0])
        if may_be_verb and not _NO_COUNT_FOLLOWS.match(text, match.end()):
            continue
        month = MONTHS[(match[f"month{form}"] or match[f"verb{form}"]).lower()]
        if form == 2:
            yield CalendarDate(year, month, None, match.start(), match.end())
        else:
            yield from _days_of_month(match, form, year, month)


def _may_have_english_date(text: str) -> bool:
    """A cheap check: most texts have no number."""
    if not _DIGIT.search(text):
        return False
    plain = text.lower()
    return any(month in plain for month in _MONTH_BEGINNINGS)


def _days_of_month(match: re.Match[str], form: int, year: int | None, month: int) -> Iterator[CalendarDate]:
    """The days that share a month: the span of the day next to the month includes it."""
    first, more = match.span(f"day{form}"), match.span(f"more{form}")
    others = [other.span() for other in _DAY_NUMBERS.finditer(match.string, *more)]
    if form == 3 and others:
        spans = [first, *others[:-1], (others[-1][0], match.end())]
    else:
        spans = [(match.start(), match.end() if not others else first[1]), *others]
    for (start, end), number in zip(spans, [first, *others], strict=True):
        day = int(re.sub("[a-z]", "", match.string[slice(*number)]))
        yield CalendarDate(year, month, day, start, end, joined=(start, end) != spans[0])
