"""The words that name days, as a table: a pattern, and the days that it means as seen from today.

A day is a calendar day, a week begins on Monday. `ALWAYS` are said of dates only, wherever they stand. What means a date only where
nothing else is said, as in an argument (夏, Friday, 最近), is in `words_alone`; `IN_A_QUESTION` are what sentences say of the same dates.
"""

import re
from datetime import date, timedelta

from memory_mcp.dates.days_off import AFTER_DAYS_OFF, ROW_OF_DAYS_OFF, after_days_off, rows_of_days_off
from memory_mcp.dates.fiscal_years import FISCAL_YEAR, fiscal_year
from memory_mcp.dates.holidays import FESTIVALS
from memory_mcp.dates.lately import LATELY
from memory_mcp.dates.nested_days import Days
from memory_mcp.dates.nth_days import NTH_DAYS
from memory_mcp.dates.quarters import QUARTERS
from memory_mcp.dates.relative import LONG_AGO, Pattern, fixed
from memory_mcp.dates.seasons import SEASON_OF_YEAR, VACATION_OF_YEAR, season_of_year, vacation
from memory_mcp.dates.spans import MONTHS, WEEKDAYS, day_of, month_of, months_back, week_of, year_of
from memory_mcp.dates.weeks import WEEKDAY, WEEKS, WEEKS_BACK, in_week, last_weekday, latest_weekend, weekday_alone, weekend
from memory_mcp.dates.yearless import each_year

# Whole names only: what is sold at a market 5 times is not about March.
_MONTH = rf"({'|'.join(sorted(MONTHS, key=len, reverse=True))})(?![a-z])\.?"
_DAY = r"(\d{1,2})(?:st|nd|rd|th)?"
_MONTHS_BACK = {"先々月": 2, "先先月": 2, "先月": 1, "今月": 0, "来月": -1, "再来月": -2, "last": 1, "previous": 1, "this": 0, "next": -1}
_YEARS_BACK = {
    "さきおととし": 3,
    "一昨々年": 3,
    "一昨昨年": 3,
    "一昨年": 2,
    "おととし": 2,
    "去年": 1,
    "昨年": 1,
    "今年": 0,
    "本年": 0,
    "再来年": -2,
    "来年": -1,
}


def _numbers(found: re.Match[str]) -> list[int]:
    return [int(group) for group in found.groups()]


def _day_of_month(months: Days, number: int) -> list[Days]:
    return [day_of(months[0].replace(day=number))]


def _in_year(year: int, month: int, day: int | None) -> Days:
    return day_of(date(year, month, day)) if day else month_of(year, month)


def _decade(tens: int) -> Days:
    """Of 199 the nineties, as of 9."""
    tens += 190 if tens < 10 else 0
    return date(tens * 10, 1, 1), date(tens * 10 + 10, 1, 1)


def _month_of_this_year(today: date, which: str, month: int) -> Days:
    """The month of that name of this year, or the next one that will begin."""
    return month_of(today.year + (1 if which == "next" and month <= today.month else 0), month)


def _from_month_to_month(year: int, first: int, last: int) -> Days:
    return month_of(year, first)[0], month_of(year + (1 if last < first else 0), last)[1]


