"""Weeks, weekends and days of the week, as a table: 先週の金曜, 週明け, two Fridays ago, the weekend before last. A week begins on Monday."""

import re
from datetime import date, timedelta

from memory_mcp.dates.nested_days import Days
from memory_mcp.dates.numerals import COUNT, NUMBER
from memory_mcp.dates.relative import Pattern, fixed
from memory_mcp.dates.spans import WEEKDAYS, day_of, number_of, week_of

WEEKDAY = r"(mon|tue|wed|thu|fri|sat|sun)(?:(?:s|nes|rs|ur)?day|s|rs?)?(?![a-z])"
WEEKS_BACK = {"先々週": 2, "先先週": 2, "先週": 1, "今週": 0, "来週": -1, "再来週": -2, "last": 1, "previous": 1, "this": 0, "next": -1}
_WEEK = "(再来週|先々週|先先週|先週|今週|来週)"


def in_week(today: date, weekday: int, weeks_back: int) -> Days:
    """That day of the week so many weeks ago."""
    return day_of(week_of(today, weeks_back)[0] + timedelta(days=weekday))


def last_weekday(today: date, weekday: int) -> Days:
    """The latest such day before today."""
    return day_of(today - timedelta(days=(today.weekday() - weekday - 1) % 7 + 1))


def weekday_alone(today: date, found: re.Match[str]) -> Days:
    """The latest such day, which may be today."""
    return last_weekday(today + timedelta(days=1), WEEKDAYS[found[1]])


def next_weekday(today: date, weekday: int) -> Days:
    """The first such day after today."""
    return day_of(today + timedelta(days=(weekday - today.weekday() - 1) % 7 + 1))


def _weekday_ago(today: date, name: str, count: int) -> Days:
    """Two Fridays ago: the one before the latest before today."""
    return day_of(last_weekday(today, WEEKDAYS[name[:3]])[0] - timedelta(days=7 * (count - 1)))


def weekend(today: date, weeks_back: int) -> Days:
    monday = week_of(today, weeks_back)[0]
    return monday + timedelta(days=5), monday + timedelta(days=7)


def latest_weekend(today: date) -> Days:
    """The one that is, or the last one."""
    return weekend(today, 0 if today.weekday() >= 5 else 1)


# The longer reading first.
WEEKS: list[Pattern] = [
    (re.compile(rf"{NUMBER}週間?前の?([月火水木金土日])曜日?"), lambda m, today: [in_week(today, WEEKDAYS[m[2]], number_of(m[1]))]),
    (re.compile(rf"(?<![a-z]){WEEKDAY} {COUNT} weeks? ago"), lambda m, today: [in_week(today, WEEKDAYS[m[1]], number_of(m[2]))]),
    (re.compile(rf"{_WEEK}の?([月火水木金土日])曜日?"), lambda m, today: [in_week(today, WEEKDAYS[m[2]], WEEKS_BACK[m[1]])]),
    (
        re.compile(rf"(?<![a-z])(last|this|next) week(?:'s|,| on)? {WEEKDAY}"),
        lambda m, today: [in_week(today, WEEKDAYS[m[2]], WEEKS_BACK[m[1]])],
    ),
    (
        re.compile(rf"(?<![a-z]){WEEKDAY}(?: of)? (last|this|next) week(?!end)"),
        lambda m, today: [in_week(today, WEEKDAYS[m[1]], WEEKS_BACK[m[2]])],
    ),
    (
        re.compile(rf"{_WEEK}の?(?:平日|ウィークデー)"),
        lambda m, today: [(week_of(today, WEEKS_BACK[m[1]])[0], weekend(today, WEEKS_BACK[m[1]])[0])],
    ),
    (re.compile(rf"{_WEEK}の?週?明け"), lambda m, today: [in_week(today, 0, WEEKS_BACK[m[1]])]),
    fixed("(?:今度|次)の?週明け", lambda today: in_week(today, 0, -1)),
    (re.compile("(?<![先今来毎前])週明け(?!て)"), lambda m, today: [in_week(today, 0, 0), in_week(today, 0, -1)]),
    (re.compile(rf"{_WEEK}末の?([土日])曜日?"), lambda m, today: [in_week(today, WEEKDAYS[m[2]], WEEKS_BACK[m[1]])]),
    (re.compile(rf"{_WEEK}の?(?:週?末|土日)"), lambda m, today: [weekend(today, WEEKS_BACK[m[1]])]),
    (
        re.compile("(?:この[前間]|このまえ|このあいだ|こないだ)の?([月火水木金土日])曜日?"),
        lambda m, today: [last_weekday(today, WEEKDAYS[m[1]])],
    ),
    fixed("(?:この[前間]|このまえ|このあいだ|こないだ)の?週末", latest_weekend),
    (re.compile("(?:今度|次|来る|来たる|きたる)の?([月火水木金土日])曜日?"), lambda m, today: [next_weekday(today, WEEKDAYS[m[1]])]),
    (re.compile(rf"(?<![a-z])coming {WEEKDAY}"), lambda m, today: [next_weekday(today, WEEKDAYS[m[1]])]),
    fixed("(?:今度|次)の?週末", lambda today: weekend(today, 0 if today.weekday() < 5 else -1)),
    fixed("この週末", lambda today: weekend(today, 0)),
    (re.compile(rf"(?<![a-z\d]){COUNT} weekends? ago"), lambda m, today: [weekend(today, number_of(m[1]))]),
    (
        re.compile(rf"(?<![a-z\d]){COUNT} (mon|tues|wednes|thurs|fri|satur|sun)days? ago"),
        lambda m, today: [_weekday_ago(today, m[2], number_of(m[1]))],
    ),
    (
        re.compile(r"(?<![a-z])(?:the )?(mon|tues|wednes|thurs|fri|satur|sun)day before last(?![a-z])"),
        lambda m, today: [_weekday_ago(today, m[1], 2)],
    ),
    (re.compile(rf"(?<![a-z])a week ago(?: on)? {WEEKDAY}"), lambda m, today: [in_week(today, WEEKDAYS[m[1]], 1)]),
    fixed("先週の今日", lambda today: day_of(today - timedelta(days=7))),
    fixed("来週の今(?:日|頃|ごろ)", lambda today: day_of(today + timedelta(days=7))),
    (re.compile(_WEEK), lambda m, today: [week_of(today, WEEKS_BACK[m[1]])]),
]
