"""The table of date expressions, of both languages: parts of the calendar, dates counted from today, weeks and days of the week, seasons,
vague times.

A row is a kind, a pattern, what a match may mean as seen from today, the latest first, and examples for the grammar in docs/dates.md.
`needs`: words of which a text must have one, with _ for a blank; without them it needs a year. Of rows that match the same text the earlier one counts, so
longer readings come first. Where both languages have the same shape they share a row, and so does a text that mixes them: 来週Friday.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cached_property
from typing import Any

from memory_mcp import lexicon
from memory_mcp.dates.spans import (
    COUNT,
    MONTHS,
    MONTHS_BACK,
    NUMBER,
    ONE_DAY,
    ORDINALS,
    SATURDAY,
    WEEKDAY_NAMES,
    WEEKDAYS,
    YEARS_BACK,
    YEARS_CONSIDERED,
    DaySpan,
    day_back,
    day_of,
    each_year,
    month_of,
    months_back,
    nth_of,
    nth_weekday,
    number_of,
    units_back,
    week_of,
    year_of,
)
from memory_mcp.dates.tense import ENGLISH_EVENTS, EVENTS, PLANNED
from memory_mcp.patterns import Forms, Found, Needed, bounded

_YEAR = bounded("[0-9]{4}")
# Raises ValueError or OverflowError where there is no such day.
Resolver = Callable[[Any, date], Iterable[DaySpan]]


@dataclass(frozen=True, eq=False, slots=True)
class Expression:
    """One kind of date expression.

    `recurs_after`: of a word such as 金曜 or 17日, in how many days from today the latest such day is the next one. `counted`: the single day
    that a count of weeks, months or years means as a moment. `is_alone`: a day of the week or month, which only a sentence dates.
    """

    kind: str
    find: Callable[[str], Iterable[Any]]
    resolve: Resolver
    examples: tuple[str, ...]
    needs: tuple[str, ...] = ()
    recurs_after: tuple[int, ...] = ()
    counted: Resolver | None = None
    is_alone: bool = False


class Table(tuple[Expression, ...]):
    """Expressions, in the order in which they are tried."""

    @cached_property
    def _needed(self) -> Needed:
        return Needed([word.replace("_", " ") for word in expression.needs] for expression in self)

    @cached_property
    def _without_needs(self) -> Sequence[int]:
        return [number for number, expression in enumerate(self) if not expression.needs]

    def found_in(self, plain: str) -> list[tuple[Expression, Any]]:
        """The matches of a text, of the expressions of which it has a word or, where they need none, a year."""
        tried = self._needed.within(plain)
        if _YEAR.search(plain):
            tried.update(self._without_needs)
        return [(self[number], match) for number in sorted(tried) for match in self[number].find(plain)]


def row(kind: str, pattern: str, resolve: Resolver, *examples: str, needs: str = "", **further: Any) -> Expression:
    return Expression(kind, Forms(pattern).all, resolve, examples, tuple(needs.split()), **further)


NEAR, WEEKDAY_KIND, WEEK, FROM_NOW = "near days", "days of the week", "weeks and weekends", "months and years from now"
DAY, MONTH, YEAR = "days", "months", "years and decades"
FISCAL, NTH, AGO = "fiscal years, which begin in April", "days of the week counted within a month", "so long ago"
LATELY_KIND, SEASON = "up to now, with today", "seasons"
TO_COME, VAGUE = "to come, as an argument", "vague times, as an argument"
CURRENT = "parts of the current week, month or year, as an argument"
WEEKDAY_ALONE_KIND = "days of the week and weekends, as an argument"

# The words of both languages, each with a group: what it means, the functions below tell.
_SHORT_DAYS = "|".join(name for name in WEEKDAYS if name.isascii())
ENGLISH_WEEKDAY = rf"(?<![a-z])(?P<weekday>{_SHORT_DAYS})(?:(?:s|nes|rs|ur)?day|s|rs?)?(?![a-z])"
_WHOLE_WEEKDAY = r"(?P<weekday>mon|tue|wed|thu|fri|sat|sun)(?:s|nes|rs|ur)?day"
_JAPANESE_WEEKDAY = f"(?P<weekday>[{WEEKDAY_NAMES}])曜日?"
WEEKDAY = f"(?:{_JAPANESE_WEEKDAY}|{ENGLISH_WEEKDAY})"
# Whole names only: what is sold at a market 5 times is not about March.
_NAMES_OF_MONTHS = lexicon.any_of(MONTHS)
MONTH_NAME = rf"(?P<month>{_NAMES_OF_MONTHS})(?![a-z])\.?"
_MONTHS_NEED = " ".join({name[:3] for name in MONTHS})
_TH = "(?:st|nd|rd|th)"
_N = f"(?P<n>{NUMBER})"
_ENGLISH_N = f"(?P<n>{COUNT})"
_UNIT = "(?:(?P<unit>[日週年])間?|[ヶケかカ箇](?P<unit>月)間?)"
_ENGLISH_UNIT = "(?P<unit>day|night|week|fortnight|month|year)s?"
_WHICH, _BEFORE_LAST = "(?P<which>last|previous|this|next)", "(?P<which>before last|after next)"
_WEEKS_BACK = lexicon.counts("ja", "weeks_back")
_JAPANESE_WEEK = f"(?P<which>{lexicon.any_of(_WEEKS_BACK)})"
_JAPANESE_MONTH = f"(?P<which>{lexicon.any_of(MONTHS_BACK)})"
_BACK = {**_WEEKS_BACK, **MONTHS_BACK, **YEARS_BACK, **lexicon.counts("ja", "back_in_short"), **lexicon.counts("en", "back")}
_FEW_COUNT = 6


def _weekday(found: Found) -> int:
    return WEEKDAYS[found["weekday"]]


def _month(found: Found) -> int:
    return MONTHS.get(found["month"]) or int(found["month"])


def _month_in_each_year(today: date, month: int) -> Iterator[DaySpan]:
    return each_year(today, lambda year: month_of(year, month))


def _numbers(found: Found) -> list[int]:
    return [int(number) for number in found.all("n")]


def _decade(tens: int) -> DaySpan:
    """The nineties, of 199 as of 9."""
    tens += 190 if tens < 10 else 0
    return date(tens * 10, 1, 1), date(tens * 10 + 10, 1, 1)


def _american(month: int, day: int, year: int) -> DaySpan:
    """10/17/2025, and 17/10/2025 where nothing else can be meant."""
    return day_of(date(year, day, month) if month > 12 else date(year, month, day))


def _months_from_to(year: int, first: int, last: int) -> DaySpan:
    return month_of(year, first)[0], month_of(year + (1 if last < first else 0), last)[1]


def _month_beside(found: Found, today: date) -> list[DaySpan]:
    """The last, this or the next October; the latest that is over, and the first to come."""
    month = MONTHS[found["month"]]
    if found["which"] == "last":
        return [months_back(today, (today.month - month - 1) % 12 + 1)]
    return [month_of(today.year + (found["which"] == "next" and month <= today.month), month)]


# Fiscal years, which begin in April.

_FISCAL_MONTH = 4


def _fiscal_year(found: Found, today: date) -> Iterable[DaySpan]:
    """A fiscal year; its 末 is the March, its 初め the April. Without a year, those of each of the last ones."""
    current = today.year if today.month >= _FISCAL_MONTH else today.year - 1
    if not found["year"] and not found["which"]:
        return each_year(today, lambda year: month_of(year, _FISCAL_MONTH - bool(found["last"])))
    year = int(found["year"]) if found["year"] else current - _BACK[found["which"]]
    if found["last"]:
        return [month_of(year + 1, _FISCAL_MONTH - 1)]
    return [month_of(year, _FISCAL_MONTH)] if found["first"] else [(date(year, _FISCAL_MONTH, 1), date(year + 1, _FISCAL_MONTH, 1))]


def _nth_weekday(found: Found, today: date) -> Iterator[DaySpan]:
    """The nth such day of a month, or of that month of each of the last years."""
    months: Iterable[DaySpan] = [months_back(today, _BACK[found["which"]])] if found["which"] else _month_in_each_year(today, _month(found))
    months = [month_of(int(found["year"]), _month(found))] if found["year"] else months
    nth = nth_of(found["nth"])
    if not found["weekday"]:
        return (day_of(first.replace(day=nth) if nth > 0 else after - ONE_DAY) for first, after in months)
    return (day_of(nth_weekday(first.year, first.month, _weekday(found), nth)) for first, _ in months)


def _quarter(found: Found, today: date) -> list[DaySpan]:
    first, _ = months_back(today, (today.month - 1) % 3 + 3 * _BACK[found["which"] or "this"])
    first = date(int(found["year"]), int(found["nth"]) * 3 - 2, 1) if found["nth"] else first
    return [(first, months_back(first, -3)[0])]


# fmt: off
NTH_WEEKDAY = row(NTH, rf"(?<![a-z])(?:the )?(?P<nth>{'|'.join(ORDINALS)}|last) (?:{_WHOLE_WEEKDAY}|day) (?:of|in) (?:{MONTH_NAME}(?:,? (?P<year>\d{{4}}))?|(?P<which>last|this|next) month)"
    rf"|(?:(?:(?P<year>\d{{4}})年)?(?<!\d)(?P<month>\d{{1,2}})月|{_JAPANESE_MONTH})の?(?:第(?P<nth>[1-5一二三四五])の?|(?P<nth>最初|最後)の){_JAPANESE_WEEKDAY}"
    rf"|(?:(?:(?P<year>\d{{4}})年)?(?<!\d)(?P<month>\d{{1,2}})月|{_JAPANESE_MONTH})の?(?P<nth>最初|最後)の日(?!曜)", _nth_weekday,
    "the first Monday of October", "10月の第2月曜", "9月最後の日曜", "来月の第2日曜", "last day of September", "先月の最後の日", needs="第 最初の 最後の day_of day_in")
QUARTER = row("quarters", f"(?<![a-z\\d])q(?P<nth>[1-4])[ /-]?(?P<year>\\d{{4}})(?!\\d)|(?<!\\d)(?P<year>\\d{{4}})年?の?\\s?(?:q|第)(?P<nth>[1-4])(?:四半期|(?![\\w週]))"
    f"|(?P<which>[今前来])四半期|(?<![a-z]){_WHICH} quarter(?![a-z])", _quarter, "Q1 2024", "2024年第1四半期", "2024 Q1", "前四半期", "last quarter",
    needs="q 第 四半期")
YEARS = [
    row(FISCAL, r"(?:(?<!\d)(?P<year>\d{4})|(?P<which>一昨|再来|[昨去今前本来]))年度の?(?:(?P<last>末)|(?P<first>初め?|始め|はじめ|頭))?", _fiscal_year,
        "2024年度", "今年度", "昨年度末", needs="年度"),
    row(YEAR, r"(?<!\d)(?P<n>(?:19|20)\d|[2-9])0(?:年代|s(?![a-z]))", lambda m, t: [_decade(int(m["n"]))], "1990年代", "80年代", "the 1990s",
        needs="年代 0s"),
    row(YEAR, r"(?<!\d)(?P<n>\d{4})年(?!\d)|\A(?P<n>\d{4})\Z", lambda m, t: [year_of(*_numbers(m))], "2024年", "2024"),
]
MONTHS_AND_DAYS = [
    row(MONTH, r"(?<!\d)(?P<n>\d{4})[-/](?P<n>\d{1,2})(?![-/\d])", lambda m, t: [month_of(*_numbers(m))], "2025-10"),
    row(DAY, rf"{_JAPANESE_MONTH}の?(?P<day>\d{{1,2}})日|(?<![a-z]){_WHICH} month(?:'s| on)?(?: the)? (?P<day>\d{{1,2}}){_TH}"
        rf"|(?<![a-z\d])(?:the )?(?P<day>\d{{1,2}}){_TH} of {_WHICH} month",
        lambda m, t: [day_of(months_back(t, _BACK[m["which"]])[0].replace(day=int(m["day"])))],
        "last month on the 17th", "the 17th of last month", "先月の17日", "来月3日", needs="月 month"),
    row(MONTH, r"(?<!\d)(?P<n>\d{1,2})月(?![\d間号])", lambda m, t: _month_in_each_year(t, *_numbers(m)), "10月", "十月", needs="月"),
    row(MONTH, rf"(?<![a-z])(?<!and )(?<!to )(?<!until )(?<!through ){MONTH_NAME}(?:,| of| in)? {_WHICH} year(?![a-z])"
        rf"|(?<![a-z]){_WHICH} year(?:'s| in)? {MONTH_NAME}(?![a-z])",
        lambda m, t: [month_of(t.year - _BACK[m["which"]], MONTHS[m["month"]])], "October last year", "last year's October", needs="year"),
    row(MONTH, rf"(?<![a-z])(?:(?P<which>last)\s+{MONTH_NAME}|(?P<which>this|next)\s+(?:(?!mar|may){MONTH_NAME}|(?P<month>march|mar|may)"
        r"(?=\s*(?:[?.,!;:]|\Z))))(?![a-z])", _month_beside, "last October", "this October", "next May", needs="last this next"),
]
FIGURES_ALONE = [
    row(DAY, r"\A(?P<n>\d{4})(?P<n>\d\d)(?P<n>\d\d)\Z", lambda m, t: [day_of(date(*_numbers(m)))], "20251017"),
    row(DAY, r"(?<!\d)(?P<n>\d{1,2})[/-](?P<n>\d{1,2})[/-](?P<n>\d{4})(?!\d)", lambda m, t: [_american(*_numbers(m))], "10-17-2025", needs="/ -"),
    row(DAY, r"(?<!\d)(?P<n>\d{1,2})\.(?P<n>\d{1,2})\.(?P<n>\d{4})(?!\d)", lambda m, t: [day_of(date(*_numbers(m)[::-1]))], "17.10.2025",
        needs="."),
    row(MONTH, r"\A(?P<n>\d{4})\.(?P<n>\d{1,2})\Z", lambda m, t: [month_of(*_numbers(m))], "2025.10"),
    row(DAY, r"(?<![\d/])(?P<n>\d{1,2})/(?P<n>\d{1,2})(?![\d/])", lambda m, t: each_year(t, lambda year: day_of(date(year, *_numbers(m)))), "10/17 9pm",
        needs="/"),
]
FISCAL_YEAR_ALONE = row(FISCAL, "年度(?:(?P<last>末)|(?P<first>初め?|始め|はじめ|頭))", _fiscal_year, "年度末", "年度初め", needs="年度")
CALENDAR_ALONE = [
    row(YEAR, r"(?<!\d)(?P<n>(?:19|20)\d{2})(?!\d)", lambda m, t: [year_of(*_numbers(m))], "late 2024"),
    row(MONTH, rf"(?<![a-z]){MONTH_NAME}(?![a-z])", lambda m, t: _month_in_each_year(t, MONTHS[m["month"]]), "October", "early October",
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
_PART_OF_DAY = r"お?[朝昼夕夜晩]|午[前後]|深夜|終日|\d{1,2}(?:時(?!間)|:\d\d)"
_AFTER_A_DAY = (
    rf"\Z|[^\w\s]|\s(?!{_COUNTED_THINGS})|[a-z]|に(?!わた|渡|及|{_COUNTED_THINGS})"
    r"|は(?!かか|も[つちっ]|持|要|必要)|も(?!すれ|し[たなて]|すると|かか|あれ|あっ|経|た[っつて]|待|続|要|休|寝)|が(?!経|たっ|たつ|かか|かり|必要|まん)"
    r"|と(?!持|もた|経|たた|かから)|か(?![かけ])|を(?!要)|の(?!ん)|まで|や(?![すっらり])|へ|より|だ(?!け)|で[すし]|って|なら|らしい|みたい|[よね](?=\W|\Z)"
    r"|頃|ごろ|ころ|あたり|辺り|前後|過ぎに|以降|以来|現在|時点|当日|付|いっぱい|中[にはのま]|祝"
    rf"|[{WEEKDAY_NAMES}]曜|{_PART_OF_DAY}|真夜中|未明|早朝|正午"
    rf"|{PLANNED}|(?:{EVENTS})(?=[がのはもで]|[^\w]|\Z)"
)
# What follows a number that is no count: 17 people and 3 miles are no days.
NO_COUNT = (
    r"(?=\s*(?:\Z|[.,;:!?)\]\"'’–—-]|(?:is|was|are|were|will|at|in|on|for|with|from|to|and|or|but|we|[Ii]|he|she|it|they|the|a|an|my|our"
    r"|his|her|their|there|until|till|through|as|because|when|while|after|before|this|last|next|every|each|(?:19|20)\d\d)\b|[^\x00-\x7f]))"
)


def _day_of_month(found: Found, today: date) -> Iterator[DaySpan]:
    """The latest such day; none for a count."""
    for back in range(12 if found["day"] else 0):
        try:
            latest = months_back(today, back)[0].replace(day=int(found["day"]))
        except ValueError:
            continue
        if latest <= today:
            yield day_of(latest)
            return


DAY_OF_MONTH_ALONE = row(
    DAY,
    rf"{_COUNTED_DAYS}|(?<!\d)(?<!\d月)(?P<day>\d{{1,2}})日(?=(?:(?:[〜~–、,・とやか-]|から)\s?\d{{1,2}}日){{0,9}}+(?:{_AFTER_A_DAY}))"
    rf"|(?<![a-z\d])(?:the )?(?P<day>\d{{1,2}}){_TH}{NO_COUNT}",
    _day_of_month,
    "17日",
    "the 17th",
    needs=" ".join([*(f"{digit}日" for digit in range(10)), "1st", "2nd", "3rd", *(f"{digit}th" for digit in range(10))]),
    recurs_after=(30, 61),
    is_alone=True,
)

# Dates counted from today.

_HERE = "(?:ここ|この|過去|直近|最近)の?"
_ABOUT_THEN = {"year": 15, "年": 15, "month": 3, "月": 3, "week": 1, "週": 1}


def _until_today(found: Found, today: date) -> list[DaySpan]:
    """The last so many units, up to and with today."""
    unit, count, tomorrow = found["unit"], found["n"] or "1", today + ONE_DAY
    if count in ("半", "half"):
        return [(day_back(tomorrow, "月", 6), tomorrow)]
    counted = _FEW_COUNT if count in ("数", "few", "several") else 2 if count.startswith("couple") else number_of(count)
    return [(day_back(tomorrow, unit, counted), tomorrow)]


def _then(today: date, unit: str, back: int, *, exactly: bool) -> DaySpan:
    """This very day so many weeks, months or years ago, or about then."""
    day, near = day_back(today, unit, back), timedelta(days=0 if exactly else _ABOUT_THEN[unit])
    return day - near, day + near + ONE_DAY


def _this_day(found: Found, today: date) -> list[DaySpan]:
    """去年の今日 and this time last year."""
    unit, back = found["unit"], 1
    if not unit:
        unit, back = "週" if "週" in found["which"] else "月" if "月" in found["which"] else "年", _BACK[found["which"]]
    return [_then(today, unit, back, exactly=bool(found["exactly"]) or back < 0)]


def _ago(found: Found, today: date, *, as_moment: bool = False) -> list[DaySpan]:
    """So many units ago; with two counts, in whichever order, all between them."""
    unit, counts = found["unit"], [number_of(count) for count in found.all("n")] or [1]
    if found["half"]:  # 1年半前, 半年前
        unit, counts = "月", [12 * (counts[0] if found["n"] else 0) + 6]
    elif found["some"]:
        counts = [2, 3 if "couple" in found["some"] else _FEW_COUNT]
    elif found["so"]:
        counts.append(counts[0] + 1)
    if found["today"] or found["then"]:
        return [_then(today, unit, counts[0], exactly=bool(found["today"]))]
    if as_moment and len(counts) == 1:
        return [(day_back(today, unit, counts[0]), today)]
    return [(units_back(today, unit, max(counts))[0], units_back(today, unit, min(counts))[1])]


def _later(found: Found, today: date, *, as_moment: bool = False) -> list[DaySpan]:
    """So many units from today: two weeks from now is a day, in two weeks a week."""
    unit, count = (found["unit"], number_of(found["n"])) if not found["half"] else ("月", 6)
    if as_moment or (found["today"] and unit in ("週", "week")):
        return [day_of(day_back(today, unit, -count))]
    return [units_back(today, unit, -count)]


def _from_today(found: Found, today: date) -> list[DaySpan]:
    """The next so many units, from today."""
    return [(today, day_back(today, found["unit"], -number_of(found["n"])) + ONE_DAY)]


def _as_moment(resolve: Callable[..., list[DaySpan]]) -> Resolver:
    return lambda found, today: resolve(found, today, as_moment=True)


_DAYS_BACK = {**lexicon.counts("ja", "days_back"), **lexicon.counts("en", "days_back")}
# 体 makes a font of 明朝, and 夕べの祈り is a prayer of any day.
_NEAR_DAY = (
    rf"(?P<near>{lexicon.any_of(lexicon.counts('ja', 'days_back'))})(?!体)(?:(?<=今朝)(?:方|がた))?|(?<![のなな])(?P<evening>夕べ)(?!の(?:会|祈|集|調))"
    rf"|(?<![a-z])(?P<near>{lexicon.any_of(lexicon.counts('en', 'days_back'))})(?![a-z])"
)
_THEN = "今(?:ごろ|頃|時分)|同じ(?:頃|ころ|時期)"
_PARTS = "[末内初]|[上中下]旬|半ば|なかば|の(?:末|頭|初め|はじめ|始め|半ば|なかば|真ん中|中頃|前半|後半|終わり)"
# fmt: off
_VAGUE_DAYS = {
    "しばらく前|ちょっと前|少し前|(?<![a-z])(?:(?:quite )?a while|some time|not (?:so |that |too |very )?long) (?:ago|back)": (180, 0),
    "(?:ここ|つい)?最近|(?:近|この)(?:頃|ごろ)|昨今|ここしばらく|このところ|(?<![a-z])(?:(?:just |only |very )?recently|lately|of late|these days|in recent (?:days|weeks))":
        (30, 1),
    "(?:つい)?(?:先日|この間|このあいだ|この前|このまえ|こないだ|先だって|先頃|先ごろ)|(?<![a-z])(?:just )?the other (?:day|night|week)": (14, 0),
}
# fmt: on


def _vague(found: Found, today: date) -> list[DaySpan]:
    before, after = next(days for index, days in enumerate(_VAGUE_DAYS.values()) if found[f"v{index}"])
    return [(today - timedelta(days=before), today + timedelta(days=after))]


def _current(found: Found, today: date) -> list[DaySpan]:
    """The current week, month or year, of which a part is meant, and the one before, which a report means."""
    return [units_back(today, found["unit"], back) for back in (0, 1)]


# Two or three weeks, half a year, some days.
_ENGLISH_AGO = (
    rf"(?<![a-z\d])(?:(?:(?:{_ENGLISH_N}(?:(?: or |-| to ){_ENGLISH_N})?|(?P<some>(?:an? )?(?:few|several)|some|(?:a )?couple(?: of)?))\s+"
    rf"(?:(?P<half>years? and a half|and a half years)|{_ENGLISH_UNIT}(?P<so> or (?:two|three|so))?))|(?P<unit>week|fortnight|month|year)"
    r"|(?P<half>half a year))\s+(?:ago|back)(?P<today> today)?(?![a-z])"
)
# fmt: off
LATELY = row(LATELY_KIND, rf"(?:{_HERE}(?:{NUMBER}[、,~〜・-])?(?P<n>{NUMBER}|数|半(?=年)){_UNIT}(?:以内)?"
    rf"|(?P<n>{NUMBER}|数|半(?=年)){_UNIT}以内)(?!前)|(?<![a-z])(?:(?:last|past|within) {_ENGLISH_N} {_ENGLISH_UNIT}|(?:last|past) "
    rf"(?P<n>few|several|couple(?: of)?) {_ENGLISH_UNIT}|past (?P<unit>day|week|month|year)|(?:the|this) last (?P<unit>week|fortnight|month"
    r"|year)(?!'| of)|(?:in|within|over|during) the last (?P<unit>day)(?!'| of)|(?:last|past) (?P<n>half) (?:a )?year)(?![a-z])",
    _until_today, "ここ2、3日", "1週間以内", "数日以内", "過去30日間", "ここ一週間", "ここ数日", "この半年", "the last 3 days", "past two weeks", "the last few days",
    "past week", "the last month", "within the last day", needs="ここ この 過去 直近 最近 以内 last past within")
THIS_DAY = row(AGO, rf"(?P<which>{lexicon.any_of(YEARS_BACK)}|先月|[先来]週)の(?:(?P<exactly>今日)|{_THEN})|(?<![a-z])this time last (?P<unit>year|month|week)",
    _this_day, "おととしの今日", "一昨年の今頃", "去年の今日", "去年の今頃", "先月の今日", "先週の今日", "来週の今日", "this time last year", "this time last month",
    needs="の今 の同じ this")
AGOS = [
    row(AGO, rf"(?:(?P<some>数)|{_N}(?:[ヶケかカ箇]?月?[、,~〜・-]{_N})?)(?:(?P<unit>[日週年])間?|(?<=数)[ヶケかカ箇](?P<unit>月)|(?<!数)[ヶケかカ箇]?(?P<unit>月))"
        rf"(?P<half>(?<=年)半)?前(?![後半])(?:の?(?P<today>今日)|の(?P<then>{_THEN}))?|(?P<half>半年)前", _ago, "3日前", "二週間前", "今から3日前",
        "2、3日前", "2か月前", "2、3か月前", "1年半前", "数日前", "何日か前", "2週間前の今日", "3か月前の今日", "3年前の今日", "半年前", "ひと月前", "ふた月前", needs="前",
        counted=_as_moment(_ago)),
    row(AGO, _ENGLISH_AGO, _ago, "half a year ago", "two or three weeks ago", "one and a half years ago", "a week or so ago",
        "a couple of weeks ago", "a few days ago", "3 days ago", "two weeks back", "fortnight ago", "a year ago today",
        needs="ago back", counted=_as_moment(_ago)),
]
NEAR_DAYS = row(NEAR, _NEAR_DAY, lambda m, t: [day_of(t - timedelta(days=_DAYS_BACK[m["near"]] if m["near"] else 1))],
    "さきおととい", "一昨々日", "おととい", "the day before yesterday", "the night before last", "昨日", "夕べ", "yesterday", "last night", "今日", "今朝",
    "today", "tonight", "しあさって", "あさって", "the day after tomorrow", "明日", "明朝", "tomorrow",
    needs=" ".join([*lexicon.counts("ja", "days_back"), "夕べ", *(words.replace(" ", "_") for words in lexicon.counts("en", "days_back"))]))
MONTHS_AND_YEARS = row(FROM_NOW, rf"{_JAPANESE_MONTH}|(?P<year>{lexicon.any_of(YEARS_BACK)})|(?<![a-z])(?:{_WHICH} (?P<unit>month|year)|(?:the )?(?P<unit>month|year) {_BEFORE_LAST})",
    lambda m, t: [units_back(t, m["unit"] or ("年" if m["year"] else "月"), _BACK[m["which"] or m["year"]])],
    "先月", "先々月", "再来月", "last month", "去年", "おととし", "再来年", "last year", "the month after next", "the year after next",
    "the month before last", "the year before last", needs=" ".join([*MONTHS_BACK, *YEARS_BACK, "month", "year"]))
_LATER = (
    rf"{_N}(?:(?P<unit>[日週年])間?|[ヶケかカ箇](?P<unit>月))後(?:の(?P<today>今日|今頃|今ごろ))?|(?P<half>半年)後"
    rf"|(?<![a-z\d]){_ENGLISH_N} {_ENGLISH_UNIT} (?P<today>from (?:today|now))|(?<![a-z])in {_ENGLISH_N} {_ENGLISH_UNIT}(?:'s? time)?(?![a-z])"
)
# Tried before 今日 and today, which are part of them.
LATER = row(TO_COME, _LATER, _later, "two weeks from now", "2週間後の今日", "in 3 days", "two months from today", "3日後", "2か月後", "半年後",
    needs="日後 間後 週後 月後 年後 from_ in_", counted=_as_moment(_later))
# Behind another day it counts from that one: 退院の3日後. In a report it counts nothing from today: 3日後に届いた.
LATER_IN_TEXTS = row(TO_COME.replace(", as an argument", ""), rf"(?<![のたらでてと\d])(?:{_LATER})(?!の\d)", _later, "3日後の予定は？",
    "What is planned in two weeks?", needs="日後 間後 週後 月後 年後 day week month year", is_alone=True)
FROM_TODAY = row(TO_COME, rf"(?:今後|これから|この先|向こう)の?{_N}{_UNIT}|(?<![a-z])(?:the |over the )?(?:next|coming) {_ENGLISH_N} {_ENGLISH_UNIT}(?![a-z])",
    _from_today, "今後3日間", "the next 3 days", needs="今後 これから この先 向こう next coming")
CURRENT_ALONE = row(CURRENT, rf"(?P<unit>[週月年])(?={_PARTS})|(?<![a-z])the (?P<unit>month|year)|\A(?=[上下]半?期\Z)|\A(?=[上中下初]旬)",
    lambda m, t: [units_back(t, m["unit"] or ("年" if m.string[1] in "半期" else "月"), 0)],
    "週の前半", "週内", "年内", "年の初め", "end of the year", "上半期", "月初め", "月末", "月内", "上旬", "end of the month", needs="週 月 年 期 旬 month year")
VAGUE_ALONE = row(VAGUE, "|".join(f"(?P<v{index}>{words})" for index, words in enumerate(_VAGUE_DAYS)), _vague,
    "しばらく前", "a while ago", "最近", "recently", "先日", "このあいだ", "the other day",
    needs="前 最近 頃 ごろ 昨今 しばらく ところ 先 間 あいだ まえ こないだ ago back recent lately late days other")
# In a sentence only an end is certain: 月末に払う, 年内に引っ越す, by the end of the year.
ENDS_IN_TEXTS = row(CURRENT.replace(", as an argument", ""), r"(?<![\w])(?P<unit>[週月年])(?=末(?![年調])|内(?:[にはで]|いっぱい))|(?<=[、はに])(?P<unit>[月年])(?=末(?:に|まで)|内(?:[にはで]|いっぱい))"
    r"|(?<=end of )(?:the|this) (?P<unit>week|month|year)(?![a-z'])", _current, "月末の予定は？", "What's due by the end of the month?",
    needs="月末 年内 月内 週内 end", is_alone=True)
# fmt: on

# Weeks, weekends and days of the week. A week begins on Monday.

_RECENT = "(?:この[前間]|このまえ|このあいだ|こないだ)の?"
_COMING = "(?:今度|次|来る|来たる|きたる)の?"


def next_weekday(today: date, weekday: int) -> DaySpan:
    """The first such day after today."""
    return day_of(today + timedelta(days=(weekday - today.weekday() - 1) % 7 + 1))


def _in_week(today: date, weekday: int, back: int) -> list[DaySpan]:
    """The day of the week so many weeks ago."""
    return [day_of(week_of(today, back)[0] + timedelta(days=weekday))]


def _weekday_before(today: date, weekday: int, count: int = 1) -> list[DaySpan]:
    """The latest such day before today, or an earlier one: two Fridays ago is the one before the latest."""
    return [day_of(today - timedelta(days=(today.weekday() - weekday - 1) % 7 + 1 + 7 * (count - 1)))]


def _weekday_beside(found: Found, today: date) -> list[DaySpan]:
    """The last or the coming one, an earlier or a later one, or that of a week."""
    weekday = _weekday(found)
    if found["which"] in ("this", "next"):
        return _in_week(today, weekday, _BACK[found["which"]])
    if found["coming"] or found["which"] == "after next":
        return [day_of(next_weekday(today, weekday)[0] + timedelta(days=7 if found["which"] else 0))]
    return _weekday_before(today, weekday, number_of(found["n"]) if found["n"] else max(_BACK.get(found["which"], 1), 1))


def _weekend(today: date, weeks_back: int) -> DaySpan:
    monday = week_of(today, weeks_back)[0]
    return monday + timedelta(days=SATURDAY), monday + timedelta(days=7)


def _latest_weekend(today: date) -> DaySpan:
    """The weekend that has begun last."""
    return _weekend(today, 0 if today.weekday() >= SATURDAY else 1)


def _weekend_beside(found: Found, today: date) -> list[DaySpan]:
    if found["n"]:
        return [_weekend(today, number_of(found["n"]))]
    return [_latest_weekend(today) if found["recent"] else _weekend(today, -1 if found["coming"] and today.weekday() >= SATURDAY else 0)]


def _named_week(found: Found, today: date) -> list[DaySpan]:
    """先週 and last week, or its 平日, 週明け, 週末 or 土日."""
    back = _BACK[found["which"]]
    monday, after = week_of(today, back)
    if found["monday"]:
        return [day_of(monday)]
    if found["weekdays"]:
        return [(monday, monday + timedelta(days=SATURDAY))]
    return [_weekend(today, back) if found["weekend"] else (monday, after)]


def _around_today(today: date, weekday: int) -> list[DaySpan]:
    """The coming and the last such day, today included, and those a week away."""
    coming = next_weekday(today - ONE_DAY, weekday)[0]
    return [day_of(coming + timedelta(days=7 * weeks)) for weeks in (1, 0, -1)]


_AFTER_A_WEEKDAY = (
    r"(?=\Z|[^\w\s]|\s|[にもはがまでとかへっ]|の(?!み|\d(?!\d?(?:時(?!間)|:\d\d)))|を(?=[空あ]け)|から|より|だ(?!け)|何|誰|どこ|いつ|どう(?!でしょう)|暇|ひま|ヒマ|頃|ごろ|中に|以降"
    rf"|空|{_PART_OF_DAY})"
)
_NO_NAMES = "".join(
    f"(?<!{word} )" for word in "the every each any some most many alternate other that black good cyber easter freaky a".split()
)
_SHORT_MONTH_NAMES = _MONTHS_NEED.replace(" ", "|")
_ON = "".join(rf"|(?<=\bon {'.' * length})(?![a-z])" for length in (6, 7, 8, 9))
_EVENT_BEHIND = rf"|(?=\s(?:{ENGLISH_EVENTS})\b)"

# fmt: off
WEEKS = [
    # 退院の2週間後の土曜 counts from another day.
    row(WEEKDAY_KIND, rf"{_N}週間?(?:前|(?<!の\d週間)(?<!の\d週)(?P<later>後))の?{_JAPANESE_WEEKDAY}|{ENGLISH_WEEKDAY} {_ENGLISH_N} weeks? ago"
        rf"|(?<![a-z])(?P<n>a) week ago(?: on)? {ENGLISH_WEEKDAY}|(?<![a-z])(?P<later>in) {_ENGLISH_N} weeks?,?(?: on)? {ENGLISH_WEEKDAY}"
        rf"|{ENGLISH_WEEKDAY} (?P<later>in) {_ENGLISH_N} weeks?(?![a-z])", lambda m, t: _in_week(t, _weekday(m), number_of(m["n"]) * (-1 if m["later"] else 1)),
        "2週間前の金曜", "2週間後の土曜",
        "Friday two weeks ago", "a week ago on Friday", "in two weeks on Saturday", "Saturday in two weeks", needs="週間前 週前 週間後 週後 week"),
    row(WEEKDAY_KIND, rf"(?:{_JAPANESE_WEEK}末?|(?<![a-z]){_WHICH} week(?:'s|,)?)(?:の|\s)?(?:on )?{WEEKDAY}"
        rf"|{ENGLISH_WEEKDAY}(?: of)? ?(?:{_WHICH} week(?!end)|{_JAPANESE_WEEK})", lambda m, t: _in_week(t, _weekday(m), _BACK[m["which"]]),
        "先週の金曜", "来週の月曜日", "先週末の土曜", "last week on Friday", "Friday of last week", "来週Friday", needs=" ".join([*_WEEKS_BACK, "week"])),
    row(WEEK, f"{_JAPANESE_WEEK}(?:の?(?:(?P<weekdays>平日|ウィークデー)|(?P<monday>週?明け)|(?P<weekend>週?末|土日))|(?!の今(?:日|頃|ごろ)))"
        rf"|(?<![a-z])(?:(?:the )?week(?P<weekend>end)? {_BEFORE_LAST}|{_WHICH} week(?:(?P<weekend>end)|(?! of)))", _named_week,
        "先週の平日", "来週明け", "先週末", "今週の土日", "先週", "今週", "来週", "さ来週", "the weekend after next", "the week after next",
        "the weekend before last", "the week before last", "last weekend", "last week", needs=" ".join([*_WEEKS_BACK, "week"])),
    row(WEEK, "(?P<next>(?:今度|次)の?)?(?<![先今来毎前])週明け(?!て)", lambda m, t: [*([] if m["next"] else _in_week(t, 0, 0)), *_in_week(t, 0, -1)],
        "次の週明け", "週明け", needs="明け"),
    row(WEEKDAY_KIND, rf"(?P<recent>{_RECENT}){_JAPANESE_WEEKDAY}|(?P<coming>{_COMING}){_JAPANESE_WEEKDAY}|(?<![a-z])(?:(?P<coming>coming)|last|this past"
        rf"|(?P<which>this|next))\s+{ENGLISH_WEEKDAY}|(?<![a-z\d]){_ENGLISH_N} {_WHOLE_WEEKDAY}s? ago"
        rf"|(?<![a-z])(?:the )?{_WHOLE_WEEKDAY} {_BEFORE_LAST}(?![a-z])", _weekday_beside,
        "この前の日曜", "今度の日曜", "coming Friday", "two Fridays ago", "the Friday before last", "the Monday after next", "last Friday", "next Friday",
        needs="曜 mon tue wed thu fri sat sun"),
    row(WEEK, rf"(?:(?P<recent>{_RECENT})|(?P<coming>(?:今度|次)の?)|この)週末|(?<![a-z])(?P<recent>(?:the|this) past) weekend|(?<![a-z\d]){_ENGLISH_N} weekends? ago",
        _weekend_beside, "この前の週末", "今度の週末", "この週末", "two weekends ago", "this past weekend", needs="週末 weekend"),
]
WEEKS_LATER = row(TO_COME, rf"(?<![a-z\d]){_ENGLISH_N} weeks? from {ENGLISH_WEEKDAY}",
    lambda m, t: [day_of(next_weekday(t, _weekday(m))[0] + timedelta(days=7 * number_of(m["n"])))], "a week from Friday", needs="week")
WEEKDAYS_ALONE = [
    row(WEEKDAY_ALONE_KIND, f"前の?{_JAPANESE_WEEKDAY}", lambda m, t: _weekday_before(t, _weekday(m)), "前の金曜", needs="曜"),
    row(WEEKDAY_ALONE_KIND, WEEKDAY, lambda m, t: _weekday_before(t + ONE_DAY, _weekday(m)), "金曜", "Friday", recurs_after=(6,),
        needs="曜 mon tue wed thu fri sat sun"),
    row(WEEKDAY_ALONE_KIND, "前の?週末", lambda m, t: [_weekend(t, 1)], "前の週末", needs="週末"),
    row(WEEKDAY_ALONE_KIND, "週末|土日|(?<![a-z])(?:the )?weekend", lambda m, t: [_latest_weekend(t)], "週末", "the weekend", recurs_after=(6,),
        needs="週末 土日 weekend"),
]
SINCE_WEEKDAY = row(WEEKDAY_KIND, f"(?<![a-z])since {ENGLISH_WEEKDAY}", lambda m, t: [(_weekday_before(t + ONE_DAY, _weekday(m))[0][0], t + ONE_DAY)],
    "since Friday", needs="since")
# A day of the week alone in a sentence. 12月4日金曜, 第2金曜, 翌週の金曜 and 月・金曜 are other days, 金曜ロードショー and 日曜大工 are none.
DAYS_OF_SENTENCES = [
    row(WEEKDAY_KIND, rf"(?<![毎隔翌各週月年第前日(・]|[\d一二三四五])(?<![毎隔翌各週月年前後初みの日]の)(?<!その)(?<!ある)(?P<weekday>[{WEEKDAY_NAMES}])曜(?:日(?!曜))?{_AFTER_A_WEEKDAY}"
        rf"|(?<![a-z(-])(?<!\d )(?<!\d, ){_NO_NAMES}{_WHOLE_WEEKDAY}(?!,? (?:the )?\d(?!\d?(?::\d| ?[ap]m))"
        rf"|,? (?:{_SHORT_MONTH_NAMES})|'s)(?:\s(?:early )?(?:morning|afternoon|evening|night)(?!s))?(?! live| lights| (?:morn|after"
        rf"|even)|s)(?:{NO_COUNT}|(?=\s\d{{1,2}}(?::\d\d|\s?[ap]\.?m)){_EVENT_BEHIND}{_ON})", lambda m, t: _around_today(t, _weekday(m)),
        "金曜に何があった？", "金曜の予定は？", "What happened on Friday?", "What's on Friday?", needs="曜 day", is_alone=True),
    row(WEEK, rf"(?<![毎隔翌各先今来のる週])(?:週末|土日){_AFTER_A_WEEKDAY}|(?<![a-z])(?<!after )(?<!before )the weekend(?! (?:before|after"
        rf"|when)){NO_COUNT}", lambda m, t: [_weekend(t, 0), _latest_weekend(t)],
        "週末は何してた？", "週末の予定は？", "What did I do on the weekend?", needs="週末 土日 weekend", is_alone=True),
]
MONTHS_IN_TEXTS = [
    row(MONTH, rf"(?<![a-z])(?:between|from) {MONTH_NAME}\s+(?:and|to|until|till|through) {MONTH_NAME}",
        lambda m, t: each_year(t, lambda year: _months_from_to(year, *(MONTHS[name] for name in m.all("month")))), "between May and July",
        needs="between from"),
    row(MONTH, rf"(?<![a-z])(?:in|during|since|around|about|early|mid|late|for(?! (?:april|may|june|august)))[ -]{MONTH_NAME}(?![a-z])",
        lambda m, t: _month_in_each_year(t, MONTHS[m["month"]]), "in October", "since May", needs=_MONTHS_NEED),
]
YEAR_IN_TEXTS = row(YEAR, r"(?:(?<=\bin )|(?<=\bsince )|(?<=\bduring )|(?<=\b(?:19|20)\d\d to )|(?<=\b(?:19|20)\d\d and )|(?<=\bfrom )(?=\d+ to (?:19|20)\d\d)"
    rf"|(?<=\bbetween )(?=\d+ and (?:19|20)\d\d)|(?:(?<=\buntil )|(?<=\bby ))(?=\d+{NO_COUNT}))(?P<n>(?:19|20)\d{{2}})(?!\d)",
    lambda m, t: [year_of(*_numbers(m))], "in 2024", "from 2015 to 2018")
# fmt: on
# In an argument: Friday night last week is the night of Friday last week.
PART_BEFORE_WEEK = bounded(
    rf"(?<![a-z])(?P<day>(?:{_SHORT_DAYS})[a-z]*) (?P<part>morning|afternoon|evening|night),? (?P<week>(?:of )?(?:last|this|next) week)(?!end)"
)

# Seasons of the northern half of the earth, as in Japan.

_FIRST_MONTHS = {"春": 3, "夏": 6, "秋": 9, "冬": 12, "spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
# 夏休み and 春雨 are no seasons; 秋田 is a place, 春香 a name.
_JAPANESE_SEASON = "[初真晩]?(?P<season>[春夏秋冬])[先口場]?(?=[のにはもがかま、。?!頃ごら以何誰]|どこ|どう|いつ|\\s|\\Z)"
_ENGLISH_SEASON = "(?P<season>spring|summer|autumn|fall|winter)(?: (?:break|vacation|holidays?))?(?![a-z])"
_NEED_SEASON = "春 夏 秋 冬 spring summer autumn fall winter"
# The year before a season or a holiday.
YEAR_BEFORE = rf"(?:(?P<named>{lexicon.any_of(YEARS_BACK)})|(?P<ago>{NUMBER})年前|(?<!\d)(?P<year>\d{{4}})年?)の?"


def year_before(found: Found, today: date) -> int:
    """The year that `YEAR_BEFORE`, or a short form in the group `short`, names."""
    if found["ago"]:
        return today.year - number_of(found["ago"])
    if found["year"]:
        return int(found["year"])
    return today.year - _BACK[found["named"] or found["short"]]


def _season(year: int, first_month: int) -> DaySpan:
    last = first_month + 2
    return date(year, first_month, 1), month_of(year + last // 13, (last - 1) % 12 + 1)[1]


def _latest_season(today: date, first_month: int, *, over: bool) -> DaySpan:
    """The latest season that has begun; with `over` the latest that is over."""
    spans = (_season(today.year - back, first_month) for back in range(3))
    return next(span for span in spans if (span[1] if over else span[0]) <= today)


def _season_of_year(found: Found, today: date) -> list[DaySpan]:
    """The winter of a year is the one that begins in it, unless that is still to come."""
    first_month = _FIRST_MONTHS[found["season"]]
    if found["which"] == "this":
        return [_season(today.year, first_month)]
    if found["which"] == "next":
        return [_season(_latest_season(today, first_month, over=False)[0].year + 1, first_month)]
    if found["which"] or found["n"]:
        back = number_of(found["n"]) if found["n"] else _BACK[found["which"]]
        return [_season(_latest_season(today, first_month, over=True)[0].year - back + 1, first_month)]
    year = year_before(found, today)
    span = _season(year, first_month)
    return [_season(year - 1, first_month) if span[0] > today and first_month == 12 and year == today.year else span]


def _season_alone(found: Found, today: date) -> list[DaySpan]:
    """The latest season that has begun, and those of the years before."""
    first_month = _FIRST_MONTHS[found["season"]]
    year = _latest_season(today, first_month, over=False)[0].year
    return [_season(year - back, first_month) for back in range(YEARS_CONSIDERED)]


# fmt: off
SEASON_OF_YEAR = row(SEASON, rf"(?:{YEAR_BEFORE}|(?P<short>一昨|この|[昨今来])){_JAPANESE_SEASON}|(?<![a-z]){_ENGLISH_SEASON} (?P<which>before last)(?![a-z])"
    rf"|(?<![a-z])(?P<which>last|this|next) {_ENGLISH_SEASON}|(?<![a-z]){_ENGLISH_SEASON}(?: of)?,? (?P<year>(?:19|20)\d\d)(?!\d)"
    rf"|(?<![a-z\d]){_ENGLISH_N} (?P<season>spring|summer|autumn|fall|winter)s? ago", _season_of_year,
    "去年の夏", "一昨昨年の夏", "2年前の夏", "昨秋", "last summer", "summer before last", "summer of 2024", "two summers ago", needs=_NEED_SEASON)
SEASON_ALONE = row("seasons, as an argument", rf"{_JAPANESE_SEASON}|(?<![a-z])(?:in |during )?(?:the )?{_ENGLISH_SEASON}", _season_alone,
    "夏", "winter", needs=_NEED_SEASON)
# fmt: on
