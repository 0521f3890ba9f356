"""Dates of the calendar: 2025-10-17, 2025年10月, 10月17日, October 17, 2025年度, Q1 2024, 10月の第2月曜, the week of October 6.

A date without its year may mean that date in each of the last years.
"""

import re
from collections.abc import Iterator
from datetime import date

from memory_mcp.dates.calendar_dates import NO_COUNT
from memory_mcp.dates.expressions import Expression, of_kind
from memory_mcp.dates.numerals import MONTHS_BACK, YEARS_BACK, number_of
from memory_mcp.dates.spans import (
    MONTHS,
    ONE_DAY,
    SATURDAY,
    WEEKDAYS,
    DaySpan,
    day_of,
    each_year,
    month_of,
    months_back,
    nth_weekday,
    week_of,
    year_of,
)
from memory_mcp.dates.tense import EVENTS, PLANNED

day, _ = of_kind("days")
month, _ = of_kind("months")
year, _ = of_kind("years and decades")
quarter, _ = of_kind("quarters and halves of a year")
fiscal, _ = of_kind("fiscal years, which begin in April")
nth, _ = of_kind("days counted within a month, and weeks of a day")

# Whole names only: what is sold at a market 5 times is not about March.
MONTH_NAME = rf"({'|'.join(sorted(MONTHS, key=len, reverse=True))})(?![a-z])\.?"
_DAY = r"(\d{1,2})(?:st|nd|rd|th)?"
_ENGLISH_BACK = {"last": 1, "previous": 1, "this": 0, "the": 0, "next": -1}
_JAPANESE_MONTHS_BACK = "|".join(MONTHS_BACK)


def _numbers(match: re.Match[str]) -> list[int]:
    return [int(group) for group in match.groups()]


def _day_of_month(months: DaySpan, number: int) -> list[DaySpan]:
    return [day_of(months[0].replace(day=number))]


def _day_in_each_year(today: date, month: int, day: int) -> Iterator[DaySpan]:
    return each_year(today, lambda year: day_of(date(year, month, day)))


def _month_in_each_year(today: date, month: int) -> Iterator[DaySpan]:
    return each_year(today, lambda year: month_of(year, month))


def _last_day(today: date, month: int, day: int) -> list[DaySpan]:
    """The latest such day before today."""
    return [span for span in _day_in_each_year(today, month, day) if span[0] < today][:1]


def _in_year(year: int, month: int, day: int | None) -> DaySpan:
    return day_of(date(year, month, day)) if day else month_of(year, month)


def _decade(tens: int) -> DaySpan:
    """The nineties, of 199 as of 9."""
    tens += 190 if tens < 10 else 0
    return date(tens * 10, 1, 1), date(tens * 10 + 10, 1, 1)


def _american(month: int, day: int, year: int) -> DaySpan:
    """10/17/2025, and 17/10/2025 where nothing else can be meant."""
    return day_of(date(year, day, month) if month > 12 else date(year, month, day))


def _month_of_this_year(today: date, which: str, month: int) -> DaySpan:
    """The month of that name of this year, or the next one that will begin."""
    return month_of(today.year + (1 if which == "next" and month <= today.month else 0), month)


def _months_from_to(year: int, first: int, last: int) -> DaySpan:
    return month_of(year, first)[0], month_of(year + (1 if last < first else 0), last)[1]


def _latest_day_of_month(today: date, number: int) -> Iterator[DaySpan]:
    for back in range(12):
        try:
            latest = months_back(today, back)[0].replace(day=number)
        except ValueError:
            continue
        if latest <= today:
            yield day_of(latest)
            return


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


def _half_year(year: int, which: int) -> DaySpan:
    return _months_from_to(year, which * 6 - 5, which * 6)


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
_JAPANESE_MONTH = rf"(?:(?:(?P<year>\d{{4}})年)?(?P<month>\d{{1,2}})月|(?P<near>{_JAPANESE_MONTHS_BACK}))の?"
_WHOLE_DAY, _WEEKEND = "day", "weekend"


def _months(match: re.Match[str], today: date) -> Iterator[DaySpan]:
    """The month of a match, or that month of each of the last years."""
    groups = match.groupdict()
    if groups["near"]:
        back = _ENGLISH_BACK.get(groups["near"])
        yield months_back(today, MONTHS_BACK[groups["near"]] if back is None else back)
        return
    month = int(groups["month"]) if groups.get("month") else MONTHS[groups["name"].rstrip(".")]
    if groups["year"]:
        yield month_of(int(groups["year"]), month)
    else:
        yield from _month_in_each_year(today, month)


