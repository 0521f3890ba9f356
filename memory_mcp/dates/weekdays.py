"""Weeks, weekends and days of the week: 先週の金曜, 週明け, last Friday, two Fridays ago, the weekend before last. A week begins on Monday."""

import re
from datetime import date, timedelta

from memory_mcp.dates.expressions import Expression, of_kind
from memory_mcp.dates.numerals import COUNT, NUMBER, number_of
from memory_mcp.dates.spans import ONE_DAY, SATURDAY, WEEKDAYS, DaySpan, day_of, week_of

weekday, _ = of_kind("days of the week")
week, fixed_week = of_kind("weeks and weekends")
later_weekday, _ = of_kind("to come, as an argument")
alone, fixed_alone = of_kind("days of the week and weekends, as an argument")

WEEKDAY = r"(mon|tue|wed|thu|fri|sat|sun)(?:(?:s|nes|rs|ur)?day|s|rs?)?(?![a-z])"
WEEKS_BACK = {"先々週": 2, "先先週": 2, "先週": 1, "今週": 0, "来週": -1, "再来週": -2, "last": 1, "previous": 1, "this": 0, "next": -1}
_WEEK = "(再来週|先々週|先先週|先週|今週|来週)"
_BACK = "(last|previous|this|next)"
_JAPANESE_WEEKDAY = "([月火水木金土日])曜日?"
_RECENT = "(?:この[前間]|このまえ|このあいだ|こないだ)の?"
_COMING = "(?:今度|次|来る|来たる|きたる)の?"
_WHOLE_WEEKDAY = "(mon|tues|wednes|thurs|fri|satur|sun)day"


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
    return [day_of(next_weekday(today, WEEKDAYS[name])[0] + timedelta(days=7 * weeks_on))]


def weekend(today: date, weeks_back: int) -> DaySpan:
    monday = week_of(today, weeks_back)[0]
    return monday + timedelta(days=SATURDAY), monday + timedelta(days=7)


def latest_weekend(today: date) -> DaySpan:
    """The weekend that has begun last."""
    return weekend(today, 0 if today.weekday() >= SATURDAY else 1)


