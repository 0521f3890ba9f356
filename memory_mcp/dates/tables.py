"""The tables of date expressions: dates of the calendar, dates counted from today, weeks and days of the week, seasons, vague times.

A row is a kind, a pattern, what a match may mean as seen from today, the latest first, and examples for the grammar in docs/dates.md.
`needs`: words of which a text must have one; without them it needs a year. Of rows that match the same text the earlier one counts, so
longer readings come first.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import islice
from typing import TypeVar

from memory_mcp.dates.spans import (
    COUNT,
    MONTHS,
    MONTHS_BACK,
    NUMBER,
    ONE_DAY,
    SATURDAY,
    UNITS,
    WEEKDAY_NAMES,
    WEEKDAYS,
    YEARS_BACK,
    YEARS_CONSIDERED,
    DaySpan,
    day_of,
    each_year,
    month_of,
    months_back,
    named_group,
    nth_weekday,
    number_of,
    same_day_of_month,
    week_of,
    year_of,
)
from memory_mcp.dates.tense import EVENTS, PLANNED
from memory_mcp.patterns import bounded

# Raises ValueError or OverflowError where there is no such day.
Resolver = Callable[[re.Match[str], date], Iterable[DaySpan]]
_Value = TypeVar("_Value")


@dataclass(frozen=True, eq=False, slots=True)
class Expression:
    """One kind of date expression.

    `recurs_after`: of a word such as 金曜 or 17日, in how many days from today the latest such day is the next one. `counted`: the single day
    that a count of weeks, months or years means as a moment. `is_alone`: a day of the week or month, which only a sentence dates.
    """

    kind: str
    pattern: re.Pattern[str]
    resolve: Resolver
    examples: tuple[str, ...]
    needs: tuple[str, ...] = ()
    recurs_after: tuple[int, ...] = ()
    counted: Resolver | None = None
    is_alone: bool = False
    characters: frozenset[str] = frozenset()


def row(
    kind: str,
    pattern: str,
    resolve: Resolver,
    *examples: str,
    needs: str = "",
    recurs_after: tuple[int, ...] = (),
    counted: Resolver | None = None,
    is_alone: bool = False,
) -> Expression:
    words = tuple(needs.split())
    # Of each word the character that the fewest texts have: kanji, and of letters the last ones of the alphabet.
    characters = frozenset(map(max, words))
    return Expression(kind, bounded(pattern), resolve, examples, words, recurs_after, counted, is_alone, characters)


def numbered(patterns: Iterable[str], prefix: str) -> str:
    """One pattern for all, with a group for each: its prefix and its index."""
    return "(?:" + "|".join(f"(?P<{prefix}{index}>{pattern})" for index, pattern in enumerate(patterns)) + ")"


def chosen(match: re.Match[str], prefix: str, values: Iterable[_Value]) -> _Value:
    """Which of `numbered` patterns matched."""
    return next(value for index, value in enumerate(values) if match[f"{prefix}{index}"] is not None)


NEAR, WEEKDAY_KIND, WEEK, FROM_NOW = "near days", "days of the week", "weeks and weekends", "months and years from now"
DAY, MONTH, YEAR, QUARTER = "days", "months", "years and decades", "quarters and halves of a year"
FISCAL, NTH, AGO = "fiscal years, which begin in April", "days counted within a month, and weeks of a day", "so long ago"
LATELY_KIND, SEASON = "up to now, with today", "seasons"
TO_COME, VAGUE = "to come, as an argument", "vague times, as an argument"
CURRENT = "parts of the current week, month or year, as an argument"
WEEKDAY_ALONE_KIND = "days of the week and weekends, as an argument"

# Whole names only: what is sold at a market 5 times is not about March.
MONTH_NAME = rf"({'|'.join(sorted(MONTHS, key=len, reverse=True))})(?![a-z])\.?"
_MONTHS_NEED = "jan feb mar apr may jun jul aug sep oct nov dec"
_DAY = r"(\d{1,2})(?:st|nd|rd|th)?"
_ENGLISH_BACK = {"last": 1, "previous": 1, "this": 0, "the": 0, "next": -1}
_NEAR_MONTHS, _NEAR_YEARS = "|".join(MONTHS_BACK), "|".join(YEARS_BACK)
_FEW_COUNT = 6


def _numbers(match: re.Match[str]) -> list[int]:
    return [int(group) for group in match.groups()]


def _day_in_each_year(today: date, month: int, day: int) -> Iterator[DaySpan]:
    return each_year(today, lambda year: day_of(date(year, month, day)))


def _month_in_each_year(today: date, month: int) -> Iterator[DaySpan]:
    return each_year(today, lambda year: month_of(year, month))


def _in_year(year: int, month: int, day: str | None) -> DaySpan:
    return day_of(date(year, month, int(day))) if day else month_of(year, month)


def _decade(tens: int) -> DaySpan:
    """The nineties, of 199 as of 9."""
    tens += 190 if tens < 10 else 0
    return date(tens * 10, 1, 1), date(tens * 10 + 10, 1, 1)


def _american(month: int, day: int, year: int) -> DaySpan:
    """10/17/2025, and 17/10/2025 where nothing else can be meant."""
    return day_of(date(year, day, month) if month > 12 else date(year, month, day))


def _english_day(match: re.Match[str], today: date) -> Iterable[DaySpan]:
    """A day of a year, else of `last` October, else of each of the last years."""
    month, day = MONTHS[match["month"]], int(match["day"])
    if match["year"]:
        return [day_of(date(int(match["year"]), month, day))]
    days = _day_in_each_year(today, month, day)
    return islice((span for span in days if span[0] < today), 1) if match["last"] else days


def _months_from_to(year: int, first: int, last: int) -> DaySpan:
    return month_of(year, first)[0], month_of(year + (1 if last < first else 0), last)[1]


# Quarters, halves of a year, and fiscal years, which begin in April.

_QUARTER_ORDINALS = "first second third fourth".split()
_QUARTERS_BACK = {"前": 1, "先": 1, "last": 1, "previous": 1, "来": -1, "next": -1}
_FISCAL_MONTH = 4
_FISCAL_YEARS_BACK = {"一昨": 2, "昨": 1, "去": 1, "前": 1, "今": 0, "本": 0, "来": -1, "再来": -2}
_PART_OF_FISCAL_YEAR = "(?P<last>末)|(?P<first>初め?|始め|はじめ|頭)"


def _quarter(year: int, which: str) -> DaySpan:
    """`which` is a digit or an English ordinal."""
    number = int(which) if which.isdecimal() else _QUARTER_ORDINALS.index(which) + 1
    return _months_from_to(year, number * 3 - 2, number * 3)


def _quarter_back(today: date, back: int) -> DaySpan:
    """The quarter of today, or `back` quarters before it."""
    passed = (today.month - 1) % 3
    return months_back(today, passed + 3 * back)[0], months_back(today, passed + 3 * back - 2)[1]


def _fiscal_year(match: re.Match[str], today: date) -> list[DaySpan]:
    """A fiscal year; its 末 is the March, its 初め the April."""
    current = today.year if today.month >= _FISCAL_MONTH else today.year - 1
    year = int(match["year"]) if match["year"] else current - _FISCAL_YEARS_BACK[match["named"]]
    if match["last"] or match["first"]:
        return [_part_of_fiscal_year(match, year)]
    return [(date(year, _FISCAL_MONTH, 1), date(year + 1, _FISCAL_MONTH, 1))]


def _part_of_fiscal_year(match: re.Match[str], year: int) -> DaySpan:
    return month_of(year + 1, _FISCAL_MONTH - 1) if match["last"] else month_of(year, _FISCAL_MONTH)


# Days that are counted within a month.

_FULL_MONTH_NAME = MONTH_NAME.replace("(", "(?:", 1)
_ORDINALS = "first second third fourth fifth sixth seventh eighth ninth tenth".split()
_ENGLISH_MONTH = rf"(?:(?P<name>{_FULL_MONTH_NAME})(?:,? (?:of )?(?P<year>\d{{4}}))?|(?P<near>last|this|next|the) month)"
_WHOLE_DAY, _WEEKEND = "day", "weekend"


def _months(match: re.Match[str], today: date) -> Iterable[DaySpan]:
    """The month of a match, or that month of each of the last years."""
    groups = match.groupdict()
    if near := groups["near"]:
        return [months_back(today, MONTHS_BACK[near] if near in MONTHS_BACK else _ENGLISH_BACK[near])]
    month = int(groups["month"]) if groups.get("month") else MONTHS[groups["name"].rstrip(".")]
    return [month_of(int(groups["year"]), month)] if groups["year"] else _month_in_each_year(today, month)


def _nth(months: Iterable[DaySpan], what: str, nth: int) -> Iterator[DaySpan]:
    """The `nth` day, day of the week or weekend of each month; a weekend is counted by its Saturday."""
    for first, after in months:
        if what == _WHOLE_DAY:
            yield day_of(after - ONE_DAY if nth < 0 else first.replace(day=nth))
        else:
            counted = nth_weekday(first.year, first.month, SATURDAY if what == _WEEKEND else WEEKDAYS[what], nth)
            yield counted, counted + (2 if what == _WEEKEND else 1) * ONE_DAY


def _english_nth(match: re.Match[str], today: date) -> Iterator[DaySpan]:
    count = -1 if match["nth"] == "last" else _ORDINALS.index(match["nth"]) + 1
    what = match["what"] or _WHOLE_DAY
    return _nth(_months(match, today), what if what in (_WHOLE_DAY, _WEEKEND) else what[:3], count)


def _japanese_nth(match: re.Match[str], today: date) -> Iterator[DaySpan]:
    count = 1 if match["first"] else -1 if match["last"] else number_of(match["nth"])
    what = match["what"] or match["weekday"] or (_WEEKEND if match["whole"] == "週末" else _WHOLE_DAY)
    return _nth(_months(match, today), what, count)


def _week_of_day(match: re.Match[str], today: date) -> Iterator[DaySpan]:
    month = int(match["month"]) if match["month"] else MONTHS[match["name"].rstrip(".")]
    number = int(match["day"] or match["number"])
    return each_year(today, lambda year: week_of(date(year, month, number)))


# fmt: off
NTH_DAYS = [
    row(NTH, r"(?<![a-z])(?:the )?(?P<nth>first|second|third|fourth|fifth|last) (?P<what>(?:mon|tues|wednes|thurs|fri|satur|sun)day|day"
        r"|weekend) "
        rf"(?:of|in) {_ENGLISH_MONTH}", _english_nth, "the first Monday of October", "last day of September",
        "the last weekend of last month",
        needs="first second third fourth fifth last"),
    row(NTH, rf"(?<![a-z])(?:the )?(?P<nth>{'|'.join(_ORDINALS)})(?P<what>) of {_ENGLISH_MONTH}", _english_nth, "the third of October",
        needs="of"),
    row(NTH, rf"(?:(?:(?P<year>\d{{4}})年)?(?P<month>\d{{1,2}})月|(?P<near>{_NEAR_MONTHS}))の?"
        rf"(?:第(?P<nth>[1-5一二三四五])の?(?P<what>[{WEEKDAY_NAMES}])曜日?"
        rf"|(?:(?P<first>最初)|(?P<last>最後))の(?:(?P<whole>日(?!曜)|週末)|(?P<weekday>[{WEEKDAY_NAMES}])曜日?))",
        _japanese_nth, "10月の第2月曜", "9月最後の日曜", "先月の最後の日", needs="第 最初 最後"),
    row(NTH, rf"(?<![a-z])(?:the )?week of (?P<name>{_FULL_MONTH_NAME}) (?P<number>\d{{1,2}})(?:st|nd|rd|th)?(?!\d)"
        r"|(?<!\d)(?P<month>\d{1,2})月(?P<day>\d{1,2})日の週(?![末明])", _week_of_day, "the week of October 6", "10月6日の週", needs="week 週"),
]
FULL_DATES = [
    row(DAY, r"(?<!\d)(\d{4})[-/.年](\d{1,2})[-/.月](\d{1,2})(?!\d)日?", lambda m, t: [day_of(date(*_numbers(m)))],
        "2025-10-17", "2025/10/17", "2025年10月17日", "令和7年10月17日", "大正10年10月17日"),
    row(MONTH, r"(?<!\d)(\d{4})(?:年の?(?=\d{1,2}月)|[-/](?=\d{1,2}(?![-/\d])))(\d{1,2})(?!\d)月?", lambda m, t: [month_of(*_numbers(m))],
        "2025-10", "2025年10月", "25年10月"),
]
YEARS = [
    row(FISCAL, rf"(?:(?<!\d)(?P<year>\d{{4}})|(?P<named>一昨|再来|[昨去前今本来]))年度の?(?:{_PART_OF_FISCAL_YEAR})?", _fiscal_year,
        "2024年度", "今年度", "昨年度末", needs="年度"),
    row(YEAR, r"(?<!\d)((?:19|20)\d|[2-9])0(?:年代|s(?![a-z]))", lambda m, t: [_decade(int(m[1]))], "1990年代", "80年代", "the 1990s",
        needs="年代 0s"),
    row(YEAR, r"(?<!\d)(\d{4})年(?!\d)|\A(\d{4})\Z", lambda m, t: [year_of(int(m[1] or m[2]))], "2024年", "2024"),
]
DAYS_AND_MONTHS = [
    row(DAY, r"(再?来年)の?(\d{1,2})月(?:の?(\d{1,2})日(?!間))?(?![\d間号])", lambda m, t: [_in_year(t.year - YEARS_BACK[m[1]], int(m[2]), m[3])],
        "来年の4月8日", "再来年の4月", needs="来年"),
    row(DAY, r"(?<!\d)(\d{1,2})月(\d{1,2})日", lambda m, t: _day_in_each_year(t, int(m[1]), int(m[2])), "10月17日", "十月十七日", needs="月"),
    row(DAY, r"(?<![\d/])(\d{1,2})/(\d{1,2})(?=[のにはもかま、(頃ご以~〜]|\Z)", lambda m, t: _day_in_each_year(t, int(m[1]), int(m[2])),
        "10/17", needs="/"),
    row(DAY, r"(?<![a-z])(?P<near>last|this) month(?:'s| on)?(?: the)? (?P<day>\d{1,2})(?:st|nd|rd|th)"
        r"|(?<![a-z\d])(?:the )?(?P<number>\d{1,2})(?:st|nd|rd|th) of (?P<which>last|this) month",
        lambda m, t: [day_of(months_back(t, _ENGLISH_BACK[m["near"] or m["which"]])[0].replace(day=int(m["day"] or m["number"])))],
        "last month on the 17th", "the 17th of last month", needs="month"),
    row(DAY, rf"({_NEAR_MONTHS})の?(\d{{1,2}})日", lambda m, t: [day_of(months_back(t, MONTHS_BACK[m[1]])[0].replace(day=int(m[2])))],
        "先月の17日", "来月3日", needs="月"),
    row(MONTH, r"(?<!\d)(\d{1,2})月(?![\d間号])", lambda m, t: _month_in_each_year(t, int(m[1])), "10月", "十月", needs="月"),
    row(DAY, rf"(?<![a-z])(?P<last>last\s+)?{named_group(MONTH_NAME, 'month')}\s+(?:the\s+)?{named_group(_DAY, 'day')}(?!\d)"
        r"(?:,?\s+(?P<year>\d{4}))?", _english_day, "October 17, 2025", "October 17", "Oct 17th", "last October 17", needs=_MONTHS_NEED),
    row(DAY, rf"(?<![a-z\d])(?:the\s+)?{named_group(_DAY, 'day')}(?:\s+of)?(?P<last>\s+last)?\s+{named_group(MONTH_NAME, 'month')}(?![a-z])"
        r"(?:,?\s+(?P<year>\d{4}))?", _english_day, "17 October 2025", "17 Oct", "the 17th of October", "the 17th of last October",
        needs=_MONTHS_NEED),
    row(MONTH, rf"(?<![a-z]){MONTH_NAME},?\s+(?:of\s+)?(\d{{4}})", lambda m, t: [month_of(int(m[2]), MONTHS[m[1]])], "October 2025",
        needs=_MONTHS_NEED),
    row(MONTH, rf"(?<![a-z])(?<!and )(?<!to )(?<!until )(?<!through ){MONTH_NAME}(?:,| of| in)? (last|this|next) year(?![a-z])",
        lambda m, t: [month_of(t.year - _ENGLISH_BACK[m[2]], MONTHS[m[1]])], "October last year", needs="year"),
    row(MONTH, rf"(?<![a-z])(last|this|next) year(?:'s|’s| in)? {MONTH_NAME}(?![a-z])",
        lambda m, t: [month_of(t.year - _ENGLISH_BACK[m[1]], MONTHS[m[2]])], "last year's October", needs="year"),
    row(MONTH, rf"(?<![a-z])last\s+{MONTH_NAME}(?![a-z])", lambda m, t: [months_back(t, (t.month - MONTHS[m[1]] - 1) % 12 + 1)],
        "last October", needs="last"),
    row(MONTH, rf"(?<![a-z])(this|next)\s+(?:(?!mar|may){MONTH_NAME}|(march|mar|may)(?=\s*(?:[?.,!;:]|\Z)))",
        lambda m, t: [month_of(t.year + (m[1] == "next" and MONTHS[m[2] or m[3]] <= t.month), MONTHS[m[2] or m[3]])], "this October",
        "next May", needs="this next"),
]
QUARTERS = [
    row(QUARTER, r"(?<![a-z\d])(?:q([1-4])|(first|second|third|fourth) quarter)(?:\s+(?:of\s+)?|/|-)?(\d{4})(?!\d)",
        lambda m, t: [_quarter(int(m[3]), m[1] or m[2])], "Q1 2024", "first quarter of 2024", needs="q"),
    row(QUARTER, r"(?<!\d)(\d{4})年?(?:の|\s*)(?:q|第)([1-4])(?:四半期|(?![\w週]))", lambda m, t: [_quarter(int(m[1]), m[2])],
        "2024年第1四半期", "2024 Q1", needs="q 第"),
    row(QUARTER, r"(?<![a-z\d])h(?P<a>[12])\s?(?P<b>\d{4})(?!\d)|(?<!\d)(?P<c>\d{4})\s?h(?P<d>[12])(?![a-z\d])",
        lambda m, t: [_months_from_to(int(m["b"] or m["c"]), int(m["a"] or m["d"]) * 6 - 5, int(m["a"] or m["d"]) * 6)], "H1 2025",
        "2025H1", needs="h1 h2"),
    row(QUARTER, "([今前先来])四半期|(?<![a-z])(last|previous|this|next) quarter(?![a-z])",
        lambda m, t: [_quarter_back(t, _QUARTERS_BACK.get(m[1] or m[2], 0))], "前四半期", "last quarter", needs="四半期 quarter"),
]
MONTHS_IN_QUESTIONS = [
    row(MONTH, rf"(?<![a-z])(?:between|from) {MONTH_NAME}\s+(?:and|to|until|till|through) {MONTH_NAME}",
        lambda m, t: each_year(t, lambda year: _months_from_to(year, MONTHS[m[1]], MONTHS[m[2]])), "between May and July",
        needs="between from"),
    row(MONTH, rf"(?<![a-z])(?:in|during|since|around|about|early|mid|late|for(?! (?:april|may|june|august)))[ -]{MONTH_NAME}(?![a-z])",
        lambda m, t: _month_in_each_year(t, MONTHS[m[1]]), "in October", "since May", needs=_MONTHS_NEED),
]
YEAR_IN_QUESTIONS = row(YEAR, r"(?<![a-z])(?:in|since|during)\s+((?:19|20)\d{2})(?!\d)", lambda m, t: [year_of(int(m[1]))], "in 2024",
    needs="in since")
FIGURES_ALONE = [
    row(DAY, r"\A(\d{4})(\d\d)(\d\d)\Z", lambda m, t: [day_of(date(*_numbers(m)))], "20251017"),
    row(DAY, r"(?<!\d)(\d{1,2})[/-](\d{1,2})[/-](\d{4})(?!\d)", lambda m, t: [_american(*_numbers(m))], "10/17/2025", "10-17-2025",
        needs="/ -"),
    row(DAY, r"(?<!\d)(\d{1,2})\.(\d{1,2})\.(\d{4})(?!\d)", lambda m, t: [day_of(date(*_numbers(m)[::-1]))], "17.10.2025", needs="."),
    row(DAY, r"(?<![\d/])(\d{1,2})/(\d{1,2})(?![\d/])", lambda m, t: _day_in_each_year(t, int(m[1]), int(m[2])), "10/17 9:00", needs="/"),
]
FISCAL_YEAR_ALONE = row(FISCAL, f"年度(?:{_PART_OF_FISCAL_YEAR})",
    lambda m, t: each_year(t, lambda year: _part_of_fiscal_year(m, year - 1 if m["last"] else year)), "年度末", "年度初め", needs="年度")
CALENDAR_ALONE = [
    row(QUARTER, r"(?:第|q)([1-4])(?!週)(?:四半期)?|(?:the )?(first|second|third|fourth) quarter(?=\Z)",
        lambda m, t: [_quarter(t.year, m[1] or m[2])], "第1四半期", "Q3", needs="第 q"),
    row(YEAR, r"(?<!\d)((?:19|20)\d{2})(?!\d)", lambda m, t: [year_of(int(m[1]))], "late 2024"),
    row(MONTH, rf"(?<![a-z]){MONTH_NAME}(?![a-z])", lambda m, t: _month_in_each_year(t, MONTHS[m[1]]), "October", "early October",
        needs=_MONTHS_NEED),
]
# fmt: on

# A day of the month alone. 火・水・木の三日, 丸三日 and 三日に一度 count days.

_COUNTED_DAYS = (
    rf"(?:(?:[{WEEKDAY_NAMES}](?:曜日?)?[・、,と/]?){{2,}}の?(?:週に?)?|[週月年]に|(?<![今先来])週|丸|まる|その|最[初後]の|残り|のこり|(?<![のた])あと|たった|わずか|僅か|ほんの)"
    r"\d{1,2}日|(?<![\dと、・や])\d{1,2}日とも(?!に)"
)
# What follows a date. A verb, で or a unit follows a count: 3日寝かせる, 3日で届く, 1日2リットル.
_COUNTED_THINGS = (
    r"[\d一二三四五六七八九十数]+(?:晩|食|[度回](?!目)|遍|時間|杯|錠|粒|個|本(?!番)|枚|リットル|(?:m?l|k?g)(?![a-z])|ページ|歩)"
)
_AFTER_A_DAY = (
    rf"\Z|[^\w\s]|\s(?!{_COUNTED_THINGS})|[a-z]|に(?!わた|渡|及|{_COUNTED_THINGS})"
    r"|は(?!かか|も[つちっ]|持|要|必要)|も(?!すれ|し[たなて]|すると|かか|あれ|あっ|経|た[っつて]|待|続|要|休|寝)|が(?!経|たっ|たつ|かか|かり|必要|まん)"
    r"|と(?!持|もた|経|たた|かから)|か(?![かけ])|を(?!要)|の(?!ん)|まで|や(?![すっらり])|へ|より|だ(?!け)|で[すし]|って|なら|らしい|みたい|[よね](?=\W|\Z)"
    r"|頃|ごろ|ころ|あたり|辺り|前後|過ぎに|以降|以来|現在|時点|当日|付|いっぱい|中[にはのま]|祝"
    rf"|[{WEEKDAY_NAMES}]曜|お?[朝昼夕夜晩]|午[前後]|深夜|真夜中|未明|早朝|正午|終日|\d{{1,2}}(?:時(?!間)|:\d\d)"
    rf"|{PLANNED}|(?:{EVENTS})(?=[がのはもで]|[^\w]|\Z)"
)
# What follows a number that is no count: 17 people and 3 miles are no days.
NO_COUNT = (
    r"(?=\s*(?:\Z|[.,;:!?)\]\"'’–—-]|(?:is|was|are|were|will|at|in|on|for|with|from|to|and|or|but|we|[Ii]|he|she|it|they|the|a|an|my|our"
    r"|his|her|their"
    r"|there|until|till|through|as|because|when|while|after|before|this|last|next|every|each|(?:19|20)\d\d)\b|[^\x00-\x7f]))"
)


def _day_of_month(match: re.Match[str], today: date) -> Iterator[DaySpan]:
    """The latest such day; none for a count."""
    number = match[1] or match[2]
    for back in range(12 if number else 0):
        try:
            latest = months_back(today, back)[0].replace(day=int(number))
        except ValueError:
            continue
        if latest <= today:
            yield day_of(latest)
            return


DAY_OF_MONTH_ALONE = row(
    DAY,
    rf"{_COUNTED_DAYS}|(?<!\d)(\d{{1,2}})日(?=(?:(?:[〜~–、,・とやか-]|から)\s?\d{{1,2}}日){{0,9}}+(?:{_AFTER_A_DAY}))"
    rf"|(?<![a-z\d])(?:the )?(\d{{1,2}})(?:st|nd|rd|th){NO_COUNT}",
    _day_of_month,
    "17日",
    "the 17th",
    needs=" ".join([*(f"{digit}日" for digit in range(10)), "1st", "2nd", "3rd", *(f"{digit}th" for digit in range(10))]),
    recurs_after=(30, 61),
    is_alone=True,
)

# Dates counted from today.

_HERE = "(?:ここ|この|過去|直近|最近)の?"
_JAPANESE_UNIT = "(?:(?P<{0}>[日週年])間?|[ヶケかカ箇](?P<{0}m>月)間?)"
_UNIT = r"(?P<{}>day|night|week|fortnight|month|year)s?"
_ABOUT_THEN = {"year": 15, "month": 3, "week": 1}
_NUMBER, _COUNT = f"(?:{NUMBER[1:-1]})", f"(?:{COUNT[1:-1]})"


def _around(day: date, days: int) -> DaySpan:
    return day - timedelta(days=days), day + timedelta(days=days + 1)


def _until_today(match: re.Match[str], today: date) -> list[DaySpan]:
    """The last so many units, up to and with today."""
    groups = match.groupdict()
    unit = next(value for name, value in groups.items() if name.startswith("u") and value)
    count = next((value for name, value in groups.items() if name.startswith("n") and value), "1")
    if count == "半":
        unit, counted = "月", 6
    else:
        counted = _FEW_COUNT if count in ("数", "few", "several") else 2 if count.startswith("couple") else number_of(count)
    return [UNITS[unit](today + ONE_DAY, counted, rolling=True)]


def _then(today: date, unit: str, back: int, *, exactly: bool) -> DaySpan:
    """This very day so many weeks, months or years ago, or about then."""
    day = today - timedelta(days=7 * back) if unit == "week" else same_day_of_month(today, back * (12 if unit == "year" else 1))
    return day_of(day) if exactly else _around(day, _ABOUT_THEN[unit])


def _this_day(match: re.Match[str], today: date) -> list[DaySpan]:
    if match["unit"]:
        return [_then(today, match["unit"], 1, exactly=False)]
    unit, back = {"先月": ("month", 1), "先週": ("week", 1), "来週": ("week", -1)}.get(match["then"]) or ("year", YEARS_BACK[match["then"]])
    return [_then(today, unit, back, exactly=bool(match["exactly"]) or back < 0)]


_UNIT_NAMES = {"日": "day", "週": "week", "月": "month", "年": "year"}


def _back(today: date, unit: str, counts: Sequence[int], *, exactly: bool, as_moment: bool) -> list[DaySpan]:
    """So many units ago; with two counts, in whichever order, all between them."""
    if exactly:
        return [_then(today, _UNIT_NAMES.get(unit, unit), counts[0], exactly=True)]
    if as_moment and len(counts) == 1:
        return [UNITS[unit](today, counts[0], rolling=True)]
    return [(UNITS[unit](today, max(counts))[0], UNITS[unit](today, min(counts))[1])]


def _japanese_ago(match: re.Match[str], today: date, *, as_moment: bool = False) -> list[DaySpan]:
    unit = match["unit"] or "月"
    counts = [number_of(match[name]) for name in ("n", "n2") if match[name]] or [2, 6]
    if match["half"]:
        unit, counts = "月", [counts[0] * 12 + 6]
    if match["then"]:
        return [_then(today, _UNIT_NAMES[unit], counts[0], exactly=False)]
    return _back(today, unit, counts, exactly=bool(match["today"]), as_moment=as_moment)


def _english_ago(match: re.Match[str], today: date, *, as_moment: bool = False) -> list[DaySpan]:
    unit, first = match["unit"] or (match["half"] and "month") or match["bare"], number_of(match["n"]) if match["n"] else 1
    if match["half"]:
        counts = [first * 12 + 6]
    elif match["few"] or match["couple"]:
        counts = [2, 6 if match["few"] else 3]
    else:
        counts = [first, *([number_of(match["n2"])] if match["n2"] else []), *([first + 1] if match["so"] else [])]
    return _back(today, unit, counts, exactly=bool(match["today"]), as_moment=as_moment)


def _later(match: re.Match[str], today: date, *, as_moment: bool = False) -> list[DaySpan]:
    """So many units from today."""
    name, count = next((name, count) for name, count in match.groupdict().items() if name[0] == "n" and count)
    unit = match[f"u{name[1:]}"] or "月"
    return [UNITS[unit](today, -number_of(count), rolling=as_moment)]


def _from_today(match: re.Match[str], today: date) -> list[DaySpan]:
    """The next so many units, from today."""
    count, unit = number_of(match["n"] or match["n2"]), match["u"] or match["um"] or match["u2"]
    return [(today, UNITS[unit](today, -count, rolling=True)[0] + ONE_DAY)]


def _as_moment(resolve: Callable[..., list[DaySpan]]) -> Resolver:
    return lambda match, today: resolve(match, today, as_moment=True)


_NEAR_DAYS = {
    -3: "さきおととい|さきおとつい|一昨[々昨]日|先一昨日",
    -2: "一昨日|おととい|おとつい|(?:the )?day before yesterday|(?:the )?night before last",
    -1: "昨日|きのう|昨夜|昨晩|ゆうべ|(?<![のなな])夕べ(?!の(?:会|祈|集|調))|(?<![a-z])yesterday|(?<![a-z])last (?:night|evening)",
    0: "今日|本日|今朝(?:方|がた)?|今夜|今晩|(?<![a-z])(?:today|tonight|this (?:morning|afternoon|evening))",
    3: "しあさって|明[々明]後日",
    2: "明後日|あさって|(?<![a-z])(?:the )?day after tomorrow",
    1: "明日|あした|明朝(?!体)|明晩|(?<![a-z])tomorrow",
}
_BEFORE_LAST = {"after next": -2, "before last": 2}
_PARTS_OF_WEEK = "内|の(?:頭|初め|はじめ|始め|半ば|真ん中|中頃|前半|後半|終わり)"
_VAGUE_DAYS = {
    "しばらく前|ちょっと前|少し前|(?<![a-z])(?:(?:quite )?a while|some time|not (?:so |that |too |very )?long) (?:ago|back)": (180, 0),
    "(?:ここ|つい)?最近|(?:近|この)(?:頃|ごろ)|昨今|ここしばらく|このところ"
    "|(?<![a-z])(?:(?:just |only |very )?recently|lately|of late|these days|in recent (?:days|weeks))": (30, 1),
    "(?:つい)?(?:先日|この間|このあいだ|この前|このまえ|こないだ|先だって|先頃|先ごろ)|(?<![a-z])(?:just )?the other (?:day|night|week)": (
        14,
        0,
    ),
}


def _vague(match: re.Match[str], today: date) -> list[DaySpan]:
    before, after = chosen(match, "v", _VAGUE_DAYS.values())
    return [(today - timedelta(days=before), today + timedelta(days=after))]


# fmt: off
LATELY = [
    row(LATELY_KIND, rf"(?:{_HERE}(?:{_NUMBER}[、,~〜・-])?(?P<n1>{_NUMBER}|数|半(?=年)){_JAPANESE_UNIT.format('u1')}(?:以内)?"
        rf"|(?P<n2>{_NUMBER}|数|半(?=年)){_JAPANESE_UNIT.format('u2')}以内)(?!前)", _until_today,
        "ここ2、3日", "1週間以内", "数日以内", "過去30日間", "ここ一週間", "ここ数日", "この半年", needs="ここ この 過去 直近 最近 以内"),
    row(LATELY_KIND, rf"(?<![a-z])(?:(?:last|past|within) (?P<n1>{_COUNT}) {_UNIT.format('u1')}|(?:last|past) (?P<n2>few|several"
        rf"|couple(?: of)?) {_UNIT.format('u2')}"
        r"|past (?P<u3>day|week|month|year)|(?:the|this) last (?P<u4>week|fortnight|month|year)(?!['’]| of)"
        r"|(?:in|within|over|during) the last (?P<u5>day)(?!['’]| of)|(?:last|past) (?P<n6>half) (?:a )?(?P<u6>year))(?![a-z])",
        lambda m, t: [UNITS["月"](t + ONE_DAY, 6, rolling=True)] if m["n6"] else _until_today(m, t), "the last 3 days", "past two weeks",
        "the last few days", "past week", "the last month", "within the last day", needs="last past within"),
]
LONG_AGO = [
    row(AGO, rf"(?P<then>{_NEAR_YEARS}|先月|[先来]週)の(?:(?P<exactly>今日)|今(?:ごろ|頃|時分)|同じ(?:頃|ころ|時期))|(?<![a-z])this time last (?P<unit>year"
        rf"|month|week)", _this_day, "おととしの今日", "一昨年の今頃", "去年の今日", "去年の今頃", "先月の今日", "先週の今日", "来週の今日", "this time last year",
        "this time last month", needs="の今 の同じ this"),
    row(AGO, rf"(?:数|(?P<n>{_NUMBER})(?:[ヶケかカ箇]?月?[、,~〜・-](?P<n2>{_NUMBER}))?)(?:(?P<unit>[日週年])間?|(?<=数)[ヶケかカ箇]月|(?<!数)[ヶケかカ箇]?月)"
        r"(?P<half>(?<=年)半)?前(?![後半])(?:の?(?P<today>今日)|の(?P<then>今(?:ごろ|頃|時分)|同じ(?:頃|ころ|時期)))?", _japanese_ago, "3日前", "二週間前", "今から3日前",
        "2、3日前", "2か月前", "2、3か月前", "1年半前", "数日前", "何日か前", "2週間前の今日", "3か月前の今日", "3年前の今日", needs="前", counted=_as_moment(_japanese_ago)),
    row(AGO, "半年(?:ほど|くらい)?前|(?P<one>ひと月前)|(?P<two>ふた月前)", lambda m, t: [months_back(t, 1 if m["one"] else 2 if m["two"] else 6)], "半年前",
        "ひと月前", "ふた月前", needs="前", counted=lambda m, t: [day_of(same_day_of_month(t, 1 if m["one"] else 2 if m["two"] else 6))]),
    row(AGO, "半月前", lambda m, t: [_around(t - timedelta(days=15), 2)], "半月前", needs="前"),
    row(AGO, "(?<![a-z])half a year ago", lambda m, t: [months_back(t, 6)], "half a year ago", needs="ago",
        counted=lambda m, t: [day_of(same_day_of_month(t, 6))]),
    row(AGO, rf"(?<![a-z\d])(?:(?:(?P<n>{_COUNT})(?:(?: or |-| to )(?P<n2>{_COUNT}))?|(?P<few>(?:an? )?(?:few|several)|some)"
        rf"|(?P<couple>(?:a )?couple(?: of)?))\s+"
        rf"(?:(?P<half>years? and a half|and a half years)|{_UNIT.format('unit')}(?P<so> or (?:two|three|so))?)|(?P<bare>week|fortnight"
        rf"|month|year))" r"\s+(?:ago|back)(?P<today> today)?(?![a-z])", _english_ago, "two or three weeks ago", "one and a half years ago",
        "a week or so ago", "a couple of weeks ago", "a few days ago", "3 days ago", "two weeks back", "fortnight ago", "a year ago today",
        needs="ago back", counted=_as_moment(_english_ago)),
]
NEAR_DAYS = [
    row(NEAR, numbered(_NEAR_DAYS.values(), "d"), lambda m, t: [day_of(t + timedelta(days=chosen(m, "d", _NEAR_DAYS)))],
        "さきおととい", "一昨々日", "おととい", "the day before yesterday", "the night before last", "昨日", "夕べ", "yesterday", "last night", "今日", "今朝",
        "today", "tonight", "しあさって", "あさって", "the day after tomorrow", "明日", "明朝", "tomorrow",
        needs="昨日 今日 明日 本日 昨夜 昨晩 今朝 今夜 今晩 明朝 明晩 明後日 明々後日 明明後日 一昨 きのう おととい おとつい ゆうべ 夕べ あした あさって day night tomorrow this last"),
]
BEFORE_LAST = [
    row(FROM_NOW, rf"(?<![a-z])(?:the )?(?P<unit>month|year) (?P<which>{'|'.join(_BEFORE_LAST)})",
        lambda m, t: [UNITS[m["unit"]](t, _BEFORE_LAST[m["which"]])], "the month after next", "the year after next",
        "the month before last", "the year before last", needs="month year"),
]
MONTHS_AND_YEARS = [
    row(FROM_NOW, f"({_NEAR_MONTHS})|({_NEAR_YEARS})|(?<![a-z])(last|previous|this|next) (month|year)",
        lambda m, t: [months_back(t, MONTHS_BACK[m[1]]) if m[1] else year_of(t.year - YEARS_BACK[m[2]]) if m[2] else UNITS[m[4]](t,
        _ENGLISH_BACK[m[3]])],
        "先月", "先々月", "再来月", "last month", "去年", "おととし", "再来年", "last year", needs=" ".join([*MONTHS_BACK, *YEARS_BACK, "month", "year"])),
]
# Tried before 今日 and today, which are part of them.
FROM_TODAY = [
    row(TO_COME, rf"(?<![a-z\d])(?P<n1>{_COUNT}) (?P<u1>week)s? from (?:today|now)|(?P<n2>{_NUMBER})(?P<u2>週)間後の(?:今日|今頃|今ごろ)",
        lambda m, t: [day_of(_later(m, t, as_moment=True)[0][0])], "two weeks from now", "2週間後の今日", needs="from 後"),
    row(TO_COME, rf"(?<![a-z\d])(?P<n1>{_COUNT}) {_UNIT.format('u1')} from (?:today|now)"
        rf"|(?<![a-z])in (?P<n2>{_COUNT}) {_UNIT.format('u2')}(?:['’]s? time)?(?![a-z])",
        _later, "in 3 days", "two months from today", needs="from in", counted=_as_moment(_later)),
]
# In a sentence 3日後 is after something else.
LATER = [
    row(TO_COME, rf"(?P<n>{_NUMBER})(?:(?P<u>[日週年])間?|[ヶケかカ箇]月)後", _later, "3日後", "2か月後", needs="後", counted=_as_moment(_later)),
    row(TO_COME, "半年後", lambda m, t: [months_back(t, -6)], "半年後", needs="後", counted=lambda m, t: [day_of(same_day_of_month(t, -6))]),
    row(TO_COME, rf"(?:今後|これから|この先|向こう)の?(?P<n>{_NUMBER}){_JAPANESE_UNIT.format('u')}"
        rf"|(?<![a-z])(?:the |over the )?(?:next|coming) (?P<n2>{_COUNT}) {_UNIT.format('u2')}(?![a-z])", _from_today,
        "今後3日間", "the next 3 days", needs="今後 これから この先 向こう next coming"),
]
WEEK_AND_YEAR_ALONE = [
    row(CURRENT, f"週(?={_PARTS_OF_WEEK})", lambda m, t: [week_of(t)], "週の前半", "週内", needs="週"),
    row(CURRENT, "年(?=の(?:頭|初め|はじめ|始め|半ば|終わり)|内)|(?<![a-z])the year|\\A(?=[上下]半?期\\Z)", lambda m, t: [year_of(t.year)],
        "年内", "年の初め", "end of the year", "上半期", needs="年 year 期"),
]
VAGUE_ALONE = [
    row(CURRENT, "月初め?", lambda m, t: [(t.replace(day=1), t.replace(day=11))], "月初め", needs="月初"),
    row(CURRENT, "(?<![a-z])the month|月(?=[末内]|半ば|なかば|の(?:末|頭|初め|はじめ|始め|半ば|なかば|終わり|前半|後半))|\\A(?=[上中下初]旬)",
        lambda m, t: [months_back(t, 0)], "月末", "月内", "上旬", "end of the month", needs="月 month 旬"),
    row(VAGUE, numbered(_VAGUE_DAYS, "v"), _vague, "しばらく前", "a while ago", "最近", "recently", "先日", "このあいだ", "the other day",
        needs="前 最近 頃 ごろ 昨今 しばらく ところ 先 間 あいだ まえ こないだ ago back recent lately late days other"),
]
# fmt: on

# Weeks, weekends and days of the week. A week begins on Monday.

WEEKDAY = r"(mon|tue|wed|thu|fri|sat|sun)(?:(?:s|nes|rs|ur)?day|s|rs?)?(?![a-z])"
_WHOLE_WEEKDAY = "(mon|tues|wednes|thurs|fri|satur|sun)day"
_JAPANESE_WEEKDAY = f"([{WEEKDAY_NAMES}])曜日?"
_NEED_WEEKDAY, _NEED_DAYS = "曜 mon tue wed thu fri sat sun", "mon tue wed thu fri sat sun"
WEEKS_BACK = {"先々週": 2, "先先週": 2, "先週": 1, "今週": 0, "来週": -1, "再来週": -2, "last": 1, "previous": 1, "this": 0, "next": -1}
_WEEK = "(再来週|先々週|先先週|先週|今週|来週)"
_RECENT = "(?:この[前間]|このまえ|このあいだ|こないだ)の?"
_COMING = "(?:今度|次|来る|来たる|きたる)の?"


def next_weekday(today: date, weekday: int) -> DaySpan:
    """The first such day after today."""
    return day_of(today + timedelta(days=(weekday - today.weekday() - 1) % 7 + 1))


def _in_week(today: date, name: str, which: str | int) -> list[DaySpan]:
    """The day of the week of that name so many weeks ago."""
    back = WEEKS_BACK[which] if isinstance(which, str) else which
    return [day_of(week_of(today, back)[0] + timedelta(days=WEEKDAYS[name]))]


def _weekday_before(today: date, name: str, count: int = 1) -> list[DaySpan]:
    """The latest such day before today, or an earlier one: two Fridays ago is the one before the latest."""
    return [day_of(today - timedelta(days=(today.weekday() - WEEKDAYS[name[:3]] - 1) % 7 + 1 + 7 * (count - 1)))]


def _latest_weekday(today: date, name: str) -> list[DaySpan]:
    """The latest such day, which may be today."""
    return _weekday_before(today + ONE_DAY, name)


def _next_weekday(today: date, name: str, weeks_on: int = 0) -> list[DaySpan]:
    return [day_of(next_weekday(today, WEEKDAYS[name[:3]])[0] + timedelta(days=7 * weeks_on))]


def _weekend(today: date, weeks_back: int) -> DaySpan:
    monday = week_of(today, weeks_back)[0]
    return monday + timedelta(days=SATURDAY), monday + timedelta(days=7)


def _latest_weekend(today: date) -> DaySpan:
    """The weekend that has begun last."""
    return _weekend(today, 0 if today.weekday() >= SATURDAY else 1)


def _named_week(match: re.Match[str], today: date) -> list[DaySpan]:
    """先週, or its 平日, 週明け, 週末 or 土日."""
    back = WEEKS_BACK[match["week"]]
    monday, after = week_of(today, back)
    if match["monday"]:
        return [day_of(monday)]
    if match["weekdays"]:
        return [(monday, monday + timedelta(days=SATURDAY))]
    return [_weekend(today, back) if match["weekend"] else (monday, after)]


def _around_today(today: date, weekday: int) -> list[DaySpan]:
    """The coming and the last such day, today included, and those a week away."""
    coming = next_weekday(today - ONE_DAY, weekday)[0]
    return [day_of(coming + timedelta(days=7 * weeks)) for weeks in (1, 0, -1)]


_AFTER_A_WEEKDAY = (
    r"(?=\Z|[^\w\s]|\s|[にもはがまでとかへっ]|の(?!み|\d)|を(?=[空あ]け)|から|より|だ(?!け)|何|誰|どこ|いつ|どう(?!でしょう)|暇|ひま|ヒマ|頃|ごろ|中に|以降"
    r"|空|お?[朝昼夕夜晩]|午[前後]|深夜|終日|\d{1,2}(?:時|:\d\d))"
)
_NO_NAMES = "".join(
    f"(?<!{word} )" for word in "the every each any some most many alternate other that black good cyber easter freaky a".split()
)
_SHORT_MONTH_NAMES = "|".join(sorted({name[:3] for name in MONTHS}))


# fmt: off
WEEKS = [
    # 退院の2週間後の土曜 counts from another day.
    row(WEEKDAY_KIND, rf"(?P<n>{_NUMBER})週間?(?:前|(?<!の\d週間)(?<!の\d週)(?P<later>後))の?(?P<name>[{WEEKDAY_NAMES}])曜日?",
        lambda m, t: _in_week(t, m["name"], number_of(m["n"]) * (-1 if m["later"] else 1)), "2週間前の金曜", "2週間後の土曜", needs="曜"),
    row(WEEKDAY_KIND, rf"(?<![a-z]){WEEKDAY} {COUNT} weeks? ago", lambda m, t: _in_week(t, m[1], number_of(m[2])), "Friday two weeks ago",
        needs="ago"),
    row(WEEKDAY_KIND, rf"{_WEEK}末?の?{_JAPANESE_WEEKDAY}", lambda m, t: _in_week(t, m[2], m[1]), "先週の金曜", "来週の月曜日", "先週末の土曜", needs="曜"),
    row(WEEKDAY_KIND, rf"(?<![a-z])(last|this|next) week(?:'s|,| on)? {WEEKDAY}", lambda m, t: _in_week(t, m[2], m[1]),
        "last week on Friday", needs="week"),
    row(WEEKDAY_KIND, rf"(?<![a-z]){WEEKDAY}(?: of)? (last|this|next) week(?!end)", lambda m, t: _in_week(t, m[1], m[2]),
        "Friday of last week", needs="week"),
    row(WEEK, f"(?P<week>{_WEEK[1:-1]})(?:の?(?:(?P<weekdays>平日|ウィークデー)|(?P<monday>週?明け)|(?P<weekend>週?末|土日))|(?!の今(?:日|頃|ごろ)))",
        _named_week, "先週の平日", "来週明け", "先週末", "今週の土日", "先週", "今週", "来週", "さ来週", needs="週"),
    row(WEEK, "(?:今度|次)の?週明け", lambda m, t: _in_week(t, "月", -1), "次の週明け", needs="明け"),
    row(WEEK, "(?<![先今来毎前])週明け(?!て)", lambda m, t: [*_in_week(t, "月", 0), *_in_week(t, "月", -1)], "週明け", needs="明け"),
    row(WEEKDAY_KIND, rf"{_RECENT}{_JAPANESE_WEEKDAY}", lambda m, t: _weekday_before(t, m[1]), "この前の日曜", needs="曜"),
    row(WEEK, f"{_RECENT}週末", lambda m, t: [_latest_weekend(t)], "この前の週末", needs="週末"),
    row(WEEKDAY_KIND, rf"{_COMING}{_JAPANESE_WEEKDAY}|(?<![a-z])coming {WEEKDAY}", lambda m, t: _next_weekday(t, m[1] or m[2]),
        "今度の日曜", "coming Friday", needs="曜 coming"),
    row(WEEK, "(?:今度|次)の?週末", lambda m, t: [_weekend(t, 0 if t.weekday() < SATURDAY else -1)], "今度の週末", needs="週末"),
    row(WEEK, "この週末", lambda m, t: [_weekend(t, 0)], "この週末", needs="週末"),
    row(WEEK, rf"(?<![a-z\d]){COUNT} weekends? ago", lambda m, t: [_weekend(t, number_of(m[1]))], "two weekends ago", needs="weekend"),
    row(WEEKDAY_KIND, rf"(?<![a-z\d]){COUNT} {_WHOLE_WEEKDAY}s? ago", lambda m, t: _weekday_before(t, m[2], number_of(m[1])),
        "two Fridays ago", needs="ago"),
    row(WEEKDAY_KIND, rf"(?<![a-z])(?:the )?{_WHOLE_WEEKDAY} (?:(before last)|after next)(?![a-z])",
        lambda m, t: _weekday_before(t, m[1], 2) if m[2] else _next_weekday(t, m[1], 1), "the Friday before last", "the Monday after next",
        needs="before after"),
    row(WEEKDAY_KIND, rf"(?<![a-z])a week ago(?: on)? {WEEKDAY}", lambda m, t: _in_week(t, m[1], 1), "a week ago on Friday", needs="ago"),
]
NAMED_WEEKDAYS = [
    row(WEEKDAY_KIND, rf"(?<![a-z])(?:last|this past)\s+{WEEKDAY}", lambda m, t: _weekday_before(t, m[1]), "last Friday",
        needs="last past"),
    row(WEEKDAY_KIND, rf"(?<![a-z])(this|next)\s+{WEEKDAY}", lambda m, t: _in_week(t, m[2], m[1]), "next Friday", needs="this next"),
]
ENGLISH_WEEKS = [
    row(WEEK, rf"(?<![a-z])(?:the )?week(end)? ({'|'.join(_BEFORE_LAST)})",
        lambda m, t: [(_weekend if m[1] else week_of)(t, _BEFORE_LAST[m[2]])], "the weekend after next", "the week after next",
        "the weekend before last", "the week before last", needs="week"),
    row(WEEK, "(?<![a-z])(?:the|this) past weekend", lambda m, t: [_latest_weekend(t)], "this past weekend", needs="weekend"),
    row(WEEK, "(?<![a-z])(last|previous|this|next) week(?:(end)|(?! of))",
        lambda m, t: [(_weekend if m[2] else week_of)(t, WEEKS_BACK[m[1]])], "last weekend", "last week", needs="week"),
]
SINCE_WEEKDAY = row(WEEKDAY_KIND, rf"(?<![a-z])since {WEEKDAY}", lambda m, t: [(_latest_weekday(t, m[1])[0][0], t + ONE_DAY)],
    "since Friday", needs="since")
WEEKS_LATER = [
    row(TO_COME, rf"(?<![a-z])(?:in {COUNT} weeks?,?(?: on)? {WEEKDAY}|{WEEKDAY} in {COUNT} weeks?)(?![a-z])",
        lambda m, t: _in_week(t, m[2] or m[3], -number_of(m[1] or m[4])), "in two weeks on Saturday", "Saturday in two weeks",
        needs="week"),
    row(TO_COME, rf"(?<![a-z\d]){COUNT} weeks? from {WEEKDAY}", lambda m, t: _next_weekday(t, m[2], number_of(m[1])),
        "a week from Friday", needs="week"),
    row(TO_COME, rf"(?<![a-z]){WEEKDAY} week(?![a-z])", lambda m, t: _next_weekday(t, m[1], 1), "Friday week", needs="week"),
]
WEEKDAYS_ALONE = [
    row(WEEKDAY_ALONE_KIND, f"前の?{_JAPANESE_WEEKDAY}", lambda m, t: _weekday_before(t, m[1]), "前の金曜", needs="曜"),
    row(WEEKDAY_ALONE_KIND, rf"{_JAPANESE_WEEKDAY}|(?<![a-z]){WEEKDAY}", lambda m, t: _latest_weekday(t, m[1] or m[2]), "金曜", "Friday",
        recurs_after=(6,), needs=_NEED_WEEKDAY),
]
WEEKENDS_ALONE = [
    row(WEEKDAY_ALONE_KIND, "前の?週末", lambda m, t: [_weekend(t, 1)], "前の週末", needs="週末"),
    row(WEEKDAY_ALONE_KIND, "週末|土日|(?<![a-z])(?:the )?weekend", lambda m, t: [_latest_weekend(t)], "週末", "the weekend", recurs_after=(6,),
        needs="週末 土日 weekend"),
]
# A day of the week alone in a sentence. 12月4日金曜, 第2金曜, 翌週の金曜 and 月・金曜 are other days, 金曜ロードショー and 日曜大工 are none.
DAYS_OF_SENTENCES = [
    row(WEEKDAY_KIND, rf"(?<![毎隔翌各週月年第前日(・]|[\d一二三四五])(?<![毎隔翌各週月年前後初みの日]の)(?<!その)(?<!ある)([{WEEKDAY_NAMES}])曜(?:日(?!曜))?{_AFTER_A_WEEKDAY}"
        rf"|(?<![a-z(-])(?<!\d )(?<!\d, ){_NO_NAMES}{_WHOLE_WEEKDAY}(?!,? (?:the )?\d(?!\d?(?::\d| ?[ap]m))"
        rf"|,? (?:{_SHORT_MONTH_NAMES})|'s)(?:\s(?:early )?(?:morning|afternoon|evening|night)(?!s))?(?! live| lights| (?:morn|after"
        rf"|even)|s)(?:{NO_COUNT}|(?=\s\d{{1,2}}(?::\d\d|\s?[ap]\.?m))|(?<=\bon ......)(?![a-z])|(?<=\bon .......)(?![a-z])"
        rf"|(?<=\bon ........)(?![a-z])|(?<=\bon .........)(?![a-z]))", lambda m, t: _around_today(t, WEEKDAYS[m[1] or m[2][:3]]),
        "金曜に何があった？", "金曜の予定は？", "What happened on Friday?", "What's on Friday?", needs="曜 day", is_alone=True),
    row(WEEK, rf"(?<![毎隔翌各先今来のる週])(?:週末|土日){_AFTER_A_WEEKDAY}|(?<![a-z])(?<!after )(?<!before )the weekend(?! (?:before|after"
        rf"|when)){NO_COUNT}",
        lambda m, t: [_weekend(t, 0), _latest_weekend(t)], "週末は何してた？", "週末の予定は？", "What did I do on the weekend?", needs="週末 土日 weekend",
        is_alone=True),
]
# fmt: on
# In an argument: Friday night last week is the night of Friday last week.
PART_BEFORE_WEEK = re.compile(
    rf"(?<![a-z])(?P<day>{WEEKDAY}) (?P<part>morning|afternoon|evening|night),? (?P<week>(?:of )?(?:last|this|next) week)(?!end)"
)

# Seasons of the northern half of the earth, as in Japan.

_FIRST_MONTHS = {"春": 3, "夏": 6, "秋": 9, "冬": 12, "spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
_SHORT_YEARS_BACK = {"一昨": 2, "昨": 1, "去": 1, "今": 0, "この": 0, "来": -1}
# 夏休み and 春雨 are no seasons; 秋田 is a place, 春香 a name.
_JAPANESE_SEASON = "[初真晩]?([春夏秋冬])[先口場]?(?=[のにはもがかま、。?!頃ごら以]|\\s|\\Z)"
_ENGLISH_SEASON = "(spring|summer|autumn|fall|winter)(?: (?:break|vacation|holidays?))?(?![a-z])"
_NEED_SEASON = "春 夏 秋 冬 spring summer autumn fall winter"
# The year before a season or a holiday.
YEAR_BEFORE = rf"(?:(?P<named>{_NEAR_YEARS})|(?P<ago>{_NUMBER})年前|(?<!\d)(?P<year>\d{{4}})年?)の?"


def year_before(match: re.Match[str], today: date) -> int:
    """The year that `YEAR_BEFORE`, or a short form in the group `short`, names."""
    if match["ago"]:
        return today.year - number_of(match["ago"])
    if match["year"]:
        return int(match["year"])
    return today.year - (YEARS_BACK[match["named"]] if match["named"] else _SHORT_YEARS_BACK[match["short"]])


def _season(year: int, first_month: int) -> DaySpan:
    last = first_month + 2
    return date(year, first_month, 1), month_of(year + last // 13, (last - 1) % 12 + 1)[1]


def _latest_season(today: date, first_month: int, *, over: bool) -> DaySpan:
    """The latest season that has begun; with `over` the latest that is over."""
    spans = (_season(today.year - back, first_month) for back in range(3))
    return next(span for span in spans if (span[1] if over else span[0]) <= today)


def _season_of_year(match: re.Match[str], today: date) -> list[DaySpan]:
    """The winter of a year is the one that begins in it, unless that is still to come."""
    first_month = _FIRST_MONTHS[next(word for word in match.groups() if word in _FIRST_MONTHS)]
    if match["which"] == "this":
        return [_season(today.year, first_month)]
    if match["which"] or match["before"] or match["count"]:
        back = 1 if match["which"] else 2 if match["before"] else number_of(match["count"])
        return [_season(_latest_season(today, first_month, over=True)[0].year - back + 1, first_month)]
    year = int(match["english"]) if match["english"] else year_before(match, today)
    span = _season(year, first_month)
    return [_season(year - 1, first_month) if span[0] > today and first_month == 12 else span]


def _season_alone(match: re.Match[str], today: date) -> list[DaySpan]:
    """The latest season that has begun, and those of the years before."""
    first_month = _FIRST_MONTHS[match[1] or match[2]]
    year = _latest_season(today, first_month, over=False)[0].year
    return [_season(year - back, first_month) for back in range(YEARS_CONSIDERED)]


# fmt: off
SEASON_OF_YEAR = row(SEASON,
    rf"(?:{YEAR_BEFORE}|(?P<short>一昨|この|[昨今来])){_JAPANESE_SEASON}|(?<![a-z]){_ENGLISH_SEASON} (?P<before>before last)(?![a-z])"
    rf"|(?<![a-z])(?P<which>last|this) {_ENGLISH_SEASON}|(?<![a-z]){_ENGLISH_SEASON}(?: of)?,? (?P<english>(?:19|20)\d\d)(?!\d)"
    rf"|(?<![a-z\d])(?P<count>{_COUNT}) (spring|summer|autumn|fall|winter)s? ago", _season_of_year,
    "去年の夏", "一昨昨年の夏", "2年前の夏", "昨秋", "last summer", "summer before last", "summer of 2024", "two summers ago", needs=_NEED_SEASON)
SEASON_ALONE = row("seasons, as an argument", rf"{_JAPANESE_SEASON}|(?<![a-z])(?:in |during )?(?:the )?{_ENGLISH_SEASON}", _season_alone,
    "夏", "winter", needs=_NEED_SEASON)
# fmt: on