_FULL_DATE: Pattern = (
    re.compile(r"(?<!\d)(\d{4})[-/.年](\d{1,2})[-/.月](\d{1,2})(?!\d)日?"),
    lambda m, today: [day_of(date(*_numbers(m)))],
)
_MONTH_OF_YEAR: Pattern = (
    re.compile(r"(?<!\d)(\d{4})(?:年の?(?=\d{1,2}月)|[-/](?=\d{1,2}(?![-/\d])))(\d{1,2})(?!\d)月?"),
    lambda m, today: [month_of(*_numbers(m))],
)
_YEAR_ALONE: Pattern = (re.compile(r"(?<!\d)(\d{4})年(?!\d)|\A(\d{4})\Z"), lambda m, today: [year_of(int(m[1] or m[2]))])
_DAY_AND_MONTH: Pattern = (
    re.compile(r"(?<![\d/])(\d{1,2})/(\d{1,2})(?=[のにはもかま、(頃ご以~〜]|\Z)"),
    lambda m, today: each_year(today, lambda year: day_of(date(year, int(m[1]), int(m[2])))),
)
# What may stand in a text of any language: with figures alone.
FIGURES = (_FULL_DATE, _MONTH_OF_YEAR, _YEAR_ALONE, _DAY_AND_MONTH)
# The longer reading first: a pattern never takes text that an earlier one has taken.
ALWAYS: list[Pattern] = [
    *LATELY,
    *NTH_DAYS,
    (ROW_OF_DAYS_OFF, rows_of_days_off),
    *FESTIVALS,
    (AFTER_DAYS_OFF, after_days_off),
    _FULL_DATE,
    _MONTH_OF_YEAR,
    (SEASON_OF_YEAR, season_of_year),
    (VACATION_OF_YEAR, vacation),
    (FISCAL_YEAR, fiscal_year),
    (re.compile(r"(?<!\d)((?:19|20)\d|[2-9])0年代"), lambda m, today: [_decade(int(m[1]))]),
    (re.compile(r"(?<!\d)((?:19|20)\d)0s(?![a-z])"), lambda m, today: [_decade(int(m[1]))]),
    _YEAR_ALONE,
    (
        re.compile(r"(再?来年)の?(\d{1,2})月(?:の?(\d{1,2})日(?!間))?(?![\d間号])"),
        lambda m, today: [_in_year(today.year - _YEARS_BACK[m[1]], int(m[2]), int(m[3]) if m[3] else None)],
    ),
    (
        re.compile(r"(?<!\d)(\d{1,2})月(\d{1,2})日"),
        lambda m, today: each_year(today, lambda year: day_of(date(year, int(m[1]), int(m[2])))),
    ),
    _DAY_AND_MONTH,
    (
        re.compile(r"(?<![a-z])(last|this) month(?:'s| on)?(?: the)? (\d{1,2})(?:st|nd|rd|th)"),
        lambda m, today: _day_of_month(months_back(today, _MONTHS_BACK[m[1]]), int(m[2])),
    ),
    (
        re.compile(r"(?<![a-z\d])(?:the )?(\d{1,2})(?:st|nd|rd|th) of (last|this) month"),
        lambda m, today: _day_of_month(months_back(today, _MONTHS_BACK[m[2]]), int(m[1])),
    ),
    (
        re.compile(r"(先々月|先先月|先月|今月|来月)の?(\d{1,2})日"),
        lambda m, today: _day_of_month(months_back(today, _MONTHS_BACK[m[1]]), int(m[2])),
    ),
    (re.compile(r"(?<!\d)(\d{1,2})月(?![\d間号])"), lambda m, today: each_year(today, lambda year: month_of(year, int(m[1])))),
    (
        re.compile(rf"(?<![a-z]){_MONTH}\s+(?:the\s+)?{_DAY},?\s+(\d{{4}})"),
        lambda m, today: [day_of(date(int(m[3]), MONTHS[m[1]], int(m[2])))],
    ),
    (re.compile(rf"(?<!\d){_DAY}(?:\s+of)?\s+{_MONTH},?\s+(\d{{4}})"), lambda m, today: [day_of(date(int(m[3]), MONTHS[m[2]], int(m[1])))]),
    (re.compile(rf"(?<![a-z]){_MONTH},?\s+(?:of\s+)?(\d{{4}})"), lambda m, today: [month_of(int(m[2]), MONTHS[m[1]])]),
    (
        re.compile(rf"(?<![a-z]){_MONTH}\s+(?:the\s+)?{_DAY}(?!\d)"),
        lambda m, today: each_year(today, lambda year: day_of(date(year, MONTHS[m[1]], int(m[2])))),
    ),
    (
        re.compile(rf"(?<!\d){_DAY}(?:\s+of)?\s+{_MONTH}(?![a-z])"),
        lambda m, today: each_year(today, lambda year: day_of(date(year, MONTHS[m[2]], int(m[1])))),
    ),
    (
        re.compile(rf"(?<![a-z])(?<!and )(?<!to )(?<!until )(?<!through ){_MONTH}(?:,| of| in)? (last|this|next) year(?![a-z])"),
        lambda m, today: [month_of(today.year - WEEKS_BACK[m[2]], MONTHS[m[1]])],
    ),
    (
        re.compile(rf"(?<![a-z])(last|this|next) year(?:'s|’s| in)? {_MONTH}(?![a-z])"),
        lambda m, today: [month_of(today.year - WEEKS_BACK[m[1]], MONTHS[m[2]])],
    ),
    (
        re.compile(rf"(?<![a-z])last\s+{_MONTH}(?![a-z])"),
        lambda m, today: [months_back(today, (today.month - MONTHS[m[1]] - 1) % 12 + 1)],
    ),
    (
        re.compile(rf"(?<![a-z])(this|next)\s+(?:(?!mar|may){_MONTH}|(march|mar|may)(?=\s*(?:[?.,!;:]|\Z)))"),
        lambda m, today: [_month_of_this_year(today, m[1], MONTHS[m[2] or m[3]])],
    ),
    *QUARTERS,
    *WEEKS,
    *LONG_AGO,
    (re.compile(rf"(?<![a-z])(?:last|this past)\s+{WEEKDAY}"), lambda m, today: [last_weekday(today, WEEKDAYS[m[1]])]),
    (re.compile(rf"(?<![a-z])(this|next)\s+{WEEKDAY}"), lambda m, today: [in_week(today, WEEKDAYS[m[2]], WEEKS_BACK[m[1]])]),
    fixed("さきおととい|さきおとつい|一昨[々昨]日|先一昨日", lambda today: day_of(today - timedelta(days=3))),
    fixed(
        "一昨日|おととい|おとつい|(?:the )?day before yesterday|(?:the )?night before last", lambda today: day_of(today - timedelta(days=2))
    ),
    fixed(
        "昨日|きのう|昨夜|昨晩|ゆうべ|(?<![のなな])夕べ(?!の(?:会|祈|集|調))|(?<![a-z])yesterday|(?<![a-z])last (?:night|evening)",
        lambda today: day_of(today - timedelta(days=1)),
    ),
    fixed("今日|本日|今朝(?:方|がた)?|今夜|今晩|(?<![a-z])(?:today|tonight|this (?:morning|afternoon|evening))", day_of),
    fixed("しあさって|明[々明]後日", lambda today: day_of(today + timedelta(days=3))),
    fixed("明後日|あさって|(?<![a-z])(?:the )?day after tomorrow", lambda today: day_of(today + timedelta(days=2))),
    fixed("明日|あした|明朝(?!体)|明晩|(?<![a-z])tomorrow", lambda today: day_of(today + timedelta(days=1))),
    fixed("(?<![a-z])(?:the )?weekend after next", lambda today: weekend(today, -2)),
    fixed("(?<![a-z])(?:the )?week after next", lambda today: week_of(today, -2)),
    fixed("(?<![a-z])(?:the )?month after next", lambda today: months_back(today, -2)),
    fixed("(?<![a-z])(?:the )?year after next", lambda today: year_of(today.year + 2)),
    fixed("(?<![a-z])(?:the )?weekend before last", lambda today: weekend(today, 2)),
    fixed("(?<![a-z])(?:the )?week before last", lambda today: week_of(today, 2)),
    fixed("(?<![a-z])(?:the )?month before last", lambda today: months_back(today, 2)),
    fixed("(?<![a-z])(?:the )?year before last", lambda today: year_of(today.year - 2)),
    fixed("(?<![a-z])(?:the|this) past weekend", latest_weekend),
    (re.compile("(?<![a-z])(last|previous|this|next) weekend"), lambda m, today: [weekend(today, WEEKS_BACK[m[1]])]),
    (re.compile("(?<![a-z])(last|previous|this|next) week(?!end| of)"), lambda m, today: [week_of(today, WEEKS_BACK[m[1]])]),
    (
        re.compile("(再来月|先々月|先先月|先月|今月|来月)|(?<![a-z])(last|previous|this|next) month"),
        lambda m, today: [months_back(today, _MONTHS_BACK[m[1] or m[2]])],
    ),
    (re.compile(f"({'|'.join(_YEARS_BACK)})"), lambda m, today: [year_of(today.year - _YEARS_BACK[m[1]])]),
    (re.compile("(?<![a-z])(last|previous|this|next) year"), lambda m, today: [year_of(today.year - WEEKS_BACK[m[1]])]),
]

IN_A_QUESTION: list[Pattern] = [
    (
        re.compile(rf"(?<![a-z])(?:between|from) {_MONTH}\s+(?:and|to|until|till|through) {_MONTH}"),
        lambda m, today: each_year(today, lambda year: _from_month_to_month(year, MONTHS[m[1]], MONTHS[m[2]])),
    ),
    (
        re.compile(rf"(?<![a-z])(?:in|during|since|around|about|early|mid|late)[ -]{_MONTH}(?![a-z])"),
        lambda m, today: each_year(today, lambda year: month_of(year, MONTHS[m[1]])),
    ),
    (re.compile(rf"(?<![a-z])since {WEEKDAY}"), lambda m, today: [(weekday_alone(today, m)[0], today + timedelta(days=1))]),
    (re.compile(r"(?<![a-z])(?:in|since|during)\s+((?:19|20)\d{2})(?!\d)"), lambda m, today: [year_of(int(m[1]))]),
]