# The longer reading first.
WEEKS: list[Expression] = [
    weekday(rf"{NUMBER}週間?前の?{_JAPANESE_WEEKDAY}", lambda m, today: _in_week(today, m[2], number_of(m[1])), "2週間前の金曜"),
    # 退院の2週間後の土曜 counts from another day.
    weekday(rf"(?<!の){NUMBER}週間?後の?{_JAPANESE_WEEKDAY}", lambda m, today: _in_week(today, m[2], -number_of(m[1])), "2週間後の土曜"),
    weekday(
        rf"(?<![a-z]){WEEKDAY} {COUNT} weeks? ago",
        lambda m, today: _in_week(today, m[1], number_of(m[2])),
        "Friday two weeks ago",
    ),
    weekday(rf"{_WEEK}の?{_JAPANESE_WEEKDAY}", lambda m, today: _in_week(today, m[2], m[1]), "先週の金曜", "来週の月曜日"),
    weekday(
        rf"(?<![a-z])(last|this|next) week(?:'s|,| on)? {WEEKDAY}",
        lambda m, today: _in_week(today, m[2], m[1]),
        "last week on Friday",
    ),
    weekday(
        rf"(?<![a-z]){WEEKDAY}(?: of)? (last|this|next) week(?!end)",
        lambda m, today: _in_week(today, m[1], m[2]),
        "Friday of last week",
    ),
    week(
        rf"{_WEEK}の?(?:平日|ウィークデー)",
        lambda m, today: [(week_of(today, WEEKS_BACK[m[1]])[0], weekend(today, WEEKS_BACK[m[1]])[0])],
        "先週の平日",
    ),
    week(rf"{_WEEK}の?週?明け", lambda m, today: _in_week(today, "月", m[1]), "来週明け"),
    week("(?:今度|次)の?週明け", lambda m, today: _in_week(today, "月", -1), "次の週明け"),
    week("(?<![先今来毎前])週明け(?!て)", lambda m, today: [*_in_week(today, "月", 0), *_in_week(today, "月", -1)], "週明け"),
    weekday(rf"{_WEEK}末の?([土日])曜日?", lambda m, today: _in_week(today, m[2], m[1]), "先週末の土曜"),
    week(rf"{_WEEK}の?(?:週?末|土日)", lambda m, today: [weekend(today, WEEKS_BACK[m[1]])], "先週末", "今週の土日"),
    weekday(rf"{_RECENT}{_JAPANESE_WEEKDAY}", lambda m, today: _weekday_before(today, m[1]), "この前の日曜"),
    fixed_week(f"{_RECENT}週末", latest_weekend, "この前の週末"),
    weekday(rf"{_COMING}{_JAPANESE_WEEKDAY}", lambda m, today: _next_weekday(today, m[1]), "今度の日曜"),
    weekday(rf"(?<![a-z])coming {WEEKDAY}", lambda m, today: _next_weekday(today, m[1]), "coming Friday"),
    fixed_week("(?:今度|次)の?週末", lambda today: weekend(today, 0 if today.weekday() < SATURDAY else -1), "今度の週末"),
    fixed_week("この週末", lambda today: weekend(today, 0), "この週末"),
    week(rf"(?<![a-z\d]){COUNT} weekends? ago", lambda m, today: [weekend(today, number_of(m[1]))], "two weekends ago"),
    weekday(
        rf"(?<![a-z\d]){COUNT} {_WHOLE_WEEKDAY}s? ago",
        lambda m, today: _weekday_before(today, m[2], number_of(m[1])),
        "two Fridays ago",
    ),
    weekday(
        rf"(?<![a-z])(?:the )?{_WHOLE_WEEKDAY} before last(?![a-z])",
        lambda m, today: _weekday_before(today, m[1], 2),
        "the Friday before last",
    ),
    weekday(
        rf"(?<![a-z])(?:the )?{_WHOLE_WEEKDAY} after next(?![a-z])",
        lambda m, today: _next_weekday(today, m[1][:3], 1),
        "the Monday after next",
    ),
    weekday(rf"(?<![a-z])a week ago(?: on)? {WEEKDAY}", lambda m, today: _in_week(today, m[1], 1), "a week ago on Friday"),
    fixed_week("先週の今日", lambda today: day_of(today - timedelta(days=7)), "先週の今日"),
    fixed_week("来週の今(?:日|頃|ごろ)", lambda today: day_of(today + timedelta(days=7)), "来週の今日"),
    week(_WEEK, lambda m, today: [week_of(today, WEEKS_BACK[m[1]])], "先週", "今週", "来週", "さ来週"),
]
NAMED_WEEKDAYS: list[Expression] = [
    weekday(rf"(?<![a-z])(?:last|this past)\s+{WEEKDAY}", lambda m, today: _weekday_before(today, m[1]), "last Friday"),
    weekday(rf"(?<![a-z])(this|next)\s+{WEEKDAY}", lambda m, today: _in_week(today, m[2], m[1]), "next Friday"),
]
ENGLISH_WEEKS: list[Expression] = [
    fixed_week("(?<![a-z])(?:the )?weekend after next", lambda today: weekend(today, -2), "the weekend after next"),
    fixed_week("(?<![a-z])(?:the )?week after next", lambda today: week_of(today, -2), "the week after next"),
    fixed_week("(?<![a-z])(?:the )?weekend before last", lambda today: weekend(today, 2), "the weekend before last"),
    fixed_week("(?<![a-z])(?:the )?week before last", lambda today: week_of(today, 2), "the week before last"),
    fixed_week("(?<![a-z])(?:the|this) past weekend", latest_weekend, "this past weekend"),
    week(f"(?<![a-z]){_BACK} weekend", lambda m, today: [weekend(today, WEEKS_BACK[m[1]])], "last weekend"),
    week(f"(?<![a-z]){_BACK} week(?!end| of)", lambda m, today: [week_of(today, WEEKS_BACK[m[1]])], "last week"),
]
SINCE_WEEKDAY = weekday(
    rf"(?<![a-z])since {WEEKDAY}", lambda m, today: [(_latest_weekday(today, m[1])[0][0], today + ONE_DAY)], "since Friday"
)
WEEKS_LATER: list[Expression] = [
    later_weekday(
        rf"(?<![a-z])(?:in {COUNT} weeks?,?(?: on)? {WEEKDAY}|{WEEKDAY} in {COUNT} weeks?)(?![a-z])",
        lambda m, today: _in_week(today, m[2] or m[3], -number_of(m[1] or m[4])),
        "in two weeks on Saturday",
        "Saturday in two weeks",
    ),
    later_weekday(
        rf"(?<![a-z\d]){COUNT} weeks? from {WEEKDAY}", lambda m, today: _next_weekday(today, m[2], number_of(m[1])), "a week from Friday"
    ),
    later_weekday(rf"(?<![a-z]){WEEKDAY} week(?![a-z])", lambda m, today: _next_weekday(today, m[1], 1), "Friday week"),
]
WEEKDAYS_ALONE: list[Expression] = [
    alone(f"前の?{_JAPANESE_WEEKDAY}", lambda m, today: _weekday_before(today, m[1]), "前の金曜"),
    alone(_JAPANESE_WEEKDAY, lambda m, today: _latest_weekday(today, m[1]), "金曜", recurs_after=(6,)),
    alone(rf"(?<![a-z]){WEEKDAY}", lambda m, today: _latest_weekday(today, m[1]), "Friday", recurs_after=(6,)),
]
WEEKENDS_ALONE: list[Expression] = [
    fixed_alone("前の?週末", lambda today: weekend(today, 1), "前の週末"),
    fixed_alone("週末|土日|(?<![a-z])(?:the )?weekend", latest_weekend, "週末", "the weekend", recurs_after=(6,)),
]
# In an argument: Friday night last week is the night of Friday last week.
PART_BEFORE_WEEK = re.compile(
    rf"(?<![a-z])(?P<day>{WEEKDAY}) (?P<part>morning|afternoon|evening|night),? (?P<week>(?:of )?(?:last|this|next) week)(?!end)"
)