def _nth(months: Iterator[DaySpan], what: str, nth: int) -> Iterator[DaySpan]:
    """The `nth` day, day of the week or weekend of each month; a weekend is counted by its Saturday."""
    for first, after in months:
        if what == _WHOLE_DAY:
            yield day_of(after - ONE_DAY if nth < 0 else first.replace(day=nth))
        else:
            counted = nth_weekday(first.year, first.month, SATURDAY if what == _WEEKEND else WEEKDAYS[what], nth)
            yield counted, counted + (2 if what == _WEEKEND else 1) * ONE_DAY


def _english_nth(match: re.Match[str], today: date) -> Iterator[DaySpan]:
    count = -1 if match["nth"] == "last" else _ORDINALS.index(match["nth"]) + 1
    what = match.groupdict().get("what") or _WHOLE_DAY
    return _nth(_months(match, today), what if what in (_WHOLE_DAY, _WEEKEND) else what[:3], count)


def _japanese_nth(match: re.Match[str], today: date) -> Iterator[DaySpan]:
    count = 1 if match["first"] else -1 if match["last"] else number_of(match["nth"])
    what = match["what"] or match["weekday"] or (_WEEKEND if match["whole"] == "週末" else _WHOLE_DAY)
    return _nth(_months(match, today), what, count)


def _week_of_day(match: re.Match[str], today: date) -> Iterator[DaySpan]:
    month = int(match["month"]) if match["month"] else MONTHS[match["name"].rstrip(".")]
    number = int(match["day"] or match["number"])
    return each_year(today, lambda year: week_of(date(year, month, number)))


