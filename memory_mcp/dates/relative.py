"""Dates counted from today: 昨日, 先月, 3日前, 去年の今日, ここ数日, the last 3 days, two weeks ago, 3日後, in two weeks, 最近."""

import re
from datetime import date, timedelta

from memory_mcp.dates.expressions import Expression, of_kind
from memory_mcp.dates.numerals import COUNT, MONTHS_BACK, NUMBER, YEARS_BACK, number_of
from memory_mcp.dates.spans import ONE_DAY, UNITS, DaySpan, day_of, months_back, same_day_of_month, week_of, year_of

near, fixed_near = of_kind("near days")
period, fixed_period = of_kind("months and years from now")
lately, fixed_lately = of_kind("up to now, with today")
ago, fixed_ago = of_kind("so long ago")
later, fixed_later = of_kind("to come, as an argument")
_, fixed_vague = of_kind("vague times, as an argument")
_, fixed_this = of_kind("parts of the current week, month or year, as an argument")

_FEW_COUNT = 6
_HERE = "(?:ここ|この|過去|直近|最近)の?"
_JAPANESE_UNIT = "(?:(日|週|年)間?|[ヶケかカ箇](月)間?)"
_ENGLISH_UNIT = r"(day|night|week|fortnight|month|year)s?(?![a-z])"
_UNIT = r"(day|night|week|fortnight|month|year)s?"
_LAST = r"(?<![a-z])(?:last|past)"
_FEW = r"(?:an? )?(?:few|several)|some"
_BACK = {"last": 1, "previous": 1, "this": 0, "next": -1}


def _until_today(unit: str, today: date, count: int) -> list[DaySpan]:
    """The last `count` units, up to and with today."""
    return [UNITS[unit](today + ONE_DAY, count, rolling=True)]


def _ago(unit: str, today: date, *counts: int) -> list[DaySpan]:
    """`count` units ago; with two counts, in whichever order, all between them."""
    return [(UNITS[unit](today, max(counts))[0], UNITS[unit](today, min(counts))[1])]


def _later(unit: str, today: date, count: int) -> list[DaySpan]:
    return [UNITS[unit](today, -count)]


def _from_today(unit: str, today: date, count: int) -> list[DaySpan]:
    """The next `count` units, from today."""
    return [(today, UNITS[unit](today, -count, rolling=True)[0] + ONE_DAY)]


def _same_day(today: date, months: int) -> DaySpan:
    return day_of(same_day_of_month(today, months))


def _around(day: date, days: int) -> DaySpan:
    return day - timedelta(days=days), day + timedelta(days=days + 1)


LATELY: list[Expression] = [
    lately(
        rf"{_HERE}{NUMBER}[、,~〜・-]{NUMBER}{_JAPANESE_UNIT}(?!前)",
        lambda m, today: _until_today(m[3] or m[4], today, number_of(m[2])),
        "ここ2、3日",
    ),
    lately(rf"(?:{_HERE})?{NUMBER}{_JAPANESE_UNIT}以内", lambda m, today: _until_today(m[2] or m[3], today, number_of(m[1])), "1週間以内"),
    lately(rf"(?:{_HERE})?数{_JAPANESE_UNIT}以内", lambda m, today: _until_today(m[1] or m[2], today, _FEW_COUNT), "数日以内"),
    lately(
        rf"{_HERE}{NUMBER}{_JAPANESE_UNIT}(?!前)",
        lambda m, today: _until_today(m[2] or m[3], today, number_of(m[1])),
        "過去30日間",
        "ここ一週間",
    ),
    lately(rf"{_HERE}数{_JAPANESE_UNIT}(?!前)", lambda m, today: _until_today(m[1] or m[2], today, _FEW_COUNT), "ここ数日"),
    lately(
        rf"{_HERE}半年(?!前)|半年以内|{_LAST} half (?:a )?year",
        lambda m, today: _until_today("month", today, 6),
        "この半年",
    ),
    lately(
        rf"(?:{_LAST}|(?<![a-z])within) {COUNT} {_ENGLISH_UNIT}",
        lambda m, today: _until_today(m[2], today, number_of(m[1])),
        "the last 3 days",
        "past two weeks",
    ),
    lately(
        rf"{_LAST} (few|several|couple of|couple) {_ENGLISH_UNIT}",
        lambda m, today: _until_today(m[2], today, 2 if "couple" in m[1] else _FEW_COUNT),
        "the last few days",
    ),
    lately(r"(?<![a-z])past (day|week|month|year)(?![a-z])", lambda m, today: _until_today(m[1], today, 1), "past week"),
    # "last week" is one of the calendar, "the last week" is the one until now, "the last week of October" is neither.
    lately(
        r"(?<![a-z])(?:the|this) last (week|fortnight|month|year)(?![a-z]| of|['’])",
        lambda m, today: _until_today(m[1], today, 1),
        "the last month",
    ),
    lately(
        r"(?<![a-z])(?:in|within|over|during) the last day(?![a-z]| of|['’])",
        lambda m, today: _until_today("day", today, 1),
        "within the last day",
    ),
]
# The longer reading first.
LONG_AGO: list[Expression] = [
    fixed_ago("(?:一昨年|おととし)の今日", lambda today: _same_day(today, 24), "おととしの今日"),
    fixed_ago(
        "(?:一昨年|おととし)の(?:今ごろ|今頃|同じ(?:頃|ころ|時期))", lambda today: _around(_same_day(today, 24)[0], 15), "一昨年の今頃"
    ),
    fixed_ago(
        "(?:去年|(?<!一)昨年|一年前|1年前)の今日|(?<![a-z])(?:a|one|1) year ago today",
        lambda today: _same_day(today, 12),
        "去年の今日",
        "a year ago today",
    ),
    ago(
        rf"{NUMBER}週間?前の?今日|(?<![a-z\d]){COUNT} weeks? ago today",
        lambda m, today: [day_of(today - timedelta(days=7 * number_of(m[1] or m[2])))],
        "2週間前の今日",
    ),
    ago(
        rf"{NUMBER}[ヶケかカ箇]?月前の?今日|(?<![a-z\d]){COUNT} months? ago today",
        lambda m, today: [_same_day(today, number_of(m[1] or m[2]))],
        "3か月前の今日",
    ),
    ago(
        rf"{NUMBER}年前の?今日|(?<![a-z\d]){COUNT} years? ago today",
        lambda m, today: [_same_day(today, 12 * number_of(m[1] or m[2]))],
        "3年前の今日",
    ),
    fixed_ago("先月の今日", lambda today: _same_day(today, 1), "先月の今日"),
    fixed_ago(
        "(?:去年|(?<!一)昨年|[一1]年前)の(?:今ごろ|今頃|今時分|同じ(?:頃|ころ|時期))|(?<![a-z])this time last year",
        lambda today: _around(_same_day(today, 12)[0], 15),
        "去年の今頃",
        "this time last year",
    ),
    fixed_ago(
        "先月の今(?:ごろ|頃)|(?<![a-z])this time last month", lambda today: _around(_same_day(today, 1)[0], 3), "this time last month"
    ),
    fixed_ago(
        "先週の今(?:ごろ|頃)|(?<![a-z])this time last week", lambda today: _around(today - timedelta(days=7), 1), "this time last week"
    ),
    ago(
        rf"{NUMBER}[、,~〜・-]{NUMBER}(日|週|年)間?前",
        lambda m, today: _ago(m[3], today, number_of(m[1]), number_of(m[2])),
        "2、3日前",
    ),
    ago(
        rf"{NUMBER}[ヶケかカ箇]?月?[、,~〜・-]{NUMBER}[ヶケかカ箇]月前",
        lambda m, today: _ago("月", today, number_of(m[1]), number_of(m[2])),
        "2、3か月前",
    ),
    ago(rf"{NUMBER}年半前", lambda m, today: [months_back(today, number_of(m[1]) * 12 + 6)], "1年半前"),
    ago(rf"{NUMBER}(日|週|年)間?前(?!後)", lambda m, today: _ago(m[2], today, number_of(m[1])), "3日前", "二週間前", "今から3日前"),
    ago(rf"{NUMBER}[ヶケかカ箇]?(月)前(?!半)", lambda m, today: _ago(m[2], today, number_of(m[1])), "2か月前"),
    ago("数(日|週|年)間?前|数[ヶケかカ箇](月)前", lambda m, today: _ago(m[1] or m[2], today, 2, 6), "数日前", "何日か前"),
    fixed_ago("半年(?:ほど|くらい)?前|(?<![a-z])half a year ago", lambda today: months_back(today, 6), "半年前", "half a year ago"),
    fixed_ago("ひと月前", lambda today: months_back(today, 1), "ひと月前"),
    fixed_ago("ふた月前", lambda today: months_back(today, 2), "ふた月前"),
    fixed_ago("半月前", lambda today: _around(today - timedelta(days=15), 2), "半月前"),
    ago(
        rf"(?<![a-z\d]){COUNT}(?: or |-| to ){COUNT}\s+{_UNIT}\s+(?:ago|back)(?![a-z])",
        lambda m, today: _ago(m[3], today, number_of(m[1]), number_of(m[2])),
        "two or three weeks ago",
    ),
    ago(
        rf"(?<![a-z\d]){COUNT} (?:years? and a half|and a half years) ago",
        lambda m, today: [months_back(today, number_of(m[1]) * 12 + 6)],
        "one and a half years ago",
    ),
    ago(
        rf"(?<![a-z\d]){COUNT}\s+{_UNIT} or (?:two|three|so) ago",
        lambda m, today: _ago(m[2], today, number_of(m[1]), number_of(m[1]) + 1),
        "a week or so ago",
    ),
    ago(
        rf"(?<![a-z\d])(?:a )?couple (?:of )?{_UNIT}\s+(?:ago|back)(?![a-z])",
        lambda m, today: _ago(m[1], today, 2, 3),
        "a couple of weeks ago",
    ),
    ago(
        rf"(?<![a-z\d])(?:{_FEW}) {_UNIT}\s+(?:ago|back)(?![a-z])",
        lambda m, today: _ago(m[1], today, 2, 6),
        "a few days ago",
    ),
    ago(
        rf"(?<![a-z\d]){COUNT}\s+{_UNIT}\s+(?:ago|back)(?![a-z])",
        lambda m, today: _ago(m[2], today, number_of(m[1])),
        "3 days ago",
        "two weeks back",
    ),
    ago(r"(?<![a-z])(week|fortnight|month|year) ago(?![a-z])", lambda m, today: _ago(m[1], today, 1), "fortnight ago"),
]
NEAR_DAYS: list[Expression] = [
    fixed_near(
        "さきおととい|さきおとつい|一昨[々昨]日|先一昨日", lambda today: day_of(today - timedelta(days=3)), "さきおととい", "一昨々日"
    ),
    fixed_near(
        "一昨日|おととい|おとつい|(?:the )?day before yesterday|(?:the )?night before last",
        lambda today: day_of(today - timedelta(days=2)),
        "おととい",
        "the day before yesterday",
        "the night before last",
    ),
    fixed_near(
        "昨日|きのう|昨夜|昨晩|ゆうべ|(?<![のなな])夕べ(?!の(?:会|祈|集|調))|(?<![a-z])yesterday|(?<![a-z])last (?:night|evening)",
        lambda today: day_of(today - ONE_DAY),
        "昨日",
        "夕べ",
        "yesterday",
        "last night",
    ),
    fixed_near(
        "今日|本日|今朝(?:方|がた)?|今夜|今晩|(?<![a-z])(?:today|tonight|this (?:morning|afternoon|evening))",
        day_of,
        "今日",
        "今朝",
        "today",
        "tonight",
    ),
    fixed_near("しあさって|明[々明]後日", lambda today: day_of(today + timedelta(days=3)), "しあさって"),
    fixed_near(
        "明後日|あさって|(?<![a-z])(?:the )?day after tomorrow",
        lambda today: day_of(today + timedelta(days=2)),
        "あさって",
        "the day after tomorrow",
    ),
    fixed_near("明日|あした|明朝(?!体)|明晩|(?<![a-z])tomorrow", lambda today: day_of(today + ONE_DAY), "明日", "明朝", "tomorrow"),
]
BEFORE_LAST: list[Expression] = [
    fixed_period("(?<![a-z])(?:the )?month after next", lambda today: months_back(today, -2), "the month after next"),
    fixed_period("(?<![a-z])(?:the )?year after next", lambda today: year_of(today.year + 2), "the year after next"),
    fixed_period("(?<![a-z])(?:the )?month before last", lambda today: months_back(today, 2), "the month before last"),
    fixed_period("(?<![a-z])(?:the )?year before last", lambda today: year_of(today.year - 2), "the year before last"),
]
MONTHS_AND_YEARS: list[Expression] = [
    period(
        f"({'|'.join(MONTHS_BACK)})|(?<![a-z])({'|'.join(_BACK)}) month",
        lambda m, today: [months_back(today, MONTHS_BACK[m[1]] if m[1] else _BACK[m[2]])],
        "先月",
        "先々月",
        "再来月",
        "last month",
    ),
    period(f"({'|'.join(YEARS_BACK)})", lambda m, today: [year_of(today.year - YEARS_BACK[m[1]])], "去年", "おととし", "再来年"),
    period(rf"(?<![a-z])({'|'.join(_BACK)}) year", lambda m, today: [year_of(today.year - _BACK[m[1]])], "last year"),
]
# Tried before 今日 and today, which are part of them.
FROM_TODAY: list[Expression] = [
    later(
        rf"(?<![a-z\d]){COUNT} weeks? from (?:today|now)|{NUMBER}週間後の(?:今日|今頃|今ごろ)",
        lambda m, today: [day_of(today + timedelta(days=7 * number_of(m[1] or m[2])))],
        "two weeks from now",
        "2週間後の今日",
    ),
    later(
        rf"(?<![a-z\d]){COUNT} {_ENGLISH_UNIT} from (?:today|now)|(?<![a-z])in {COUNT} {_ENGLISH_UNIT}(?:['’]s? time)?",
        lambda m, today: _later(m[2] or m[4], today, number_of(m[1] or m[3])),
        "in 3 days",
        "two months from today",
    ),
]
# In a sentence 3日後 is after something else.
LATER: list[Expression] = [
    later(
        rf"{NUMBER}(日|週|年)間?後|{NUMBER}[ヶケかカ箇](月)後",
        lambda m, today: _later(m[2] or m[4], today, number_of(m[1] or m[3])),
        "3日後",
        "2か月後",
    ),
    fixed_later("半年後", lambda today: UNITS["月"](today, -6), "半年後"),
    later(
        rf"(?:今後|これから|この先|向こう)の?(?:{NUMBER}(日|週|年)間?|{NUMBER}[ヶケかカ箇](月)間?)|(?<![a-z])(?:the |over the )?(?:next|coming) {COUNT} {_ENGLISH_UNIT}",
        lambda m, today: _from_today(m[2] or m[4] or m[6], today, number_of(m[1] or m[3] or m[5])),
        "今後3日間",
        "the next 3 days",
    ),
]
WEEK_AND_YEAR_ALONE: list[Expression] = [
    fixed_this("週(?=内|の(?:頭|初め|はじめ|始め|半ば|真ん中|中頃|前半|後半|終わり))", week_of, "週の前半", "週内"),
    fixed_this("年(?=の(?:頭|初め|はじめ|始め|半ば|終わり)|内)", lambda today: year_of(today.year), "年内", "年の初め"),
]
VAGUE_ALONE: list[Expression] = [
    fixed_this("月初め?", lambda today: (today.replace(day=1), today.replace(day=11)), "月初め"),
    fixed_vague(
        "しばらく前|ちょっと前|少し前|(?<![a-z])(?:(?:quite )?a while|some time|not (?:so |that |too |very )?long) (?:ago|back)",
        lambda today: (today - timedelta(days=180), today),
        "しばらく前",
        "a while ago",
    ),
    fixed_this("(?<![a-z])the year|\\A(?=[上下]半?期\\Z)", lambda today: year_of(today.year), "end of the year", "上半期"),
    fixed_this(
        "(?<![a-z])the month|月(?=[末内]|半ば|なかば|の(?:末|頭|初め|はじめ|始め|半ば|なかば|終わり|前半|後半))|\\A(?=[上中下初]旬)",
        lambda today: months_back(today, 0),
        "月末",
        "月内",
        "上旬",
        "end of the month",
    ),
    fixed_vague(
        "(?:ここ|つい)?最近|(?:近|この)(?:頃|ごろ)|昨今|ここしばらく|このところ|(?<![a-z])(?:(?:just |only |very )?recently|lately|of late|these days|in recent (?:days|weeks))",
        lambda today: (today - timedelta(days=30), today + ONE_DAY),
        "最近",
        "recently",
    ),
    fixed_vague(
        "(?:つい)?(?:先日|この間|このあいだ|この前|このまえ|こないだ|先だって|先頃|先ごろ)|(?<![a-z])(?:just )?the other (?:day|night|week)",
        lambda today: (today - timedelta(days=14), today),
        "先日",
        "このあいだ",
        "the other day",
    ),
]
_COUNTED_UNIT = "(?P<unit{}>week|fortnight|month|year)s?(?![a-z])"
_COUNTED = re.compile(
    rf"(?<!数){NUMBER.replace('(', '(?P<n1>', 1)}(?:(?P<unit1>[週年])間?|[ヶケかカ箇]?(?P<unit2>月))(?P<half>半)?(?:前|(?P<later1>後))"
    r"|(?P<half_a_year>半年(?:前|(?P<later2>後))|half a year ago)|(?P<moons>[ひふ])(?:と|た)月前"
    rf"|(?<![a-z\d])(?:{COUNT.replace('(', '(?P<n2>', 1)} )?{_COUNTED_UNIT.format(3)} (?:ago|back|(?P<later3>from (?:today|now)))"
    rf"|(?<![a-z])(?P<later4>in) {COUNT.replace('(', '(?P<n3>', 1)} {_COUNTED_UNIT.format(4)}"
)


def counted_day(plain: str, today: date) -> tuple[DaySpan, date] | None:
    """Of a count of weeks, months or years (一週間前, in two months): the span of the calendar that it means, and the single day.

    Raises:
        ValueError, OverflowError: there is no such day.
    """
    match = _COUNTED.search(plain)
    if match is None:
        return None
    unit = next((match[f"unit{index}"] for index in range(1, 5) if match[f"unit{index}"]), "月")
    count = number_of(next((match[f"n{index}"] for index in range(1, 4) if match[f"n{index}"]), "1"))
    if match["half_a_year"]:
        count = 6
    elif match["moons"]:
        count = "ひふ".index(match["moons"]) + 1
    elif match["half"]:
        unit, count = "月", count * 12 + 6
    if any(match[f"later{index}"] for index in range(1, 5)):
        count = -count
    wide = months_back(today, count) if unit == "月" else UNITS[unit](today, count)
    return wide, UNITS[unit](today, count, rolling=True)[0]