NTH_DAYS: list[Expression] = [
    nth(
        rf"(?<![a-z])(?:the )?(?P<nth>first|second|third|fourth|fifth|last) (?P<what>(?:mon|tues|wednes|thurs|fri|satur|sun)day|day|weekend) (?:of|in) {_ENGLISH_MONTH}",
        _english_nth,
        "the first Monday of October",
        "last day of September",
        "the last weekend of last month",
    ),
    nth(rf"(?<![a-z])(?:the )?(?P<nth>{'|'.join(_ORDINALS)}) of {_ENGLISH_MONTH}", _english_nth, "the third of October"),
    nth(
        rf"{_JAPANESE_MONTH}(?:第(?P<nth>[1-5一二三四五])の?(?P<what>[月火水木金土日])曜日?"
        rf"|(?:(?P<first>最初)|(?P<last>最後))の(?:(?P<whole>日(?!曜)|週末)|(?P<weekday>[月火水木金土日])曜日?))",
        _japanese_nth,
        "10月の第2月曜",
        "9月最後の日曜",
        "先月の最後の日",
    ),
    nth(
        rf"(?<![a-z])(?:the )?week of (?P<name>{_FULL_MONTH_NAME}) (?P<number>\d{{1,2}})(?:st|nd|rd|th)?(?!\d)|(?<!\d)(?P<month>\d{{1,2}})月(?P<day>\d{{1,2}})日の週(?![末明])",
        _week_of_day,
        "the week of October 6",
        "10月6日の週",
    ),
]
FULL_DATES: list[Expression] = [
    day(
        r"(?<!\d)(\d{4})[-/.年](\d{1,2})[-/.月](\d{1,2})(?!\d)日?",
        lambda m, today: [day_of(date(*_numbers(m)))],
        "2025-10-17",
        "2025/10/17",
        "2025年10月17日",
        "令和7年10月17日",
        "大正10年10月17日",
        figures_only=True,
    ),
    month(
        r"(?<!\d)(\d{4})(?:年の?(?=\d{1,2}月)|[-/](?=\d{1,2}(?![-/\d])))(\d{1,2})(?!\d)月?",
        lambda m, today: [month_of(*_numbers(m))],
        "2025-10",
        "2025年10月",
        "25年10月",
        figures_only=True,
    ),
]
YEARS: list[Expression] = [
    fiscal(
        rf"(?:(?<!\d)(?P<year>\d{{4}})|(?P<named>一昨|再来|[昨去前今本来]))年度の?(?:{_PART_OF_FISCAL_YEAR})?",
        _fiscal_year,
        "2024年度",
        "今年度",
        "昨年度末",
    ),
    year(r"(?<!\d)((?:19|20)\d|[2-9])0年代", lambda m, today: [_decade(int(m[1]))], "1990年代", "80年代"),
    year(r"(?<!\d)((?:19|20)\d)0s(?![a-z])", lambda m, today: [_decade(int(m[1]))], "the 1990s"),
    year(r"(?<!\d)(\d{4})年(?!\d)|\A(\d{4})\Z", lambda m, today: [year_of(int(m[1] or m[2]))], "2024年", "2024", figures_only=True),
]
DAYS_AND_MONTHS: list[Expression] = [
    day(
        r"(再?来年)の?(\d{1,2})月(?:の?(\d{1,2})日(?!間))?(?![\d間号])",
        lambda m, today: [_in_year(today.year - YEARS_BACK[m[1]], int(m[2]), int(m[3]) if m[3] else None)],
        "来年の4月8日",
        "再来年の4月",
    ),
    day(r"(?<!\d)(\d{1,2})月(\d{1,2})日", lambda m, today: _day_in_each_year(today, int(m[1]), int(m[2])), "10月17日", "十月十七日"),
    day(
        r"(?<![\d/])(\d{1,2})/(\d{1,2})(?=[のにはもかま、(頃ご以~〜]|\Z)",
        lambda m, today: _day_in_each_year(today, int(m[1]), int(m[2])),
        "10/17",
        figures_only=True,
    ),
    day(
        r"(?<![a-z])(last|this) month(?:'s| on)?(?: the)? (\d{1,2})(?:st|nd|rd|th)",
        lambda m, today: _day_of_month(months_back(today, _ENGLISH_BACK[m[1]]), int(m[2])),
        "last month on the 17th",
    ),
    day(
        r"(?<![a-z\d])(?:the )?(\d{1,2})(?:st|nd|rd|th) of (last|this) month",
        lambda m, today: _day_of_month(months_back(today, _ENGLISH_BACK[m[2]]), int(m[1])),
        "the 17th of last month",
    ),
    day(
        rf"({_JAPANESE_MONTHS_BACK})の?(\d{{1,2}})日",
        lambda m, today: _day_of_month(months_back(today, MONTHS_BACK[m[1]]), int(m[2])),
        "先月の17日",
        "来月3日",
    ),
    month(r"(?<!\d)(\d{1,2})月(?![\d間号])", lambda m, today: _month_in_each_year(today, int(m[1])), "10月", "十月"),
    day(
        rf"(?<![a-z]){MONTH_NAME}\s+(?:the\s+)?{_DAY},?\s+(\d{{4}})",
        lambda m, today: [day_of(date(int(m[3]), MONTHS[m[1]], int(m[2])))],
        "October 17, 2025",
    ),
    day(
        rf"(?<!\d){_DAY}(?:\s+of)?\s+{MONTH_NAME},?\s+(\d{{4}})",
        lambda m, today: [day_of(date(int(m[3]), MONTHS[m[2]], int(m[1])))],
        "17 October 2025",
    ),
    month(rf"(?<![a-z]){MONTH_NAME},?\s+(?:of\s+)?(\d{{4}})", lambda m, today: [month_of(int(m[2]), MONTHS[m[1]])], "October 2025"),
    day(
        rf"(?<![a-z])last\s+{MONTH_NAME}\s+(?:the\s+)?{_DAY}(?!\d)",
        lambda m, today: _last_day(today, MONTHS[m[1]], int(m[2])),
        "last October 17",
    ),
    day(
        rf"(?<![a-z\d])(?:the\s+)?{_DAY}\s+of\s+last\s+{MONTH_NAME}(?![a-z])",
        lambda m, today: _last_day(today, MONTHS[m[2]], int(m[1])),
        "the 17th of last October",
    ),
    day(
        rf"(?<![a-z]){MONTH_NAME}\s+(?:the\s+)?{_DAY}(?!\d)",
        lambda m, today: _day_in_each_year(today, MONTHS[m[1]], int(m[2])),
        "October 17",
        "Oct 17th",
    ),
    day(
        rf"(?<!\d){_DAY}(?:\s+of)?\s+{MONTH_NAME}(?![a-z])",
        lambda m, today: _day_in_each_year(today, MONTHS[m[2]], int(m[1])),
        "17 Oct",
        "the 17th of October",
    ),
    month(
        rf"(?<![a-z])(?<!and )(?<!to )(?<!until )(?<!through ){MONTH_NAME}(?:,| of| in)? (last|this|next) year(?![a-z])",
        lambda m, today: [month_of(today.year - _ENGLISH_BACK[m[2]], MONTHS[m[1]])],
        "October last year",
    ),
    month(
        rf"(?<![a-z])(last|this|next) year(?:'s|’s| in)? {MONTH_NAME}(?![a-z])",
        lambda m, today: [month_of(today.year - _ENGLISH_BACK[m[1]], MONTHS[m[2]])],
        "last year's October",
    ),
    month(
        rf"(?<![a-z])last\s+{MONTH_NAME}(?![a-z])",
        lambda m, today: [months_back(today, (today.month - MONTHS[m[1]] - 1) % 12 + 1)],
        "last October",
    ),
    month(
        rf"(?<![a-z])(this|next)\s+(?:(?!mar|may){MONTH_NAME}|(march|mar|may)(?=\s*(?:[?.,!;:]|\Z)))",
        lambda m, today: [_month_of_this_year(today, m[1], MONTHS[m[2] or m[3]])],
        "this October",
        "next May",
    ),
]
QUARTERS: list[Expression] = [
    quarter(
        r"(?<![a-z\d])(?:q([1-4])|(first|second|third|fourth) quarter)(?:\s+(?:of\s+)?|/|-)?(\d{4})(?!\d)",
        lambda m, today: [_quarter(int(m[3]), m[1] or m[2])],
        "Q1 2024",
        "first quarter of 2024",
    ),
    quarter(
        r"(?<!\d)(\d{4})年?(?:の|\s*)(?:q|第)([1-4])(?:四半期|(?![\w週]))",
        lambda m, today: [_quarter(int(m[1]), m[2])],
        "2024年第1四半期",
        "2024 Q1",
        figures_only=True,
    ),
    quarter(r"(?<![a-z\d])h([12])\s?(\d{4})(?!\d)", lambda m, today: [_half_year(int(m[2]), int(m[1]))], "H1 2025"),
    quarter(r"(?<!\d)(\d{4})\s?h([12])(?![a-z\d])", lambda m, today: [_half_year(int(m[1]), int(m[2]))], "2025H1"),
    quarter(
        "([今前先来])四半期|(?<![a-z])(last|previous|this|next) quarter(?![a-z])",
        lambda m, today: [_quarter_back(today, _QUARTERS_BACK.get(m[1] or m[2], 0))],
        "前四半期",
        "last quarter",
    ),
]
MONTHS_IN_QUESTIONS: list[Expression] = [
    month(
        rf"(?<![a-z])(?:between|from) {MONTH_NAME}\s+(?:and|to|until|till|through) {MONTH_NAME}",
        lambda m, today: each_year(today, lambda year: _months_from_to(year, MONTHS[m[1]], MONTHS[m[2]])),
        "between May and July",
    ),
    month(
        rf"(?<![a-z])(?:in|during|since|around|about|early|mid|late|for(?! (?:april|may|june|august)))[ -]{MONTH_NAME}(?![a-z])",
        lambda m, today: _month_in_each_year(today, MONTHS[m[1]]),
        "in October",
        "since May",
    ),
]
YEAR_IN_QUESTIONS = year(r"(?<![a-z])(?:in|since|during)\s+((?:19|20)\d{2})(?!\d)", lambda m, today: [year_of(int(m[1]))], "in 2024")
FIGURES_ALONE: list[Expression] = [
    day(r"\A(\d{4})(\d\d)(\d\d)\Z", lambda m, today: [day_of(date(*_numbers(m)))], "20251017"),
    day(r"(?<!\d)(\d{1,2})/(\d{1,2})/(\d{4})(?!\d)", lambda m, today: [_american(*_numbers(m))], "10/17/2025"),
    day(r"(?<!\d)(\d{1,2})-(\d{1,2})-(\d{4})(?!\d)", lambda m, today: [_american(*_numbers(m))], "10-17-2025"),
    day(r"(?<!\d)(\d{1,2})\.(\d{1,2})\.(\d{4})(?!\d)", lambda m, today: [day_of(date(*_numbers(m)[::-1]))], "17.10.2025"),
    day(r"(?<![\d/])(\d{1,2})/(\d{1,2})(?![\d/])", lambda m, today: _day_in_each_year(today, int(m[1]), int(m[2])), "10/17 9:00"),
]
FISCAL_YEAR_ALONE = fiscal(
    f"年度(?:{_PART_OF_FISCAL_YEAR})",
    lambda m, today: each_year(today, lambda year: _part_of_fiscal_year(m, year - 1 if m["last"] else year)),
    "年度末",
    "年度初め",
)
# So many days, and no day of the month: 火・水・木の三日, 丸三日, 三日に一度, 三日坊主; and one of many things: the 2nd floor.
_COUNTED_DAYS = (
    r"(?:(?:[月火水木金土日](?:曜日?)?[・、,と/]?){2,}の?(?:週に?)?|[週月年]に|(?<![今先来])週|丸|まる|その|最[初後]の|残り|のこり|(?<![のた])あと|たった|わずか|僅か|ほんの)"
    r"\d{1,2}日|(?<![\dと、・や])\d{1,2}日とも(?!に)"
)
# What follows a day of the month. A verb, で or a unit follows a count: 3日寝かせる, 3日で届く, 1日2リットル.
_COUNTED_THINGS = (
    r"[\d一二三四五六七八九十数]+(?:晩|食|[度回](?!目)|遍|時間|杯|錠|粒|個|本(?!番)|枚|リットル|(?:m?l|k?g)(?![a-z])|ページ|歩)"
)
_AFTER_A_DAY = (
    rf"\Z|[^\w\s]|\s(?!{_COUNTED_THINGS})|[a-z]|に(?!わた|渡|及|{_COUNTED_THINGS})"
    r"|は(?!かか|も[つちっ]|持|要|必要)|も(?!すれ|し[たなて]|すると|かか|あれ|あっ|経|た[っつて]|待|続|要|休|寝)|が(?!経|たっ|たつ|かか|かり|必要|まん)"
    r"|と(?!持|もた|経|たた|かから)|か(?![かけ])|を(?!要)|の(?!ん)|まで|や(?![すっらり])|へ|より|だ(?!け)|で[すし]|って|なら|らしい|みたい|[よね](?=\W|\Z)"
    r"|頃|ごろ|ころ|あたり|辺り|前後|過ぎに|以降|以来|現在|時点|当日|付|いっぱい|中[にはのま]|祝"
    r"|[月火水木金土日]曜|お?[朝昼夕夜晩]|午[前後]|深夜|真夜中|未明|早朝|正午|終日|\d{1,2}(?:時(?!間)|:\d\d)"
    rf"|生まれ|締|必着|消印|払|支給|引き?落|振り?込|発送|配信|放送|{PLANNED}|(?:{EVENTS})(?=[がのはもで]|[^\w]|\Z)"
)
DAY_OF_MONTH_ALONE = day(
    rf"{_COUNTED_DAYS}|(?<!\d)(\d{{1,2}})日(?=(?:(?:[〜~–、,・とやか-]|から)\s?\d{{1,2}}日){{0,9}}+(?:{_AFTER_A_DAY}))|(?<![a-z\d])(?:the )?(\d{{1,2}})(?:st|nd|rd|th){NO_COUNT}",
    lambda m, today: _latest_day_of_month(today, int(m[1] or m[2])) if m[1] or m[2] else iter(()),
    "17日",
    "the 17th",
    recurs_after=(30, 61),
)
CALENDAR_ALONE: list[Expression] = [
    quarter(
        r"(?:第|q)([1-4])(?!週)(?:四半期)?|(?:the )?(first|second|third|fourth) quarter(?=\Z)",
        lambda m, today: [_quarter(today.year, m[1] or m[2])],
        "第1四半期",
        "Q3",
    ),
    year(r"(?<!\d)((?:19|20)\d{2})(?!\d)", lambda m, today: [year_of(int(m[1]))], "late 2024"),
    month(rf"(?<![a-z]){MONTH_NAME}(?![a-z])", lambda m, today: _month_in_each_year(today, MONTHS[m[1]]), "October", "early October"),
    DAY_OF_MONTH_ALONE,
]
